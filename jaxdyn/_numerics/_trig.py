"""Sine and cosine of one angle together, in vector code."""

import jax
import jax.numpy as jnp

# pi/2 in three parts of 33 bits, so that n * part is exact for n below 2^20 (Cody and Waite's reduction),
# and in three parts of 12 bits or fewer for single precision.
_HALF_PI_64 = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
_HALF_PI_32 = (1.5703125, 4.837512969970703125e-4, 7.549789948768648e-8)
_LARGE_64, _LARGE_32 = 1e6, 6e3

# Minimax polynomials on [-pi/4, pi/4]: the coefficients of fdlibm's __kernel_sin and __kernel_cos
# (Sun Microsystems, 1993) and of Cephes' sinf and cosf (Moshier).
_SIN_64 = (
    1.58969099521155010221e-10,
    -2.50507602534068634195e-08,
    2.75573137070700676789e-06,
    -1.98412698298579493134e-04,
    8.33333333332248946124e-03,
    -1.66666666666666324348e-01,
)
_COS_64 = (
    -1.13596475577881948265e-11,
    2.08757232129817482790e-09,
    -2.75573143513906633035e-07,
    2.48015872894767294178e-05,
    -1.38888888888741095749e-03,
    4.16666666666666019037e-02,
)
_SIN_32 = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COS_32 = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)


def _horner(coefficients, x):
    y = jnp.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        y = y * x + c
    return y


def _polynomial_sincos(x):
    """sin and cos by reduction to an octant, accurate to an ulp below `_LARGE`."""
    double = x.dtype == jnp.float64
    parts, sin_c, cos_c = (_HALF_PI_64, _SIN_64, _COS_64) if double else (_HALF_PI_32, _SIN_32, _COS_32)
    n = jnp.round(x * (2 / jnp.pi))
    r = x
    for part in parts:
        r = r - n * part
    quadrant = n.astype(jnp.int32)
    z = r * r
    s = r + r * z * _horner(sin_c, z)
    c = 1 - 0.5 * z + z * z * _horner(cos_c, z)
    swap = (quadrant & 1) == 1
    sin, cos = jnp.where(swap, c, s), jnp.where(swap, s, c)
    return (
        jnp.where((quadrant & 2) == 2, -sin, sin),
        jnp.where(((quadrant + 1) & 2) == 2, -cos, cos),
    )


def _library_sincos(x):
    return jnp.sin(x), jnp.cos(x)


def _cpu_sincos(x):
    large = _LARGE_64 if x.dtype == jnp.float64 else _LARGE_32
    return jax.lax.cond(jnp.all(jnp.abs(x) < large), _polynomial_sincos, _library_sincos, x)


@jax.custom_jvp
def sincos(x):
    """`(sin x, cos x)` with one argument reduction for both.

    XLA on CPU calls the scalar C library for double precision: 17 ns per angle, more than all other
    arithmetic of a link. This function takes about 2 ns. An array with a large angle is evaluated by the
    library as a whole. Other platforms use their own functions.
    """
    x = jnp.asarray(x)  # older versions of JAX pass a Python number on as it is
    if x.dtype not in (jnp.float32, jnp.float64):
        return _library_sincos(x)
    return jax.lax.platform_dependent(x, cpu=_cpu_sincos, default=_library_sincos)


@sincos.defjvp
def _sincos_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    s, c = sincos(x)
    return (s, c), (c * dx, -s * dx)
