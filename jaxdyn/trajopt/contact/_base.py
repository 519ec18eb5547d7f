"""A robot without its contacts, and the forces of contacts as further efforts on it."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._types import Array
from jaxdyn.constraints import ConstrainedMotion
from jaxdyn.contact import Contact, ContactMotion
from jaxdyn.contact.rigid import ContactKinematics, contact_kinematics
from jaxdyn.dynamics import Action
from jaxdyn.simulation import System
from jaxdyn.trajopt.problem import Robot


def split_contacts(system: System, actuated: tuple[str, ...] | None, user: str) -> tuple[Robot, ContactMotion]:
    """The robot without its contacts, and the motion that has them; `ModelError` without contacts."""
    motion: Any = system.motion
    if not isinstance(motion, ContactMotion):
        raise ModelError(
            f"{user} has contacts, but the motion of this System is {type(motion).__name__}; give "
            "System(model, motion=ContactMotion(contacts))"
        )
    constrained: Any = ConstrainedMotion
    constraints = motion.constraints
    base = None if constraints is None else constrained(constraints, tolerance=motion.tolerance)
    return Robot(System(system.model, system.parts, base, system.passive), actuated), motion


def check_contact_names(motion: ContactMotion, names):
    """Raises `ModelError` for names of unknown contacts."""
    known = [c.name for c in motion.contacts]
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise ModelError(f"there are no contacts {unknown}; expected names among {known}")


def contacts_at(robot: Robot, contacts: tuple[Contact, ...], t, x) -> ContactKinematics:
    """Gaps, rates and Jacobian of all contacts."""
    state = robot.to_state(x)
    return contact_kinematics(robot.system.mounted_model, contacts, t, state.q, state.v)


class Motion(NamedTuple):
    """Accelerations and the rate of the state of a robot under generalised contact forces."""

    acceleration: Array
    rate: Array


def move(robot: Robot, t, x, u, generalised) -> Motion:
    """The motion under the controls u of the robot and generalised contact forces `(nv,)`."""
    state = robot.to_state(x)
    action, a = robot.system.accelerate(t, state, **_commands(robot, u, generalised))
    return Motion(a, _rate(robot, state.v, a, action))


def residual(robot: Robot, t, x, u, generalised, a) -> tuple[Array, Array]:
    """The rate of the state with accelerations a, and the residual of the equations of motion."""
    state = robot.to_state(x)
    action = robot.system.action(t, state, acceleration=a, **_commands(robot, u, generalised))
    model, motion = robot.system.mounted_model, robot.system.motion
    rest = motion.residual(model, t, state.q, state.v, a, action.effort, action.external)
    return _rate(robot, state.v, a, action), rest


def _commands(robot: Robot, u, generalised) -> dict[str, Array]:
    if robot.inputs is None:
        return {"inputs": u, "effort": generalised}
    return {"effort": robot.inputs @ u + generalised}


def _rate(robot: Robot, v, a, action: Action) -> Array:
    return jnp.concatenate([v, a, robot.layout.flatten(action.rate, v.dtype)])
