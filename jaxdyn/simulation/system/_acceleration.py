"""Accelerations under efforts that depend on them."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxdyn._types import Array, Float

_MAX_ITERATIONS = 32
#: iterations after which the steps are halved, in case the iterates alternate between branches
_FULL_STEPS = 12


def solve_acceleration(
    efforts: Callable[[Array], tuple[Array, Array | None]],
    accelerate: Callable[[Array, Array, Array | None], Array],
    like: Float[Array, " nv"],
) -> Float[Array, " nv"]:
    """The solution of `a = accelerate(0, *efforts(a))` by semi-smooth Newton steps, NaN if they do not converge.

    Each effort depends on the acceleration of its own coordinate, `e(a) = e(p) + s (a - p)` on the branch of the point
    p, with a slope `s <= 0` that adds to the inertia of the coordinate:

        a = accelerate(-s, e(p) - s p, external)

    is the motion under armatures increased by -s. For piecewise linear efforts the equation is the stationarity of a
    strictly convex function of a, so the solution is unique, and it is found when p lies on its branch. The search for
    p is not differentiated; the last step is, which gives the derivative of the implicit function theorem.

    * `efforts`: accelerations -> efforts `(nv,)` and wrenches of all parts
    * `accelerate`: additional armatures, efforts and wrenches -> accelerations
    * `like`: an array with the shape and precision of the accelerations
    """

    def step(point):
        e, slope, external = jax.jvp(efforts, (point,), (jnp.ones_like(point),), has_aux=True)
        a = accelerate(-slope, e - slope * point, external)
        return a, e + slope * (a - point)

    def advance(point):
        a, expected = step(point)
        return a, expected, efforts(a)[0]

    closed, numbers = jax.closure_convert(advance, jax.lax.stop_gradient(like))
    numbers = jax.lax.stop_gradient(numbers)
    tolerance = 1e3 * jnp.finfo(like.dtype).eps

    def iterate(carry):
        point, _, n = carry
        a, expected, effort = closed(point, *numbers)
        scale = jnp.max(jnp.abs(effort)) + jnp.max(jnp.abs(expected))
        is_solved = jnp.all(jnp.abs(effort - expected) <= tolerance * scale)
        return jnp.where(n < _FULL_STEPS, a, (a + point) / 2), is_solved, n + 1

    start = jnp.zeros_like(like), jnp.zeros((), bool), jnp.zeros((), int)
    point, is_solved, _ = jax.lax.while_loop(lambda c: ~c[1] & (c[2] < _MAX_ITERATIONS), iterate, start)
    return jnp.where(is_solved, step(jax.lax.stop_gradient(point))[0], jnp.nan)
