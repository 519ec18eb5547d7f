"""Multiple shooting: each interval is integrated from its start; defects join the intervals."""

import itertools
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_function
from jaxdyn._types import Array, Scalar
from jaxdyn.trajopt.problem import AbstractConstrainedDynamics
from jaxdyn.trajopt.transcription._collocation import no_limits, row_limits
from jaxdyn.trajopt.transcription._contract import (
    AbstractTranscription,
    EvaluationPoint,
    Node,
    PointValues,
    constant_defects,
    layout_of,
    node,
)
from jaxdyn.trajopt.transcription._labels import dynamics_labels, path_labels, rate_labels

#: names of the evaluation points of the path constraints, under the controls of the interval
_PATH_START, _PATH_END = "path start", "path end"


def rk4(rate, t, y, h):
    """One step of length h (s) of the classical Runge-Kutta method for `ydot = rate(t, y)`."""
    k1 = rate(t, y)
    k2 = rate(t + h / 2, y + h / 2 * k1)
    k3 = rate(t + h / 2, y + h / 2 * k2)
    k4 = rate(t + h, y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


class MultipleShooting(AbstractTranscription):
    """Multiple shooting: `x_{k+1} = step(...(step(x_k)))` in each interval (Bock and Plitt 1984).

    * `steps`: steps of the integrator in each interval.
    * `linear`: piecewise linear, continuous controls; by default controls are piecewise constant.
    * `step`: `step(rate, t, y, h)` is one explicit step for `ydot = rate(t, y)`, `rk4` by default.

    The cost is integrated along with the state. Bounds and path constraints are enforced at the nodes.

    ```python
    import jax.numpy as jnp

    from jaxdyn.trajopt import MultipleShooting, Problem, VectorField, solve

    field = VectorField(lambda t, x, u, p: jnp.stack([x[1], u[0]]), ("position", "velocity"), ("force",))
    problem = Problem(field, 1.0, start=jnp.zeros(2), end=jnp.array([1.0, 0.0]), running=lambda t, x, u: u @ u)
    solution = solve(problem, transcription=MultipleShooting(), intervals=4)
    assert solution.status == 0
    ```
    """

    steps: int = eqx.field(static=True, default=1)
    linear: bool = eqx.field(static=True, default=False)
    step: Callable[[Callable[[Scalar, Array], Array], Scalar, Array, Scalar], Array] = eqx.field(
        converter=as_function, default=rk4
    )

    @property
    def has_explicit_points(self) -> bool:
        return False

    @property
    def order(self) -> int:
        raise ModelError(
            "the error of multiple shooting is the error of its integrator, which mesh refinement does not estimate; "
            "use more steps, or HermiteSimpson() or Trapezoidal()"
        )

    def layout(self, problem):
        if isinstance(problem.dynamics, AbstractConstrainedDynamics):
            raise ModelError(
                f"multiple shooting cannot integrate {type(problem.dynamics).__name__}, whose constraint forces are "
                "unknowns; use HermiteSimpson() or Trapezoidal(), or a Robot with jaxdyn.constraints.ConstrainedMotion"
            )
        if self.linear:
            return layout_of(problem, (), ())
        return layout_of(problem, tuple(f"control {u}" for u in problem.dynamics.control_names), (), False)

    def points(self, problem, layout, at, s, m, s1, evaluate):
        a, b, u0, u1 = self._ends(problem, layout, at, s, m, s1)
        points = {}

        def field(name, point):
            points[name] = point
            return evaluate(name, point)

        self._integrate(a, b, u0, u1, field)
        if problem.path:
            points[_PATH_START] = EvaluationPoint(a.t, a.x, u0)
        if problem.path and not self.linear:
            points[_PATH_END] = EvaluationPoint(b.t, b.x, u1)
        return points

    def interval(self, problem, layout, at, s, m, s1, values):
        a, b, u0, u1 = self._ends(problem, layout, at, s, m, s1)
        y = self._integrate(a, b, u0, u1, lambda name, point: values[name])
        rows = [values[name].path for name in (_PATH_START, _PATH_END) if name in values]
        if problem.bounds.control_rate is not None and self.linear:
            rows.append((u1 - u0) / (b.t - a.t))
        empty = jnp.zeros(0, a.x.dtype)
        return y[-1], jnp.concatenate([b.x - y[:-1], constant_defects(layout, s, s1)]), jnp.concatenate([empty, *rows])

    def _ends(self, problem, layout, at, s, m, s1):
        """Both nodes and the controls there."""
        a, b = node(problem, layout, at.start, s), node(problem, layout, at.end, s1)
        return a, b, *((a.u, b.u) if self.linear else (m, m))

    def _integrate(self, a: Node, b: Node, u0, u1, field: Callable[[str, EvaluationPoint], PointValues]):
        """State and cost at the end of an interval.

        The stages of the explicit steps are numbered in the order in which the steps evaluate them.
        """
        duration = b.t - a.t
        h, numbers = duration / self.steps, itertools.count()

        def rate(t, y):
            u = u0 + (t - a.t) / duration * (u1 - u0) if self.linear else u0
            f = field(f"stage {next(numbers)}", EvaluationPoint(t, y[:-1], u))
            return jnp.append(f.rate, f.cost)

        y = jnp.append(a.x, jnp.zeros((), a.x.dtype))
        for k in range(self.steps):
            y = self.step(rate, a.t + k * h, y, h)
        return y

    def row_limits(self, problem, layout):
        rate = problem.bounds.control_rate
        if rate is not None and not self.linear:
            raise ModelError(
                "piecewise constant controls have unbounded rates, but bounds.control_rate is given; use "
                "MultipleShooting(linear=True)"
            )
        return row_limits(problem, 1 if self.linear else 2, 1)

    def row_labels(self, problem, layout):
        places = (0.0,) if self.linear else (0.0, 1.0)
        return (*(label for p in places for label in path_labels(problem, p)), *rate_labels(problem, 0.5))

    def equation_labels(self, problem, layout):
        return tuple(dynamics_labels(problem, layout))

    def inner_limits(self, problem, layout):
        if self.linear:
            return no_limits(0, problem.dtype)
        return problem.bounds.lower_control, problem.bounds.upper_control

    def inner_guess(self, problem, layout, at):
        u = problem.guess.at(jnp.atleast_1d(at.start))[1][0]
        return (u[:0] if self.linear else u).astype(problem.dtype)

    def middle_control(self, problem, layout, s, m, s1):
        return (s + s1)[layout.nx : layout.nx + layout.nu] / 2 if self.linear else m
