"""The point of a segment or a circle nearest to a surface, where no closed form exists.

The parameter s of the point is a root of `g(s) = n(p(s)) . p'(s)`, the slope of the distance along the curve. A grid
finds the valley of the least distance, a safeguarded Newton iteration with a fixed number of steps its bottom. Both run
without derivatives. Two further Newton steps from there carry them: one step from a root agrees with the root as a
function of all numbers to first order, two to third order. The distance then agrees to seventh order.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxdyn._types import Array

GRID = 16
STEPS = 12


class Curve(NamedTuple):
    """A curve `p(s)` for s in [0, 1]."""

    #: function of three vectors and s
    point: Callable[..., Array]
    vectors: tuple[Array, ...]
    #: whether the curve ends where it begins
    closed: bool

    def __call__(self, s):
        return self.point(*self.vectors, s)


def segment(start, end) -> Curve:
    """The segment between two points."""
    return Curve(lambda a, b, s: a + s * (b - a), (start, end), False)


def circle(centre, first, second, radius) -> Curve:
    """The circle `centre + radius (cos(2 pi s) first + sin(2 pi s) second)`."""
    point = lambda c, x, y, s: c + jnp.cos(2 * jnp.pi * s) * x + jnp.sin(2 * jnp.pi * s) * y
    return Curve(point, (centre, radius * first, radius * second), True)


def nearest_point(surface, curve: Curve):
    """The point of a curve with the least distance from a surface.

    Where the distance is constant along the curve, its first point. Valleys of the distance narrower than the grid may
    be missed.
    """
    s, is_held = _search(stop_derivatives(surface), curve._replace(vectors=lax.stop_gradient(curve.vectors)))
    s, is_held = lax.stop_gradient((s, is_held))
    for _ in range(2):
        s = jnp.where(is_held, s, s - _newton_step(surface, curve, s)[1])
    return curve(s)


def stop_derivatives(tree):
    """A pytree with `stop_gradient` applied to its arrays."""
    return jax.tree.map(lambda x: lax.stop_gradient(x) if eqx.is_inexact_array(x) else x, tree)


def _slope(surface, curve: Curve, s):
    p, tangent = jax.jvp(curve, (s,), (jnp.ones_like(s),))
    return surface.distance_and_normal(p)[1] @ tangent


def _newton_step(surface, curve: Curve, s):
    """Slope g and the Newton step `g / g'`; zero where the distance is not convex."""
    g, curvature = jax.jvp(lambda s: _slope(surface, curve, s), (s,), (jnp.ones_like(s),))
    speed = jnp.abs(lax.stop_gradient(jax.jvp(curve, (s,), (jnp.ones_like(s),))[1])).sum()
    is_convex = curvature > 100 * jnp.finfo(s.dtype).eps * speed
    return g, jnp.where(is_convex, g / jnp.where(is_convex, curvature, 1), 0)


def _search(surface, curve: Curve):
    """The parameter of the least distance, and whether it is an end of the curve."""
    dtype = curve.vectors[0].dtype
    grid = jnp.asarray(np.linspace(0, 1, GRID, endpoint=not curve.closed), dtype)
    k = jnp.argmin(jax.vmap(lambda s: surface.distance_and_normal(curve(s))[0])(grid))
    width = grid[1]
    bracket = grid[k] - width, grid[k] + width
    if curve.closed:
        return _iterate(surface, curve, grid[k], bracket), jnp.asarray(False)
    g = _slope(surface, curve, grid[k])
    is_held = ((k == 0) & (g >= 0)) | ((k == GRID - 1) & (g <= 0))
    s = _iterate(surface, curve, grid[k], (jnp.maximum(bracket[0], 0), jnp.minimum(bracket[1], 1)))
    return jnp.where(is_held, grid[k], s), is_held


def _iterate(surface, curve: Curve, s, bracket):
    """A Newton iteration within a bracket, by bisection where it would leave the bracket."""

    def step(_, state):
        s, low, high = state
        g, dx = _newton_step(surface, curve, s)
        low, high = jnp.where(g > 0, low, s), jnp.where(g > 0, s, high)
        candidate = s - dx
        is_sound = ((dx != 0) | (g == 0)) & (candidate >= low) & (candidate <= high)
        return jnp.where(is_sound, candidate, (low + high) / 2), low, high

    return lax.fori_loop(0, STEPS, step, (s, *bracket))[0]
