"""Parts of a log that say nothing or mislead, and velocities that do not fit their positions."""

from typing import Any

import numpy as np

from jaxdyn.identification._prepare_options import Preparation
from jaxdyn.identification._prepare_report import Interval, VelocityCheck
from jaxdyn.identification._prepare_signals import (
    at_extremes,
    delay_between,
    filtered,
    interpolate,
    likeness,
    runs_of,
)
from jaxdyn.model import Model
from jaxdyn.simulation import velocity_names


def kept_rows(
    model: Model, piece: Any, motion: dict[str, np.ndarray], edge: float, options: Preparation
) -> tuple[list[tuple[int, int]], list[Interval]]:
    """First and last rows of what is used, and what is left out: ends, rest and saturation."""
    t = piece.t
    dt = t[1] - t[0]
    margin = round(edge / dt)
    use = np.ones(len(t), bool)
    left_out: list[Interval] = []

    def drop(first: int, last: int, why: str):
        use[first : last + 1] = False
        left_out.append(Interval(float(t[first]), float(t[last]), why))

    if margin:
        use[:margin] = use[len(t) - margin :] = False
    for first, last in runs_of(_resting(motion["v"], options), max(2, round(options.rest_time / dt))):
        drop(first, last, "rest")
    for first, last, joint in _saturated(model, piece.x["effort"], dt, options):
        drop(max(0, first - margin // 2), min(len(t) - 1, last + margin // 2), f"effort of {joint} is saturated")
    return runs_of(use), left_out


def _resting(v: np.ndarray, options: Preparation) -> np.ndarray:
    if options.rest_speed is not None:
        return np.all(np.abs(v) < options.rest_speed, axis=1)
    greatest = np.abs(v).max(axis=0)
    moving = greatest > 1e-3 * greatest.max()
    return np.all(np.abs(v) < 0.01 * greatest, axis=1, where=moving)


def _saturated(model: Model, effort: np.ndarray, dt: float, options: Preparation) -> list[tuple[int, int, str]]:
    limit = np.asarray(model.limits.effort)
    least = max(3, round(options.saturation_time / dt))
    found = []
    for k, (joint, _) in enumerate(velocity_names(model)):
        size = np.abs(effort[:, k])
        bounded = limit[k] > 0 and size.max() <= (2 - options.saturation) * limit[k]  # else it is no limit of the drive
        beyond = size >= options.saturation * limit[k] if bounded else np.zeros(len(size), bool)
        for first, last in runs_of(beyond | at_extremes(effort[:, k], least)):
            found.append((first, last, joint))
    return found


def check_velocities(
    model: Model, piece: Any, motion: dict[str, np.ndarray], dt: float, cutoff: float | None, options: Preparation
) -> tuple[VelocityCheck, ...]:
    """Logged velocities against the slopes of positions, both after the filter; nothing if none were logged."""
    if "v" not in piece.x:
        return ()
    slopes = filtered(piece.x["q"], dt, cutoff, options.order, 1)
    logged = filtered(piece.x["v"], dt, cutoff, options.order)
    checks = []
    for k, (joint, _) in enumerate(velocity_names(model)):
        delay = delay_between(slopes[:, k], logged[:, k], dt, options.longest_delay)
        inside = (piece.t >= piece.t[0] + abs(delay)) & (piece.t <= piece.t[-1] - abs(delay))
        if not inside.sum() > 2:
            continue
        earlier = interpolate(piece.t, logged[:, k], piece.t[inside] + delay)
        slope, correlation = likeness(slopes[inside, k], earlier)
        checks.append(VelocityCheck(joint, slope, correlation, delay))
    return tuple(checks)


def velocity_note(check: VelocityCheck) -> str:
    """What a velocity that does not fit its position points at, or nothing."""
    if np.isfinite(check.slope) and (abs(check.slope - 1) > 0.1 or check.correlation < 0.8):
        return (
            f"logged velocity of {check.joint} is {check.slope:.3g} times the slope of its position (correlation "
            f"{check.correlation:.2f}); check unit, gear and sign of both"
        )
    return ""
