"""Model-predictive control: a problem solved again at every sample, from where the robot is and what was planned."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.dynamics import AbstractSampledPart, Action
from jaxdyn.trajopt._ilqr import Options, iterate, start_iterate
from jaxdyn.trajopt._ilqr_solve import check_fixed, guess
from jaxdyn.trajopt._ilqr_stage import Multipliers, end_rows, row_limits
from jaxdyn.trajopt._problem import Problem
from jaxdyn.trajopt._problem_dynamics import Robot


class Planned(eqx.Module):
    """What a `ModelPredictive` controller remembers between samples."""

    #: states at the nodes, `(N + 1, nx)`, and controls held between them, `(N, nu)`
    x: Any
    u: Any
    #: gains of the first interval, `(nu, nx)`
    gain: Any
    multipliers: Multipliers
    #: a `SolveStatus` of the last solve, and its iterations, as floating-point numbers
    status: Any
    iterations: Any
    #: when it was made, s
    time: Any


class ModelPredictive(AbstractSampledPart):
    """A part that solves a problem by `ilqr` at every sample and holds the first control until the next.

    The problem describes a `Robot`, whose start is replaced by the measured state; its times count from the sample.
    The sample time is one interval, `duration / intervals`. Each solve makes at most `iterations` iterations and begins
    with the previous plan, moved on by one interval, and its multipliers; so most samples need one or two. With
    `feedback` the gains of the first interval act between samples.

    Put it into the parts of a `System`, or give it to `simulate` as `effort`; `trajectory.parts` then holds a `Planned`
    for each time. A solve that fails keeps to the best trajectory it found, and says so in `status`.
    """

    problem: Problem
    period: Any
    delay: Any
    tolerance: Any
    penalty: Any
    #: columns of the efforts that the controls drive, `(nv, nu)`
    inputs: Any
    intervals: int = eqx.field(static=True)
    iterations: int = eqx.field(static=True)
    feedback: bool = eqx.field(static=True)

    def __init__(
        self,
        problem: Problem,
        *,
        intervals: int = 30,
        iterations: int = 5,
        tolerance: Any = 1e-4,
        penalty: Any = 1e3,
        delay: Any = 0.0,
        feedback: bool = False,
    ):
        """`penalty` weighs constraints other than ranges of controls; it stays, and multipliers are carried on."""
        check_fixed(problem, "ModelPredictive")
        if not isinstance(problem.dynamics, Robot):
            raise ModelError(f"ModelPredictive drives a Robot; this problem is about {type(problem.dynamics).__name__}")
        inputs = problem.dynamics.inputs
        problem = jax.tree.map(lambda x: jnp.asarray(x) if isinstance(x, float | int | np.ndarray) else x, problem)
        number = lambda x: jnp.asarray(x, problem.dtype)
        self.problem, self.intervals, self.iterations, self.feedback = problem, intervals, iterations, feedback
        self.period, self.delay = problem.duration / intervals, number(delay)
        self.tolerance, self.penalty = number(tolerance), number(penalty)
        self.inputs = inputs

    def initial(self, model, q, v):
        """The plan of the problem's guess, before anything is solved; its first control is zero."""
        problem = self._from(q, v)
        x, u = guess(problem, self.intervals, False)
        size, last = row_limits(problem)[0].shape[0], end_rows(problem, problem.duration, x[-1], u[-1]).shape[0]
        none = Multipliers(jnp.zeros((self.intervals, size), u.dtype), jnp.zeros(last, u.dtype), self.penalty)
        zero = jnp.zeros((), u.dtype)
        gain = jnp.zeros((u.shape[1], x.shape[1]), u.dtype)
        # one interval early, since the first sample moves it on
        early = lambda y: jnp.concatenate([y[:1], y[:-1]])
        return Planned(early(x), early(u).at[0].set(0), gain, none, zero, zero, zero)

    def sample(self, model, t, q, v, state: Planned) -> Planned:
        """The plan from the state measured at time t."""
        later = lambda y: jnp.concatenate([y[1:], y[-1:]])
        m = state.multipliers
        moved = Multipliers(later(m.inner), m.end, m.penalty)
        return self.planned(t, self._from(q, v), later(state.x), later(state.u), moved)

    def planned(self, t, problem: Problem, x, u, multipliers: Multipliers) -> Planned:
        """One solve, at time t, from a guess of states and controls."""
        options = Options(self.tolerance, self.penalty, jnp.ones_like(self.penalty), self.iterations, None)
        x = x.at[0].set(problem.start.value)
        u = jnp.clip(u, problem.bounds.lower_control, problem.bounds.upper_control)
        s = iterate(problem, options, start_iterate(problem, options, x, u, multipliers))
        number = lambda y: jnp.asarray(y, x.dtype)
        return Planned(s.x, s.u, s.gains.feedback[0], s.multipliers, number(s.status), number(s.count), number(t))

    def act(self, model, t, q, v, state: Planned) -> Action:
        """The first control of the plan, with feedback about it if asked for."""
        u, b = state.u[0], self.problem.bounds
        if self.feedback:
            s = jnp.clip((t - state.time) / self.period, 0, 1)
            u = u + state.gain @ (jnp.concatenate([q, v]) - (1 - s) * state.x[0] - s * state.x[1])
            u = jnp.clip(u, b.lower_control, b.upper_control)
        return Action(self.inputs @ u)

    def _from(self, q, v) -> Problem:
        return eqx.tree_at(lambda p: p.start.value, self.problem, jnp.concatenate([q, v]))
