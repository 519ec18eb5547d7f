"""Forces of a system at one state, constraint forces included."""

from typing import Any

import jax.numpy as jnp

from jaxdyn.dynamics import Action, JointReactions, joint_reactions, rnea
from jaxdyn.simulation.system import State


def _all_forces(system, t, state: State) -> tuple[Action, Action]:
    """Efforts and wrenches of parts and joints, and those of the constraints."""
    action = system.action(t, state)
    effort, external = action.effort, action.external
    return action, system.motion.exerted(system.mounted_model, t, state.q, state.v, effort, external)


def _sum(a: Any, b: Any) -> Any:
    return a if b is None else b if a is None else a + b


def power(system, t, state: State):
    """Power of all efforts and wrenches."""
    action, constraint = _all_forces(system, t, state)
    zero = jnp.zeros_like(state.v)
    effort, external = _sum(action.effort, constraint.effort), _sum(action.external, constraint.external)
    if external is None:
        return effort @ state.v
    load = rnea(system.mounted_model, state.q, zero, zero) - rnea(system.mounted_model, state.q, zero, zero, external)
    return (effort + load) @ state.v


def contacts(system, t, state: State):
    """State of the contacts of a contact motion."""
    action = system.action(t, state)
    return system.motion.contact_state(system.mounted_model, t, state.q, state.v, action.effort, action.external)


def external_wrenches(system, t, state: State):
    """Wrenches of parts and constraints on all links, zero if there are none."""
    action, constraint = _all_forces(system, t, state)
    external = _sum(action.external, constraint.external)
    return jnp.zeros((system.model.num_links, 6), state.v.dtype) if external is None else external


def reactions(system, t, state: State) -> JointReactions:
    """Reactions in all joints."""
    action, constraint = _all_forces(system, t, state)
    a = system.motion.acceleration(system.mounted_model, t, state.q, state.v, action.effort, action.external)
    return joint_reactions(system.mounted_model, state.q, state.v, a, _sum(action.external, constraint.external))
