"""A direct-current motor behind a gear."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_float, as_function, smooth_sign
from jaxdyn._types import Array, Config, Float, Scalar, Velocity
from jaxdyn.dynamics import AbstractPart, Action
from jaxdyn.model import Model


def _number_or_none(x):
    return None if x is None else as_float(x)


class DcMotor(AbstractPart):
    """A permanent-magnet motor that turns a joint through a gear: `L di/dt = u - R i - C_E n v`, `effort = n M`.

        M = C_M i - B n v

    u is the voltage, i the current, n the gear ratio, v the joint velocity (M. Vukobratovic and V. Potkonjak, "Robot
    Dynamics", in a CRC handbook, 2002, equations 20.62 to 20.69; Spong, Hutchinson and Vidyasagar 2006, section 6.1).
    The current is a state with initial value zero; without an inductance it is `(u - C_E n v) / R` (20.66).

    Gear losses: where the joint moves in the direction of the torque, the effort is `n M efficiency`; where it moves
    against the torque, `n M / reverse_efficiency`. The transition has the velocity `width`.

    The rotor inertia is part of the robot: simulate `motor.mounted(model)`, whose armature includes it. On the
    original model the rotor has no inertia.

    Arguments: `joint`, the name of a joint with one velocity coordinate (another joint raises `ModelError`), and the
    fields below, each a number in SI units. Fields are leaves, so that motors can be differentiated and identified.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import DcMotor

    model = jd.robots.pendulum()
    joint = model.joint_names[0]
    motor = DcMotor(joint, voltage=12.0, constant=0.05, resistance=1.2, gear=50.0, rotor_inertia=1e-5)
    q, v = jnp.array([0.1]), jnp.array([0.0])
    acceleration = jd.forward_dynamics(motor.mounted(model), q, v, motor.act(model, 0.0, q, v, None).effort)
    ```
    """

    #: name of the joint that the motor drives
    joint: str = eqx.field(static=True)
    #: u, V: a number or a control law `(t, q, v)`
    voltage: ArrayLike | Callable[[Scalar, Config, Velocity], Scalar] = eqx.field(converter=as_function)
    #: torque constant C_M, N m/A
    constant: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: R, ohm
    resistance: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: L, H; None neglects it
    inductance: Float[Array, "*batch"] | None = eqx.field(converter=_number_or_none, default=None)
    #: n, turns of the motor per turn of the joint; negative if they turn in opposite directions
    gear: Float[Array, "*batch"] = eqx.field(converter=as_float, default=1.0)
    #: J, of the rotor about its axis, kg m^2
    rotor_inertia: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0)
    #: back-EMF constant C_E, V s/rad; None takes `constant`, which holds without further losses
    back_emf: Float[Array, "*batch"] | None = eqx.field(converter=_number_or_none, default=None)
    #: viscous friction B of the rotor bearings, N m s/rad at the motor
    viscous: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0)
    #: efficiencies of the gear with and against the direction of the torque, dimensionless
    efficiency: Float[Array, "*batch"] = eqx.field(converter=as_float, default=1.0)
    reverse_efficiency: Float[Array, "*batch"] = eqx.field(converter=as_float, default=1.0)
    #: joint velocity over which the gear losses change direction, rad/s or m/s
    width: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.01)

    def mounted(self, model: Model) -> Model:
        """The model with the reflected rotor inertia, `armature + n^2 J`, at the joint."""
        index = self._velocity_index(model)
        armature = model.properties.armature
        return eqx.tree_at(
            lambda m: m.properties.armature, model, armature.at[index].add(self.gear**2 * self.rotor_inertia)
        )

    def initial(self, model, q, v):
        return None if self.inductance is None else jnp.zeros((), v.dtype)

    def act(self, model, t, q, v, state):
        index = self._velocity_index(model)
        voltage = self.voltage(t, q, v) if callable(self.voltage) else self.voltage
        rotor_velocity = self.gear * v[index]
        drop = voltage - (self.constant if self.back_emf is None else self.back_emf) * rotor_velocity
        current = drop / self.resistance if self.inductance is None else state
        torque = self.gear * (self.constant * current - self.viscous * rotor_velocity)
        effort = jnp.zeros_like(v).at[index].set(self._apply_gear_losses(torque, v[index]))
        if self.inductance is None:
            return Action(effort)
        return Action(effort, rate=(drop - self.resistance * current) / self.inductance)

    def _apply_gear_losses(self, effort, v):
        """Effort behind the gear losses (20.69 with the coefficients after it)."""
        forward = (1 + smooth_sign(v, self.width)) / 2
        driving = jnp.where(effort >= 0, forward, 1 - forward)
        return effort * (driving * self.efficiency + (1 - driving) / self.reverse_efficiency)

    def _velocity_index(self, model: Model) -> int:
        view = model.joint(self.joint)
        if view.v.stop - view.v.start != 1:
            raise ModelError(
                f"DcMotor: joint {self.joint!r} has {view.v.stop - view.v.start} velocity coordinates; a motor drives "
                "a joint with one"
            )
        return view.v.start
