"""The contract of actuators of one joint: canonical form, inverse, and balance of power."""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._types import Array, Bool, Float, PyTree
from jaxdyn.actuators.contract._gear import add_armature, velocity_index
from jaxdyn.dynamics import AbstractActuator, Action
from jaxdyn.model import Model


class CanonicalForm(NamedTuple):
    """An actuator at one state, affine in its input u and in the joint effort tau, in joint coordinates (20.74).

        inertia a + tau = effort + effort_gain u,    zdot = rate + rate_effort tau + rate_gain u

    z `(k,)` are the states besides the joint coordinate and its velocity, flattened. With an inertia, the first
    equation is the velocity row of `xdot = C x + f tau + d u` times the inertia, `f_2 = -1 / inertia`.
    """

    #: inertia that moves with the joint coordinate, `n^2 J`, kg m^2 or kg; zero for an actuator without inertia
    inertia: Any
    #: effort at zero input, N m or N
    effort: Any
    #: effort per input
    effort_gain: Any
    #: rates of z at zero input and zero effort, `(k,)`
    rate: Any
    #: rates of z per effort, `(k,)`
    rate_effort: Any
    #: rates of z per input, `(k,)`
    rate_gain: Any


class JointMotion(NamedTuple):
    """Motion of one joint coordinate and the required effort, or the time derivatives of these quantities."""

    #: joint coordinate, rad or m
    q: Any
    #: velocity
    v: Any
    #: acceleration
    a: Any
    #: effort on the model on which the actuator is mounted, N m or N; None where it is not known
    effort: Any = None


class Requirement(NamedTuple):
    """Required inputs and state of an actuator for a given motion."""

    #: inputs `(num_inputs,)`, not limited
    inputs: Array
    #: state of the actuator; the motion determines the current or the pressure, other states are as given
    state: PyTree
    #: by name of a limit, the distance to it; negative beyond the limit
    margins: dict[str, Array]
    #: measurements that the motion determines, such as the current of a motor without inductance, or None
    measurements: dict[str, Array] | None = None


class PowerFlow(eqx.Module):
    """Balance of the power of an actuator, W:

    `supply = copper_loss + conversion_loss + friction_loss + gear_loss + stored + mechanical`
    """

    #: power from the supply, negative where the actuator returns it
    supply: Float[Array, "*batch"]
    #: heat of the currents in the windings, or of the flow through leaks
    copper_loss: Float[Array, "*batch"]
    #: further losses of the conversion, `(C_E - C_M) i w`
    conversion_loss: Float[Array, "*batch"]
    #: heat of friction before the gear
    friction_loss: Float[Array, "*batch"]
    #: heat of the gear
    gear_loss: Float[Array, "*batch"]
    #: rate of the energy of fields, springs and moving masses of the actuator
    stored: Float[Array, "*batch"]
    #: power that the joint receives, `tau v`
    mechanical: Float[Array, "*batch"]

    @property
    def heat(self) -> Float[Array, "*batch"]:
        """All losses."""
        return self.copper_loss + self.conversion_loss + self.friction_loss + self.gear_loss


class AbstractJointActuator(AbstractActuator):
    """Contract of an actuator of one joint with one velocity coordinate, whose equations can be inverted.

    Besides simulating the actuator (`AbstractActuator`), the library computes complete models (`complete_model`),
    inputs for a motion (`jaxdyn.simulation.required_inputs`), and loads, losses and status along a trajectory.

    An actuator acts on its joint by `act_on_joint` and has a `joint_inertia`. Neither may depend on the name `joint`: a
    `System` evaluates actuators of equal structure on several joints at once, with stacked leaves.
    """

    #: name of the joint
    joint: eqx.AbstractVar[str]

    @property
    @abc.abstractmethod
    def joint_inertia(self) -> Float[Array, ""] | None:
        """Inertia at the joint coordinate, kg m^2 or kg, which `mount` adds to the model; or None."""

    @abc.abstractmethod
    def act_on_joint(self, t, q, v, motion: JointMotion, state, inputs) -> tuple[Float[Array, ""], PyTree]:
        """The effort on the joint in its `motion`, on the mounted model, and the rate of the actuator's state.

        q and v are those of the robot, which control laws may depend on. `motion.effort` is None.
        """

    def coordinate(self, model: Model) -> tuple[int, int]:
        """Index of the joint coordinate in q, and in v; `ModelError` for a joint without exactly one coordinate."""
        return model.joint(self.joint).q.start, velocity_index(model, type(self).__name__, self.joint)

    def mount(self, model):
        if self.joint_inertia is None:
            return model
        return add_armature(model, self.coordinate(model)[1], self.joint_inertia)

    def act(self, model, t, q, v, a, state, inputs):
        k, index = self.coordinate(model)
        effort, rate = self.act_on_joint(t, q, v, JointMotion(q[k], v[index], a[index]), state, inputs)
        return Action(jnp.zeros_like(v).at[index].set(effort), rate=rate)

    @abc.abstractmethod
    def canonical_form(self, q, v, state) -> CanonicalForm:
        """The affine form at the joint coordinate q, its velocity and the actuator's state, without saturation.

        Raises `ModelError` if the actuator has no such form, for example because its gear has losses.
        """

    @abc.abstractmethod
    def requirement(self, motion: JointMotion, rate: JointMotion, state) -> Requirement:
        """Inputs and state in a motion with the time derivatives `rate`, from the other entries of `state`."""

    @abc.abstractmethod
    def power_flow(self, model: Model, t, q, v, a, state, inputs, input_rates=None) -> PowerFlow:
        """Balance of power, with the arguments of `act`; `input_rates` are the time derivatives of the inputs."""

    @abc.abstractmethod
    def holds(self, v) -> Bool[Array, ""]:
        """Whether a self-locking gear holds the joint at the velocity v of the joint."""


def inputs_of_form(actuator: AbstractJointActuator, motion: JointMotion, rate: JointMotion, state, is_mounted=True):
    """Input and state of an actuator with a canonical form of no or one state z, where the input acts on z alone.

    With a state z, `z = (inertia a + tau - effort(0)) / (effort(1) - effort(0))` and its time derivative give the input
    (20.74). Returns input and z, `(1,)` or None.
    """

    def balance(m: JointMotion, z):
        """`inertia a + tau - effort`, which the input has to provide, and the form."""
        form = actuator.canonical_form(m.q, m.v, z)
        return m.effort + (0 if is_mounted else form.inertia * m.a) - form.effort, form

    if state is None:
        missing, form = balance(motion, None)
        return missing / form.effort_gain, None

    def internal(m: JointMotion):
        zero = jnp.zeros_like(state)
        without, _ = balance(m, zero)
        return without / (without - balance(m, zero + 1)[0]) * jnp.ones_like(state)

    z, z_rate = eqx.filter_jvp(internal, (motion,), (rate,))
    form = actuator.canonical_form(motion.q, motion.v, z)
    effort = motion.effort - form.inertia * motion.a if is_mounted else motion.effort
    return ((z_rate - form.rate - form.rate_effort * effort) / form.rate_gain)[0], z
