"""Changes of the state between the steps of a solver: samples, projections and events."""

from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._types import Array, PyTree
from jaxdyn.dynamics import AbstractModalMotion, AbstractMotion
from jaxdyn.model import Model
from jaxdyn.simulation.events import (
    Event,
    Log,
    Phases,
    append_entry,
    append_switch,
    find_guard_roots,
    first_root,
    no_roots,
    time_tolerance,
)
from jaxdyn.simulation.solvers import AbstractWrapper
from jaxdyn.simulation.system import (
    SampledState,
    State,
    System,
    in_modes,
    next_instant,
    pack_like,
    to_state,
    unpack_parts,
    unsolved_result,
)


class Stepping(eqx.Module):
    """A state, the log of its events, and the modes of its motion."""

    now: State
    log: Log | None
    phases: Phases | None = None

    def state(self, model) -> State:
        return self.now

    @property
    def modes(self) -> PyTree:
        """The modes of the motion, or None."""
        return None if self.phases is None else self.phases.modes


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
        return self.solver.init(terms, t0, t1, y0.now, in_modes(args, y0.modes)), jnp.asarray(False)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        inner, jumped = solver_state
        log, phases, now = y0.log, y0.phases, y0.now
        args = in_modes(args, y0.modes)
        if phases is not None:
            now, phases, switched = _switch_modes(args, t0, now, phases)
            jumped = jumped | switched
            # after the last switch the step is not used, and is computed where it was finite
            modes = jax.tree.map(lambda x, y: jnp.where(phases.ends, x, y), y0.modes, phases.modes)
            args = in_modes(args, modes)
        start, sampled = args.sample(t0, now)
        end, error, dense, inner, result = self.solver.step(
            terms, t0, t1, start, args, inner, made_jump | jumped | sampled
        )
        end, jumped = _project_state(args.motion, args.mounted_model, t1, end)
        path = self.solver.interpolation_cls(t0=t0, t1=t1, **dense)
        if log is not None:
            end, log = _apply_events(self.events, args, path, (t0, t1), end, log)
            jumped = jumped | jnp.any(log.fired > 0)
        if phases is not None:
            phases = _find_switch(args, path, (t0, t1), end, phases)
            end = jax.tree.map(lambda x, y: jnp.where(phases.ends, x, y), now, end)
        if error is not None:
            error = Stepping(error, *jax.tree.map(jnp.zeros_like, (log, phases)))
        return Stepping(end, log, phases), error, dense, (inner, jumped), result

    def func(self, terms, t0, y0, args):
        rate = self.solver.func(terms, t0, y0.now, in_modes(args, y0.modes))
        return Stepping(rate, *jax.tree.map(jnp.zeros_like, (y0.log, y0.phases)))


def forces_on(system: System, t, q, parts):
    """The efforts and wrenches of a system's parts and joints in the modes of a motion and at a velocity."""

    def forces(motion, v) -> tuple[Any, Any]:
        action = in_modes(system, motion.modes).action(t, State(q, v, parts))
        return action.effort, action.external

    return forces


def _switch_modes(system: System, t, y: State, phases: Phases):
    """State and modes after the switch that is due at the start of a step, if any, and whether one is."""
    model: Any = system.mounted_model
    motion: Any = system.motion

    def switch():
        out = motion.switch(model, t, y.q, y.v, phases.fired, forces_on(system, t, y.q, unpack_parts(y.parts)))
        return out.v, append_switch(phases, t, y.q, y.v, out)

    v, after = jax.lax.cond(phases.is_due, switch, lambda: (y.v, phases))
    return State(y.q, v, y.parts), after, phases.is_due


def _find_switch(system: System, path, span, end: State, phases: Phases) -> Phases:
    """The record with the first switch on a step, which is due where it is at the end of the step."""
    model = system.mounted_model
    motion: Any = system.motion
    assert isinstance(motion, AbstractModalMotion)
    t0, t1 = span

    def guards(t):
        y = to_state(system, path.evaluate(t))
        return motion.guards(model, t, y.q, y.v, forces_on(system, t, y.q, y.parts))

    ts = jnp.stack([t0, (t0 + t1) / 2, t1])
    samples = jax.vmap(lambda t: to_state(system, path.evaluate(t)))(ts)
    may_switch = motion.may_switch(model, *jax.lax.stop_gradient((ts, samples.q, samples.v)))
    roots = jax.lax.cond(may_switch, lambda: find_guard_roots(guards, t0, t1), lambda: no_roots(motion.num_guards, t1))
    inside = roots.time < t1 - time_tolerance(t1)
    is_due = jnp.isfinite(roots.time) & ~inside
    modes = jax.lax.cond(
        is_due | phases.ends, lambda: phases.modes, lambda: motion.update_modes(model, t1, end.q, end.v)
    )
    number = lambda x: x.astype(end.q.dtype)
    tail = jnp.stack([roots.time, number(inside), number(is_due), roots.slope, roots.curvature])
    numbers = jnp.concatenate([phases.numbers[:3], tail, roots.fired])
    return eqx.tree_at(lambda p: (p.modes, p.numbers), phases, (modes, numbers))


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
        ahead = _ahead(y1_candidate, t1)
        keep = keep | ahead.stopped
        root, held = jnp.where(ahead.stopped, jnp.inf, ahead.root), keep & ahead.held
        # repeat the step also for an event at its end, whose time would otherwise be a constant without derivative
        repeat = keep & ~held & (root < jnp.inf) & (ahead.inside | (attempts == 0))
        is_short = goal - t1 > time_tolerance(t1)  # the step was cut, and the next one continues to its goal
        resume = repeat | (keep & is_short)
        inner = jax.tree.map(lambda a, b: jnp.where(resume, a, b), inner, new_inner)
        goal = jnp.where(resume, goal, next_t1)
        next_t0 = jnp.where(repeat, t0, next_t0)
        # ends of steps have no derivatives, except at an event or a sample: otherwise they grow with the steps, and so
        # does the difference between the derivative of a step by its length and the rate of the state
        step_end = self._clip_to_instants(next_t0, jax.lax.stop_gradient(goal), y1_candidate)
        next_t1 = jnp.where(repeat, _landing_time(root, t0, t1), step_end)
        attempts = jnp.where(repeat, attempts + 1, 0)
        stop = keep & ~repeat & (ahead.stops | ahead.stopped)
        next_t0 = jnp.where(ahead.stopped, t0, next_t0)
        result = diffrax.RESULTS.where(stop | held, diffrax.RESULTS.event_occurred, result)
        result = diffrax.RESULTS.where(attempts > self.max_attempts, unsolved_result(), result)
        return keep & ~repeat & ~held, next_t0, next_t1, jump, (inner, goal, attempts), result


class _Ahead(NamedTuple):
    """The first event or switch in a step that the controller keeps."""

    #: time of the first event or switch within the step or at its end, otherwise infinity
    root: Array
    #: it is before the end of the step
    inside: Array
    #: an event would have to hold the motion from the start of the step on
    held: Array
    #: the simulation ends with this step
    stops: Array
    #: the simulation ends at the start of this step, with a switch there
    stopped: Array


def _ahead(y: Stepping, t1) -> _Ahead:
    no = jnp.asarray(False)
    out = _Ahead(jnp.full_like(t1, jnp.inf), no, no, no, no)
    if y.log is not None:
        g = y.log
        out = _Ahead(g.root, g.inside > 0, g.held > 0, (g.ended > 0) | (g.count >= g.time.shape[0]), no)
    if y.phases is not None:
        p = y.phases
        is_first = p.root < out.root
        inside = p.is_inside | out.inside
        out = _Ahead(jnp.where(is_first, p.root, out.root), inside, out.held & ~p.ends, out.stops, p.ends)
    return out


def _landing_time(root, t0, t1):
    """The root within the step, with its own derivative also where the value is clipped."""
    root = jnp.where(root < jnp.inf, root, t1)
    return root + jax.lax.stop_gradient(jnp.clip(root, t0 + time_tolerance(t0) / 64, t1) - root)
