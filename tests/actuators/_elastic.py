"""Robots and programs of the tests of elastic transmissions."""

import equinox as eqx
import jax
import jax.numpy as jnp

import jaxdyn as jd
from jaxdyn.actuators import TransmissionSprings
from jaxdyn.dynamics import AbstractActuator, Action
from jaxdyn.simulation import State


def flywheel(inertia=0.8):
    """One body on a vertical axis, on which gravity exerts no torque."""
    body = jd.spatial.Inertia(1.0, jnp.zeros(3), inertia * jnp.eye(3))
    axis = jd.joints.Revolute([0, 0, 1])
    return jd.ModelBuilder().add_link("wheel", "world", axis, body, joint_name="joint").build()


@eqx.filter_jit
def state_matrix(system):
    """Jacobian of the rate of (q, v) at rest, for systems whose parts have no states."""
    n = system.model.nv

    def rate(y):
        derivative = system.rate(0.0, State(y[:n], y[n:], system.initial(y[:n], y[n:]).parts))
        return jnp.concatenate([derivative.q, derivative.v])

    return jax.jacfwd(rate)(jnp.zeros(2 * n))


class Metered(AbstractActuator):
    """A transmission that integrates the power that its springs neither transmit nor store, J."""

    springs: TransmissionSprings
    num_inputs: int = eqx.field(static=True, default=0)
    uses_acceleration: bool = eqx.field(static=True, default=False)

    def initial(self, model, q, v):
        return self.springs.initial(model, q, v), jnp.zeros(())

    def mount(self, model):
        return self.springs.mount(model)

    def act(self, model, t, q, v, a, state, inputs):
        springs, (inner, _) = self.springs, state
        action = springs.act(model, t, q, v, a, inner, inputs)
        energy = lambda q, z: springs.potential_energy(model, q, z)
        stored = jax.jvp(energy, (q, inner), (v, action.rate))[1]
        return Action(action.effort, rate=(action.rate, -action.effort @ v - stored))


@eqx.filter_jit
def undamped_modes(robot, springs):
    """Modes at the zero configuration of a robot with one elastic transmission, without gravity."""
    return jd.modes(springs.mount(robot), jnp.zeros(robot.nq), energies=(springs.potential_energy,), gravity=False)
