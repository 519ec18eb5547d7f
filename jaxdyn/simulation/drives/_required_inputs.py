"""Direct dynamics of driven robots: from a motion to the inputs of the actuators."""

from collections.abc import Sequence
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Bool, Float, PyTree
from jaxdyn.actuators import JointMotion, Requirement
from jaxdyn.control import PathReference, desired_motion
from jaxdyn.dynamics import AbstractMeasuredActuator, AbstractPart, AbstractSampledPart, FreeMotion, passive_forces
from jaxdyn.kinematics import integrate
from jaxdyn.model import Model
from jaxdyn.recursion import check_state
from jaxdyn.simulation.drives._joint_actuators import PlacedActuator, joint_actuators
from jaxdyn.simulation.system import State, System, as_system, cubic_signal


class RequiredInputs(eqx.Module):
    """Inputs of the actuators that a motion requires."""

    #: in the order of the actuators, not limited
    inputs: Float[Array, "*batch inputs"]
    #: efforts of the actuators on the joints, behind gear and rotor inertia, N m or N
    effort: Float[Array, "*batch nv"]
    #: efforts that the motion requires on coordinates without an actuator; zero if the motion is possible
    missing: Float[Array, "*batch nv"]
    #: states of all parts of the system in the motion
    parts: tuple[PyTree, ...] | None
    #: of each actuator, by name of a limit, the distance to it; negative beyond the limit
    margins: tuple[dict[str, Float[Array, "*batch"]], ...]
    #: measurements in the motion by name, such as "current.elbow" (A) and "rotor_velocity.elbow" (rad/s), not limited
    measured: dict[str, Float[Array, "*batch"]]
    #: of each actuator, whether the motion exceeds a limit or no input exists
    is_saturated: Bool[Array, "*batch actuators"]


class InputTable(eqx.Module):
    """Required inputs at the times of a table, with the motion."""

    #: s
    times: Float[Array, " rows"]
    q: Float[Array, "rows nq"]
    v: Float[Array, "rows nv"]
    a: Float[Array, "rows nv"]
    #: with a leading axis of rows
    required: RequiredInputs

    @property
    def path(self) -> diffrax.AbstractPath:
        """The inputs over time, cubic between the rows: an argument for `simulate(inputs=)`."""
        return cubic_signal(self.times, self.required.inputs).path

    def initial_parts(self) -> tuple[PyTree, ...] | None:
        """States of the parts in the first row: an argument for `simulate(parts=)`."""
        return jax.tree.map(lambda x: x[0], self.required.parts)


def required_inputs(
    system: Model | System,
    t: ArrayLike,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    jerk: Float[Array, " nv"],
    *,
    parts: Sequence[PyTree] | None = None,
) -> RequiredInputs:
    """Inputs under which a system moves with given accelerations and jerks: its direct dynamics (20.5.4).

    With the efforts `tau = H(q) a + h(q, v)` less those of springs, friction and other parts, each actuator is solved
    for its input; for a direct-current motor with inductance,

        M = tau / (n eta), or tau reverse_eta / n where the joint drives,   i = (M + J n a + B n v) / C_M
        u = R i + L di/dt + C_E n v

    where di/dt is the derivative of i along (v, a, jerk) in forward mode. No equation is solved iteratively. Inputs
    beyond the limits of an actuator are returned as they are and reported.

    Arguments:

    * `system`: a robot without constraints, with an `AbstractJointActuator` on each coordinate that needs effort; its
      controller, if any, has no effect
    * `t`, `q`, `v`, `a`, `jerk`: time (s), configuration `(nq,)` and three derivatives `(nv,)`; the jerk counts where
      an actuator has an inductance or a compressible fluid
    * `parts`: states of the parts, such as temperatures, by default the initial ones; currents and pressures in it
      have no effect, since they follow from the motion

    Returns `RequiredInputs`. Raises `ModelError` for constrained systems, sampled parts, two actuators on one joint,
    and actuators that cannot be inverted.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import DcMotor
    from jaxdyn.simulation import required_inputs

    model = jd.robots.pendulum()
    motor = DcMotor(model.joint_names[0], constant=0.05, resistance=1.2, gear=50.0, voltage_limit=24.0)
    system = jd.System(model, (motor,))
    need = required_inputs(system, 0.0, jnp.ones(1), jnp.zeros(1), jnp.zeros(1), jnp.zeros(1))
    assert not need.is_saturated[0]
    ```
    """
    system = as_system(system)
    q, v, a, jerk = check_state(system.model, q=q, v=v, a=a, jerk=jerk)
    _check(system)
    return _required_inputs(system, as_float(t), q, v, a, jerk, None if parts is None else tuple(parts))


@eqx.filter_jit
def _required_inputs(system: System, t, q, v, a, jerk, parts) -> RequiredInputs:
    model = system.mounted_model
    actuators = joint_actuators(system, model)
    columns = [x.v for x in actuators]
    if len(set(columns)) < len(columns):
        names = [x.actuator.joint for x in actuators]
        raise ModelError(
            f"actuators drive the joints {names}: the share of each is not unique; expected one for a joint"
        )
    state = system.initial(q, v, t, parts)
    states = state.parts or ()
    effort, effort_rate = _effort_and_rate(system, t, state, a, jerk)
    armature = model.properties.armature - system.model.properties.armature
    found = [_solve(x, (q, v, a, jerk, effort, effort_rate), states[x.part]) for x in actuators]
    new = list(states)
    for x, need in zip(actuators, found, strict=True):
        new[x.part] = need.state
    driven = jnp.zeros(model.nv, bool).at[jnp.asarray(columns, int)].set(True)
    exceeded = [
        jnp.any(jnp.stack([m < 0 for m in need.margins.values()] + [~jnp.all(jnp.isfinite(need.inputs))]))
        for need in found
    ]
    return RequiredInputs(
        jnp.concatenate([need.inputs for need in found]) if found else jnp.zeros(0, v.dtype),
        jnp.where(driven, effort - armature * a, 0),
        jnp.where(driven, 0, effort),
        tuple(new) or None,
        tuple(need.margins for need in found),
        _measurements(actuators, found),
        jnp.stack(exceeded) if found else jnp.zeros(0, bool),
    )


def _measurements(actuators: Sequence[PlacedActuator], found: Sequence[Requirement]) -> dict[str, Array]:
    """The measurements of all actuators in the motion."""
    values: dict[str, Array] = {}
    for x, need in zip(actuators, found, strict=True):
        if isinstance(x.actuator, AbstractMeasuredActuator):
            values |= x.actuator.state_measurements(need.state)
        values |= need.measurements or {}
    return values


@eqx.filter_jit
def tabulate_inputs(
    system: System, reference: PyTree, times: Float[Array, " rows"], *, parts: Sequence[PyTree] | None = None
) -> InputTable:
    """Inputs of the actuators along a reference motion, at the given times (s).

    The reference is one of control laws (`jaxdyn.control`): a path or function of configurations over time as
    `PathReference`, a function `t -> (q, v, a)`, or a `Plan`; the jerk is the derivative of its accelerations in
    forward mode. The states `parts`, such as temperatures, count as constant.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import DcMotor
    from jaxdyn.control import PathReference
    from jaxdyn.simulation import tabulate_inputs

    model = jd.robots.pendulum()
    motor = DcMotor(model.joint_names[0], constant=0.05, resistance=1.2, inductance=1e-3, gear=50.0)
    swing = PathReference(lambda t: jnp.array([jnp.sin(t)]))
    table = tabulate_inputs(jd.System(model, (motor,)), swing, jnp.linspace(0.0, 1.0, 11))
    assert table.required.inputs.shape == (11, 1)
    ```
    """
    model = system.model
    if isinstance(reference, diffrax.AbstractPath):
        reference = PathReference(reference)

    def row(t):
        motion = desired_motion(model, reference, t)
        _, jerk = jax.jvp(lambda t: desired_motion(model, reference, t).a, (t,), (jnp.ones_like(t),))
        return motion, required_inputs(system, t, *motion, jerk, parts=parts)

    times = as_float(times)
    motion, required = jax.vmap(row)(times)
    return InputTable(times, motion.q, motion.v, motion.a, required)


def _check(system: System) -> None:
    if not isinstance(system.motion, FreeMotion):
        raise ModelError(
            f"the motion of the system is {type(system.motion).__name__}; expected FreeMotion: under constraints the "
            "efforts of a motion are not unique"
        )
    for part in system.parts:
        if isinstance(part, AbstractSampledPart):
            raise ModelError(
                f"the part {type(part).__name__} is sampled and has no derivatives along a motion; leave it out"
            )


def _solve(x: PlacedActuator, motion: tuple[Any, ...], state):
    q, v, a, jerk, effort, effort_rate = motion
    k = x.v
    position, velocity = q[x.q], v[k]
    own = JointMotion(position, velocity, a[k], effort[k])
    rate = JointMotion(velocity, a[k], jerk[k], effort_rate[k])
    return x.actuator.requirement(own, rate, state)


def _effort_and_rate(system: System, t, state: State, a, jerk) -> tuple[Array, Array]:
    """Efforts of the actuators on the mounted model, and their time derivatives along the motion."""
    model = system.mounted_model
    q, v = state.q, state.v
    own = [(part, x) for part, x in zip(system.parts, state.parts or (), strict=True) if isinstance(part, AbstractPart)]
    rates = [part.act(model, t, q, v, x).rate for part, x in own]

    def effort(s):
        now = integrate(model, q, s * v), v + s * a
        known = passive_forces(model, *now) if system.passive else jnp.zeros_like(v)
        external = None
        for (part, x), rate in zip(own, rates, strict=True):
            moved = jax.tree.map(lambda y, r: y + s * r, x, rate)
            action = part.act(model, t + s, *now, moved)
            known = known if action.effort is None else known + action.effort
            if action.external is not None:
                external = action.external if external is None else external + action.external
        return system.motion.residual(model, t + s, *now, a + s * jerk, known, external)

    zero = jnp.zeros((), v.dtype)
    return jax.jvp(effort, (zero,), (jnp.ones_like(zero),))
