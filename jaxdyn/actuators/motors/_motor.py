"""A direct-current motor behind a gear."""

from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_float, as_function, optional_float
from jaxdyn._types import Array, Bool, Config, Float, PyTree, Scalar, Velocity
from jaxdyn.actuators.contract import AbstractJointActuator, is_self_locking, saturate
from jaxdyn.actuators.motors._motor_equations import (
    canonical_form_of_motor,
    gear_factor,
    power_flow_of_motor,
    requirement_of_motor,
)
from jaxdyn.actuators.motors._motor_measurements import (
    measurement_units_of_motor,
    measurements_of_motor,
    replace_measured_of_motor,
    state_measurements_of_motor,
)
from jaxdyn.actuators.motors._motor_state import MotorFlow, MotorState
from jaxdyn.actuators.motors._rotor_friction import AbstractRotorFriction, Cogging
from jaxdyn.actuators.motors._thermal import ThermalModel
from jaxdyn.dynamics import AbstractMeasuredActuator, AbstractRatedActuator
from jaxdyn.model import Model


class DcMotor(AbstractJointActuator, AbstractRatedActuator, AbstractMeasuredActuator):
    """A permanent-magnet motor that turns a joint through a gear, commanded in volts, amperes or newton metres.

        u = R i + L di/dt + C_E n v,    J n a = C_M i - B n v - M,    tau = n M

    u is the voltage, i the current, n the gear ratio, M the torque that the rotor transmits to the gear, v and a are
    velocity and acceleration of the joint and tau is its effort (M. Vukobratovic and V. Potkonjak, "Robot Dynamics", in
    a CRC handbook, 2002, equations 20.62 to 20.69; Spong, Hutchinson and Vidyasagar 2006, section 6.1). The current is
    a state with initial value zero; without an inductance it is `(u - C_E n v) / R` (20.66). A `System` simulates the
    robot with the reflected inertia `n^2 J` of the rotor (`mount`).

    **Gear losses.** With the efficiencies eta of the gear, `tau = eta n M` where tau has the direction of v, and
    `tau = n M / reverse_eta` where the joint drives the motor. The direction of the power depends on the torque after
    the rotor's inertia, therefore on the acceleration, and the system solves for both. The transition has the velocity
    `width`. A reverse efficiency of zero is a self-locking gear.

    **Commands.** `input_quantity` is `"voltage"`, `"current"` or `"torque"` (of the joint without losses, N m). In the
    last two cases an ideal current control holds the current, as far as the limits allow, and there is no inductance.
    `voltage_limit` and `current_limit` saturate. With an inductance the current limiter bounds the voltage across the
    winding, `|u - C_E n v| <= R i_max`. `saturation_width`, relative to the limits, smooths the corners.

    **Further effects**: `friction` of the rotor (`StribeckFriction`, `LuGreFriction`), `cogging`, and `thermal`, which
    adds temperatures to the state and lets resistance and torque constant depend on them.

    Arguments: `joint`, the name of a joint with one velocity coordinate (another joint raises `ModelError`), and the
    fields below, in SI units. Fields are leaves, so that motors can be differentiated and identified.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import DcMotor

    model = jd.robots.pendulum()
    motor = DcMotor(model.joint_names[0], constant=0.05, resistance=1.2, gear=50.0, rotor_inertia=1e-5)
    system, ts = jd.System(model, (motor,)), jnp.linspace(0.0, 1.0, 11)
    path = jd.simulate(system, jnp.zeros(1), jnp.zeros(1), ts, inputs=jnp.array([6.0]))
    ```
    """

    #: name of the joint that the motor drives
    joint: str = eqx.field(static=True)
    #: u, V: a number, a control law `(t, q, v)`, or None for an input of the system
    voltage: ArrayLike | Callable[[Scalar, Config, Velocity], Scalar] | None = eqx.field(
        converter=as_function, default=None
    )
    #: torque constant C_M, N m/A
    constant: Float[Array, "*batch"] = eqx.field(converter=as_float, kw_only=True)
    #: R, ohm
    resistance: Float[Array, "*batch"] = eqx.field(converter=as_float, kw_only=True)
    #: L, H; None neglects it
    inductance: Float[Array, "*batch"] | None = eqx.field(converter=optional_float, default=None, kw_only=True)
    #: n, turns of the motor per turn of the joint; negative if they turn in opposite directions
    gear: Float[Array, "*batch"] = eqx.field(converter=as_float, default=1.0, kw_only=True)
    #: J, of the rotor about its axis, kg m^2
    rotor_inertia: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0, kw_only=True)
    #: back-EMF constant C_E, V s/rad; None takes `constant`, which holds without further losses
    back_emf: Float[Array, "*batch"] | None = eqx.field(converter=optional_float, default=None, kw_only=True)
    #: viscous friction B of the rotor bearings, N m s/rad at the motor
    viscous: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0, kw_only=True)
    #: efficiency of the gear where the motor drives the joint; None for no losses
    efficiency: Float[Array, "*batch"] | None = eqx.field(converter=optional_float, default=None, kw_only=True)
    #: efficiency of the gear where the joint drives the motor; None for no losses
    reverse_efficiency: Float[Array, "*batch"] | None = eqx.field(converter=optional_float, default=None, kw_only=True)
    #: joint velocity over which the gear losses change direction, rad/s or m/s
    width: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.01, kw_only=True)
    #: largest voltage of the amplifier, V; None for no limit
    voltage_limit: Float[Array, "*batch"] | None = eqx.field(converter=optional_float, default=None, kw_only=True)
    #: largest current, A; None for no limit
    current_limit: Float[Array, "*batch"] | None = eqx.field(converter=optional_float, default=None, kw_only=True)
    #: width of the transition to saturation, relative to the limits; zero for a sharp corner
    saturation_width: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0, kw_only=True)
    #: friction of the rotor besides `viscous`
    friction: AbstractRotorFriction | None = eqx.field(default=None, kw_only=True)
    #: cogging torque of the rotor
    cogging: Cogging | None = eqx.field(default=None, kw_only=True)
    #: heating of the motor
    thermal: ThermalModel | None = eqx.field(default=None, kw_only=True)
    #: quantity that the input commands: "voltage", "current" or "torque"
    input_quantity: Literal["voltage", "current", "torque"] = eqx.field(static=True, default="voltage", kw_only=True)
    #: electrical power over `u i`; 3/2 where u and i are the amplitudes of three phases (`SynchronousMotor`)
    phase_factor: float = eqx.field(static=True, default=1.0, kw_only=True)

    def __check_init__(self):
        if self.input_quantity not in ("voltage", "current", "torque"):
            raise ModelError(f"input_quantity is {self.input_quantity!r}; expected 'voltage', 'current' or 'torque'")
        if self.input_quantity != "voltage" and (self.inductance is not None or self.voltage is not None):
            raise ModelError(
                f"a motor whose input is the {self.input_quantity} has no voltage and no inductance: an ideal current "
                "control takes their place; leave both out, or command the voltage"
            )

    @property
    def num_inputs(self) -> int:
        """1, or 0 where `voltage` is given."""
        return 0 if self.voltage is not None else 1

    @property
    def input_names(self) -> tuple[str, ...]:
        """The quantity that the input commands and the joint, such as "voltage.elbow"."""
        return (f"{self.input_quantity}.{self.joint}",) * self.num_inputs

    def input_limits(self):
        """The limit of the voltage, of the current, or of the torque under the largest current."""
        bound = self.voltage_limit if self.input_quantity == "voltage" else self.current_limit
        if bound is not None and self.input_quantity == "torque":
            bound = bound * jnp.abs(self.gear * self.constant)
        upper = jnp.full(self.num_inputs, jnp.inf if bound is None else bound)
        return -upper, upper

    def state_limits(self, state):
        """The largest current, if the current is a state; other states have no limit."""
        unlimited = jax.tree.map(lambda x: jnp.full_like(x, jnp.inf), state)
        upper = unlimited
        if self.inductance is not None and self.current_limit is not None:
            upper = eqx.tree_at(lambda x: x.current, unlimited, jnp.full_like(state.current, self.current_limit))
        return jax.tree.map(jnp.negative, upper), upper

    @property
    def uses_acceleration(self) -> bool:
        """Whether the gear has losses."""
        return self.efficiency is not None or self.reverse_efficiency is not None

    @property
    def has_friction_state(self) -> bool:
        """Whether the friction of the rotor has a state."""
        return self.friction is not None and self.friction.initial(jnp.result_type(float)) is not None

    @property
    def joint_inertia(self):
        """The reflected inertia of the rotor, `n^2 J`."""
        return self.gear**2 * self.rotor_inertia

    def initial(self, model, q, v):
        current = None if self.inductance is None else jnp.zeros((), v.dtype)
        temperature = None if self.thermal is None else self.thermal.initial(v.dtype)
        friction = None if self.friction is None else self.friction.initial(v.dtype)
        if current is None and temperature is None and friction is None:
            return None
        return MotorState(current, temperature, friction)

    def act_on_joint(self, t, q, v, motion, state, inputs):
        flow = self.flow(motion.q, motion.v, state, self._command(t, q, v, inputs))
        torque = flow.air_gap_torque + flow.cogging_torque - flow.friction_torque
        return self._joint_effort(torque, motion.v, motion.a), self.state_rate(state, flow)

    def canonical_form(self, q, v, state):
        return canonical_form_of_motor(self, q, v, state)

    def requirement(self, motion, rate, state):
        """Current and command (20.62 to 20.69); the rate of the current follows in forward mode from the jerk."""
        return requirement_of_motor(self, motion, rate, state)

    def power_flow(self, model, t, q, v, a, state, inputs, input_rates=None):
        _, index = self.coordinate(model)
        return power_flow_of_motor(self, self._flow_at(model, t, q, v, state, inputs), v[index], a[index], state)

    @property
    def measurement_units(self) -> dict[str, str]:
        return measurement_units_of_motor(self)

    def measurements(self, model, t, q, v, state, inputs):
        return measurements_of_motor(self, self._flow_at(model, t, q, v, state, inputs), state)

    def state_measurements(self, state):
        return state_measurements_of_motor(self, state)

    def replace_measured(self, state, values):
        return replace_measured_of_motor(self, state, values)

    def holds(self, v) -> Bool[Array, ""]:
        if self.reverse_efficiency is None:
            return jnp.zeros((), bool)
        return is_self_locking(self.reverse_efficiency) & (jnp.abs(v) <= self.width)

    def _flow_at(self, model: Model, t, q, v, state, inputs) -> MotorFlow:
        k, index = self.coordinate(model)
        return self.flow(q[k], v[index], state, self._command(t, q, v, inputs))

    def _command(self, t, q, v, inputs):
        """The input, or the motor's own voltage."""
        if self.voltage is None:
            return inputs[0]
        return self.voltage(t, q, v) if callable(self.voltage) else self.voltage

    def flow(self, q: ArrayLike, v: ArrayLike, state: MotorState | None, command: ArrayLike) -> MotorFlow:
        """Electrical and mechanical quantities at the joint coordinate q, its velocity v and a command."""
        temperature = None if state is None else state.temperature
        resistance, constant, back_emf = self.constants(temperature)
        w = self.gear * jnp.asarray(v)
        current: Any
        voltage, current, rate = self._circuit(resistance, constant, back_emf * w, state, command)
        friction, friction_rate, cogging = self.friction_and_cogging(q, v, None if state is None else state.friction)
        return MotorFlow(
            voltage,
            current,
            rate,
            w,
            constant * current,
            friction,
            cogging,
            self.phase_factor * resistance * current**2,
            friction_rate,
        )

    def friction_and_cogging(self, q, v, state: PyTree) -> tuple[Any, PyTree, Any]:
        """Torque of all friction against the rotation, N m, rate of its state, and cogging torque, N m."""
        w = self.gear * jnp.asarray(v)
        friction, rate = self.viscous * w, None
        if self.friction is not None:
            torque, rate = self.friction.torque(w, state)
            friction = friction + torque
        return friction, rate, jnp.zeros_like(w) if self.cogging is None else self.cogging.torque(self.gear * q)

    def constants(self, temperature: Float[Array, " nodes"] | None = None) -> tuple[Any, Any, Any]:
        """Resistance, torque constant and back-EMF constant, at temperatures of the thermal model."""
        back_emf = self.constant if self.back_emf is None else self.back_emf
        if self.thermal is None or temperature is None:
            return self.resistance, self.constant, back_emf
        factor = self.thermal.constant_factor(temperature)
        return self.resistance * self.thermal.resistance_factor(temperature), self.constant * factor, back_emf * factor

    def _circuit(self, resistance, constant, emf, state, command):
        """Voltage, current and its rate."""
        command = jnp.asarray(command)
        limit = lambda x, bound: x if bound is None else saturate(x, bound, self.saturation_width * bound)
        if self.input_quantity != "voltage":
            wanted = command if self.input_quantity == "current" else command / (self.gear * constant)
            wanted = limit(wanted, self.current_limit)
            voltage = limit(resistance * wanted + emf, self.voltage_limit)
            current = (voltage - emf) / resistance
            return voltage, current, jnp.zeros_like(current)
        drop = limit(command, self.voltage_limit) - emf
        if self.current_limit is not None:
            drop = limit(drop / resistance, self.current_limit) * resistance
        voltage = drop + emf
        if self.inductance is None:
            current = drop / resistance
            return voltage, current, jnp.zeros_like(current)
        return voltage, state.current, (drop - resistance * state.current) / self.inductance

    def _joint_effort(self, torque, v, a):
        """Effort on the mounted model of a torque on the rotor, `n torque` without losses of the gear."""
        if not self.uses_acceleration:
            return self.gear * torque
        inertial = self.gear**2 * self.rotor_inertia * a
        transmitted = self.gear * torque - inertial
        return gear_factor(self, transmitted, v) * transmitted + inertial

    def state_rate(self, state: MotorState | None, flow: MotorFlow):
        """Time derivative of the state, or None."""
        if state is None:
            return None
        warming: Any = None
        if self.thermal is not None and state.temperature is not None:
            warming = self.thermal.rate(state.temperature, flow.copper_loss, self.friction_heat(state, flow))
        current = None if self.inductance is None else flow.current_rate
        return MotorState(current, warming, flow.friction_rate)

    def friction_heat(self, state: MotorState | None, flow: MotorFlow):
        """Power of the friction without the part that it stores, W."""
        power = flow.friction_torque * flow.velocity
        if self.friction is None or state is None or state.friction is None:
            return power
        _, stored = eqx.filter_jvp(self.friction.energy, (state.friction,), (flow.friction_rate,))
        return power - stored
