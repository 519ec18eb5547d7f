"""What a simulation returns."""

import enum
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ConvergenceError, ShapeError
from jaxdyn._types import Array, Float, Int
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
from jaxdyn.simulation._function import as_function
from jaxdyn.simulation._state import State, to_state
from jaxdyn.simulation._system import System
from jaxdyn.spatial import Pose


class SimulationStatus(enum.IntEnum):
    """How a simulation ended."""

    #: the last time was reached
    FINISHED = 0
    #: a terminal event happened before the last time
    EVENT = 1
    #: the number of events reached `max_events` before the last time
    MAX_EVENTS = 2
    #: the number of steps reached `max_steps` before the last time
    MAX_STEPS = 3
    #: a number in a state is not finite
    NOT_FINITE = 4
    #: a step could not be made: an implicit solve or the location of an event did not converge, or adapted steps
    #: shrank below the resolution of time, as where accelerations are not finite
    FAILED = 5
    #: the robot rests at an event that would have to hold it, or is beyond a barrier, before the last time
    HELD = 6
    #: the start or the end is not on the constraints: they contradict each other, came apart, or were not met at first
    OFF_CONSTRAINT = 7


class EventRecord(eqx.Module):
    """The events of a simulation in the order of time; entries from `count` on are unused and NaN."""

    #: s
    time: Float[Array, "*batch cap"]
    #: position in the `events` given, -1 where unused
    index: Int[Array, "*batch cap"]
    #: state just before the event
    q_before: Float[Array, "*batch cap nq"]
    v_before: Float[Array, "*batch cap nv"]
    #: state after its reset
    q: Float[Array, "*batch cap nq"]
    v: Float[Array, "*batch cap nv"]
    count: Int[Array, "*batch"]


class Interpolant(eqx.Module):
    """A trajectory between its steps, `interpolant(t) -> (q, v)` of the order of the solver's interpolation.

    NaN at times that were not simulated.
    """

    system: System
    times: Float[Array, "*batch steps"]
    count: Any
    infos: Any
    kind: Any = eqx.field(static=True)

    def __call__(self, t) -> tuple[Array, Array]:
        """Configuration and velocity at a time t (s) within the simulated range."""
        t = jnp.asarray(t, self.times.dtype)
        known = jnp.arange(self.times.shape[0]) < self.count
        times = jnp.where(known, self.times, jnp.inf)
        i = jnp.clip(jnp.searchsorted(times, t, side="left") - 1, 0, self.count - 2)
        local = self.kind(t0=times[i], t1=times[i + 1], **jax.tree.map(lambda x: x[i], self.infos))
        state = to_state(self.system.model, local.evaluate(t))
        q, v = state.q, state.v
        if self.system.motion.projects:
            q, v = self.system.motion.project(self.system.model, t, q, v)
        last = times[jnp.maximum(self.count - 1, 0)]
        hair = 16 * jnp.finfo(t.dtype).eps * jnp.maximum(jnp.abs(times[0]), jnp.abs(last))
        inside = (t >= times[0] - hair) & (t <= last + hair)
        return jnp.where(inside, q, jnp.nan), jnp.where(inside, v, jnp.nan)


class Batched(eqx.Module):
    """Which leaves of a system have the axis of a batch; None stands for all of them."""

    leaves: tuple[bool, ...] | None = eqx.field(static=True, default=None)


class Trajectory(eqx.Module):
    """Times and states of a simulation, one row a saved time, with what follows from them on demand.

    After an event that ends the simulation the rows repeat its last state, and `reached` is False; after a failure
    they are NaN. The status is a `SimulationStatus`. Of a batch all arrays have a leading axis, save those leaves of
    `system` that its samples share (`simulate_batch`), and so have derived quantities; `trajectory[k]` is one sample.
    """

    #: s
    t: Float[Array, "*batch times"]
    q: Float[Array, "*batch times nq"]
    v: Float[Array, "*batch times nv"]
    #: states of the system's parts, one a part; of a sampled part with what is held and what waits
    parts: Any
    #: whether the simulation came as far as this time
    reached: Any
    #: a `SimulationStatus`
    status: Int[Array, "*batch"]
    #: steps made, rejected ones included
    num_steps: Int[Array, "*batch"]
    system: System
    events: EventRecord | None = None
    interpolant: Interpolant | None = None
    #: of a batch, which leaves of the system have its axis
    batched: Batched = Batched()

    def __getitem__(self, k: Any) -> "Trajectory":
        """One sample of a batch, or several by a slice or an array of numbers."""
        if self.q.ndim < 3:
            raise ShapeError("this trajectory is no batch and has no samples; its rows are trajectory.q[k] and so on")
        take = lambda tree: jax.tree.map(lambda x: x[k], tree)
        if self.batched.leaves is None:
            return take(self)
        wide, shared = split(self.system, self.batched)
        rows = take(with_system(self, wide, self.batched))
        return with_system(rows, eqx.combine(rows.system, shared), self.batched if rows.q.ndim > 2 else Batched())

    def checked(self) -> "Trajectory":
        """This trajectory, or `ConvergenceError` if any in it failed; for concrete values."""
        status = np.asarray(self.status)
        failed = status >= SimulationStatus.MAX_EVENTS
        if failed.any():
            kinds = sorted({SimulationStatus(int(s)).name for s in status[failed].ravel()})
            raise ConvergenceError(
                f"{failed.sum()} of {failed.size} simulations failed ({', '.join(kinds)}) after at most "
                f"{np.max(np.asarray(self.num_steps))} steps. MAX_STEPS: raise max_steps or loosen rtol and atol; "
                "MAX_EVENTS: raise max_events; NOT_FINITE: take a smaller dt, or look at what acts on the robot; "
                "FAILED: adapted steps shrank to nothing or equations were not solved, look at what acts on the robot "
                "where it ends; HELD: the robot rests against a stop that would have to push on, or starts beyond; "
                "OFF_CONSTRAINT: start from jaxdyn.constraints.assemble, take smaller steps, or look whether the "
                "constraints can be met."
            )
        return self

    def over(self, f) -> Any:
        """`f(model, q, v)` at every saved time; f is one function of a module, lest it is compiled again."""
        return _acted(_OfState(f), self)

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
        """Angular momentum about the world's origin, and linear momentum (`jaxdyn.momentum`)."""
        return self.over(momentum)

    @property
    def poses(self) -> Poses:
        """Poses of all links."""
        return self.over(_poses)

    def frame_pose(self, name: str) -> Pose:
        """Poses of one link or frame."""
        return self.over(_FramePose(name))

    @property
    def action(self) -> Action:
        """Efforts and wrenches of everything that acts, and rates of the parts' states."""
        return _acted(_action, self)

    @property
    def acceleration(self) -> Float[Array, "*batch times nv"]:
        """Accelerations, rad/s^2 or m/s^2."""
        return _acted(_acceleration, self)

    @property
    def power(self) -> Float[Array, "*batch times"]:
        """Power of all efforts and wrenches on the robot, those of constraints included: the rate of its energy; W."""
        return _acted(_power, self)

    @property
    def reactions(self) -> JointReactions:
        """What the joints carry, under all that acts on the links, constraints included."""
        return _acted(_reactions, self)


@eqx.filter_jit
def _acted(f, trajectory: Trajectory):
    """`f(system, t, state)` at every time, of every sample."""
    tr = trajectory
    states = State(tr.q, tr.v, tr.parts)

    def rows(system, t, states):
        return jax.vmap(lambda t, state: f(system, t, state))(t, states)

    if tr.batched.leaves is None:
        for _ in range(tr.q.ndim - 2):
            rows = jax.vmap(rows)
        return rows(tr.system, tr.t, states)
    wide, shared = split(tr.system, tr.batched)
    return jax.vmap(lambda wide, t, states: rows(eqx.combine(wide, shared), t, states))(wide, tr.t, states)


def with_system(trajectory: Trajectory, system: System, batched: Batched) -> Trajectory:
    """The same rows of another system, in the interpolant as well."""
    changed = lambda x: isinstance(x, System | Batched)
    nodes, tree = jax.tree.flatten(trajectory, is_leaf=changed)
    other = lambda x: system if isinstance(x, System) else batched if isinstance(x, Batched) else x
    return tree.unflatten([other(x) for x in nodes])


def split(system: System, batched: Batched) -> tuple[System, System]:
    """The leaves of a system with the axis of a batch, and the others."""
    return eqx.partition(system, jax.tree.unflatten(jax.tree.structure(system), batched.leaves or ()))


class _OfState(eqx.Module):
    f: Any = eqx.field(converter=as_function)

    def __call__(self, system, t, state: State):
        return self.f(system.model, state.q, state.v)


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


def _acceleration(system, t, state: State):
    return system.rate(t, state).v


def _exerted(system, t, state: State) -> tuple[Action, Action]:
    """What acts, and what the constraints of the motion do besides."""
    action = system.action(t, state)
    effort, external = action.effort, action.external
    return action, system.motion.exerted(system.model, t, state.q, state.v, effort, external)


def _sum(a: Any, b: Any) -> Any:
    return a if b is None else b if a is None else a + b


def _power(system, t, state: State):
    action, held = _exerted(system, t, state)
    zero = jnp.zeros_like(state.v)
    effort, external = _sum(action.effort, held.effort), _sum(action.external, held.external)
    if external is None:
        return effort @ state.v
    load = rnea(system.model, state.q, zero, zero) - rnea(system.model, state.q, zero, zero, external)
    return (effort + load) @ state.v


def _reactions(system, t, state: State) -> JointReactions:
    action, held = _exerted(system, t, state)
    a = system.motion.acceleration(system.model, t, state.q, state.v, action.effort, action.external)
    return joint_reactions(system.model, state.q, state.v, a, _sum(action.external, held.external))
