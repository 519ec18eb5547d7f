"""Direct collocation: trapezoidal and Hermite-Simpson.

With nodes `x_k, u_k`, `f_k = f(t_k, x_k, u_k)` and an interval of length h,

    trapezoidal:      x_{k+1} = x_k + h/2 (f_k + f_{k+1})
    Hermite-Simpson:  x_{k+1} = x_k + h/6 (f_k + 4 f_m + f_{k+1}),   x_m = (x_k + x_{k+1})/2 + h/8 (f_k - f_{k+1}),

and the cost by the same quadrature. Controls are piecewise linear (trapezoidal), or quadratic through their value at
the midpoint (Kelly, SIAM Review 59(4), 2017, sections 3 and 4). Constraint forces are among the controls and satisfy
their equation at all collocation points; the position and velocity levels of the constraints are enforced at the nodes
by corrections of the rate.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn.trajopt.problem import Problem
from jaxdyn.trajopt.transcription._contract import (
    END,
    START,
    AbstractTranscription,
    EvaluationPoint,
    Label,
    constant_defects,
    layout_of,
    node,
    num_forces,
    num_invariants,
    path_limits,
)
from jaxdyn.trajopt.transcription._labels import (
    dynamics_labels,
    force_labels,
    invariant_labels,
    path_labels,
    rate_labels,
)

#: name of the evaluation point at the middle of an interval
MIDDLE = "middle"


class Trapezoidal(AbstractTranscription):
    """Trapezoidal collocation: piecewise linear controls, second order.

    ```python
    import jax.numpy as jnp

    from jaxdyn.trajopt import Problem, Trapezoidal, VectorField, solve

    field = VectorField(lambda t, x, u, p: jnp.stack([x[1], u[0]]), ("position", "velocity"), ("force",))
    problem = Problem(field, 1.0, start=jnp.zeros(2), end=jnp.array([1.0, 0.0]), running=lambda t, x, u: u @ u)
    solution = solve(problem, transcription=Trapezoidal(), intervals=4)
    assert solution.status == 0
    ```
    """

    @property
    def has_explicit_points(self) -> bool:
        return True

    @property
    def order(self) -> int:
        return 3

    def layout(self, problem):
        inner, dependent = _corrections(problem, 0)
        return layout_of(problem, inner, dependent)

    def points(self, problem, layout, at, s, m, s1, evaluate):
        a, b = _end_nodes(problem, layout, at, s, s1)
        return {START: a.point, END: b.point}

    def interval(self, problem, layout, at, s, m, s1, values):
        a, b = _end_nodes(problem, layout, at, s, s1)
        h, f0, f1 = (at.end - at.start) * a.horizon, values[START], values[END]
        slope = (f0.rate + f1.rate) / 2 + f1.correction @ m
        equations = [f1.forces, f1.invariants, b.x - a.x - h * slope, constant_defects(layout, s, s1)]
        rows = [f0.path]
        if problem.bounds.control_rate is not None:
            rows.append((b.u - a.u) / h)
        return h / 2 * (f0.cost + f1.cost), jnp.concatenate(equations), jnp.concatenate(rows)

    def row_limits(self, problem, layout):
        return row_limits(problem, 1, 1)

    def row_labels(self, problem, layout):
        return (*path_labels(problem, 0.0), *rate_labels(problem, 0.5))

    def equation_labels(self, problem, layout):
        return (*force_labels(problem, 1.0), *invariant_labels(problem, 1.0), *dynamics_labels(problem, layout))

    def inner_limits(self, problem, layout):
        return no_limits(len(layout.inner), problem.dtype)

    def inner_guess(self, problem, layout, at):
        return jnp.zeros(len(layout.inner), problem.dtype)

    def middle_control(self, problem, layout, s, m, s1):
        return (s + s1)[layout.nx : layout.nx + layout.nu] / 2


class HermiteSimpson(AbstractTranscription):
    """Hermite-Simpson collocation: piecewise quadratic controls, fourth order; the default of `solve`.

    `separated` keeps the midpoint states as decision variables, which are then subject to the bounds. Otherwise the
    midpoint states are eliminated: fewer variables with denser derivatives.

    ```python
    import jax.numpy as jnp

    from jaxdyn.trajopt import HermiteSimpson, Problem, VectorField, solve

    field = VectorField(lambda t, x, u, p: jnp.stack([x[1], u[0]]), ("position", "velocity"), ("force",))
    problem = Problem(field, 1.0, start=jnp.zeros(2), end=jnp.array([1.0, 0.0]), running=lambda t, x, u: u @ u)
    solution = solve(problem, transcription=HermiteSimpson(), intervals=2)
    assert abs(solution.cost - 12) < 1e-3
    ```
    """

    separated: bool = eqx.field(static=True, default=True)

    @property
    def has_explicit_points(self) -> bool:
        return self.separated

    @property
    def order(self) -> int:
        return 4

    def layout(self, problem):
        d, n = problem.dynamics, problem.nx if self.separated else 0
        states = tuple(f"state {x}" for x in d.state_names) if self.separated else ()
        controls = tuple(f"control {u}" for u in d.control_names)
        corrections, dependent = _corrections(problem, n + problem.nu)
        forces = range(n + problem.nu - num_forces(problem), n + problem.nu)
        return layout_of(problem, states + controls + corrections, (*range(n), *forces, *dependent))

    def points(self, problem, layout, at, s, m, s1, evaluate):
        a, b = _end_nodes(problem, layout, at, s, s1)
        xm, um, _ = self._split(problem, m)
        if not self.separated:
            h = (at.end - at.start) * a.horizon
            xm = _hermite(a, b, h, evaluate(START, a.point), evaluate(END, b.point))
        return {START: a.point, END: b.point, MIDDLE: EvaluationPoint((a.t + b.t) / 2, xm, um)}

    def interval(self, problem, layout, at, s, m, s1, values):
        a, b = _end_nodes(problem, layout, at, s, s1)
        h, f0, fm, f1 = (at.end - at.start) * a.horizon, values[START], values[MIDDLE], values[END]
        xm, um, corrections = self._split(problem, m)
        slope = (f0.rate + 4 * fm.rate + f1.rate) / 6 + fm.correction @ corrections
        equations = [xm - _hermite(a, b, h, f0, f1)] if self.separated else []
        equations += [fm.forces, f1.forces, f1.invariants, b.x - a.x - h * slope, constant_defects(layout, s, s1)]
        rows = [f0.path, fm.path]
        if problem.bounds.control_rate is not None:
            rows += [(4 * um - 3 * a.u - b.u) / h, (3 * b.u + a.u - 4 * um) / h]
        cost = h / 6 * (f0.cost + 4 * fm.cost + f1.cost)
        return cost, jnp.concatenate(equations), jnp.concatenate(rows)

    def _split(self, problem: Problem, m):
        """State (empty unless separated), controls and corrections at the midpoint."""
        n = problem.nx if self.separated else 0
        return m[:n], m[n : n + problem.nu], m[n + problem.nu :]

    def row_limits(self, problem, layout):
        return row_limits(problem, 2, 2)

    def row_labels(self, problem, layout):
        paths = *path_labels(problem, 0.0), *path_labels(problem, 0.5)
        return *paths, *rate_labels(problem, 0.0), *rate_labels(problem, 1.0)

    def equation_labels(self, problem, layout):
        middle = [Label("dynamics", x, 0.5) for x in problem.dynamics.state_names * self.separated]
        middle += force_labels(problem, 0.5)
        ends = force_labels(problem, 1.0) + invariant_labels(problem, 1.0)
        return *middle, *ends, *dynamics_labels(problem, layout)

    def inner_limits(self, problem, layout):
        b = problem.bounds
        none = no_limits(num_invariants(problem), problem.dtype)
        join = lambda state, control, none: jnp.concatenate([*([state] if self.separated else []), control, none])
        return join(b.lower_state, b.lower_control, none[0]), join(b.upper_state, b.upper_control, none[1])

    def inner_guess(self, problem, layout, at):
        x, u = problem.guess.at(jnp.atleast_1d((at.start + at.end) / 2))
        zero = jnp.zeros(num_invariants(problem), problem.dtype)
        return jnp.concatenate([*([x[0]] if self.separated else []), u[0], zero]).astype(problem.dtype)

    def middle_control(self, problem, layout, s, m, s1):
        return self._split(problem, m)[1]


def _end_nodes(problem: Problem, layout, at, s, s1):
    return node(problem, layout, at.start, s), node(problem, layout, at.end, s1)


def _hermite(a, b, h, f0, f1):
    """Midpoint state of the cubic Hermite interpolant of the nodes."""
    return (a.x + b.x) / 2 + h / 8 * (f0.rate - f1.rate)


def _corrections(problem: Problem, first: int):
    """Names and indices of the corrections among the interval variables."""
    n = num_invariants(problem)
    return tuple(f"correction {k}" for k in range(n)), tuple(range(first, first + n))


def no_limits(n: int, dtype):
    """Infinite bounds of n variables."""
    return jnp.full(n, -np.inf, dtype), jnp.full(n, np.inf, dtype)


def row_limits(problem: Problem, points: int, rates: int):
    """Bounds of the path constraints at `points` points, and of `rates` control rates."""
    lower, upper = path_limits(problem)
    rate = problem.bounds.control_rate
    rate = [] if rate is None else [rate] * rates
    return (
        jnp.concatenate([lower] * points + [-r for r in rate]),
        jnp.concatenate([upper] * points + rate),
    )
