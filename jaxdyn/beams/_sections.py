"""Cross-sections: solid rounds, tubes, rectangles, and profiles given by their numbers."""

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ArgumentError
from jaxdyn._numerics import as_float, optional_float, safe_norm
from jaxdyn._types import Array, Float
from jaxdyn.beams._circular_stresses import circular_stresses
from jaxdyn.beams._contract import AbstractSection, SectionProperties
from jaxdyn.beams._rectangular_stresses import rectangular_stresses


class Round(AbstractSection):
    """Solid circle: `A = pi r^2`, `I = pi r^4 / 4`, `J_t = 2 I`.

    Arguments: `radius`, m. The shear coefficients are those of Cowper (1966).
    """

    radius: Float[Array, ""] = eqx.field(converter=as_float)

    def properties(self) -> SectionProperties:
        """Area, second moments and torsion constant."""
        i = jnp.pi / 4 * self.radius**4
        return SectionProperties(jnp.pi * self.radius**2, i, i, 2 * i)

    def shear_coefficients(self, poisson_ratio: ArrayLike) -> Float[Array, "2"]:
        """`k = 6 (1 + nu) / (7 + 6 nu)`."""
        nu = as_float(poisson_ratio)
        k = 6 * (1 + nu) / (7 + 6 * nu)
        return jnp.stack([k, k])

    def fibre_stresses(self, force: Float[Array, "3"], moment: Float[Array, "3"]) -> Float[Array, "fibres 2"]:
        """Stresses at the extreme fibres in bending and at those of largest shear."""
        return circular_stresses(self.radius, jnp.zeros_like(self.radius), self.properties(), force, moment)


class Tube(AbstractSection):
    """Circular tube: `A = pi (ro^2 - ri^2)`, `I = pi (ro^4 - ri^4) / 4`, `J_t = 2 I`.

    Arguments: `outer_radius` and `inner_radius`, m. The shear coefficients are those of Cowper (1966).
    """

    outer_radius: Float[Array, ""] = eqx.field(converter=as_float)
    inner_radius: Float[Array, ""] = eqx.field(converter=as_float)

    def properties(self) -> SectionProperties:
        """Area, second moments and torsion constant."""
        i = jnp.pi / 4 * (self.outer_radius**4 - self.inner_radius**4)
        return SectionProperties(jnp.pi * (self.outer_radius**2 - self.inner_radius**2), i, i, 2 * i)

    def shear_coefficients(self, poisson_ratio: ArrayLike) -> Float[Array, "2"]:
        """`k = 6 (1 + nu) (1 + m^2)^2 / ((7 + 6 nu) (1 + m^2)^2 + (20 + 12 nu) m^2)`, `m = ri / ro`."""
        nu, m2 = as_float(poisson_ratio), (self.inner_radius / self.outer_radius) ** 2
        square = (1 + m2) ** 2
        k = 6 * (1 + nu) * square / ((7 + 6 * nu) * square + (20 + 12 * nu) * m2)
        return jnp.stack([k, k])

    def fibre_stresses(self, force: Float[Array, "3"], moment: Float[Array, "3"]) -> Float[Array, "fibres 2"]:
        """Stresses at the extreme fibres in bending and at those of largest shear."""
        return circular_stresses(self.outer_radius, self.inner_radius, self.properties(), force, moment)


class Rectangle(AbstractSection):
    """Solid rectangle: `A = b h`, `I_y = b h^3 / 12`, `I_z = h b^3 / 12`.

    With the longer edge a and the shorter edge c the torsion constant is
    `J_t = a c^3 (1/3 - 64 c / (pi^5 a) sum tanh(n pi a / 2c) / n^5)` over odd n (Timoshenko and Goodier 1970, section
    109). The shear coefficients are those of Cowper (1966).

    Arguments: `width` b along y and `height` h along z, m.
    """

    width: Float[Array, ""] = eqx.field(converter=as_float)
    height: Float[Array, ""] = eqx.field(converter=as_float)

    def properties(self) -> SectionProperties:
        """Area, second moments and torsion constant."""
        b, h = self.width, self.height
        a, c = jnp.maximum(b, h), jnp.minimum(b, h)
        n = jnp.arange(1, 12, 2, dtype=a.dtype)
        # beyond these n tanh is one, and the sum of 1 / n^5 over all odd n is 31 zeta(5) / 32
        series = 31 / 32 * 1.0369277551433699 + jnp.sum((jnp.tanh(n * jnp.pi * a / (2 * c)) - 1) / n**5)
        torsion = a * c**3 * (1 / 3 - 64 * c / (jnp.pi**5 * a) * series)
        return SectionProperties(b * h, b * h**3 / 12, h * b**3 / 12, torsion)

    def shear_coefficients(self, poisson_ratio: ArrayLike) -> Float[Array, "2"]:
        """`k = 10 (1 + nu) / (12 + 11 nu)`."""
        nu = as_float(poisson_ratio)
        k = 10 * (1 + nu) / (12 + 11 * nu)
        return jnp.stack([k, k])

    def fibre_stresses(self, force: Float[Array, "3"], moment: Float[Array, "3"]) -> Float[Array, "fibres 2"]:
        """Stresses at the corners and at the middles of the sides."""
        return rectangular_stresses(self.width, self.height, self.properties(), force, moment)


class Profile(AbstractSection):
    """A section given by its numbers, as profile tables list them.

    Arguments:

    * `numbers`: `SectionProperties`.
    * `shear`: shear coefficients along y and z, `(2,)`.
    * `extents`: distances of the outer fibres from the centroid along y and z, `(2,)`, m; stresses need them.
    * `torsion_modulus`: W_t of the largest shear stress in torsion, `tau = T / W_t`, m^3; J_t divided by the larger
      extent unless given.
    """

    numbers: SectionProperties
    shear: Float[Array, "2"] = eqx.field(converter=as_float, default=(1.0, 1.0))
    extents: Float[Array, "2"] | None = eqx.field(converter=optional_float, default=None)
    torsion_modulus: Float[Array, ""] | None = eqx.field(converter=optional_float, default=None)

    def properties(self) -> SectionProperties:
        """The numbers."""
        return self.numbers

    def shear_coefficients(self, poisson_ratio: ArrayLike) -> Float[Array, "2"]:
        """The two coefficients, whatever the material."""
        return self.shear

    def fibre_stresses(self, force: Float[Array, "3"], moment: Float[Array, "3"]) -> Float[Array, "fibres 2"]:
        """An upper bound: the shear stresses `V / k A` and `T / W_t` at the corners of the bounding rectangle."""
        if self.extents is None:
            raise ArgumentError("a Profile without extents has no stresses; give Profile(..., extents=(c_y, c_z)) in m")
        n, (y, z) = self.numbers, self.extents
        modulus = n.torsion_constant / jnp.maximum(y, z) if self.torsion_modulus is None else self.torsion_modulus
        bending = z * jnp.abs(moment[1]) / n.second_moment_y + y * jnp.abs(moment[2]) / n.second_moment_z
        normal = force[0] / n.area + jnp.stack([bending, -bending])
        shear = jnp.abs(moment[0]) / modulus + safe_norm(force[1:] / self.shear) / n.area
        return jnp.stack([normal, jnp.broadcast_to(shear, (2,))], 1)
