"""Stresses of beams, their utilisation, and buckling."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdyn._numerics import safe_norm
from jaxdyn._types import Array, Float, Scalar
from jaxdyn.beams import AbstractSection, Beam
from jaxdyn.loads._beams import Beams, at_sections, list_beams
from jaxdyn.loads._internal_loads import InternalLoads


class Stresses(eqx.Module):
    """Largest stresses at sections of beams, with the axes of the `InternalLoads` from which they follow."""

    #: link of each beam
    links: tuple[str, ...] = eqx.field(static=True)
    #: distance of the sections from the start of the beam, m
    s: Float[Array, "*batch beams sections"]
    #: largest magnitude of the normal stress, Pa
    normal: Float[Array, "*batch beams sections"]
    #: largest magnitude of the shear stress, Pa
    shear: Float[Array, "*batch beams sections"]
    #: largest equivalent stress of von Mises, Pa
    von_mises: Float[Array, "*batch beams sections"]
    #: of the material, Pa
    yield_strength: Float[Array, " beams"]

    @property
    def utilisation(self) -> Float[Array, "*batch beams sections"]:
        """Equivalent stress divided by the yield strength; zero for a material whose yield strength is infinite."""
        return self.von_mises / self.yield_strength[:, None]

    @property
    def safety_factor(self) -> Float[Array, "*batch"]:
        """Yield strength divided by the equivalent stress, the least one of all sections; infinite without stress."""
        largest = jnp.max(self.utilisation, (-2, -1))
        return jnp.where(largest == 0, jnp.inf, 1 / jnp.where(largest == 0, 1, largest))


@eqx.filter_jit
def stresses(beams: Beams, loads: InternalLoads) -> Stresses:
    """Largest normal, shear and equivalent stresses at the sections of beams.

    The equivalent stress is `sqrt(sigma^2 + 3 tau^2)` (von Mises) at the most stressed fibre, where normal stresses are
    those of axial force and bending, `sigma = N / A + z M_y / I_y - y M_z / I_z`, and shear stresses those of
    torsion and shear force (`AbstractSection.fibre_stresses`). Stress concentrations are not included.

    Arguments:

    * `beams`: as for `internal_loads`
    * `loads`: their internal loads, of one state or along a trajectory

    Returns `Stresses`. Raises `ArgumentError` for other beams than those of the loads.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.beams import Beam, Material, Tube
    from jaxdyn.loads import internal_loads, stresses

    tube = Beam(Tube(0.03, 0.026), Material.aluminium(), 0.8)
    arm = jd.ModelBuilder().add_link("arm", "world", inertia=tube.inertia()).build()
    none = jnp.zeros(0)
    tip_force = jnp.array([[0.0, 0.0, 0.8 * 125.0, 0.0, 125.0, 0.0]])  # about the origin of the link
    loads = internal_loads(arm, {"arm": tube}, none, none, none, tip_force)
    stress = stresses({"arm": tube}, loads)
    assert stress.safety_factor > 20
    ```
    """
    largest = at_sections(_largest_stresses, beams, loads, loads.force, loads.moment)
    normal, shear, von_mises = (largest[..., k] for k in range(3))
    strength = jnp.stack([beam.material.yield_strength for beam in list_beams(beams, loads.links)])
    return Stresses(loads.links, loads.s, normal, shear, von_mises, strength)


def _largest_stresses(beam: Beam, section: AbstractSection, s, force, moment) -> Float[Array, "3"]:
    """Largest normal, shear and equivalent stress of one section."""
    normal, shear = section.fibre_stresses(force, moment).T
    equivalent = safe_norm(jnp.stack([normal, np.sqrt(3).astype(shear.dtype) * shear]))
    return jnp.stack([jnp.max(x) for x in (jnp.abs(normal), jnp.abs(shear), equivalent)])


@eqx.filter_jit
def buckling_utilisation(
    beams: Beams, loads: InternalLoads, *, length_factor: ArrayLike = 2.0
) -> Float[Array, "*batch beams"]:
    """Largest compression of each beam divided by Euler's buckling load, `-N / (pi^2 E I / (K l)^2)`.

    I is the least second moment of all sections, and l the length of the beam. The beam buckles at one; tension counts
    as zero.

    Arguments:

    * `beams`: as for `internal_loads`
    * `loads`: their internal loads, of one state or along a trajectory
    * `length_factor`: K, 2 for a beam that is clamped at one end (the default and the safest), 1 for hinged ends

    Raises `ArgumentError` for other beams than those of the loads.
    """
    stiffness = jnp.min(at_sections(_bending_stiffness, beams, loads), -1)
    length = jnp.stack([beam.length for beam in list_beams(beams, loads.links)])
    compression = jnp.max(jnp.maximum(-loads.axial, 0), -1)
    return compression * (length_factor * length) ** 2 / (jnp.pi**2 * stiffness)


def _bending_stiffness(beam: Beam, section: AbstractSection, s) -> Scalar:
    """The smaller of both, N m^2."""
    numbers = section.properties()
    return beam.material.youngs_modulus * jnp.minimum(numbers.second_moment_y, numbers.second_moment_z)
