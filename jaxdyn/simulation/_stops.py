"""Limits of joints as events."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import core

from jaxdyn._errors import ModelError
from jaxdyn.dynamics import AbstractMotion
from jaxdyn.model import Model
from jaxdyn.simulation._events import Event
from jaxdyn.simulation._system import System, described_motion


class Coordinate(eqx.Module):
    """`sign * (q_i - bound)`: one joint's coordinate at a bound."""

    index: int = eqx.field(static=True)
    bound: Any
    sign: float = eqx.field(static=True, default=1.0)

    def __call__(self, model, t, q, v):
        return self.sign * (q[self.index] - self.bound)


class JointLimit(eqx.Module):
    """`q_i - lower_i` or `upper_i - q_i` with the limits of the model, which so have derivatives; 1 where infinite."""

    index: int = eqx.field(static=True)
    upper: bool = eqx.field(static=True, default=False)

    def __call__(self, model, t, q, v):
        bound = (model.limits.upper if self.upper else model.limits.lower)[self.index]
        finite = jnp.isfinite(bound)
        room = q[self.index] - jnp.where(finite, bound, 0)
        return jnp.where(finite, -room if self.upper else room, 1)


class Rebound(eqx.Module):
    """One coordinate's velocity is turned round, times the restitution, by an impulse along this coordinate.

    `v+ = v - (1 + e) v_i N e_i / N_ii` with the inverse inertia N of the robot under its constraints, `M^-1` for a
    tree: what hangs on the joint is thrown about as well. Constraints are those of `motion`, by default the closures
    that the model describes. Restitution 0 is a plastic impact: the joint rests at its stop, for as long as nothing
    pushes it on.
    """

    index: int = eqx.field(static=True)
    restitution: Any
    motion: AbstractMotion | None = None

    def __check_init__(self):
        e = self.restitution
        if eqx.is_array_like(e) and not isinstance(e, core.Tracer) and np.any(np.asarray(e) < 0):
            raise ModelError(f"the restitution of a Rebound is {e}; expected 0 (plastic) to 1 (without loss)")

    def __call__(self, model, t, q, v):
        motion = described_motion(model) if self.motion is None else self.motion
        jump = motion.jump(model, t, q, jnp.zeros_like(v).at[self.index].set(1))
        own = jump[self.index]
        moves = own != 0  # a joint that constraints hold has no velocity either
        share = jnp.where(moves, jump / jnp.where(moves, own, 1), 0)
        return q, v - (1 + self.restitution) * v[self.index] * share


def joint_stops(system: Model | System, restitution: Any = 0.5) -> tuple[Event, ...]:
    """Events at all finite limits of joints with one coordinate, where they rebound (`Rebound`).

    Limits are read from the model that is simulated. Where they are traced values, in a function under `jax.jit` or
    `jax.grad` of the model, there is an event for either side of each joint, which never happens at an infinite limit.
    """
    model, motion = (system.model, system.motion) if isinstance(system, System) else (system, None)
    stops: list[Event] = []
    for name in model.joint_names:
        view = model.joint(name)
        if view.joint.nq != 1 or view.joint.nv != 1:
            continue
        q, v = view.q.start, view.v.start
        for limit, upper in ((model.limits.lower, False), (model.limits.upper, True)):
            if isinstance(limit, core.Tracer) or np.isfinite(np.asarray(limit)[..., q]).any():
                rebound = Rebound(v, restitution, motion)
                stops.append(Event(JointLimit(q, upper), rebound, direction=-1, barrier=True))
    return tuple(stops)
