"""Nearest points of segments."""

import jax.numpy as jnp


def nearest_on_segment(start, end, p):
    """The point of a segment nearest to `p`; the start of a segment without length."""
    along = end - start
    square = along @ along
    s = (p - start) @ along / jnp.where(square == 0, 1, square)
    s = jnp.where(s <= 0, 0, jnp.where(s >= 1, 1, s))  # at an end it has no derivative
    return start + jnp.where(square == 0, 0, s) * along
