"""Motors, drives, rotors and friction against closed forms."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.actuators import DcMotor, Drive, MotorState, add_rotor, drive, joint_friction
from jaxdyn.simulation import State, cubic_signal, simulate


def flywheel(inertia=0.01, damping=0.0):
    """One body on a vertical axis, on which gravity exerts no torque."""
    body = jd.spatial.Inertia(1.0, jnp.zeros(3), inertia * jnp.eye(3))
    return jd.ModelBuilder().add_link("wheel", "world", jd.joints.Revolute([0, 0, 1]), body, damping=damping).build()


def test_torque_of_a_motor_without_inductance():
    model = flywheel()
    motor = DcMotor(model.joint_names[0], 12.0, constant=0.05, resistance=2.0)
    effort = motor.act(model, 0.0, jnp.zeros(1), jnp.array([3.0]), jnp.zeros(1), None, None).effort
    assert abs(effort[0] - 0.29625) < 1e-12  # K (V - K w) / R


@pytest.mark.slow
def test_poles_and_gain_of_a_motor_with_inductance():
    model = flywheel(0.01, damping=0.1)
    motor = DcMotor(model.joint_names[0], 1.0, constant=0.01, resistance=1.0, inductance=0.5)
    system = jd.System(model, (motor,))

    def rate(y):
        derivative = system.rate(0.0, State(jnp.zeros(1), y[:1], (MotorState(y[1]),)))
        return jnp.concatenate([derivative.v, derivative.parts[0].current[None]])

    a = jax.jacfwd(rate)(jnp.zeros(2))
    np.testing.assert_allclose(np.sort(np.linalg.eigvals(a).real), [-9.99749922, -2.00250078], atol=1e-8)
    gain = -jnp.linalg.solve(a, rate(jnp.zeros(2)))[0]
    assert abs(gain - 0.0999000999) < 1e-10


def test_reflected_rotor_inertia_is_the_gear_ratio_squared_times_the_inertia():
    model = flywheel()
    motor = DcMotor(model.joint_names[0], 0.0, constant=0.1, resistance=1.0, gear=-50.0, rotor_inertia=2e-6)
    system = jd.System(model, (motor,))
    zero = jnp.zeros(1)
    added = jd.mass_matrix(system.mounted_model, zero) - jd.mass_matrix(model, zero)
    assert abs(added[0, 0] - 2500 * 2e-6) < 1e-15


@pytest.mark.slow
def test_rotor_on_the_parent_link_couples_the_joints():
    arm = jd.robots.double_pendulum()
    joint, gear, j = arm.joint_names[-1], -6.0, 3e-3
    axis = np.asarray(arm.joint(joint).joint.axis)
    assert abs(np.linalg.norm(axis) - 1) < 1e-12
    with_rotor = add_rotor(arm, joint, gear=gear, inertia=j)
    q = jnp.array([0.3, -0.7])
    added = jd.mass_matrix(with_rotor, q) - jd.mass_matrix(arm, q)
    np.testing.assert_allclose(added, j * np.array([[1, gear], [gear, gear**2]]), atol=1e-15)
    derivative = jax.grad(lambda g: jd.mass_matrix(add_rotor(arm, joint, gear=g, inertia=j), q)[0, 1])(gear)
    assert abs(derivative - j) < 1e-15


@pytest.mark.slow
def test_a_drive_delays_scales_and_offsets_its_command():
    model = flywheel()
    times = jnp.linspace(0, 1, 101)
    path = cubic_signal(times, jnp.sin(5 * times)[:, None]).path
    part = drive(model, gain=3.0, offset=0.2, delay=0.1, command=path)
    effort = part.act(model, 0.5, jnp.zeros(1), jnp.zeros(1), None).effort
    assert abs(effort[0] - (3 * np.sin(5 * 0.4) + 0.2)) < 1e-4  # interpolation error of the path
    assert abs(part.inverse(part.effort(jnp.array([0.7])))[0] - 0.7) < 1e-15

    def effort_at(delay):
        delayed = eqx.tree_at(lambda p: p.delay, part, jnp.full(1, delay))
        return delayed.act(model, 0.5037, jnp.zeros(1), jnp.zeros(1), None).effort[0]

    central = (effort_at(0.1 + 1e-6) - effort_at(0.1 - 1e-6)) / 2e-6
    assert abs(jax.grad(effort_at)(0.1) - central) < 1e-6 and abs(central) > 1


def test_control_law_with_a_delay_is_refused():
    """A known delay raises an error; a traced one gives NaN, which a simulation reports."""
    model, law = flywheel(), lambda t, q, v: -v
    with pytest.raises(jd.ModelError, match="a Drive delays a path over time"):
        drive(model, command=law, delay=0.1)
    part = drive(model, command=law, gain=2.0)
    act = jax.jit(lambda part: part.act(model, 0.0, jnp.zeros(1), jnp.array([3.0]), None).effort)
    assert act(part)[0] == -6.0
    assert np.isnan(act(eqx.tree_at(lambda p: p.delay, part, jnp.array([0.1]))))


def test_gear_losses_of_a_motor_match_the_reference():
    """Equations 20.62, 20.66 and 20.69, with the efficiency of the gear in both directions of power."""
    model, speed, gear = flywheel(), 0.5, -20.0
    numbers = {"constant": 0.05, "back_emf": 0.06, "resistance": 2.0, "gear": gear, "viscous": 1e-4}
    motor = DcMotor(model.joint_names[0], 12.0, **numbers, efficiency=0.8, reverse_efficiency=0.6, width=1e-3)
    act = lambda v: motor.act(model, 0.0, jnp.zeros(1), v, jnp.zeros(1), None, None).effort[0]
    effort = lambda v: float(act(jnp.array([v])))
    torque = lambda v: 0.05 * (12.0 - 0.06 * gear * v) / 2.0 - 1e-4 * gear * v
    assert abs(effort(-speed) - 0.8 * gear * torque(-speed)) < 1e-12  # in the direction of the torque
    assert abs(effort(speed) - gear * torque(speed) / 0.6) < 1e-12  # against the torque
    assert 0.8 < effort(0.0) / (gear * torque(0.0)) < 1 / 0.6
    slope = jax.grad(act)(jnp.zeros(1))
    assert np.isfinite(slope).all()


@pytest.mark.slow
def test_state_matrices_of_a_motor_match_the_reference():
    """`(theta', i)' = C (theta', i) + d u` (20.65), with the rotor as the only inertia."""
    inertia, C_M, C_E, R, L, B, gear = 2e-3, 0.05, 0.06, 2.0, 0.3, 4e-3, 5.0
    model = flywheel(1e-9)
    numbers = {"constant": C_M, "back_emf": C_E, "resistance": R, "inductance": L, "viscous": B, "gear": gear}
    motor = DcMotor(model.joint_names[0], 1.0, rotor_inertia=inertia, **numbers)
    system = jd.System(model, (motor,))

    def rate(y):  # y is (theta', i) at the motor, whose joint turns `gear` times as slowly
        derivative = system.rate(0.0, State(jnp.zeros(1), y[:1] / gear, (MotorState(y[1]),)))
        return jnp.concatenate([gear * derivative.v, derivative.parts[0].current[None]])

    at_rest, slope = jax.jit(lambda y: (rate(y), jax.jacfwd(rate)(y)))(jnp.zeros(2))
    np.testing.assert_allclose(slope, [[-B / inertia, C_M / inertia], [-C_E / L, -R / L]], rtol=1e-6)
    np.testing.assert_allclose(at_rest, [0.0, 1 / L], atol=1e-12)


def test_drive_without_command_is_refused():
    model = flywheel()
    with pytest.raises(jd.ModelError, match="without a command"):
        simulate(jd.System(model, (drive(model),)), jnp.zeros(1), jnp.zeros(1), jnp.array([0.0, 0.1]))


def test_friction_levels_match_the_parameters():
    model = jd.robots.pendulum()
    part = joint_friction(
        model,
        coulomb=0.5,
        viscous=0.2,
        stribeck=0.3,
        stribeck_velocity=0.1,
        load_coefficient=0.1,
        width=1e-3,
        load_width=1e-9,
    )
    part = eqx.tree_at(lambda p: p.coulomb_backward, part, jnp.array([0.8]))
    q = jnp.array([0.6])
    load = 0.1 * abs(float(jd.gravity_forces(model, q)[0]))
    for v, expected in (
        (2.0, -(0.5 + 0.4 + load)),
        (-2.0, 0.8 + 0.4 + load),
        (0.1, -(0.5 + 0.02 + 0.3 * np.exp(-1) + load)),
    ):
        assert abs(float(part.effort(model, q, jnp.array([v]))[0]) - expected) < 1e-8
    slope = jax.jacfwd(lambda v: part.effort(model, q, v))(jnp.zeros(1))
    assert np.isfinite(np.asarray(slope)).all() and slope[0, 0] < 0


@pytest.mark.slow
def test_friction_dissipates_energy_in_a_simulation():
    model = jd.robots.pendulum()
    system = jd.System(model, (joint_friction(model, coulomb=0.05, viscous=0.01, width=0.05),))
    run = simulate(system, jnp.array([1.0]), jnp.zeros(1), jnp.linspace(0, 1, 11))
    assert (jnp.diff(run.energy) < 1e-9).all() and run.energy[-1] < run.energy[0] - 1e-3


def test_wrong_shape_names_the_argument():
    model = jd.robots.double_pendulum()
    with pytest.raises(jd.ShapeError, match="coulomb has shape"):
        joint_friction(model, coulomb=jnp.zeros(3))
    assert isinstance(drive(model), Drive)
