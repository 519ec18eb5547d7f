"""Dry friction of a rigid contact: friction forces and torques bounded by the normal force."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import core
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_float, optional_float, tangent_basis
from jaxdyn._types import Array, Float


class FrictionGroup(NamedTuple):
    """Rows of a contact whose forces lie in one friction cone: sliding, rolling or spinning."""

    #: unit vectors, scaled where friction is anisotropic, `(dimension, 3)`, world axes
    basis: Float[Array, "dimension 3"]
    #: whether the rows measure the relative angular velocity instead of the slip velocity
    angular: bool


class Coulomb(eqx.Module):
    """Coulomb's law: a contact sticks while `|F_t| <= mu_s F_n` and slides with `F_t = -mu_k F_n c_t / |c_t|`.

    Anisotropic friction has an elliptic cone, with the coefficient `mu` along `direction` and `mu ratio` across it; the
    force follows the principle of maximum dissipation. Rolling friction bounds the torque in the tangent plane by
    `rolling F_n`, spinning friction the torque about the normal by `spinning F_n`. The three stick independently.

    Arguments:

    * `mu`: coefficient of friction; of static friction if `kinetic` is given.
    * `kinetic`: coefficient while the contact slides, by default `mu`.
    * `ratio`: ratio of the coefficient across `direction` to the coefficient along it.
    * `direction`: in axes of the second body, for anisotropic friction; by default its x axis.
    * `rolling`, `spinning`: lengths of rolling and spinning friction, m; None for no such friction.

    Raises `ModelError` for a negative coefficient.

    ```python
    from jaxdyn.contact import Coulomb

    rubber = Coulomb(0.8, kinetic=0.6, rolling=1e-3)
    ```
    """

    mu: Float[Array, ""] = eqx.field(converter=as_float)
    kinetic: Float[Array, ""] | None = eqx.field(converter=optional_float, default=None)
    ratio: Float[Array, ""] | None = eqx.field(converter=optional_float, default=None)
    direction: Float[Array, "3"] = eqx.field(converter=as_float, default=(1.0, 0.0, 0.0))
    rolling: Float[Array, ""] | None = eqx.field(converter=optional_float, default=None)
    spinning: Float[Array, ""] | None = eqx.field(converter=optional_float, default=None)

    def __check_init__(self):
        for name in ("mu", "kinetic", "ratio", "rolling", "spinning"):
            x = getattr(self, name)
            if x is not None and not isinstance(x, core.Tracer) and np.any(np.asarray(x) < 0):
                raise ModelError(f"{name} of Coulomb is {x}; expected zero or a positive number")

    @property
    def has_rolling_and_spinning(self) -> tuple[bool, bool]:
        """Whether there is rolling friction, and spinning friction."""
        return self.rolling is not None, self.spinning is not None

    def groups(self, normal, plane, rotation) -> tuple[FrictionGroup, ...]:
        """The groups of rows at a unit normal; `plane` is the normal of a planar mechanism or None.

        `rotation` `(3, 3)` has the axes of the second body.
        """
        if plane is None:
            tangents = tangent_basis(normal, None if self.ratio is None else rotation @ self.direction)
            axes = tangents
            if self.ratio is not None:
                tangents = tangents * jnp.stack([jnp.ones_like(self.ratio), self.ratio])[:, None].astype(normal.dtype)
        else:
            tangents, axes = jnp.cross(plane, normal)[None], plane[None]
        out = [FrictionGroup(tangents, False)]
        if self.rolling is not None:
            out.append(FrictionGroup(axes, True))
        if self.spinning is not None and plane is None:
            out.append(FrictionGroup(normal[None], True))
        return tuple(out)

    def bounds(self, planar: bool) -> tuple[list[Array], list[Array]]:
        """Radii of the friction cones of all groups per unit of normal force, while sticking and while sliding."""
        sticking, sliding = [self.mu], [self.mu if self.kinetic is None else self.kinetic]
        for x in (self.rolling, None if planar else self.spinning):
            if x is not None:
                sticking.append(x)
                sliding.append(x)
        return sticking, sliding


def as_friction(friction: Coulomb | ArrayLike | None) -> Coulomb | None:
    """Converts a coefficient to Coulomb's law."""
    return friction if friction is None or isinstance(friction, Coulomb) else Coulomb(friction)
