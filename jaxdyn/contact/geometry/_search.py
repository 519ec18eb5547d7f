"""The point of a segment or a circle nearest to a surface, where no closed form exists.

The parameter s of the point is a root of `g(s) = n(p(s)) . p'(s)`, the derivative of the distance along the curve. The
two lowest local minima of the distance on a grid are refined by a safeguarded Newton iteration with a fixed number of
steps. Neither is differentiated. Further Newton steps with a constant slope of g carry the derivatives: each step makes
the derivatives of s exact to one more order, those of the distance to two more.
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
#: steps that carry derivatives, and the order to which derivatives of the nearest point are exact
ORDER = 3


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

    Where the distance is constant along the curve, its first point. The two lowest local minima on a grid are refined;
    minima narrower than the grid may be missed.
    """
    still = stop_derivatives(surface), curve._replace(vectors=lax.stop_gradient(curve.vectors))
    s, inverse = lax.stop_gradient(_search(*still))
    for _ in range(ORDER):
        s = s - inverse * _slope(surface, curve, s)
    return curve(s)


def stop_derivatives(tree):
    """A pytree with `stop_gradient` applied to its arrays."""
    return jax.tree.map(lambda x: lax.stop_gradient(x) if eqx.is_inexact_array(x) else x, tree)


def _slope(surface, curve: Curve, s):
    p, tangent = jax.jvp(curve, (s,), (jnp.ones_like(s),))
    return surface.distance_and_normal(p)[1] @ tangent


def _newton_step(surface, curve: Curve, s):
    """Slope g, its rounding, and `1 / g'`; zero where the distance is not convex."""
    one = jnp.ones_like(s)
    g, curvature = jax.jvp(lambda s: _slope(surface, curve, s), (s,), (one,))
    rounding = 16 * jnp.finfo(s.dtype).eps * jnp.abs(jax.jvp(curve, (s,), (one,))[1]).sum()
    is_convex = curvature > 8 * rounding
    return g, rounding, jnp.where(is_convex, 1 / jnp.where(is_convex, curvature, 1), 0)


def _search(surface, curve: Curve):
    """The parameter of the least distance, and `1 / g'` there; zero at an end and where the distance is constant."""
    dtype = curve.vectors[0].dtype
    distance = jax.vmap(lambda s: surface.distance_and_normal(curve(s))[0])
    grid = jnp.asarray(np.linspace(0, 1, GRID, endpoint=not curve.closed), dtype)
    rounding = 16 * jnp.finfo(dtype).eps * jnp.max(jnp.abs(jax.vmap(curve)(grid)))
    starts = _lowest_minima(distance(grid), rounding, curve.closed)
    s, is_end = jax.vmap(lambda k: _descend(surface, curve, grid, k))(starts)
    first, second = distance(s)
    k = jnp.where(second < first - rounding, 1, 0)
    return s[k], jnp.where(is_end[k], 0, _newton_step(surface, curve, s[k])[2])


def _lowest_minima(distance, rounding, closed: bool):
    """Indices of the least distance on a grid, the first one if several are equal, and of the next local minimum.

    The global minimum along the curve need not be next to the least distance on the grid.
    """
    sides = jnp.pad(distance, 1, mode="wrap") if closed else jnp.pad(distance, 1, constant_values=jnp.inf)
    is_minimum = (distance <= sides[:-2]) & (distance <= sides[2:])
    least = jnp.argmax(distance <= jnp.min(distance) + rounding)
    others = jnp.where(is_minimum & (jnp.arange(GRID) != least), distance, jnp.inf)
    return jnp.stack([least, jnp.argmin(others)])


def _descend(surface, curve: Curve, grid, k):
    """The parameter of the least distance around a point of the grid, and whether it is an end of the curve."""
    low, high = grid[k] - grid[1], grid[k] + grid[1]
    if curve.closed:
        return _iterate(surface, curve, grid[k], (low, high)), jnp.asarray(False)
    g = _slope(surface, curve, grid[k])
    is_end = ((k == 0) & (g >= 0)) | ((k == GRID - 1) & (g <= 0))
    s = _iterate(surface, curve, grid[k], (jnp.maximum(low, 0), jnp.minimum(high, 1)))
    return jnp.where(is_end, grid[k], s), is_end


def _iterate(surface, curve: Curve, s, bracket):
    """A Newton iteration within a bracket, by bisection where it would leave the bracket."""

    def step(_, state):
        s, low, high = state
        g, rounding, inverse = _newton_step(surface, curve, s)
        low, high = jnp.where(g > 0, low, s), jnp.where(g > 0, s, high)
        candidate = s - inverse * g
        is_sound = (inverse > 0) & (candidate >= low) & (candidate <= high)
        following = jnp.where(is_sound, candidate, (low + high) / 2)
        return jnp.where(jnp.abs(g) <= rounding, s, following), low, high

    return lax.fori_loop(0, STEPS, step, (s, *bracket))[0]
