"""The contract of a transcription: a problem over time as one in finitely many variables, interval by interval.

States `s_k = (x, u, T, x_0)` sit at the nodes of a mesh; the last two, constant, are there if the horizon is free or
the ends are coupled. Variables `m_k` sit inside of intervals. An interval gives equations `c(s_k, m_k, s_{k+1}) = 0`,
which can be solved for the *dependent* ones of `(m_k, s_{k+1})`, a cost, and rows that have ranges.
"""

import abc
import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.trajopt._problem import Boundary, Problem
from jaxdyn.trajopt._problem_dynamics import AbstractConstrainedDynamics, Constrained
from jaxdyn.trajopt._riccati import Shape


class Interval(NamedTuple):
    """One interval of a mesh, in parts of the horizon."""

    start: Any
    end: Any


class Node(NamedTuple):
    """What a state of the transcription is made of."""

    t: Any
    x: Any
    u: Any
    #: s
    horizon: Any


class Point(NamedTuple):
    """What a problem says about one instant `(t, x, u)`."""

    #: xdot
    rate: Any
    #: integrand of the cost
    cost: Any
    #: rows of the path constraints
    path: Any
    #: for constrained dynamics: equation of the forces, invariants, and corrections `(nx, invariants)`
    forces: Any
    invariants: Any
    correction: Any


class AbstractTranscription(eqx.Module):
    """A way to write dynamics and cost of an interval in finitely many variables."""

    @property
    @abc.abstractmethod
    def explicit(self) -> bool:
        """Whether the instants at which a problem is looked at do not depend on what is seen at others."""

    @property
    @abc.abstractmethod
    def nodes_first(self) -> bool:
        """Whether an interval looks first at its start, then at its end, both with the controls of the nodes."""

    @property
    @abc.abstractmethod
    def order(self) -> int:
        """The power of an interval's length with which `interval_errors` falls."""

    @abc.abstractmethod
    def layout(self, problem: Problem) -> "Layout":
        """Sizes and places of the variables."""

    @abc.abstractmethod
    def interval(self, problem: Problem, layout: "Layout", at: Interval, s, m, s1, field) -> tuple[Any, Any, Any]:
        """`(cost, equations, rows)` of an interval, which sees the problem through `field(t, x, u) -> Point` alone."""

    @abc.abstractmethod
    def row_limits(self, problem: Problem, layout: "Layout") -> tuple[Any, Any]:
        """Ranges of the rows."""

    @abc.abstractmethod
    def rows(self, problem: Problem, layout: "Layout") -> "tuple[Label, ...]":
        """What the rows are, for messages."""

    @abc.abstractmethod
    def equations(self, problem: Problem, layout: "Layout") -> "tuple[Label, ...]":
        """What the equations are."""

    @abc.abstractmethod
    def inner_limits(self, problem: Problem, layout: "Layout") -> tuple[Any, Any]:
        """Ranges of the variables m."""

    @abc.abstractmethod
    def inner_guess(self, problem: Problem, layout: "Layout", at: Interval) -> Any:
        """First values of m in an interval."""

    @abc.abstractmethod
    def middle_control(self, problem: Problem, layout: "Layout", s, m, s1) -> Any:
        """The control in the middle of an interval."""


class Label(NamedTuple):
    """One equation, or one quantity that has a range: of which kind, of what, and where in its interval."""

    kind: str
    component: str
    #: from 0, the start of the interval, to 1
    place: float = 0.0


def dynamics_labels(problem: Problem, layout: "Layout") -> "list[Label]":
    """Those of the changes of states over an interval, and of constants, which are to have none; at its start."""
    constants = ["duration"] * layout.free + [
        f"{x} at the start" for x in problem.dynamics.state_names * layout.coupled
    ]
    return [Label("dynamics", name) for name in (*problem.dynamics.state_names, *constants)]


def force_labels(problem: Problem, place: float) -> "list[Label]":
    """Those of the equations of forces that constraints determine."""
    n = num_forces(problem)
    return [Label("dynamics", f"force {u}", place) for u in problem.dynamics.control_names[problem.nu - n :]]


def invariant_labels(problem: Problem, place: float) -> "list[Label]":
    """Those of the invariants of constrained dynamics."""
    return [Label("dynamics", f"invariant {k}", place) for k in range(num_invariants(problem))]


def path_labels(problem: Problem, place: float) -> "list[Label]":
    """Those of `path_rows`."""
    sizes = zip(problem.path, path_sizes(problem), strict=True)
    return [Label("path constraints", f"{c.name} {k}", place) for c, n in sizes for k in range(n)]


def rate_labels(problem: Problem, place: float) -> "list[Label]":
    """Those of the rates of all controls, where these are limited."""
    names = () if problem.bounds.control_rate is None else problem.dynamics.control_names
    return [Label("rates of controls", f"rate of {u}", place) for u in names]


def start_names(problem: Problem, layout: "Layout") -> "tuple[str, ...]":
    """What the entries of `start_residual` are."""
    d, copies = problem.dynamics, [f"{x} at the start" for x in problem.dynamics.state_names * layout.coupled]
    names = boundary_names(problem.start, d.state_names) + boundary_names(problem.start_control, d.control_names)
    more = force_labels(problem, 0.0) + ([] if all(problem.start.fixed) else invariant_labels(problem, 0.0))
    return (*names, *copies, *(label.component for label in more))


def end_names(problem: Problem, layout: "Layout") -> "tuple[str, ...]":
    """What the entries of `end_residual` are."""
    d = problem.dynamics
    names = boundary_names(problem.end, d.state_names) + boundary_names(problem.end_control, d.control_names)
    x = jax.ShapeDtypeStruct((problem.nx,), problem.dtype)
    size = math.prod(jax.eval_shape(problem.coupling, x, x).shape) if layout.coupled else 0
    return (*names, *(f"coupling {k}" for k in range(size)))


def boundary_names(b: Boundary, names: "tuple[str, ...]") -> "tuple[str, ...]":
    """What the entries of a boundary's residual are: states or controls, and rows of its condition."""
    x = jax.ShapeDtypeStruct((len(names),), b.value.dtype)
    size = jax.eval_shape(b.residual, x).shape[0] - len(b.rows)
    return (*(names[k] for k in b.rows), *(f"condition {k}" for k in range(size)))


class Layout(NamedTuple):
    """Sizes of `s = (x, u, T, x_0)` and `m`; static."""

    nx: int
    #: controls at nodes: none where they are held over intervals
    nu: int
    #: names of the entries of m, for messages, each beginning with the kind ("state", "control", "correction")
    inner: tuple[str, ...]
    #: which entries of m are dependent
    inner_dependent: tuple[int, ...]
    free: bool
    coupled: bool
    #: dependent controls at the node, the last ones
    forces: int = 0

    @property
    def ns(self) -> int:
        return self.nx + self.nu + self.constants

    @property
    def constants(self) -> int:
        return int(self.free) + (self.nx if self.coupled else 0)

    @property
    def shape(self) -> Shape:
        nm, plain = len(self.inner), self.nx + self.nu
        ends = [*range(self.nx), *range(plain - self.forces, self.ns)]
        return Shape(self.ns, nm, (*self.inner_dependent, *(nm + k for k in ends)))


def layout_of(problem: Problem, inner, inner_dependent, node_controls=True) -> Layout:
    """The layout of a transcription with these variables inside of intervals."""
    forces = num_forces(problem)
    nu = problem.nu if node_controls else 0
    if not node_controls and not (problem.start_control.free and problem.end_control.free):
        raise ModelError(
            "controls that are held over intervals have no values at the ends, but start_control or end_control is "
            "given; use a transcription with controls at nodes, such as MultipleShooting(linear=True)"
        )
    coupled = problem.coupling is not None
    return Layout(
        problem.nx, nu, inner, inner_dependent, problem.free_duration, coupled, forces if node_controls else 0
    )


def num_forces(problem: Problem) -> int:
    """Controls that constraints determine."""
    d = problem.dynamics
    return d.num_forces if isinstance(d, AbstractConstrainedDynamics) else 0


def num_invariants(problem: Problem) -> int:
    """Invariants of constrained dynamics."""
    d = problem.dynamics
    return d.num_invariants if isinstance(d, AbstractConstrainedDynamics) else 0


def node(problem: Problem, layout: Layout, fraction, s) -> Node:
    """The parts of a state of the transcription at a fraction of the horizon."""
    x, u = s[: layout.nx], s[layout.nx : layout.nx + layout.nu]
    horizon = s[layout.nx + layout.nu] if layout.free else problem.duration.astype(s.dtype)
    return Node(fraction * horizon, x, u, horizon)


def seen(problem: Problem, t, x, u) -> Point:
    """The problem at one instant."""
    d = problem.dynamics
    rate, *rest = said(x, d.constrained(t, x, u) if isinstance(d, AbstractConstrainedDynamics) else d.rate(t, x, u))
    return Point(rate, problem.running_cost(t, x, u), path_rows(problem, t, x, u), *rest)


def said(x, answer) -> tuple[Any, ...]:
    """What dynamics say in the order of `Point`: rate, then forces, invariants and corrections, or none of them."""
    none = lambda: (jnp.zeros(n, x.dtype) for n in (0, 0, (x.shape[0], 0)))
    rate, *rest = answer if isinstance(answer, Constrained) else (answer, *none())
    return jnp.asarray(rate, x.dtype), *rest


def point_shapes(problem: Problem) -> list[tuple[int, ...]]:
    """Shapes of the parts of a `Point`; the dynamics, costly to trace, are not asked."""
    n = num_invariants(problem)
    return [(problem.nx,), (), (sum(path_sizes(problem)),), (num_forces(problem),), (n,), (problem.nx, n)]


def path_rows(problem: Problem, t, x, u):
    """Values of all path constraints."""
    parts = [c.rows(t, x, u).astype(x.dtype) for c in problem.path]
    return jnp.concatenate(parts) if parts else jnp.zeros(0, x.dtype)


def path_limits(problem: Problem):
    """Their ranges."""
    sizes = path_sizes(problem)
    wide = lambda b: [jnp.broadcast_to(getattr(c, b), (n,)) for c, n in zip(problem.path, sizes, strict=True)]
    empty = [jnp.zeros(0, problem.dtype)]
    return jnp.concatenate(empty + wide("lower")), jnp.concatenate(empty + wide("upper"))


def path_sizes(problem: Problem) -> list[int]:
    """Numbers of rows of the path constraints."""
    x, u = (jax.ShapeDtypeStruct((n,), problem.dtype) for n in (problem.nx, problem.nu))
    t = jax.ShapeDtypeStruct((), problem.dtype)
    return [jax.eval_shape(c.rows, t, x, u).shape[0] for c in problem.path]


def state_limits(problem: Problem, layout: Layout, count: int):
    """Ranges of all states `(nodes, ns)`; given ones, and constants but at the end, are without."""
    b, dtype = problem.bounds, problem.dtype
    nx, nu = layout.nx, layout.nu

    def rows(state, control, horizon, none):
        row = jnp.concatenate([state, control[:nu], jnp.full(layout.constants, none, dtype)])
        out = jnp.broadcast_to(row, (count, layout.ns))
        ends = (problem.start, problem.start_control), (problem.end, problem.end_control)
        for at, (given, control) in zip((0, -1), ends, strict=True):
            out = out.at[at, np.array(given.rows + [nx + k for k in control.rows], int)].set(none)
        return out.at[-1, nx + nu].set(horizon) if layout.free else out

    low, high = problem.duration_range
    return rows(b.lower_state, b.lower_control, low, -np.inf), rows(b.upper_state, b.upper_control, high, np.inf)


def start_residual(problem: Problem, layout: Layout, s0, field):
    """What vanishes at the start: the boundary, the copy of the state, and what constraints ask of the state.

    The latter is seen through `field(t, x, u) -> Point`, as in `AbstractTranscription.interval`.
    """
    at = node(problem, layout, jnp.zeros((), s0.dtype), s0)
    rows = [problem.start.residual(at.x), problem.start_control.residual(at.u)]
    if layout.coupled:
        rows.append(s0[-layout.nx :] - at.x)
    if looks_at_start(problem):
        seen = field(at.t, at.x, at.u)
        rows += [seen.forces] if all(problem.start.fixed) else [seen.forces, seen.invariants]
    return jnp.concatenate(rows)


def looks_at_start(problem: Problem) -> bool:
    """Whether the equations of the start ask what the dynamics say there."""
    return isinstance(problem.dynamics, AbstractConstrainedDynamics)


def end_residual(problem: Problem, layout: Layout, s1):
    """What vanishes at the end: the boundary and the coupling with the start."""
    at = node(problem, layout, jnp.ones((), s1.dtype), s1)
    rows = [problem.end.residual(at.x), problem.end_control.residual(at.u)]
    if layout.coupled:
        rows.append(jnp.atleast_1d(problem.coupling(s1[-layout.nx :], at.x)).astype(s1.dtype))
    return jnp.concatenate(rows)


def node_guess(problem: Problem, layout: Layout, fractions):
    """First values of all states."""
    x, u = problem.guess.at(fractions)
    dtype = problem.dtype
    constants = [problem.duration[None]] if layout.free else []
    constants += [x[0]] if layout.coupled else []
    constant = jnp.concatenate([jnp.zeros(0, dtype), *constants])
    wide = jnp.broadcast_to(constant, (fractions.shape[0], layout.constants))
    return jnp.concatenate([x, u[:, : layout.nu], wide], axis=1).astype(dtype)


def held(layout: Layout, s, s1):
    """Constants do not change."""
    first = layout.nx + layout.nu
    return s1[first:] - s[first:]
