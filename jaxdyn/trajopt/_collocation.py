"""Direct collocation: trapezoid and Hermite-Simpson.

With nodes `x_k, u_k`, `f_k = f(t_k, x_k, u_k)` and an interval of length h,

    trapezoid:        x_{k+1} = x_k + h/2 (f_k + f_{k+1})
    Hermite-Simpson:  x_{k+1} = x_k + h/6 (f_k + 4 f_m + f_{k+1}),   x_m = (x_k + x_{k+1})/2 + h/8 (f_k - f_{k+1}),

and the cost by the same rules; controls are linear, or quadratic through their value in the middle (Kelly, SIAM Review
59(4), 2017, sections 3 and 4). Constraint forces are among the controls, and fulfil their equation at all these points;
the position and velocity levels of constraints hold at the nodes, by corrections of the rate.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn.trajopt._problem import Problem
from jaxdyn.trajopt._transcription import (
    AbstractTranscription,
    Label,
    dynamics_labels,
    force_labels,
    held,
    invariant_labels,
    layout_of,
    node,
    num_forces,
    num_invariants,
    path_labels,
    path_limits,
    rate_labels,
)


class Trapezoidal(AbstractTranscription):
    """Linear controls, the rule of the trapezoid; of second order."""

    @property
    def explicit(self) -> bool:
        return True

    @property
    def nodes_first(self) -> bool:
        return True

    @property
    def order(self) -> int:
        return 3

    def layout(self, problem):
        inner, dependent = _corrections(problem, 0)
        return layout_of(problem, inner, dependent)

    def interval(self, problem, layout, at, s, m, s1, field):
        a, b = node(problem, layout, at.start, s), node(problem, layout, at.end, s1)
        h = (at.end - at.start) * a.horizon
        f0, f1 = field(a.t, a.x, a.u), field(b.t, b.x, b.u)
        slope = (f0.rate + f1.rate) / 2 + f1.correction @ m
        equations = [f1.forces, f1.invariants, b.x - a.x - h * slope, held(layout, s, s1)]
        rows = [f0.path]
        if problem.bounds.control_rate is not None:
            rows.append((b.u - a.u) / h)
        return h / 2 * (f0.cost + f1.cost), jnp.concatenate(equations), jnp.concatenate(rows)

    def row_limits(self, problem, layout):
        return row_limits(problem, 1, 1)

    def rows(self, problem, layout):
        return (*path_labels(problem, 0.0), *rate_labels(problem, 0.5))

    def equations(self, problem, layout):
        return (*force_labels(problem, 1.0), *invariant_labels(problem, 1.0), *dynamics_labels(problem, layout))

    def inner_limits(self, problem, layout):
        return no_limits(len(layout.inner), problem.dtype)

    def inner_guess(self, problem, layout, at):
        return jnp.zeros(len(layout.inner), problem.dtype)

    def middle_control(self, problem, layout, s, m, s1):
        return (s + s1)[layout.nx : layout.nx + layout.nu] / 2


class HermiteSimpson(AbstractTranscription):
    """Quadratic controls, Simpson's rule; of fourth order.

    `separated` keeps the states of the middles as variables, which bounds then hold for; otherwise they are eliminated,
    for fewer variables with denser derivatives.
    """

    separated: bool = eqx.field(static=True, default=True)

    @property
    def explicit(self) -> bool:
        return self.separated

    @property
    def nodes_first(self) -> bool:
        return True

    @property
    def order(self) -> int:
        return 4

    def layout(self, problem):
        d, n = problem.dynamics, problem.nx if self.separated else 0
        states = tuple(f"state {x}" for x in d.state_names) if self.separated else ()
        controls = tuple(f"control {u}" for u in d.control_names)
        more, dependent = _corrections(problem, n + problem.nu)
        forces = range(n + problem.nu - num_forces(problem), n + problem.nu)
        return layout_of(problem, states + controls + more, (*range(n), *forces, *dependent))

    def interval(self, problem, layout, at, s, m, s1, field):
        a, b = node(problem, layout, at.start, s), node(problem, layout, at.end, s1)
        h, tm = (at.end - at.start) * a.horizon, (a.t + b.t) / 2
        f0, f1 = field(a.t, a.x, a.u), field(b.t, b.x, b.u)
        hermite = (a.x + b.x) / 2 + h / 8 * (f0.rate - f1.rate)
        given, um, corrections = self._split(problem, m)
        xm = given if self.separated else hermite
        fm = field(tm, xm, um)
        slope = (f0.rate + 4 * fm.rate + f1.rate) / 6 + fm.correction @ corrections
        equations = [xm - hermite] if self.separated else []
        equations += [fm.forces, f1.forces, f1.invariants, b.x - a.x - h * slope, held(layout, s, s1)]
        rows = [f0.path, fm.path]
        if problem.bounds.control_rate is not None:
            rows += [(4 * um - 3 * a.u - b.u) / h, (3 * b.u + a.u - 4 * um) / h]
        cost = h / 6 * (f0.cost + 4 * fm.cost + f1.cost)
        return cost, jnp.concatenate(equations), jnp.concatenate(rows)

    def _split(self, problem: Problem, m):
        n = problem.nx if self.separated else 0
        return m[:n], m[n : n + problem.nu], m[n + problem.nu :]

    def row_limits(self, problem, layout):
        return row_limits(problem, 2, 2)

    def rows(self, problem, layout):
        paths = *path_labels(problem, 0.0), *path_labels(problem, 0.5)
        return *paths, *rate_labels(problem, 0.0), *rate_labels(problem, 1.0)

    def equations(self, problem, layout):
        middle = [Label("dynamics", x, 0.5) for x in problem.dynamics.state_names * self.separated]
        middle += force_labels(problem, 0.5)
        ends = force_labels(problem, 1.0) + invariant_labels(problem, 1.0)
        return *middle, *ends, *dynamics_labels(problem, layout)

    def inner_limits(self, problem, layout):
        b = problem.bounds
        none = no_limits(num_invariants(problem), problem.dtype)
        pick = lambda state, control, none: jnp.concatenate([*([state] if self.separated else []), control, none])
        return pick(b.lower_state, b.lower_control, none[0]), pick(b.upper_state, b.upper_control, none[1])

    def inner_guess(self, problem, layout, at):
        x, u = problem.guess.at(jnp.atleast_1d((at.start + at.end) / 2))
        zero = jnp.zeros(num_invariants(problem), problem.dtype)
        return jnp.concatenate([*([x[0]] if self.separated else []), u[0], zero]).astype(problem.dtype)

    def middle_control(self, problem, layout, s, m, s1):
        return self._split(problem, m)[1]


def _corrections(problem: Problem, first: int):
    """Names and places of the unknown corrections inside of an interval."""
    n = num_invariants(problem)
    return tuple(f"correction {k}" for k in range(n)), tuple(range(first, first + n))


def no_limits(n: int, dtype):
    """Infinite ranges."""
    return jnp.full(n, -np.inf, dtype), jnp.full(n, np.inf, dtype)


def row_limits(problem: Problem, points: int, rates: int):
    """Ranges of path constraints at so many points, and of the rate of the controls."""
    lower, upper = path_limits(problem)
    rate = problem.bounds.control_rate
    rate = [] if rate is None else [rate] * rates
    return (
        jnp.concatenate([lower] * points + [-r for r in rate]),
        jnp.concatenate([upper] * points + rate),
    )
