"""`multi_phase`: a sequence of phases as one optimal control problem."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError, ShapeError, check_instance
from jaxdyn.trajopt.phases._dynamics import phased_dynamics
from jaxdyn.trajopt.phases._functions import (
    Conditions,
    ControlCondition,
    Coupling,
    FinalCost,
    Jump,
    PhaseFunction,
    RunningCost,
    StateCondition,
    StoredCost,
)
from jaxdyn.trajopt.phases._stack import PhaseSize, Stack
from jaxdyn.trajopt.phases._transition import Transition
from jaxdyn.trajopt.problem import (
    AbstractConstrainedDynamics,
    Boundary,
    Bounds,
    Guess,
    PathConstraint,
    PointFunction,
    Problem,
)


def multi_phase(phases: Sequence[Problem], transitions: Sequence[Transition]) -> Problem:
    """A prescribed sequence of phases as one problem, for `solve` and all that takes a `Problem`.

    Each phase is a `Problem` with its own dynamics, states, costs, bounds, path constraints and duration, which is a
    decision variable where the phase has `free_duration`. Transitions join them: `x_next(start) = map(x(end))`. The
    cost is the sum of the costs of the phases. Times in costs and constraints count from the start of the first phase.

    The phases run side by side over one horizon, alternately forward and backward, so that each transition is a
    boundary condition. All phases therefore have the same number of intervals; for a finer phase, divide it in two that
    a `Transition()` joins.

    Arguments:

    * `phases`: at least one problem, in the order of time.
    * `transitions`: one fewer than phases, each from a phase to the next; or as many as phases, where the last one
      leads from the end of the last phase to the start of the first: a periodic motion.

    Returns a `Problem`, whose horizon is a fraction from 0 to 1; `phase_trajectories` returns the phases of its
    solution. It needs a transcription with controls at nodes. Raises `ModelError` for a wrong number of transitions,
    for a rate bound of controls in a phase with a free duration, and `ShapeError` for maps to states of a wrong shape.

    ```python
    import jax.numpy as jnp

    from jaxdyn.trajopt import Problem, Transition, VectorField, multi_phase, partial, phase_trajectories, solve


    def throw(t, x, u, p):
        return jnp.stack([x[1], u[0] - 10.0])


    def effort(t, x, u):
        return u @ u


    def bounce(x):
        return -0.5 * x


    ball = VectorField(throw, ("height", "velocity"), ("thrust",))
    fall = Problem(ball, 0.4, start=jnp.array([1.0, 0.0]), end=partial([0.0], [0]), running=effort)
    rise = Problem(ball, 0.3, end=jnp.array([0.5, 0.0]), running=effort)
    plan = solve(multi_phase([fall, rise], [Transition(bounce)]), intervals=2)
    down, up = phase_trajectories(plan)
    assert jnp.allclose(up.x[0, 1], -0.5 * down.x[-1, 1])
    ```
    """
    problems = tuple(phases)
    transitions = tuple(transitions)
    _check(problems, transitions)
    stored = tuple(i for i, p in enumerate(problems) if p.final is not None and (len(problems) - 1 - i) % 2)
    durations = tuple(None if p.free_duration else p.duration for p in problems)
    stack = Stack(durations, tuple(_size(p) for p in problems), stored)
    jumps = [Jump(stack, t, i, (i + 1) % len(problems)) for i, t in enumerate(transitions)]
    start, end = (_conditions(stack, problems, jumps, side) for side in (0, 1))
    dtype = jnp.result_type(*(p.duration for p in problems))
    return Problem(
        phased_dynamics(stack, problems),
        jnp.ones((), dtype),
        start=_state_boundary(stack, problems, 0),
        end=_state_boundary(stack, problems, 1),
        start_control=_control_boundary(stack, problems, 0),
        end_control=_control_boundary(stack, problems, 1),
        start_condition=start,
        end_condition=end,
        running=RunningCost(stack, tuple(p.running for p in problems)),
        final=FinalCost(stack, tuple(p.final for p in problems)),
        bounds=_bounds(stack, problems),
        path=[
            PathConstraint(f"{c.name} in phase {i}", PhaseFunction(stack, c.function, i), c.lower, c.upper)
            for i, p in enumerate(problems)
            for c in p.path
        ],
        coupling=_coupling(stack, problems, jumps),
        guess=_guess(stack, problems),
    )


def _size(problem: Problem) -> PhaseSize:
    d = problem.dynamics
    return PhaseSize(problem.nx, problem.nu, d.num_forces if isinstance(d, AbstractConstrainedDynamics) else 0)


def _check(problems: tuple[Problem, ...], transitions: tuple[Transition, ...]):
    if not problems:
        raise ModelError("multi_phase has no phases; give at least one Problem")
    for p in problems:
        check_instance("a phase", p, Problem, "make it with jaxdyn.trajopt.Problem")
    for t in transitions:
        check_instance("a transition", t, Transition, "make it with jaxdyn.trajopt.Transition")
    if len(transitions) not in (len(problems) - 1, len(problems)):
        raise ModelError(
            f"{len(problems)} phases are joined by {len(transitions)} transitions; give {len(problems) - 1}, or "
            f"{len(problems)} for a periodic motion"
        )
    for i, (p, t) in enumerate(zip(problems, transitions, strict=False)):
        following = problems[(i + 1) % len(problems)]
        found = jax.eval_shape(t.apply, jax.ShapeDtypeStruct((p.nx,), p.dtype)).shape
        if found != (following.nx,):
            raise ShapeError(
                f"transition {i} leads to a state of shape {found}, but the phase that follows has ({following.nx},); "
                "give Transition(map=...) a function from the states of one phase to those of the next"
            )
    for i, p in enumerate(problems):
        if p.free_duration and p.bounds.control_rate is not None:
            raise ModelError(
                f"phase {i} has a free duration and bounds of control rates; make the controls states whose rates are "
                "controls, or fix the duration"
            )


def _side(stack: Stack, problem: Problem, i: int, side: int, name: str):
    """The attribute `start...` or `end...` of a phase at an end of the horizon."""
    return getattr(problem, ("end" if side == stack.end_side(i) else "start") + name)


def _state_boundary(stack: Stack, problems, side: int) -> Boundary:
    own = [_side(stack, p, i, side, "") for i, p in enumerate(problems)]
    value = stack.join_states([b.value for b in own], [0.0] * len(stack.free), 0.0)
    return Boundary(value, sum((b.fixed for b in own), ()) + (False,) * stack.num_constants)


def _control_boundary(stack: Stack, problems, side: int) -> Boundary:
    own = [_side(stack, p, i, side, "_control") for i, p in enumerate(problems)]
    fixed = [False] * sum(size.nu for size in stack.sizes)
    for i, boundary in enumerate(own):
        for k, is_fixed in zip(stack.controls(i), boundary.fixed, strict=True):
            fixed[k] = is_fixed
    return Boundary(stack.join_controls([b.value for b in own]), tuple(fixed))


def _conditions(stack: Stack, problems, jumps: list[Jump], side: int) -> Conditions | None:
    """Conditions of phases and transitions at an end of the horizon."""
    functions: list[PointFunction] = []
    for i, p in enumerate(problems):
        state, control = _side(stack, p, i, side, ""), _side(stack, p, i, side, "_control")
        both = _side(stack, p, i, side, "_condition")
        functions += [] if state.condition is None else [StateCondition(stack, state.condition, i)]
        functions += [] if control.condition is None else [ControlCondition(stack, control.condition, i)]
        functions += [] if both is None else [PhaseFunction(stack, both, i)]
        if i in stack.stored_costs and side == stack.end_side(i):
            functions.append(StoredCost(stack, p.final, i))
    for jump in jumps:
        if stack.end_side(jump.before) != side:
            continue
        if not _needs_coupling(stack, jump):
            functions.append(jump)
        if jump.transition.condition is not None:
            functions.append(PhaseFunction(stack, jump.transition.condition, jump.before))
    return Conditions(tuple(functions)) if functions else None


def _needs_coupling(stack: Stack, jump: Jump) -> bool:
    """Whether a transition joins both ends of the horizon."""
    return stack.is_forward(jump.before) == stack.is_forward(jump.after)


def _coupling(stack: Stack, problems, jumps: list[Jump]) -> Coupling | None:
    closing = next((jump for jump in jumps if _needs_coupling(stack, jump)), None)
    own = tuple(p.coupling for p in problems)
    return None if closing is None and all(c is None for c in own) else Coupling(stack, own, closing)


def _bounds(stack: Stack, problems) -> Bounds:
    limits = lambda k: [p.duration_range[k] for p in problems if p.free_duration]
    states = lambda k, name: stack.join_states([getattr(p.bounds, name) for p in problems], limits(k), _INFINITE[k])
    controls = lambda name: stack.join_controls([getattr(p.bounds, name) for p in problems])
    rate = None
    if any(p.bounds.control_rate is not None for p in problems):
        largest = lambda p: np.full(p.nu, np.inf) if p.bounds.control_rate is None else p.bounds.control_rate
        rate = stack.join_controls([largest(p) * p.duration for p in problems])
    return Bounds(
        states(0, "lower_state"),
        states(1, "upper_state"),
        controls("lower_control"),
        controls("upper_control"),
        rate,
    )


_INFINITE = (-np.inf, np.inf)


def _guess(stack: Stack, problems) -> Guess:
    own = [p.guess.s if stack.is_forward(i) else 1 - p.guess.s[::-1] for i, p in enumerate(problems)]
    s = jnp.sort(jnp.concatenate(own))
    rows = [p.guess.at(s if stack.is_forward(i) else 1 - s) for i, p in enumerate(problems)]
    durations = [p.duration for p in problems if p.free_duration]
    return Guess(s, stack.join_states([x for x, _ in rows], durations, 0.0), stack.join_controls([u for _, u in rows]))
