"""Changes of the state between the steps of a solver: samples, projections and events."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn.dynamics import AbstractMotion
from jaxdyn.model import Model
from jaxdyn.simulation.events import Event, Log, append_entry, first_root, time_tolerance
from jaxdyn.simulation.solvers import AbstractWrapper
from jaxdyn.simulation.system import (
    SampledState,
    State,
    System,
    next_instant,
    pack_like,
    to_state,
    unpack_parts,
    unsolved_result,
)


class Stepping(eqx.Module):
    """A state and the log of its events."""

    now: State
    log: Log | None

    def state(self, model) -> State:
        return self.now


class Stepped(AbstractWrapper):
    """A solver that also changes the state between its steps.

    Before a step the parts whose sample is due are sampled. After the step the state is projected, and reset if an
    event happened at the end of the step. An event inside the step is logged, so that `Landing` ends the step there.
    """

    solver: diffrax.AbstractSolver
    events: tuple[Event, ...]

    @property
    def interpolation_cls(self):
        return self.solver.interpolation_cls

    def init(self, terms, t0, t1, y0, args):
        return self.solver.init(terms, t0, t1, y0.now, args), jnp.asarray(False)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        inner, jumped = solver_state
        start, sampled = args.sample(t0, y0.now)
        end, error, dense, inner, result = self.solver.step(
            terms, t0, t1, start, args, inner, made_jump | jumped | sampled
        )
        end, jumped = _project_state(args.motion, args.mounted_model, t1, end)
        log = y0.log
        if log is not None:
            path = self.solver.interpolation_cls(t0=t0, t1=t1, **dense)
            end, log = _apply_events(self.events, args, path, (t0, t1), end, log)
            jumped = jumped | jnp.any(log.fired > 0)
        if error is not None:
            error = Stepping(error, jax.tree.map(jnp.zeros_like, log))
        return Stepping(end, log), error, dense, (inner, jumped), result

    def func(self, terms, t0, y0, args):
        return Stepping(self.solver.func(terms, t0, y0.now, args), jax.tree.map(jnp.zeros_like, y0.log))


def _project_state(motion: AbstractMotion, model: Model, t, y: State):
    """The state after the projection, and whether there is one."""
    if not motion.projects:
        return y, jnp.asarray(False)
    q, v = motion.project(model, t, y.q, y.v)
    return State(q, v, y.parts), jnp.asarray(True)


def _apply_events(events: tuple[Event, ...], system: System, path, span, end: State, log: Log):
    """The state after the events at the end of a step, and the log with these events or with an earlier root."""
    model = system.mounted_model
    t0, t1 = span
    near = time_tolerance(t1)
    roots = []
    for k, event in enumerate(events):

        def g(t, event=event):
            return event.value(model, t, to_state(system, path.evaluate(t)))

        roots.append(first_root(g, t0, t1, event, log.fired[k] > 0))
    times = jnp.stack([root.time for root in roots])
    still, held = (jnp.stack(x) for x in zip(*((root.is_still, root.is_held) for root in roots), strict=True))
    first = jnp.min(times)
    inside = first < t1 - near
    at_end = (times <= t1 + near) & ~inside
    q, v, parts = end.q, end.v, unpack_parts(end.parts)
    ended = log.ended
    for k, event in enumerate(events):
        before = (q, v)
        if event.reset is not None:
            reset = lambda q, v, parts, e=event: e.apply_reset(model, t1, q, v, parts)
            q, v, parts = jax.lax.cond(at_end[k], reset, lambda *same: same, q, v, parts)
        log = append_entry(log, at_end[k], t1, k, before, (q, v))
        if event.terminal:
            ended = jnp.maximum(ended, at_end[k])
    log = eqx.tree_at(
        lambda g: (g.fired, g.ended, g.root, g.inside, g.held),
        log,
        tuple(x.astype(q.dtype) for x in (at_end | still, ended, first, inside, held.any())),
    )
    return State(q, v, pack_like(parts, end.parts)), log


class Landing(diffrax.AbstractStepSizeController):
    """Ends steps at the instants of sampled parts and at events, and then resumes the steps of `controller`.

    A step that contains an event is repeated up to the event. The time of the event is computed along the motion and is
    the end of the repeated step, so the motion after it has the correct derivatives. A motion that an event would have
    to hold ends at the start of the step, which is rejected.
    """

    controller: diffrax.AbstractStepSizeController
    system: System
    max_attempts: int = eqx.field(static=True, default=20)

    def wrap(self, direction):
        return eqx.tree_at(lambda c: c.controller, self, self.controller.wrap(direction))

    def _clip_to_instants(self, t, goal, y: Stepping):
        part: Any
        for part, x in zip(self.system.parts, unpack_parts(y.now.parts) or (), strict=True):
            if isinstance(x, SampledState):
                goal = jnp.minimum(goal, next_instant(part, x.start, t).astype(goal.dtype))
        return goal

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order):
        goal, inner = self.controller.init(terms, t0, t1, y0, dt0, args, func, error_order)
        return self._clip_to_instants(t0, goal, y0), (inner, goal, jnp.asarray(0))

    def adapt_step_size(self, t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state):
        inner, goal, attempts = controller_state
        keep, next_t0, next_t1, jump, new_inner, result = self.controller.adapt_step_size(
            t0, t1, y0, y1_candidate, args, y_error, error_order, inner
        )
        log = y1_candidate.log
        if log is None:
            root, repeat, held = t1, jnp.asarray(False), jnp.asarray(False)
        else:
            # repeat the step also for an event at its end, whose time would otherwise be a constant without derivative
            root, held = log.root, keep & (log.held > 0)
            repeat = keep & ~held & (root < jnp.inf) & ((log.inside > 0) | (attempts == 0))
        is_short = goal - t1 > time_tolerance(t1)  # the step was cut, and the next one continues to its goal
        resume = repeat | (keep & is_short)
        inner = jax.tree.map(lambda a, b: jnp.where(resume, a, b), inner, new_inner)
        goal = jnp.where(resume, goal, next_t1)
        next_t0 = jnp.where(repeat, t0, next_t0)
        next_t1 = jnp.where(repeat, _landing_time(root, t0, t1), self._clip_to_instants(next_t0, goal, y1_candidate))
        attempts = jnp.where(repeat, attempts + 1, 0)
        if log is not None:
            stop = keep & ~repeat & ((log.ended > 0) | (log.count >= log.time.shape[0]))
            result = diffrax.RESULTS.where(stop | held, diffrax.RESULTS.event_occurred, result)
        result = diffrax.RESULTS.where(attempts > self.max_attempts, unsolved_result(), result)
        return keep & ~repeat & ~held, next_t0, next_t1, jump, (inner, goal, attempts), result


def _landing_time(root, t0, t1):
    """The root within the step, with its own derivative also where the value is clipped."""
    root = jnp.where(root < jnp.inf, root, t1)
    return root + jax.lax.stop_gradient(jnp.clip(root, t0 + time_tolerance(t0) / 64, t1) - root)
