"""The phases of a motion with modes, at the start and at the end of a rollout."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from jaxdyn._types import PyTree
from jaxdyn.dynamics import AbstractModalMotion, SwitchFailure
from jaxdyn.simulation.events import Phases, empty_phases
from jaxdyn.simulation.system import State, System
from jaxdyn.simulation.trajectory import PhaseRecord


def start_phases(system: System, t, y: State, max_events: int) -> Phases | None:
    """The record at the start, where a first switch, such as an impact, is due."""
    motion: Any = system.motion
    if not isinstance(motion, AbstractModalMotion):
        return None
    modes = motion.initial_modes(system.mounted_model, t, y.q, y.v)
    return empty_phases(modes, max_events + 1, motion.num_guards, motion.num_impulses, y.q, y.v)


def phase_record(phases: Phases) -> PhaseRecord:
    """The record of a rollout."""
    p, rows = phases, phases.table()
    restore = ravel_pytree(p.modes)[1]
    culprit = jnp.where(p.failure == SwitchFailure.NONE, -1, p.culprit).astype(int)
    first = jnp.where(p.count > 0, rows.modes[0], ravel_pytree(p.modes)[0])  # no step, no switch
    modes = jax.vmap(restore)(rows.modes.at[0].set(first))
    return PhaseRecord(rows.time, modes, *rows[2:], p.count.astype(int), culprit)


def row_modes(phases: PhaseRecord, ts, end) -> PyTree:
    """The modes of the rows at times ts; rows from the end on have the last ones."""
    last = jax.tree.map(lambda x: x[jnp.maximum(phases.count - 1, 0)], phases.modes)
    rows = jax.vmap(phases.at)(ts)
    return jax.tree.map(lambda x, z: jnp.where((ts >= end).reshape(-1, *[1] * z.ndim), z, x), rows, last)
