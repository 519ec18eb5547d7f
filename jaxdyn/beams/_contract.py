"""The contract of a cross-section."""

import abc

import equinox as eqx
from jax.typing import ArrayLike

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float


class SectionProperties(eqx.Module):
    """Area and moments of a cross-section in its principal axes y and z through the centroid.

    Arguments:

    * `area`: A, m^2.
    * `second_moment_y`: `I_y = int z^2 dA` of bending about y, m^4.
    * `second_moment_z`: `I_z = int y^2 dA` of bending about z, m^4.
    * `torsion_constant`: J_t of Saint-Venant torsion, `T = G J_t dtheta/dx`, m^4.
    """

    area: Float[Array, ""] = eqx.field(converter=as_float)
    second_moment_y: Float[Array, ""] = eqx.field(converter=as_float)
    second_moment_z: Float[Array, ""] = eqx.field(converter=as_float)
    torsion_constant: Float[Array, ""] = eqx.field(converter=as_float)


class AbstractSection(eqx.Module):
    """Cross-section of a beam in its principal axes y and z through the centroid; the beam extends along x.

    A section has its own dimensions as leaves and derives the quantities of beam theory from them at each evaluation.
    The shear centre is the centroid.
    """

    @abc.abstractmethod
    def properties(self) -> SectionProperties:
        """Area, second moments and torsion constant."""

    @abc.abstractmethod
    def shear_coefficients(self, poisson_ratio: ArrayLike) -> Float[Array, "2"]:
        """Timoshenko's coefficients k of the shear forces along y and z: `V = k G A gamma`."""

    @abc.abstractmethod
    def fibre_stresses(self, force: Float[Array, "3"], moment: Float[Array, "3"]) -> Float[Array, "fibres 2"]:
        """Normal and shear stress, Pa, at the fibres of the section that may bear the largest equivalent stress.

        `force` is (N, V_y, V_z) in N and `moment` (T, M_y, M_z) in N m, exerted on the section whose outward normal is
        x. The normal stress is `N / A + z M_y / I_y - y M_z / I_z`.
        """
