"""A trajectory in a few lines."""

import equinox as eqx
import numpy as np

from jaxdyn._status import describe_status
from jaxdyn.simulation.trajectory._status import SimulationStatus


def summarise(trajectory) -> str:
    """Outcome, times, number of steps and shapes of a trajectory or of a batch."""
    samples = "" if trajectory.q.ndim < 3 else f"{trajectory.q.shape[:-2]} samples of "
    t, steps = np.asarray(trajectory.t), np.asarray(trajectory.num_steps)
    lines = [
        f"Trajectory of {samples}{trajectory.system.model.name or 'a robot'}",
        f"status  {describe_status(SimulationStatus, trajectory.status)}",
        f"t       {t.shape[-1]} times from {t.min():.6g} to {t.max():.6g} s",
        f"steps   {steps}" if steps.ndim == 0 else f"steps   {steps.min()} to {steps.max()}",
        *(f"{name:<7} {eqx.tree_pformat(getattr(trajectory, name))}" for name in ("q", "v")),
    ]
    for name in ("events", "phases"):
        record = getattr(trajectory, name)
        if record is not None:
            lines.append(f"{name:<7} {np.asarray(record.count).sum()}")
    return "\n  ".join(lines)
