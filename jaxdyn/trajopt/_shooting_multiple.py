"""Multiple shooting: each interval integrated from its start, and joined to the next."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn.simulation._function import as_function
from jaxdyn.trajopt._collocation import no_limits, row_limits
from jaxdyn.trajopt._problem_dynamics import AbstractConstrainedDynamics
from jaxdyn.trajopt._transcription import (
    AbstractTranscription,
    dynamics_labels,
    held,
    layout_of,
    node,
    path_labels,
    rate_labels,
)


def rk4(rate, t, y, h):
    """One step of the classical Runge-Kutta method for `ydot = rate(t, y)`."""
    k1 = rate(t, y)
    k2 = rate(t + h / 2, y + h / 2 * k1)
    k3 = rate(t + h / 2, y + h / 2 * k2)
    k4 = rate(t + h, y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


class MultipleShooting(AbstractTranscription):
    """`x_{k+1} = step(...(step(x_k)))`, `steps` steps of an integrator in each interval (Bock and Plitt 1984).

    `step(rate, t, y, h)` is one explicit step for `ydot = rate(t, y)`; the cost is integrated along with the state.
    Controls are held over an interval, or linear and continuous if `linear`. Bounds and path constraints are those
    of the nodes.
    """

    steps: int = eqx.field(static=True, default=1)
    linear: bool = eqx.field(static=True, default=False)
    step: Callable[..., Any] = eqx.field(converter=as_function, default=rk4)

    @property
    def explicit(self) -> bool:
        return False

    @property
    def nodes_first(self) -> bool:
        return False

    @property
    def order(self) -> int:
        raise ModelError(
            "the error of multiple shooting is that of its integrator, which no mesh refinement estimates; use more "
            "steps, or HermiteSimpson() or Trapezoidal()"
        )

    def layout(self, problem):
        if isinstance(problem.dynamics, AbstractConstrainedDynamics):
            raise ModelError(
                f"multiple shooting integrates {type(problem.dynamics).__name__}, whose forces are unknowns; use "
                "HermiteSimpson() or Trapezoidal(), or a Robot with jaxdyn.constraints.ConstrainedMotion"
            )
        if self.linear:
            return layout_of(problem, (), ())
        return layout_of(problem, tuple(f"control {u}" for u in problem.dynamics.control_names), (), False)

    def interval(self, problem, layout, at, s, m, s1, field):
        a, b = node(problem, layout, at.start, s), node(problem, layout, at.end, s1)
        whole = b.t - a.t
        h = whole / self.steps
        u0, u1 = (a.u, b.u) if self.linear else (m, m)

        def rate(t, y):
            u = u0 + (t - a.t) / whole * (u1 - u0) if self.linear else u0
            f = field(t, y[:-1], u)
            return jnp.append(f.rate, f.cost)

        y = jnp.append(a.x, jnp.zeros((), a.x.dtype))
        for k in range(self.steps):
            y = self.step(rate, a.t + k * h, y, h)
        rows = [field(a.t, a.x, u0).path] if problem.path else []
        if problem.path and not self.linear:
            rows.append(field(b.t, b.x, u1).path)
        if problem.bounds.control_rate is not None and self.linear:
            rows.append((u1 - u0) / whole)
        empty = jnp.zeros(0, a.x.dtype)
        return y[-1], jnp.concatenate([b.x - y[:-1], held(layout, s, s1)]), jnp.concatenate([empty, *rows])

    def row_limits(self, problem, layout):
        rate = problem.bounds.control_rate
        if rate is not None and not self.linear:
            raise ModelError(
                "controls that are held jump, so their rate has no bound; use MultipleShooting(linear=True)"
            )
        return row_limits(problem, 1 if self.linear else 2, 1)

    def rows(self, problem, layout):
        places = (0.0,) if self.linear else (0.0, 1.0)
        return (*(label for p in places for label in path_labels(problem, p)), *rate_labels(problem, 0.5))

    def equations(self, problem, layout):
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
