"""A stepping motor behind a gear."""

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float
from jaxdyn.actuators.contract import (
    AbstractJointActuator,
    CanonicalForm,
    PowerFlow,
    Requirement,
    infinite_limits,
    symmetric_limits,
)
from jaxdyn.dynamics import AbstractRatedActuator


class SteppingMotor(AbstractJointActuator, AbstractRatedActuator):
    """A stepping motor with micro-steps, whose input is the angle theta_ref of its magnetic field, rad at the rotor.

        J n a = -K_M sin(p (n q - theta_ref)) - B n v - M,    tau = n M

    The rotor follows the field as long as the load stays below the pull-out torque K_M; beyond it, the rotor slips by
    `2 pi / p`, four full steps of a two-phase motor. Phase currents are assumed to be constant. The equilibrium
    `n q = theta_ref` has the stiffness `p K_M` (`stiffness`).

    Arguments: `joint`, the name of a joint with one velocity coordinate, and the fields below, all leaves.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import SteppingMotor

    model = jd.robots.pendulum()
    motor = SteppingMotor(model.joint_names[0], holding_torque=1.0, pole_pairs=50, viscous=0.02, gear=20.0)
    system, ts = jd.System(model, (motor,)), jnp.linspace(0.0, 0.1, 3)
    run = jd.simulate(system, jnp.zeros(1), jnp.zeros(1), ts, inputs=jnp.array([0.01]))
    ```
    """

    joint: str = eqx.field(static=True)
    #: K_M, largest torque of the field, N m
    holding_torque: Float[Array, "*batch"] = eqx.field(converter=as_float, kw_only=True)
    #: p, periods of the torque per turn of the rotor; a quarter of the full steps per turn, 50 for 1.8 degrees
    pole_pairs: Float[Array, "*batch"] = eqx.field(converter=as_float, kw_only=True)
    #: B, N m s/rad at the rotor
    viscous: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0, kw_only=True)
    #: J, kg m^2
    rotor_inertia: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0, kw_only=True)
    #: n, turns of the motor per turn of the joint
    gear: Float[Array, "*batch"] = eqx.field(converter=as_float, default=1.0, kw_only=True)
    num_inputs: int = eqx.field(static=True, default=1, init=False)
    uses_acceleration: bool = eqx.field(static=True, default=False, init=False)

    @property
    def stiffness(self) -> Float[Array, "*batch"]:
        """Stiffness of the rotor about its equilibrium, `p K_M`, N m/rad."""
        return self.pole_pairs * self.holding_torque

    @property
    def joint_inertia(self):
        """The reflected inertia of the rotor, `n^2 J`."""
        return self.gear**2 * self.rotor_inertia

    def initial(self, model, q, v):
        return None

    def torque(self, q, v, reference) -> Float[Array, ""]:
        """Torque of field and bearings on the rotor, N m, at the joint coordinate q and its velocity."""
        return self._field_torque(q, reference) - self.viscous * self.gear * v

    def canonical_form(self, q, v, state):
        """The motor linearised about its equilibrium: `tau = n p K_M (theta_ref - n q) - n^2 B v - n^2 J a`."""
        gain = self.gear * self.stiffness
        effort = -gain * self.gear * q - self.gear**2 * self.viscous * v
        none = jnp.zeros(0, gain.dtype)
        return CanonicalForm(self.gear**2 * self.rotor_inertia, effort, gain, none, none, none)

    def act_on_joint(self, t, q, v, motion, state, inputs):
        return self.gear * self.torque(motion.q, motion.v, inputs[0]), None

    def requirement(self, motion, rate, state):
        """The angle of the field, NaN beyond the pull-out torque."""
        torque = motion.effort / self.gear + self.viscous * self.gear * motion.v
        share = torque / self.holding_torque
        is_reached = jnp.abs(share) <= 1
        lead = jnp.arcsin(jnp.where(is_reached, share, 0)) / self.pole_pairs
        angle = jnp.where(is_reached, self.gear * motion.q + lead, jnp.nan)
        return Requirement(angle[None], None, {"pull_out_torque": self.holding_torque - jnp.abs(torque)})

    def power_flow(self, model, t, q, v, a, state, inputs, input_rates=None):
        """Balance of power; `supply` is the power that moves the field, the losses of the windings not included.

        The energy of the field is `-K_M cos(p (n q - theta_ref)) / p`. Without `input_rates` the field rests.
        """
        k, index = self.coordinate(model)
        coordinate, speed = q[k], v[index]
        field = self._field_torque(coordinate, inputs[0])
        supply = field * (jnp.zeros_like(speed) if input_rates is None else input_rates[0])
        friction = self.viscous * (self.gear * speed) ** 2
        kinetic = self.gear**2 * self.rotor_inertia * a[index] * speed
        mechanical = field * self.gear * speed - friction - kinetic
        stored = kinetic + supply - field * self.gear * speed
        zero = jnp.zeros_like(supply)
        return PowerFlow(supply, zero, zero, friction, zero, stored, mechanical)

    def holds(self, v):
        return jnp.zeros((), bool)

    @property
    def input_names(self) -> tuple[str, ...]:
        """The angle of the field and the joint, such as "field_angle.elbow"."""
        return (f"field_angle.{self.joint}",)

    def input_limits(self):
        """None: the angle of the field is not limited."""
        return symmetric_limits(None, self.gear.dtype)

    def state_limits(self, state):
        return infinite_limits(state)

    def _field_torque(self, q, reference):
        return -self.holding_torque * jnp.sin(self.pole_pairs * (self.gear * q - reference))
