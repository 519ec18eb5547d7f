"""A transcribed problem as a nonlinear program with blocks in time: its values and derivatives."""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np

from jaxdyn._types import Array, Float
from jaxdyn.trajopt._problem import Problem
from jaxdyn.trajopt._riccati import Blocks
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


class Seen(NamedTuple):
    """Values and derivatives of a problem at all instants of all intervals, `(N, K, ...)`."""

    #: (t, x, u)
    at: Any
    value: Any
    slope: Any


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
        nx = self.problem.nx
        return jax.flatten_util.ravel_pytree(seen(self.problem, p[0], p[1 : 1 + nx], p[1 + nx :]))[0]

    def split(self, value) -> Point:
        """The parts of such a vector."""
        p = self.problem
        shapes = jax.eval_shape(lambda t, x, u: seen(p, t, x, u), *(self._shape(k) for k in ((), (p.nx,), (p.nu,))))
        ends = np.cumsum([math.prod(x.shape) for x in shapes])[:-1]
        return Point(*(y.reshape(x.shape) for y, x in zip(jnp.split(value, ends), shapes, strict=True)))

    def _shape(self, shape):
        return jax.ShapeDtypeStruct(shape, self.problem.dtype)

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

    def start(self, s):
        """Equations of the start."""
        return start_residual(self.problem, self.layout, s)

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

    def _at(self, z):
        """All instants, found without looking at the problem: for explicit transcriptions."""
        size = jax.eval_shape(self.point, self._shape((1 + self.problem.nx + self.problem.nu,))).shape
        nothing = lambda k, p: jnp.zeros(size, p.dtype)
        return jax.vmap(lambda at, z: self.interval(at, z, nothing)[1])(self.intervals, z)

    def values(self, s, m) -> Values:
        """Everything at a point."""
        z = joined(s, m)
        if self.transcription.explicit:
            seen = _everywhere(self.point, self._at(z))
            look = lambda at, z, f: self.interval(at, z, lambda k, p: f[k])[0]
            cost, c, rows = jax.vmap(look)(self.intervals, z, seen)
        else:
            look = lambda at, z: self.interval(at, z, lambda k, p: self.point(p))[0]
            cost, c, rows = jax.vmap(look)(self.intervals, z)
        last, bN, end = self.end(s[-1])
        return Values(cost.sum() + last, c, self.start(s[0]), bN, Ranged(s, m, rows, end))

    def seen(self, s, m) -> Seen:
        """The problem and its first derivatives at all instants."""
        z = joined(s, m)
        if self.transcription.explicit:
            at = self._at(z)
        else:
            at = jax.vmap(lambda at, z: self.interval(at, z, lambda k, p: self.point(p))[1])(self.intervals, z)

        def both(p):
            f = lambda p: (self.point(p),) * 2
            return jax.jacfwd(f, has_aux=True)(p)

        slope, value = _everywhere(both, at)
        return Seen(at, value, slope)

    def slopes(self, s, m, seen: Seen) -> tuple[Values, Slopes]:
        """Values and first derivatives at a point."""

        def interval(at, z, around):
            out, _ = self.interval(at, z, lambda k, p: _linear(around, k, p))
            return out, out

        both = jax.jacfwd(interval, 1, has_aux=True)
        (dcost, dc, drows), (cost, c, rows) = jax.vmap(both)(self.intervals, joined(s, m), seen)
        twice = lambda f: lambda x: (f(x),) * 2
        (end_cost, dbN, dend), (last, bN, end) = jax.jacfwd(twice(self.end), has_aux=True)(s[-1])
        db0, b0 = jax.jacfwd(twice(self.start), has_aux=True)(s[0])
        values = Values(cost.sum() + last, c, b0, bN, Ranged(s, m, rows, end))
        return values, Slopes(dcost, end_cost, dc, drows, db0, dbN, dend)

    def blocks(self, s, m, seen: Seen, d: Slopes, w: Weights, scale) -> Blocks:
        """Second derivatives of the Lagrangian and first ones of the equations."""

        def lagrangian(at, z, extra, around, c, y):
            field = lambda k, p: _linear(around, k, p) + extra[k]
            (cost, equations, rows), at = self.interval(at, z, field)
            return scale * cost + c @ equations + y @ rows, at

        def curved(at, z, around, curve, c, y):
            value, p = lagrangian(at, z, jnp.zeros_like(around.value), around, c, y)
            dp = p - around.at
            return value + jnp.einsum("ki,kij,kj->", dp, curve, dp) / 2

        def last(s):
            cost, equations, rows = self.end(s)
            return scale * cost + w.bN @ equations + w.ranged.end @ rows

        z, c, y = joined(s, m), w.c, w.ranged.rows
        arrive = jax.vmap(jax.grad(lagrangian, 2, has_aux=True))
        weight, _ = arrive(self.intervals, z, jnp.zeros_like(seen.value), seen, c, y)
        curve = _everywhere(lambda p, w: jax.hessian(lambda p: w @ self.point(p))(p), seen.at, weight)
        H = jax.vmap(_forward_hessian(curved))(self.intervals, z, seen, curve, c, y)
        H0 = _forward_hessian(lambda _, s: w.b0 @ self.start(s))(None, s[0])
        return Blocks(H, d.c, H0, d.b0, _forward_hessian(lambda _, s: last(s))(None, s[-1]), d.bN)


def _forward_hessian(f):
    return jax.jacfwd(jax.jacrev(f, 1), 1)


def _linear(around: Seen, k: int, p):
    return around.value[k] + around.slope[k] @ (p - around.at[k])


def _everywhere(f, *args):
    """f at all instants of all intervals: one batch."""
    n, k = args[0].shape[:2]
    flat = [x.reshape(n * k, *x.shape[2:]) for x in args]
    return jax.tree.map(lambda y: y.reshape(n, k, *y.shape[1:]), jax.vmap(f)(*flat))


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
