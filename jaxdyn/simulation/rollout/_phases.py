"""The phases of a motion with modes, at the start and at the end of a rollout."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from jaxdyn._types import PyTree
from jaxdyn.dynamics import AbstractModalMotion, SwitchFailure
from jaxdyn.simulation.events import Phases, append_switch, empty_phases
from jaxdyn.simulation.rollout._stepped import forces_on
from jaxdyn.simulation.system import State, System, in_modes, unpack_parts
from jaxdyn.simulation.trajectory import PhaseRecord


def start_phases(system: System, t, y: State, max_events: int) -> tuple[State, Phases | None]:
    """The state after the first switch, such as an impact at the start, and the first phase."""
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
    unknown = jnp.full_like(t, jnp.nan)
    phases = append_switch(phases, t, y.q, y.v, out, none, unknown, unknown)
    return State(y.q, out.v, y.parts), phases


def phase_record(phases: Phases) -> PhaseRecord:
    """The record of a rollout."""
    p, rows = phases, phases.table()
    restore = ravel_pytree(p.modes)[1]
    culprit = jnp.where(p.failure == SwitchFailure.NONE, -1, p.culprit).astype(int)
    modes = jax.vmap(restore)(rows.modes)
    return PhaseRecord(rows.time, modes, *rows[2:], p.count.astype(int), culprit)


def row_modes(phases: PhaseRecord, ts, end) -> PyTree:
    """The modes of the rows at times ts; rows from the end on have the last ones."""
    last = jax.tree.map(lambda x: x[jnp.maximum(phases.count - 1, 0)], phases.modes)
    rows = jax.vmap(phases.at)(ts)
    return jax.tree.map(lambda x, z: jnp.where((ts >= end).reshape(-1, *[1] * z.ndim), z, x), rows, last)
