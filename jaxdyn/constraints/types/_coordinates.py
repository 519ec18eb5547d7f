"""Constraints on joint coordinates, prescribed motion, surfaces, and constraints defined by functions."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_float, as_function
from jaxdyn._types import Array, Float
from jaxdyn.constraints.contract import AbstractHolonomic, AbstractNonholonomic, Configuration, KinematicState
from jaxdyn.constraints.types._ends import End, as_end, rotation_error
from jaxdyn.spatial import Pose


class JointCoupling(AbstractHolonomic):
    """A joint coordinate is a polynomial of another: `q_joint = c_0 + c_1 q_source + c_2 q_source^2 + ...`.

    Both joints have one coordinate. Without a source the joint is fixed at `c_0`.
    """

    name: str = eqx.field(static=True)
    joint: str = eqx.field(static=True)
    source: str | None = eqx.field(static=True)
    #: c_0, c_1, ..., in rad or m
    coefficients: Float[Array, " order"] = eqx.field(converter=as_float)

    def residual(self, x: Configuration):
        source = jnp.zeros_like(x.q[0]) if self.source is None else x.coordinate(self.source)
        value = jnp.zeros_like(source)
        for c in self.coefficients[::-1]:
            value = value * source + c
        return (x.coordinate(self.joint) - value)[None]


class LinearCoupling(AbstractHolonomic):
    """A joint coordinate is a linear function of others: `q_joint = offset + sum of ratio_k q_source_k`.

    Couples a motor at the base to several joints over belts, chains and gear trains, `theta = A q` (see
    `jaxdyn.actuators.add_shaft`), and the joints of a differential. All joints have one coordinate; another number of
    ratios than of sources raises `ModelError`.
    """

    name: str = eqx.field(static=True)
    joint: str = eqx.field(static=True)
    sources: tuple[str, ...] = eqx.field(static=True)
    #: one per source, in rad/rad, rad/m or m/rad
    ratios: Float[Array, " sources"] = eqx.field(converter=as_float)
    #: rad or m
    offset: Float[Array, ""] = eqx.field(converter=as_float, default=0.0)

    def __check_init__(self):
        if self.ratios.shape[-1:] != (len(self.sources),):
            raise ModelError(
                f"{self.name}: ratios of shape {self.ratios.shape} for the {len(self.sources)} sources {self.sources}; "
                "give one ratio for each source"
            )

    def residual(self, x: Configuration):
        sources = jnp.stack([x.coordinate(source) for source in self.sources])
        return (x.coordinate(self.joint) - self.offset - self.ratios @ sources)[None]


class PrescribedCoordinate(AbstractHolonomic):
    """A joint of one coordinate follows a function of time: `q_joint = motion(t)`."""

    name: str = eqx.field(static=True)
    joint: str = eqx.field(static=True)
    #: twice differentiable function of t (s); an `equinox.Module` if it has parameters
    motion: Callable[[Array], Array] = eqx.field(converter=as_function)

    def residual(self, x: Configuration):
        return jnp.reshape(x.coordinate(self.joint) - self.motion(x.t), (1,))


class PrescribedFrame(AbstractHolonomic):
    """A frame follows a prescribed pose: rotation and origin in axes of that pose, six rows, angular first."""

    name: str = eqx.field(static=True)
    frame: End = eqx.field(converter=as_end)
    #: function from t (s) to a `jaxdyn.spatial.Pose` in `base`
    motion: Callable[[Array], Pose] = eqx.field(converter=as_function)
    base: End = eqx.field(converter=as_end, default="world")

    def residual(self, x: Configuration):
        pose = (self.base.pose(x) @ self.motion(x.t)).inverse() @ self.frame.pose(x)
        return jnp.concatenate([rotation_error(pose.rotation), pose.translation])


class OnSurface(AbstractHolonomic):
    """The origin of a frame stays on the surface `phi(p) = 0` fixed to a link or the world, one row.

    p is in axes of `base`, m. The multiplier pi exerts the force `pi dphi/dp` on the frame (McClamroch 1986, equations
    7 to 11). If the gradient of phi has unit length, pi is the normal force in N.
    """

    name: str = eqx.field(static=True)
    frame: End = eqx.field(converter=as_end)
    phi: Callable[[Array], Array] = eqx.field(converter=as_function)
    base: End = eqx.field(converter=as_end, default="world")

    def residual(self, x: Configuration):
        pose = self.base.pose(x).inverse() @ self.frame.pose(x)
        return jnp.reshape(self.phi(pose.translation), (1,))


class Holonomic(AbstractHolonomic):
    """A holonomic constraint `g(x) = 0` defined by a function.

    Arguments: unique `name`; `function`, which maps a `Configuration` x to the residual, a scalar or `(rows,)`. It may
    use `x.q`, `x.t`, `x.pose(link)` and `x.coordinate(joint)`. A function with parameters should be an
    `equinox.Module`, so that they are leaves.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    import jaxdyn.constraints as jc

    model = jd.robots.double_pendulum()
    tip = model.link_names[-1]
    level = jc.Holonomic("level", lambda x: x.pose(tip).translation[2] + 0.5)  # a joint at a height of -0.5 m
    assert jc.mobility(model, level, jnp.array([1.0, 0.2])) == 1
    ```
    """

    name: str = eqx.field(static=True)
    function: Callable[[Configuration], Array] = eqx.field(converter=as_function)

    def residual(self, x: Configuration):
        return jnp.atleast_1d(self.function(x))


class Pfaffian(AbstractNonholonomic):
    """A nonholonomic constraint `A(q, t) v = b(q, t)` defined by functions; b is zero by default."""

    name: str = eqx.field(static=True)
    #: `A(q, t)`, `(rows, nv)`
    matrix: Callable[[Array, Array], Array] = eqx.field(converter=as_function)
    #: `b(q, t)`, `(rows,)`
    drift: Callable[[Array, Array], Array] | None = eqx.field(converter=as_function, default=None)

    def rate(self, x: KinematicState):
        q, t = x.configuration.q, x.configuration.t
        out = jnp.atleast_2d(self.matrix(q, t)) @ x.v
        return out if self.drift is None else out - self.drift(q, t)
