"""The result of a simulation: times, states, events, and quantities derived from them."""

from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdyn._errors import ConvergenceError, ModelError, ShapeError
from jaxdyn._numerics import as_function, is_concrete
from jaxdyn._types import Array, Bool, Config, Float, Int, PyTree, Scalar, Velocity
from jaxdyn.dynamics import (
    Action,
    JointReactions,
    joint_reactions,
    kinetic_energy,
    momentum,
    potential_energy,
    rnea,
)
from jaxdyn.kinematics import Poses, forward_kinematics, frame_pose
from jaxdyn.model import Model
from jaxdyn.simulation.system import State, System, in_modes, to_state
from jaxdyn.simulation.trajectory._status import SimulationStatus
from jaxdyn.simulation.trajectory._summary import explain_failures, summarise
from jaxdyn.spatial import Pose


class EventRecord(eqx.Module):
    """The events of a simulation in the order of time. Entries from `count` on are unused, with NaN for numbers."""

    #: s
    time: Float[Array, "*batch cap"]
    #: index into the `events` of `simulate`, -1 where unused
    index: Int[Array, "*batch cap"]
    #: state immediately before the event
    q_before: Float[Array, "*batch cap nq"]
    v_before: Float[Array, "*batch cap nv"]
    #: state after the reset
    q: Float[Array, "*batch cap nq"]
    v: Float[Array, "*batch cap nv"]
    count: Int[Array, "*batch"]


class PhaseRecord(eqx.Module):
    """The phases of a motion with modes, such as a contact: entry k begins at `time[k]`, the first one at the start.

    Entries from `count` on are unused, with NaN for numbers.
    """

    #: beginning of the phase, s
    time: Float[Array, "*batch cap"]
    #: modes of the phase, with leading axis `cap`
    modes: PyTree
    #: impulses at its beginning, in the order of the rows of the motion, N s and N m s
    impulse: Float[Array, "*batch cap rows"]
    #: 1 for the guards whose roots are its beginning
    fired: Float[Array, "*batch cap guards"]
    #: configuration at its beginning, and velocities immediately before and after it
    q: Float[Array, "*batch cap nq"]
    v_before: Float[Array, "*batch cap nv"]
    v: Float[Array, "*batch cap nv"]
    #: rate of the guard that ended the phase before, and its second derivative; `sensitivity_status` judges them
    slope: Float[Array, "*batch cap"]
    curvature: Float[Array, "*batch cap"]
    count: Int[Array, "*batch"]
    #: index of the contact that a failure concerns, -1 without failure
    culprit: Int[Array, "*batch"]

    def at(self, t) -> PyTree:
        """The modes just before time t, or of the first phase."""
        is_used = jnp.arange(self.time.shape[0]) < self.count
        k = jnp.searchsorted(jnp.where(is_used, self.time, jnp.inf), t) - 1
        return jax.tree.map(lambda x: x[jnp.maximum(k, 0)], self.modes)


class Interpolant(eqx.Module):
    """Dense output, `interpolant(t) -> (q, v)`, of the order of the solver's interpolation; NaN outside of the times
    that were simulated.
    """

    system: System
    #: ends of the steps, s
    times: Float[Array, "*batch steps"]
    #: number of entries of `times` in use
    count: Int[Array, "*batch"]
    #: the solver's data for each step
    infos: PyTree
    #: the solver's class of interpolations
    kind: Callable[..., diffrax.AbstractLocalInterpolation] = eqx.field(static=True)
    phases: PhaseRecord | None = None

    def __call__(self, t) -> tuple[Array, Array]:
        """Configuration `(nq,)` and velocity `(nv,)` at a time t, s."""
        t = jnp.asarray(t, self.times.dtype)
        is_used = jnp.arange(self.times.shape[0]) < self.count
        times = jnp.where(is_used, self.times, jnp.inf)
        i = jnp.clip(jnp.searchsorted(times, t, side="left") - 1, 0, self.count - 2)
        local = self.kind(t0=times[i], t1=times[i + 1], **jax.tree.map(lambda x: x[i], self.infos))
        state = to_state(self.system, local.evaluate(t))
        q, v = state.q, state.v
        system = self.system if self.phases is None else in_modes(self.system, self.phases.at(t))
        if system.motion.projects:
            q, v = system.motion.project(system.mounted_model, t, q, v)
        last = times[jnp.maximum(self.count - 1, 0)]
        margin = 16 * jnp.finfo(t.dtype).eps * jnp.maximum(jnp.abs(times[0]), jnp.abs(last))
        is_inside = (t >= times[0] - margin) & (t <= last + margin)
        return jnp.where(is_inside, q, jnp.nan), jnp.where(is_inside, v, jnp.nan)


class Batched(eqx.Module):
    """The leaves of a system that have the axis of a batch."""

    #: one flag per leaf; None if all leaves have the axis
    leaves: tuple[bool, ...] | None = eqx.field(static=True, default=None)


class Trajectory(eqx.Module):
    """Times and states of a simulation, one row per saved time. Derived quantities are computed on demand.

    After an event that ends the simulation the rows repeat the last state, and `reached` is False; after a failure the
    rows are NaN. In a batch all arrays, derived quantities included, have a leading axis, except for the leaves of
    `system` that the samples share (`simulate_batch`); `trajectory[k]` is one sample.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd

    ts = jnp.linspace(0.0, 1.0, 11)
    path = jd.simulate(jd.robots.pendulum(), jnp.array([0.4]), jnp.zeros(1), ts, dt=0.02).checked()
    assert path.q.shape == path.v.shape == (11, 1) and path.reached.all()
    assert jnp.allclose(path.energy, path.energy[0], atol=1e-3)  # J
    ```
    """

    #: s
    t: Float[Array, "*batch times"]
    q: Float[Array, "*batch times nq"]
    v: Float[Array, "*batch times nv"]
    #: a tuple with the states of each part, or None; for a sampled part a `SampledState`
    parts: tuple[PyTree, ...] | None
    #: whether the simulation reached this time
    reached: Bool[Array, "*batch times"]
    #: a `SimulationStatus`
    status: Int[Array, "*batch"]
    #: number of steps, rejected ones included
    num_steps: Int[Array, "*batch"]
    system: System
    events: EventRecord | None = None
    interpolant: Interpolant | None = None
    #: the leaves of the system that have the axis of the batch
    batched: Batched = Batched()
    #: of a motion with modes, otherwise None
    phases: PhaseRecord | None = None
    #: the modes of each row, of a motion with modes
    modes: PyTree = None

    def __repr__(self) -> str:
        return summarise(self) if is_concrete((self.t, self.status)) else super().__repr__()

    def __getitem__(self, k: ArrayLike | slice) -> "Trajectory":
        """One sample of a batch, or several samples by a slice or an array of indices."""
        if self.q.ndim < 3:
            raise ShapeError(
                "this trajectory is not a batch and has no samples; its rows are trajectory.q[k] and so on"
            )
        take = lambda tree: jax.tree.map(lambda x: x[k], tree)
        if self.batched.leaves is None:
            return take(self)
        own, shared = split_leaves(self.system, self.batched)
        rows = take(with_system(self, own, self.batched))
        return with_system(rows, eqx.combine(rows.system, shared), self.batched if rows.q.ndim > 2 else Batched())

    def checked(self) -> "Trajectory":
        """The trajectory itself; raises `ConvergenceError` if a simulation failed. For concrete values only."""
        status = np.asarray(self.status)
        failed = status >= SimulationStatus.MAX_EVENTS
        if failed.any():
            raise ConvergenceError(explain_failures(self, failed))
        return self

    @property
    def last(self) -> State:
        """The state at the last time, whose `q`, `v` and `parts` continue the run; in a batch, those of all samples."""
        axis = self.q.ndim - 2
        q, v, parts = jax.tree.map(lambda x: x[(slice(None),) * axis + (-1,)], (self.q, self.v, self.parts))
        return State(q, v, parts)

    def over(self, f: Callable[[Model, Config, Velocity], PyTree]) -> PyTree:
        """`f(model, q, v)` at every saved time. Define f at module level to avoid recompilation."""
        return _map_rows(_OfState(f), self)

    @property
    def kinetic_energy(self) -> Float[Array, "*batch times"]:
        """J."""
        return self.over(kinetic_energy)

    @property
    def potential_energy(self) -> Float[Array, "*batch times"]:
        """J."""
        return self.over(_potential_energy)

    @property
    def energy(self) -> Float[Array, "*batch times"]:
        """Kinetic and potential energy, J."""
        return self.kinetic_energy + self.potential_energy

    @property
    def momentum(self) -> Float[Array, "*batch times 6"]:
        """Angular momentum about the world's origin, N m s, and linear momentum, N s (`jaxdyn.momentum`)."""
        return self.over(momentum)

    @property
    def poses(self) -> Poses:
        """Poses of all links."""
        return self.over(_poses)

    def frame_pose(self, name: str) -> Pose:
        """Poses of the link or frame with this name."""
        return self.over(_FramePose(name))

    @property
    def action(self) -> Action:
        """Efforts and wrenches of all parts and of the joints, and the rates of the parts' states."""
        return _map_rows(_action, self)

    @property
    def inputs(self) -> Float[Array, "*batch times inputs"]:
        """Inputs of the actuators from the controller of the system, such as voltages, in the order of the actuators.

        For a sampled controller they are the inputs held up to the saved time, zero before the first sample. Limits of
        the actuators are not applied. A system without actuators has none, `(times, 0)`.
        """
        return _map_rows(_inputs, self)

    @property
    def acceleration(self) -> Float[Array, "*batch times nv"]:
        """Accelerations, rad/s^2 or m/s^2."""
        return _map_rows(_acceleration, self)

    @property
    def power(self) -> Float[Array, "*batch times"]:
        """Power of all efforts and wrenches, constraint forces included, which is the rate of the energy; W."""
        return _map_rows(_power, self)

    @property
    def contacts(self) -> Any:
        """A `contact.ContactState`: gaps, rates and forces; raises `ModelError` without a `ContactMotion`."""
        if not hasattr(self.system.motion, "contact_state"):
            raise ModelError(
                f"the motion of this trajectory is {type(self.system.motion).__name__}, which has no contacts; "
                "simulate System(model, motion=ContactMotion(contacts))"
            )
        return _map_rows(_contacts, self)

    @property
    def reactions(self) -> JointReactions:
        """Reactions in the joints, under all efforts and wrenches, constraint forces included."""
        return _map_rows(_reactions, self)


@eqx.filter_jit
def _map_rows(f: Callable[[System, Scalar, State], PyTree], trajectory: Trajectory):
    """`f(system, t, state)` at every time of every sample."""
    tr = trajectory
    states = State(tr.q, tr.v, tr.parts), tr.modes

    def rows(system, t, states):
        return jax.vmap(lambda t, state, modes: f(in_modes(system, modes), t, state))(t, *states)

    if tr.batched.leaves is None:
        for _ in range(tr.q.ndim - 2):
            rows = jax.vmap(rows)
        return rows(tr.system, tr.t, states)
    own, shared = split_leaves(tr.system, tr.batched)
    return jax.vmap(lambda own, t, states: rows(eqx.combine(own, shared), t, states))(own, tr.t, states)


def with_system(trajectory: Trajectory, system: System, batched: Batched) -> Trajectory:
    """The same rows with another system, also in the interpolant."""
    is_replaced = lambda x: isinstance(x, System | Batched)
    nodes, tree = jax.tree.flatten(trajectory, is_leaf=is_replaced)
    replace = lambda x: system if isinstance(x, System) else batched if isinstance(x, Batched) else x
    return tree.unflatten([replace(x) for x in nodes])


def split_leaves(system: System, batched: Batched) -> tuple[System, System]:
    """The leaves of a system with the axis of a batch, and the other leaves."""
    return eqx.partition(system, jax.tree.unflatten(jax.tree.structure(system), batched.leaves or ()))


class _OfState(eqx.Module):
    f: Callable[[Model, Config, Velocity], PyTree] = eqx.field(converter=as_function)

    def __call__(self, system, t, state: State):
        return self.f(system.mounted_model, state.q, state.v)


def _potential_energy(model, q, v):
    return potential_energy(model, q)


def _poses(model, q, v):
    return forward_kinematics(model, q)


class _FramePose(eqx.Module):
    name: str = eqx.field(static=True)

    def __call__(self, model, q, v):
        return frame_pose(model, q, self.name)


def _action(system, t, state: State):
    return system.action(t, state)


def _inputs(system, t, state: State):
    return system.inputs(t, state)


def _acceleration(system, t, state: State):
    return system.rate(t, state).v


def _all_forces(system, t, state: State) -> tuple[Action, Action]:
    """Efforts and wrenches of parts and joints, and those of the constraints."""
    action = system.action(t, state)
    effort, external = action.effort, action.external
    return action, system.motion.exerted(system.mounted_model, t, state.q, state.v, effort, external)


def _sum(a: Any, b: Any) -> Any:
    return a if b is None else b if a is None else a + b


def _power(system, t, state: State):
    action, constraint = _all_forces(system, t, state)
    zero = jnp.zeros_like(state.v)
    effort, external = _sum(action.effort, constraint.effort), _sum(action.external, constraint.external)
    if external is None:
        return effort @ state.v
    load = rnea(system.mounted_model, state.q, zero, zero) - rnea(system.mounted_model, state.q, zero, zero, external)
    return (effort + load) @ state.v


def _contacts(system, t, state: State):
    action = system.action(t, state)
    return system.motion.contact_state(system.mounted_model, t, state.q, state.v, action.effort, action.external)


def _reactions(system, t, state: State) -> JointReactions:
    action, constraint = _all_forces(system, t, state)
    a = system.motion.acceleration(system.mounted_model, t, state.q, state.v, action.effort, action.external)
    return joint_reactions(system.mounted_model, state.q, state.v, a, _sum(action.external, constraint.external))
