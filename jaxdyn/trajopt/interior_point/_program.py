"""A transcribed problem as a block-structured nonlinear program: values, first and second derivatives."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.trajopt.interior_point._evaluation import evaluate_all, weighted_hessians
from jaxdyn.trajopt.interior_point._kkt import Blocks
from jaxdyn.trajopt.interior_point._lagrangian import (
    Bounded,
    FirstDerivatives,
    Multipliers,
    Values,
    interval_variables,
)
from jaxdyn.trajopt.interior_point._small_matrices import inverse
from jaxdyn.trajopt.problem import AbstractImplicit, Problem
from jaxdyn.trajopt.transcription import (
    START,
    AbstractTranscription,
    EvaluationPoint,
    Interval,
    Layout,
    PointValues,
    dynamics_values,
    end_residual,
    evaluate_problem,
    node,
    node_guess,
    path_limits,
    path_rows,
    point_shapes,
    start_point,
    start_residual,
    state_limits,
)


class ImplicitLinearisation(NamedTuple):
    """Implicit dynamics `residual(p, y) = 0`, `outcome(p, y)` at an evaluation point `p = (t, x, u)`."""

    #: y
    unknowns: jax.Array
    #: `dy/dp = -residual_y^-1 residual_p`
    sensitivity: jax.Array
    #: `outcome_y residual_y^-1`
    adjoint: jax.Array


class PointLinearisation(NamedTuple):
    """Values and Jacobian of a problem at an evaluation point."""

    #: (t, x, u)
    at: jax.Array
    value: jax.Array
    jacobian: jax.Array
    #: None for dynamics whose rate is differentiated directly
    implicit: ImplicitLinearisation | None


class Linearisations(NamedTuple):
    """Linearisations at all evaluation points."""

    #: by name, each with a leading axis of N intervals
    inner: dict[str, PointLinearisation]
    #: at the point of the initial conditions, or None
    start: PointLinearisation | None


class Program(eqx.Module):
    """The nonlinear program that a transcription makes of a problem on a mesh.

    The problem is evaluated at all evaluation points in one batch. First derivatives of an interval follow by the chain
    rule from a linear model of the problem at each point. Second derivatives add the Hessians of the problem, weighted
    with the multipliers that reach each point.
    """

    problem: Problem
    transcription: AbstractTranscription
    #: nodes as fractions of the horizon, from 0 to 1
    mesh: Float[Array, " nodes"]

    @property
    def layout(self) -> Layout:
        """Sizes and positions of the variables."""
        return self.transcription.layout(self.problem)

    @property
    def intervals(self) -> Interval:
        """All intervals."""
        return Interval(self.mesh[:-1], self.mesh[1:])

    def point(self, p):
        """Values of the problem at the evaluation point `p = (t, x, u)`, as a vector."""
        return _flatten(evaluate_problem(self.problem, *self._unpack(p)))

    def _unpack(self, p):
        nx = self.problem.nx
        return p[0], p[1 : 1 + nx], p[1 + nx :]

    def _cost_and_path(self, p):
        """Running cost and path constraints."""
        t, x, u = self._unpack(p)
        return jnp.append(self.problem.running_cost(t, x, u), path_rows(self.problem, t, x, u))

    def _implicit_equations(self, t, x, u, y):
        """Outcome and residual of implicit dynamics for unknowns y."""
        d = self.problem.dynamics
        assert isinstance(d, AbstractImplicit)
        outcome, residual = d.implicit(t, x, u, y)
        return _flatten(dynamics_values(x, outcome)), residual

    def _linearise_implicit(self, t, x, u, y):
        """Outcome, and Jacobians of outcome and residual with respect to p and y.

        Time and controls are differentiated separately, since only few terms of the dynamics depend on them.
        """
        of_state = jax.jacfwd(lambda *a: (self._implicit_equations(*a),) * 2, (1, 3), has_aux=True)
        ((value_x, value_y), (r_x, r_y)), (value, _) = of_state(t, x, u, y)
        (value_t, r_t), (value_u, r_u) = (jax.jacfwd(self._implicit_equations, k)(t, x, u, y) for k in (0, 2))
        column = lambda a: a[:, None]
        value_p = jnp.concatenate([column(value_t), value_x, value_u], axis=1)
        return value, value_p, value_y, jnp.concatenate([column(r_t), r_x, r_u], axis=1), r_y

    def _linearise_point(self, p) -> PointLinearisation:
        d = self.problem.dynamics
        if not isinstance(d, AbstractImplicit) or not d.has_cheap_residual:
            jacobian, value = jax.jacfwd(lambda p: (self.point(p),) * 2, has_aux=True)(p)
            return PointLinearisation(p, value, jacobian, None)
        t, x, u = self._unpack(p)
        y = d.unknowns(t, x, u)
        outcome, outcome_p, outcome_y, r_p, r_y = self._linearise_implicit(t, x, u, y)
        cost_jacobian, cost = jax.jacfwd(lambda p: (self._cost_and_path(p),) * 2, has_aux=True)(p)
        r_y_inverse = inverse(r_y)
        sensitivity = -r_y_inverse @ r_p
        jacobian = outcome_p + outcome_y @ sensitivity
        merge = lambda outcome, cost: jnp.concatenate([outcome[: x.shape[0]], cost, outcome[x.shape[0] :]])
        implicit = ImplicitLinearisation(y, sensitivity, outcome_y @ r_y_inverse)
        return PointLinearisation(p, merge(outcome, cost), merge(jacobian, cost_jacobian), implicit)

    def _weighted_hessian(self, at: PointLinearisation, weight):
        """Hessian of `weight . point`; see `AbstractImplicit`."""
        if at.implicit is None:
            return jax.hessian(lambda p: weight @ self.point(p))(at.at)
        nx, implicit = self.problem.nx, at.implicit
        n = weight.shape[0] - implicit.adjoint.shape[0]
        of_cost, of_outcome = weight[nx : nx + n], jnp.concatenate([weight[:nx], weight[nx + n :]])
        multipliers = of_outcome @ implicit.adjoint

        def lagrangian(*parts):
            value, residual = self._implicit_equations(*parts)
            return of_outcome @ value - multipliers @ residual

        bend = jax.hessian(lambda p: of_cost @ self._cost_and_path(p))(at.at)
        dynamics: Any = self.problem.dynamics
        if not dynamics.is_affine:
            along = lambda dp: lagrangian(*self._unpack(at.at + dp), implicit.unknowns + implicit.sensitivity @ dp)
            return bend + jax.hessian(along)(jnp.zeros_like(at.at))
        gradient = jax.grad(lagrangian, (0, 1, 2, 3))
        parts = *self._unpack(at.at), implicit.unknowns
        t, x = (jax.jacfwd(gradient, k)(*parts) for k in (0, 1))
        # affine in u and y together
        zero = jnp.zeros((at.at.shape[0] - 1 - nx,) * 2, weight.dtype)
        rows = [[t[0][None, None], t[1][None], t[2][None]], [t[1][:, None], x[1], x[2].T], [t[2][:, None], x[2], zero]]
        H_pp = jnp.concatenate([jnp.concatenate(row, axis=1) for row in rows])
        H_yp = jnp.concatenate([t[3][:, None], x[3], jnp.zeros((x[3].shape[0], zero.shape[0]), H_pp.dtype)], axis=1)
        mixed = H_yp.T @ implicit.sensitivity
        return H_pp + mixed + mixed.T + bend

    def split(self, value) -> PointValues:
        """The parts of a vector of `point`."""
        shapes = point_shapes(self.problem)
        ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
        return PointValues(*(y.reshape(shape) for y, shape in zip(jnp.split(value, ends), shapes, strict=True)))

    def interval_points(self, at, z, field: Callable) -> tuple[dict[str, Array], dict[str, PointValues]]:
        """Evaluation points of one interval at `z = (s, m, s')` by name, and the values that these depend on.

        `field(name, p)` returns the values at a point as a vector.
        """
        values: dict[str, PointValues] = {}

        def evaluate(name: str, point: EvaluationPoint) -> PointValues:
            values[name] = self.split(field(name, _as_vector(point)))
            return values[name]

        points = self.transcription.points(self.problem, self.layout, at, *self._split_interval(z), evaluate)
        return {name: _as_vector(point) for name, point in points.items()}, values

    def _split_interval(self, z):
        ns = self.layout.ns
        return z[:ns], z[ns : z.shape[0] - ns], z[z.shape[0] - ns :]

    def interval(self, at, z, field: Callable):
        """`(cost, equations, rows)` of one interval at `z = (s, m, s')`, and its evaluation points by name."""
        points, values = self.interval_points(at, z, field)
        values = {name: values[name] if name in values else self.split(field(name, points[name])) for name in points}
        z = self._split_interval(z)
        return self.transcription.interval(self.problem, self.layout, at, *z, values), points

    def end(self, s):
        """`(cost, equations, rows)` of the end."""
        at = node(self.problem, self.layout, jnp.ones((), s.dtype), s)
        rows = path_rows(self.problem, at.t, at.x, at.u) if self.layout.nu else jnp.zeros(0, s.dtype)
        return self.problem.final_cost(at.t, at.x), end_residual(self.problem, self.layout, s), rows

    def _end_point(self, s):
        return _as_vector(node(self.problem, self.layout, jnp.ones((), s.dtype), s).point)

    def start(self, s, field: Callable):
        """Equations of the start, and their evaluation point or None."""
        point = start_point(self.problem, self.layout, s)
        if point is None:
            return start_residual(self.problem, self.layout, s, None), None
        p = _as_vector(point)
        return start_residual(self.problem, self.layout, s, self.split(field(p))), p

    def limits(self) -> tuple[Bounded, Bounded]:
        """Lower and upper bounds of the bounded quantities."""
        p, layout, count = self.problem, self.layout, self.mesh.shape[0]
        repeat = lambda row: jnp.broadcast_to(row, (count - 1, *row.shape))
        states = state_limits(p, layout, count)
        inner = [repeat(x) for x in self.transcription.inner_limits(p, layout)]
        rows = [repeat(x) for x in self.transcription.row_limits(p, layout)]
        ends = path_limits(p) if layout.nu else (jnp.zeros(0, p.dtype),) * 2
        low, high = (Bounded(*group) for group in zip(states, inner, rows, ends, strict=True))
        return low, high

    def guess(self):
        """First guess of s and m."""
        s = node_guess(self.problem, self.layout, self.mesh)
        return s, jax.vmap(lambda at: self.transcription.inner_guess(self.problem, self.layout, at))(self.intervals)

    def points(self, s, m) -> tuple[dict[str, Array], Array | None]:
        """All evaluation points: of the intervals by name, `(N, p)`, and of the initial conditions or None."""
        field = _refuse if self.transcription.has_explicit_points else lambda name, p: self.point(p)
        inner = jax.vmap(lambda at, z: self.interval_points(at, z, field)[0])(self.intervals, interval_variables(s, m))
        start = start_point(self.problem, self.layout, s[0])
        return inner, None if start is None else _as_vector(start)

    def values(self, s, m) -> Values:
        """Values at the variables s and m."""
        z, first = interval_variables(s, m), None
        if self.transcription.has_explicit_points:
            at_points, first = evaluate_all(self.point, *self.points(s, m))
            one = lambda at, z, values: self.interval(at, z, lambda name, p: values[name])[0]
            cost, c, rows = jax.vmap(one)(self.intervals, z, at_points)
        else:
            one = lambda at, z: self.interval(at, z, lambda name, p: self.point(p))[0]
            cost, c, rows = jax.vmap(one)(self.intervals, z)
        last, bN, end = self.end(s[-1])
        b0 = self.start(s[0], lambda p: self.point(p) if first is None else first)[0]
        return Values(cost.sum() + last, c, b0, bN, Bounded(s, m, rows, end))

    def linearise(self, s, m) -> Linearisations:
        """The linearisations of the problem at all evaluation points."""
        return Linearisations(*evaluate_all(self._linearise_point, *self.points(s, m)))

    def first_derivatives(self, s, m, at: Linearisations) -> tuple[Values, FirstDerivatives]:
        """Values and first derivatives at the variables s and m."""

        def interval(times, z, around):
            out, _ = self.interval(times, z, lambda name, p: _extrapolate(around[name], p))
            return out, out

        def start(s):
            out = self.start(s, lambda p: _extrapolate(at.start, p))[0]
            return out, out

        both = jax.jacfwd(interval, 1, has_aux=True)
        (dcost, dc, drows), (cost, c, rows) = jax.vmap(both)(self.intervals, interval_variables(s, m), at.inner)
        twice = lambda f: lambda x: (f(x),) * 2
        (end_cost, dbN, dend), (last, bN, end) = jax.jacfwd(twice(self.end), has_aux=True)(s[-1])
        db0, b0 = jax.jacfwd(start, has_aux=True)(s[0])
        values = Values(cost.sum() + last, c, b0, bN, Bounded(s, m, rows, end))
        return values, FirstDerivatives(dcost, end_cost, dc, drows, db0, dbN, dend)

    def kkt_blocks(self, s, m, at: Linearisations, d: FirstDerivatives, w: Multipliers, scale) -> Blocks:
        """Hessian of the Lagrangian and Jacobians of the equations; `scale` multiplies the cost."""

        def lagrangian(times, z, extra, around, c, y):
            field = lambda name, p: _extrapolate(around[name], p) + extra[name]
            (cost, equations, rows), points = self.interval(times, z, field)
            return scale * cost + c @ equations + y @ rows, points

        def of_start(s, extra):
            equations, point = self.start(s, lambda p: _extrapolate(at.start, p) + extra)
            return w.b0 @ equations, {START: point}

        def of_end(s):
            cost, equations, rows = self.end(s)
            return scale * cost + w.bN @ equations + w.bounded.end @ rows

        zeros = lambda tree: jax.tree.map(lambda x: jnp.zeros_like(x.value), tree, is_leaf=_is_linearisation)
        z, c, y, extra = interval_variables(s, m), w.c, w.bounded.rows, zeros(at)
        weight, _ = jax.vmap(jax.grad(lagrangian, 2, has_aux=True))(self.intervals, z, extra.inner, at.inner, c, y)
        weight_start = None if at.start is None else jax.grad(of_start, 1, has_aux=True)(s[0], extra.start)[0]
        hessians, hessian_start, hessian_end = weighted_hessians(self._weighted_hessian, at, (weight, weight_start))
        H = jax.vmap(_hessian_of(lagrangian))(self.intervals, z, hessians, extra.inner, at.inner, c, y)
        hessian_start = None if hessian_start is None else {START: hessian_start}
        H0 = _hessian_of(lambda _, s, extra: of_start(s, extra))(None, s[0], hessian_start, extra.start)
        HN = jax.jacfwd(jax.jacrev(of_end))(s[-1])
        if hessian_end is not None:
            J = jax.jacfwd(self._end_point)(s[-1])
            HN = HN + J.T @ hessian_end @ J
        return Blocks(H, d.c, H0, d.b0, HN, d.bN)


def _hessian_of(f: Callable):
    """Hessian with respect to z of a scalar function that is made with linear models of the problem.

    `f(times, z, ...)` returns the scalar and its evaluation points by name. `hessians` are the weighted Hessians of the
    problem at some of these points, or None.
    """

    def hessian(times, z, hessians, *rest):
        H = jax.jacfwd(jax.jacrev(lambda z: f(times, z, *rest)[0]))(z)
        if hessians is None:
            return H
        names = list(hessians)
        J = jax.jacfwd(lambda z: jnp.stack([f(times, z, *rest)[1][name] for name in names]))(z)
        HJ = jnp.stack([hessians[name] for name in names]) @ J
        flat = lambda x: x.reshape(-1, z.shape[0])
        return H + flat(J).T @ flat(HJ)

    return hessian


def _is_linearisation(x) -> bool:
    return isinstance(x, PointLinearisation)


def _refuse(name: str, p):
    raise ModelError(
        f"a transcription with has_explicit_points asks for values at its point {name!r}; let has_explicit_points "
        "return False, or let points depend on the decision variables alone"
    )


def _as_vector(point: EvaluationPoint):
    return jnp.concatenate([jnp.atleast_1d(point.t).astype(point.x.dtype), point.x, point.u])


def _flatten(values):
    return jnp.concatenate([jnp.ravel(x) for x in values])


def _extrapolate(around, p):
    """Values at p by the `PointLinearisation` `around`."""
    return around.value + around.jacobian @ (p - around.at)
