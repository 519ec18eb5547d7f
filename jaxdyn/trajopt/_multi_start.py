"""Many first guesses of one problem: drawn at random, solved, and the best solution picked."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._types import Array, Float, Int
from jaxdyn.trajopt._interior_point_solve import solve
from jaxdyn.trajopt._problem import Guess, Problem
from jaxdyn.trajopt._result import Solution, SolveStatus


class MultiStart(eqx.Module):
    """Result of `multi_start`: the best solution, and what became of every start."""

    #: the cheapest of those that are solved; if there are none, the one that violates constraints least
    best: Solution
    #: which one it is
    index: Int[Array, ""]
    cost: Float[Array, " starts"]
    #: one `SolveStatus` a start
    status: Int[Array, " starts"]
    iterations: Int[Array, " starts"]
    violation: Float[Array, " starts"]


def draw_guesses(
    problem: Problem, key: Any, count: int, *, spread: Any = 1.0, push: Any = 1.0, points: int = 5
) -> Guess:
    """First guesses, `count` of them along a leading axis, about that of the problem.

    At `points` of the horizon normal deviations are added to its states and controls, `spread` and `push` (a number, or
    one for each) in their units; states at the ends that the problem gives stay as they are, controls within their
    ranges.
    """
    dtype, b = problem.dtype, problem.bounds
    s = jnp.linspace(0, 1, points, dtype=dtype)
    x, u = problem.guess.at(s)
    first, second = jax.random.split(key)
    draw = lambda key, like, size: size * jax.random.normal(key, (count, *like.shape), dtype)
    fixed = [jnp.asarray(end.fixed) for end in (problem.start, problem.end)]
    free = jnp.ones_like(x).at[0].set(~fixed[0]).at[-1].set(~fixed[1])
    states = x + free * draw(first, x, jnp.asarray(spread, dtype))
    controls = jnp.clip(u + draw(second, u, jnp.asarray(push, dtype)), b.lower_control, b.upper_control)
    duration = None if problem.guess.duration is None else jnp.broadcast_to(problem.guess.duration, count)
    return Guess(jnp.broadcast_to(s, (count, points)), states, controls, duration)


def multi_start(
    problem: Problem,
    guesses: Guess,
    *,
    method: Callable[..., Solution] = solve,
    batch: int | None = None,
    **options: Any,
) -> MultiStart:
    """Solves a problem from many guesses, which have a leading axis, and picks the best solution.

    `method` is `solve`, `ilqr` or `single_shooting`, `options` are its arguments. All starts advance side by side, as
    under `jax.vmap`, or `batch` of them at a time; `batch=1` solves them one after another in the same compiled code,
    which on few cores is the fastest.
    """
    return _solved(problem, guesses, method, batch, options)


@eqx.filter_jit
def _solved(problem: Problem, guesses: Guess, method, batch: int | None, options) -> MultiStart:
    rest: list[Any] = []

    def one(guess: Guess):
        found = method(problem.with_guess(guess), **options)
        arrays, other = eqx.partition(found, eqx.is_array)
        rest[:] = [other]
        return arrays

    if batch is None:
        arrays = jax.vmap(one)(guesses)
    else:
        arrays = jax.lax.map(one, guesses, batch_size=None if batch == 1 else batch)
    solved = arrays.status == SolveStatus.SOLVED
    finite = lambda y: jnp.where(jnp.isfinite(y), y, jnp.inf)
    score = jnp.where(solved.any(), jnp.where(solved, arrays.cost, jnp.inf), finite(arrays.violation))
    index = jnp.argmin(score)
    best = eqx.combine(jax.tree.map(lambda y: y[index], arrays), rest[0])
    return MultiStart(best, index, arrays.cost, arrays.status, arrays.iterations, arrays.violation)
