"""Complete models of driven robots against reference numbers, the equations of the source, and simulated systems."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.actuators import (
    LinearActuator,
    MotorState,
    complete_model,
    driven_matrices,
    stack_states,
)
from jaxdyn.simulation import State
from tests.actuators._kinds import D1, double_pendulum_motors

Q, V, U = jnp.array([0.3, -0.7]), jnp.array([0.5, -0.4]), jnp.array([12.0, -6.0])


def test_driven_matrices_match_the_reference():
    """Equations 20.71 to 20.73 for the double pendulum with the data D1."""
    arm, motors = double_pendulum_motors(inductance=None, viscous=0.0)
    H, h, D = driven_matrices(arm, motors, Q, V)
    np.testing.assert_allclose(H, [[5.029684374569, 1.764842187288], [1.764842187288, 1.16]], atol=1e-12)
    np.testing.assert_allclose(h, [5.573300271711, -5.047915026524], atol=1e-12)
    np.testing.assert_allclose(D, np.diag([2.5, 4 / 3]), atol=1e-12)
    np.testing.assert_allclose(np.linalg.solve(H, D @ U - h), [12.333758370593, -21.309674201441], atol=1e-11)
    arm, motors = double_pendulum_motors(inductance=None)
    H, h, D = driven_matrices(arm, motors, Q, V)
    np.testing.assert_allclose(np.linalg.solve(H, D @ U - h), [12.247221541256, -21.133877781469], atol=1e-11)


def _source_matrices(arm):
    """C, F, D and T of the source in joint coordinates, and H and h (section 20.5)."""
    C, F, D, T = np.zeros((6, 6)), np.zeros((6, 2)), np.zeros((6, 2)), np.zeros((2, 6))
    for k in range(2):
        N, J, K, R, L, B = (x[k] for x in D1.values())
        s = slice(3 * k, 3 * k + 3)
        C[s, s] = [[0, 1, 0], [0, -B / J, K / (J * N)], [0, -K * N / L, -R / L]]
        F[3 * k + 1, k], D[3 * k + 2, k], T[k, 3 * k + 1] = -1 / (J * N**2), 1 / L, 1
    return C, F, D, T, np.asarray(jd.mass_matrix(arm, Q)), np.asarray(jd.bias_forces(arm, Q, V))


def test_complete_model_matches_source_reference_and_system():
    """Equations 20.80 to 20.82, with the factor F that is missing in the print."""
    arm, motors = double_pendulum_motors()
    states = (MotorState(jnp.array(2.0)), MotorState(jnp.array(-1.0)))
    x = stack_states(arm, motors, Q, V, states)
    found = complete_model(arm, motors, x)
    C, F, D, T, H, h = _source_matrices(arm)
    solve = np.linalg.solve(np.eye(2) - H @ T @ F, np.c_[H @ T @ C @ x + h, H @ T @ D])
    scale = np.abs(D).max()
    np.testing.assert_allclose(found.C, C @ x + F @ solve[:, 0], rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(found.D, D + F @ solve[:, 1:], atol=1e-13 * scale)
    xdot = found.C + found.D @ U
    np.testing.assert_allclose(xdot[jnp.array([1, 4])], [0.409234141882, 1.129495415333], atol=1e-11)
    np.testing.assert_allclose(xdot[jnp.array([2, 5])], [4050, -2466.666666667], atol=1e-8)
    tau = solve[:, 0] + solve[:, 1:] @ U
    np.testing.assert_allclose(tau, [5.670382929059, -2.129519266453], atol=1e-11)
    rate = jd.System(arm, motors).rate(0.0, State(Q, V, states), U)
    simulated = [rate.v[0], rate.parts[0].current, rate.v[1], rate.parts[1].current]
    np.testing.assert_allclose(xdot[jnp.array([1, 2, 4, 5])], simulated, rtol=1e-12)


def test_linear_actuators_with_the_matrices_of_a_motor_are_the_motor():
    """`f` and `d` as vectors, which lets the rates depend on the transmitted effort, and as numbers."""
    arm, motors = double_pendulum_motors()
    actuators = []
    for k, name in enumerate(arm.joint_names):
        N, J, K, R, L, B = (x[k] for x in D1.values())
        C = jnp.array([[0, 1, 0], [0, -B / J, K / J], [0, -K / L, -R / L]])
        f, d = ([0, -1 / J, 0.0], [0, 0, 1 / L]) if k else (-1 / J, 1 / L)
        actuators.append(LinearActuator(name, C, f, d, gear=N))
    rates = []
    for parts, states in (
        (motors, (MotorState(jnp.array(2.0)), MotorState(jnp.array(-1.0)))),
        (tuple(actuators), (jnp.array([2.0]), jnp.array([-1.0]))),
    ):
        rate = jd.System(arm, parts).rate(0.0, State(Q, V, states), U)
        rates.append(np.concatenate([rate.v, *(jnp.ravel(x) for x in jax.tree.leaves(rate.parts))]))
        model = complete_model(arm, parts, stack_states(arm, parts, Q, V, states))
        np.testing.assert_allclose((model.C + model.D @ U)[jnp.array([1, 4, 2, 5])], rates[-1], rtol=1e-11)
    np.testing.assert_allclose(rates[1], rates[0], rtol=1e-11)


def test_a_rate_that_depends_on_the_effort_matches_the_complete_model():
    arm = jd.robots.double_pendulum()
    C = jnp.array([[0, 1, 0], [-0.3, -0.5, 30.0], [0, -3.0, -60.0]])
    parts = tuple(LinearActuator(name, C, [0, -4.0, 0.2], [0, 0.1, 15.0], gear=3.0) for name in arm.joint_names)
    states = (jnp.array([2.0]), jnp.array([-1.0]))
    rate = jd.System(arm, parts).rate(0.0, State(Q, V, states), U)
    model = complete_model(arm, parts, stack_states(arm, parts, Q, V, states))
    simulated = [rate.v[0], rate.parts[0][0], rate.v[1], rate.parts[1][0]]
    np.testing.assert_allclose((model.C + model.D @ U)[jnp.array([1, 2, 4, 5])], simulated, rtol=1e-12)
    without = [eqx.tree_at(lambda p: p.f, part, jnp.array([0, -4.0, 0.0])) for part in parts]
    other = complete_model(arm, without, stack_states(arm, without, Q, V, states))
    assert np.abs(other.C - model.C)[2] > 1e-3


@pytest.mark.parametrize("change", [{"efficiency": 0.8}, {"input_quantity": "current", "inductance": None}])
def test_actuators_without_canonical_form_are_refused(change):
    arm, motors = double_pendulum_motors(**change)
    with pytest.raises(jd.ModelError, match="has no canonical form"):
        complete_model(arm, motors, stack_states(arm, motors, Q, V))


def test_wrong_sets_of_actuators_are_refused():
    arm, motors = double_pendulum_motors()
    with pytest.raises(jd.ModelError, match="one actuator for each of the 2 coordinates"):
        complete_model(arm, motors[:1], jnp.zeros(3))
    with pytest.raises(jd.ModelError, match="at most one actuator for each joint"):
        driven_matrices(arm, (motors[0], motors[0]), Q, V)
    with pytest.raises(jd.ModelError, match="has 1 states"):
        driven_matrices(arm, motors, Q, V)
    with pytest.raises(jd.ShapeError, match="state x of the complete model"):
        complete_model(arm, motors, jnp.zeros(5))
    with pytest.raises(jd.ModelError, match="first row of xdot"):
        LinearActuator("upper", jnp.eye(2), -1.0, 1.0)
    with pytest.raises(jd.ModelError, match="take LinearEffort"):
        LinearActuator("upper", jnp.array([[0.0, 1], [0, 0]]), 1.0, 1.0)
    with pytest.raises(jd.ShapeError, match="a LinearActuator has C"):
        LinearActuator("upper", jnp.zeros((2, 3)), -1.0, 1.0)


@pytest.mark.exhaustive
def test_model_without_inductance_is_the_limit_of_small_inductances():
    """The slow manifold of the current is left by a distance of the order of L."""
    arm, reduced = double_pendulum_motors(inductance=None)
    H, h, D = driven_matrices(arm, reduced, Q, V)
    limit = jnp.linalg.solve(H, D @ U - h)
    errors = []
    for L in (1e-5, 1e-6):
        motors = tuple(
            eqx.tree_at(lambda m: m.inductance, m, jnp.array(L), is_leaf=lambda x: x is None) for m in reduced
        )
        # the current on the slow manifold to first order: L di/dt = - d/dt (u - C_E n v - R i)
        i = jnp.stack([(u - m.constant * m.gear * v) / m.resistance for m, u, v in zip(reduced, U, V, strict=True)])
        i = i + jnp.stack([L * m.constant * m.gear * a / m.resistance**2 for m, a in zip(reduced, limit, strict=True)])
        model = complete_model(arm, motors, stack_states(arm, motors, Q, V, tuple(MotorState(x) for x in i)))
        errors.append(np.abs((model.C + model.D @ U)[jnp.array([1, 4])] - limit).max())
    assert errors[1] < 0.11 * errors[0] and errors[1] < 1e-2
