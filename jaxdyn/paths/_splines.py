"""Cubic splines through waypoints with given velocities *and* accelerations at both ends, by two virtual points.

A cubic spline through m + 1 knots leaves two conditions free, the velocities at its ends. Two more knots with free
positions, one next to each end, allow the accelerations there to be prescribed as well. Negrean et al. 2009,
equations 17 to 24, with the knots numbered 0 to m, of which 1 and m - 1 are virtual.
"""

import equinox as eqx
import jax.numpy as jnp
from jax.lax.linalg import tridiagonal_solve
from jax.typing import ArrayLike

from jaxdyn._errors import ShapeError
from jaxdyn._types import Array, Float


class Spline(eqx.Module):
    """A cubic spline given by positions and accelerations at its knots; called with t, it returns `(q, v, a)`."""

    #: increasing, s
    times: Float[Array, " knots"]
    q: Float[Array, "knots n"]
    v: Float[Array, "knots n"]
    a: Float[Array, "knots n"]

    @property
    def duration(self) -> Float[Array, ""]:
        """Time from the first knot to the last, s."""
        return self.times[-1] - self.times[0]

    def __call__(self, t) -> tuple[Float[Array, " n"], Float[Array, " n"], Float[Array, " n"]]:
        """Position, velocity and acceleration at time t (s), equations 23 and 24; at rest before and after."""
        inside = (t >= self.times[0]) & (t <= self.times[-1])
        t = jnp.clip(t, self.times[0], self.times[-1])
        k = jnp.clip(jnp.searchsorted(self.times, t, side="right"), 1, self.times.shape[0] - 1)
        h, before, after = self.times[k] - self.times[k - 1], self.times[k] - t, t - self.times[k - 1]
        q0, q1, a0, a1 = self.q[k - 1], self.q[k], self.a[k - 1], self.a[k]
        low, high = q0 / h - h * a0 / 6, q1 / h - h * a1 / 6
        q = before**3 * a0 / (6 * h) + after**3 * a1 / (6 * h) + high * after + low * before
        v = -(before**2) * a0 / (2 * h) + after**2 * a1 / (2 * h) + high - low
        a = (before * a0 + after * a1) / h
        return q, jnp.where(inside, v, 0), jnp.where(inside, a, 0)


def waypoint_spline(
    times: Float[Array, " points"],
    points: Float[Array, "points n"],
    *,
    v0: ArrayLike = 0.0,
    v1: ArrayLike = 0.0,
    a0: ArrayLike = 0.0,
    a1: ArrayLike = 0.0,
    virtual: Float[Array, "2"] | None = None,
) -> Spline:
    """The cubic spline through `points` at `times` (s) with velocities and accelerations given at both ends.

    Two knots are added at the times `virtual`, by default the middles of the first and the last interval, whose
    positions make the acceleration continuous. From `q_1 = q_0 + t_1 v_0 + t_1^2 (a_0 / 3 + a_1 / 6)`, with
    t_k the length of interval k, and the like at the end, the accelerations at inner knots solve a tridiagonal system,
    equations 17 to 21. In interval k, with the notation of the source,

        t_k a_{k-1} + 2 (t_k + t_{k+1}) a_k + t_{k+1} a_{k+1} = 6 ((q_{k+1} - q_k) / t_{k+1} - (q_k - q_{k-1}) / t_k)

    for all inner k, in which q_1 and q_{m-1} are replaced. The time of the first row and column of (18) is therefore
    `3 t_1 + 2 t_2 + t_1^2 / t_2`, where the source prints `t_1^2 / 2`.
    """
    times, points = jnp.asarray(times), jnp.asarray(points)
    if times.ndim != 1 or points.ndim != 2 or points.shape[0] != times.shape[0] or times.shape[0] < 3:
        raise ShapeError(
            f"waypoint_spline has times of shape {times.shape} and points of shape {points.shape}; expected (n,) and "
            "(n, coordinates) with n of at least 3; between two points use jaxdyn.trajopt.quintic"
        )
    dtype = jnp.result_type(times, points, float)
    times, points = times.astype(dtype), points.astype(dtype)
    row = lambda x: jnp.broadcast_to(jnp.asarray(x, dtype), points.shape[1:])
    v0, v1, a0, a1 = map(row, (v0, v1, a0, a1))
    middle = jnp.stack([times[0] + times[1], times[-2] + times[-1]]) / 2
    virtual = middle if virtual is None else jnp.asarray(virtual, dtype)
    knots = jnp.concatenate([times[:1], virtual[:1], times[1:-1], virtual[1:], times[-1:]])
    h = jnp.diff(knots)
    first, last = h[0], h[-1]
    # positions of the virtual knots without the terms of their unknown accelerations
    start = points[0] + first * v0 + first**2 * a0 / 3
    end = points[-1] - last * v1 + last**2 * a1 / 3
    q = jnp.concatenate([points[:1], start[None], points[1:-1], end[None], points[-1:]])
    slope = jnp.diff(q, axis=0) / h[:, None]
    right = 6 * jnp.diff(slope, axis=0)
    right = right.at[0].add(-first * a0).at[-1].add(-last * a1)
    lower, main, upper = _bands(h)
    inner = tridiagonal_solve(lower, main, upper, right)
    a = jnp.concatenate([a0[None], inner, a1[None]])
    q = q.at[1].add(first**2 * a[1] / 6).at[-2].add(last**2 * a[-2] / 6)
    v = h[:, None] * (2 * a[1:] + a[:-1]) / 6 + jnp.diff(q, axis=0) / h[:, None]
    return Spline(knots, q, jnp.concatenate([v0[None], v]), a)


def _bands(h):
    """The three diagonals of the matrix of (17), with the terms of the virtual knots."""
    main = 2 * (h[:-1] + h[1:])
    lower, upper = h[:-1].at[0].set(0), h[1:].at[-1].set(0)
    first, last = h[0], h[-1]
    main = main.at[0].add(first + first**2 / h[1]).at[-1].add(last + last**2 / h[-2])
    lower = lower.at[1].add(-(first**2) / h[1])
    upper = upper.at[-2].add(-(last**2) / h[-2])
    return lower, main, upper
