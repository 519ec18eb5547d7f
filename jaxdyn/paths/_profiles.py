"""Point-to-point profiles: quintic polynomials and trapezoidal velocity profiles.

A profile called with a time (s) returns `(q, v, a)`, a reference for the laws of `jaxdyn.control`. It is at rest before
the start and after the end.
"""

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._types import Array, Float

Row = Float[Array, " n"]


def _row(x, like):
    return jnp.broadcast_to(jnp.asarray(x, like.dtype), like.shape)


def _rows(*points):
    points = [jnp.atleast_1d(jnp.asarray(x)) for x in points]
    dtype = jnp.result_type(float, *points)
    return tuple(jnp.broadcast_arrays(*(x.astype(dtype) for x in points)))


class Quintic(eqx.Module):
    """`q(t) = sum of coefficients[k] t^k`, k from 0 to 5, for `0 <= t <= duration`."""

    #: one row a power
    coefficients: Float[Array, "6 n"]
    #: s
    duration: Float[Array, ""]

    def __call__(self, t) -> tuple[Row, Row, Row]:
        """Position, velocity and acceleration at time t (s)."""
        c = self.coefficients
        inside = (t >= 0) & (t <= self.duration)
        t = jnp.clip(t, 0, self.duration)
        q = c[0] + t * (c[1] + t * (c[2] + t * (c[3] + t * (c[4] + t * c[5]))))
        v = c[1] + t * (2 * c[2] + t * (3 * c[3] + t * (4 * c[4] + t * 5 * c[5])))
        a = 2 * c[2] + t * (6 * c[3] + t * (12 * c[4] + t * 20 * c[5]))
        return q, jnp.where(inside, v, 0), jnp.where(inside, a, 0)


def quintic(
    q0: Row,
    q1: Row,
    duration: ArrayLike,
    *,
    v0: ArrayLike = 0.0,
    v1: ArrayLike = 0.0,
    a0: ArrayLike = 0.0,
    a1: ArrayLike = 0.0,
) -> Quintic:
    """Quintic polynomial with given positions, velocities and accelerations at both ends.

    Arguments:

    * `q0`, `q1`: positions at start and end, `(n,)`.
    * `duration`: s.
    * `v0`, `v1`, `a0`, `a1`: velocities and accelerations at start and end, numbers or `(n,)`.

    Siciliano, Sciavicco, Villani and Oriolo 2009, section 4.2.1.
    """
    q0, q1 = _rows(q0, q1)
    v0, v1, a0, a1 = (_row(x, q0) for x in (v0, v1, a0, a1))
    duration = jnp.asarray(duration, q0.dtype)
    d, w, b = q1 - q0 - duration * v0 - duration**2 * a0 / 2, v1 - v0 - duration * a0, a1 - a0
    c3 = (20 * d - 8 * duration * w + duration**2 * b) / (2 * duration**3)
    c4 = (-30 * d + 14 * duration * w - 2 * duration**2 * b) / (2 * duration**4)
    c5 = (12 * d - 6 * duration * w + duration**2 * b) / (2 * duration**5)
    return Quintic(jnp.stack([q0, v0, a0 / 2, c3, c4, c5]), duration)


def quintic_duration(q0: Row, q1: Row, velocity: ArrayLike, acceleration: ArrayLike) -> Float[Array, ""]:
    """Shortest duration of a quintic from rest to rest under limits of velocity and acceleration.

    Its largest velocity is `15/8 d / T` at the middle, its largest acceleration `10/sqrt(3) d / T^2`; the slowest
    coordinate determines the duration.
    """
    q0, q1 = _rows(q0, q1)
    distance = jnp.abs(q1 - q0)
    by_velocity = 15 / 8 * distance / _row(velocity, q0)
    by_acceleration = _safe_sqrt(10 / 3**0.5 * distance / _row(acceleration, q0))
    return jnp.max(jnp.maximum(by_velocity, by_acceleration))


class TrapezoidProfile(eqx.Module):
    """Constant acceleration, a plateau of velocity, constant deceleration, each coordinate from rest to rest."""

    q0: Row
    q1: Row
    #: velocity of the plateau, or the largest one if there is no plateau, with its sign
    peak: Row
    #: length of the acceleration and of the deceleration, s
    rise: Row
    #: time at which each coordinate arrives, s
    arrival: Row

    @property
    def duration(self) -> Float[Array, ""]:
        """Time at which the last coordinate arrives, s."""
        return jnp.max(self.arrival)

    @property
    def plateau(self) -> Row:
        """Length of the plateau, s; zero where the profile is a triangle."""
        return self.arrival - 2 * self.rise

    def __call__(self, t) -> tuple[Row, Row, Row]:
        """Position, velocity and acceleration at time t (s)."""
        moves = self.rise > 0
        rise = jnp.where(moves, self.rise, 1)
        slope = jnp.where(moves, self.peak / rise, 0)
        left = jnp.clip(self.arrival - t, 0, None)
        t = jnp.clip(t, 0, self.arrival)
        first, last = t < self.rise, left < self.rise
        begun = slope * t**2 / 2
        cruised = self.peak * (t - self.rise / 2)
        remaining = slope * left**2 / 2
        q = jnp.where(last, self.q1 - remaining, self.q0 + jnp.where(first, begun, cruised))
        v = jnp.where(last, slope * left, jnp.where(first, slope * t, self.peak))
        a = jnp.where(last, -slope, jnp.where(first, slope, 0))
        inside = (t > 0) & (left > 0)
        return q, jnp.where(inside, v, 0), jnp.where(inside, a, 0)


def trapezoidal_profile(q0: Row, q1: Row, velocity: ArrayLike, acceleration: ArrayLike) -> TrapezoidProfile:
    """Trapezoidal velocity profile from rest to rest: each coordinate is as fast as its limits allow.

    Where `|q1 - q0| < velocity^2 / acceleration` the limit of velocity is not reached: two times
    `sqrt(|q1 - q0| / acceleration)`, without a plateau. Siciliano et al. 2009, section 4.2.1.
    """
    q0, q1 = _rows(q0, q1)
    velocity, acceleration = _row(velocity, q0), _row(acceleration, q0)
    distance = jnp.abs(q1 - q0)
    peak = jnp.minimum(velocity, _safe_sqrt(distance * acceleration))
    rise = peak / acceleration
    cruise = jnp.where(peak > 0, distance / jnp.where(peak > 0, peak, 1), 0) - rise
    return TrapezoidProfile(q0, q1, jnp.sign(q1 - q0) * peak, rise, 2 * rise + cruise)


def synchronised_trapezoidal(
    q0: Row, q1: Row, velocity: ArrayLike, acceleration: ArrayLike, duration: ArrayLike | None = None
) -> TrapezoidProfile:
    """Trapezoidal profiles with a common arrival time, by default that of the slowest; the others cruise more slowly.

    With its acceleration b a coordinate at a distance d that takes T cruises at `(b T - sqrt((b T)^2 - 4 b d)) / 2`.
    A `duration` (s) below the least one is raised to it.
    """
    q0, q1 = _rows(q0, q1)
    acceleration = _row(acceleration, q0)
    least = trapezoidal_profile(q0, q1, velocity, acceleration).duration
    total = least if duration is None else jnp.maximum(least, jnp.asarray(duration, q0.dtype))
    distance = jnp.abs(q1 - q0)
    reach = acceleration * total
    peak = 2 * distance * acceleration / _positive(reach + _safe_sqrt(reach**2 - 4 * acceleration * distance))
    rise = peak / acceleration
    arrival = jnp.where(distance > 0, total, 0)
    return TrapezoidProfile(q0, q1, jnp.sign(q1 - q0) * peak, rise, arrival)


def _positive(x):
    return jnp.where(x > 0, x, 1)


def _safe_sqrt(x):
    """Square root whose derivative is zero at and below zero."""
    return jnp.where(x > 0, jnp.sqrt(_positive(x)), 0)
