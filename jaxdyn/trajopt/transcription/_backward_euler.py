"""The backward Euler method: first order, for motions with jumps of velocity."""

import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn.trajopt.problem import AbstractConstrainedDynamics
from jaxdyn.trajopt.transcription._collocation import row_limits
from jaxdyn.trajopt.transcription._contract import (
    AbstractTranscription,
    EvaluationPoint,
    constant_defects,
    layout_of,
    node,
)
from jaxdyn.trajopt.transcription._labels import dynamics_labels, path_labels

#: name of the evaluation point: the end of an interval, under the controls of the interval
_STEP = "step"


class BackwardEuler(AbstractTranscription):
    """The backward Euler method, `x_{k+1} = x_k + h f(t_{k+1}, x_{k+1}, u_k)`, with piecewise constant controls.

    First order, and damped: for motions with impacts at unknown times, where forces act as impulses over an interval
    and orders above one are not reached. Path constraints hold at the ends of the intervals, with the controls of the
    interval, and so do conditions that join forces and positions after an impact.

    ```python
    import jax.numpy as jnp

    from jaxdyn.trajopt import BackwardEuler, Problem, VectorField, solve

    field = VectorField(lambda t, x, u, p: jnp.stack([x[1], u[0]]), ("position", "velocity"), ("force",))
    problem = Problem(field, 1.0, start=jnp.zeros(2), end=jnp.array([1.0, 0.0]), running=lambda t, x, u: u @ u)
    solution = solve(problem, transcription=BackwardEuler(), intervals=4)
    assert abs(solution.cost - 12 * 16 / 15) < 1e-6
    ```
    """

    @property
    def has_explicit_points(self) -> bool:
        return True

    @property
    def order(self) -> int:
        return 2

    def layout(self, problem):
        if isinstance(problem.dynamics, AbstractConstrainedDynamics):
            raise ModelError(
                f"BackwardEuler cannot determine the constraint forces of {type(problem.dynamics).__name__} at the "
                "start; use HermiteSimpson() or Trapezoidal()"
            )
        if problem.bounds.control_rate is not None:
            raise ModelError(
                "piecewise constant controls have unbounded rates, but bounds.control_rate is given; use Trapezoidal()"
            )
        return layout_of(problem, tuple(f"control {u}" for u in problem.dynamics.control_names), (), False)

    def points(self, problem, layout, at, s, m, s1, evaluate):
        end = node(problem, layout, at.end, s1)
        return {_STEP: EvaluationPoint(end.t, end.x, m)}

    def interval(self, problem, layout, at, s, m, s1, values):
        a, b = node(problem, layout, at.start, s), node(problem, layout, at.end, s1)
        h, f = (at.end - at.start) * a.horizon, values[_STEP]
        equations = jnp.concatenate([b.x - a.x - h * f.rate, constant_defects(layout, s, s1)])
        return h * f.cost, equations, f.path

    def row_limits(self, problem, layout):
        return row_limits(problem, 1, 0)

    def row_labels(self, problem, layout):
        return tuple(path_labels(problem, 1.0))

    def equation_labels(self, problem, layout):
        return tuple(dynamics_labels(problem, layout))

    def inner_limits(self, problem, layout):
        return problem.bounds.lower_control, problem.bounds.upper_control

    def inner_guess(self, problem, layout, at):
        return problem.guess.at(jnp.atleast_1d(at.start))[1][0].astype(problem.dtype)

    def middle_control(self, problem, layout, s, m, s1):
        return m
