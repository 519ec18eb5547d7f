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
    strictly convex function of a, so the solution is unique, and it is found when p lies on its branch. The search is
    not differentiated; the derivative of its result is that of the step at the solution, which is the derivative of the
    implicit function theorem.

    * `efforts`: accelerations -> efforts `(nv,)` and wrenches of all parts
    * `accelerate`: additional armatures, efforts and wrenches -> accelerations
    * `like`: an array with the shape and precision of the accelerations
    """

    def step(point, effort, slope, external):
        return accelerate(-slope, effort - slope * point, external)

    def linearise(point):
        """Efforts at a point, their slopes, and wrenches."""
        return jax.jvp(efforts, (point,), (jnp.ones_like(point),), has_aux=True)

    # everything that the search depends on becomes an argument of these functions, to separate its derivatives
    frozen = jax.lax.stop_gradient(like)
    linearise, of_efforts = jax.closure_convert(linearise, frozen)
    step, of_robot = jax.closure_convert(step, frozen, *jax.eval_shape(linearise, frozen, *of_efforts))
    numbers = of_efforts, of_robot

    @jax.custom_jvp
    def differentiable(a, numbers):
        return a

    @differentiable.defjvp
    def derivative(primals, tangents):
        (a, numbers), (_, along) = primals, tangents
        newton = lambda n: step(a, *linearise(a, *n[0]), *n[1])
        return differentiable(a, numbers), jax.jvp(newton, (numbers,), (along,))[1]

    solution = _search(linearise, step, jax.lax.stop_gradient(numbers), frozen)
    return differentiable(jax.lax.stop_gradient(solution), numbers)


def _search(linearise, step, numbers, like):
    """The solution, or NaN if the iterations do not converge."""
    of_efforts, of_robot = numbers
    tolerance = 1e3 * jnp.finfo(like.dtype).eps

    def iterate(carry):
        point, (effort, slope, external), _, n = carry
        a = step(point, effort, slope, external, *of_robot)
        there = linearise(a, *of_efforts)
        expected = effort + slope * (a - point)
        scale = jnp.max(jnp.abs(there[0])) + jnp.max(jnp.abs(expected))
        is_solved = jnp.all(jnp.abs(there[0] - expected) <= tolerance * scale)
        is_full = is_solved | (n < _FULL_STEPS)
        half_way = lambda: ((a + point) / 2, linearise((a + point) / 2, *of_efforts))
        return *jax.lax.cond(is_full, lambda: (a, there), half_way), is_solved, n + 1

    start = jnp.zeros_like(like)
    carry = start, linearise(start, *of_efforts), jnp.zeros((), bool), jnp.zeros((), int)
    point, _, is_solved, _ = jax.lax.while_loop(lambda c: ~c[2] & (c[3] < _MAX_ITERATIONS), iterate, carry)
    return jnp.where(is_solved, point, jnp.nan)
