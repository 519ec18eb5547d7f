"""Multi-start: solves a problem from many random guesses and selects the best solution."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import PRNGKeyArray

from jaxdyn._numerics import floats_as_arrays
from jaxdyn._types import Array, Float, Int, PyTree
from jaxdyn.trajopt.interior_point import solve
from jaxdyn.trajopt.problem import Guess, Problem, Solution, SolveStatus


class MultiStart(eqx.Module):
    """Result of `multi_start`: the best solution, and the outcome of every start."""

    #: the solved one of least cost; if none is solved, the one of least constraint violation
    best: Solution
    #: index of the best start
    index: Int[Array, ""]
    cost: Float[Array, " starts"]
    #: a `SolveStatus` for each start
    status: Int[Array, " starts"]
    iterations: Int[Array, " starts"]
    violation: Float[Array, " starts"]


def draw_guesses(
    problem: Problem, key: PRNGKeyArray, count: int, *, spread: ArrayLike = 1.0, push: ArrayLike = 1.0, points: int = 5
) -> Guess:
    """Random guesses about the guess of the problem, `count` of them along a leading axis.

    Normal deviates are added to states and controls at `points` of the horizon, with standard deviations `spread` and
    `push` (a number, or one for each component) in their units. Fixed boundary states are kept, controls are clipped to
    their limits.
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
    """Solves a problem from many guesses and selects the best solution.

    Arguments:

    * `problem`: a `Problem`.
    * `guesses`: a `Guess` with a leading axis, as from `draw_guesses`.
    * `method`: `solve`, `ilqr` or `single_shooting`.
    * `batch`: number of starts solved together under `jax.vmap`, by default all; 1 solves them one after another in the
      same compiled code, which is fastest on few cores.
    * `options`: further arguments of `method`.

    Returns a `MultiStart`.
    """
    return _solve_all(problem, guesses, method, batch, floats_as_arrays(options, problem.dtype))


@eqx.filter_jit
def _solve_all(problem: Problem, guesses: Guess, method, batch: int | None, options) -> MultiStart:
    rest: list[PyTree] = []

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
