"""The drive of a pendulum from its reference to its loads: inputs, temperature limit, balance of energy, figure."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.actuators import DcMotor, ThermalModel
from jaxdyn.control import PathReference
from jaxdyn.simulation import drive_loads, tabulate_inputs, temperature_limit
from jaxdyn.viz import plot_drives

PENDULUM = jd.robots.pendulum()
JOINT = PENDULUM.joint_names[0]
MOTOR = DcMotor(
    JOINT,
    constant=0.06,
    resistance=1.2,
    inductance=2e-3,
    gear=30.0,
    rotor_inertia=2e-4,
    voltage_limit=24.0,
    thermal=ThermalModel(0.5, 4.0),
)
SYSTEM, TIMES = jd.System(PENDULUM, (MOTOR,)), jnp.linspace(0.0, 0.2, 81)


def _swing(t):
    return jnp.stack([0.4 * jnp.sin(4 * t)])


@pytest.fixture(scope="module")
def driven():
    table = tabulate_inputs(SYSTEM, PathReference(_swing), TIMES)
    run = jd.simulate(
        SYSTEM, table.q[0], table.v[0], TIMES, inputs=table.path, parts=(*table.initial_parts(), None), dt=2.5e-3
    )
    return table, run


def test_tabulated_inputs_drive_the_reference(driven):
    table, run = driven
    assert not table.required.is_saturated.any()
    np.testing.assert_allclose(run.q[:, 0], 0.4 * np.sin(4 * TIMES), atol=2e-5)  # the table is interpolated
    constant, inertia, jerk = 30 * 0.06, 1 + 30**2 * 2e-4, -0.4 * 4**3
    current_rate = (inertia * jerk + 9.81 * 1.6) / constant
    voltage = constant * 1.6 + 1.2 * run.parts[0].current[0] + 2e-3 * current_rate
    np.testing.assert_allclose(table.required.inputs[0, 0], voltage, rtol=1e-9)


def test_loads_and_their_figure(driven, tmp_path):
    _, run = driven
    loads = drive_loads(run)
    current, u = np.asarray(run.parts[0].current), np.asarray(run.inputs[:, 0])
    np.testing.assert_allclose(loads.power.supply[:, 0], u * current, rtol=1e-9, atol=1e-9)
    balance = loads.power.heat + loads.power.stored + loads.power.mechanical
    np.testing.assert_allclose(loads.power.supply, balance, rtol=1e-9, atol=1e-9)
    energy = loads.supplied_energy[0] - loads.regenerated_energy[0]
    np.testing.assert_allclose(energy, np.trapezoid(u * current, TIMES), rtol=1e-9)
    path = tmp_path / "drive.png"
    figure = plot_drives(run, path)
    assert path.stat().st_size > 10_000 and figure.axes[0].get_title(loc="left") == JOINT


def test_temperature_limit_is_an_event_of_the_winding(driven):
    """Its condition is zero where the winding reaches the limit."""
    _, run = driven
    event = temperature_limit(SYSTEM, JOINT, 80.0)
    state = SYSTEM.initial(jnp.zeros(1), jnp.zeros(1))
    start = MOTOR.thermal.ambient
    assert event.terminal
    np.testing.assert_allclose(event.condition(PENDULUM, 0.0, state.q, state.v, state.parts), start - 80.0)
    assert float(run.parts[0].temperature[-1, 0]) > float(start)
