"""Motions that say the most about a robot's parameters, within its limits."""

import enum
import io
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxdyn._errors import ConvergenceError, ModelError
from jaxdyn.dynamics import passive_forces, rnea
from jaxdyn.identification._excitation_information import Information, information_of, log_condition, log_volume
from jaxdyn.identification._excitation_limits import (
    Bounds,
    Workspace,
    bounds_of,
    check_bounds,
    margins,
    middle_and_size,
)
from jaxdyn.identification._excitation_motion import AbstractMotionCurve, random_fourier
from jaxdyn.io._paths import write_bytes
from jaxdyn.model import Model
from jaxdyn.simulation import coordinate_names, effort_names, velocity_names

_DENSE = 5  # limits are verified on so many times the samples of the search
_SHRINK = np.linspace(1.0, 0.5, 26)
_ADAM = optax.chain(optax.clip_by_global_norm(10.0), optax.scale_by_adam())  # one object, so compiled once


class ExcitationStatus(enum.IntEnum):
    """How a search for a motion ended."""

    #: all limits hold on the dense grid
    FOUND = 0
    #: no start led to a motion within all limits
    INFEASIBLE = 1
    #: the criterion is not finite: the motion shows less than all base parameters
    NOT_FINITE = 2


@dataclass(frozen=True)
class Excitation:
    """An exciting motion, and what it says compared to the one that the search began with."""

    motion: AbstractMotionCurve
    status: ExcitationStatus
    #: condition number of the base regressor in scaled columns, at the best of the starts (at a warm start), and
    #: at the result
    condition_before: float
    condition: float
    #: the criterion, likewise
    criterion_before: float
    criterion: float
    #: number of base parameters
    num_base: int
    #: the least margin to each kind of limit on the dense grid; not negative where it holds
    margins: dict[str, float]
    #: criterion and feasibility of each start
    starts: tuple[tuple[float, bool], ...]
    model: Model = field(repr=False)
    #: best criterion of all starts after each round
    history: tuple[float, ...] = field(repr=False)

    def sample(self, rate: float | int, periods: int = 1) -> dict[str, np.ndarray]:
        """The motion at `rate` (Hz), repeated: `t`, `q`, `v`, `a` and the `effort` by the prior model."""
        if not rate > 0 or periods < 1:
            raise ModelError(
                f"rate {rate:g} Hz and {periods} periods; expected a positive rate and at least one period"
            )
        duration = float(self.motion.duration)
        count = round(duration * rate) * periods + 1
        t = np.arange(count) / rate
        q, v, a = _states(self.motion, jnp.asarray(t % duration))
        effort = _efforts(self.model, q, v, a)
        return {"t": t, "q": np.asarray(q), "v": np.asarray(v), "a": np.asarray(a), "effort": np.asarray(effort)}

    def to_csv(self, path: str | os.PathLike[str], rate: float | int, periods: int = 1):
        """Writes `t`, `q.<joint>`, `v.<joint>`, `a.<joint>`, `effort.<joint>` at `rate` (Hz), whole or not at all."""
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
        """This result, or `ConvergenceError` if it does not keep all limits."""
        if self.status != ExcitationStatus.FOUND:
            outside = ", ".join(f"{kind} by {-least:.3g}" for kind, least in self.margins.items() if least < 0)
            raise ConvergenceError(
                f"no exciting motion was found: {self.status.name}, exceeded {outside or 'nothing'}; widen the bounds, "
                "take a longer duration, more starts or more steps"
            )
        return self


class _Problem(eqx.Module):
    """What is minimised, and under which limits."""

    information: Information
    bounds: Bounds
    workspace: tuple[Workspace, ...] = eqx.field(static=True)
    criterion: Callable[[Any], Any] = eqx.field(static=True)

    def both(self, motion: AbstractMotionCurve, times):
        """The criterion, and margins by kind of limit `(times, ...)`."""
        q, v, a = _states(motion, times)
        limit = lambda *x: margins(self.information.model, self.bounds, self.workspace, *x)
        return self.criterion(self.information.gram(q, v, a)), jax.vmap(limit)(q, v, a)


def _states(motion, times):
    return jax.vmap(motion.at)(times)


@eqx.filter_jit
def _efforts(model: Model, q, v, a):
    one = lambda q, v, a: rnea(model, q, v, a) - passive_forces(model, q, v)
    return jax.vmap(one)(q, v, a)


def design_excitation(
    model: Model,
    *,
    start: AbstractMotionCurve | Callable[[Any, Any, Any, float | int], AbstractMotionCurve] = random_fourier,
    duration: float | int = 10.0,
    bounds: Bounds | None = None,
    workspace: tuple[Workspace, ...] = (),
    criterion: Callable[[Any], Any] = log_volume,
    noise: Any = None,
    samples: int = 80,
    starts: int = 8,
    rounds: int = 8,
    steps: int = 60,
    rate: float = 0.03,
    key: Any = None,
    progress: Callable[[int, int], Any] = lambda done, of: None,
) -> Excitation:
    """A motion along which joint efforts say the most about the base parameters, within all limits.

    `min criterion(sum Y_b^T Y_b)` over the leaves of a motion, subject to `margins(q, v, a) >= 0`, by an augmented
    Lagrangian (Nocedal and Wright, 17.4) in `rounds` of `steps` steps of Adam, from several starts at once; Y_b is the
    regressor on the directions that can be told at all, with gradients through it. At the end limits are verified on
    a grid five times as dense, and a motion that is outside is drawn towards its middle, by at most half.

    * `start`: a motion to begin with (warm start; the other starts are it, disturbed), or a function of (key, middle,
      size, duration) that makes one: `random_fourier` with 5 harmonics, or `random_spline` with 12 points.
    * `bounds`: by default 0.9 of the model's own limits; `workspace`: functions of (model, q), see `link_above`.
    * `criterion`: a function of the information matrix, `log_volume` or `log_condition`, to be made small.
    * `noise`: standard deviations of the efforts `(nv,)`, N m or N; by default in proportion to the effort limits.
    * `progress`: called after each round with the number of rounds done and of all.
    """
    bounds = bounds_of(model) if bounds is None else bounds
    check_bounds(model, bounds)
    key = jax.random.key(0) if key is None else key
    middle, size = middle_and_size(bounds)
    first, other = jax.random.split(key)
    known = information_of(model, _noise(bounds, noise), first, middle - size, middle + size, _velocity(bounds, size))
    problem = _Problem(known, bounds, tuple(workspace), criterion)
    motions = _begin(start, other, starts, middle, size, duration, bounds)
    length = float(jax.tree.leaves(motions.duration)[0].reshape(-1)[0])
    times = jnp.arange(samples, dtype=model.dtype) * (length / samples)
    dense = jnp.arange(_DENSE * samples + 1, dtype=model.dtype) * (length / samples / _DENSE)
    scales = jax.vmap(lambda m: m.scales(size))(motions)
    warm = isinstance(start, AbstractMotionCurve)
    before = _values(problem, jax.tree.map(lambda x: x[:1], motions) if warm else motions, dense)
    found, history = _search(problem, motions, scales, times, (rounds, steps, rate), progress)
    return _chosen(problem, found, dense, before, history)


def _noise(bounds: Bounds, noise: Any):
    if noise is not None:
        return jnp.broadcast_to(jnp.asarray(noise, bounds.effort.dtype), bounds.effort.shape)
    known = jnp.isfinite(bounds.effort)
    usual = jnp.max(jnp.where(known, bounds.effort, 0.0))
    usual = jnp.where(usual > 0, usual, 1.0)
    return 0.01 * jnp.where(known, bounds.effort, usual)


def _velocity(bounds: Bounds, size):
    """A usual velocity: the limit, or once over the range and back in a second or so."""
    return jnp.minimum(jnp.where(jnp.isfinite(bounds.velocity), bounds.velocity, jnp.inf), 2 * size)


def _begin(start: Any, key, starts: int, middle, size, duration: float | int, bounds: Bounds):
    """Motions to begin with, stacked; their velocities are within the limits."""
    if starts < 1:
        raise ModelError(f"{starts} starts; expected one or more")
    keys = jax.random.split(key, starts)
    if isinstance(start, AbstractMotionCurve):
        unit = start.scales(size)
        noise = lambda k, x, s: jnp.where(k > 0, 0.1 * s * jax.random.normal(keys[k], x.shape, x.dtype), 0.0)
        moved = lambda k: jax.tree.map(lambda x, s: x + noise(k, x, s), _free(start), _free(unit))
        many = [eqx.combine(moved(k), start) for k in range(starts)]
        many = [_with_duration(m, start.duration) for m in many]
        return jax.tree.map(lambda *x: jnp.stack([jnp.asarray(y) for y in x]), *many)
    times = jnp.linspace(0.0, 1.0, 101)

    def slowed(k):
        motion = start(k, middle, 0.7 * size, duration)
        q, v, _ = _states(motion, times.astype(middle.dtype) * motion.duration)
        known = jnp.isfinite(bounds.velocity)
        ratio = jnp.max(jnp.where(known, jnp.max(jnp.abs(v), axis=0) / jnp.where(known, bounds.velocity, 1.0), 0.0))
        reach = jnp.max(jnp.max(jnp.abs(q - middle), axis=0) / size)
        return motion.scaled(1 / jnp.maximum(jnp.maximum(ratio, reach), 1.0))

    return eqx.filter_jit(jax.vmap(slowed))(keys)


def _free(motion):
    """The leaves that may move: all but the duration."""
    return _with_duration(motion, None)


def _with_duration(motion, duration):
    return eqx.tree_at(lambda m: m.duration, motion, duration, is_leaf=lambda x: x is None)


@eqx.filter_jit
def _values(problem: _Problem, motions, times):
    """Criterion, condition and least margins by kind of each motion."""

    def one(motion):
        value, within = problem.both(motion, times)
        gram = problem.information.gram(*_states(motion, times))
        return value, jnp.exp(log_condition(gram)), jax.tree.map(jnp.min, within)

    return jax.vmap(one)(motions)


def _search(problem: _Problem, motions, scales, times, sizes, progress: Callable[[int, int], Any]):
    """The augmented Lagrangian, all starts side by side."""
    rounds, steps, rate = sizes
    durations = motions.duration
    free = jax.tree.map(lambda x, s: x / s, _free(motions), _free(scales))
    shapes = eqx.filter_eval_shape(jax.vmap(lambda m: problem.both(m, times)[1]), motions)
    multipliers = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    memory = jax.vmap(_ADAM.init)(free)
    number = lambda x: jnp.asarray(x, times.dtype)
    history = []
    for k in range(rounds):
        rates = number(rate * 0.05 ** ((k + np.arange(steps) / steps) / rounds))  # a twentieth at the end
        free, memory, multipliers, values = _round(
            problem, (free, durations, scales), memory, multipliers, number(10.0 * 2.0**k), times, rates
        )
        history.append(float(jnp.min(values)))
        progress(k + 1, rounds)
    restored = jax.tree.map(lambda x, s: x * s, free, _free(scales))
    return _with_duration(restored, durations), tuple(history)


@eqx.filter_jit
def _round(problem: _Problem, motions, memory, multipliers, weight, times, rates):
    """Steps of Adam at the given rates, then new multipliers `max(0, multiplier - weight * margin)`."""

    def physical(free, duration, scale):
        return _with_duration(jax.tree.map(lambda x, s: x * s, free, _free(scale)), duration)

    def cost(free, duration, scale, multiplier):
        value, within = problem.both(physical(free, duration, scale), times)
        beyond = lambda m, g: jnp.sum(jnp.maximum(m - weight * g, 0.0) ** 2 - m**2) / (2 * weight)
        price = sum(jax.tree.leaves(jax.tree.map(beyond, multiplier, within)), jnp.zeros((), times.dtype))
        return value + price / times.shape[0], value

    def start(free, duration, scale, memory, multiplier):
        def step(carry, rate):
            free, memory = carry
            slope, value = jax.grad(cost, has_aux=True)(free, duration, scale, multiplier)
            move, memory = _ADAM.update(slope, memory)
            return (jax.tree.map(lambda x, d: x - rate * d, free, move), memory), value

        (free, memory), values = jax.lax.scan(step, (free, memory), rates)
        within = problem.both(physical(free, duration, scale), times)[1]
        multiplier = jax.tree.map(lambda m, g: jnp.maximum(m - weight * g, 0.0), multiplier, within)
        return free, memory, multiplier, values[-1]

    free, duration, scale = motions
    return jax.vmap(start)(free, duration, scale, memory, multipliers)


def _chosen(problem: _Problem, found, dense, before, history) -> Excitation:
    """The best start that keeps all limits, drawn towards its middle as far as that needs."""
    shrunk = eqx.filter_vmap(lambda factor: eqx.filter_vmap(lambda m: m.scaled(factor))(found))
    factors = jnp.asarray(_SHRINK, dense.dtype)
    least = np.asarray(_least(problem, shrunk(factors), dense))
    holds = np.greater_equal(least, 0)
    first = np.argmax(holds, axis=0)
    feasible = np.asarray(np.any(holds, axis=0))
    used = np.where(feasible, factors[first], 1.0)
    motions = eqx.filter_vmap(lambda m, f: m.scaled(f))(found, jnp.asarray(used, dense.dtype))
    values, conditions, within = (jax.tree.map(np.asarray, x) for x in _values(problem, motions, dense))
    outside = np.maximum(-least.max(axis=0), 0.0)
    rank = np.where(np.isfinite(values), values, 1e12) + np.where(feasible, 0.0, 1e6 * (1 + outside))
    best = int(np.argmin(rank))
    status = ExcitationStatus.FOUND if feasible[best] else ExcitationStatus.INFEASIBLE
    if not np.isfinite(values[best]):
        status = ExcitationStatus.NOT_FINITE
    earlier, condition, _ = (jax.tree.map(np.asarray, x) for x in before)
    begun = int(np.nanargmin(earlier))
    return Excitation(
        motion=jax.tree.map(lambda x: x[best], motions),
        status=status,
        condition_before=float(condition[begun]),
        condition=float(conditions[best]),
        criterion_before=float(earlier[begun]),
        criterion=float(values[best]),
        num_base=problem.information.basis.shape[1],
        margins={kind: float(x[best]) for kind, x in within.items()},
        starts=tuple((float(v), bool(f)) for v, f in zip(values, feasible, strict=True)),
        model=problem.information.model,
        history=history,
    )


@eqx.filter_jit
def _least(problem: _Problem, motions, times):
    """The least margin of each motion, `(factors, starts)`."""

    def one(motion):
        q, v, a = _states(motion, times)
        limit = lambda *x: margins(problem.information.model, problem.bounds, problem.workspace, *x)
        within = jax.vmap(limit)(q, v, a)
        return jnp.min(jnp.stack([jnp.min(x) for x in jax.tree.leaves(within)]))

    return jax.lax.map(jax.vmap(one), motions)
