"""Design of excitation trajectories: the most informative motion within all limits."""

import io
import os
from collections.abc import Callable
from dataclasses import dataclass, field

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.typing import ArrayLike

from jaxdyn._errors import ConvergenceError, ModelError
from jaxdyn._status import Status
from jaxdyn._types import Array
from jaxdyn.dynamics import passive_forces, rnea
from jaxdyn.identification.excitation._information import Information, information_of, log_condition, log_volume
from jaxdyn.identification.excitation._limits import (
    MotionLimits,
    Workspace,
    check_limits,
    margins,
    middle_and_size,
    motion_limits,
)
from jaxdyn.identification.excitation._motions import AbstractMotionCurve, random_fourier
from jaxdyn.io.files import write_bytes
from jaxdyn.model import Model
from jaxdyn.simulation import coordinate_names, effort_names, velocity_names

_GRID_REFINEMENT = 5  # limits are verified on a grid finer by this factor than that of the optimisation
_SHRINK_FACTORS = np.linspace(1.0, 0.5, 26)
_ADAM = optax.chain(optax.clip_by_global_norm(10.0), optax.scale_by_adam())  # a single object, to compile once


class ExcitationStatus(Status):
    """How the design of an excitation trajectory ended."""

    FOUND = 0, "all limits are satisfied on the fine grid"
    INFEASIBLE = 1, "no start led to a motion that satisfies all limits"
    NOT_FINITE = 2, "the criterion is not finite: the motion does not excite all base parameters"


@dataclass(frozen=True)
class Excitation:
    """An excitation trajectory, with its condition number and criterion before and after the optimisation."""

    motion: AbstractMotionCurve
    status: ExcitationStatus
    #: condition number of the scaled base regressor: of the best initial motion (the warm start), and of the result
    condition_before: float
    condition: float
    #: the criterion of the same motions
    criterion_before: float
    criterion: float
    #: number of base parameters
    num_base: int
    #: least margin to each kind of limit on the fine grid; not negative where satisfied
    margins: dict[str, float]
    #: criterion and feasibility of each start
    starts: tuple[tuple[float, bool], ...]
    model: Model = field(repr=False)
    #: best criterion of all starts after each round
    history: tuple[float, ...] = field(repr=False)

    def sample(self, rate: float | int, periods: int = 1) -> dict[str, np.ndarray]:
        """Samples at `rate` (Hz) over `periods` periods: `t`, `q`, `v`, `a`, and `effort` of the prior model."""
        if not rate > 0 or periods < 1:
            raise ModelError(
                f"rate {rate:g} Hz and {periods} periods; expected a positive rate and at least one period"
            )
        duration = float(self.motion.duration)
        count = round(duration * rate) * periods + 1
        t = np.arange(count) / rate
        q, v, a = _sample_motion(self.motion, jnp.asarray(t % duration))
        effort = _inverse_dynamics(self.model, q, v, a)
        return {"t": t, "q": np.asarray(q), "v": np.asarray(v), "a": np.asarray(a), "effort": np.asarray(effort)}

    def to_csv(self, path: str | os.PathLike[str], rate: float | int, periods: int = 1):
        """Writes `t`, `q.<joint>`, `v.<joint>`, `a.<joint>`, `effort.<joint>` at `rate` (Hz), atomically."""
        x = self.sample(rate, periods)
        heads = ["t"]
        for letter, names in (("q", coordinate_names), ("v", velocity_names), ("a", velocity_names)):
            heads += [f"{letter}.{name}" for name, _ in names(self.model)]
        heads += [f"effort.{name}" for name, _ in effort_names(self.model)]
        text = io.StringIO()
        text.write(",".join(heads) + "\n")
        np.savetxt(text, np.column_stack(list(x.values())), fmt="%.17g", delimiter=",")
        write_bytes(path, text.getvalue().encode())

    def checked(self) -> "Excitation":
        """Returns this result; raises `ConvergenceError` if it violates a limit."""
        if self.status != ExcitationStatus.FOUND:
            violated = ", ".join(f"{kind} by {-least:.3g}" for kind, least in self.margins.items() if least < 0)
            raise ConvergenceError(
                f"no excitation trajectory was found: {self.status.name}, violated limits: {violated or 'none'}; widen "
                "the bounds, or increase duration, starts or steps"
            )
        return self


class _Problem(eqx.Module):
    """The criterion and the limits of the optimisation."""

    information: Information
    bounds: MotionLimits
    workspace: tuple[Workspace, ...] = eqx.field(static=True)
    criterion: Callable[[Array], Array] = eqx.field(static=True)

    def criterion_and_margins(self, motion: AbstractMotionCurve, times):
        """The criterion, and the margins by kind of limit `(times, ...)`."""
        q, v, a = _sample_motion(motion, times)
        limit = lambda *x: margins(self.information.model, self.bounds, self.workspace, *x)
        return self.criterion(self.information.gram(q, v, a)), jax.vmap(limit)(q, v, a)


def _sample_motion(motion, times):
    return jax.vmap(motion.at)(times)


@eqx.filter_jit
def _inverse_dynamics(model: Model, q, v, a):
    one = lambda q, v, a: rnea(model, q, v, a) - passive_forces(model, q, v)
    return jax.vmap(one)(q, v, a)


def design_excitation(
    model: Model,
    *,
    start: AbstractMotionCurve | Callable[[Array, Array, Array, float | int], AbstractMotionCurve] = random_fourier,
    duration: float | int = 10.0,
    bounds: MotionLimits | None = None,
    workspace: tuple[Workspace, ...] = (),
    criterion: Callable[[Array], Array] = log_volume,
    noise: ArrayLike | None = None,
    samples: int = 80,
    starts: int = 8,
    rounds: int = 8,
    steps: int = 60,
    rate: float = 0.03,
    key: Array | None = None,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Excitation:
    """Designs an excitation trajectory: the most informative motion for the base parameters within all limits.

    `min criterion(sum Y_b^T Y_b / n)` over the leaves of a motion curve, subject to `margins(q, v, a) >= 0`, where Y_b
    is the base regressor. An augmented Lagrangian method (Nocedal and Wright, 17.4) with `rounds` of `steps` Adam steps
    runs from several starts in parallel. Limits are verified on a grid finer by a factor of 5; the displacement of a
    motion that violates a limit is scaled down, at most by half.

    Arguments:

    * `model`: the prior model of the robot.
    * `start`: a motion curve (warm start; further starts are random perturbations of it), or a function of (key,
      middle, size, duration) that returns one: `random_fourier` with 5 harmonics or `random_spline` with 12 points.
    * `duration`: duration of the motion, s; a warm start keeps its own.
    * `bounds`: `MotionLimits`; default: 0.9 times the limits of the model.
    * `workspace`: functions of (model, q), such as `link_above`.
    * `criterion`: function of the information matrix to minimise: `log_volume` (D-optimality) or `log_condition`.
    * `noise`: standard deviations of the efforts `(nv,)`, N m or N; default: proportional to the effort limits.
    * `samples`: number of samples of the motion in the optimisation.
    * `starts`: number of initial motions.
    * `rounds`: number of multiplier updates; `steps`: Adam steps per round; `rate`: initial step size.
    * `key`: JAX random key.
    * `progress`: called after each round with the number of completed rounds and of all rounds.

    Returns an `Excitation`, whose `status` is `FOUND` if all limits are satisfied. Raises `ModelError` for joints
    without any limit.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.identification import MotionLimits, design_excitation

    robot = jd.robots.pendulum()
    limits = MotionLimits(*(jnp.array([x]) for x in (-1.0, 1.0, 3.0, 20.0, 50.0)))
    result = design_excitation(robot, duration=5.0, bounds=limits, samples=20, starts=2, rounds=2, steps=20)
    print(result.checked().condition)
    trajectory = result.sample(rate=100.0)
    assert trajectory["q"].shape == (501, 1)
    ```
    """
    bounds = motion_limits(model) if bounds is None else bounds
    check_limits(model, bounds)
    key = jax.random.key(0) if key is None else key
    middle, size = middle_and_size(bounds)
    first, other = jax.random.split(key)
    velocity = _typical_velocity(bounds, size)
    information = information_of(model, _noise_or_default(bounds, noise), first, middle - size, middle + size, velocity)
    problem = _Problem(information, bounds, tuple(workspace), criterion)
    motions = _initial_motions(start, other, starts, middle, size, duration, bounds)
    length = float(jax.tree.leaves(motions.duration)[0].reshape(-1)[0])
    times = jnp.arange(samples, dtype=model.dtype) * (length / samples)
    dense = jnp.arange(_GRID_REFINEMENT * samples + 1, dtype=model.dtype) * (length / samples / _GRID_REFINEMENT)
    scales = jax.vmap(lambda m: m.scales(size))(motions)
    is_warm_start = isinstance(start, AbstractMotionCurve)
    before = _evaluate_motions(problem, jax.tree.map(lambda x: x[:1], motions) if is_warm_start else motions, dense)
    optimised, history = _minimise(problem, motions, scales, times, (rounds, steps, rate), progress)
    return _select_best(problem, optimised, dense, before, history)


def _noise_or_default(bounds: MotionLimits, noise: ArrayLike | None):
    if noise is not None:
        return jnp.broadcast_to(jnp.asarray(noise, bounds.effort.dtype), bounds.effort.shape)
    finite = jnp.isfinite(bounds.effort)
    greatest = jnp.max(jnp.where(finite, bounds.effort, 0.0))
    greatest = jnp.where(greatest > 0, greatest, 1.0)
    return 0.01 * jnp.where(finite, bounds.effort, greatest)


def _typical_velocity(bounds: MotionLimits, size):
    """A typical velocity: the velocity limit, at most the position range per second."""
    return jnp.minimum(jnp.where(jnp.isfinite(bounds.velocity), bounds.velocity, jnp.inf), 2 * size)


def _initial_motions(start, key, starts: int, middle, size, duration: float | int, bounds: MotionLimits):
    """The initial motions, stacked; random ones satisfy the limits of position and velocity."""
    if starts < 1:
        raise ModelError(f"starts is {starts}; expected one or more")
    keys = jax.random.split(key, starts)
    if isinstance(start, AbstractMotionCurve):
        unit = start.scales(size)
        noise = lambda k, x, s: jnp.where(k > 0, 0.1 * s * jax.random.normal(keys[k], x.shape, x.dtype), 0.0)
        perturb = lambda k: jax.tree.map(lambda x, s: x + noise(k, x, s), _free_leaves(start), _free_leaves(unit))
        many = [eqx.combine(perturb(k), start) for k in range(starts)]
        many = [_with_duration(m, start.duration) for m in many]
        return jax.tree.map(lambda *x: jnp.stack([jnp.asarray(y) for y in x]), *many)
    return _random_motions(start, keys, middle, size, duration, bounds)


@eqx.filter_jit
def _random_motions(start, keys, middle, size, duration: float | int, bounds: MotionLimits):
    """Motions by `start`, scaled down to the limits. The duration is static: functions of users may compare it."""
    times = jnp.linspace(0.0, 1.0, 101)

    def random_start(k):
        motion = start(k, middle, 0.7 * size, duration)
        q, v, _ = _sample_motion(motion, times.astype(middle.dtype) * motion.duration)
        finite = jnp.isfinite(bounds.velocity)
        ratio = jnp.max(jnp.where(finite, jnp.max(jnp.abs(v), axis=0) / jnp.where(finite, bounds.velocity, 1.0), 0.0))
        reach = jnp.max(jnp.max(jnp.abs(q - middle), axis=0) / size)
        return motion.scaled(1 / jnp.maximum(jnp.maximum(ratio, reach), 1.0))

    return jax.vmap(random_start)(keys)


def _free_leaves(motion):
    """The decision variables: all leaves except the duration."""
    return _with_duration(motion, None)


def _with_duration(motion, duration):
    return eqx.tree_at(lambda m: m.duration, motion, duration, is_leaf=lambda x: x is None)


@eqx.filter_jit
def _evaluate_motions(problem: _Problem, motions, times):
    """Criterion, condition number and least margins by kind of limit, for each motion."""

    def one(motion):
        value, within = problem.criterion_and_margins(motion, times)
        gram = problem.information.gram(*_sample_motion(motion, times))
        return value, jnp.exp(log_condition(gram)), jax.tree.map(jnp.min, within)

    return jax.vmap(one)(motions)


def _minimise(problem: _Problem, motions, scales, times, sizes, progress: Callable[[int, int], object]):
    """Minimises the augmented Lagrangian from all starts in parallel."""
    rounds, steps, rate = sizes
    durations = motions.duration
    free = jax.tree.map(lambda x, s: x / s, _free_leaves(motions), _free_leaves(scales))
    shapes = eqx.filter_eval_shape(jax.vmap(lambda m: problem.criterion_and_margins(m, times)[1]), motions)
    multipliers = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    memory = jax.vmap(_ADAM.init)(free)
    cast = lambda x: jnp.asarray(x, times.dtype)
    history = []
    for k in range(rounds):
        rates = cast(rate * 0.05 ** ((k + np.arange(steps) / steps) / rounds))  # decays to a twentieth
        free, memory, multipliers, values = _run_round(
            problem, (free, durations, scales), memory, multipliers, cast(10.0 * 2.0**k), times, rates
        )
        history.append(float(jnp.min(values)))
        progress(k + 1, rounds)
    restored = jax.tree.map(lambda x, s: x * s, free, _free_leaves(scales))
    return _with_duration(restored, durations), tuple(history)


@eqx.filter_jit
def _run_round(problem: _Problem, motions, memory, multipliers, weight, times, rates):
    """Adam steps with the given step sizes, then the multiplier update `max(0, multiplier - weight * margin)`."""

    def physical(free, duration, scale):
        return _with_duration(jax.tree.map(lambda x, s: x * s, free, _free_leaves(scale)), duration)

    def cost(free, duration, scale, multiplier):
        value, within = problem.criterion_and_margins(physical(free, duration, scale), times)
        penalty = lambda m, g: jnp.sum(jnp.maximum(m - weight * g, 0.0) ** 2 - m**2) / (2 * weight)
        total = sum(jax.tree.leaves(jax.tree.map(penalty, multiplier, within)), jnp.zeros((), times.dtype))
        return value + total / times.shape[0], value

    def optimise(free, duration, scale, memory, multiplier):
        def step(carry, rate):
            free, memory = carry
            gradient, value = jax.grad(cost, has_aux=True)(free, duration, scale, multiplier)
            move, memory = _ADAM.update(gradient, memory)
            return (jax.tree.map(lambda x, d: x - rate * d, free, move), memory), value

        (free, memory), values = jax.lax.scan(step, (free, memory), rates)
        within = problem.criterion_and_margins(physical(free, duration, scale), times)[1]
        multiplier = jax.tree.map(lambda m, g: jnp.maximum(m - weight * g, 0.0), multiplier, within)
        return free, memory, multiplier, values[-1]

    free, duration, scale = motions
    return jax.vmap(optimise)(free, duration, scale, memory, multipliers)


def _select_best(problem: _Problem, optimised, dense, before, history) -> Excitation:
    """The best motion that satisfies all limits, scaled down as far as the limits require."""
    shrunk = eqx.filter_vmap(lambda factor: eqx.filter_vmap(lambda m: m.scaled(factor))(optimised))
    factors = jnp.asarray(_SHRINK_FACTORS, dense.dtype)
    least = np.asarray(_least_margins(problem, shrunk(factors), dense))
    is_satisfied = np.greater_equal(least, 0)
    first = np.argmax(is_satisfied, axis=0)
    feasible = np.asarray(np.any(is_satisfied, axis=0))
    used = np.where(feasible, factors[first], 1.0)
    motions = eqx.filter_vmap(lambda m, f: m.scaled(f))(optimised, jnp.asarray(used, dense.dtype))
    values, conditions, within = (jax.tree.map(np.asarray, x) for x in _evaluate_motions(problem, motions, dense))
    violation = np.maximum(-least.max(axis=0), 0.0)
    rank = np.where(np.isfinite(values), values, 1e12) + np.where(feasible, 0.0, 1e6 * (1 + violation))
    best = int(np.argmin(rank))
    status = ExcitationStatus.FOUND if feasible[best] else ExcitationStatus.INFEASIBLE
    if not np.isfinite(values[best]):
        status = ExcitationStatus.NOT_FINITE
    initial, condition, _ = (jax.tree.map(np.asarray, x) for x in before)
    first = int(np.nanargmin(initial))
    return Excitation(
        motion=jax.tree.map(lambda x: x[best], motions),
        status=status,
        condition_before=float(condition[first]),
        condition=float(conditions[best]),
        criterion_before=float(initial[first]),
        criterion=float(values[best]),
        num_base=problem.information.basis.shape[1],
        margins={kind: float(x[best]) for kind, x in within.items()},
        starts=tuple((float(v), bool(f)) for v, f in zip(values, feasible, strict=True)),
        model=problem.information.model,
        history=history,
    )


@eqx.filter_jit
def _least_margins(problem: _Problem, motions, times):
    """The least margin of each motion, `(factors, starts)`."""

    def one(motion):
        q, v, a = _sample_motion(motion, times)
        limit = lambda *x: margins(problem.information.model, problem.bounds, problem.workspace, *x)
        within = jax.vmap(limit)(q, v, a)
        return jnp.min(jnp.stack([jnp.min(x) for x in jax.tree.leaves(within)]))

    return jax.lax.map(jax.vmap(one), motions)
