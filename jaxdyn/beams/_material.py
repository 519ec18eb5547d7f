"""Materials of beams."""

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float


class Material(eqx.Module):
    """A linearly elastic material with viscous damping.

    Arguments:

    * `density`: kg/m^3.
    * `youngs_modulus`: E, Pa.
    * `shear_modulus`: G, Pa; `E / 2(1 + nu)` if isotropic (`Material.isotropic`).
    * `yield_strength`: Pa; infinite unless given.
    * `retardation_time`: eta of a Kelvin-Voigt material, s: `sigma = E (strain + eta d strain/dt)`. A free vibration of
      angular frequency w has the damping ratio `eta w / 2`.

    Example:

    ```python
    from jaxdyn.beams import Material

    steel = Material.isotropic(7850.0, 210e9, 0.3, yield_strength=235e6)
    ```
    """

    density: Float[Array, ""] = eqx.field(converter=as_float)
    youngs_modulus: Float[Array, ""] = eqx.field(converter=as_float)
    shear_modulus: Float[Array, ""] = eqx.field(converter=as_float)
    yield_strength: Float[Array, ""] = eqx.field(converter=as_float, default=jnp.inf)
    retardation_time: Float[Array, ""] = eqx.field(converter=as_float, default=0.0)

    @classmethod
    def isotropic(
        cls,
        density: ArrayLike,
        youngs_modulus: ArrayLike,
        poisson_ratio: ArrayLike,
        *,
        yield_strength: ArrayLike = jnp.inf,
        retardation_time: ArrayLike = 0.0,
    ) -> "Material":
        """An isotropic material: `G = E / 2(1 + nu)`."""
        e = as_float(youngs_modulus)
        return cls(density, e, e / (2 * (1 + as_float(poisson_ratio))), yield_strength, retardation_time)

    @classmethod
    def steel(cls) -> "Material":
        """Structural steel S235: 7850 kg/m^3, E 210 GPa, G 81 GPa, yield strength 235 MPa (EN 1993-1-1)."""
        return cls(7850.0, 210e9, 81e9, 235e6)

    @classmethod
    def aluminium(cls) -> "Material":
        """Wrought aluminium EN AW-6082-T6: 2700 kg/m^3, E 70 GPa, G 27 GPa, yield strength 250 MPa (EN 1999-1-1)."""
        return cls(2700.0, 70e9, 27e9, 250e6)

    @property
    def poisson_ratio(self) -> Float[Array, ""]:
        """`nu = E / 2G - 1`."""
        return self.youngs_modulus / (2 * self.shear_modulus) - 1
