"""Identification of motors from logs of voltages, currents, rotor velocities and temperatures."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.actuators import DcMotor, StribeckFriction, ThermalModel
from jaxdyn.identification import (
    FreeStart,
    Log,
    LoggedInputs,
    MeasuredStart,
    OutputError,
    Physical,
    Windows,
    collect,
    fit,
    simulation_error,
)
from jaxdyn.identification.methods.windows._windows import UniformPath
from jaxdyn.simulation import Inputs, cubic_signal, simulate

ROD = jd.robots.pendulum(length=0.3, mass=0.5, damping=0.0)
JOINT = ROD.joint_names[0]
RATE, DURATION = 1000.0, 3.0
#: of the joint encoder, rad; of the current, A
COUNT, STEP = 2 * np.pi / 2**17, 20 / 2**12
PATHS = tuple(f"parts[DcMotor].{x}" for x in ("constant", "resistance", "gear", "rotor_inertia", "viscous"))
PATHS += ("parts[DcMotor].friction.coulomb", "parts[Inputs].controller.delay")
DELAY = 2.3e-3


def motor(**changes) -> DcMotor:
    numbers = {"constant": 0.05, "resistance": 1.2, "gear": 20.0, "rotor_inertia": 1.5e-5, "viscous": 2e-5} | changes
    coulomb = numbers.pop("coulomb", 4e-3)
    friction = StribeckFriction(coulomb=coulomb, static=coulomb, width=1.0)
    return DcMotor(JOINT, inductance=2e-3, friction=friction, **numbers)


def voltage(t):
    """Three sine waves from 50 ms on."""
    s = 2 * np.pi * np.maximum(t - 0.05, 0.0)
    return 5.0 * np.sin(0.8 * s) + 4.0 * np.sin(2.3 * s) + 2.5 * np.sin(6.1 * s)


@jax.jit
def drive_rod(system, path, t):
    inputs = Inputs(LoggedInputs(path=path, delay=DELAY))
    start = jnp.zeros(1), jnp.zeros(1)
    return simulate(system, *start, t, inputs=inputs, rtol=1e-9, atol=1e-11, max_steps=100_000)


@pytest.fixture(scope="module")
def exact():
    """Times, voltages, and the motion of the rod with its motor from rest."""
    t = np.arange(round(DURATION * RATE) + 1) / RATE
    u = voltage(t)[:, None]
    run = drive_rod(jd.System(ROD, (motor(),)), cubic_signal(jnp.asarray(t), jnp.asarray(u)).path, jnp.asarray(t))
    return t, u, np.asarray(run.q), np.asarray(run.v), np.asarray(run.parts[0].current)


def measure(exact, seed: int, tachometer: bool = True) -> Log:
    """A log with a quantised encoder, a noisy and quantised current, and the noisy velocity of the rotor."""
    t, u, q, v, current = exact
    rng = np.random.default_rng(seed)
    quantise = lambda x, step: step * np.round(x / step)
    columns = {f"current.{JOINT}": quantise(current + rng.normal(0, 0.02, current.shape), STEP)}
    if tachometer:
        columns[f"rotor_velocity.{JOINT}"] = 20.0 * v[:, 0] + rng.normal(0, 0.2, current.shape)
    coordinates = quantise(q + rng.normal(0, 1e-4, q.shape), COUNT)
    rest = t < 0.04  # the robot is known to be at rest at the start
    coordinates[rest] = columns[f"current.{JOINT}"][rest] = 0.0
    return Log(t, coordinates, np.zeros_like(v), None, np.zeros_like(q), "driven", inputs=u, measured=columns)


def whole_log() -> OutputError:
    """One window from rest, whose initial state is known, with steps below the electrical time constant of 1.7 ms."""
    return OutputError(Windows(length=2.95, lead=0.03, every=5, substeps=4), Physical(reweight=3), chunk=1)


GUESS = motor(constant=0.04, resistance=1.5, gear=16.0, rotor_inertia=1e-5, viscous=5e-5, coulomb=2e-3)
TRUTH = dict(zip(PATHS, (0.05, 1.2, 20.0, 1.5e-5, 2e-5, 4e-3, DELAY), strict=True))


def guess() -> jd.System:
    return jd.System(ROD, (GUESS, Inputs(LoggedInputs(delay=1e-3))))


def scaled_errors(found) -> np.ndarray:
    """Errors over standard deviations of all parameters."""
    rows = {row.name: row for row in found.parameters}
    return np.array([(rows[x].value - TRUTH[x]) / rows[x].deviation for x in PATHS])


@pytest.mark.slow
def test_a_motor_from_voltage_current_and_two_encoders(exact):
    found = fit(guess(), measure(exact, 0), PATHS, whole_log()).checked()
    assert not found.unobservable
    assert np.abs(scaled_errors(found)).max() < 3
    relative = {row.name: row.deviation / TRUTH[row.name] for row in found.parameters}
    assert max(relative.values()) < 0.1 and relative["parts[DcMotor].gear"] < 1e-3
    channels = {row.joint: row.fit for row in found.errors}
    assert channels[f"current.{JOINT}"] == pytest.approx(0.02, rel=0.1)
    assert channels[f"rotor_velocity.{JOINT}"] == pytest.approx(0.2, rel=0.1)


@pytest.mark.exhaustive
def test_deviations_of_motor_parameters_over_six_logs(exact):
    z = np.array([scaled_errors(fit(guess(), measure(exact, k), PATHS, whole_log()).checked()) for k in range(6)])
    assert np.abs(z).max() < 3.5
    assert 0.7 < np.sqrt(np.mean(z**2)) < 1.4


HOT = ThermalModel(
    winding_capacity=20.0, winding_resistance=2.0, housing_capacity=150.0, housing_resistance=3.0, ambient=22.0
)


THERMAL = ("winding_capacity", "winding_resistance", "housing_capacity", "housing_resistance", "ambient")


def heated(thermal: ThermalModel) -> jd.System:
    """A stalled motor at an amplifier for currents: a rotor too heavy to move."""
    numbers = {"constant": 0.05, "resistance": 1.2, "rotor_inertia": 1e9}
    return jd.System(ROD, (DcMotor(JOINT, input_quantity="current", thermal=thermal, **numbers),))


@pytest.mark.exhaustive
def test_thermal_parameters_from_current_and_temperatures():
    """Heating by two levels of current, then cooling, with sensors of both nodes and noise of 0.3 K."""
    t = np.arange(901.0)
    u = np.interp(t, [0, 300, 310, 600, 610, 900], [5.0, 5.0, 2.0, 2.0, 0.0, 0.0])[:, None]
    rest = jnp.zeros(1), jnp.zeros(1)
    run = simulate(
        heated(HOT), *rest, jnp.asarray(t), inputs=UniformPath(*map(jnp.asarray, (t[0], t[1], u))), rtol=1e-8, atol=1e-8
    )
    rng, exact = np.random.default_rng(0), np.asarray(run.parts[0].temperature)
    noisy = exact + rng.normal(0, 0.3, exact.shape)
    names = (f"temperature.{JOINT}", f"housing_temperature.{JOINT}")
    zero = np.zeros((901, 1))
    log = Log(t, zero, zero, None, zero, "heated", inputs=u, measured=dict(zip(names, noisy.T, strict=True)))
    start = ThermalModel(
        winding_capacity=30.0, winding_resistance=1.0, housing_capacity=100.0, housing_resistance=2.0, ambient=25.0
    )
    windows = Windows(length=900.0, lead=0.0, every=2)
    method = OutputError(windows, Physical(reweight=2), MeasuredStart(parts=False), chunk=1)
    weights = np.array([0.0, 3.0, 3.0])  # the joint does not move
    found = fit(heated(start), log, [f"parts[DcMotor].thermal.{x}" for x in THERMAL], method, weights=weights)
    rows = found.checked().parameters
    z = [(row.value - float(getattr(HOT, x))) / row.deviation for row, x in zip(rows, THERMAL, strict=True)]
    assert np.abs(z).max() < 3 and max(row.deviation / abs(row.value) for row in rows) < 0.02


def test_paths_select_fields_of_fields_and_motors_by_their_joint():
    system = jd.System(ROD, (motor(), motor()))
    names = ("parts[DcMotor].friction.coulomb", "parts[DcMotor].gear")
    assert collect(jd.System(ROD, (motor(),)), names).names == names
    assert collect(system, f"parts[0].gear[{JOINT}]").names == (f"parts[DcMotor].gear[{JOINT}]",)
    for path in ("parts[DcMotor].friction.unknown", "parts[DcMotor].gear.unknown"):
        with pytest.raises(jd.ModelError, match="names no field"):
            collect(jd.System(ROD, (motor(),)), path)
    with pytest.raises(jd.ModelError, match="no entry is called 'elbow'"):
        collect(system, "parts[DcMotor].gear[elbow]")


def test_logs_check_inputs_and_measurements():
    t, zero = np.linspace(0, 1, 101), np.zeros((101, 1))
    log = lambda **columns: Log(t, zero, zero, None, zero, "short", **columns)
    system = jd.System(ROD, (motor(),))
    with pytest.raises(jd.ModelError, match="has 0 inputs, and the actuators of the system have 1"):
        simulation_error(system, [log()])
    with pytest.raises(jd.ModelError, match="measures 'current.elbow', which no actuator"):
        simulation_error(system, [log(inputs=zero, measured={"current.elbow": t})])
    with pytest.raises(jd.ShapeError, match="inputs has shape"):
        simulation_error(system, [log(inputs=zero[:5])])
    part = log(inputs=zero, measured={f"current.{JOINT}": t}).rows(slice(0, 10))
    assert part.inputs.shape == (10, 1) and part.measured[f"current.{JOINT}"].shape == (10,)


def test_measured_values_replace_entries_of_the_state():
    hot = DcMotor(JOINT, constant=0.05, resistance=1.2, inductance=1e-3, thermal=HOT)
    state = hot.initial(ROD, jnp.zeros(1), jnp.zeros(1))
    new = hot.replace_measured(
        state, {f"current.{JOINT}": jnp.array(2.0), f"housing_temperature.{JOINT}": jnp.array(40.0)}
    )
    np.testing.assert_allclose(new.current, 2.0)
    np.testing.assert_allclose(new.temperature, [22.0, 40.0])
    values = hot.measurements(ROD, 0.0, jnp.zeros(1), jnp.ones(1), new, jnp.ones(1))
    assert set(values) == set(hot.measurement_units)
    assert values[f"rotor_velocity.{JOINT}"] == 1.0 and values[f"current.{JOINT}"] == 2.0


def free_start_sample(exact, every: int = 10):
    """A window of 0.4 s of exact columns whose measured initial velocity is zero."""
    t, u, q, v, current = exact
    columns = {f"current.{JOINT}": current, f"rotor_velocity.{JOINT}": 20.0 * v[:, 0]}
    log = Log(t, q, np.zeros_like(v), None, np.zeros_like(q), "driven", inputs=u, measured=columns)
    windows = Windows(length=0.4, stride=3.0, lead=0.03, every=every, substeps=4)
    sample = jax.tree.map(lambda x: jnp.asarray(x[0]), windows.cut(ROD, log.rows(slice(500, 1000))))
    return windows, sample


@pytest.mark.slow
def test_free_starts_find_velocities_and_currents(exact):
    """Residuals of all channels vanish although the measured start is wrong, and are in units of the measurements."""
    windows, sample = free_start_sample(exact)
    truth = jd.System(ROD, (motor(), Inputs(LoggedInputs(delay=DELAY))))
    start = FreeStart(scales={f"current.{JOINT}": 200.0, f"rotor_velocity.{JOINT}": 2000.0}, steps=4)
    rows = jax.jit(lambda system, sample: start.residual(system, windows, sample))
    # a tenth of the noise of the sensors, the error of the integration
    assert (np.abs(np.asarray(rows(truth, sample))).max(axis=1) < [1e-5, 2e-3, 2e-2]).all()
    shifted = eqx.tree_at(lambda s: s.measured[f"current.{JOINT}"], sample, replace_fn=lambda x: x + 0.1)
    error = np.asarray(rows(truth, shifted))[1]
    assert np.abs(error[5:]).mean() == pytest.approx(0.1, rel=0.1)  # A


def test_free_starts_need_the_scales_of_measurements():
    zero = np.zeros((1001, 1))
    windows, sample = free_start_sample((np.arange(1001) / RATE, zero, zero, zero, zero[:, 0]))
    with pytest.raises(jd.ModelError, match=f"no scales of current.{JOINT}, rotor_velocity.{JOINT}, which"):
        FreeStart().residual(guess(), windows, sample)
    scales = {f"current.{JOINT}": 1.0, f"rotor_velocity.{JOINT}": -1.0}
    with pytest.raises(jd.ModelError, match=f"rotor_velocity.{JOINT}: -1; expected positive"):
        FreeStart(scales=scales).residual(guess(), windows, sample)
