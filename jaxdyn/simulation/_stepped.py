"""What happens at the ends of steps: samples, projections and events."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn.dynamics import AbstractMotion
from jaxdyn.simulation._events import Event, Log, written
from jaxdyn.simulation._roots import first_root, time_tolerance
from jaxdyn.simulation._state import State, not_converged, to_state
from jaxdyn.simulation._system import System, next_instant
from jaxdyn.simulation._wrapper import AbstractWrapper


class Stepping(eqx.Module):
    """A state and the log of its events."""

    now: State
    log: Log | None

    def state(self, model) -> State:
        return self.now


class Stepped(AbstractWrapper):
    """A solver with what happens between its steps.

    Before a step the parts whose sample is due are sampled. After it the state is projected, and if an event
    happened at its end the state is reset; an event inside of the step is noted for `Landing` to end the step there.
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
        end, jumped = _projected(args.motion, args.model, t1, end)
        log = y0.log
        if log is not None:
            path = self.solver.interpolation_cls(t0=t0, t1=t1, **dense)
            end, log = _watched(self.events, args, path, (t0, t1), end, log)
            jumped = jumped | jnp.any(log.fired > 0)
        if error is not None:
            error = Stepping(error, jax.tree.map(jnp.zeros_like, log))
        return Stepping(end, log), error, dense, (inner, jumped), result

    def func(self, terms, t0, y0, args):
        return Stepping(self.solver.func(terms, t0, y0.now, args), jax.tree.map(jnp.zeros_like, y0.log))


def _projected(motion: AbstractMotion, model, t, y: State):
    if not motion.projects:
        return y, jnp.asarray(False)
    q, v = motion.project(model, t, y.q, y.v)
    return State(q, v, y.parts), jnp.asarray(True)


def _watched(events: tuple[Event, ...], system: System, path, span, end: State, log: Log):
    """The state after the events at the end of a step, and the log with them or with an earlier root."""
    model = system.model
    t0, t1 = span
    near = time_tolerance(t1)
    roots = []
    for k, event in enumerate(events):

        def g(t, event=event):
            return event.value(model, t, to_state(model, path.evaluate(t)))

        roots.append(first_root(g, t0, t1, event, log.fired[k] > 0))
    times = jnp.stack([root.time for root in roots])
    still, held = (jnp.stack(x) for x in zip(*((root.still, root.held) for root in roots), strict=True))
    first = jnp.min(times)
    inside = first < t1 - near
    here = (times <= t1 + near) & ~inside
    q, v = end.q, end.v
    ended = log.ended
    for k, event in enumerate(events):
        before = (q, v)
        if event.reset is not None:
            q, v = jax.lax.cond(here[k], lambda q, v, e=event: e.after(model, t1, q, v), lambda q, v: (q, v), q, v)
        log = written(log, here[k], t1, k, before, (q, v))
        if event.terminal:
            ended = jnp.maximum(ended, here[k])
    log = eqx.tree_at(
        lambda g: (g.fired, g.ended, g.root, g.inside, g.held),
        log,
        tuple(x.astype(q.dtype) for x in (here | still, ended, first, inside, held.any())),
    )
    return State(q, v, end.parts), log


class Landing(diffrax.AbstractStepSizeController):
    """Makes steps end at the instants of sampled parts and at events, and then resumes the steps of `controller`.

    A step within which an event waits is made again, up to the event; since its time is computed along the motion,
    and the step's end depends on it, all that follows has the right derivatives. A motion that an event would have
    to hold ends at the start of the step: the step is not kept.
    """

    controller: diffrax.AbstractStepSizeController
    system: System
    start: Any
    max_attempts: int = eqx.field(static=True, default=20)

    def wrap(self, direction):
        return eqx.tree_at(lambda c: c.controller, self, self.controller.wrap(direction))

    def _clipped(self, t, goal):
        for part in self.system.sampled:
            goal = jnp.minimum(goal, next_instant(part, self.start, t).astype(goal.dtype))
        return goal

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order):
        goal, inner = self.controller.init(terms, t0, t1, y0, dt0, args, func, error_order)
        return self._clipped(t0, goal), (inner, goal, jnp.asarray(0))

    def adapt_step_size(self, t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state):
        inner, goal, attempts = controller_state
        keep, next_t0, next_t1, jump, new_inner, result = self.controller.adapt_step_size(
            t0, t1, y0, y1_candidate, args, y_error, error_order, inner
        )
        log = y1_candidate.log
        if log is None:
            root, waits, held = t1, jnp.asarray(False), jnp.asarray(False)
        else:
            # an event at the end of a step by chance is landed on as well, lest its time is a constant
            root, held = log.root, keep & (log.held > 0)
            waits = keep & ~held & (root < jnp.inf) & ((log.inside > 0) | (attempts == 0))
        short = goal - t1 > time_tolerance(t1)  # the step had been cut, and goes on to where it wanted
        old = waits | (keep & short)
        inner = jax.tree.map(lambda a, b: jnp.where(old, a, b), inner, new_inner)
        goal = jnp.where(old, goal, next_t1)
        next_t0 = jnp.where(waits, t0, next_t0)
        next_t1 = jnp.where(waits, _landing(root, t0, t1), self._clipped(next_t0, goal))
        attempts = jnp.where(waits, attempts + 1, 0)
        lost = attempts > self.max_attempts
        if log is not None:
            stop = keep & ~waits & ((log.ended > 0) | (log.count >= log.time.shape[0]))
            result = diffrax.RESULTS.where(stop | held, diffrax.RESULTS.event_occurred, result)
        result = diffrax.RESULTS.where(lost, not_converged(), result)
        return keep & ~waits & ~held, next_t0, next_t1, jump, (inner, goal, attempts), result


def _landing(root, t0, t1):
    """The root within the step, with its own derivative also where it is clipped."""
    root = jnp.where(root < jnp.inf, root, t1)
    return root + jax.lax.stop_gradient(jnp.clip(root, t0 + time_tolerance(t0) / 64, t1) - root)
