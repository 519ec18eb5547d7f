"""A direct-current motor behind a gear."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._errors import ModelError
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
    """A permanent-magnet motor that turns a joint through a gear: `L di/dt = u - R i - K n v`, `effort = n K i`.

    u is the voltage, n the gear ratio, v the joint's velocity and K both torque and voltage constant (Spong, Hutchinson
    and Vidyasagar 2006, section 6.1). The current is a state that starts at zero; without an inductance it is
    `(u - K n v) / R` at every instant. The rotor's inertia belongs to the robot: simulate `motor.mounted(model)`.
    """

    joint: str = eqx.field(static=True)
    #: V: a number, or a law `(t, q, v)` that gives one
    voltage: Any = eqx.field(converter=as_law)
    #: N m/A = V s/rad
    constant: Float[Array, "*batch"] = eqx.field(converter=_number)
    #: ohm
    resistance: Float[Array, "*batch"] = eqx.field(converter=_number)
    #: H, or None
    inductance: Float[Array, "*batch"] | None = eqx.field(converter=_number_or_none, default=None)
    #: turns of the motor per turn of the joint; negative where they turn against each other
    gear: Float[Array, "*batch"] = eqx.field(converter=_number, default=1.0)
    #: of the rotor about its axis, kg m^2
    rotor_inertia: Float[Array, "*batch"] = eqx.field(converter=_number, default=0.0)

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
        left = voltage - self.constant * self.gear * v[row]
        current = left / self.resistance if self.inductance is None else state
        effort = jnp.zeros_like(v).at[row].set(self.gear * self.constant * current)
        if self.inductance is None:
            return Action(effort)
        return Action(effort, rate=(left - self.resistance * current) / self.inductance)

    def _row(self, model: Model) -> int:
        view = model.joint(self.joint)
        if view.v.stop - view.v.start != 1:
            raise ModelError(
                f"DcMotor: joint {self.joint!r} has {view.v.stop - view.v.start} velocity coordinates; a motor turns a "
                "joint with one"
            )
        return view.v.start
