"""The impact at one contact with friction in one direction, in closed form (Routh's method).

As functions of the normal impulse p, the contact velocities follow `dc/dp = G (1, -mu s)`, with the sign s of the slip,
until the slip stops at p_1. From there the contact sticks, `c_t = 0`, if the friction cone allows it; otherwise the
slip reverses. Both parts of the impact path are straight lines; the law of restitution terminates it (Keller 1986,
Stronge 1990).
"""

import jax.numpy as jnp

from jaxdyn._types import Array, Float
from jaxdyn.contact.laws import AbstractRestitution


def planar_impact(law: AbstractRestitution, e, static, kinetic, delassus, rate) -> Float[Array, "2"]:
    """Normal and tangential impulse, from the rates `(c_n, c_t)` before the impact and the Delassus matrix of them."""
    (gnn, gnt), (_, gtt) = delassus
    cn, ct = rate
    divide = lambda a, b: a / jnp.where(b == 0, 1, b)
    sticks = jnp.abs(gnt) <= static * gtt
    side = jnp.where(ct == 0, _side_without_slip(gnt, sticks), jnp.sign(ct))
    slope, slip_slope = gnn - kinetic * side * gnt, gnt - kinetic * side * gtt
    stops = side * slip_slope <= 0
    first = jnp.where(stops, divide(-ct, slip_slope), 0)
    friction = jnp.where(sticks, -divide(gnt, gtt), -kinetic * jnp.sign(gnt))
    later = gnn + friction * gnt
    at_stop = cn + slope * first
    is_early = (slope > 0) & (~stops | (at_stop >= 0))
    compression = jnp.where(is_early, -divide(cn, slope), first - divide(at_stop, later))
    work = -jnp.where(is_early, cn * compression, cn * first + at_stop * compression) / 2
    rest = jnp.where(is_early & stops, first - compression, jnp.inf)
    end = compression + law.expansion(e, cn, compression, work, rest, jnp.where(is_early, slope, later), later)
    slides = jnp.where(stops, jnp.minimum(end, first), end)
    return jnp.stack([end, -kinetic * side * slides + friction * (end - slides)])


def _side_without_slip(gnt, sticks):
    """The side of Routh's diagram on which an impact without slip begins: the derivatives are those of this side.

    The slip moves away from rest where the cone does not allow it to stick; where it sticks, it stops at once.
    """
    away = jnp.where(gnt < 0, -1, 1)
    return jnp.where(sticks, -away, away)


def smooth_impact(law: AbstractRestitution, e, delassus, rate) -> Float[Array, "1"]:
    """The impulse at a contact without friction."""
    gain = delassus[0, 0]
    p = -rate[0] / gain
    never = jnp.full_like(p, jnp.inf)
    return (p + law.expansion(e, rate[0], p, -rate[0] * p / 2, never, gain, gain))[None]
