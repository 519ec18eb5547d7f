"""Where an exciting motion may go."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.dynamics import passive_forces, rnea
from jaxdyn.identification._read_table import listed
from jaxdyn.kinematics import forward_kinematics
from jaxdyn.model import Model
from jaxdyn.simulation import velocity_names

#: a workspace limit: `(model, q)` to numbers that are not negative where the robot may be, in m
Workspace = Callable[[Model, Any], Any]


class Bounds(eqx.Module):
    """Limits of a motion, one entry a coordinate, infinite where there is none."""

    lower: Float[Array, " nv"]
    upper: Float[Array, " nv"]
    #: rad/s or m/s
    velocity: Float[Array, " nv"]
    #: rad/s^2 or m/s^2
    acceleration: Float[Array, " nv"]
    #: N m or N, by the prior model
    effort: Float[Array, " nv"]


def bounds_of(model: Model, share: float = 0.9) -> Bounds:
    """A `share` of a model's own limits: of each range about its middle, of velocities and of efforts."""
    x = model.limits
    ends = np.stack([np.asarray(x.lower), np.asarray(x.upper)])
    bounded = np.isfinite(ends).all(axis=0)
    clear = np.where(bounded, ends, 0.0)
    middle, half = clear.mean(axis=0), (clear[1] - clear[0]) / 2 * share
    infinite = np.full(model.nv, np.inf)
    return Bounds(
        jnp.asarray(np.where(bounded, middle - half, ends[0])),
        jnp.asarray(np.where(bounded, middle + half, ends[1])),
        jnp.asarray(share * np.asarray(x.velocity)),
        jnp.asarray(infinite, x.velocity.dtype),
        jnp.asarray(share * np.asarray(x.effort)),
    )


def check_bounds(model: Model, bounds: Bounds):
    """Refuses limits that leave some joint free to be excited without end, or that leave it no room."""
    lower, upper = np.asarray(bounds.lower), np.asarray(bounds.upper)
    names = [name for name, _ in velocity_names(model)]
    free = ~(np.isfinite(lower) & np.isfinite(upper))
    for other in (bounds.velocity, bounds.acceleration, bounds.effort):
        free &= ~np.isfinite(np.asarray(other))
    if free.any():
        raise ModelError(
            f"joints {listed([n for n, f in zip(names, free, strict=True) if f])} have no limit of position, velocity, "
            "acceleration or effort, and no most informative motion therefore; give one in bounds"
        )
    positive = [np.asarray(x) > 0 for x in (bounds.velocity, bounds.acceleration, bounds.effort, upper - lower)]
    empty = ~np.all(positive, axis=0)
    if empty.any():
        raise ModelError(
            f"joints {listed([n for n, e in zip(names, empty, strict=True) if e])} may not move by their limits; "
            "give others in bounds, or lock these joints by jaxdyn.lock_joints"
        )


def middle_and_size(bounds: Bounds) -> tuple[Array, Array]:
    """The middle of each range and half its width; where there is no range, zero and 1 rad (or m)."""
    bounded = jnp.isfinite(bounds.lower) & jnp.isfinite(bounds.upper)
    lower, upper = jnp.where(bounded, bounds.lower, -1.0), jnp.where(bounded, bounds.upper, 1.0)
    return (lower + upper) / 2, (upper - lower) / 2


def margins(model: Model, bounds: Bounds, workspace: tuple[Workspace, ...], q, v, a) -> dict[str, Array]:
    """How far one state is within each limit, as shares of it (workspace: in m); negative where it is outside."""
    _, size = middle_and_size(bounds)
    effort = rnea(model, q, v, a) - passive_forces(model, q, v)

    def within(x, limit):
        known = jnp.isfinite(limit)
        return jnp.where(known, 1 - jnp.abs(x) / jnp.where(known, limit, 1.0), 1.0)

    def inside(gap, known):
        return jnp.where(known, jnp.where(known, gap, 1.0) / size, 1.0)

    found = {
        "lower": inside(q - bounds.lower, jnp.isfinite(bounds.lower)),
        "upper": inside(bounds.upper - q, jnp.isfinite(bounds.upper)),
        "velocity": within(v, bounds.velocity),
        "acceleration": within(a, bounds.acceleration),
        "effort": within(effort, bounds.effort),
    }
    if workspace:
        found["workspace"] = jnp.concatenate([jnp.atleast_1d(limit(model, q)) for limit in workspace])
    return found


def link_above(link: str, height: float | int, axis: tuple[float, float, float] = (0.0, 0.0, 1.0)) -> Workspace:
    """A workspace limit: the origin of a link stays above the plane `axis . p = height`, m in world axes."""
    normal = np.asarray(axis, float) / np.linalg.norm(axis)

    def limit(model: Model, q):
        point = forward_kinematics(model, q).translation[model.link_index(link)]
        return point @ jnp.asarray(normal, point.dtype) - height

    return limit


def links_apart(first: str, second: str, distance: float | int) -> Workspace:
    """A workspace limit: the origins of two links stay at least `distance` (m) apart."""

    def limit(model: Model, q):
        points = forward_kinematics(model, q).translation
        gap = points[model.link_index(first)] - points[model.link_index(second)]
        return jnp.sqrt(gap @ gap + 1e-12) - distance

    return limit


def link_in_box(link: str, lower: tuple[float, float, float], upper: tuple[float, float, float]) -> Workspace:
    """A workspace limit: the origin of a link stays in the box between two corners, m in world axes."""

    def limit(model: Model, q):
        point = forward_kinematics(model, q).translation[model.link_index(link)]
        return jnp.concatenate([point - jnp.asarray(lower, point.dtype), jnp.asarray(upper, point.dtype) - point])

    return limit
