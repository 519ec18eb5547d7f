"""One rollout."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jax import core

from jaxdyn._errors import ModelError, ShapeError, check_shape
from jaxdyn._types import Array, Float
from jaxdyn.constraints import ConstrainedMotion
from jaxdyn.dynamics import FreeMotion
from jaxdyn.model import Model
from jaxdyn.simulation._events import Event, empty_log
from jaxdyn.simulation._inputs import with_effort
from jaxdyn.simulation._manifold import OnManifold
from jaxdyn.simulation._momentum import MomentumForm
from jaxdyn.simulation._state import State, to_state
from jaxdyn.simulation._stepped import Landing, Stepped, Stepping
from jaxdyn.simulation._stops import Rebound
from jaxdyn.simulation._system import Held, System, as_system, has_vector_coordinates
from jaxdyn.simulation._term import MotionTerm
from jaxdyn.simulation._trajectory import EventRecord, Interpolant, SimulationStatus, Trajectory
from jaxdyn.simulation._variational import Variational

MAX_STEPS = 65536
#: with dense output, for which as many steps are kept
MAX_DENSE_STEPS = 4096


def simulate(
    system: Model | System,
    q0: Float[Array, " nq"],
    v0: Float[Array, " nv"],
    ts: Float[Array, " times"],
    *,
    effort: Any = None,
    dt: Any = None,
    rtol: Any = None,
    atol: Any = None,
    solver: diffrax.AbstractSolver | None = None,
    controller: diffrax.AbstractStepSizeController | None = None,
    adjoint: diffrax.AbstractAdjoint | None = None,
    events: tuple[Event, ...] = (),
    max_events: int = 32,
    max_steps: int | None = None,
    dense: bool = False,
    progress_meter: diffrax.AbstractProgressMeter | None = None,
    throw: bool = False,
) -> Trajectory:
    """The motion of a robot, or of a `System` around one, from `(q0, v0)` at `ts[0]`, seen at the times `ts` (s).

    `M(q) vdot + h(q, v) = effort + J^T external`, `qdot` being the velocity v on the configuration manifold, on which
    the solution stays. One sample; wrap it in `jax.vmap` for states, efforts, parts or models in batches.

    * `effort`: constant `(nv,)`, a law `(t, q, v) -> (nv,)`, a `diffrax.AbstractPath` over time, or a part, beside
      those of the system.
    * Steps: with `dt` (s) of this fixed length, shortened so that they fill the time evenly; otherwise adapted to the
      tolerances `rtol` and `atol`, by default 1e-8 in float64 and 1e-5 in float32; or as a `controller` of diffrax
      says. `ts` does not influence them.
    * `solver`: of diffrax, by default `diffrax.Tsit5()`, or `SemiImplicitEuler`, `Variational`, `MomentumForm`.
    * `adjoint`: of diffrax, by default `RecursiveCheckpointAdjoint()`, whose memory grows with the square root of
      `max_steps`; `diffrax.ForwardMode()` for forward-mode derivatives (`jvp`, `jacfwd`).
    * `events` happen in the order of time, up to `max_events` of them; see `Event`.
    * `max_steps` are made at most, by default 65,536, or 4,096 if dense.
    * `dense=True` keeps all steps and gives `trajectory.interpolant`. Room for `max_steps` of them is taken at once.

    A robot with closures moves along them; `(q0, v0)` meets them (`jaxdyn.constraints.assemble`). A simulation that
    does not reach the last time says so in `trajectory.status`, or raises if `throw`.
    """
    whole = with_effort(as_system(system), effort)
    start, ts = _start(whole, q0, v0, ts)
    dtype = ts.dtype
    whole, events, start, ts = _numbers((whole, tuple(events), start, ts), dtype)
    _check_events(events, whole.motion)
    if max_steps is None:
        max_steps = MAX_DENSE_STEPS if dense else MAX_STEPS
    number = lambda x: None if x is None else jnp.asarray(x, dtype)
    solver = diffrax.Tsit5() if solver is None else solver
    _check_solver(solver, whole, dt, controller)
    _check_method(whole)
    tolerance = 1e-8 if dtype == jnp.float64 else 1e-5
    if dt is None:
        rtol, atol = (tolerance if x is None else x for x in (rtol, atol))
    adjoint = diffrax.RecursiveCheckpointAdjoint() if adjoint is None else adjoint
    trajectory, result = _solve(
        whole,
        start,
        ts,
        (number(dt), number(rtol), number(atol)),
        (_looping(solver, adjoint), controller, adjoint),
        events,
        (max_events, max_steps, dense),
        diffrax.NoProgressMeter() if progress_meter is None else progress_meter,
    )
    if throw:
        trajectory = result.error_if(trajectory, trajectory.status > SimulationStatus.EVENT)
    return trajectory


def _start(system: System, q0, v0, ts):
    """The state at the start and the times, of the right shapes and in one precision."""
    q0 = check_shape("q0", q0, (system.model.nq,))
    v0 = check_shape("v0", v0, (system.model.nv,))
    ts = jnp.asarray(ts)
    if ts.ndim != 1 or ts.size == 0:
        raise ShapeError(f"ts has shape {ts.shape}, expected (n,) with n of at least 1: increasing times in s")
    if not isinstance(ts, core.Tracer) and np.any(np.diff(ts) < 0):
        raise ModelError("ts decreases; a simulation goes forward in time, so give increasing times in s")
    dtype = jnp.result_type(q0, v0, system.model.dtype)
    return (q0.astype(dtype), v0.astype(dtype)), ts.astype(dtype)


def _numbers(tree: Any, dtype) -> Any:
    """Python numbers, and arrays made of one, as arrays of a definite precision, lest other kinds compile anew."""

    def number(x):
        if isinstance(x, bool):
            return x
        if isinstance(x, float) or (isinstance(x, jax.Array) and x.weak_type and jnp.issubdtype(x.dtype, jnp.floating)):
            return jnp.asarray(x, dtype)
        return jnp.asarray(x, jnp.result_type(int)) if isinstance(x, int) else x

    return jax.tree.map(number, tree)


def _check_events(events: tuple[Event, ...], motion):
    for event in events:
        reset = event.reset
        if isinstance(reset, Rebound) and reset.motion is None and not isinstance(motion, FreeMotion):
            if not (isinstance(motion, ConstrainedMotion) and motion.constraints is None):
                raise ModelError(
                    f"a Rebound knows nothing of the {type(motion).__name__} of its system, whose constraints share in "
                    "the impulse; give Rebound(..., motion=system.motion), or joint_stops the system"
                )


def _check_solver(solver, system: System, dt, controller):
    fixed = not isinstance(solver, diffrax.AbstractAdaptiveSolver)
    if fixed and dt is None and controller is None:
        raise ModelError(f"{type(solver).__name__} has no error estimate to adapt its steps to; give a step dt=...")
    if isinstance(solver, MomentumForm) and not has_vector_coordinates(system.model):
        OnManifold(solver.solver)  # refuses what keeps past iterates
    if isinstance(solver, MomentumForm | Variational):
        _check_motion(type(solver).__name__, system.motion)


def _check_method(system: System):
    """Asks a formulation here, where the numbers of the model are known."""
    method = getattr(system.motion, "method", None)
    covers = getattr(method, "covers", None)
    reason = covers(system.model) if callable(covers) else None
    if reason is not None:
        raise ModelError(
            f"{type(method).__name__}, the method of this motion, does not cover this model: {reason}; leave it out or "
            "give one that does, such as jaxdyn.formulations.Lagrange()"
        )


def _check_motion(solver: str, motion):
    other = "use a Runge-Kutta method such as diffrax.Tsit5()"
    if not isinstance(motion, FreeMotion):
        raise ModelError(f"{solver} integrates the free motion of a tree, not {type(motion).__name__}; {other}")
    if motion.method is not None:
        raise ModelError(
            f"{solver} computes no accelerations, so FreeMotion(method=...) would go unused; leave it out or {other}"
        )


def _looping(solver, adjoint):
    """The solver with stages in the kind of loop that an adjoint needs, as diffrax does for its own."""
    kinds = ((diffrax.ForwardMode, "lax"), (diffrax.DirectAdjoint, "bounded"))
    kind = next((k for cls, k in kinds if isinstance(adjoint, cls)), None)
    if kind is None:
        return solver
    if isinstance(solver, OnManifold | MomentumForm):
        return type(solver)(_looping(solver.solver, adjoint))
    if getattr(solver, "scan_kind", kind) is None:
        return eqx.tree_at(lambda s: s.scan_kind, solver, kind, is_leaf=lambda x: x is None)
    return solver


@eqx.filter_jit
def _solve(system: System, start, ts, steps, methods, events, sizes, progress_meter):
    (q0, v0), (dt, rtol, atol) = start, steps
    solver, controller, adjoint = methods
    max_events, max_steps, dense = sizes
    hooked = bool(system.sampled) or system.motion.projects or bool(events)
    forward = jnp.all(jnp.diff(ts) >= 0)  # times that are traced cannot be refused
    y0: Any = system.initial(jnp.where(forward, q0, jnp.nan), v0, ts[0])
    if not has_vector_coordinates(system.model) and not isinstance(solver, OnManifold | Variational | MomentumForm):
        solver = OnManifold(solver)
    if controller is None:
        fixed = dt is not None
        controller = diffrax.ConstantStepSize() if fixed else _adapted(rtol, atol, ts)
    if hooked:
        y0 = Stepping(y0, empty_log(len(events), max_events, q0, v0) if events else None)
        solver, controller = Stepped(solver, events), Landing(controller, system, ts[0])
    solution = diffrax.diffeqsolve(
        MotionTerm(),
        solver,
        ts[0],
        ts[-1],
        dt,
        y0,
        args=system,
        saveat=diffrax.SaveAt(
            subs=(diffrax.SubSaveAt(ts=_before(ts), fn=_seen), diffrax.SubSaveAt(t1=True)), dense=dense
        ),
        stepsize_controller=controller,
        adjoint=adjoint,
        max_steps=max_steps,
        throw=False,
        progress_meter=progress_meter,
    )
    return _trajectory(system, (q0, v0), solution, ts, dense), solution.result


def _adapted(rtol, atol, ts):
    """Steps adapted to tolerances, down to what time resolves: where nothing is finite they would shrink for ever.

    The least step is no multiple of the spacing of numbers: diffrax accepts a step of just that length whatever
    its error.
    """
    least = 3.7 * jnp.finfo(ts.dtype).eps * jnp.maximum(jnp.abs(ts[0]), jnp.abs(ts[-1]))
    return diffrax.PIDController(rtol, atol, norm=_norm, dtmin=least, force_dtmin=False)


def _before(ts):
    """The times to be seen, inner ones by some units of rounding earlier.

    Steps often end at such a time. When they are made once more on the way back, other compiled code may round
    their ends to the other side; the time would be found in neither step of the two, and its cotangent be lost.
    """
    hair = 16 * jnp.finfo(ts.dtype).eps * jnp.maximum(jnp.abs(ts[0]), jnp.abs(ts[-1]))
    return jnp.where((ts > ts[0] + hair) & (ts < ts[-1]), ts - hair, ts)


def _seen(t, y, system):
    return to_state(system.model, y)


def _projected(system: System, ts, rows: State, reached) -> State:
    """Rows between steps, brought back to where the motion may be as at the ends of steps."""
    if not system.motion.projects:
        return rows
    project = lambda t, q, v: system.motion.project(system.model, t, q, v)
    back = jax.vmap(project)(ts, rows.q, rows.v)
    q, v = (jnp.where(reached[:, None], new, old) for new, old in zip(back, (rows.q, rows.v), strict=True))
    return State(q, v, rows.parts)


def _norm(scaled):
    """Root mean square of what moves: sampled states and the log of events have no error.

    What is not a number counts as infinite: limits of the next step that are computed from a NaN depend on how XLA
    compiles them.
    """
    state = scaled.now if isinstance(scaled, Stepping) else scaled
    size = optx.rms_norm((state.q, state.v, [x for x in state.parts or () if not isinstance(x, Held)]))
    return jnp.where(jnp.isnan(size), jnp.inf, size)


def _trajectory(system: System, start, solution, ts, dense: bool) -> Trajectory:
    (saved, rows), (end, last) = zip(solution.ts, solution.ys, strict=True)
    last = jax.tree.map(lambda x: x[0], last)
    log = last.log if isinstance(last, Stepping) else None
    state = to_state(system.model, last)
    status = _status(solution, state, log)
    reached = jnp.isfinite(saved)
    ended = (status <= SimulationStatus.MAX_EVENTS) | (status == SimulationStatus.HELD)
    astray = _astray(system, (ts[0], *start), (end[0], state.q, state.v))
    status = jnp.where((status <= SimulationStatus.EVENT) & astray, SimulationStatus.OFF_CONSTRAINT, status)
    fill = lambda x: jnp.where(ended, x, jnp.nan)

    def filled(row, x):
        seen = reached.reshape(-1, *[1] * x.ndim)
        return jnp.where(seen, jnp.where(seen, row, 0), fill(x))

    rows = _projected(system, ts, jax.tree.map(filled, rows, state), reached)
    record = None if log is None else _record(log)
    interpolant = None
    if dense:
        d = solution.interpolation
        interpolant = Interpolant(system, d.ts, d.ts_size, d.infos, d.interpolation_cls)
    steps = solution.stats["num_steps"]
    reached = reached | (ended & (ts <= ts[0]))  # also where no step was kept
    return Trajectory(ts, rows.q, rows.v, rows.parts, reached, status, steps, system, record, interpolant)


def _astray(system: System, start, end):
    """Whether a simulation ended where the motion may not be, or started there and was projected back."""
    both = jax.lax.stop_gradient(jax.tree.map(lambda *x: jnp.stack(x), start, end))
    first, last = jax.vmap(lambda t, q, v: system.motion.astray(system.model, t, q, v))(*both)
    return last | (first & system.motion.projects)


def _status(solution, state: State, log):
    code = SimulationStatus
    result, kinds = solution.result, diffrax.RESULTS
    status = code.FAILED
    if log is not None:
        full = log.count >= log.time.shape[0]
        at_event = jnp.where(log.ended > 0, code.EVENT, jnp.where(full, code.MAX_EVENTS, code.HELD))
        status = jnp.where(result == kinds.event_occurred, at_event, status)
    status = jnp.where(result == kinds.max_steps_reached, code.MAX_STEPS, status)
    finite = jnp.stack([jnp.all(jnp.isfinite(x)) for x in jax.tree.leaves(state)]).all()
    status = jnp.where((result == kinds.successful) & finite, code.FINISHED, status)
    return jnp.where(~finite, code.NOT_FINITE, status)


def _record(log) -> EventRecord:
    count = log.count.astype(int)
    return EventRecord(log.time, log.index.astype(int), log.q_before, log.v_before, log.q, log.v, count)
