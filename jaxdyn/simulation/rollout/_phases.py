"""The phases of a motion with modes, at the start and at the end of a rollout."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxdyn._types import PyTree
from jaxdyn.dynamics import AbstractModalMotion, SwitchFailure
from jaxdyn.simulation.events import Phases, append_switch, empty_phases
from jaxdyn.simulation.rollout._stepped import forces_on
from jaxdyn.simulation.system import State, System, in_modes, unpack_parts
from jaxdyn.simulation.trajectory import PhaseRecord


def start_phases(system: System, t, y: State, max_events: int) -> tuple[State, Phases | None]:
    """The state after what happens at the start, such as an impact, and the first phase."""
    motion: Any = system.motion
    if not isinstance(motion, AbstractModalMotion):
        return y, None
    model = system.mounted_model
    modes = motion.initial_modes(model, t, y.q, y.v)
    sizes = max_events + 1, motion.num_guards, motion.num_impulses
    phases = empty_phases(modes, *sizes, y.q, y.v)
    whole: Any = in_modes(system, modes)
    none = jnp.zeros(motion.num_guards, y.q.dtype)
    forces = forces_on(whole, t, y.q, unpack_parts(y.parts))
    out = whole.motion.switch(model, t, y.q, y.v, none, forces)
    phases = append_switch(phases, True, t, y.q, y.v, out, none, jnp.full_like(t, jnp.nan))
    return State(y.q, out.v, y.parts), phases


def phase_record(phases: Phases) -> PhaseRecord:
    """The record of a rollout."""
    p = phases
    count = p.count.astype(int)
    culprit = jnp.where(p.failure == SwitchFailure.NONE, -1, p.culprit).astype(int)
    return PhaseRecord(p.time, p.past, p.impulse, p.fired, p.q, p.v_before, p.v, p.slope, count, culprit)


def row_modes(phases: PhaseRecord, ts, end) -> PyTree:
    """The modes of the rows at times ts; rows from the end on have the last ones."""
    last = jax.tree.map(lambda x: x[jnp.maximum(phases.count - 1, 0)], phases.modes)
    rows = jax.vmap(phases.at)(ts)
    return jax.tree.map(lambda x, z: jnp.where((ts >= end).reshape(-1, *[1] * z.ndim), z, x), rows, last)
