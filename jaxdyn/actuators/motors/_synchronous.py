"""A three-phase synchronous motor with field orientation."""

from collections.abc import Callable
from typing import Literal

import equinox as eqx
from jax.typing import ArrayLike

from jaxdyn._numerics import as_float, as_function, optional_float
from jaxdyn._types import Array, Config, Float, Scalar, Velocity
from jaxdyn.actuators.contract import AbstractJointActuator
from jaxdyn.actuators.motors._motor import DcMotor
from jaxdyn.actuators.motors._rotor_friction import AbstractRotorFriction, Cogging
from jaxdyn.actuators.motors._thermal import ThermalModel
from jaxdyn.dynamics import AbstractMeasuredActuator, AbstractRatedActuator

#: fields that have the same meaning in both motors
_SHARED = (
    "voltage resistance inductance gear rotor_inertia viscous efficiency reverse_efficiency width voltage_limit "
    "current_limit saturation_width friction cogging thermal input_quantity"
).split()


class SynchronousMotor(AbstractJointActuator, AbstractRatedActuator, AbstractMeasuredActuator):
    """A permanent-magnet synchronous motor with field orientation, which turns a joint through a gear.

        u_q = R i_q + L_q di_q/dt + p psi n v,    J n a = 1.5 p psi i_q - B n v - M,    tau = n M

    An ideal controller holds the direct current at zero, so that the motor has the equations of a `DcMotor` with
    `C_M = 1.5 p psi` and `C_E = p psi` (`equivalent`), for the amplitudes u_q and i_q of voltages and currents. The
    heat of the three windings is `1.5 R i_q^2`, the electrical power `1.5 u_q i_q`. Gear losses, commands, saturation,
    friction, cogging and heat are those of `DcMotor`; the state is a `MotorState`.

    Arguments: `joint`, the name of a joint with one velocity coordinate, and the fields below, in SI units. Numbers are
    leaves.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import SynchronousMotor

    model = jd.robots.pendulum()
    motor = SynchronousMotor(model.joint_names[0], pole_pairs=7, flux_linkage=0.005, resistance=0.2, gear=50.0)
    system, ts = jd.System(model, (motor,)), jnp.linspace(0.0, 1.0, 11)
    run = jd.simulate(system, jnp.zeros(1), jnp.zeros(1), ts, inputs=jnp.array([6.0]))
    ```
    """

    joint: str = eqx.field(static=True)
    #: u_q, V: a number, a control law `(t, q, v)`, or None for an input of the system
    voltage: ArrayLike | Callable[[Scalar, Config, Velocity], Scalar] | None = eqx.field(
        converter=as_function, default=None
    )
    #: p
    pole_pairs: Float[Array, "*batch"] = eqx.field(converter=as_float, kw_only=True)
    #: psi, amplitude of the flux linkage of the magnets, V s
    flux_linkage: Float[Array, "*batch"] = eqx.field(converter=as_float, kw_only=True)
    #: R of one phase, ohm
    resistance: Float[Array, "*batch"] = eqx.field(converter=as_float, kw_only=True)
    #: L_q, H; None neglects it
    inductance: Float[Array, "*batch"] | None = eqx.field(converter=optional_float, default=None, kw_only=True)
    #: n, turns of the motor per turn of the joint
    gear: Float[Array, "*batch"] = eqx.field(converter=as_float, default=1.0, kw_only=True)
    #: J, kg m^2
    rotor_inertia: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0, kw_only=True)
    #: B, N m s/rad at the motor
    viscous: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0, kw_only=True)
    #: efficiencies of the gear in both directions of power, as in `DcMotor`; None for no losses
    efficiency: Float[Array, "*batch"] | None = eqx.field(converter=optional_float, default=None, kw_only=True)
    reverse_efficiency: Float[Array, "*batch"] | None = eqx.field(converter=optional_float, default=None, kw_only=True)
    #: joint velocity over which the gear losses change direction, rad/s or m/s
    width: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.01, kw_only=True)
    #: largest amplitude of the voltage, V; None for no limit
    voltage_limit: Float[Array, "*batch"] | None = eqx.field(converter=optional_float, default=None, kw_only=True)
    #: largest amplitude of the current, A; None for no limit
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

    def __check_init__(self):
        _ = self.equivalent  # raises for options that exclude each other

    @property
    def equivalent(self) -> DcMotor:
        """The direct-current motor with the same equations."""
        options = {name: getattr(self, name) for name in _SHARED}
        back_emf = self.pole_pairs * self.flux_linkage
        return DcMotor(joint=self.joint, constant=1.5 * back_emf, back_emf=back_emf, phase_factor=1.5, **options)

    @property
    def num_inputs(self) -> int:
        """1, or 0 where `voltage` is given."""
        return self.equivalent.num_inputs

    @property
    def input_names(self) -> tuple[str, ...]:
        return self.equivalent.input_names

    def input_limits(self):
        return self.equivalent.input_limits()

    def state_limits(self, state):
        return self.equivalent.state_limits(state)

    @property
    def uses_acceleration(self) -> bool:
        """Whether the gear has losses."""
        return self.equivalent.uses_acceleration

    @property
    def joint_inertia(self):
        """The reflected inertia of the rotor, `n^2 J`."""
        return self.equivalent.joint_inertia

    def initial(self, model, q, v):
        return self.equivalent.initial(model, q, v)

    def act_on_joint(self, t, q, v, motion, state, inputs):
        return self.equivalent.act_on_joint(t, q, v, motion, state, inputs)

    def canonical_form(self, q, v, state):
        return self.equivalent.canonical_form(q, v, state)

    def requirement(self, motion, rate, state):
        return self.equivalent.requirement(motion, rate, state)

    def power_flow(self, model, t, q, v, a, state, inputs, input_rates=None):
        return self.equivalent.power_flow(model, t, q, v, a, state, inputs, input_rates)

    @property
    def measurement_units(self) -> dict[str, str]:
        return self.equivalent.measurement_units

    def measurements(self, model, t, q, v, state, inputs):
        return self.equivalent.measurements(model, t, q, v, state, inputs)

    def state_measurements(self, state):
        return self.equivalent.state_measurements(state)

    def replace_measured(self, state, values):
        return self.equivalent.replace_measured(state, values)

    def holds(self, v):
        return self.equivalent.holds(v)
