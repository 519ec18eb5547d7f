"""Functions with finite values and derivatives where the textbook formula is 0/0."""

import jax.numpy as jnp


def safe_norm(x, axis=0):
    """Euclidean norm along `axis`; its gradient at zero is zero instead of NaN."""
    squared = jnp.sum(x * x, axis)
    zero = squared == 0
    return jnp.where(zero, 0, jnp.sqrt(jnp.where(zero, 1, squared)))


def tangent_basis(normal, direction=None):
    """Two unit vectors t_1 and `t_2 = n x t_1`, `(2, 3)`, in the plane across a unit normal n.

    t_1 is along the component of `direction` in the plane, by default of the x axis, or of the y axis where n is within
    26 degrees of x; zero for a direction along n.
    """
    if direction is None:
        x, y = jnp.eye(3, dtype=normal.dtype)[:2]
        direction = jnp.where(jnp.abs(normal[0]) < 0.9, x, y)
    first = direction.astype(normal.dtype)
    first = first - (first @ normal) * normal
    first = first / jnp.maximum(safe_norm(first), jnp.finfo(normal.dtype).tiny)
    return jnp.stack([first, jnp.cross(normal, first)])


def _select_series(x2, threshold, series, exact):
    """`series(x^2)` for x^2 below the threshold, `exact(x)` otherwise; both branches are finite."""
    small = x2 < threshold
    x = jnp.sqrt(jnp.where(small, 1, x2))
    return jnp.where(small, series(jnp.where(small, x2, 0)), exact(x))


def sinc(x2):
    """`sin(x)/x` as a function of `x^2`, smooth at zero."""
    return _select_series(
        x2, 1e-2, lambda y: 1 - y / 6 * (1 - y / 20 * (1 - y / 42 * (1 - y / 72))), lambda x: jnp.sin(x) / x
    )


def cubic_sinc(x2):
    """`(x - sin(x))/x^3` as a function of `x^2`, smooth at zero."""

    def series(y):
        value = jnp.ones_like(y)
        for k in reversed(range(2, 9)):  # (2 k)(2 k + 1) in the quotients of the terms
            value = 1 - y / (2 * k * (2 * k + 1)) * value
        return value / 6

    return _select_series(x2, 0.5, series, lambda x: (x - jnp.sin(x)) / x**3)


def tanhc(x2):
    """`tanh(x)/x` as a function of `x^2`, smooth at zero."""
    coefficients = (1 / 3, 2 / 15, 17 / 315, 62 / 2835, 1382 / 155925, 21844 / 6081075, 929569 / 638512875)

    def series(y):
        value = jnp.zeros_like(y)
        for k, c in reversed(tuple(enumerate(coefficients))):
            value = y * ((-1) ** (k + 1) * c + value)
        return 1 + value

    return _select_series(x2, 1e-2, series, lambda x: jnp.tanh(x) / x)


def smooth_sign(x, width):
    """`tanh(x / width)`, a smooth approximation of `sign(x)`; exactly `sign(x)` for zero `width`."""
    sharp = width == 0
    return jnp.where(sharp, jnp.sign(x), jnp.tanh(x / jnp.where(sharp, 1, width)))
