"""The return map of a system in coordinates of its tangent space."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdyn._errors import ModelError, describe
from jaxdyn._types import Array, Float
from jaxdyn.kinematics import difference, integrate
from jaxdyn.simulation.system import PartLayout, State, System
from jaxdyn.simulation.trajectory import SimulationStatus, Trajectory


class Return(NamedTuple):
    """The state at the end of a return, its duration, and how its simulations ended."""

    state: State
    #: s
    time: Float[Array, ""]
    has_returned: jax.Array
    #: the `SimulationStatus` of the first simulation that did not end as expected, otherwise of the last one
    simulation: jax.Array


def evaluate_return(return_map: Callable, system: System, state: State, args: tuple, is_forced: bool) -> Return:
    """One return from a state; raises `ModelError` unless the map returns trajectories."""
    phases = return_map(system, state, *args)
    phases = phases if isinstance(phases, tuple) else (phases,)
    if not phases or not all(isinstance(phase, Trajectory) for phase in phases):
        kinds = ", ".join(describe(phase) for phase in phases) or "an empty tuple"
        raise ModelError(
            f"the return map of a periodic orbit returns {kinds}; expected the Trajectory that simulate returns, or a "
            "tuple with one Trajectory for each phase of the motion"
        )
    code = SimulationStatus
    time, status, has_returned = jnp.zeros_like(phases[0].t[0]), phases[0].status, jnp.asarray(True)
    for phase in phases:
        at_event = phase.status == code.EVENT
        end = phase.t[-1]
        if phase.events is not None:
            last = phase.events.time[jnp.maximum(phase.events.count - 1, 0)]
            end = jnp.where(at_event, last, end)
        is_over = phase.status == code.FINISHED if is_forced or phase.events is None else at_event
        status = jnp.where(has_returned, phase.status, status)
        has_returned = has_returned & is_over
        time = time + end - phase.t[0]
    last = phases[-1].last
    finite = jnp.stack([jnp.isfinite(x).all() for x in jax.tree.leaves((last.q, last.v))]).all()
    return Return(last, time, has_returned & finite & jnp.isfinite(time), status)


def repeat_return(once: Callable[[State], Return], layout: PartLayout, state: State, returns: int) -> Return:
    """Several returns, one after the other, as one."""

    def settle(new: Return) -> Return:
        """The return with part states of the types of a carry."""
        parts = layout.unflatten(layout.flatten(new.state.parts, state.v.dtype))
        return new._replace(state=State(new.state.q, new.state.v, parts))

    def again(carry: Return, _):
        new = settle(once(carry.state))
        has_returned = carry.has_returned & new.has_returned
        simulation = jnp.where(carry.has_returned, new.simulation, carry.simulation)
        return Return(new.state, carry.time + new.time, has_returned, simulation), None

    if returns == 1:
        return settle(once(state))
    # the types of the carry, without a second copy of the simulation
    kinds = jax.eval_shape(once, state)
    start = Return(
        state,
        jnp.zeros((), kinds.time.dtype),
        jnp.ones((), kinds.has_returned.dtype),
        jnp.zeros((), kinds.simulation.dtype),
    )
    return jax.lax.scan(again, start, None, length=returns)[0]


def displace(system: System, layout: PartLayout, state: State, e: Float[Array, " n"]) -> State:
    """The state displaced by a vector of the tangent space, `(configuration, velocity, parts)`."""
    nv = system.model.nv
    parts = layout.unflatten(layout.flatten(state.parts, e.dtype) + e[2 * nv :])
    return State(integrate(system.model, state.q, e[:nv]), state.v + e[nv : 2 * nv], parts)


def deviation(system: System, layout: PartLayout, start: State, end: State) -> Float[Array, " n"]:
    """The vector of the tangent space at `start` that displaces it to `end`."""
    parts = layout.flatten(end.parts, end.v.dtype) - layout.flatten(start.parts, end.v.dtype)
    return jnp.concatenate([difference(system.model, start.q, end.q), end.v - start.v, parts])
