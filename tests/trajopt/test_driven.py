"""Optimal control of driven robots: states of parts, inputs of actuators, limits, and derivatives."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.actuators import DcMotor, SynchronousMotor, ThermalModel, torque_range
from jaxdyn.simulation import Inputs, SampledInputs, State, System
from jaxdyn.trajopt import (
    Bounds,
    ModelPredictive,
    PredictiveInputs,
    Problem,
    Robot,
    SolveStatus,
    TrackingInputs,
    VectorField,
    actuator_limits,
    ilqr,
    partial,
    solve,
    tracking_law,
)

from .test_derivatives import check_derivatives

PENDULUM = jd.robots.pendulum()
JOINT = PENDULUM.joint_names[0]
#: C_M, R, L, n, J of a motor whose electrical time constant is 20 ms
NUMBERS = {"constant": 0.05, "resistance": 1.0, "inductance": 2e-2, "gear": 20.0, "rotor_inertia": 1e-3}
MOTOR = DcMotor(JOINT, **NUMBERS, voltage_limit=12.0, current_limit=15.0)
WARM = ThermalModel(winding_capacity=5.0, winding_resistance=8.0, housing_capacity=50.0, housing_resistance=4.0)


def _effort(t, x, u):
    return u @ u


def _driven_pendulum(t, x, u, p):
    """The equations of the pendulum with `MOTOR`, by hand."""
    q, v, i = x
    c, r, inductance, n, inertia = p
    a = (n * c * i - 9.81 * jnp.sin(q)) / (1 + n**2 * inertia)
    return jnp.stack([v, a, (u[0] - r * i - c * n * v) / inductance])


def _lift(dynamics, bounds=None):
    end = partial([0.8, 0.0, 0.0], [0, 1, 2])
    return Problem(dynamics, 0.8, start=jnp.zeros(3), end=end, running=_effort, bounds=bounds)


def test_names_limits_and_vectors_of_a_driven_robot():
    arm = jd.robots.double_pendulum()
    first, second = arm.joint_names
    warm = DcMotor(first, **NUMBERS, thermal=WARM, voltage_limit=12.0, current_limit=15.0)
    amperes = DcMotor(second, constant=0.05, resistance=1.0, input_quantity="current", current_limit=3.0)
    robot = Robot(System(arm, (warm, amperes)))
    assert robot.state_names[4:] == (f"current.{first}", f"temperature.{first}.0", f"temperature.{first}.1")
    assert robot.control_names == (f"voltage.{first}", f"current.{second}")
    x = robot.to_vector(State(jnp.array([0.1, 0.2]), jnp.array([0.3, 0.4])))
    np.testing.assert_allclose(x, [0.1, 0.2, 0.3, 0.4, 0.0, 25.0, 25.0])
    again = robot.to_state(x.at[4].set(2.0))
    assert again.parts[1] is None and again.parts[0].current == 2.0
    bounds = Bounds.of(robot)
    np.testing.assert_allclose(bounds.upper_state[4:], [15.0, np.inf, np.inf])
    np.testing.assert_allclose(bounds.lower_control, [-12.0, -3.0])
    closed = Robot(System(arm, (warm, amperes, Inputs(jnp.zeros(2)))))
    assert closed.control_names == arm.joint_names  # the voltages have a source; efforts are the controls


def test_rates_are_those_of_the_system_and_of_the_equations():
    robot = Robot(System(PENDULUM, (MOTOR,)))
    p = jnp.array([NUMBERS[k] for k in ("constant", "resistance", "inductance", "gear", "rotor_inertia")])
    x, u = jnp.array([0.4, -0.7, 3.0]), jnp.array([5.0])
    np.testing.assert_allclose(robot.rate(0.0, x, u), _driven_pendulum(0.0, x, u, p), rtol=1e-12)


@pytest.mark.parametrize("parts", [(SampledInputs(jnp.zeros(1), period=0.01), MOTOR)])
def test_sampled_parts_are_refused(parts):
    with pytest.raises(jd.ModelError, match="SampledInputs.*sample the robot.*continuous"):
        Robot(System(PENDULUM, parts))


def test_arguments_that_do_not_fit_a_driven_robot_are_refused():
    system = System(PENDULUM, (MOTOR,))
    with pytest.raises(jd.ModelError, match=f"voltage.{JOINT}"):
        Robot(system, actuated=(JOINT,))
    with pytest.raises(jd.ModelError, match=f"commands efforts.*current.{JOINT}"):
        ModelPredictive(Problem(system, 0.5, start=jnp.zeros(3), running=_effort), intervals=4)
    with pytest.raises(jd.ModelError, match="PredictiveInputs commands the inputs of actuators.*rod_joint"):
        PredictiveInputs(Problem(PENDULUM, 0.5, start=jnp.zeros(2), running=_effort), intervals=4)
    with pytest.raises(jd.ModelError, match=f"are the inputs.*voltage.{JOINT}.*Bounds.of"):
        actuator_limits(Robot(system), (MOTOR,))
    unlimited = DcMotor(JOINT, **NUMBERS)
    with pytest.raises(jd.ModelError, match="has no limits; give it a limit"):
        actuator_limits(Robot(PENDULUM), (unlimited,))
    with pytest.raises(jd.ModelError, match="whose effort is no control"):
        actuator_limits(
            Robot(jd.robots.double_pendulum(), actuated=jd.robots.double_pendulum().joint_names[:1]), (MOTOR,)
        )


def test_limits_of_actuators_meet_the_speed_torque_diagram():
    """Efforts at the ends of `torque_range` have a margin of zero, with friction, heat and three phases."""
    warm = DcMotor(JOINT, **NUMBERS, viscous=1e-3, thermal=WARM, voltage_limit=12.0, current_limit=8.0)
    phases = SynchronousMotor(JOINT, pole_pairs=4, flux_linkage=0.01, resistance=0.5, gear=10.0, voltage_limit=9.0)
    for motor in (warm, phases):
        limits = actuator_limits(Robot(System(PENDULUM, (motor,)).mounted_model), (motor,))
        for v in (-15.0, 0.0, 4.0, 11.0):
            for effort in torque_range(motor, v):
                rows = limits.rows(0.0, jnp.array([0.3, v]), effort[None])
                np.testing.assert_allclose(jnp.min(rows), 0, atol=1e-10)


def _reach(t, x, u):
    return 50.0 * (x[0] - 0.5) ** 2 + 0.1 * x[1] ** 2 + 1e-3 * u @ u


@pytest.mark.exhaustive
def test_predictive_control_in_volts_reaches_its_goal():
    """With the current as a state, a delay and limits of the amplifier; the plan predicts the simulated motion."""
    robot = Robot(System(PENDULUM, (MOTOR,)))
    problem = Problem(robot, 0.6, start=jnp.zeros(3), running=_reach, bounds=Bounds.of(robot))
    delay = 0.01
    control = PredictiveInputs(problem, intervals=15, delay=delay)
    source = SampledInputs(control, period=control.period, delay=delay)
    ts = jnp.linspace(0.0, 1.6, 41)
    run = jd.simulate(robot.system, jnp.zeros(1), jnp.zeros(1), ts, inputs=source, dt=2e-3)
    assert abs(run.q[-1, 0] - 0.5) < 0.05 and jnp.abs(run.v[-1, 0]) < 0.1
    _, plan = run.parts[-1].acting
    assert np.all(np.asarray(plan.status[5:]) <= SolveStatus.MAX_ITERATIONS)
    assert np.abs(np.asarray(plan.u)).max() <= 12.0 + 1e-9
    # two samples later the state is the one that the plan predicted
    k = 20
    now = int(np.argmin(np.abs(np.asarray(run.t) - float(plan.time[k]) - float(control.period))))
    x = np.concatenate([run.q[now], run.v[now], run.parts[0].current[now][None]])
    np.testing.assert_allclose(plan.x[k, 1], x, atol=2e-2)


@pytest.mark.exhaustive
def test_a_tracking_law_in_volts_rejects_disturbances():
    """Gains of `ilqr` on angle, velocity and current: from a wrong start the robot returns to the optimum."""
    robot = Robot(System(PENDULUM, (MOTOR,)))
    problem = Problem(robot, 1.0, start=jnp.zeros(3), running=_reach, bounds=Bounds.of(robot))
    found = ilqr(problem, intervals=100)
    law = tracking_law(PENDULUM, found)
    assert isinstance(law, TrackingInputs)
    run = lambda q, inputs: jd.simulate(robot.system, jnp.array([q]), jnp.zeros(1), found.t, inputs=inputs, dt=2e-3)
    nodes = jax.vmap(lambda t, x: law.command(PENDULUM, t, robot.to_state(x), None).inputs)(found.t, found.x)
    np.testing.assert_allclose(nodes[:-1], found.u[:-1], atol=1e-12)
    # between the nodes, 10 ms apart, the law follows straight lines
    np.testing.assert_allclose(run(0.0, law).q, found.x[:, :1], atol=5e-3)
    free = diffrax.LinearInterpolation(found.t, found.u)
    errors = [np.abs(run(0.1, inputs).q[-1, 0] - found.x[-1, 0]) for inputs in (law, free)]
    assert errors[0] < 0.2 * errors[1]


@pytest.mark.exhaustive
def test_voltages_of_least_cost_agree_with_equations_by_hand():
    """The optimum of a lift by a motor with inductance, and its derivatives with respect to the motor's numbers."""
    names = ("angle", "rate", "current"), ("voltage",)

    def run(dynamics):
        s = solve(_lift(dynamics), intervals=8, tolerance=1e-11)
        return s.cost, s.u, s.status

    @jax.jit
    def ours(p):
        c, r, inductance, n, inertia = p
        motor = DcMotor(JOINT, constant=c, resistance=r, inductance=inductance, gear=n, rotor_inertia=inertia)
        return run(Robot(System(PENDULUM, (motor,))))

    theirs = jax.jit(lambda p: run(VectorField(_driven_pendulum, *names, p)))
    p = jnp.array([NUMBERS[k] for k in ("constant", "resistance", "inductance", "gear", "rotor_inertia")])
    slope = jax.jit(jax.grad(lambda p: ours(p)[0]))(p)
    expected_slope = jax.jit(jax.grad(lambda p: theirs(p)[0]))(p)
    for a, b in zip(ours(p), theirs(p), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(slope, expected_slope, rtol=1e-7)


@pytest.mark.exhaustive
def test_a_voltage_limit_binds_and_the_simulated_motion_arrives():
    """With a tight limit of the amplifier the bound is active, and `simulate` under these voltages reaches the goal."""
    motor = DcMotor(JOINT, **NUMBERS, voltage_limit=8.2)
    system = System(PENDULUM, (motor,))
    found = solve(_lift(Robot(system), Bounds.of(Robot(system))), intervals=40)
    assert found.status == 0
    assert np.abs(found.u).max() == pytest.approx(8.2, abs=1e-5)
    assert np.sum(np.abs(found.u) > 8.19) > 5
    path = jd.simulate(
        system, jnp.zeros(1), jnp.zeros(1), found.t, inputs=diffrax.LinearInterpolation(found.t, found.u)
    )
    np.testing.assert_allclose(path.q[-1], [0.8], atol=1e-3)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "motor",
    [
        DcMotor(JOINT, **NUMBERS, thermal=WARM),
        DcMotor(JOINT, **NUMBERS, efficiency=0.8, reverse_efficiency=0.6, saturation_width=0.2, voltage_limit=1.0),
        DcMotor(JOINT, constant=0.05, resistance=1.0, gear=20.0, input_quantity="current", thermal=WARM),
    ],
    ids=["heat", "gear losses", "amperes and heat"],
)
def test_implicit_derivatives_of_a_driven_robot(motor):
    check_derivatives(Robot(System(PENDULUM, (motor,))))
