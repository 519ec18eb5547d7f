"""Stresses of rectangular sections."""

import jax.numpy as jnp
import numpy as np

from jaxdyn._types import Array, Float, Scalar, Vec3
from jaxdyn.beams._contract import SectionProperties

#: odd numbers of the series, whose terms beyond are below the rounding of float64 at any ratio of the edges
_ODD = np.arange(1, 26, 2)
_SIGNS = np.where(_ODD % 4 == 1, 1, -1)
_CATALAN = 0.9159655941772190
_CORNERS = np.array([(y, z) for y in (1, -1) for z in (1, -1)]) / 2


def rectangular_stresses(
    width: Scalar, height: Scalar, numbers: SectionProperties, force: Vec3, moment: Vec3
) -> Float[Array, "8 2"]:
    """Stresses at the corners and at the middles of the sides.

    The corners have the largest normal stress and no shear stress. The shear stress at the middle of a side is
    `3 V / 2 A` plus the one of Saint-Venant torsion (Timoshenko and Goodier 1970, section 109).
    """
    area, i_y, i_z = numbers.area, numbers.second_moment_y, numbers.second_moment_z
    normal = lambda y, z: force[0] / area + z * moment[1] / i_y - y * moment[2] / i_z
    y, z = jnp.asarray(_CORNERS.T, area.dtype)
    corners = normal(y * width, z * height)
    sign = jnp.array([1.0, -1.0], area.dtype)
    twist = moment[0] / numbers.torsion_constant
    along_z = sign * twist * _torsion_shear(height, width) + 1.5 * force[2] / area
    along_y = -sign * twist * _torsion_shear(width, height) + 1.5 * force[1] / area
    sides = [
        jnp.stack([normal(sign * width / 2, 0.0), along_z], 1),
        jnp.stack([normal(0.0, sign * height / 2), along_y], 1),
    ]
    return jnp.concatenate([jnp.stack([corners, jnp.zeros_like(corners)], 1), *sides])


def _torsion_shear(side: Scalar, thickness: Scalar) -> Scalar:
    """`tau J_t / T` at the middle of a side, m, from the series that converges fast: long and short sides differ.

    Long side a of the edges a and c: `c (1 - 8 / pi^2 sum 1 / (n^2 cosh(n pi a / 2c)))`, short side:
    `8 c / pi^2 sum (-1)^((n - 1) / 2) tanh(n pi a / 2c) / n^2`, over odd n.
    """
    is_long = side >= thickness
    longer = jnp.where(is_long, side, thickness)
    shorter = jnp.where(is_long, thickness, side)
    decay = jnp.exp(-jnp.asarray(_ODD, longer.dtype) * jnp.pi * longer / (2 * shorter))
    inverse_cosh = 2 * decay / (1 + decay**2)
    tanh_less_one = -2 * decay**2 / (1 + decay**2)
    at_long = 1 - 8 / jnp.pi**2 * jnp.sum(inverse_cosh / _ODD**2)
    at_short = 8 / jnp.pi**2 * (_CATALAN + jnp.sum(tanh_less_one * _SIGNS / _ODD**2))
    return shorter * jnp.where(is_long, at_long, at_short)
