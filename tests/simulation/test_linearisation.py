"""Linearised systems: against equations by hand, `jaxdyn.control.linearise`, central differences and simulations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.flatten_util import ravel_pytree

import jaxdyn as jd
from jaxdyn import control as ct
from jaxdyn.actuators import DcMotor, ThermalModel
from jaxdyn.simulation import Inputs, SampledInputs, State, System, linearise_system, system_lqr

PENDULUM = jd.robots.pendulum()
JOINT = PENDULUM.joint_names[0]
C, R, L, N, J = 0.05, 1.0, 2e-2, 20.0, 1e-3
MOTOR = DcMotor(JOINT, constant=C, resistance=R, inductance=L, gear=N, rotor_inertia=J)


def matrices_by_hand(q):
    """A and B of the pendulum with `MOTOR` at rest."""
    inertia = 1 + N**2 * J
    a = [[0, 1, 0], [-9.81 * np.cos(q) / inertia, 0, N * C / inertia], [0, -C * N / L, -R / L]]
    return np.array(a), np.array([[0], [0], [1 / L]])


def hold(q):
    """The state and the voltage in which the motor holds the pendulum at an angle."""
    current = 9.81 * jnp.sin(q) / (N * C)
    parts = (jax.tree.map(lambda _: current, MOTOR.initial(PENDULUM, jnp.zeros(1), jnp.zeros(1))),)
    return State(jnp.array([q]), jnp.zeros(1), parts), jnp.array([R * current])


def test_linearised_motor_and_pendulum_have_the_matrices_of_the_equations():
    state, voltage = hold(0.7)
    matrices = linearise_system(System(PENDULUM, (MOTOR,)), state, voltage)
    for found, expected in zip(matrices, matrices_by_hand(0.7), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.exhaustive
def test_linearised_robot_without_actuators_is_that_of_control():
    """Also on a manifold, away from equilibria: a body with a ball joint that turns."""
    builder = jd.ModelBuilder()
    body = jd.spatial.Inertia(2.0, jnp.array([0.1, 0.2, -0.3]), jnp.diag(jnp.array([0.3, 0.4, 0.5])))
    builder.add_link("body", "world", jd.joints.Spherical(), body)
    model = builder.build()
    q = jd.integrate(model, jd.neutral(model), jnp.array([0.3, -0.8, 0.5]))
    v, tau = jnp.array([0.4, 1.0, -0.7]), jnp.array([1.0, -2.0, 0.5])
    found = linearise_system(model, State(q, v), tau)
    for a, b in zip(found, ct.linearise(model, q, v, tau), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11)


def _brake(t, state):
    return -3.0 * state.v - 40.0 * (state.q - 0.7)


def test_closed_loop_of_the_controller_of_a_system():
    """Without given inputs A is that of the closed loop; B is the effect of voltages in addition."""
    state, _ = hold(0.7)
    system = System(PENDULUM, (MOTOR, Inputs(_brake)))
    a, b = linearise_system(system, State(state.q, state.v, (*state.parts, None)))
    open_a, open_b = matrices_by_hand(0.7)
    np.testing.assert_allclose(a, open_a + open_b @ [[-40.0, -3.0, 0.0]], atol=1e-11)
    np.testing.assert_allclose(b, open_b, atol=1e-12)


@pytest.mark.exhaustive
def test_matrices_of_a_system_with_heat_and_gear_losses_are_central_differences():
    arm = jd.robots.double_pendulum(damping=(0.3, 0.2))
    warm = ThermalModel(winding_capacity=5.0, winding_resistance=8.0, housing_capacity=50.0, housing_resistance=4.0)
    numbers = {"constant": C, "resistance": R, "gear": N, "rotor_inertia": J}
    motors = (
        DcMotor(arm.joint_names[0], **numbers, inductance=L, thermal=warm),
        DcMotor(arm.joint_names[1], **numbers, efficiency=0.8, reverse_efficiency=0.6),
    )
    system = System(arm, motors)
    start = system.initial(jnp.array([0.3, -0.7]), jnp.array([0.5, -0.4]))
    x, build = ravel_pytree(start)
    rate = jax.jit(lambda x, u: ravel_pytree(system.rate(0.0, build(x), u))[0])
    x, u, h = x.at[4].set(2.0), jnp.array([12.0, -6.0]), 1e-5
    a, b = linearise_system(system, build(x), u)
    steps = lambda f, z: np.stack([(f(z + h * e) - f(z - h * e)) / (2 * h) for e in np.eye(z.size)], 1)
    np.testing.assert_allclose(a, steps(lambda x: rate(x, u), x), rtol=1e-7, atol=1e-6)
    np.testing.assert_allclose(b, steps(lambda u: rate(x, u), u), rtol=1e-7, atol=1e-6)


def test_what_cannot_be_linearised_or_regulated_is_refused():
    state = State(jnp.zeros(1), jnp.zeros(1))
    sampled = System(PENDULUM, (MOTOR, SampledInputs(jnp.zeros(1), period=0.01)))
    with pytest.raises(jd.ModelError, match="SampledInputs.*a linearisation needs"):
        linearise_system(sampled, state, jnp.zeros(1))
    with pytest.raises(jd.ModelError, match="jaxdyn.control.lqr"):
        system_lqr(System(PENDULUM), state, jnp.zeros(1), jnp.eye(2), jnp.eye(1))
    with pytest.raises(jd.ShapeError, match=r"state_cost.*\(3, 3\)"):
        system_lqr(System(PENDULUM, (MOTOR,)), state, jnp.zeros(1), jnp.eye(2), jnp.eye(1))


@pytest.mark.slow
def test_regulator_in_volts_has_the_gain_of_scipy_and_its_cost():
    """A motor with inductance balances the pendulum: gain by scipy, and the simulated cost is x^T P x."""
    upright, cost = State(jnp.array([jnp.pi]), jnp.zeros(1)), np.diag([10.0, 1.0, 0.1])
    result = system_lqr(System(PENDULUM, (MOTOR,)), upright, jnp.zeros(1), jnp.asarray(cost), 0.5 * jnp.eye(1))
    a, b = matrices_by_hand(np.pi)
    p = scipy.linalg.solve_continuous_are(a, b, cost, 0.5 * np.eye(1))
    np.testing.assert_allclose(result.riccati.gain, b.T @ p / 0.5, rtol=1e-8)
    ts = jnp.linspace(0.0, 6.0, 3001)
    start = 1e-3  # rad, where the pendulum is linear
    system = System(PENDULUM, (MOTOR,))
    path = jd.simulate(system, upright.q + start, jnp.zeros(1), ts, inputs=result.controller)
    u = jax.vmap(lambda t, q, v, parts: path.system.inputs(t, State(q, v, parts)))(path.t, path.q, path.v, path.parts)
    x = jnp.stack([path.q[:, 0] - jnp.pi, path.v[:, 0], path.parts[0].current], 1)
    spent = jnp.trapezoid(jnp.einsum("ti,ij,tj->t", x, cost, x) + 0.5 * u[:, 0] ** 2, ts)
    np.testing.assert_allclose(spent, start**2 * p[0, 0], rtol=1e-4)
