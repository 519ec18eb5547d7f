"""Rigid-body inertia: common solids, change of frame, sums of bodies, principal axes."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn._numerics import as_float, symmetric_eigen
from jaxdyn._types import Array, Float


class Inertia(eqx.Module):
    """Inertia of a rigid body, expressed in one frame.

    Arguments:

    * `mass`: kg.
    * `com`: centre of mass in the frame, `(3,)`, m.
    * `inertia`: rotational inertia about the centre of mass, in the axes of the frame, `(3, 3)`, kg m^2.

    `a + b` is the inertia of both bodies together, `a.moved(translation, rotation)` of the body at another pose. The
    solids `box`, `cylinder`, `sphere`, ... return an `Inertia`. Example:

    ```python
    import jax.numpy as jnp
    from jaxdyn.spatial import Inertia, point_mass

    body = Inertia(2.0, [0.0, 0.0, 0.1], jnp.diag(jnp.array([0.02, 0.02, 0.01])))
    loaded = body + point_mass(1.0).moved([0.0, 0.0, 0.4])
    assert jnp.isclose(loaded.mass, 3.0) and jnp.allclose(loaded.com, jnp.array([0.0, 0.0, 0.2]))
    ```
    """

    mass: Float[Array, ""] = eqx.field(converter=as_float)
    com: Float[Array, "3"] = eqx.field(converter=as_float)
    inertia: Float[Array, "3 3"] = eqx.field(converter=as_float)

    def __add__(self, other: "Inertia") -> "Inertia":
        """Both bodies as one: `m c = m1 c1 + m2 c2`, rotational inertia by the parallel axis theorem."""
        mass = self.mass + other.mass
        massless = mass == 0
        weighted = self.mass * self.com + other.mass * other.com
        com = jnp.where(massless, self.com, weighted / jnp.where(massless, 1, mass))
        inertia = sum((i.inertia + i.mass * steiner(i.com - com) for i in (self, other)), jnp.zeros((3, 3)))
        return Inertia(mass, com, inertia)

    def moved(self, translation=(0.0, 0.0, 0.0), rotation=None) -> "Inertia":
        """The body rotated by the matrix `rotation`, then translated by `translation` (m): `R c + p`, `R I R^T`."""
        r = jnp.eye(3) if rotation is None else jnp.asarray(rotation)
        return Inertia(self.mass, r @ self.com + jnp.asarray(translation), r @ self.inertia @ r.T)


def steiner(d: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """`|d|^2 1 - d d^T`: rotational inertia about the origin of a unit point mass at d (parallel axis theorem)."""
    return (d @ d) * jnp.eye(3, dtype=d.dtype) - jnp.outer(d, d)


def _inertia_of_solid(volume, density, mass, per_mass) -> Inertia:
    if (density is None) == (mass is None):
        raise ValueError("give either density (kg/m^3) or mass (kg), and not both")
    m = jnp.asarray(density) * volume if mass is None else jnp.asarray(mass)
    return Inertia(m, jnp.zeros(3), m * jnp.diag(jnp.stack([jnp.asarray(x) for x in per_mass])))


def box(size, *, density=None, mass=None) -> Inertia:
    """Solid box with edges `size = (x, y, z)`: `Ixx = m (y^2 + z^2) / 12`."""
    x, y, z = (jnp.asarray(size)[i] for i in range(3))
    return _inertia_of_solid(
        x * y * z, density, mass, ((y * y + z * z) / 12, (x * x + z * z) / 12, (x * x + y * y) / 12)
    )


def cylinder(radius, length, *, density=None, mass=None) -> Inertia:
    """Solid cylinder along z: `Izz = m r^2 / 2`, `Ixx = m (3 r^2 + l^2) / 12`."""
    r2 = jnp.asarray(radius) ** 2
    across = (3 * r2 + jnp.asarray(length) ** 2) / 12
    return _inertia_of_solid(jnp.pi * r2 * length, density, mass, (across, across, r2 / 2))


def sphere(radius, *, density=None, mass=None) -> Inertia:
    """Solid ball: `I = 2/5 m r^2`."""
    return ellipsoid((radius, radius, radius), density=density, mass=mass)


def ellipsoid(radii, *, density=None, mass=None) -> Inertia:
    """Solid ellipsoid with half axes `radii`: `Ixx = m (b^2 + c^2) / 5`."""
    a, b, c = (jnp.asarray(radii[i]) for i in range(3))
    return _inertia_of_solid(
        4 / 3 * jnp.pi * a * b * c,
        density,
        mass,
        ((b * b + c * c) / 5, (a * a + c * c) / 5, (a * a + b * b) / 5),
    )


def rod(length, *, density=None, mass=None) -> Inertia:
    """Thin rod along z, `density` in kg/m: `Ixx = m l^2 / 12`, and `Izz = 0`."""
    l2 = jnp.asarray(length) ** 2
    return _inertia_of_solid(jnp.asarray(length), density, mass, (l2 / 12, l2 / 12, 0 * l2))


def shell(radius, *, density=None, mass=None) -> Inertia:
    """Thin spherical shell, `density` in kg/m^2: `I = 2/3 m r^2`."""
    r2 = jnp.asarray(radius) ** 2
    return _inertia_of_solid(4 * jnp.pi * r2, density, mass, (2 / 3 * r2,) * 3)


def point_mass(mass) -> Inertia:
    """Point mass at the origin (kg)."""
    return Inertia(mass, jnp.zeros(3), jnp.zeros((3, 3)))


def principal_axes(inertia: Float[Array, "3 3"]):
    """Principal moments in ascending order and principal axes as columns of a rotation: `I = R diag(moments) R^T`.

    Equal moments leave the axes undetermined; the derivative then excludes rotations within their eigenspace.
    """
    moments, axes = symmetric_eigen(inertia)
    return moments, axes * jnp.sign(jnp.linalg.det(axes))


def inertia_defect(mass, inertia) -> str | None:
    """Returns the reason why no rigid body has this mass and inertia, or None; concrete numbers only."""
    mass, inertia = np.asarray(mass, float), np.asarray(inertia, float)
    if not (np.isfinite(mass) and np.isfinite(inertia).all()):
        return "is not finite"
    if mass < 0:
        return f"has negative mass {mass:g} kg"
    if np.abs(inertia - inertia.T).max() > 1e-6 * max(np.abs(inertia).max(), 1e-300):
        return "has an inertia matrix that is not symmetric"
    low, mid, high = np.linalg.eigvalsh(inertia)
    scale = max(high, 1e-300)
    if low < -1e-6 * scale:
        return f"has a negative principal moment of inertia ({low:g} kg m^2)"
    if low + mid < high * (1 - 1e-6):
        return (
            f"has principal moments {low:g}, {mid:g}, {high:g} kg m^2 that violate the triangle inequality "
            "(each must be at most the sum of the other two)"
        )
    return None
