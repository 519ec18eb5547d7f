"""Stresses of circular sections."""

import jax.numpy as jnp

from jaxdyn._numerics import safe_norm
from jaxdyn._types import Array, Float, Scalar, Vec3
from jaxdyn.beams._contract import SectionProperties


def circular_stresses(
    outer: Scalar, inner: Scalar, numbers: SectionProperties, force: Vec3, moment: Vec3
) -> Float[Array, "4 2"]:
    """Stresses at four fibres of the circumference: the extreme ones in bending and those of largest shear.

    With the unit vectors n of the fibre and t along the circumference, the normal stress is
    `N / A + (n x M) c / I`, the shear stress `T c / J_t + k V t / A`. The factor
    `k = 4/3 (ro^2 + ro ri + ri^2) / (ro^2 + ri^2)` of the largest shear stress is 4/3 for a solid round and 2 for a
    thin tube.
    """
    bending = jnp.stack([-moment[2], moment[1]])
    across = jnp.stack([force[2], -force[1]])
    directions = _directions(bending, across)
    tangents = jnp.stack([-directions[:, 1], directions[:, 0]], 1)
    k = 4 / 3 * (outer**2 + outer * inner + inner**2) / (outer**2 + inner**2)
    normal = force[0] / numbers.area + directions @ bending * outer / numbers.second_moment_y
    shear = moment[0] * outer / numbers.torsion_constant + k * tangents @ force[1:] / numbers.area
    return jnp.stack([normal, shear], 1)


def _directions(*vectors) -> Float[Array, "n 2"]:
    """Unit vectors along and against each vector, zero for a vector that is zero."""
    lengths = [safe_norm(x) for x in vectors]
    units = [x / jnp.where(length == 0, 1, length) for x, length in zip(vectors, lengths, strict=True)]
    return jnp.stack([sign * x for x in units for sign in (1, -1)])
