"""Cross-sections: solid rounds, tubes, rectangles, and profiles given by their numbers."""

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float
from jaxdyn.beams._contract import AbstractSection, SectionProperties


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


class Profile(AbstractSection):
    """A section given by its numbers, as profile tables list them.

    Arguments:

    * `numbers`: `SectionProperties`.
    * `shear`: shear coefficients along y and z, `(2,)`.
    """

    numbers: SectionProperties
    shear: Float[Array, "2"] = eqx.field(converter=as_float, default=(1.0, 1.0))

    def properties(self) -> SectionProperties:
        """The numbers."""
        return self.numbers

    def shear_coefficients(self, poisson_ratio: ArrayLike) -> Float[Array, "2"]:
        """The two coefficients, whatever the material."""
        return self.shear
