"""One rollout, with events, samples and projections between the steps."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jax import core
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError, ShapeError, check_count, check_instance, check_positive
from jaxdyn._types import Array, Float, PyTree
from jaxdyn.model import Model
from jaxdyn.recursion import check_state
from jaxdyn.simulation.events import Event, bind_switches, empty_log
from jaxdyn.simulation.rollout._phases import phase_record, row_modes, start_phases
from jaxdyn.simulation.rollout._stepped import Landing, Stepped, Stepping
from jaxdyn.simulation.solvers import MotionTerm, check_methods, check_step_size, prepare_solver
from jaxdyn.simulation.system import (
    EffortInput,
    InputsInput,
    PackedParts,
    SampledState,
    State,
    System,
    as_system,
    in_modes,
    pack_parts,
    underlying_state,
    unpack_parts,
    with_effort,
    with_inputs,
)
from jaxdyn.simulation.trajectory import EventRecord, Interpolant, SimulationStatus, Trajectory

MAX_STEPS = 65536
#: with dense output, which reserves memory for all steps
MAX_DENSE_STEPS = 4096


def simulate(
    system: Model | System,
    q0: Float[Array, " nq"],
    v0: Float[Array, " nv"],
    ts: Float[Array, " times"],
    *,
    effort: EffortInput | None = None,
    inputs: InputsInput | None = None,
    parts: tuple[PyTree, ...] | None = None,
    dt: ArrayLike | None = None,
    rtol: ArrayLike | None = None,
    atol: ArrayLike | None = None,
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
    """The motion of a robot, or of a `System` around one, from `(q0, v0)` at `ts[0]`, returned at the times `ts`.

    `M(q) vdot + h(q, v) = effort + J^T external`, where the velocity v is the rate of the configuration on its
    manifold, on which the solution stays. The function takes one sample; wrap it in `jax.vmap` for batches of states,
    efforts, parts or models. It compiles once for each structure of the system, shape of `ts` and set of options.

    Arguments:

    * `system`: a model or a system. A robot with closures moves along them; `(q0, v0)` has to meet them
      (`jaxdyn.constraints.assemble`).
    * `q0`, `v0`: configuration `(nq,)` and velocity `(nv,)` at the start.
    * `ts`: increasing times, `(n,)`, s. They do not influence the steps.
    * `effort`: a constant `(nv,)` in N m or N, a law `(t, q, v) -> (nv,)`, a `diffrax.AbstractPath` over time, or a
      part, in addition to the parts of the system.
    * `inputs`: inputs of the actuators, such as voltages: a constant `(inputs,)`, a law `(t, state) -> (inputs,)`, a
      path over time, a controller, or `SampledInputs`; see `Inputs`.
    * `parts`: states of the parts at the start, a tuple with None for initial states, in the order of the system's
      parts, followed by `effort` and `inputs` if they are given. The last row of `trajectory.parts` continues a run.
    * `dt`: length of fixed steps, s, shortened so that a whole number of them ends at `ts[-1]`. By default steps are
      adapted to the tolerances.
    * `rtol`, `atol`: tolerances of adapted steps, by default 1e-8 in float64 and 1e-5 in float32.
    * `solver`: of diffrax, by default `diffrax.Tsit5()`; or `Rosenbrock` for stiff parts, `SemiImplicitEuler`,
      `Variational`, `CanonicalMomenta`.
    * `controller`: a step-size controller of diffrax, in place of the one chosen by `dt`, `rtol` and `atol`.
    * `adjoint`: of diffrax, by default `RecursiveCheckpointAdjoint()`, whose memory grows with the square root of
      `max_steps`; `diffrax.ForwardMode()` for forward-mode derivatives (`jvp`, `jacfwd`).
    * `events`: see `Event`; at most `max_events` of them happen, in the order of time.
    * `max_steps`: maximum number of steps, by default 65,536, or 4,096 with dense output.
    * `dense`: whether to keep all steps for `trajectory.interpolant`. Memory for `max_steps` steps is reserved at once.
    * `progress_meter`: of diffrax.
    * `throw`: whether a simulation that fails raises. By default `trajectory.status` reports the failure.

    Returns a `Trajectory`. Raises `ShapeError` for wrong shapes, and `ModelError` for decreasing times, for a solver
    without error estimate and without `dt`, and where the solver, the events or the motion do not fit the system.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd

    pendulum = jd.robots.pendulum(damping=0.1)
    path = jd.simulate(pendulum, jnp.array([1.0]), jnp.zeros(1), jnp.linspace(0.0, 2.0, 21))
    assert path.q.shape == (21, 1) and path.status == jd.SimulationStatus.FINISHED
    assert path.energy[-1] < path.energy[0]
    ```
    """
    check_methods(solver, controller, adjoint)
    check_count("max_events", max_events)
    for name, x, unit in (("dt", dt, "s"), ("rtol", rtol, "relative"), ("atol", atol, "rad or m")):
        if x is not None:
            check_positive(name, x, unit)
    if max_steps is not None:
        check_count("max_steps", max_steps)
    for event in events:
        check_instance("an entry of events", event, Event, "make it with jaxdyn.Event or jaxdyn.simulation.joint_stops")
    whole = with_inputs(with_effort(as_system(system), effort), inputs)
    (q0, v0), ts = _check_start(whole, q0, v0, ts)
    dtype = ts.dtype
    start = q0, v0, parts
    whole, start, ts = _as_strong_types((whole, start, ts), dtype)
    events = _as_strong_types(bind_switches(events, whole), dtype)
    for event in events:
        event.check(whole.motion)
    if max_steps is None:
        max_steps = MAX_DENSE_STEPS if dense else MAX_STEPS
    as_number = lambda x: None if x is None else jnp.asarray(x, dtype)
    solver = diffrax.Tsit5() if solver is None else solver
    adjoint = diffrax.RecursiveCheckpointAdjoint() if adjoint is None else adjoint
    check_step_size(solver, dt, controller)
    solver = prepare_solver(solver, whole, adjoint)
    whole.motion.check(whole.mounted_model)
    tolerance = 1e-8 if dtype == jnp.float64 else 1e-5
    if dt is None:
        rtol, atol = (tolerance if x is None else x for x in (rtol, atol))
    trajectory, result = _solve(
        whole,
        start,
        ts,
        (as_number(dt), as_number(rtol), as_number(atol)),
        (solver, controller, adjoint),
        events,
        (max_events, max_steps, dense),
        diffrax.NoProgressMeter() if progress_meter is None else progress_meter,
    )
    if throw:
        trajectory = result.error_if(trajectory, trajectory.status > SimulationStatus.EVENT)
    return trajectory


def _check_start(system: System, q0, v0, ts):
    """The initial state and the times, of the right shapes and in one precision."""
    q0, v0 = check_state(system.model, q0=q0, v0=v0)
    ts = jnp.asarray(ts)
    if ts.ndim != 1 or ts.size == 0:
        raise ShapeError(f"ts has shape {ts.shape}, expected (n,) with n of at least 1: increasing times in s")
    if not isinstance(ts, core.Tracer) and np.any(np.diff(ts) < 0):
        raise ModelError("ts decreases; simulations run forward in time, so give increasing times in s")
    dtype = jnp.result_type(q0, v0, system.model.dtype)
    return (q0.astype(dtype), v0.astype(dtype)), ts.astype(dtype)


def _as_strong_types(tree: PyTree, dtype) -> PyTree:
    """The tree with Python numbers and weakly typed arrays as arrays of one precision, to avoid recompilation."""

    def as_strong_type(x):
        if isinstance(x, bool):
            return x
        if isinstance(x, float) or (isinstance(x, jax.Array) and x.weak_type and jnp.issubdtype(x.dtype, jnp.floating)):
            return jnp.asarray(x, dtype)
        return jnp.asarray(x, jnp.result_type(int)) if isinstance(x, int) else x

    return jax.tree.map(as_strong_type, tree)


@eqx.filter_jit
def _solve(system: System, start, ts, steps, methods, events, sizes, progress_meter):
    (q0, v0, parts), (dt, rtol, atol) = start, steps
    solver, controller, adjoint = methods
    max_events, max_steps, dense = sizes
    is_forward = jnp.all(jnp.diff(ts) >= 0)  # traced times cannot raise
    y0 = system.initial(jnp.where(is_forward, q0, jnp.nan), v0, ts[0], parts)
    y0 = State(y0.q, y0.v, pack_parts(y0.parts))
    if controller is None:
        fixed = dt is not None
        controller = diffrax.ConstantStepSize() if fixed else _adaptive_controller(rtol, atol, ts)
    if system.updates_between_steps or events:
        log = empty_log(len(events), max_events, q0, v0) if events else None
        phases = start_phases(system, ts[0], y0, max_events)
        y0 = Stepping(y0, log, phases)
        solver, controller = Stepped(solver, events), Landing(controller, system)
    solution = diffrax.diffeqsolve(
        MotionTerm(),
        solver,
        ts[0],
        ts[-1],
        dt,
        y0,
        args=system,
        saveat=diffrax.SaveAt(
            subs=(diffrax.SubSaveAt(ts=_move_inside_steps(ts), fn=_saved_state), diffrax.SubSaveAt(t1=True)),
            dense=dense,
        ),
        stepsize_controller=controller,
        adjoint=adjoint,
        max_steps=max_steps,
        throw=False,
        progress_meter=progress_meter,
    )
    return _trajectory(system, (q0, v0), solution, ts, dense), solution.result


def _adaptive_controller(rtol, atol, ts):
    """Steps adapted to tolerances, with a minimum near the resolution of time.

    Without a minimum, steps would shrink for ever where the accelerations are not finite. The minimum is not a multiple
    of the spacing of floating-point numbers, because diffrax accepts a step of exactly the minimum whatever its error.
    """
    least = 3.7 * jnp.finfo(ts.dtype).eps * jnp.maximum(jnp.abs(ts[0]), jnp.abs(ts[-1]))
    return diffrax.PIDController(rtol, atol, norm=_norm, dtmin=least, force_dtmin=False)


def _move_inside_steps(ts):
    """The times at which to save, the inner ones earlier by some units of rounding.

    Steps often end at such a time. The reverse pass repeats the steps in other compiled code, which may round their
    ends to the other side. Neither of the two adjacent steps would then contain the time, and its cotangent would be
    lost.
    """
    hair = 16 * jnp.finfo(ts.dtype).eps * jnp.maximum(jnp.abs(ts[0]), jnp.abs(ts[-1]))
    return jnp.where((ts > ts[0] + hair) & (ts < ts[-1]), ts - hair, ts)


def _saved_state(t, y, system):
    return underlying_state(system, y)


def _project_rows(system: System, ts, rows: State, modes, reached) -> State:
    """Rows between steps, projected onto the constraints like the states at the ends of steps."""
    if not system.motion.projects:
        return rows
    project = lambda t, q, v, modes: in_modes(system, modes).motion.project(system.mounted_model, t, q, v)
    projections = jax.vmap(project)(ts, rows.q, rows.v, modes)
    q, v = (jnp.where(reached[:, None], new, old) for new, old in zip(projections, (rows.q, rows.v), strict=True))
    return State(q, v, rows.parts)


def _norm(scaled):
    """Root mean square over continuous states. Sampled states and the log of events have no error.

    NaN counts as infinite: limits of the next step that are computed from a NaN depend on how XLA compiles them.
    """
    state = scaled.now if isinstance(scaled, Stepping) else scaled
    continuous = state.parts
    if isinstance(continuous, PackedParts):
        continuous = continuous.values
    elif continuous is not None:
        continuous = [x for x in continuous if not isinstance(x, SampledState)]
    size = optx.rms_norm((state.q, state.v, continuous))
    return jnp.where(jnp.isnan(size), jnp.inf, size)


def _trajectory(system: System, start, solution, ts, dense: bool) -> Trajectory:
    (saved, rows), (end, last) = zip(solution.ts, solution.ys, strict=True)
    last = jax.tree.map(lambda x: x[0], last)
    log, switches = (last.log, last.phases) if isinstance(last, Stepping) else (None, None)
    state = underlying_state(system, last)
    status = _status(solution, state, log, switches)
    phases = None if switches is None else phase_record(switches)
    modes = None if phases is None else row_modes(phases, ts, end[0])
    reached = jnp.isfinite(saved) & (saved <= end[0])
    ended = (status <= SimulationStatus.MAX_EVENTS) | (status == SimulationStatus.HELD)
    is_off_constraint = _violates_constraints(system, (ts[0], *start), (end[0], state.q, state.v))
    status = jnp.where((status <= SimulationStatus.EVENT) & is_off_constraint, SimulationStatus.OFF_CONSTRAINT, status)

    def fill_rows(rows, x):
        """The rows up to the end, then the last state, or NaN after a failure."""
        is_saved = reached.reshape(-1, *[1] * x.ndim)
        return jnp.where(is_saved, jnp.where(is_saved, rows, 0), jnp.where(ended, x, jnp.nan))

    rows = _project_rows(system, ts, jax.tree.map(fill_rows, rows, state), modes, reached)
    parts = unpack_parts(rows.parts)
    record = None if log is None else _record(log)
    interpolant = None
    if dense:
        d = solution.interpolation
        interpolant = Interpolant(system, d.ts, d.ts_size, d.infos, d.interpolation_cls, phases)
    steps = solution.stats["num_steps"]
    reached = reached | (ended & (ts <= ts[0]))  # also if no step was accepted
    rows = rows.q, rows.v, parts
    return Trajectory(ts, *rows, reached, status, steps, system, record, interpolant, phases=phases, modes=modes)


def _violates_constraints(system: System, start, end):
    """Whether the final state violates the constraints, or the initial state did and was projected onto them."""
    both = jax.lax.stop_gradient(jax.tree.map(lambda *x: jnp.stack(x), start, end))
    first, last = jax.vmap(lambda t, q, v: system.motion.violates_constraints(system.mounted_model, t, q, v))(*both)
    return last | (first & system.motion.projects)


def _status(solution, state: State, log, switches):
    code = SimulationStatus
    result, kinds = solution.result, diffrax.RESULTS
    status = code.FAILED
    if log is not None:
        full = log.count >= log.time.shape[0]
        at_event = jnp.where(log.ended > 0, code.EVENT, jnp.where(full, code.MAX_EVENTS, code.HELD))
        status = jnp.where(result == kinds.event_occurred, at_event, status)
    if switches is not None:
        failures = jnp.array([code.MAX_EVENTS, code.INDETERMINATE, code.IMPACT_LIMIT, code.NOT_SOLVED])
        at_switch = switches.ends
        status = jnp.where((result == kinds.event_occurred) & at_switch, failures[switches.failure.astype(int)], status)
    status = jnp.where(result == kinds.max_steps_reached, code.MAX_STEPS, status)
    finite = jnp.stack([jnp.all(jnp.isfinite(x)) for x in jax.tree.leaves(state)]).all()
    status = jnp.where((result == kinds.successful) & finite, code.FINISHED, status)
    return jnp.where(~finite, code.NOT_FINITE, status)


def _record(log) -> EventRecord:
    count = log.count.astype(int)
    return EventRecord(log.time, log.index.astype(int), log.q_before, log.v_before, log.q, log.v, count)
