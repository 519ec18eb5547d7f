"""Model-predictive control: a problem solved again at every sample, from where the robot is and what was planned."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.dynamics import AbstractSampledPart, Action, FreeMotion
from jaxdyn.simulation._function import as_function
from jaxdyn.trajopt._ilqr import Options
from jaxdyn.trajopt._ilqr_sensitivity import optimised
from jaxdyn.trajopt._ilqr_solve import check_fixed, guess
from jaxdyn.trajopt._ilqr_stage import Multipliers, end_rows, row_limits
from jaxdyn.trajopt._interior_point_solve import solve
from jaxdyn.trajopt._problem import Guess, PathConstraint, Problem
from jaxdyn.trajopt._problem_dynamics import AbstractDynamics, Robot
from jaxdyn.trajopt._shooting_multiple import MultipleShooting, rk4


class Planned(eqx.Module):
    """What a `ModelPredictive` controller remembers between samples."""

    #: states at the nodes, `(N + 1, nx)`, and controls held between them, `(N, nu)`
    x: Any
    u: Any
    #: gains of the first interval, `(nu, nx)`; zero if the solver has none
    gain: Any
    #: what the solver begins the next solve with
    memory: Any
    #: a `SolveStatus` of the last solve, and its iterations, as floating-point numbers
    status: Any
    iterations: Any
    #: when its first interval begins, s
    time: Any


class AbstractReplanner(eqx.Module):
    """A method that solves a problem which differs little from the one before."""

    #: whether plans come with gains
    gains: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def memory(self, problem: Problem, x, u) -> Any:
        """What a first solve begins with, a pytree of floating-point arrays."""

    @abc.abstractmethod
    def plan(self, problem: Problem, x, u, memory) -> Planned:
        """The plan from `problem.start`, found from a guess of states `(N + 1, nx)` and controls `(N, nu)`."""


class WarmILQR(AbstractReplanner):
    """`ilqr` with at most `iterations` iterations, begun with the multipliers of the solve before.

    The `penalty` of constraints other than ranges of controls stays as it is. Plans have gains, and derivatives in the
    measured state and in all numbers, as those of `ilqr`.
    """

    tolerance: Any
    penalty: Any
    iterations: int = eqx.field(static=True)
    second_order: bool = eqx.field(static=True)
    gains: bool = eqx.field(static=True, default=True, init=False)

    def __init__(self, iterations: int = 5, *, tolerance: Any = 1e-4, penalty: Any = 1e3, second_order: bool = False):
        self.iterations, self.second_order = iterations, second_order
        self.tolerance, self.penalty = jnp.asarray(tolerance, float), jnp.asarray(penalty, float)

    def memory(self, problem, x, u):
        size, last = row_limits(problem)[0].shape[0], end_rows(problem, problem.duration, x[-1], u[-1]).shape[0]
        penalty = self.penalty.astype(u.dtype)
        none = Multipliers(jnp.zeros((u.shape[0], size), u.dtype), jnp.zeros(last, u.dtype), penalty)
        return none, jnp.zeros_like(x[1:])

    def plan(self, problem, x, u, memory):
        m, costate = memory
        number = lambda y: jnp.asarray(y, x.dtype)
        penalty, one = number(self.penalty), number(1)
        options = Options(number(self.tolerance), penalty, one, self.iterations, None, self.second_order)
        before = Multipliers(_later(m.inner), m.end, m.penalty), _later(costate)
        s = optimised(problem, options, x, u, *before)
        kept = s.multipliers, s.costate
        return Planned(s.x, s.u, s.gains.feedback[0], kept, number(s.status), number(s.count), number(0))


class WarmInteriorPoint(AbstractReplanner):
    """`solve` by multiple shooting with at most `iterations` iterations, from the plan before.

    `barrier` is the barrier parameter at the start: a small one loses little of that plan. For problems with many
    ranges of states and path constraints, which it keeps better than `WarmILQR`; plans have no gains.
    """

    tolerance: Any
    barrier: Any
    iterations: int = eqx.field(static=True)
    gains: bool = eqx.field(static=True, default=False, init=False)

    def __init__(self, iterations: int = 20, *, tolerance: Any = 1e-4, barrier: Any = 1e-3):
        self.iterations = iterations
        self.tolerance, self.barrier = jnp.asarray(tolerance, float), jnp.asarray(barrier, float)

    def memory(self, problem, x, u):
        return jnp.zeros(0, x.dtype)

    def plan(self, problem, x, u, memory):
        n = u.shape[0]
        before = Guess(jnp.arange(n + 1, dtype=x.dtype) / n, x, jnp.concatenate([u, u[-1:]]))
        found = solve(
            problem.with_guess(before),
            transcription=MultipleShooting(),
            intervals=n,
            tolerance=self.tolerance,
            max_iterations=self.iterations,
            barrier=self.barrier,
        )
        number = lambda y: jnp.asarray(y, x.dtype)
        gain = jnp.zeros((u.shape[1], x.shape[1]), x.dtype)
        return Planned(found.x, found.u[:-1], gain, memory, number(found.status), number(found.iterations), number(0))


class ModelPredictive(AbstractSampledPart):
    """A part that solves a problem at every sample and holds the first control of the plan until the next.

    The problem describes a robot, whose start is replaced by the measured state; times in its costs, dynamics and
    path constraints are those of the simulation, so that references may move. The sample time is one interval,
    `duration / intervals`. Each solve begins with the previous plan, moved on by one interval, so that most samples
    need one or two iterations. With `feedback` the gains of the first interval act between samples.

    Put it into the parts of a `System`, or give it to `simulate` as `effort`; `trajectory.parts` then holds a `Planned`
    for each time. A solve that fails keeps to the best trajectory it found, and says so in `status`.
    """

    problem: Problem
    solver: AbstractReplanner
    period: Any
    delay: Any
    #: `(t, x, u) -> efforts (nv,)`
    efforts: Any
    intervals: int = eqx.field(static=True)
    feedback: bool = eqx.field(static=True)
    predicts: bool = eqx.field(static=True)

    def __init__(
        self,
        problem: Problem,
        *,
        intervals: int = 30,
        solver: AbstractReplanner | None = None,
        delay: Any = 0.0,
        feedback: bool = False,
        efforts: Callable[..., Any] | None = None,
    ):
        """`solver` is `WarmILQR()` by default. A plan acts from `delay` (s) after its sample on, at most one interval,
        and begins at the state that the robot will have reached by then under the plan before. `efforts(t, x, u)` are
        those `(nv,)` of the controls of other dynamics than a `Robot`, whose state is `x = (q, v)` as well."""
        check_fixed(problem, "ModelPredictive")
        d = problem.dynamics
        if efforts is not None:
            self.efforts = as_function(efforts)
        elif isinstance(d, Robot):
            self.efforts = _Driven(d.inputs)
        else:
            raise ModelError(
                f"ModelPredictive drives a Robot; this problem is about {type(d).__name__}: give efforts, a function "
                "(t, x, u) of its controls"
            )
        self.solver = WarmILQR() if solver is None else solver
        if feedback and not self.solver.gains:
            raise ModelError(f"plans of {type(self.solver).__name__} have no gains; use feedback=False, or WarmILQR")
        self.problem = jax.tree.map(lambda x: jnp.asarray(x) if isinstance(x, float | int | np.ndarray) else x, problem)
        self.intervals, self.feedback = intervals, feedback
        self.period, self.delay = self.problem.duration / intervals, jnp.asarray(delay, problem.dtype)
        self.predicts = not (isinstance(delay, float | int) and delay == 0)

    def initial(self, model, q, v):
        """The plan of the problem's guess, before anything is solved; its first control is zero."""
        problem = self._from(jnp.concatenate([q, v]), jnp.zeros((), self.problem.dtype))
        x, u = guess(problem, self.intervals, False)
        zero = jnp.zeros((), u.dtype)
        gain = jnp.zeros((u.shape[1], x.shape[1]), u.dtype)
        # one interval early, since the first sample moves it on
        early = lambda y: jnp.concatenate([y[:1], y[:-1]])
        return Planned(early(x), early(u).at[0].set(0), gain, self.solver.memory(problem, x, u), zero, zero, zero)

    def sample(self, model, t, q, v, state: Planned) -> Planned:
        """The plan from the state measured at time t, or from where that leads until the plan acts."""
        x = jnp.concatenate([q, v])
        if self.predicts:
            rate = lambda t, x: self.problem.dynamics.rate(t, x, self._control(t, x, state))
            x = rk4(rate, t, x, self.delay)
        t = t + self.delay
        problem = self._from(x, t)
        b = problem.bounds
        u = jnp.clip(_later(state.u), b.lower_control, b.upper_control)
        plan = self.solver.plan(problem, _later(state.x).at[0].set(x), u, state.memory)
        return eqx.tree_at(lambda p: p.time, plan, jnp.asarray(t, plan.u.dtype))

    def act(self, model, t, q, v, state: Planned) -> Action:
        """The first control of the plan, with feedback about it if asked for."""
        x = jnp.concatenate([q, v])
        return Action(self.efforts(t, x, self._control(t, x, state)))

    def _control(self, t, x, state: Planned):
        u, b = state.u[0], self.problem.bounds
        if not self.feedback:
            return u
        s = jnp.clip((t - state.time) / self.period, 0, 1)
        u = u + state.gain @ (x - (1 - s) * state.x[0] - s * state.x[1])
        return jnp.clip(u, b.lower_control, b.upper_control)

    def _from(self, x, t) -> Problem:
        return eqx.tree_at(lambda p: p.start.value, starting(self.problem, t), x)


class _Driven(eqx.Module):
    """Efforts that are linear in the controls."""

    #: `(nv, nu)`
    inputs: Any

    def __call__(self, t, x, u):
        return self.inputs @ u


def _later(y):
    return jnp.concatenate([y[1:], y[-1:]])


class _Later(AbstractDynamics):
    """Dynamics whose times count from an instant (s)."""

    state_names: tuple[str, ...] = eqx.field(static=True)
    control_names: tuple[str, ...] = eqx.field(static=True)
    dynamics: AbstractDynamics
    #: s
    start: Any

    def rate(self, t, x, u):
        return self.dynamics.rate(t + self.start, x, u)


class _From(eqx.Module):
    """A function of time, and of more, whose times count from an instant (s)."""

    function: Any
    start: Any

    def __call__(self, t, *rest):
        return self.function(t + self.start, *rest)


def starting(problem: Problem, t) -> Problem:
    """The problem as seen from time t (s), which is the zero of its time."""
    d = problem.dynamics
    free = isinstance(d, Robot) and not d.system.parts and isinstance(d.system.motion, FreeMotion)
    moved = d if free else _Later(d.state_names, d.control_names, d, t)
    late = lambda f: None if f is None else _From(f, t)
    path = tuple(PathConstraint(c.name, _From(c.function, t), c.lower, c.upper) for c in problem.path)
    parts = (moved, late(problem.running), late(problem.final), path)
    is_none = lambda x: x is None
    return eqx.tree_at(lambda p: (p.dynamics, p.running, p.final, p.path), problem, parts, is_leaf=is_none)
