"""Cascaded loops of driven robots: continuous, sampled and delayed, with saturation, against equations by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from scipy.integrate import solve_ivp

import jaxdyn as jd
from jaxdyn.actuators import DcMotor
from jaxdyn.control import CascadedControl, PathReference, ServoControl, motor_currents, proportional_integral
from jaxdyn.simulation import Inputs, SampledInputs, State, System, linearise_system

PENDULUM = jd.robots.pendulum()
#: gravity 0 makes the driven pendulum linear
WHEEL = eqx.tree_at(lambda m: m.gravity, PENDULUM, jnp.zeros(3))
C, R, L, N, J = 0.05, 1.0, 2e-3, 20.0, 1e-3
INERTIA = 1 + N**2 * J
KP, KV, KI, KA, KC, KCI = 8.0, 25.0, 120.0, INERTIA / (N * C), 2.0, 900.0
MOTOR = DcMotor(PENDULUM.joint_names[0], constant=C, resistance=R, inductance=L, gear=N, rotor_inertia=J)
#: states (q, v, i), input u, without gravity
PLANT = np.array([[0, 1, 0], [0, 0, N * C / INERTIA], [0, -C * N / L, -R / L]])
GAINS = {"position_gain": KP, "velocity_gain": KV, "velocity_integral": KI, "acceleration_gain": KA}


def swing(t):
    return 0.5 * (1 - jnp.cos(4 * t))[None]


def swing_motion(t):
    return 0.5 * (1 - np.cos(4 * t)), 2 * np.sin(4 * t), 8 * np.cos(4 * t)


def cascade(reference, limit=None, voltage_limit=None, **options):
    servo = ServoControl(reference, **GAINS, limit=limit)
    return CascadedControl(servo, current_gain=KC, current_integral=KCI, voltage_limit=voltage_limit, **options)


def cascade_by_hand(x, target, limit=np.inf, voltage_limit=np.inf):
    """Voltage, and rates of the two integrals, at (q, v, i, z_v, z_i)."""
    q, v, i, z_v, z_i = x
    error = target[1] + KP * (target[0] - q) - v
    wanted = KA * target[2] + KV * error + KI * z_v
    i_r = np.clip(wanted, -limit, limit)
    drive = KC * (i_r - i) + KCI * z_i
    u = np.clip(drive, -voltage_limit, voltage_limit)
    return u, error - (wanted - i_r) / KV, i_r - i - (drive - u) / KC


def test_integral_of_a_limited_law_tends_to_the_limit_whatever_the_error():
    """In saturation zdot = -(ki z - limit) / kp, where feedforward and error have no part."""
    kp, ki, limit, z = jnp.array([2.0, 3.0, 5.0, 1.2])
    for error in (4.0, 40.0):
        output, rate = proportional_integral(kp, ki, jnp.array(error), z, 0.0, limit)
        assert output == limit and rate == pytest.approx(-(ki * z - limit) / kp)
    output, rate = proportional_integral(
        jnp.array(0.0), ki, jnp.array(4.0), z, 0.5, jnp.array(2.0)
    )  # without a proportional gain
    assert output == 2.0 and rate == 4.0


def test_closed_loop_of_a_cascade_has_the_matrix_of_its_equations():
    """About a held angle: states q, v, i and the integrals of the velocity and the current loop."""
    angle = 0.7
    current = 9.81 * np.sin(angle) / (N * C)
    system = System(PENDULUM, (MOTOR, Inputs(cascade(jnp.array([angle])))))
    start = system.initial(jnp.array([angle]), jnp.zeros(1))
    fill = lambda s: (s.parts[0].current, s.parts[1].servo, s.parts[1].integral)
    held = jnp.array(current), jnp.array([current / KI]), jnp.array([R * current / KCI])
    a, _ = linearise_system(system, eqx.tree_at(fill, start, held))
    outer = np.array([-KP, -1.0, 0.0, 0.0, 0.0])
    i_r = KV * outer + KI * np.array([0.0, 0.0, 0.0, 1.0, 0.0])
    inner = i_r - np.eye(5)[2]
    u = KC * inner + KCI * np.eye(5)[4]
    expected = np.zeros((5, 5))
    expected[:3, :3] = PLANT
    expected[1, 0] = -9.81 * np.cos(angle) / INERTIA
    expected[2] += u / L
    expected[3], expected[4] = outer, inner
    np.testing.assert_allclose(a, expected, rtol=1e-11, atol=1e-11)
    assert np.linalg.eigvals(expected).real.max() < -1


@pytest.mark.slow
def test_cascade_with_saturated_current_and_voltage_follows_its_equations():
    """A motion that needs more than the limits of current and voltage, against an integration by scipy."""
    limits = {"limit": 10.0, "voltage_limit": 9.0}
    ts = jnp.linspace(0.0, 1.5, 16)
    control = cascade(PathReference(swing), **limits)
    path = jd.simulate(System(WHEEL, (MOTOR,)), jnp.zeros(1), jnp.zeros(1), ts, inputs=control, rtol=1e-10, atol=1e-10)

    def rate(t, x):
        u, *integrals = cascade_by_hand(x, swing_motion(t), *limits.values())
        return np.r_[PLANT @ x[:3] + [0, 0, u / L], integrals]

    found = solve_ivp(rate, (0, 1.5), np.zeros(5), t_eval=ts, rtol=1e-10, atol=1e-12, method="LSODA", max_step=1e-3)
    x = np.stack([path.q[:, 0], path.v[:, 0], path.parts[0].current, path.parts[1].servo[:, 0]], 1)
    np.testing.assert_allclose(x, found.y[:4].T, atol=2e-6 * np.abs(found.y).max())
    voltages = [cascade_by_hand(x, swing_motion(t))[0] for t, x in zip(ts, found.y.T, strict=True)]
    assert np.abs(voltages).max() > 9.0


@pytest.mark.slow
def test_cascade_tracks_and_holds_against_gravity():
    """With feedforward the error of a smooth motion is small; the integrals remove that of the weight at rest."""
    ts = jnp.linspace(0.0, 4.0, 5)
    path = jd.simulate(
        System(PENDULUM, (MOTOR,)), jnp.zeros(1), jnp.zeros(1), ts, inputs=cascade(jnp.array([0.7]), 30.0, 40.0)
    )
    assert abs(path.q[-1, 0] - 0.7) < 1e-4
    assert abs(path.parts[0].current[-1] - 9.81 * np.sin(0.7) / (N * C)) < 1e-2


PERIOD, DELAY, RATIO = 1e-3, 4e-4, 4


def sampled_by_hand(steps):
    """States at the samples of a digital cascade: exact motion of the linear plant under held, delayed voltages."""

    def flow(x, u, h):
        whole = scipy.linalg.expm(h * np.block([[PLANT, np.array([[0], [0], [1 / L]])], [np.zeros((1, 4))]]))
        return whole[:3, :3] @ x + whole[:3, 3] * u

    x, z_v, z_i, u_old, held, rows = np.zeros(3), 0.0, 0.0, 0.0, 0.0, []
    for k in range(steps):
        rows.append(x)
        target = swing_motion(k * PERIOD)
        error = target[1] + KP * (target[0] - x[0]) - x[1]
        if k % RATIO == 0:
            held = KA * target[2] + KV * error + KI * z_v
            z_v += RATIO * PERIOD * error
        u = KC * (held - x[2]) + KCI * z_i
        z_i += PERIOD * (held - x[2])
        x = flow(flow(x, u_old, DELAY), u, PERIOD - DELAY)
        u_old = u
    return np.stack(rows)


@pytest.mark.slow
def test_current_loop_sampled_at_its_own_rate_is_the_exact_difference_equation():
    """A digital cascade: the current loop every ms, delayed by 0.4 ms, and the servo every 4 ms."""
    digital = SampledInputs(cascade(PathReference(swing), ratio=RATIO), period=PERIOD, delay=DELAY)
    steps = 60
    ts = jnp.arange(steps) * PERIOD
    path = jd.simulate(System(WHEEL, (MOTOR,)), jnp.zeros(1), jnp.zeros(1), ts, inputs=digital)
    x = np.stack([path.q[:, 0], path.v[:, 0], path.parts[0].current], 1)
    expected = sampled_by_hand(steps)
    np.testing.assert_allclose(x, expected, atol=1e-7 * np.abs(expected).max())
    assert np.abs(expected[:, 2]).max() > 1  # A


def test_what_a_cascade_cannot_measure_or_sample_is_refused():
    no_inductance = DcMotor(PENDULUM.joint_names[0], constant=C, resistance=R)
    state = State(jnp.zeros(1), jnp.zeros(1))
    with pytest.raises(jd.ModelError, match="inductance"):
        motor_currents(System(PENDULUM, (no_inductance,)).initial(state.q, state.v))
    two_rates = System(WHEEL, (MOTOR, Inputs(cascade(jnp.zeros(1), ratio=2))))
    with pytest.raises(jd.ModelError, match="SampledInputs"):
        two_rates.inputs(0.0, two_rates.initial(state.q, state.v))
    with pytest.raises(jd.ModelError, match="one velocity coordinate"):
        servo = ServoControl(jnp.zeros(1), position_gain=1.0, velocity_gain=1.0, joints=("base_joint",))
        servo.initial(jd.robots.quadruped(), jnp.zeros(19), jnp.zeros(18))


def test_servo_drives_the_named_joints_only():
    arm = jd.robots.double_pendulum()
    servo = ServoControl(jnp.array([0.5, -0.2]), position_gain=2.0, velocity_gain=3.0, joints=arm.joint_names[1:])
    state = State(jnp.array([0.1, 0.3]), jnp.array([1.0, 0.4]))
    memory = servo.initial(arm, state.q, state.v)
    command = servo.command(arm, 0.0, state, memory)
    np.testing.assert_allclose(command.inputs, [3.0 * (2.0 * (-0.2 - 0.3) - 0.4)])
    assert jax.tree.map(jnp.shape, command.rate) == memory.shape == (1,)
