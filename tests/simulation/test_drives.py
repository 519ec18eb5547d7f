"""Required inputs, loads, status and temperature limits of driven systems."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import jaxdyn as jd
from jaxdyn.actuators import DcMotor, ThermalModel, joint_friction
from jaxdyn.control import PathReference
from jaxdyn.dynamics import AbstractActuator, Action
from jaxdyn.simulation import (
    Inputs,
    SampledFeedback,
    TransmissionStatus,
    drive_loads,
    power_flows,
    required_inputs,
    tabulate_inputs,
    temperature_limit,
    transmission_status,
)
from tests.actuators._kinds import JOINT, PENDULUM, double_pendulum_motors

Q, V = jnp.array([0.3, -0.7]), jnp.array([0.5, -0.4])
A, JERK = jnp.array([1.0, -2.0]), jnp.array([0.5, 0.3])


@pytest.mark.slow
def test_required_inputs_match_the_reference():
    """The data D1 with two and three states of each motor."""
    arm, motors = double_pendulum_motors(voltage_limit=4.0, current_limit=2.0)
    need = required_inputs(jd.System(arm, motors), 0.0, Q, V, A, JERK)
    np.testing.assert_allclose(need.effort, [2.823300271711, -4.216406172573], atol=1e-12)
    currents = [x.current for x in need.parts]
    np.testing.assert_allclose(currents, [1.149433423904, -2.293803086286], atol=1e-12)
    np.testing.assert_allclose(need.inputs, [2.887802255726, -4.240029934719], atol=1e-12)
    rates = [(u - 1.2 * i - 0.06 * 50 * 0.5) / 2e-3 for u, i in [(need.inputs[0], currents[0])]]
    np.testing.assert_allclose(rates, [4.241073521], atol=1e-9)
    assert need.is_saturated.tolist() == [False, True]
    np.testing.assert_allclose([m["voltage"] for m in need.margins], [4 - 2.887802255726, 4 - 4.240029934719])
    np.testing.assert_allclose(need.margins[1]["current"], 2 - 2.293803086286)
    arm, motors = double_pendulum_motors(inductance=None)
    need = required_inputs(jd.System(arm, motors), 0.0, Q, V, A, JERK)
    np.testing.assert_allclose(need.inputs, [2.879320108684, -4.240704629430], atol=1e-12)
    np.testing.assert_allclose(need.missing, 0.0, atol=0)


@pytest.mark.slow
def test_required_inputs_with_gear_losses_and_friction_return_the_accelerations():
    """Of 1000 random robots: the system solves for accelerations under inputs that were computed without solving."""
    arm, motors = double_pendulum_motors(inductance=None, efficiency=(0.8, 0.75), reverse_efficiency=(0.6, 0.55))
    system = jd.System(arm, (motors[0], joint_friction(arm, coulomb=0.3, viscous=0.1, width=0.1), motors[1]))
    numbers, static = eqx.partition(system, eqx.is_inexact_array)
    theta, unravel = ravel_pytree(numbers)

    @jax.jit
    @jax.vmap
    def accelerations(factors, q, v, a):
        system = eqx.combine(unravel(theta * factors), static)
        need = required_inputs(system, 0.0, q, v, a, jnp.zeros(2))
        return system.rate(0.0, system.initial(q, v, parts=need.parts), need.inputs).v

    rng = np.random.default_rng(3)
    q, v, a = (jnp.asarray(rng.uniform(-2, 2, (1000, 2))) for _ in range(3))
    found = accelerations(jnp.asarray(rng.uniform(0.8, 1.2, (1000, theta.size))), q, v, 3 * a)
    np.testing.assert_allclose(found, 3 * a, atol=1e-9)


def test_effort_on_a_joint_without_actuator_is_reported():
    arm, motors = double_pendulum_motors(inductance=None)
    need = required_inputs(jd.System(arm, motors[:1]), 0.0, Q, V, A, JERK)
    np.testing.assert_allclose(need.missing, [0.0, -4.216406172573], atol=1e-12)
    np.testing.assert_allclose(need.inputs, [2.879320108684], atol=1e-12)


class _Own(AbstractActuator):
    num_inputs = 1
    uses_acceleration = False

    def initial(self, model, q, v):
        return None

    def mount(self, model):
        return model

    def act(self, model, t, q, v, a, state, inputs):
        return Action(inputs)


def test_systems_without_unique_inputs_are_refused():
    arm, motors = double_pendulum_motors(inductance=None)
    zero = jnp.zeros(1)
    with pytest.raises(jd.ModelError, match="the share of each is not unique"):
        required_inputs(jd.System(arm, (*motors, motors[0])), 0.0, Q, V, A, JERK)
    with pytest.raises(jd.ModelError, match="simulated but not inverted"):
        required_inputs(jd.System(PENDULUM, (_Own(),)), 0.0, zero, zero, zero, zero)
    with pytest.raises(jd.ModelError, match="SampledFeedback is sampled"):
        sampled = SampledFeedback(lambda t, q, v: -v, 0.1)
        required_inputs(jd.System(PENDULUM, (sampled,)), 0.0, zero, zero, zero, zero)
    with pytest.raises(jd.ModelError, match="expected FreeMotion"):
        held = jd.System(PENDULUM, motion=jd.constraints.ConstrainedMotion())
        required_inputs(held, 0.0, zero, zero, zero, zero)


def _swing(t):
    return jnp.stack([0.4 * jnp.sin(2 * t), 0.3 * jnp.cos(3 * t)])


@pytest.mark.slow
def test_simulation_under_tabulated_inputs_follows_the_reference():
    """Direct dynamics and back, with inductance, within the errors of interpolation and integration."""
    arm, motors = double_pendulum_motors()
    times = jnp.linspace(0.0, 0.5, 501)
    system = jd.System(arm, motors)
    table = tabulate_inputs(system, PathReference(_swing), times)
    parts = (*table.initial_parts(), None)
    run = jd.simulate(
        system, table.q[0], table.v[0], times[::250], inputs=table.path, parts=parts, rtol=1e-9, atol=1e-10
    )
    np.testing.assert_allclose(run.q, table.q[::250], atol=2e-6)
    np.testing.assert_allclose(run.v, table.v[::250], atol=2e-5)


@pytest.mark.slow
def test_loads_of_a_trajectory_balance_with_its_energy():
    """Supplied less regenerated energy is heat and stored energy, to the error of the quadrature."""
    motor = DcMotor(JOINT, constant=0.06, resistance=1.2, inductance=2e-3, gear=30.0, rotor_inertia=2e-4, viscous=1e-4)
    times = jnp.linspace(0.0, 1.0, 4001)
    law = lambda t, state: 15.0 * jnp.sin(8 * t) * jnp.ones(1)
    system = jd.System(PENDULUM, (motor, Inputs(law)))
    run = jd.simulate(system, jnp.zeros(1), jnp.zeros(1), times, rtol=1e-9, atol=1e-9, max_steps=10**5)
    loads = drive_loads(run)
    heat = jnp.trapezoid(loads.power.heat[:, 0], times)
    stored = run.energy[-1] - run.energy[0] + motor.inductance * run.parts[0].current[-1] ** 2 / 2
    net = loads.supplied_energy[0] - loads.regenerated_energy[0]
    assert abs(net - heat - stored) < 1e-5 * loads.supplied_energy[0]
    assert loads.regenerated_energy[0] > 0.1 and loads.copper_energy[0] < heat
    work = jd.kinetic_energy(PENDULUM, run.q[-1], run.v[-1]) + jd.potential_energy(PENDULUM, run.q[-1])
    work = work - jd.potential_energy(PENDULUM, run.q[0])
    assert abs(loads.mechanical_energy[0] - work) < 1e-5 * loads.supplied_energy[0]
    assert loads.peak_effort[0] == jnp.abs(loads.effort).max() and loads.joints == (JOINT,)
    rms = jnp.sqrt(jnp.trapezoid(loads.effort[:, 0] ** 2, times))
    np.testing.assert_allclose(loads.rms_effort[0], rms, rtol=1e-14)
    assert loads.peak_velocity[0] == jnp.abs(run.v).max() and loads.peak_supply_power[0] == loads.power.supply.max()
    assert loads.peak_mechanical_power[0] == jnp.abs(loads.power.mechanical).max()
    batch = jax.tree.map(lambda x: x[None], run)
    with pytest.raises(jd.ShapeError, match="drive_loads takes one trajectory"):
        drive_loads(batch)


def test_status_of_a_worm_gear():
    worm = {"constant": 0.05, "resistance": 1.0, "gear": 80.0, "efficiency": 0.45, "reverse_efficiency": 0.0}
    system = jd.System(PENDULUM, (DcMotor(JOINT, **worm), Inputs(jnp.zeros(1))))
    lifted = jd.System(PENDULUM, (DcMotor(JOINT, **worm), Inputs(jnp.array([24.0]))))

    @jax.jit
    def status(system, v):
        state = system.initial(jnp.ones(1), v)
        return transmission_status(system, 0.0, state)[0], power_flows(system, 0.0, state)[0].mechanical

    for robot, v, expected in (
        (system, 0.0, TransmissionStatus.LOCKED),
        (system, -0.5, TransmissionStatus.BACKDRIVEN),
        (lifted, 0.5, TransmissionStatus.DRIVING),
    ):
        found, power = status(robot, jnp.array([v]))
        assert found == expected
        assert jnp.isfinite(power)


@pytest.mark.slow
def test_temperature_limit_ends_a_simulation_at_the_closed_form_time():
    """A motor without back-EMF heats as `rise (1 - exp(-t / T))` if its resistance is constant."""
    thermal = ThermalModel(0.5, 4.0, resistance_coefficient=0.0)
    motor = DcMotor(JOINT, constant=0.05, back_emf=0.0, resistance=1.2, thermal=thermal)
    system = jd.System(PENDULUM, (motor,))
    events = (temperature_limit(system, JOINT, 40.0),)
    run = jd.simulate(system, jnp.zeros(1), jnp.zeros(1), jnp.array([0.0, 3.0]), inputs=jnp.array([6.0]), events=events)
    steady = 4.0 * 6.0**2 / 1.2
    assert run.status == jd.SimulationStatus.EVENT
    assert abs(run.events.time[0] + 2.0 * np.log(1 - 15.0 / steady)) < 1e-6
    with pytest.raises(jd.ModelError, match="without a temperature"):
        temperature_limit(jd.System(PENDULUM, (DcMotor(JOINT, constant=1.0, resistance=1.0),)), JOINT, 40.0)
