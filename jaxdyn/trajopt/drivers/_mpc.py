"""Model-predictive control: solves a problem again at every sample, from the measured state and the preceding plan."""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_function, numbers_as_arrays
from jaxdyn._types import Array, Effort, Float, PyTree, Scalar
from jaxdyn.dynamics import AbstractSampledPart, Action
from jaxdyn.trajopt.ilqr import Multipliers, Options, check_fixed, end_rows, guess, optimise, row_limits
from jaxdyn.trajopt.interior_point import solve
from jaxdyn.trajopt.problem import AbstractDynamics, AbstractImplicit, Guess, PathConstraint, Problem, Robot
from jaxdyn.trajopt.transcription import MultipleShooting, rk4


class Planned(eqx.Module):
    """State of a `ModelPredictive` controller between samples: its plan."""

    #: states at the nodes, `(N + 1, nx)`, and controls held between them, `(N, nu)`
    x: Float[Array, "*batch nodes nx"]
    u: Float[Array, "*batch intervals nu"]
    #: gains of the first interval, `(nu, nx)`; zero if the solver has none
    gain: Float[Array, "*batch nu nx"]
    #: warm start of the next solve
    memory: PyTree
    #: a `SolveStatus` of the last solve, and its iterations, as floating-point numbers
    status: Float[Array, "*batch"]
    iterations: Float[Array, "*batch"]
    #: start of the first interval, s
    time: Float[Array, "*batch"]


class AbstractReplanner(eqx.Module):
    """Contract of an optimiser that solves a sequence of similar problems."""

    #: whether plans have feedback gains
    gains: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def memory(self, problem: Problem, x, u) -> PyTree:
        """Warm start of the first solve, a pytree of floating-point arrays."""

    @abc.abstractmethod
    def plan(self, problem: Problem, x, u, memory) -> Planned:
        """The plan from `problem.start`, given a guess of states `(N + 1, nx)` and controls `(N, nu)`."""


class WarmILQR(AbstractReplanner):
    """`ilqr` with at most `iterations` iterations, started with the multipliers of the preceding solve.

    The `penalty` of constraints other than control limits is constant. Plans have gains, and derivatives with respect
    to the measured state and all leaves, as those of `ilqr`.
    """

    tolerance: Float[Array, "*batch"]
    penalty: Float[Array, "*batch"]
    iterations: int = eqx.field(static=True)
    second_order: bool = eqx.field(static=True)
    gains: bool = eqx.field(static=True, default=True, init=False)

    def __init__(
        self, iterations: int = 5, *, tolerance: ArrayLike = 1e-4, penalty: ArrayLike = 1e3, second_order: bool = False
    ):
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
        before = Multipliers(_shift(m.inner), m.end, m.penalty), _shift(costate)
        s = optimise(problem, options, x, u, *before)
        kept = s.multipliers, s.costate
        return Planned(s.x, s.u, s.gains.feedback[0], kept, number(s.status), number(s.count), number(0))


class WarmInteriorPoint(AbstractReplanner):
    """`solve` by multiple shooting with at most `iterations` iterations, started from the preceding plan.

    `barrier` is the initial barrier parameter; a small one stays near the preceding plan. Use it for problems with many
    state limits and path constraints, which it satisfies better than `WarmILQR`. Plans have no gains.
    """

    tolerance: Float[Array, "*batch"]
    barrier: Float[Array, "*batch"]
    iterations: int = eqx.field(static=True)
    gains: bool = eqx.field(static=True, default=False, init=False)

    def __init__(self, iterations: int = 20, *, tolerance: ArrayLike = 1e-4, barrier: ArrayLike = 1e-3):
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


class Replanning(NamedTuple):
    """The fields that controllers with a planner share."""

    problem: Problem
    solver: AbstractReplanner
    #: time between two samples, one interval, s
    period: Array
    #: time from a sample until its plan acts, s
    delay: Array
    #: whether the plan starts from a predicted state
    predicts: bool


def prepare_replanning(
    problem: Problem, intervals: int, solver: AbstractReplanner | None, delay: ArrayLike, user: str
) -> Replanning:
    """Problem, solver and times of a controller; raises for a problem without a fixed start and horizon."""
    check_fixed(problem, user)
    problem = numbers_as_arrays(problem)
    predicts = not (isinstance(delay, float | int) and delay == 0)
    period = problem.duration / intervals
    return Replanning(
        problem, WarmILQR() if solver is None else solver, period, jnp.asarray(delay, problem.dtype), predicts
    )


class ModelPredictive(AbstractSampledPart):
    """Model-predictive controller: solves a problem at every sample and applies the first control until the next one.

    The measured state replaces the problem's initial state. Times in its costs, dynamics and path constraints are those
    of the simulation, so references may depend on time. The sample time is one interval, `duration / intervals`. Each
    solve starts from the preceding plan, shifted by one interval, so that most samples need one or two iterations. With
    `feedback`, the gains of the first interval act between samples.

    Pass it as a part of a `System`, or to `simulate` as `effort`; `trajectory.parts` then contains a `Planned` for each
    time. A solve that fails keeps the best trajectory found, with its `status`.
    """

    problem: Problem
    solver: AbstractReplanner
    period: Float[Array, "*batch"]
    delay: Float[Array, "*batch"]
    #: `(t, x, u) -> efforts (nv,)`
    efforts: Callable[[Scalar, Float[Array, " nx"], Float[Array, " nu"]], Effort]
    intervals: int = eqx.field(static=True)
    feedback: bool = eqx.field(static=True)
    predicts: bool = eqx.field(static=True)

    def __init__(
        self,
        problem: Problem,
        *,
        intervals: int = 30,
        solver: AbstractReplanner | None = None,
        delay: ArrayLike = 0.0,
        feedback: bool = False,
        efforts: Callable[[Scalar, Float[Array, " nx"], Float[Array, " nu"]], Effort] | None = None,
    ):
        """Arguments:

        * `problem`: a `Problem` with a fixed initial state and a fixed horizon.
        * `intervals`: number of intervals of the horizon.
        * `solver`: an `AbstractReplanner`, by default `WarmILQR()`.
        * `delay`: time from a sample until its plan acts, s, at most one interval; the plan starts from the state
          predicted for that time under the preceding plan.
        * `feedback`: apply the gains of the plan between samples.
        * `efforts`: function `(t, x, u)` of the efforts `(nv,)`, for dynamics other than a `Robot`, with `x = (q, v)`.
        """
        self.problem, self.solver, self.period, self.delay, self.predicts = prepare_replanning(
            problem, intervals, solver, delay, "ModelPredictive"
        )
        d = problem.dynamics
        if isinstance(d, Robot) and (d.inputs is None or d.layout.size):
            raise ModelError(
                f"ModelPredictive sees q and v and commands efforts, but the states {list(d.layout.names)} and the "
                f"controls {list(d.control_names)} of this Robot belong to its parts; take PredictiveInputs, which "
                "commands the inputs of actuators, or plan for a Robot whose efforts are the controls and leave the "
                "currents to jaxdyn.control.CascadedControl"
            )
        if efforts is not None:
            self.efforts = as_function(efforts)
        elif isinstance(d, Robot) and d.inputs is not None:
            self.efforts = _LinearEfforts(d.inputs)
        else:
            raise ModelError(
                f"ModelPredictive needs the dynamics of a Robot, not {type(d).__name__}; otherwise give efforts, a "
                "function (t, x, u)"
            )
        if feedback and not self.solver.gains:
            raise ModelError(f"plans of {type(self.solver).__name__} have no gains; use feedback=False, or WarmILQR")
        self.intervals, self.feedback = intervals, feedback

    def initial(self, model, q, v):
        """The guess of the problem as a plan, with a first control of zero."""
        return first_plan(self.problem, self.solver, self.intervals, jnp.concatenate([q, v]))

    def sample(self, model, t, q, v, state: Planned) -> Planned:
        """The plan from the state measured at time t, or from the state predicted for `t + delay`."""
        x = jnp.concatenate([q, v])
        if self.predicts:
            rate = lambda t, x: self.problem.dynamics.rate(t, x, self._control(t, x, state))
            x = rk4(rate, t, x, self.delay)
        return next_plan(self.problem, self.solver, t + self.delay, x, state)

    def act(self, model, t, q, v, state: Planned) -> Action:
        """The first control of the plan, with feedback if `feedback` is set."""
        x = jnp.concatenate([q, v])
        return Action(self.efforts(t, x, self._control(t, x, state)))

    def _control(self, t, x, state: Planned):
        u, b = state.u[0], self.problem.bounds
        if not self.feedback:
            return u
        s = jnp.clip((t - state.time) / self.period, 0, 1)
        u = u + state.gain @ (x - (1 - s) * state.x[0] - s * state.x[1])
        return jnp.clip(u, b.lower_control, b.upper_control)


def first_plan(problem: Problem, solver: AbstractReplanner, intervals: int, start: Float[Array, " nx"]) -> Planned:
    """The guess of the problem from a state as a plan, with a first control of zero."""
    problem = _start_from(problem, start, jnp.zeros((), problem.dtype))
    x, u = guess(problem, intervals, False)
    zero = jnp.zeros((), u.dtype)
    gain = jnp.zeros((u.shape[1], x.shape[1]), u.dtype)
    # one interval early, since the first sample shifts it
    early = lambda y: jnp.concatenate([y[:1], y[:-1]])
    return Planned(early(x), early(u).at[0].set(0), gain, solver.memory(problem, x, u), zero, zero, zero)


def next_plan(problem: Problem, solver: AbstractReplanner, t, start: Float[Array, " nx"], plan: Planned) -> Planned:
    """The plan from a state at time t (s), with the preceding plan, shifted by one interval, as the guess."""
    problem = _start_from(problem, start, t)
    b = problem.bounds
    u = jnp.clip(_shift(plan.u), b.lower_control, b.upper_control)
    found = solver.plan(problem, _shift(plan.x).at[0].set(start), u, plan.memory)
    return eqx.tree_at(lambda p: p.time, found, jnp.asarray(t, found.u.dtype))


def _start_from(problem: Problem, x, t) -> Problem:
    return eqx.tree_at(lambda p: p.start.value, shift_time(problem, t), x)


class _LinearEfforts(eqx.Module):
    """Efforts linear in the controls."""

    #: `(nv, nu)`
    inputs: Float[Array, "*batch nv nu"]

    def __call__(self, t, x, u):
        return self.inputs @ u


def _shift(y):
    return jnp.concatenate([y[1:], y[-1:]])


class _ShiftedDynamics(AbstractDynamics):
    """Dynamics whose time is measured from `start` (s)."""

    state_names: tuple[str, ...] = eqx.field(static=True)
    control_names: tuple[str, ...] = eqx.field(static=True)
    dynamics: AbstractDynamics
    #: s
    start: Float[Array, "*batch"]

    def rate(self, t, x, u):
        return self.dynamics.rate(t + self.start, x, u)


class _ShiftedImplicit(AbstractDynamics, AbstractImplicit):
    """Implicit dynamics whose time is measured from `start` (s)."""

    state_names: tuple[str, ...] = eqx.field(static=True)
    control_names: tuple[str, ...] = eqx.field(static=True)
    dynamics: Any
    #: s
    start: Float[Array, "*batch"]

    @property
    def has_cheap_residual(self) -> bool:
        return self.dynamics.has_cheap_residual

    @property
    def is_affine(self) -> bool:
        return self.dynamics.is_affine

    def rate(self, t, x, u):
        return self.dynamics.rate(t + self.start, x, u)

    def unknowns(self, t, x, u):
        return self.dynamics.unknowns(t + self.start, x, u)

    def implicit(self, t, x, u, y):
        return self.dynamics.implicit(t + self.start, x, u, y)


class _ShiftedFunction(eqx.Module):
    """A function of time and other arguments, whose time is measured from `start` (s)."""

    function: Callable[..., ArrayLike]
    start: Float[Array, "*batch"]

    def __call__(self, t, *rest):
        return self.function(t + self.start, *rest)


def shift_time(problem: Problem, t) -> Problem:
    """The problem with its time measured from t (s)."""
    d = problem.dynamics
    kind = _ShiftedImplicit if isinstance(d, AbstractImplicit) else _ShiftedDynamics
    shifted = kind(d.state_names, d.control_names, d, t)
    late = lambda f: None if f is None else _ShiftedFunction(f, t)
    path = tuple(PathConstraint(c.name, _ShiftedFunction(c.function, t), c.lower, c.upper) for c in problem.path)
    parts = (shifted, late(problem.running), late(problem.final), path)
    is_none = lambda x: x is None
    return eqx.tree_at(lambda p: (p.dynamics, p.running, p.final, p.path), problem, parts, is_leaf=is_none)
