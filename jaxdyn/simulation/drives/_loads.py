"""Loads, powers and losses of the drives along a trajectory."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._errors import ModelError, ShapeError
from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float
from jaxdyn.actuators import PowerFlow
from jaxdyn.kinematics import integrate
from jaxdyn.simulation.drives._joint_actuators import joint_actuators
from jaxdyn.simulation.system import State, System
from jaxdyn.simulation.trajectory import Trajectory


class DriveLoads(eqx.Module):
    """Efforts and powers of the actuators of a system along a trajectory, one column for each actuator."""

    #: joints of the actuators
    joints: tuple[str, ...] = eqx.field(static=True)
    #: s
    t: Float[Array, " times"]
    #: of the joints, rad/s or m/s
    velocity: Float[Array, "times actuators"]
    #: of the actuators on the joints, behind gear and rotor inertia, N m or N
    effort: Float[Array, "times actuators"]
    #: balance of power, with arrays `(times, actuators)`
    power: PowerFlow

    @property
    def peak_effort(self) -> Float[Array, " actuators"]:
        """Largest magnitude of the efforts."""
        return jnp.max(jnp.abs(self.effort), 0)

    @property
    def rms_effort(self) -> Float[Array, " actuators"]:
        """Root mean square of the efforts over time."""
        return jnp.sqrt(self._integral(self.effort**2) / (self.t[-1] - self.t[0]))

    @property
    def peak_velocity(self) -> Float[Array, " actuators"]:
        """Largest magnitude of the velocities of the joints."""
        return jnp.max(jnp.abs(self.velocity), 0)

    @property
    def peak_mechanical_power(self) -> Float[Array, " actuators"]:
        """Largest magnitude of the power that joints receive, W."""
        return jnp.max(jnp.abs(self.power.mechanical), 0)

    @property
    def peak_supply_power(self) -> Float[Array, " actuators"]:
        """Largest power from the supply, W."""
        return jnp.max(self.power.supply, 0)

    @property
    def mechanical_energy(self) -> Float[Array, " actuators"]:
        """Work on the joints, J."""
        return self._integral(self.power.mechanical)

    @property
    def supplied_energy(self) -> Float[Array, " actuators"]:
        """Energy from the supply while its power is positive, J."""
        return self._integral(jnp.maximum(self.power.supply, 0))

    @property
    def regenerated_energy(self) -> Float[Array, " actuators"]:
        """Energy that the actuator returns to the supply while its power is negative, J."""
        return self._integral(jnp.maximum(-self.power.supply, 0))

    @property
    def copper_energy(self) -> Float[Array, " actuators"]:
        """Heat in the windings, `R i^2` integrated over time, J."""
        return self._integral(self.power.copper_loss)

    def _integral(self, y):
        """Integral over time by the trapezoidal rule."""
        return jnp.trapezoid(y, self.t, axis=0)


def power_flows(system: System, t, state: State) -> tuple[PowerFlow, ...]:
    """Balance of power of each actuator of a system at one state, under the inputs of its controller."""
    return _drives_at(system, as_float(t), state)[2]


@eqx.filter_jit
def drive_loads(trajectory: Trajectory) -> DriveLoads:
    """Efforts, velocities, powers and losses of the actuators along a trajectory.

    Peaks and energies are those of the saved times, by the trapezoidal rule; a negative `power.supply` is regeneration.
    Raises `ShapeError` for a batch of trajectories (`jax.vmap`, or select one), and `ModelError` for actuators without
    the contract `AbstractJointActuator`.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import DcMotor
    from jaxdyn.simulation import drive_loads

    model = jd.robots.pendulum()
    motor = DcMotor(model.joint_names[0], constant=0.05, resistance=1.2, gear=50.0)
    ts = jnp.linspace(0.0, 1.0, 21)
    run = jd.simulate(jd.System(model, (motor,)), jnp.zeros(1), jnp.zeros(1), ts, inputs=jnp.array([6.0]))
    loads = drive_loads(run)
    assert loads.supplied_energy[0] > loads.copper_energy[0] > 0  # J
    ```
    """
    if trajectory.t.ndim != 1:
        raise ShapeError(
            f"drive_loads takes one trajectory, not a batch of shape {trajectory.t.shape[:-1]}; select one, "
            "trajectory[k], or map: jax.vmap(drive_loads)"
        )
    system = trajectory.system
    states = State(trajectory.q, trajectory.v, trajectory.parts)
    velocity, effort, flows = jax.vmap(lambda t, state: _drives_at(system, t, state))(trajectory.t, states)
    names = tuple(x.actuator.joint for x in joint_actuators(system, system.model))
    if not flows:
        raise ModelError("the system has no actuators; add motors to its parts, System(model, (motor, ...))")
    columns = jax.tree.map(lambda *xs: jnp.stack(xs, -1), *flows)
    return DriveLoads(names, trajectory.t, velocity, effort, columns)


@eqx.filter_jit
def _drives_at(system: System, t, state: State) -> tuple[Array, Array, tuple[PowerFlow, ...]]:
    """Velocities, efforts and balances of power of all actuators."""
    model = system.mounted_model
    action, a = system.accelerate(t, state)
    inputs, rates = _inputs_and_rates(system, model, t, state, a, action)
    velocity, effort, flows = [], [], []
    for x in joint_actuators(system, model):
        part, own = x.actuator, (x.own_inputs(inputs), x.own_inputs(rates))
        x_state = (state.parts or ())[x.part]
        exerted: Any = part.act(model, t, state.q, state.v, a, x_state, own[0]).effort
        mounted = part.mount(system.model).properties.armature - system.model.properties.armature
        velocity.append(state.v[x.v])
        effort.append(exerted[x.v] - mounted[x.v] * a[x.v])
        flows.append(part.power_flow(model, t, state.q, state.v, a, x_state, own[0], own[1]))
    stack = lambda xs: jnp.stack(xs) if xs else jnp.zeros(0, state.v.dtype)
    return stack(velocity), stack(effort), tuple(flows)


def _inputs_and_rates(system: System, model, t, state: State, a, action) -> tuple[Any, Any]:
    """Inputs of the actuators, and their time derivatives along the motion."""

    def moved(s):
        parts = jax.tree.map(lambda x, r: x + s * r, state.parts, action.rate)
        q = integrate(model, state.q, s * state.v)
        return system.inputs(t + s, State(q, state.v + s * a, parts))

    zero = jnp.zeros((), state.v.dtype)
    return jax.jvp(moved, (zero,), (jnp.ones_like(zero),))
