"""One rollout."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx

from jaxdyn._errors import ModelError, ShapeError, check_shape
from jaxdyn._types import Array, Float
from jaxdyn.dynamics import FreeMotion
from jaxdyn.joints import has_vector_rate
from jaxdyn.model import Model
from jaxdyn.simulation._events import Event, empty_log
from jaxdyn.simulation._inputs import as_part
from jaxdyn.simulation._manifold import OnManifold
from jaxdyn.simulation._momentum import MomentumForm
from jaxdyn.simulation._state import State, to_state
from jaxdyn.simulation._stepped import Landing, Stepped, Stepping
from jaxdyn.simulation._system import Held, System, as_system, has_vector_coordinates
from jaxdyn.simulation._term import MotionTerm
from jaxdyn.simulation._trajectory import EventRecord, Interpolant, SimulationStatus, Trajectory
from jaxdyn.simulation._variational import Variational

MAX_STEPS = 65536


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
    max_steps: int = MAX_STEPS,
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
    * `dense=True` keeps all steps and gives `trajectory.interpolant`.

    A simulation that does not reach the last time says so in `trajectory.status`, or raises if `throw`.
    """
    whole: System = _numbers(as_system(system))
    events = _numbers(tuple(events))
    if effort is not None:
        whole = System(whole.model, (*whole.parts, as_part(effort)), whole.motion, whole.passive)
    start, ts = _start(whole, q0, v0, ts)
    dtype = ts.dtype
    number = lambda x: None if x is None else jnp.asarray(x, dtype)
    solver = diffrax.Tsit5() if solver is None else solver
    _check_solver(solver, whole, dt, controller)
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
    dtype = jnp.result_type(q0, v0, system.model.dtype)
    return (q0.astype(dtype), v0.astype(dtype)), ts.astype(dtype)


def _numbers(tree: Any) -> Any:
    """Python numbers as arrays, so that other values are not compiled anew."""
    return jax.tree.map(lambda x: jnp.asarray(x) if isinstance(x, float | int) else x, tree)


def _check_solver(solver, system: System, dt, controller):
    fixed = not isinstance(solver, diffrax.AbstractAdaptiveSolver)
    if fixed and dt is None and controller is None:
        raise ModelError(f"{type(solver).__name__} has no error estimate to adapt its steps to; give a step dt=...")
    if isinstance(solver, MomentumForm) and not has_vector_coordinates(system.model):
        views = [system.model.joint(n) for n in system.model.joint_names]
        names = [v.name for v in views if not has_vector_rate(v.joint)]
        raise ModelError(
            f"MomentumForm needs coordinates with qdot = v, which joints {names} do not have; "
            "use Variational() or a Runge-Kutta method such as diffrax.Tsit5()"
        )
    if isinstance(solver, MomentumForm | Variational):
        _check_motion(type(solver).__name__, system.motion)


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
    y0: Any = system.initial(q0, v0, ts[0])
    if not has_vector_coordinates(system.model) and not isinstance(solver, OnManifold | Variational):
        solver = OnManifold(solver)
    if controller is None:
        fixed = dt is not None
        controller = diffrax.ConstantStepSize() if fixed else diffrax.PIDController(rtol, atol, norm=_norm)
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
    return _trajectory(system, solution, ts, dense), solution.result


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
    """Root mean square of what moves: sampled states and the log of events have no error."""
    state = scaled.now if isinstance(scaled, Stepping) else scaled
    return optx.rms_norm((state.q, state.v, [x for x in state.parts or () if not isinstance(x, Held)]))


def _trajectory(system: System, solution, ts, dense: bool) -> Trajectory:
    (saved, rows), (_, last) = zip(solution.ts, solution.ys, strict=True)
    last = jax.tree.map(lambda x: x[0], last)
    log = last.log if isinstance(last, Stepping) else None
    state = to_state(system.model, last)
    status = _status(solution, state, log)
    reached = jnp.isfinite(saved)
    ended = status <= SimulationStatus.MAX_EVENTS
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
    return Trajectory(ts, rows.q, rows.v, rows.parts, reached, status, steps, system, record, interpolant)


def _status(solution, state: State, log):
    code = SimulationStatus
    result, kinds = solution.result, diffrax.RESULTS
    at_event = code.MAX_EVENTS if log is None else jnp.where(log.ended > 0, code.EVENT, code.MAX_EVENTS)
    status = jnp.where(result == kinds.event_occurred, at_event, code.FAILED)
    status = jnp.where(result == kinds.max_steps_reached, code.MAX_STEPS, status)
    finite = jnp.stack([jnp.all(jnp.isfinite(x)) for x in (state.q, state.v)]).all()
    status = jnp.where((result == kinds.successful) & finite, code.FINISHED, status)
    return jnp.where(~finite, code.NOT_FINITE, status)


def _record(log) -> EventRecord:
    count = log.count.astype(int)
    return EventRecord(log.time, log.index.astype(int), log.q_before, log.v_before, log.q, log.v, count)
