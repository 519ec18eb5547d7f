"""Loop joints (closures) between two frames, expressed in axes of the first.

With the origin d and the rotation R of the second frame in the first, residuals consist of components of d, of the tilt
of the z axis and of the rotation vector. A multiplier is then the force or moment, in axes of the first frame, that the
first link exerts on the second.
"""

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float
from jaxdyn.constraints.contract import AbstractHolonomic, Configuration
from jaxdyn.constraints.types._ends import End, as_end, relative_pose, rotation_error, tilt


class PointClosure(AbstractHolonomic):
    """Ball joint: the origins of two frames coincide, `d = 0`, three rows."""

    name: str = eqx.field(static=True)
    first: End = eqx.field(converter=as_end)
    second: End = eqx.field(converter=as_end)

    def residual(self, x: Configuration):
        return relative_pose(x, self.first, self.second).translation


class WeldClosure(AbstractHolonomic):
    """Fixed joint: two frames coincide; rotation and origin, six rows, angular first."""

    name: str = eqx.field(static=True)
    first: End = eqx.field(converter=as_end)
    second: End = eqx.field(converter=as_end)

    def residual(self, x: Configuration):
        pose = relative_pose(x, self.first, self.second)
        return jnp.concatenate([rotation_error(pose.rotation), pose.translation])


class RevoluteClosure(AbstractHolonomic):
    """Revolute joint about the common z axis: tilt and origin, five rows (tilt about x and y, then d, m).

    A sixth row would lock the loop. Arguments:

    * `name`: unique name, by which results are addressed.
    * `first`, `second`: frames on two links, each an `End`, the name of a link or frame, or a tuple
      `(link, translation)` or `(link, translation, quaternion)`.

    The multiplier is (moment about x and y, N m; force, N) of the first link on the second, in axes of the first frame.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    import jaxdyn.constraints as jc

    b = jd.ModelBuilder()
    for name in ("a", "b"):
        b.add_link(name, "world", jd.joints.Revolute((0, 0, 1)), jd.spatial.point_mass(1.0))
    model = b.build()
    hinge = jc.RevoluteClosure("hinge", ("a", (0, 0, 0)), ("b", (0, 0, 0)))
    assert jc.mobility(model, hinge, jnp.zeros(2)) == 2  # coaxial links turn independently
    ```
    """

    name: str = eqx.field(static=True)
    first: End = eqx.field(converter=as_end)
    second: End = eqx.field(converter=as_end)

    def residual(self, x: Configuration):
        pose = relative_pose(x, self.first, self.second)
        return jnp.concatenate([tilt(pose.rotation), pose.translation])


class CylindricalClosure(AbstractHolonomic):
    """Cylindrical joint along the common z axis: tilt and two rows of the origin, four rows."""

    name: str = eqx.field(static=True)
    first: End = eqx.field(converter=as_end)
    second: End = eqx.field(converter=as_end)

    def residual(self, x: Configuration):
        pose = relative_pose(x, self.first, self.second)
        return jnp.concatenate([tilt(pose.rotation), pose.translation[:2]])


class PrismaticClosure(AbstractHolonomic):
    """Prismatic joint along the common z axis: rotation and two rows of the origin, five rows."""

    name: str = eqx.field(static=True)
    first: End = eqx.field(converter=as_end)
    second: End = eqx.field(converter=as_end)

    def residual(self, x: Configuration):
        pose = relative_pose(x, self.first, self.second)
        return jnp.concatenate([rotation_error(pose.rotation), pose.translation[:2]])


class PlanarClosure(AbstractHolonomic):
    """Planar joint: the xy planes of two frames coincide; tilt and distance, three rows."""

    name: str = eqx.field(static=True)
    first: End = eqx.field(converter=as_end)
    second: End = eqx.field(converter=as_end)

    def residual(self, x: Configuration):
        pose = relative_pose(x, self.first, self.second)
        return jnp.concatenate([tilt(pose.rotation), pose.translation[2:]])


class Distance(AbstractHolonomic):
    """A massless rod with ball joints: `(d.d - l^2) / (2 l) = 0`, one row.

    Arguments: unique `name`; frames `first` and `second`, whose origins the rod connects, as in `RevoluteClosure`;
    `length`, m, not zero. The multiplier is the compressive force in the rod, N.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    import jaxdyn.constraints as jc

    b = jd.ModelBuilder()
    b.add_link("x", "world", jd.joints.Prismatic((1, 0, 0)))
    model = b.add_link("point", "x", jd.joints.Prismatic((0, 0, 1)), jd.spatial.point_mass(1.0)).build()
    rod = jc.Distance("rod", "world", "point", 1.0)
    d = jc.constrained_dynamics(model, rod, jnp.array([0.0, -1.0]), jnp.zeros(2), jnp.zeros(2))
    assert abs(d.multiplier("rod")[0] + 9.81) < 1e-5  # the rod pulls with the weight, N
    ```
    """

    name: str = eqx.field(static=True)
    first: End = eqx.field(converter=as_end)
    second: End = eqx.field(converter=as_end)
    #: m, not zero
    length: Float[Array, ""] = eqx.field(converter=as_float)

    def residual(self, x: Configuration):
        d = relative_pose(x, self.first, self.second).translation
        return ((d @ d - self.length**2) / (2 * self.length))[None]
