"""Compass gaits that walk down a slope: strike of the swing foot, exchange of the legs, and one step."""

from typing import Any

import diffrax
import equinox as eqx
import jax.numpy as jnp

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn.simulation import Event, simulate


class Ground(eqx.Module):
    """A slope through the stance foot, which descends towards +x."""

    slope: Any

    def height(self, model, t, q, v):
        """Height of the swing foot above the ground, once it is ahead of the stance foot by 0.1 m.

        A foot without knee scuffs while the legs pass each other, which walkers avoid by tiles or short lateral tilts.
        """
        foot = jd.frame_pose(model, q, "swing_foot").translation
        return foot @ self.normal + jnp.maximum(0.1 - foot @ self.direction, 0)

    @property
    def normal(self):
        return jnp.array([jnp.sin(self.slope), 0.0, jnp.cos(self.slope)])

    @property
    def direction(self):
        return jnp.array([jnp.cos(self.slope), 0.0, -jnp.sin(self.slope)])


class Strike(eqx.Module):
    """The plastic impact of the swing foot, which becomes the stance foot, while the other foot leaves the ground."""

    floating: jd.Model

    def impact(self, q, v):
        """Velocities after the impact, stance foot included, and the impulse on the new stance foot."""
        q, v = (jnp.concatenate([jnp.zeros(2), x]) for x in (q, v))
        return jc.impulse(self.floating, jc.PointClosure("foot", "world", "swing_foot"), q, v)

    def __call__(self, model, t, q, v):
        after = self.impact(q, v).v[2:]
        exchange = lambda x: jnp.stack([x[0] + x[1], -x[1]])
        return exchange(q), exchange(after)


class Walker(eqx.Module):
    """A compass gait, pinned at its stance foot and floating, on a slope."""

    pinned: jd.Model
    floating: jd.Model
    ground: Ground

    @classmethod
    def build(cls, *numbers, slope, **options):
        pinned, floating = (jd.robots.compass_gait(*numbers, **options, floating=f) for f in (False, True))
        return cls(pinned, floating, Ground(slope))

    @property
    def strike(self):
        return Event(self.ground.height, Strike(self.floating), terminal=True, direction=-1)


def step(system, state, walker, horizon=2.0, tolerance=1e-11):
    ts = jnp.array([0.0, 1.0]) * horizon
    options = {
        "rtol": tolerance,
        "atol": tolerance,
        "adjoint": diffrax.ForwardMode(),
        "max_events": 1,
        "max_steps": 1000,
    }
    return simulate(system, state.q, state.v, ts, events=(walker.strike,), **options)


def relative(stance, swing):
    """Joint coordinates from angles to the vertical."""
    return jnp.array([stance, swing - stance])
