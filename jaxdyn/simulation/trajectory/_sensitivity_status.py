"""Events at which the derivative of a trajectory is one-sided or ill-conditioned."""

import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn._status import Status
from jaxdyn._types import Array, Int
from jaxdyn.simulation.trajectory._trajectory import Trajectory


class SensitivityStatus(Status):
    """Whether the derivative of a trajectory exists across an event of its motion."""

    REGULAR = 0, "the derivative exists: the guard crosses zero with a rate, alone"
    GRAZING = (
        1,
        "the guard touches zero with nearly no rate; a nearby motion has no event. The derivative is one-sided, "
        "for motions with the event, and unbounded as the rate tends to zero",
    )
    COINCIDENT = (
        2,
        "several events at the same instant, which follow each other in nearby motions. The derivative holds "
        "within the motions in which they coincide, and in general where their order does not matter",
    )


def sensitivity_status(
    trajectory: Trajectory, *, window: ArrayLike = 1e-4, interval: ArrayLike = 1e-9
) -> Int[Array, "*batch cap"]:
    """A `SensitivityStatus` for each phase of a trajectory, of the event with which the phase begins.

    Near a root a guard is `g(t) = g' t + g'' t^2 / 2`, with an extremum `tau = |g' / g''|` away from the root. A motion
    whose guard is `g' tau / 2` larger, such as a gap of `a tau^2 / 2` at an acceleration a, has no event, and the
    derivative of the event's time grows as `1 / tau`. Rates and second derivatives are those of `trajectory.phases`.

    Arguments:

    * `trajectory`: of a motion with modes, such as a `ContactMotion`.
    * `window`: events with a tau of at most `window` are `GRAZING`, s; 0.1 ms corresponds to 0.05 um in free fall.
    * `interval`: events that are at most `interval` apart, s, and guards with the same root are `COINCIDENT`.

    The start is `REGULAR`, as are unused entries. The largest entry is the status of the trajectory. Raises
    `ModelError` for a motion without modes.
    """
    phases = trajectory.phases
    if phases is None:
        raise ModelError(
            f"the motion of this trajectory is {type(trajectory.system.motion).__name__}, which has no phases; "
            "simulate System(model, motion=ContactMotion(contacts))"
        )
    number = jnp.arange(phases.time.shape[-1])
    is_event = (number > 0) & (number < phases.count[..., None])
    grazes = jnp.abs(phases.slope) <= window * jnp.abs(phases.curvature)
    is_near = jnp.diff(phases.time, axis=-1) <= interval
    is_near = is_near & is_event[..., 1:] & is_event[..., :-1]
    none = jnp.zeros_like(is_near[..., :1])
    follows = jnp.concatenate([none, is_near], -1) | jnp.concatenate([is_near, none], -1)
    coincides = follows | (jnp.sum(phases.fired, axis=-1) > 1)
    kinds = SensitivityStatus
    status = jnp.where(grazes, kinds.GRAZING, kinds.REGULAR)
    return jnp.where(is_event, jnp.where(coincides, kinds.COINCIDENT, status), kinds.REGULAR)
