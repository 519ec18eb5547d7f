"""The contract of a transcription: an optimal control problem as a nonlinear program, interval by interval.

The decision variables are states `s_k = (x, u, T, x_0)` at the nodes of a mesh and interval variables `m_k`. The
horizon T and the copy x_0 of the initial state are constant; they are present if the horizon is free or the ends are
coupled. Each interval contributes a cost, equations `c(s_k, m_k, s_{k+1}) = 0`, the defects among them, and rows with
lower and upper bounds. The equations can be solved for the *dependent* variables among `(m_k, s_{k+1})`.

A transcription names the evaluation points of an interval, that is the triples `(t, x, u)` at which it needs the
dynamics, the running cost and the path constraints, and writes the interval from the values at these points.
"""

import abc
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float, Scalar
from jaxdyn.trajopt.problem import AbstractConstrainedDynamics, Constrained, Problem

#: names of the evaluation points at the nodes, under the controls of the nodes
START, END = "start", "end"


class Shape(NamedTuple):
    """The dependent entries of the variables `y = (m, s')`; static."""

    ns: int
    nm: int
    dependent: tuple[int, ...]

    @property
    def independent(self) -> np.ndarray:
        """The other entries of y: the controls w of the linear-quadratic problem."""
        return np.setdiff1d(np.arange(self.nm + self.ns), self.dependent)

    @property
    def order(self) -> np.ndarray:
        """Index of each entry of z in `(w, s, dependent)`."""
        natural = [self.ns + self.independent, np.arange(self.ns), self.ns + np.array(self.dependent, int)]
        return np.argsort(np.concatenate(natural))


class Interval(NamedTuple):
    """Start and end of a mesh interval, as fractions of the horizon."""

    start: jax.Array
    end: jax.Array


class EvaluationPoint(NamedTuple):
    """Time, state and controls at which a transcription evaluates the problem."""

    #: s
    t: jax.Array
    x: jax.Array
    u: jax.Array


class Node(NamedTuple):
    """The parts of a state of the transcription."""

    t: jax.Array
    x: jax.Array
    u: jax.Array
    #: s
    horizon: jax.Array

    @property
    def point(self) -> EvaluationPoint:
        """The node as an evaluation point."""
        return EvaluationPoint(self.t, self.x, self.u)


class PointValues(NamedTuple):
    """Values of a problem at one evaluation point."""

    #: xdot
    rate: jax.Array
    #: integrand of the cost
    cost: jax.Array
    #: rows of the path constraints
    path: jax.Array
    #: for constrained dynamics: equation of the forces, invariants, and corrections `(nx, invariants)`
    forces: jax.Array
    invariants: jax.Array
    correction: jax.Array


class AbstractTranscription(eqx.Module):
    """Writes dynamics and cost of an interval in finitely many variables.

    `points` names the evaluation points of an interval; `interval` writes the interval from the values at these points.
    """

    @property
    @abc.abstractmethod
    def has_explicit_points(self) -> bool:
        """True if the evaluation points depend only on the decision variables.

        All points are then evaluated in one batch. Otherwise `points` asks `evaluate` for the values that others need.
        """

    @property
    @abc.abstractmethod
    def order(self) -> int:
        """The power of the interval length with which `interval_errors` decreases."""

    @abc.abstractmethod
    def layout(self, problem: Problem) -> "Layout":
        """Sizes and positions of the decision variables."""

    @abc.abstractmethod
    def points(
        self,
        problem: Problem,
        layout: "Layout",
        at: Interval,
        s,
        m,
        s1,
        evaluate: Callable[[str, EvaluationPoint], PointValues],
    ) -> dict[str, EvaluationPoint]:
        """The evaluation points of an interval, by name.

        The names `START` and `END` belong to the nodes under the controls of the nodes. Where both are used, a node
        is evaluated once for the two intervals that share it. `evaluate(name, point)` returns the values at a point
        on which other points depend.
        """

    @abc.abstractmethod
    def interval(
        self, problem: Problem, layout: "Layout", at: Interval, s, m, s1, values: dict[str, PointValues]
    ) -> tuple[Scalar, Float[Array, " equations"], Float[Array, " rows"]]:
        """`(cost, equations, rows)` of an interval, from the values at its evaluation points."""

    @abc.abstractmethod
    def row_limits(self, problem: Problem, layout: "Layout") -> tuple[Float[Array, " rows"], Float[Array, " rows"]]:
        """Lower and upper bounds of the rows."""

    @abc.abstractmethod
    def row_labels(self, problem: Problem, layout: "Layout") -> "tuple[Label, ...]":
        """Labels of the rows, for messages."""

    @abc.abstractmethod
    def equation_labels(self, problem: Problem, layout: "Layout") -> "tuple[Label, ...]":
        """Labels of the equations, for messages."""

    @abc.abstractmethod
    def inner_limits(self, problem: Problem, layout: "Layout") -> tuple[Float[Array, " inner"], Float[Array, " inner"]]:
        """Lower and upper bounds of the interval variables m."""

    @abc.abstractmethod
    def inner_guess(self, problem: Problem, layout: "Layout", at: Interval) -> Float[Array, " inner"]:
        """First guess of the interval variables m."""

    @abc.abstractmethod
    def middle_control(self, problem: Problem, layout: "Layout", s, m, s1) -> Float[Array, " nu"]:
        """The control in the middle of an interval."""


class Label(NamedTuple):
    """Kind, component and position in the interval of an equation or a bounded quantity."""

    kind: str
    component: str
    #: from 0 at the start of the interval to 1 at its end
    place: float = 0.0


class Layout(NamedTuple):
    """Sizes of `s = (x, u, T, x_0)` and `m`; static."""

    nx: int
    #: number of controls at nodes: zero for piecewise constant controls
    nu: int
    #: names of the entries of m, for messages, each beginning with the kind ("state", "control", "correction")
    inner: tuple[str, ...]
    #: indices of the dependent entries of m
    inner_dependent: tuple[int, ...]
    has_free_duration: bool
    is_coupled: bool
    #: number of dependent controls at the node, the last ones
    num_forces: int = 0

    @property
    def ns(self) -> int:
        """Number of entries of s."""
        return self.nx + self.nu + self.constants

    @property
    def constants(self) -> int:
        """Number of entries of s that are constant along the motion: T and x_0."""
        return int(self.has_free_duration) + (self.nx if self.is_coupled else 0)

    @property
    def shape(self) -> Shape:
        """The dependent variables of an interval."""
        nm, plain = len(self.inner), self.nx + self.nu
        ends = [*range(self.nx), *range(plain - self.num_forces, self.ns)]
        return Shape(self.ns, nm, (*self.inner_dependent, *(nm + k for k in ends)))


def layout_of(problem: Problem, inner, inner_dependent, node_controls=True) -> Layout:
    """The layout of a transcription with the interval variables `inner`."""
    forces = num_forces(problem)
    nu = problem.nu if node_controls else 0
    if not node_controls and has_end_controls(problem):
        raise ModelError(
            "piecewise constant controls have no values at the ends, but start_control, end_control, start_condition "
            "or end_condition is given; use a transcription with controls at nodes, such as "
            "MultipleShooting(linear=True)"
        )
    coupled = problem.coupling is not None
    return Layout(
        problem.nx, nu, inner, inner_dependent, problem.free_duration, coupled, forces if node_controls else 0
    )


def has_end_controls(problem: Problem) -> bool:
    """Whether a boundary condition depends on the controls at an end."""
    are_free = problem.start_control.is_free and problem.end_control.is_free
    return not are_free or problem.start_condition is not None or problem.end_condition is not None


def num_forces(problem: Problem) -> int:
    """Number of controls that are constraint forces."""
    d = problem.dynamics
    return d.num_forces if isinstance(d, AbstractConstrainedDynamics) else 0


def num_invariants(problem: Problem) -> int:
    """Number of invariants of constrained dynamics."""
    d = problem.dynamics
    return d.num_invariants if isinstance(d, AbstractConstrainedDynamics) else 0


def node(problem: Problem, layout: Layout, fraction, s) -> Node:
    """The parts of a state of the transcription at a fraction of the horizon."""
    x, u = s[: layout.nx], s[layout.nx : layout.nx + layout.nu]
    horizon = s[layout.nx + layout.nu] if layout.has_free_duration else problem.duration.astype(s.dtype)
    return Node(fraction * horizon, x, u, horizon)


def evaluate_problem(problem: Problem, t, x, u) -> PointValues:
    """Values of the problem at one evaluation point."""
    d = problem.dynamics
    outcome = d.constrained(t, x, u) if isinstance(d, AbstractConstrainedDynamics) else d.rate(t, x, u)
    rate, *rest = dynamics_values(x, outcome)
    return PointValues(rate, problem.running_cost(t, x, u), path_rows(problem, t, x, u), *rest)


def dynamics_values(x, outcome: Array | Constrained) -> tuple[Array, ...]:
    """Rate, forces, invariants and correction of an outcome, a rate or `Constrained`; empty where there are none."""
    none = lambda: (jnp.zeros(n, x.dtype) for n in (0, 0, (x.shape[0], 0)))
    rate, *rest = outcome if isinstance(outcome, Constrained) else (outcome, *none())
    return jnp.asarray(rate, x.dtype), *rest


def point_shapes(problem: Problem) -> list[tuple[int, ...]]:
    """Shapes of the fields of `PointValues`, without tracing the dynamics."""
    n = num_invariants(problem)
    return [(problem.nx,), (), (sum(path_sizes(problem)),), (num_forces(problem),), (n,), (problem.nx, n)]


def path_rows(problem: Problem, t, x, u):
    """Values of all path constraints."""
    parts = [c.rows(t, x, u).astype(x.dtype) for c in problem.path]
    return jnp.concatenate(parts) if parts else jnp.zeros(0, x.dtype)


def path_limits(problem: Problem):
    """Lower and upper bounds of `path_rows`."""
    sizes = path_sizes(problem)
    broadcast = lambda b: [jnp.broadcast_to(getattr(c, b), (n,)) for c, n in zip(problem.path, sizes, strict=True)]
    empty = [jnp.zeros(0, problem.dtype)]
    return jnp.concatenate(empty + broadcast("lower")), jnp.concatenate(empty + broadcast("upper"))


def path_sizes(problem: Problem) -> list[int]:
    """Number of rows of each path constraint."""
    x, u = (jax.ShapeDtypeStruct((n,), problem.dtype) for n in (problem.nx, problem.nu))
    t = jax.ShapeDtypeStruct((), problem.dtype)
    return [jax.eval_shape(c.rows, t, x, u).shape[0] for c in problem.path]


def state_limits(problem: Problem, layout: Layout, count: int):
    """Bounds of all states `(nodes, ns)`: none for fixed entries, and of constants at the last node only."""
    b, dtype = problem.bounds, problem.dtype
    nx, nu = layout.nx, layout.nu

    def rows(of_states, of_controls, horizon, none):
        row = jnp.concatenate([of_states, of_controls[:nu], jnp.full(layout.constants, none, dtype)])
        out = jnp.broadcast_to(row, (count, layout.ns))
        ends = (problem.start, problem.start_control), (problem.end, problem.end_control)
        for at, (state, control) in zip((0, -1), ends, strict=True):
            out = out.at[at, np.array(state.rows + [nx + k for k in control.rows], int)].set(none)
        return out.at[-1, nx + nu].set(horizon) if layout.has_free_duration else out

    low, high = problem.duration_range
    return rows(b.lower_state, b.lower_control, low, -np.inf), rows(b.upper_state, b.upper_control, high, np.inf)


def start_point(problem: Problem, layout: Layout, s0) -> EvaluationPoint | None:
    """The evaluation point of `start_residual`; None unless the dynamics are constrained."""
    if not isinstance(problem.dynamics, AbstractConstrainedDynamics):
        return None
    return node(problem, layout, jnp.zeros((), s0.dtype), s0).point


def start_residual(problem: Problem, layout: Layout, s0, values: PointValues | None):
    """Residual of the initial conditions: boundary, copy of the state, and constraint equations.

    `values` are the values at `start_point`.
    """
    at = node(problem, layout, jnp.zeros((), s0.dtype), s0)
    rows = [problem.start.residual(at.x), problem.start_control.residual(at.u)]
    if problem.start_condition is not None:
        rows.append(_as_rows(problem.start_condition, at))
    if layout.is_coupled:
        rows.append(s0[-layout.nx :] - at.x)
    if values is not None:
        rows += [values.forces] if all(problem.start.fixed) else [values.forces, values.invariants]
    return jnp.concatenate(rows)


def end_residual(problem: Problem, layout: Layout, s1):
    """Residual of the final conditions: boundary and coupling with the start."""
    at = node(problem, layout, jnp.ones((), s1.dtype), s1)
    rows = [problem.end.residual(at.x), problem.end_control.residual(at.u)]
    if problem.end_condition is not None:
        rows.append(_as_rows(problem.end_condition, at))
    if problem.coupling is not None:
        rows.append(jnp.atleast_1d(problem.coupling(s1[-layout.nx :], at.x)).astype(s1.dtype))
    return jnp.concatenate(rows)


def _as_rows(condition, at: Node):
    return jnp.atleast_1d(condition(at.t, at.x, at.u)).astype(at.x.dtype)


def node_guess(problem: Problem, layout: Layout, fractions):
    """First guess of all states `(nodes, ns)`."""
    x, u = problem.guess.at(fractions)
    dtype = problem.dtype
    constants = [problem.duration[None]] if layout.has_free_duration else []
    constants += [x[0]] if layout.is_coupled else []
    constant = jnp.concatenate([jnp.zeros(0, dtype), *constants])
    constants = jnp.broadcast_to(constant, (fractions.shape[0], layout.constants))
    return jnp.concatenate([x, u[:, : layout.nu], constants], axis=1).astype(dtype)


def constant_defects(layout: Layout, s, s1):
    """Defects of the constants T and x_0."""
    first = layout.nx + layout.nu
    return s1[first:] - s[first:]
