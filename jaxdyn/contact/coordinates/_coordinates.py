"""Functional coordinates `s = s(q, t)` of a tool relative to an object, and their kinematics."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ArgumentError, ShapeError
from jaxdyn._numerics import as_function, default_tolerance, pseudo_inverse
from jaxdyn._types import Array, Float
from jaxdyn.constraints.contract import AbstractHolonomic, Configuration
from jaxdyn.constraints.evaluation import (
    acceleration_bias,
    constraint_kinematics,
    constraint_rates,
    constraint_residuals,
    linearise_constraints,
)
from jaxdyn.constraints.types import End, as_end
from jaxdyn.contact.coordinates._poses import pose_coordinates
from jaxdyn.model import Model
from jaxdyn.recursion import check_state
from jaxdyn.spatial import Pose


class FunctionalCoordinates(eqx.Module):
    """Coordinates `s` of a tool frame E relative to the frame S of an object, for a task in contact with it.

    Arguments:

    * `tool`: the frame E, an `End`, the name of a link or frame, or a tuple `(link, translation)` or
      `(link, translation, quaternion)`.
    * `base`: the frame S, or with `motion` the frame in which S moves: as `tool`, on a link, or "world" (the default).
    * `function`: maps the `jaxdyn.spatial.Pose` of E in S to the coordinates `(k,)`; by default `pose_coordinates`. Any
      number of coordinates is allowed. A function with parameters should be an `equinox.Module`, so that they are
      leaves.
    * `motion`: prescribed motion of the object, a function from t (s) to the `Pose` of S in `base`; None for S fixed to
      `base`.
    * `constrained`: indices of the coordinates s^c that are zero in contact; the others are the free ones, s^f.

    Vukobratović, Potkonjak and Rodić, dynamics of robots in contact tasks: `sdd = J a + A`, `s^c = 0`.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    import jaxdyn.contact as ct

    model = jd.robots.double_pendulum()
    tip = model.link_names[-1]
    wall = ct.FunctionalCoordinates(tip, ("world", (0.6, 0, 0)), lambda pose: pose.translation[::2], constrained=(0,))
    s = wall.evaluate(model, jnp.array([0.3, 0.2]), jnp.array([1.0, -0.5]))
    assert jnp.allclose(s.rate, s.jacobian @ jnp.array([1.0, -0.5]))
    ```
    """

    tool: End = eqx.field(converter=as_end)
    base: End = eqx.field(converter=as_end, default="world")
    function: Callable[[Pose], Array] = eqx.field(converter=as_function, default=pose_coordinates)
    motion: Callable[[Array], Pose] | None = eqx.field(converter=as_function, default=None, kw_only=True)
    constrained: tuple[int, ...] = eqx.field(converter=tuple, default=(), static=True, kw_only=True)

    def __check_init__(self):
        if len(set(self.constrained)) < len(self.constrained) or min(self.constrained, default=0) < 0:
            raise ArgumentError(
                f"constrained is {self.constrained}, expected different indices of coordinates, counted from 0"
            )

    def value(self, x: Configuration) -> Float[Array, " k"]:
        """The coordinates s at a configuration."""
        base = self.base.pose(x)
        base = base if self.motion is None else base @ self.motion(x.t)
        s = self.function(base.inverse() @ self.tool.pose(x))
        if jnp.ndim(s) != 1 or s.shape[0] <= max(self.constrained, default=0):
            raise ShapeError(
                f"functional coordinates of {self.tool.link!r} have shape {jnp.shape(s)} with the constrained ones "
                f"{self.constrained}; return an array of one axis, with an entry for each of these"
            )
        return s

    def free(self, count: int) -> tuple[int, ...]:
        """Indices of the free coordinates among `count` coordinates."""
        return tuple(k for k in range(count) if k not in self.constrained)

    def split(self, s) -> tuple[Array, Array]:
        """Entries or rows of the free and of the constrained coordinates, `(s^f, s^c)`."""
        return s[jnp.array(self.free(s.shape[0]), int)], s[jnp.array(self.constrained, int)]

    def constraint(self, name: str = "contact") -> "FunctionalConstraint":
        """The constraint `s^c = 0`, for `constrained_dynamics`, `ConstrainedMotion` and `impulse`.

        Its multipliers are the reactions F along s^c: forces along positions, N, moments along angles, N m.
        """
        return FunctionalConstraint(name, self)

    def evaluate(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], *, t: ArrayLike = 0.0
    ) -> "CoordinateKinematics":
        """Coordinates, rates, Jacobian and acceleration bias at a state, and time `t` (s)."""
        q, v = check_state(model, q=q, v=v)
        rows = (_AllCoordinates("s", self),)
        x = constraint_kinematics(model, t, q, v)
        jacobian, b = linearise_constraints(model, rows, x)
        s, rate = constraint_residuals(model, rows, x), constraint_rates(model, rows, x)
        return CoordinateKinematics(s, rate, jacobian, -b, acceleration_bias(model, rows, x))


class CoordinateKinematics(eqx.Module):
    """Kinematics of functional coordinates: `sdot = J v + s_t`, `sdd = J a + A`."""

    #: s, m and rad
    value: Float[Array, " k"]
    #: sdot
    rate: Float[Array, " k"]
    #: J
    jacobian: Float[Array, "k nv"]
    #: `s_t`, the rate due to the prescribed motion of the object
    drift: Float[Array, " k"]
    #: A, including the terms of the prescribed motion
    bias: Float[Array, " k"]

    def second_rate(self, a: Float[Array, " nv"]) -> Float[Array, " k"]:
        """`sdd = J a + A`."""
        return self.jacobian @ a + self.bias

    def joint_velocity(self, rate: Float[Array, " k"]) -> Float[Array, " nv"]:
        """The v of least norm with the least error of `J v + s_t = rate`."""
        return self._solve(rate - self.drift)

    def joint_acceleration(self, second_rate: Float[Array, " k"]) -> Float[Array, " nv"]:
        """The a of least norm with the least error of `J a + A = second_rate`."""
        return self._solve(second_rate - self.bias)

    def _solve(self, x):
        tolerance = jnp.asarray(default_tolerance(x.dtype), x.dtype)
        return pseudo_inverse(self.jacobian, tolerance)[0] @ x


class FunctionalConstraint(AbstractHolonomic):
    """The constraint `s^c = 0` on the constrained functional coordinates, one row each."""

    name: str = eqx.field(static=True)
    coordinates: FunctionalCoordinates

    def residual(self, x: Configuration):
        return self.coordinates.split(self.coordinates.value(x))[1]


class _AllCoordinates(AbstractHolonomic):
    """All functional coordinates as rows, for their derivatives."""

    name: str = eqx.field(static=True)
    coordinates: FunctionalCoordinates

    def residual(self, x: Configuration):
        return self.coordinates.value(x)
