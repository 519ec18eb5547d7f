"""Newton's method on the fixed point of a return map."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdyn._types import Array, Float, Int
from jaxdyn.simulation.orbits._status import OrbitStatus
from jaxdyn.simulation.system import State
from jaxdyn.simulation.trajectory import SimulationStatus

#: a step of Newton's method is halved at most this often
_HALVINGS = 12


class Linearisation(NamedTuple):
    """A return from a state x, and its derivatives with respect to the tangent space at x."""

    #: `P(x) (-) x`
    deviation: Float[Array, " n"]
    #: derivative of P, `(n, n)`
    jacobian: Float[Array, "n n"]
    #: s
    time: Float[Array, ""]
    #: derivative of the time, `(n,)`
    time_slope: Float[Array, " n"]
    #: derivatives of P and of the time with respect to the differentiated parameters of P, `(n + 1, ...)`
    number_slopes: list[Array]
    has_returned: jax.Array
    #: a `SimulationStatus`
    simulation: Int[Array, ""]


class Iterate(NamedTuple):
    """The best state so far, its return, and the next Newton step."""

    state: State
    point: Linearisation
    step: Float[Array, " n"]
    #: fraction of the step that is tried next
    fraction: Float[Array, ""]
    #: norm of the deviation, infinite before the first return
    error: Float[Array, ""]
    count: Int[Array, ""]
    status: Int[Array, ""]
    is_running: jax.Array


def solve_fixed_point(
    linearise: Callable, displace: Callable, guess: State, shapes: list[tuple[int, ...]], n: int, tolerance, limit
) -> Iterate:
    """Newton's method with step halving on `P(x) = x`; `linearise(x)` and `displace(x, e)` are functions of states.

    `shapes` are those of the parameters for which `linearise` returns derivatives.

    A step e solves `(1 - DP) e = P(x) (-) x`. It is halved until the motion returns and the deviation decreases. The
    iteration ends after a step below the tolerance, so that the Jacobian belongs to the fixed point as well.
    """
    run = lambda it: _advance(it, linearise, displace, tolerance, limit)
    return jax.lax.while_loop(lambda it: it.is_running, run, _first(guess, shapes, n))


def _first(guess: State, shapes, n: int) -> Iterate:
    """The iterate before any return, whose trial state is the guess."""
    dtype, whole = guess.v.dtype, jnp.result_type(int)
    zero, none = jnp.zeros(n, dtype), jnp.zeros((), dtype)
    status = jnp.asarray(SimulationStatus.FAILED, whole)
    slopes = [jnp.zeros((n + 1, *shape), dtype) for shape in shapes]
    point = Linearisation(zero, jnp.zeros((n, n), dtype), none, zero, slopes, jnp.asarray(False), status)
    code = jnp.asarray(OrbitStatus.MAX_ITERATIONS, whole)
    return Iterate(guess, point, zero, none + 1, none + jnp.inf, jnp.asarray(0, whole), code, jnp.asarray(True))


def _advance(it: Iterate, linearise: Callable, displace: Callable, tolerance, limit) -> Iterate:
    """The iterate after one more return, from the trial state."""
    trial = displace(it.state, it.fraction * it.step)
    point = linearise(trial)
    error = jnp.linalg.norm(point.deviation)
    step = jnp.linalg.solve(jnp.eye(it.step.size, dtype=error.dtype) - point.jacobian, point.deviation)
    is_first = it.count == 0
    is_sound = point.has_returned & jnp.isfinite(error) & jnp.isfinite(step).all()
    # after a short step the deviation consists of rounding and need not decrease
    is_last = ~is_first & (it.fraction == 1) & (_largest(it.step) <= tolerance * (1 + _largest(trial)))
    is_better = is_sound & ((error < it.error) | is_last)
    fraction = jnp.where(is_better, 1, it.fraction / 2).astype(error.dtype)
    has_failed = ~is_better & (is_first | (fraction < 2.0**-_HALVINGS))
    # a guess from which the motion does not return is reported with the status of its simulation
    choose = lambda replaces, new, old: jax.tree.map(lambda a, b: jnp.where(replaces, a, b), new, old)
    return Iterate(
        choose(is_better, trial, it.state),
        choose(is_better | is_first, point, it.point),
        choose(is_better, step, it.step),
        fraction,
        choose(is_better, error, it.error),
        it.count + 1,
        _status(is_sound & is_last, has_failed, is_first & ~point.has_returned).astype(it.status.dtype),
        ~(is_sound & is_last) & ~has_failed & (it.count + 1 < limit),
    )


def _status(is_converged, has_failed, has_no_return):
    code = OrbitStatus
    failure = jnp.where(has_no_return, code.NO_RETURN, code.STUCK)
    return jnp.where(is_converged, code.CONVERGED, jnp.where(has_failed, failure, code.MAX_ITERATIONS))


def _largest(tree):
    """The largest modulus in a pytree."""
    return jnp.max(jnp.stack([jnp.max(jnp.abs(x), initial=0) for x in jax.tree.leaves(tree)]))
