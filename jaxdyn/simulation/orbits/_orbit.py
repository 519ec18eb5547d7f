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
    """Result of `periodic_orbit`.

    State, period, Jacobian and multipliers have derivatives, which are zero where the search failed.
    """

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
    #: norm of the deviation `P(x) (-) x`
    error: Float[Array, "*batch"]
    #: the `SimulationStatus` of the return from `state`, or of the phase of it that did not end as it has to
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
                f"{failed.sum()} of {failed.size} searches for an orbit failed ({', '.join(kinds)}; simulations ended "
                f"with {', '.join(ends)}). NO_RETURN: the motion from the guess has to end at an event, or, without "
                "events, at the last time; STUCK: start nearer to the orbit, and check that it is isolated (no "
                "multiplier is 1); MAX_ITERATIONS: raise max_iterations."
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
    """The periodic orbit near a guess: the fixed point `P(x) = x` of a return map, found by Newton's method.

    A limit cycle of a walker, a forced oscillation, or a self-excited one. The return map
    `P(system, state, *args)` simulates from a state x on a section to the next state on it and returns the trajectory,
    or a tuple with one trajectory for each phase of the motion; the last state of the last phase is `P(x)`. Each phase
    has to end at a terminal event, or at the last time if it has no events. The reset of the event may contain an
    impact and the exchange of symmetric legs. The Jacobian of P includes the saltation matrices of all events.

    Arguments:

    * `return_map`: as above. It calls `simulate` with `adjoint=diffrax.ForwardMode()`, and with `parts=state.parts` if
      the system has parts with states. Functions are compared by identity: define the map at module level and pass
      its parameters as `args`, so that it is not compiled again.
    * `system`: a model or a system in continuous time.
    * `guess`: a state near the orbit, from which the motion returns.
    * `args`: further arguments of the map, any pytrees.
    * `returns`: number of returns that make up the orbit, 2 for the orbit after a period doubling.
    * `is_forced`: whether every phase ends at its last time although it has events, as under a periodic drive.
    * `tolerance`: relative length of the last Newton step, by default `eps^0.45`, which is 1e-7 in float64. By the
      quadratic convergence of the method the orbit is more accurate, as accurate as the simulation.
    * `max_iterations`: maximum number of returns that are computed; halved steps count.

    Returns a `PeriodicOrbit`, with a status. The state, the period, and the multipliers are differentiable in both
    modes with respect to every leaf of the system, of `args` and of the closure of the map, by the implicit function
    theorem, `dx = (1 - D_x P)^-1 D_p P dp`. The Jacobians are computed in forward mode, with one column for each leaf
    that has a tangent. Derivatives of multipliers need second derivatives of the motion, which compile slowly; the
    other derivatives do not, under `jax.jit`.

    P maps a neighbourhood of the section to the section, so the direction of the flow of an autonomous system has the
    multiplier 0. It has to be differentiable there: if the state starts on the section and crosses it in the direction
    of the event, simulate a first phase without the event. Orbits that are not isolated, such as those of conservative
    systems, have a multiplier 1 and are not found. Raises `ModelError` for a map that does not return trajectories or
    has no derivatives in forward mode, and for sampled parts.

    Guckenheimer and Holmes 1983, section 1.5; Hiskens and Pai, "Trajectory sensitivity analysis of hybrid systems",
    IEEE TCAS-I 47(2), 2000.

    ```python
    import diffrax
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.simulation import OrbitStatus, State, periodic_orbit


    def push(t, q, v):
        return 0.1 * jnp.cos(2.0 * t)[None]


    def period(system, state):
        ts = jnp.array([0.0, jnp.pi])
        return jd.simulate(system, state.q, state.v, ts, effort=push, dt=0.1, adjoint=diffrax.ForwardMode())


    orbit = periodic_orbit(period, jd.robots.pendulum(damping=1.0), State(jnp.zeros(1), jnp.zeros(1)))
    assert orbit.status == OrbitStatus.CONVERGED and orbit.is_stable
    assert abs(orbit.multipliers[0]) < 1.0
    ```
    """
    system = as_system(system)
    check_instance("guess", guess, State, "make it with jaxdyn.simulation.State(q, v)")
    check_count("returns", returns)
    check_count("max_iterations", max_iterations)
    q, v = check_state(system.model, q0=guess.q, v0=guess.v)
    dtype = jnp.result_type(q, v, system.model.dtype)
    guess = State(q.astype(dtype), v.astype(dtype), guess.parts)
    if tolerance is None:
        tolerance = float(jnp.finfo(dtype).eps) ** 0.45
    check_positive("tolerance", tolerance, "relative")
    try:
        return _solve(
            return_map,
            system,
            guess,
            args,
            jnp.asarray(tolerance, dtype),
            jnp.asarray(max_iterations),
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
