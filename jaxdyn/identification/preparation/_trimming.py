"""Detection of rest and saturation, and the consistency of velocities with positions."""

import numpy as np

from jaxdyn.identification.logs import find_runs
from jaxdyn.identification.preparation._options import Preparation
from jaxdyn.identification.preparation._report import Interval, VelocityCheck
from jaxdyn.identification.preparation._signals import (
    Segment,
    estimate_delay,
    filter_zero_phase,
    interpolate_cubic,
    is_at_extreme,
    slope_and_correlation,
)
from jaxdyn.model import Model
from jaxdyn.simulation import velocity_names


def select_rows(
    model: Model, piece: Segment, motion: dict[str, np.ndarray], edge: float, options: Preparation
) -> tuple[list[tuple[int, int]], list[Interval]]:
    """First and last row of each usable segment, and the removed intervals: rest and saturation."""
    t = piece.t
    dt = t[1] - t[0]
    margin = round(edge / dt)
    use = np.ones(len(t), bool)
    removed: list[Interval] = []

    def remove(first: int, last: int, why: str):
        use[first : last + 1] = False
        removed.append(Interval(float(t[first]), float(t[last]), why))

    if margin:
        use[:margin] = use[len(t) - margin :] = False
    for first, last in find_runs(_is_at_rest(motion["v"], options), max(2, round(options.rest_time / dt))):
        remove(first, last, "rest")
    for first, last, joint in _find_saturation(model, piece.x["effort"], dt, options):
        remove(max(0, first - margin // 2), min(len(t) - 1, last + margin // 2), f"effort of {joint} is saturated")
    return find_runs(use), removed


def _is_at_rest(v: np.ndarray, options: Preparation) -> np.ndarray:
    if options.rest_speed is not None:
        return np.all(np.abs(v) < options.rest_speed, axis=1)
    greatest = np.abs(v).max(axis=0)
    moving = greatest > 1e-3 * greatest.max()
    return np.all(np.abs(v) < 0.01 * greatest, axis=1, where=moving)


def _find_saturation(model: Model, effort: np.ndarray, dt: float, options: Preparation) -> list[tuple[int, int, str]]:
    limit = np.asarray(model.limits.effort)
    least = max(3, round(options.saturation_time / dt))
    found = []
    for k, (joint, _) in enumerate(velocity_names(model)):
        size = np.abs(effort[:, k])
        bounded = (
            limit[k] > 0 and size.max() <= (2 - options.saturation) * limit[k]
        )  # otherwise the drive has another limit
        beyond = size >= options.saturation * limit[k] if bounded else np.zeros(len(size), bool)
        for first, last in find_runs(beyond | is_at_extreme(effort[:, k], least)):
            found.append((first, last, joint))
    return found


def check_velocities(
    model: Model, piece: Segment, motion: dict[str, np.ndarray], dt: float, cutoff: float | None, options: Preparation
) -> tuple[VelocityCheck, ...]:
    """Compares measured velocities with the derivatives of positions, both filtered; empty without velocities."""
    if "v" not in piece.x:
        return ()
    derivatives = filter_zero_phase(piece.x["q"], dt, cutoff, options.order, 1)
    measured = filter_zero_phase(piece.x["v"], dt, cutoff, options.order)
    checks = []
    for k, (joint, _) in enumerate(velocity_names(model)):
        delay = estimate_delay(derivatives[:, k], measured[:, k], dt, options.longest_delay)
        inside = (piece.t >= piece.t[0] + abs(delay)) & (piece.t <= piece.t[-1] - abs(delay))
        if not inside.sum() > 2:
            continue
        aligned = interpolate_cubic(piece.t, measured[:, k], piece.t[inside] + delay)
        slope, correlation = slope_and_correlation(derivatives[inside, k], aligned)
        checks.append(VelocityCheck(joint, slope, correlation, delay))
    return tuple(checks)


def describe_mismatch(check: VelocityCheck) -> str:
    """A note on a velocity that is inconsistent with its position, otherwise empty."""
    if np.isfinite(check.slope) and (abs(check.slope - 1) > 0.1 or check.correlation < 0.8):
        return (
            f"measured velocity of {check.joint} is {check.slope:.3g} times the derivative of its position "
            f"(correlation {check.correlation:.2f}); check unit, gear and sign of both"
        )
    return ""
