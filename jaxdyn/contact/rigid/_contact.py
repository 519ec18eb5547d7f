"""One rigid contact: a gap with its laws of friction and restitution."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn._numerics import optional_float
from jaxdyn._types import Array, Float
from jaxdyn.constraints.contract import Configuration, KinematicState
from jaxdyn.contact.contract import AbstractGap, Touch, relative_velocity
from jaxdyn.contact.laws import AbstractRestitution, Coulomb, FrictionGroup, Newton, as_friction


def _as_restitution(law: AbstractRestitution | ArrayLike) -> AbstractRestitution:
    return law if isinstance(law, AbstractRestitution) else Newton(law)


class Contact(eqx.Module):
    """A rigid contact of two bodies, which do not penetrate: they collide, slide, stick and separate.

    The gap g and the normal force F satisfy the complementarity conditions `0 <= g, 0 <= F, g F = 0`.

    Arguments:

    * `name`: of the contact, in messages and results.
    * `gap`: an `AbstractGap` between two bodies.
    * `friction`: `Coulomb`, a coefficient for it, or None.
    * `restitution`: `Newton`, `Poisson`, `Stronge`, or a coefficient for Newton's law; by default plastic.
    * `plane`: the normal of the plane in which both bodies move, in the world. Friction then has one direction, and
      impacts with friction are solved in closed form.

    ```python
    from jaxdyn.contact import Contact, Gap, Plane, Poisson, Sphere

    bounce = Contact("floor", Gap("ball", Sphere(0.1), "world", Plane()), friction=0.3, restitution=Poisson(0.8))
    ```
    """

    name: str = eqx.field(static=True)
    gap: AbstractGap
    friction: Coulomb | None = eqx.field(converter=as_friction, default=None)
    restitution: AbstractRestitution = eqx.field(converter=_as_restitution, default=0.0)
    plane: Float[Array, "3"] | None = eqx.field(converter=optional_float, default=None)

    @property
    def dimensions(self) -> tuple[int, ...]:
        """Number of rows of each friction group."""
        if self.friction is None:
            return ()
        rolling, spinning = self.friction.has_rolling_and_spinning
        if self.plane is not None:
            return (1, 1) if rolling else (1,)
        return (2, *([2] if rolling else []), *([1] if spinning else []))

    @property
    def angular(self) -> tuple[bool, ...]:
        """Whether the rows of each friction group are relative angular velocities."""
        return (False, *[True] * (len(self.dimensions) - 1)) if self.dimensions else ()

    def groups(self, x: Configuration, touch: Touch) -> tuple[FrictionGroup, ...]:
        """The rows of friction at a configuration."""
        if self.friction is None:
            return ()
        return self.friction.groups(touch.normal, self.plane, self.gap.second.pose(x).rotation)

    def rates(self, x: KinematicState) -> Float[Array, " rows"]:
        """The normal velocity, followed by the slip velocities and relative angular velocities of the groups."""
        touch = self.gap.measure(x.configuration)
        c = relative_velocity(self.gap, x, touch)
        spin = x.angular_velocity(self.gap.first.link) - x.angular_velocity(self.gap.second.link)
        rows = [group.basis @ (spin if group.angular else c) for group in self.groups(x.configuration, touch)]
        return jnp.concatenate([(touch.normal @ c)[None], *rows])


def as_contacts(contacts: Contact | Sequence[Contact]) -> tuple[Contact, ...]:
    """Converts one contact or several to a tuple with unique names."""
    out = (contacts,) if isinstance(contacts, Contact) else tuple(contacts)
    names = [c.name for c in out]
    duplicates = sorted({n for n in names if names.count(n) > 1})
    if duplicates:
        raise ModelError(f"contacts share the names {duplicates}; give each contact a unique name")
    return out
