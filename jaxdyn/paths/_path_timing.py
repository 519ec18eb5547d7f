"""Time-optimal path parameterisation under limits of effort and velocity, by reachability analysis.

On a path `q(s)`, s from 0 to 1, with `x = (ds/dt)^2` and `u = d^2s/dt^2`, the equations of motion are linear:

    tau = a(s) u + b(s) x + c(s),   a = M q',   b = M q'' + C(q, q') q',   c = g(q),   dx/ds = 2 u

On a grid of s, backward from the end, the *controllable set* of x at each point is an interval: the values from which
the interval of the next point is reachable within the limits. Each limit of effort bounds u by two lines over x;
where every lower line is below every upper line, u exists, and each pair of lines cuts x on one side. Forward from
the start, the largest u that stays in the next interval gives the fastest motion. Effort limits hold at both ends of
each interval of the grid (Pham and Pham, "A new approach to time-optimal path parameterization based on reachability
analysis", IEEE T-RO 34(3), 2018, whose small linear programs become comparisons of lines here; Bobrow, Dubowsky and
Gibson 1985).
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdyn._errors import ConvergenceError, ShapeError
from jaxdyn._numerics import as_function
from jaxdyn._status import Status
from jaxdyn._types import Array, Config, Float, Int, Scalar, Velocity
from jaxdyn.dynamics import passive_forces, rnea
from jaxdyn.model import Model


class TimingStatus(Status):
    """How the timing of a path ended."""

    FOUND = 0, "the timing satisfies the limits"
    PATH_INFEASIBLE = (
        1,
        "at `worst` no velocity satisfies the limits and reaches the end; gravity alone may exceed the effort limits",
    )
    START_INFEASIBLE = 2, "the end is not reachable from the velocity required at the start"
    NOT_FINITE = 3, "the path, the model or a limit is not a number somewhere"


class TimedPath(eqx.Module):
    """A path with its timing; called with t, it returns `(q, v, a)`, a reference for control laws."""

    #: `s -> (nq,)`
    path: Callable[[Scalar], Config]
    #: grid from 0 to 1
    s: Float[Array, " points"]
    #: `(ds/dt)^2` on the grid, 1/s^2
    x: Float[Array, " points"]
    #: greatest x of the controllable sets; the phase plane's limit curve
    limit: Float[Array, " points"]
    #: time at each point of the grid, s
    times: Float[Array, " points"]
    #: efforts at the starts of the intervals, N m or N
    effort: Float[Array, "intervals nv"]
    #: a `TimingStatus`
    status: Int[Array, ""]
    #: place on the grid where it fails, or the last one
    worst: Float[Array, ""]

    @property
    def duration(self) -> Float[Array, ""]:
        """Time from start to end, s; infinite if the path is infeasible."""
        return self.times[-1]

    def checked(self) -> "TimedPath":
        """Returns this path; raises `ConvergenceError` with the place of failure (concrete values only)."""
        status = TimingStatus(int(self.status))
        if status != TimingStatus.FOUND:
            raise ConvergenceError(
                f"no timing of the path satisfies the limits: {status.name} at s = {float(self.worst):.4g}. Raise the "
                "effort limits, or change the path there."
            )
        return self

    def __call__(self, t) -> tuple[Config, Velocity, Velocity]:
        """Configuration, velocity and acceleration at time t (s); at rest before and after."""
        inside = (t >= self.times[0]) & (t <= self.times[-1])
        t = jnp.clip(t, self.times[0], self.times[-1])
        k = jnp.clip(jnp.searchsorted(self.times, t, side="right") - 1, 0, self.s.shape[0] - 2)
        since = t - self.times[k]
        rate0 = _root(self.x[k])
        push = (self.x[k + 1] - self.x[k]) / (2 * (self.s[k + 1] - self.s[k]))
        s = jnp.clip(self.s[k] + since * (rate0 + since * push / 2), self.s[k], self.s[k + 1])
        rate = rate0 + push * since
        q, slope, bend = _along(self.path, s)
        return q, jnp.where(inside, slope * rate, 0), jnp.where(inside, bend * rate**2 + slope * push, 0)


class _Lines(NamedTuple):
    """Limits `lower <= a u + b x + c <= upper`, one a row."""

    a: Array
    b: Array
    lower: Array
    upper: Array


def _root(x):
    return jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1)), 0)


def _along(path, s):
    """Position, and its first and second derivatives with respect to s."""
    one = jnp.ones_like(s)
    first = lambda s: jax.jvp(path, (s,), (one,))
    (q, slope), (_, bend) = jax.jvp(first, (s,), (one,))
    return q, slope, bend


def _coefficients(model: Model, path, s, passive: bool):
    """a, b and c of the effort, and the slope of the path."""
    q, slope, bend = _along(path, s)
    still = jnp.zeros_like(slope)
    weight = rnea(model, q, still, still)
    c = weight - passive_forces(model, q, still) if passive else weight
    return rnea(model, q, still, slope) - weight, rnea(model, q, slope, bend) - weight, c, slope


def _bands(lines: _Lines):
    """Lower and upper lines `u = level + grade x` of each limit, and the interval of x of limits without u."""
    size = jnp.abs(lines.a) + jnp.abs(lines.b)
    flat = jnp.abs(lines.a) <= 1e3 * float(jnp.finfo(lines.a.dtype).eps) * jnp.where(size > 0, size, 1)
    a = jnp.where(flat, 1, lines.a)
    open_below, open_above = jnp.isinf(lines.lower), jnp.isinf(lines.upper)
    lower, upper = jnp.where(open_below, 0, lines.lower), jnp.where(open_above, 0, lines.upper)
    turned = a < 0
    low, high = jnp.where(turned, upper, lower) / a, jnp.where(turned, lower, upper) / a
    low = jnp.where(flat | jnp.where(turned, open_above, open_below), -jnp.inf, low)
    high = jnp.where(flat | jnp.where(turned, open_below, open_above), jnp.inf, high)
    grade = jnp.where(flat, 0, -lines.b / a)
    steep = flat & (lines.b != 0)
    b = jnp.where(steep, lines.b, 1)
    falls = b < 0
    least, most = jnp.where(falls, upper, lower) / b, jnp.where(falls, lower, upper) / b
    least = jnp.max(jnp.where(steep & ~jnp.where(falls, open_above, open_below), least, -jnp.inf))
    most = jnp.min(jnp.where(steep & ~jnp.where(falls, open_below, open_above), most, jnp.inf))
    impossible = jnp.any(flat & ~steep & ((lines.lower > 0) | (lines.upper < 0)))
    return grade, low, high, jnp.where(impossible, jnp.inf, least), most


def _controllable(bands, after, step, cap):
    """The interval of x from which the interval `after` is reachable in one step, bounded by `cap`."""
    grade, low, high, least, most = bands
    back = 1 / (2 * step)
    grade = jnp.append(grade, -back)
    low, high = jnp.append(low, after[0] * back), jnp.append(high, after[1] * back)
    # every lower line has to be below every upper one: low_i + grade_i x <= high_j + grade_j x
    slope = grade[:, None] - grade[None, :]
    room = high[None, :] - low[:, None]
    open_ended = jnp.isinf(room)
    slope, room = jnp.where(open_ended, 0, slope), jnp.where(open_ended, 1, room)
    scale = jnp.max(jnp.abs(grade))
    level = jnp.abs(slope) <= 1e2 * float(jnp.finfo(grade.dtype).eps) * scale
    bound = room / jnp.where(level, 1, slope)
    top = jnp.min(jnp.where(~level & (slope > 0), bound, jnp.inf))
    bottom = jnp.max(jnp.where(~level & (slope < 0), bound, -jnp.inf))
    contradiction = jnp.any(level & (room < 0))
    low, high = jnp.maximum(jnp.maximum(bottom, least), 0), jnp.minimum(jnp.minimum(top, most), cap)
    empty = contradiction | ~(low <= high)
    return jnp.where(empty, jnp.nan, low), jnp.where(empty, jnp.nan, high)


def _fastest(bands, x, after, step):
    """The next x under the largest feasible u."""
    grade, low, high, _, _ = bands
    push = jnp.min(high + grade * x)
    least = jnp.max(low + grade * x)
    push = jnp.maximum(push, least)
    return jnp.clip(x + 2 * step * push, after[0], after[1])


def time_path(
    model: Model,
    path: Callable[[Scalar], Config],
    s: Float[Array, " points"] | None = None,
    *,
    effort: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    velocity: ArrayLike | None = None,
    start_rate: ArrayLike = 0.0,
    end_rate: ArrayLike = 0.0,
    passive: bool = True,
) -> TimedPath:
    """Time-optimal timing of `path(s)`, s from 0 to 1, under limits of effort and velocity.

    Arguments:

    * `path`: a function `s -> (nq,)`, twice differentiable by JAX, of a robot whose coordinates are vectors.
    * `s`: the grid, increasing from 0 to 1, by default 201 equal points. The error falls with the square of its
      intervals, and with the first power where limits switch.
    * `effort`: the largest absolute efforts `(nv,)`, or a pair of lower and upper ones, by default the model's limits.
      `velocity`: the same for joint velocities, symmetric.
    * `start_rate`, `end_rate`: `ds/dt` at the ends, 1/s.
    * `passive`: include springs and static friction (`passive_forces` at zero velocity) in the effort. Damping is not
      linear in x and is neglected.

    Returns a `TimedPath`, differentiable with respect to the path, the model and the limits while the active limits do
    not change.
    """
    path = as_function(path)
    if model.nq != model.nv:
        raise ShapeError(
            f"time_path needs vector coordinates (nq = nv); this model has nq {model.nq} and nv {model.nv}"
        )
    grid = jnp.linspace(0.0, 1.0, 201, dtype=model.dtype) if s is None else jnp.asarray(s)
    if grid.ndim != 1 or grid.shape[0] < 3:
        raise ShapeError(f"the grid s has shape {grid.shape}, expected (n,) with n of at least 3")
    given = model.limits.effort if effort is None else effort
    lower, upper = given if isinstance(given, tuple) else (-jnp.asarray(given), jnp.asarray(given))
    speed = jnp.asarray(model.limits.velocity if velocity is None else velocity)
    lower, upper, speed = (jnp.broadcast_to(x, (model.nv,)).astype(grid.dtype) for x in (lower, upper, speed))
    ends = tuple(jnp.asarray(x, grid.dtype) ** 2 for x in (start_rate, end_rate))
    return _solve(model, path, grid, (lower, upper, speed), ends, passive)


@eqx.filter_jit
def _solve(model: Model, path, grid, limits, ends, passive: bool) -> TimedPath:
    lower, upper, speed = limits
    a, b, c, slope = jax.vmap(lambda s: _coefficients(model, path, s, passive))(grid)
    pairs = lambda x: (x[:-1], x[1:])
    bands = jax.vmap(_interval_bands)(pairs(a), pairs(b), pairs(lower - c), pairs(upper - c), jnp.diff(grid))
    rows = _Rows(bands, _speed_cap(slope, speed), jnp.diff(grid))
    sets, x = _sweeps(rows, ends)
    return _make_timed_path(path, grid, sets, x, ends, (a, b, c))


class _Rows(NamedTuple):
    bands: tuple[Array, ...]
    cap: Array
    step: Array


def _interval_bands(a, b, lower, upper, step):
    """Limits at both ends of an interval as lines of x at its start and of u on it."""
    (a0, a1), (b0, b1) = a, b
    return _bands(_Lines(*map(jnp.concatenate, ((a0, a1 + 2 * step * b1), (b0, b1), lower, upper))))


def _speed_cap(slope, speed):
    moves = (slope != 0) & jnp.isfinite(speed)
    ratio = jnp.where(moves, speed, 1) / jnp.where(moves, slope, 1)
    cap = jnp.min(jnp.where(moves, ratio**2, jnp.inf), -1)
    return jnp.where(jnp.any(jnp.isnan(slope), -1), jnp.nan, cap)


def _sweeps(rows: _Rows, ends):
    """Controllable sets, backward, and the fastest x through them, forward."""

    def back(after, row):
        now = _controllable(row.bands, after, row.step, row.cap)
        return now, now

    last = (ends[1], jnp.where(ends[1] <= rows.cap[-1], ends[1], jnp.nan))
    steps = _Rows(rows.bands, rows.cap[:-1], rows.step)
    _, sets = jax.lax.scan(back, last, steps, reverse=True)
    sets = tuple(jnp.append(s, e) for s, e in zip(sets, last, strict=True))

    def forth(x, row):
        bands, step, after = row
        new = _fastest(bands, x, after, step)
        return new, new

    after = tuple(s[1:] for s in sets)
    _, x = jax.lax.scan(forth, ends[0], (rows.bands, rows.step, after))
    return sets, jnp.concatenate([ends[0][None], x])


def _make_timed_path(path, grid, sets, x, ends, coefficients) -> TimedPath:
    a, b, c = coefficients
    finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(y)) for y in (a, b, c)]))
    lost = ~(sets[0] <= sets[1])
    blocked = jnp.any(lost)
    slack = 1e-9 * (1 + ends[0])
    late = (ends[0] > sets[1][0] + slack) | (ends[0] < sets[0][0] - slack)
    code = TimingStatus
    status = jnp.where(late, code.START_INFEASIBLE, code.FOUND)
    status = jnp.where(blocked, code.PATH_INFEASIBLE, status)
    status = jnp.where(finite, status, code.NOT_FINITE)
    fine = status == code.FOUND
    x = jnp.where(fine, x, 1)
    rates = _root(x)
    pair = rates[1:] + rates[:-1]
    times = jnp.cumsum(2 * jnp.diff(grid) / jnp.where(pair > 0, pair, 1e-300 if x.dtype == jnp.float64 else 1e-30))
    times = jnp.concatenate([jnp.zeros_like(times[:1]), jnp.where(fine, times, jnp.inf)])
    push = jnp.diff(x) / (2 * jnp.diff(grid))
    efforts = a[:-1] * push[:, None] + b[:-1] * x[:-1, None] + c[:-1]
    size = grid.shape[0]
    place = jnp.where(blocked, size - 1 - jnp.argmax(lost[::-1]), jnp.where(late, 0, size - 1))
    limit = jnp.where(lost, 0, sets[1])
    freeze = lambda y: jax.lax.stop_gradient(y).astype(np.int32)
    return TimedPath(path, grid, x, limit, times, efforts, freeze(status), grid[place])
