"""Nearest points of segments to points and other segments, with finite derivatives where they are parallel."""

import jax.numpy as jnp


def nearest_parameter(start, along, scale):
    """The s in [0, 1] with the least `|start + s along|`, or 0.5 where `|along|^2` is rounding of `scale`.

    s has zero derivatives where it is 0 or 1, and where it is 0.5 for this reason.
    """
    square = along @ along
    vanishes = square <= jnp.finfo(square.dtype).eps * scale
    s = -(start @ along) / jnp.where(vanishes, 1, square)
    return jnp.where(vanishes, 0.5, clip(s))


def nearest_between_segments(start, along, other, other_along):
    """The s in [0, 1] of the point `start + s along` nearest to another segment.

    For parallel segments s is the midpoint of the nearest points (Ericson 2005, section 5.1.9).
    """
    a, b, e = along @ along, along @ other_along, other_along @ other_along
    between = start - other
    c, f = along @ between, other_along @ between
    eps = jnp.finfo(a.dtype).eps
    parallel = a * e - b * b <= 16 * eps * a * e
    crossing = clip((b * f - c * e) / jnp.where(parallel, 1, a * e - b * b))
    length = jnp.where(a == 0, 1, a)
    at_start, at_end = clip(-c / length), clip((b - c) / length)  # nearest to the ends of the other segment
    t = (b * crossing + f) / jnp.where(e == 0, 1, e)
    s = jnp.where(t < 0, at_start, jnp.where(t > 1, at_end, crossing))
    return jnp.where(parallel, (at_start + at_end) / 2, s)


def clip(s):
    """`s` limited to [0, 1], with zero derivatives at the limits."""
    return jnp.where(s <= 0, 0, jnp.where(s >= 1, 1, s))
