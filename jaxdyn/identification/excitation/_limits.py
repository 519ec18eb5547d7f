"""Limits of excitation trajectories: of joints and of the workspace."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError, format_names
from jaxdyn._types import Array, Float
from jaxdyn.dynamics import passive_forces, rnea
from jaxdyn.kinematics import forward_kinematics
from jaxdyn.model import Model
from jaxdyn.simulation import velocity_names

#: a workspace limit `(model, q) -> distance`, m, negative where the limit is violated
Workspace = Callable[[Model, Array], Array]


class MotionLimits(eqx.Module):
    """Limits of an excitation trajectory, one entry per coordinate; infinite for no limit."""

    #: rad or m
    lower: Float[Array, " nv"]
    #: rad or m
    upper: Float[Array, " nv"]
    #: rad/s or m/s
    velocity: Float[Array, " nv"]
    #: rad/s^2 or m/s^2
    acceleration: Float[Array, " nv"]
    #: N m or N, of the inverse dynamics of the prior model
    effort: Float[Array, " nv"]


def motion_limits(model: Model, share: float = 0.9) -> MotionLimits:
    """The limits of a model times `share`: of position ranges about their middle, velocities and efforts."""
    x = model.limits
    ends = np.stack([np.asarray(x.lower), np.asarray(x.upper)])
    bounded = np.isfinite(ends).all(axis=0)
    finite = np.where(bounded, ends, 0.0)
    middle, half = finite.mean(axis=0), (finite[1] - finite[0]) / 2 * share
    infinite = np.full(model.nv, np.inf)
    return MotionLimits(
        jnp.asarray(np.where(bounded, middle - half, ends[0])),
        jnp.asarray(np.where(bounded, middle + half, ends[1])),
        jnp.asarray(share * np.asarray(x.velocity)),
        jnp.asarray(infinite, x.velocity.dtype),
        jnp.asarray(share * np.asarray(x.effort)),
    )


def check_limits(model: Model, bounds: MotionLimits):
    """Raises `ModelError` for joints without any limit, or with an empty range."""
    lower, upper = np.asarray(bounds.lower), np.asarray(bounds.upper)
    names = [name for name, _ in velocity_names(model)]
    free = ~(np.isfinite(lower) & np.isfinite(upper))
    for other in (bounds.velocity, bounds.acceleration, bounds.effort):
        free &= ~np.isfinite(np.asarray(other))
    if free.any():
        raise ModelError(
            f"joints {format_names(np.array(names)[free])} have no limit of position, velocity, acceleration or "
            "effort, so that the information is unbounded; set a limit with bounds=MotionLimits(...)"
        )
    positive = [np.asarray(x) > 0 for x in (bounds.velocity, bounds.acceleration, bounds.effort, upper - lower)]
    empty = ~np.all(positive, axis=0)
    if empty.any():
        raise ModelError(
            f"the limits of joints {format_names(np.array(names)[empty])} leave no motion; expected positive ranges in "
            "bounds, or lock these joints with jaxdyn.lock_joints"
        )


def middle_and_size(bounds: MotionLimits) -> tuple[Array, Array]:
    """The middle and half the width of each position range; zero and 1 rad (or m) without a range."""
    bounded = jnp.isfinite(bounds.lower) & jnp.isfinite(bounds.upper)
    lower, upper = jnp.where(bounded, bounds.lower, -1.0), jnp.where(bounded, bounds.upper, 1.0)
    return (lower + upper) / 2, (upper - lower) / 2


def margins(model: Model, bounds: MotionLimits, workspace: tuple[Workspace, ...], q, v, a) -> dict[str, Array]:
    """The margin of one state to each limit, relative to the limit (workspace: m); negative where violated."""
    _, size = middle_and_size(bounds)
    effort = rnea(model, q, v, a) - passive_forces(model, q, v)

    def magnitude_margin(x, limit):
        finite = jnp.isfinite(limit)
        return jnp.where(finite, 1 - jnp.abs(x) / jnp.where(finite, limit, 1.0), 1.0)

    def position_margin(gap, finite):
        return jnp.where(finite, jnp.where(finite, gap, 1.0) / size, 1.0)

    result = {
        "lower": position_margin(q - bounds.lower, jnp.isfinite(bounds.lower)),
        "upper": position_margin(bounds.upper - q, jnp.isfinite(bounds.upper)),
        "velocity": magnitude_margin(v, bounds.velocity),
        "acceleration": magnitude_margin(a, bounds.acceleration),
        "effort": magnitude_margin(effort, bounds.effort),
    }
    if workspace:
        result["workspace"] = jnp.concatenate([jnp.atleast_1d(limit(model, q)) for limit in workspace])
    return result


def link_above(link: str, height: float | int, axis: tuple[float, float, float] = (0.0, 0.0, 1.0)) -> Workspace:
    """A workspace limit: the link origin p satisfies `axis . p >= height`, m in world axes; `axis` is normalised."""
    normal = np.asarray(axis, float) / np.linalg.norm(axis)

    def limit(model: Model, q):
        point = forward_kinematics(model, q).translation[model.link_index(link)]
        return point @ jnp.asarray(normal, point.dtype) - height

    return limit


def links_apart(first: str, second: str, distance: float | int) -> Workspace:
    """A workspace limit: the distance between the origins of two links is at least `distance`, m."""

    def limit(model: Model, q):
        points = forward_kinematics(model, q).translation
        gap = points[model.link_index(first)] - points[model.link_index(second)]
        return jnp.sqrt(gap @ gap + 1e-12) - distance

    return limit


def link_in_box(link: str, lower: tuple[float, float, float], upper: tuple[float, float, float]) -> Workspace:
    """A workspace limit: the link origin is in the box between the corners `lower` and `upper`, m in world axes."""

    def limit(model: Model, q):
        point = forward_kinematics(model, q).translation[model.link_index(link)]
        return jnp.concatenate([point - jnp.asarray(lower, point.dtype), jnp.asarray(upper, point.dtype) - point])

    return limit
