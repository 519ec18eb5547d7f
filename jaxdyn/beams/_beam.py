"""Straight beams, uniform or tapered."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdyn._errors import ArgumentError, check_instance
from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float
from jaxdyn.beams._contract import AbstractSection
from jaxdyn.beams._material import Material
from jaxdyn.spatial import Inertia, Pose

#: Gauss-Legendre points on 0..1: exact for second moments of inertia of linearly tapered circles and rectangles
_POINTS, _WEIGHTS = (np.polynomial.legendre.leggauss(5)[0] + 1) / 2, np.polynomial.legendre.leggauss(5)[1] / 2


class Beam(eqx.Module):
    """A straight beam: its mass, inertia, stiffness and strength follow from section, material and length.

    Arguments:

    * `section`: cross-section at the start.
    * `material`: a `Material`.
    * `length`: m.
    * `end_section`: cross-section at the end, of the same class; its dimensions vary linearly along the axis. A uniform
      beam has none.
    * `placement`: pose of the start in the axes of the link; the beam extends along x of the placement, y and z are
      the principal axes of the sections. The origin and axes of the link unless given.

    Example:

    ```python
    import jax
    import jax.numpy as jnp
    from jaxdyn.beams import Beam, Material, Tube

    mass = lambda radius: Beam(Tube(radius, 0.026), Material.aluminium(), 0.8).inertia().mass
    assert jnp.isclose(mass(0.030), 2700 * 7.037167544e-4 * 0.8)
    d_mass = jax.grad(mass)(0.030)
    ```
    """

    section: AbstractSection
    material: Material
    length: Float[Array, ""] = eqx.field(converter=as_float)
    end_section: AbstractSection | None = None
    placement: Pose = eqx.field(default_factory=Pose.identity)

    def __check_init__(self):
        check_instance("section", self.section, AbstractSection, "write for example `Tube(0.03, 0.026)`")
        check_instance("material", self.material, Material, "write for example `Material.steel()`")
        check_instance("placement", self.placement, Pose, "write `Pose(rotation, translation)`")
        if self.end_section is not None and type(self.end_section) is not type(self.section):
            raise ArgumentError(
                f"the section of a beam is a {type(self.section).__name__} at its start and a "
                f"{type(self.end_section).__name__} at its end; expected one class, whose dimensions vary linearly"
            )

    def section_at(self, s: ArrayLike) -> AbstractSection:
        """Cross-section at the distance s (m) from the start."""
        if self.end_section is None:
            return self.section
        x = jnp.asarray(s) / self.length
        return jax.tree.map(lambda a, b: a + x * (b - a), self.section, self.end_section)

    def inertia(self, start: ArrayLike = 0.0, end: ArrayLike | None = None) -> Inertia:
        """Inertia of the beam between the distances `start` and `end` (m), in the axes of the link.

        Mass and first moment are `int rho A ds` and `int rho A s ds`, rotational inertia includes the rotary inertia of
        the sections: `rho (I_y + I_z)` per length about x, `rho I_y` and `rho I_z` about y and z.
        """
        start = as_float(start)
        span = (self.length if end is None else as_float(end)) - start
        s = start + jnp.asarray(_POINTS, span.dtype) * span
        weight = jnp.asarray(_WEIGHTS, span.dtype) * span * self.material.density
        m, about_y, about_z = weight * jax.vmap(self._moments, out_axes=1)(s)
        mass = jnp.sum(m)
        massless = mass == 0
        centre = jnp.where(massless, start, jnp.sum(m * s) / jnp.where(massless, 1, mass))
        second, about_y, about_z = jnp.sum(m * (s - centre) ** 2), jnp.sum(about_y), jnp.sum(about_z)
        inertia = jnp.diag(jnp.stack([about_y + about_z, second + about_y, second + about_z]))
        along = jnp.stack([centre, jnp.zeros_like(centre), jnp.zeros_like(centre)])
        return Inertia(mass, along, inertia).moved(self.placement.translation, self.placement.rotation)

    def _moments(self, s: Float[Array, ""]) -> Float[Array, "3"]:
        """A, I_y and I_z of the section at s."""
        section = self.section_at(s).properties()
        return jnp.stack([section.area, section.second_moment_y, section.second_moment_z])
