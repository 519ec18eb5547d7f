"""The strains of a beam, the joints that represent them, and their stiffnesses."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ArgumentError, describe
from jaxdyn._types import Array, Float
from jaxdyn.beams import AbstractSection, Beam
from jaxdyn.joints import AbstractJoint, Bushing, Prismatic, Revolute

#: Gauss-Legendre points and weights on 0..1 for the compliance of a part of a beam
_POINTS, _WEIGHTS = (np.polynomial.legendre.leggauss(4)[0] + 1) / 2, np.polynomial.legendre.leggauss(4)[1] / 2

#: component of the coordinates of a `Bushing` for each strain
_AXES = {"torsion": 0, "bending_y": 1, "bending_z": 2, "extension": 3, "shear_y": 4, "shear_z": 5}
#: joints of a single strain, which cost less
_SIMPLE: dict[tuple[str, ...], Callable[[], AbstractJoint]] = {
    ("bending_z",): lambda: Revolute([0.0, 0.0, 1.0]),
    ("bending_y",): lambda: Revolute([0.0, 1.0, 0.0]),
    ("torsion",): lambda: Revolute([1.0, 0.0, 0.0]),
    ("extension",): lambda: Prismatic([1.0, 0.0, 0.0]),
}


@dataclasses.dataclass(frozen=True)
class Strains:
    """The deformations of a flexible link, which are structure: those left out are rigid.

    Arguments: for each of the six strains of a beam whether it exists. Axes are those of the beam, x along its axis. By
    default a beam bends in both directions and twists, as slender beams do; `Strains.planar()` bends in one plane, and
    `Strains.all()` also stretches and shears, as the beams of Timoshenko and of Simo and Reissner do.

    Example:

    ```python
    from jaxdyn.flexible import Strains

    assert Strains().names == ("bending_z", "bending_y", "torsion")
    assert Strains.planar(shear=True).names == ("bending_z", "shear_y")
    ```
    """

    #: curvature about z, deflection along y
    bending_z: bool = True
    #: curvature about y, deflection along z
    bending_y: bool = True
    #: twist about x
    torsion: bool = True
    #: strain along x
    extension: bool = False
    #: shear along y
    shear_y: bool = False
    #: shear along z
    shear_z: bool = False

    def __post_init__(self):
        for name, value in vars(self).items():
            if not isinstance(value, bool):
                raise ArgumentError(f"{name} of Strains is {describe(value)}, expected True or False: it is structure")
        if not self.names:
            raise ArgumentError("Strains has no strain, so the link is rigid; give at least one, such as bending_z")

    @classmethod
    def planar(cls, *, extension: bool = False, shear: bool = False) -> "Strains":
        """Bending in the plane of x and y, with extension and shear in this plane if asked for."""
        return cls(bending_y=False, torsion=False, extension=extension, shear_y=shear)

    @classmethod
    def all(cls) -> "Strains":
        """All six strains."""
        return cls(extension=True, shear_y=True, shear_z=True)

    @property
    def names(self) -> tuple[str, ...]:
        """The strains in the order of the coordinates of the elastic joints."""
        return tuple(field.name for field in dataclasses.fields(self) if getattr(self, field.name))

    def joint(self) -> AbstractJoint:
        """The elastic joint between two sublinks, in axes of the beam, with one coordinate for each strain."""
        if self.names in _SIMPLE:
            return _SIMPLE[self.names]()
        return Bushing(tuple(_AXES[name] for name in self.names))

    def stiffness(self, beam: Beam, section: AbstractSection) -> Float[Array, " strains"]:
        """Stiffnesses of a section in the order of `names`, out of E I_z, E I_y, G J_t, E A, k_y G A and k_z G A."""
        material = beam.material
        e, g = material.youngs_modulus, material.shear_modulus
        k_y, k_z = section.shear_coefficients(material.poisson_ratio)
        numbers = section.properties()
        everything = {
            "bending_z": e * numbers.second_moment_z,
            "bending_y": e * numbers.second_moment_y,
            "torsion": g * numbers.torsion_constant,
            "extension": e * numbers.area,
            "shear_y": k_y * g * numbers.area,
            "shear_z": k_z * g * numbers.area,
        }
        return jnp.stack([everything[name] for name in self.names])

    def spring_stiffness(self, beam: Beam, start, end) -> Float[Array, " strains"]:
        """Stiffness of the spring for the part of the beam between two distances (m), `1 / int ds / (E I)`."""
        length = end - start
        stiffness = jax.vmap(lambda x: self.stiffness(beam, beam.section_at(start + x * length)))
        return 1 / (length * jnp.asarray(_WEIGHTS, length.dtype) @ (1 / stiffness(jnp.asarray(_POINTS, length.dtype))))
