"""A trajectory in a few lines, and what to do where a simulation failed."""

import equinox as eqx
import numpy as np

from jaxdyn._status import describe_status
from jaxdyn.simulation.trajectory._names import coordinate_names
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


#: what to do about each failure
_REMEDIES = {
    SimulationStatus.MAX_EVENTS: "raise max_events",
    SimulationStatus.MAX_STEPS: "raise max_steps, or loosen rtol and atol",
    SimulationStatus.NOT_FINITE: "take a smaller dt, or the solver Rosenbrock for stiff parts, or check the parts",
    SimulationStatus.FAILED: "check the parts of the system at the last state",
    SimulationStatus.HELD: "start within the limits, or let a contact hold the robot (jaxdyn.contact)",
    SimulationStatus.OFF_CONSTRAINT: "start from jaxdyn.constraints.assemble, take smaller steps, or check that the "
    "constraints are consistent",
    SimulationStatus.INDETERMINATE: "reduce the friction of that contact",
    SimulationStatus.IMPACT_LIMIT: "give AllAtOnce, or restitutions above zero",
    SimulationStatus.NOT_SOLVED: "check the contacts at the last state",
}


def explain_failures(trajectory, failed: np.ndarray | np.bool) -> str:
    """The message of an exception: how many simulations failed, and for each kind the reason and the remedy."""
    status = np.asarray(trajectory.status)
    steps = np.max(np.asarray(trajectory.num_steps))
    kinds = [SimulationStatus(int(x)) for x in np.unique(status[failed])]
    reasons = []
    for kind in kinds:
        where = _joints_at_limits(trajectory, status == kind) if kind == SimulationStatus.HELD else ""
        reasons.append(f"{kind}{where}; {_REMEDIES[kind]}")
    return f"{failed.sum()} of {failed.size} simulations failed after at most {steps} steps. {'. '.join(reasons)}."


def _joints_at_limits(trajectory, chosen: np.ndarray | np.bool) -> str:
    """Names, values and limits of the coordinates at a limit at the last event of the first chosen sample."""
    sample = trajectory if trajectory.q.ndim < 3 else trajectory[tuple(np.argwhere(chosen)[0])]
    model, events = sample.system.model, sample.events
    q = np.asarray(sample.q)[0]
    if events is not None and int(events.count):
        q = np.asarray(events.q)[int(events.count) - 1]
    found = []
    for side, limit in (("lower", np.asarray(model.limits.lower)), ("upper", np.asarray(model.limits.upper))):
        near = np.isfinite(limit) & (np.abs(q - limit) < 1e-3 * (1 + np.abs(limit)))
        names = [coordinate_names(model)[k] for k in np.flatnonzero(near)]
        values = zip(names, q[near], limit[near], strict=True)
        found += [f"{name} = {x:.4g} {unit} at its {side} limit {y:.4g}" for (name, unit), x, y in values]
    return f": {', '.join(found)}" if found else ""
