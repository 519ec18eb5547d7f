"""A direct-current motor behind a gear."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._numerics import smooth_sign
from jaxdyn._types import Array, Float
from jaxdyn.actuators._drive import as_law
from jaxdyn.dynamics import AbstractPart, Action
from jaxdyn.model import Model


def _number(x):
    x = jnp.asarray(x)
    return x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(jnp.result_type(float))


def _number_or_none(x):
    return None if x is None else _number(x)


class DcMotor(AbstractPart):
    """A permanent-magnet motor that turns a joint through a gear: `L di/dt = u - R i - C_E n v`, `effort = n M`.

        M = C_M i - B n v

    u is the voltage, n the gear ratio, v the joint's velocity (M. Vukobratovic and V. Potkonjak, "Robot Dynamics", in a
    CRC handbook, 2002, equations 20.62 to 20.69; Spong, Hutchinson and Vidyasagar 2006, section 6.1). The current is a
    state that starts at zero; without an inductance it is `(u - C_E n v) / R` at every instant (20.66).

    Losses of the gear: where the joint moves as the motor drives, the effort is `n M efficiency`; where it moves
    against it, `n M / reverse_efficiency`. In between it changes over the velocity `width`.

    The rotor's inertia belongs to the robot, whose accelerations it slows: simulate `motor.mounted(model)`, on which
    the effort here acts. On the model as it was, the rotor has no inertia at all.
    """

    joint: str = eqx.field(static=True)
    #: V: a number, or a law `(t, q, v)` that gives one
    voltage: Any = eqx.field(converter=as_law)
    #: C_M, N m/A
    constant: Float[Array, "*batch"] = eqx.field(converter=_number)
    #: ohm
    resistance: Float[Array, "*batch"] = eqx.field(converter=_number)
    #: H, or None
    inductance: Float[Array, "*batch"] | None = eqx.field(converter=_number_or_none, default=None)
    #: turns of the motor per turn of the joint; negative where they turn against each other
    gear: Float[Array, "*batch"] = eqx.field(converter=_number, default=1.0)
    #: of the rotor about its axis, kg m^2
    rotor_inertia: Float[Array, "*batch"] = eqx.field(converter=_number, default=0.0)
    #: C_E, V s/rad; None where it is `constant`, as of every motor without further losses
    back_emf: Float[Array, "*batch"] | None = eqx.field(converter=_number_or_none, default=None)
    #: B, of the rotor's bearings, N m s/rad at the motor
    viscous: Float[Array, "*batch"] = eqx.field(converter=_number, default=0.0)
    #: of the gear, in the direction of the drive and against it; no unit
    efficiency: Float[Array, "*batch"] = eqx.field(converter=_number, default=1.0)
    reverse_efficiency: Float[Array, "*batch"] = eqx.field(converter=_number, default=1.0)
    #: velocity of the joint over which the losses of the gear change their direction, rad/s or m/s
    width: Float[Array, "*batch"] = eqx.field(converter=_number, default=0.01)

    def mounted(self, model: Model) -> Model:
        """The model with the rotor's inertia seen at the joint: `armature + n^2 J`."""
        row = self._row(model)
        armature = model.properties.armature
        return eqx.tree_at(
            lambda m: m.properties.armature, model, armature.at[row].add(self.gear**2 * self.rotor_inertia)
        )

    def initial(self, model, q, v):
        return None if self.inductance is None else jnp.zeros((), v.dtype)

    def act(self, model, t, q, v, state):
        row = self._row(model)
        voltage = self.voltage(t, q, v) if callable(self.voltage) else self.voltage
        turning = self.gear * v[row]
        left = voltage - (self.constant if self.back_emf is None else self.back_emf) * turning
        current = left / self.resistance if self.inductance is None else state
        torque = self.gear * (self.constant * current - self.viscous * turning)
        effort = jnp.zeros_like(v).at[row].set(self._through_gear(torque, v[row]))
        if self.inductance is None:
            return Action(effort)
        return Action(effort, rate=(left - self.resistance * current) / self.inductance)

    def _through_gear(self, effort, v):
        """What the gear leaves of an effort (20.69 with the coefficients after it)."""
        ahead = (1 + smooth_sign(v, self.width)) / 2
        along = jnp.where(effort >= 0, ahead, 1 - ahead)
        return effort * (along * self.efficiency + (1 - along) / self.reverse_efficiency)

    def _row(self, model: Model) -> int:
        view = model.joint(self.joint)
        if view.v.stop - view.v.start != 1:
            raise ModelError(
                f"DcMotor: joint {self.joint!r} has {view.v.stop - view.v.start} velocity coordinates; a motor turns a "
                "joint with one"
            )
        return view.v.start
