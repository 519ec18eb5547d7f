"""Single shooting: only the controls are decision variables; an optimiser of optax follows the rollout's gradient."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.typing import ArrayLike

from jaxdyn._numerics import numbers_as_arrays
from jaxdyn._types import Array
from jaxdyn.trajopt.ilqr._algorithm import Iterate, Options, rollout, start_iterate, times_of, violations
from jaxdyn.trajopt.ilqr._sensitivity import newton_step
from jaxdyn.trajopt.ilqr._shooting_form import (
    augment_problem,
    check_simulated,
    free_states,
    restore_solution,
    set_start,
)
from jaxdyn.trajopt.ilqr._solve import guess, make_solution
from jaxdyn.trajopt.ilqr._stage import (
    Multipliers,
    augmented_lagrangian,
    end_cost,
    end_limits,
    end_rows,
    row_limits,
    rows,
    stage_cost,
)
from jaxdyn.trajopt.problem import Problem, Solution, SolveStatus, differentiate_implicitly, run_compiled


class ShootingProgress(NamedTuple):
    """Argument of the callback `progress` after each outer iteration."""

    #: steps of the optimiser so far
    iteration: Array
    #: augmented Lagrangian
    cost: Array
    violation: Array
    #: largest entry of the projected gradient
    slope: Array
    penalty: Array


class _Unknowns(NamedTuple):
    """Decision variables."""

    #: `(N, nu)`
    u: Array
    #: states that are free at the start
    start: Array


class _Shot(NamedTuple):
    unknowns: _Unknowns
    multipliers: Multipliers
    slope: Array
    violation: Array
    count: Array
    status: Array


def single_shooting(
    problem: Problem,
    *,
    intervals: int = 100,
    optimiser: optax.GradientTransformation | None = None,
    steps: int = 200,
    rounds: int = 10,
    tolerance: ArrayLike = 1e-4,
    penalty: ArrayLike = 10.0,
    growth: ArrayLike = 10.0,
    progress: bool | Callable[[ShootingProgress], object] = False,
    throw: bool = False,
) -> Solution:
    """Solves an optimal control problem over its controls, held over equal intervals, by gradients of the rollout.

    A simple method for short horizons, and for costs that are not smooth enough for second derivatives; `ilqr` and
    `solve` need far fewer iterations. Controls are projected onto their limits after each step of the optimiser; an
    augmented Lagrangian enforces the other constraints.

    Arguments:

    * `problem`: a `Problem`; free initial states, a free horizon and limited control rates are treated as by `ilqr`.
    * `intervals`: number of intervals.
    * `optimiser`: an `optax.GradientTransformation`, by default `optax.lbfgs()`.
    * `steps`: steps of the optimiser between two updates of the multipliers, at most.
    * `rounds`: updates of the multipliers, at most.
    * `tolerance`: bound on the projected gradient and on the constraint violations.
    * `penalty`, `growth`: as for `ilqr`.
    * `progress`: True prints a line for each update; a function is called with a `ShootingProgress`.
    * `throw`: raise `ConvergenceError` unless the status is `SOLVED`.

    Returns a `Solution`. `jax.vmap` over problems works. Derivatives of cost and trajectory follow from the
    optimality conditions, as for `ilqr`, to within the tolerance; derivatives of the trajectory need second
    derivatives and are NaN where these do not exist.
    """
    check_simulated(problem, "single shooting")
    problem = numbers_as_arrays(problem)
    number = lambda x: jnp.asarray(x, problem.dtype)
    method = _LBFGS if optimiser is None else optimiser
    numbers = number(tolerance), number(penalty), number(growth)
    show = _print_progress if progress is True else (progress or None)
    return run_compiled(_solution, (problem, numbers, (method, show, intervals, steps, rounds)), throw)


#: one object, so that calls with the default share compiled code
_LBFGS = optax.lbfgs()
#: the penalty of `ilqr`
_LARGE = 1e4


def _solution(arguments) -> Solution:
    problem, numbers, method = arguments
    own, parts = augment_problem(problem)
    moving, fixed = eqx.partition(own, eqx.is_array)
    leaves, treedef = jax.tree.flatten(moving)
    build = lambda leaves: eqx.combine(jax.tree.unflatten(treedef, leaves), fixed)

    def run(leaves, numbers):
        s = _optimise(build(leaves), numbers, method)
        return s, (s.x, s.u)

    correct = lambda leaves, s: newton_step(build(leaves), jax.lax.stop_gradient(build(leaves)), s)
    s, (x, u) = differentiate_implicitly(run, correct, leaves, numbers)
    solution = dataclasses.replace(make_solution(own, s._replace(x=x, u=u)), details=None)
    return restore_solution(problem, solution, parts)


def _first_state(problem: Problem, start):
    """Initial state from its free part."""
    return problem.start.value.astype(start.dtype).at[free_states(problem)].set(start)


def _augmented_cost(problem: Problem, z: _Unknowns, m: Multipliers):
    """Augmented Lagrangian of a rollout."""
    x = rollout(problem, _first_state(problem, z.start), z.u)
    t, h = times_of(problem, z.u.shape[0])
    one = lambda t, x, u, y: stage_cost(problem, t, h, x, u, y, m.penalty)[1]
    return jnp.sum(jax.vmap(one)(t, x[:-1], z.u, m.inner)) + end_cost(
        problem, problem.duration, x[-1], z.u[-1], m.end, m.penalty
    )


def _descend(problem: Problem, z: _Unknowns, m: Multipliers, method, tolerance):
    """Steps of the optimiser at fixed multipliers: decision variables, projected gradient, number of steps."""
    optimiser, _, _, steps, _ = method
    init, update = optax.with_extra_args_support(optimiser)
    value = lambda z: _augmented_cost(problem, z, m)

    def go(state):
        _, _, slope, k = state
        return (slope > tolerance) & (k < steps)

    def move(state):
        z, memory, _, k = state
        cost, gradient = jax.value_and_grad(value)(z)
        extra: Any = {"value": cost, "grad": gradient, "value_fn": value}  # for optimisers that search along a line
        change, memory = update(gradient, memory, z, **extra)
        new = _project(problem, jax.tree.map(jnp.add, z, change))
        sound = jnp.all(jnp.isfinite(new.u)) & jnp.all(jnp.isfinite(new.start))
        kept = jax.tree.map(lambda a, b: jnp.where(sound, a, b), new, z)
        return kept, memory, _free_slope(problem, z, gradient), jnp.where(sound, k + 1, steps)

    start = (z, init(z), jnp.asarray(jnp.inf, z.u.dtype), jnp.asarray(0, jnp.int32))
    z, _, slope, k = jax.lax.while_loop(go, move, start)
    return z, slope, k


def _outer_iteration(problem: Problem, numbers, method, shot: _Shot) -> _Shot:
    """Steps of the optimiser, then an update of the multipliers unless the method has ended."""
    tolerance, _, growth = numbers
    m, show = shot.multipliers, method[1]
    z, slope, k = _descend(problem, shot.unknowns, m, method, tolerance)
    x = rollout(problem, _first_state(problem, z.start), z.u)
    t, _ = times_of(problem, z.u.shape[0])
    limits = row_limits(problem)
    new = lambda t, x, u, y: augmented_lagrangian(rows(problem, t, x, u), y, m.penalty, limits)[1]
    inner = jax.vmap(new)(t, x[:-1], z.u, m.inner)
    c = end_rows(problem, problem.duration, x[-1], z.u[-1])
    end = augmented_lagrangian(c, m.end, m.penalty, end_limits(problem, c.shape[0]))[1]
    violation = jnp.max(jnp.stack([jnp.max(jnp.abs(y), initial=0) for y in violations(problem, x, z.u)]))
    slow = (violation > 0.25 * shot.violation) & (violation > tolerance)
    cost, penalty = _augmented_cost(problem, z, m), jnp.where(slow, m.penalty * growth, m.penalty)
    status = jnp.where((slope <= tolerance) & (violation <= tolerance), SolveStatus.SOLVED, -1)
    status = jnp.where(jnp.isfinite(cost), status, SolveStatus.NOT_FINITE).astype(jnp.int32)
    if show is not None:
        jax.debug.callback(lambda *x: show(ShootingProgress(*x)), shot.count + k, cost, violation, slope, m.penalty)
    after = jax.tree.map(lambda a, b: jnp.where(status < 0, a, b), Multipliers(inner, end, penalty), m)
    return _Shot(z, after, slope, violation, shot.count + k, status)


def _project(problem: Problem, z: _Unknowns) -> _Unknowns:
    """Projection of controls and free initial states onto their limits."""
    b, free = problem.bounds, free_states(problem)
    start = jnp.clip(z.start, b.lower_state[free], b.upper_state[free])
    return _Unknowns(jnp.clip(z.u, b.lower_control, b.upper_control), start)


def _active_bounds(value, gradient, low, high):
    """Active bounds: -1 or 1 where the descent direction points beyond the lower or upper limit, otherwise 0."""
    below, above = (value <= low) & (gradient > 0), (value >= high) & (gradient < 0)
    return jnp.where(below, -1, jnp.where(above, 1, 0)).astype(jnp.int32)


def _free_slope(problem: Problem, z: _Unknowns, gradient: _Unknowns):
    """Largest entry of the projected gradient."""
    b, free = problem.bounds, free_states(problem)
    held = (
        _active_bounds(z.u, gradient.u, b.lower_control, b.upper_control),
        _active_bounds(z.start, gradient.start, b.lower_state[free], b.upper_state[free]),
    )
    slopes = [jnp.where(h != 0, 0, jnp.abs(g)) for h, g in zip(held, gradient, strict=True)]
    return jnp.max(jnp.stack([jnp.max(x, initial=0) for x in slopes]))


def _optimise(problem: Problem, numbers, method) -> Iterate:
    """The last trajectory as an iterate, with costates and multipliers."""
    *_, intervals, _, rounds = method
    x, u = guess(problem, intervals, False)
    options = Options(numbers[0], numbers[1], numbers[2], 0, None)
    first = start_iterate(problem, options, x, u, None, None)
    clean = lambda x: jnp.where(jnp.isfinite(x), x, 0)
    sound = jnp.all(jnp.isfinite(u)) & jnp.all(jnp.isfinite(set_start(problem, x)[0]))
    status = jnp.where(sound, -1, SolveStatus.NOT_FINITE).astype(jnp.int32)
    inf, z = jnp.asarray(jnp.inf, u.dtype), _project(problem, _Unknowns(clean(u), clean(x[0])[free_states(problem)]))
    shot = _Shot(z, first.multipliers, inf, inf, jnp.asarray(0, jnp.int32), status)

    def go(state):
        shot, k = state
        return (shot.status < 0) & (k < rounds)

    more = lambda s: (_outer_iteration(problem, numbers, method, s[0]), s[1] + 1)
    shot, _ = jax.lax.while_loop(go, more, (shot, jnp.asarray(0, jnp.int32)))
    status = jnp.where(shot.status < 0, SolveStatus.MAX_ITERATIONS, shot.status).astype(jnp.int32)
    x = rollout(problem, clean(_first_state(problem, shot.unknowns.start)), shot.unknowns.u)
    costate, pull = _costates(problem, x, shot.unknowns.u, shot.multipliers)
    b = problem.bounds
    return first._replace(
        x=clean(x),
        u=shot.unknowns.u,
        costate=costate,
        held=_active_bounds(shot.unknowns.u, pull, b.lower_control, b.upper_control),
        multipliers=_rescale_multipliers(problem, x, shot.unknowns.u, shot.multipliers),
        optimality=shot.slope,
        status=status,
        count=shot.count,
    )


def _costates(problem: Problem, x, u, m: Multipliers):
    """Costates at the ends of intervals, and the gradient with respect to the controls."""
    t, h = times_of(problem, u.shape[0])

    def back(p, row):
        t, x, u, y = row

        def remaining(x, u):
            new, cost = stage_cost(problem, t, h, x, u, y, m.penalty)
            return cost + p @ new

        before, pull = jax.grad(remaining, (0, 1))(x, u)
        return before, (p, pull)

    last = jax.grad(lambda x: end_cost(problem, problem.duration, x, u[-1], m.end, m.penalty))(x[-1])
    return jax.lax.scan(back, last, (t, x[:-1], u, m.inner), reverse=True)[1]


def _rescale_multipliers(problem: Problem, x, u, m: Multipliers) -> Multipliers:
    """Equivalent multipliers under a penalty so large that derivatives of the trajectory converge."""
    penalty = jnp.maximum(m.penalty, _LARGE)

    def one(c, y, limits):
        push = augmented_lagrangian(c, y, m.penalty, limits)[1]
        active = (push != 0) | (limits[0] == limits[1])
        limit = jnp.where(active, jnp.where(push > 0, limits[1], limits[0]), 0)
        return jnp.where(active, push - penalty * (c - limit), 0)

    t, _ = times_of(problem, u.shape[0])
    limits = row_limits(problem)
    inner = jax.vmap(lambda t, x, u, y: one(rows(problem, t, x, u), y, limits))(t, x[:-1], u, m.inner)
    c = end_rows(problem, problem.duration, x[-1], u[-1])
    return Multipliers(inner, one(c, m.end, end_limits(problem, c.shape[0])), penalty)


def _print_progress(p: ShootingProgress):
    text = f"{int(p.iteration):5d}  cost {float(p.cost):.8g}  violation {float(p.violation):.1e}"
    print(f"{text}  slope {float(p.slope):.1e}  penalty {float(p.penalty):.0e}")  # noqa: T201
