"""Periodic orbits: fixed points of return maps."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdyn._errors import ConvergenceError, ModelError, check_count, check_instance, check_positive
from jaxdyn._types import Array, Bool, Float, Int
from jaxdyn.model import Model
from jaxdyn.recursion import check_state
from jaxdyn.simulation.orbits._multipliers import eigenvalues
from jaxdyn.simulation.orbits._return import evaluate_return, repeat_return
from jaxdyn.simulation.orbits._sensitivity import ReturnProblem, differentiable_jacobian, find_fixed_point
from jaxdyn.simulation.orbits._status import OrbitStatus
from jaxdyn.simulation.system import State, System, as_system, part_layout
from jaxdyn.simulation.trajectory import SimulationStatus, Trajectory


class PeriodicOrbit(eqx.Module):
    """Result of `periodic_orbit`. All floating-point fields but `error` have derivatives, which are zero if the search failed."""

    #: the state that returns to itself
    state: State
    #: duration of the orbit, s
    period: Float[Array, "*batch"]
    #: derivative of the return map at the state, in coordinates of the tangent space
    jacobian: Float[Array, "*batch n n"]
    #: Floquet multipliers, the eigenvalues of the Jacobian in descending order of modulus
    multipliers: Array
    #: an `OrbitStatus`
    status: Int[Array, "*batch"]
    #: number of returns that Newton's method computed
    num_iterations: Int[Array, "*batch"]
    #: norm of the deviation `P(x) (-) x` before the last step
    error: Float[Array, "*batch"]
    #: the `SimulationStatus` of the last return, or of the phase of it that did not end as it has to
    simulation: Int[Array, "*batch"]

    @property
    def is_stable(self) -> Bool[Array, "*batch"]:
        """Whether all multipliers are inside of the unit circle, so that nearby motions approach the orbit."""
        return (jnp.max(jnp.abs(self.multipliers), axis=-1) < 1) & (self.status == OrbitStatus.CONVERGED)

    def checked(self) -> "PeriodicOrbit":
        """The orbit itself; raises `ConvergenceError` if the search failed. For concrete values only."""
        status = np.asarray(self.status)
        failed = status != OrbitStatus.CONVERGED
        if failed.any():
            kinds = sorted({OrbitStatus(int(s)).name for s in status[failed].ravel()})
            ends = sorted({SimulationStatus(int(s)).name for s in np.asarray(self.simulation)[failed].ravel()})
            raise ConvergenceError(
                f"{failed.sum()} of {failed.size} searches for an orbit failed ({', '.join(kinds)}; the last return "
                f"ended with {', '.join(ends)}). NO_RETURN: the motion from the guess has to end at an event, or, "
                "without events, at the last time; STUCK: start nearer to the orbit, and check that it is isolated "
                "(no multiplier is 1); MAX_ITERATIONS: raise max_iterations."
            )
        return self


def periodic_orbit(
    return_map: Callable[..., Trajectory | tuple[Trajectory, ...]],
    system: Model | System,
    guess: State,
    *args: Any,
    returns: int = 1,
    is_forced: bool = False,
    tolerance: ArrayLike | None = None,
    max_iterations: int = 30,
) -> PeriodicOrbit:
    """docstring"""
    system = as_system(system)
    check_instance("guess", guess, State, "make it with jaxdyn.simulation.State(q, v)")
    check_count("returns", returns)
    check_count("max_iterations", max_iterations)
    q, v = check_state(system.model, q0=guess.q, v0=guess.v)
    dtype = jnp.result_type(q, v, system.model.dtype)
    guess = State(q.astype(dtype), v.astype(dtype), guess.parts)
    if tolerance is None:
        tolerance = float(jnp.finfo(dtype).eps) ** 0.5
    check_positive("tolerance", tolerance, "relative")
    try:
        return _solve(
            return_map, system, guess, args, jnp.asarray(tolerance, dtype), jnp.asarray(max_iterations),
            (returns, is_forced),
        )
    except TypeError as error:
        if "forward-mode" in str(error) and "custom_vjp" in str(error):
            raise ModelError(
                "the return map has no derivatives in forward mode; call simulate(..., adjoint=diffrax.ForwardMode()) "
                "in it"
            ) from error
        raise


@eqx.filter_jit
def _solve(return_map, system: System, guess: State, args, tolerance, max_iterations, options) -> PeriodicOrbit:
    returns, is_forced = options
    layout = part_layout(system, "a periodic orbit")
    guess = system.initial(guess.q, guess.v, 0.0, guess.parts)
    inputs, others = eqx.partition((system, args), eqx.is_array)
    leaves, tree = jax.tree.flatten(inputs)
    restore = lambda leaves: eqx.combine(jax.tree.unflatten(tree, leaves), others)

    def evaluate(leaves, state):
        system, args = restore(leaves)
        once = lambda state: evaluate_return(return_map, system, state, args, is_forced)
        return repeat_return(once, layout, state, returns)

    # traced numbers from the closure of the map are parameters as well
    evaluate, captured = jax.closure_convert(evaluate, leaves, guess)
    problem = ReturnProblem(
        lambda numbers, state: evaluate(numbers[: len(leaves)], state, *numbers[len(leaves) :]),
        lambda numbers: restore(numbers[: len(leaves)])[0],
        layout,
        2 * system.model.nv + layout.size,
    )
    numbers = [*leaves, *captured]
    state, period, it = find_fixed_point(problem, numbers, guess, tolerance, max_iterations)
    jacobian = differentiable_jacobian(problem, numbers, state, it)
    return PeriodicOrbit(
        state, period, jacobian, eigenvalues(jacobian), it.status, it.count, it.error, it.point.simulation
    )
