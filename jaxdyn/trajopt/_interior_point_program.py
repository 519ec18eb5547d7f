"""A transcribed problem as a nonlinear program with blocks in time: its values and derivatives."""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._types import Array, Float
from jaxdyn.trajopt._interior_point_instants import curvatures, everywhere
from jaxdyn.trajopt._problem import Problem
from jaxdyn.trajopt._problem_dynamics import AbstractImplicit
from jaxdyn.trajopt._riccati import Blocks
from jaxdyn.trajopt._small_matrices import inverse
from jaxdyn.trajopt._transcription import (
    AbstractTranscription,
    Interval,
    Layout,
    Point,
    end_residual,
    node,
    node_guess,
    path_limits,
    path_rows,
    point_shapes,
    said,
    seen,
    start_residual,
    state_limits,
)


class Ranged(NamedTuple):
    """Quantities with ranges: all states, all inner variables, rows of intervals, rows of the end."""

    s: Any
    m: Any
    rows: Any
    end: Any


class Values(NamedTuple):
    """Cost, equations (zero at a solution) and ranged quantities at a point."""

    cost: Any
    #: (N, c)
    c: Any
    b0: Any
    bN: Any
    ranged: Ranged


class Slopes(NamedTuple):
    """First derivatives."""

    #: of the cost, in z of each interval and in the last state
    cost: Any
    cost_end: Any
    #: of equations and rows of intervals, (N, c, z) and (N, r, z)
    c: Any
    rows: Any
    b0: Any
    bN: Any
    end: Any


class Weights(NamedTuple):
    """Multipliers of all equations and of the ranged quantities (upper less lower)."""

    c: Any
    b0: Any
    bN: Any
    ranged: Ranged


class Implicit(NamedTuple):
    """Unknowns of dynamics, their derivatives, and what an error of their equations does to what the dynamics say."""

    unknowns: Any
    turn: Any
    lift: Any


class Sight(NamedTuple):
    """Value and derivatives of a problem at an instant."""

    #: (t, x, u)
    at: Any
    value: Any
    slope: Any
    #: None for dynamics that are differentiated as they are
    implicit: Any


class Seen(NamedTuple):
    """All instants."""

    #: those of the intervals, `(N, K, ...)`
    inner: Sight
    #: the start, or None where its equations do not ask
    start: Any


class _Recorder:
    """A field that keeps the instants it is asked for."""

    def __init__(self, program: "Program", field):
        self.program, self.field, self.at = program, field, []

    def __call__(self, t, x, u) -> Point:
        p = jnp.concatenate([jnp.atleast_1d(t).astype(x.dtype), x, u])
        self.at.append(p)
        return self.program.split(self.field(len(self.at) - 1, p))


class Program(eqx.Module):
    """The nonlinear program that a transcription makes of a problem on a mesh.

    Derivatives of an interval are assembled from those of the problem at single instants, which are evaluated all at
    once: first ones by the chain rule along a linear model of the problem at each instant, second ones with the
    problem's second derivatives, weighted with the multipliers that arrive there, added to that model.
    """

    problem: Problem
    transcription: AbstractTranscription
    #: nodes in parts of the horizon, from 0 to 1
    mesh: Float[Array, " nodes"]

    @property
    def layout(self) -> Layout:
        """Sizes and places of the variables."""
        return self.transcription.layout(self.problem)

    @property
    def intervals(self) -> Interval:
        """All intervals."""
        return Interval(self.mesh[:-1], self.mesh[1:])

    def point(self, p):
        """The problem at one instant `p = (t, x, u)`, as a vector."""
        return _vector(seen(self.problem, *self._parts(p)))

    def _parts(self, p):
        nx = self.problem.nx
        return p[0], p[1 : 1 + nx], p[1 + nx :]

    def _told(self, t, x, u):
        """Cost and path constraints."""
        return jnp.append(self.problem.running_cost(t, x, u), path_rows(self.problem, t, x, u))

    def _spoken(self, t, x, u, y):
        """What implicit dynamics say for any unknowns, and the equations of these."""
        d = self.problem.dynamics
        assert isinstance(d, AbstractImplicit)
        answer, residual = d.implicit(t, x, u, y)
        return _vector(said(x, answer)), residual

    def _answers(self, t, x, u, y):
        """Derivatives of these, time and controls apart: they enter by few parts of the dynamics."""
        both = jax.jacfwd(lambda *a: (self._spoken(*a),) * 2, (1, 3), has_aux=True)
        ((value_x, value_y), (r_x, r_y)), (value, _) = both(t, x, u, y)
        (value_t, r_t), (value_u, r_u) = (jax.jacfwd(self._spoken, k)(t, x, u, y) for k in (0, 2))
        column = lambda a: a[:, None]
        value_p = jnp.concatenate([column(value_t), value_x, value_u], axis=1)
        return value, value_p, value_y, jnp.concatenate([column(r_t), r_x, r_u], axis=1), r_y

    def _sight(self, p) -> Sight:
        d = self.problem.dynamics
        if not isinstance(d, AbstractImplicit) or not d.affine:
            slope, value = jax.jacfwd(lambda p: (self.point(p),) * 2, has_aux=True)(p)
            return Sight(p, value, slope, None)
        t, x, u = self._parts(p)
        y = d.unknowns(t, x, u)
        answer, by_p, by_y, r_p, r_y = self._answers(t, x, u, y)
        told, known = jax.jacfwd(lambda p: (self._told(*self._parts(p)),) * 2, has_aux=True)(p)
        back = inverse(r_y)
        turn = -back @ r_p
        slope = by_p + by_y @ turn
        join = lambda answer, told: jnp.concatenate([answer[: x.shape[0]], told, answer[x.shape[0] :]])
        return Sight(p, join(answer, known), join(slope, told), Implicit(y, turn, by_y @ back))

    def _curvature(self, sight: Sight, weight):
        """Second derivatives of `weight . point`; see `AbstractImplicit`."""
        if sight.implicit is None:
            return jax.hessian(lambda p: weight @ self.point(p))(sight.at)
        nx, at = self.problem.nx, sight.implicit
        n = weight.shape[0] - at.lift.shape[0]
        told, spoken = weight[nx : nx + n], jnp.concatenate([weight[:nx], weight[nx + n :]])
        multipliers = spoken @ at.lift

        def lagrangian(*parts):
            value, residual = self._spoken(*parts)
            return spoken @ value - multipliers @ residual

        slope = jax.grad(lagrangian, (0, 1, 2, 3))
        parts = *self._parts(sight.at), at.unknowns
        t, x = (jax.jacfwd(slope, k)(*parts) for k in (0, 1))
        tail = jnp.zeros((sight.at.shape[0] - 1 - nx,) * 2, weight.dtype)
        rows = [[t[0][None, None], t[1][None], t[2][None]], [t[1][:, None], x[1], x[2].T], [t[2][:, None], x[2], tail]]
        own = jnp.concatenate([jnp.concatenate(row, axis=1) for row in rows])
        mixed = jnp.concatenate([t[3][:, None], x[3], jnp.zeros((x[3].shape[0], tail.shape[0]), own.dtype)], axis=1)
        mixed = mixed.T @ at.turn
        return own + mixed + mixed.T + jax.hessian(lambda p: told @ self._told(*self._parts(p)))(sight.at)

    def split(self, value) -> Point:
        """The parts of such a vector."""
        shapes = point_shapes(self.problem)
        ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
        return Point(*(y.reshape(shape) for y, shape in zip(jnp.split(value, ends), shapes, strict=True)))

    def interval(self, at, z, field):
        """`(cost, equations, rows)` of one interval at `z = (s, m, s')`, and the instants it looked at."""
        ns, recorder = self.layout.ns, _Recorder(self, field)
        s, m, s1 = z[:ns], z[ns : z.shape[0] - ns], z[z.shape[0] - ns :]
        return self.transcription.interval(self.problem, self.layout, at, s, m, s1, recorder), jnp.stack(recorder.at)

    def end(self, s):
        """`(cost, equations, rows)` of the end."""
        at = node(self.problem, self.layout, jnp.ones((), s.dtype), s)
        rows = path_rows(self.problem, at.t, at.x, at.u) if self.layout.nu else jnp.zeros(0, s.dtype)
        return self.problem.final_cost(at.t, at.x), end_residual(self.problem, self.layout, s), rows

    def _last(self, s):
        """The instant of the end."""
        at = node(self.problem, self.layout, jnp.ones((), s.dtype), s)
        return jnp.concatenate([at.t[None], at.x, at.u])

    def start(self, s, field):
        """Equations of the start, and the instant they looked at."""
        recorder = _Recorder(self, field)
        return start_residual(self.problem, self.layout, s, recorder), recorder.at[0] if recorder.at else None

    def limits(self) -> tuple[Ranged, Ranged]:
        """Least and greatest values of the ranged quantities."""
        p, layout, count = self.problem, self.layout, self.mesh.shape[0]
        wide = lambda row: jnp.broadcast_to(row, (count - 1, *row.shape))
        states = state_limits(p, layout, count)
        inner = [wide(x) for x in self.transcription.inner_limits(p, layout)]
        rows = [wide(x) for x in self.transcription.row_limits(p, layout)]
        ends = path_limits(p) if layout.nu else (jnp.zeros(0, p.dtype),) * 2
        low, high = (Ranged(*group) for group in zip(states, inner, rows, ends, strict=True))
        return low, high

    def guess(self):
        """First values of s and m."""
        s = node_guess(self.problem, self.layout, self.mesh)
        return s, jax.vmap(lambda at: self.transcription.inner_guess(self.problem, self.layout, at))(self.intervals)

    def _nothing(self, k, p):
        """A field that tells nothing."""
        return jnp.zeros(sum(math.prod(shape) for shape in point_shapes(self.problem)), p.dtype)

    def _instants(self, s, m):
        """All instants: those of the intervals, and that of the start or None."""
        look = self._nothing if self.transcription.explicit else lambda k, p: self.point(p)
        at = jax.vmap(lambda at, z: self.interval(at, z, look)[1])(self.intervals, joined(s, m))
        return at, self.start(s[0], self._nothing)[1]

    def values(self, s, m) -> Values:
        """Everything at a point."""
        z = joined(s, m)
        if self.transcription.explicit:
            seen, first = everywhere(self.point, self.transcription.nodes_first, *self._instants(s, m))
            look = lambda at, z, f: self.interval(at, z, lambda k, p: f[k])[0]
            cost, c, rows = jax.vmap(look)(self.intervals, z, seen)
        else:
            look = lambda at, z: self.interval(at, z, lambda k, p: self.point(p))[0]
            cost, c, rows = jax.vmap(look)(self.intervals, z)
            first = None
        last, bN, end = self.end(s[-1])
        b0 = self.start(s[0], lambda k, p: self.point(p) if first is None else first)[0]
        return Values(cost.sum() + last, c, b0, bN, Ranged(s, m, rows, end))

    def seen(self, s, m) -> Seen:
        """The problem and its first derivatives at all instants."""
        return Seen(*everywhere(self._sight, self.transcription.nodes_first, *self._instants(s, m)))

    def slopes(self, s, m, seen: Seen) -> tuple[Values, Slopes]:
        """Values and first derivatives at a point."""

        def interval(at, z, around):
            out, _ = self.interval(at, z, lambda k, p: _linear(_nth(around, k), p))
            return out, out

        def start(s):
            out = self.start(s, lambda k, p: _linear(seen.start, p))[0]
            return out, out

        both = jax.jacfwd(interval, 1, has_aux=True)
        (dcost, dc, drows), (cost, c, rows) = jax.vmap(both)(self.intervals, joined(s, m), seen.inner)
        twice = lambda f: lambda x: (f(x),) * 2
        (end_cost, dbN, dend), (last, bN, end) = jax.jacfwd(twice(self.end), has_aux=True)(s[-1])
        db0, b0 = jax.jacfwd(start, has_aux=True)(s[0])
        values = Values(cost.sum() + last, c, b0, bN, Ranged(s, m, rows, end))
        return values, Slopes(dcost, end_cost, dc, drows, db0, dbN, dend)

    def blocks(self, s, m, seen: Seen, d: Slopes, w: Weights, scale) -> Blocks:
        """Second derivatives of the Lagrangian and first ones of the equations."""

        def lagrangian(at, z, extra, around, c, y):
            field = lambda k, p: _linear(_nth(around, k), p) + extra[k]
            (cost, equations, rows), at = self.interval(at, z, field)
            return scale * cost + c @ equations + y @ rows, at

        def first(s, extra):
            equations, at = self.start(s, lambda k, p: _linear(seen.start, p) + extra)
            return w.b0 @ equations, at

        def last(s):
            cost, equations, rows = self.end(s)
            return scale * cost + w.bN @ equations + w.ranged.end @ rows

        z, c, y = joined(s, m), w.c, w.ranged.rows
        arrive = jax.vmap(jax.grad(lagrangian, 2, has_aux=True))
        weight, _ = arrive(self.intervals, z, jnp.zeros_like(seen.inner.value), seen.inner, c, y)
        extra = None if seen.start is None else jnp.zeros_like(seen.start.value)
        weight_first = None if extra is None else jax.grad(first, 1, has_aux=True)(s[0], extra)[0]
        shared = self.transcription.nodes_first
        curve, curve_first, curve_last = curvatures(self._curvature, shared, seen, (weight, weight_first))
        looked = [j for j in range(weight.shape[1]) if j != 1 or not shared]
        H = jax.vmap(_second(lagrangian, looked))(self.intervals, z, curve, jnp.zeros_like(weight), seen.inner, c, y)
        H0 = _second(lambda _, s, extra: first(s, extra))(None, s[0], curve_first, extra)
        HN = jax.jacfwd(jax.jacrev(last))(s[-1])
        if curve_last is not None:
            moves = jax.jacfwd(self._last)(s[-1])
            HN = HN + moves.T @ curve_last @ moves
        return Blocks(H, d.c, H0, d.b0, HN, d.bN)


def _second(f, looked=None):
    """Second derivatives of a sum in its second argument, with those `curve` at the instants that it looks at.

    `f(at, z, ...)` returns the sum, made with a linear model of the problem at each instant, and the instants, of
    which `curve` has those that are `looked` at, by default all.
    """

    def out(at, z, curve, *rest):
        own = jax.jacfwd(jax.jacrev(lambda z: f(at, z, *rest)[0]))(z)
        if curve is None:
            return own
        moves = jax.jacfwd(lambda z: f(at, z, *rest)[1])(z)
        moves = moves if looked is None else jnp.stack([moves[j] for j in looked])
        half = curve @ moves
        flat = lambda x: x.reshape(-1, z.shape[0])
        return own + flat(moves).T @ flat(half)

    return out


def _vector(point):
    return jnp.concatenate([jnp.ravel(x) for x in point])


def _nth(sights: Sight, k: int) -> Sight:
    return jax.tree.map(lambda x: x[k], sights)


def _linear(around: Sight, p):
    return around.value + around.slope @ (p - around.at)


def joined(s, m):
    """`z = (s, m, s')` of all intervals."""
    return jnp.concatenate([s[:-1], m, s[1:]], axis=1)


def gradients(d: Slopes, w: Weights):
    """Derivatives of the Lagrangian in z of each interval, in the first and in the last state."""
    ns = d.bN.shape[1]
    g = d.cost + jnp.einsum("kij,ki->kj", d.c, w.c) + jnp.einsum("kij,ki->kj", d.rows, w.ranged.rows)
    g = g.at[:, :-ns].add(jnp.concatenate([w.ranged.s[:-1], w.ranged.m], axis=1))
    gN = d.cost_end + d.bN.T @ w.bN + d.end.T @ w.ranged.end + w.ranged.s[-1]
    return g, d.b0.T @ w.b0, gN


def stationarity(d: Slopes, w: Weights):
    """The same for each variable once: `(N + 1, s)` and `(N, m)`."""
    ns = d.bN.shape[1]
    g, g0, gN = gradients(d, w)
    s = jnp.concatenate([g[:, :ns], gN[None]]).at[1:].add(g[:, -ns:])
    return s.at[0].add(g0), g[:, ns:-ns]
