"""Residuals of motors without simulation: rows of voltage, current, speed and temperature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from benchmarks import _identification_motors as bench
from jaxdyn.actuators import (
    DcMotor,
    HydraulicCylinder,
    LinearActuator,
    LuGreFriction,
    StribeckFriction,
    SynchronousMotor,
    ThermalModel,
)
from jaxdyn.identification import (
    Linear,
    Log,
    LoggedInputs,
    Physical,
    Preparation,
    Table,
    collect,
    fit,
    predicted_effort,
    prepare,
    report_on,
)
from jaxdyn.identification.residuals import effort_problem, residuals
from jaxdyn.simulation import Inputs, SampledInputs, State
from jaxdyn.simulation.system import measurement_units, replace_measured, state_measurements

UPPER, LOWER = "shoulder", "elbow"
ROD = jd.robots.pendulum(length=0.3, mass=0.5)
JOINT = ROD.joint_names[0]
HOT = ThermalModel(20.0, 2.0, 150.0, 3.0, ambient=22.0)


def driven_arm(delay: float = 0.0) -> jd.System:
    """Two motors with all states that sensors measure, the first one with losses of its gear."""
    numbers = {"resistance": 1.2, "inductance": 2e-3, "gear": 20.0, "rotor_inertia": 1.5e-5, "thermal": HOT}
    friction = StribeckFriction(4e-3, 6e-3, width=1.0)
    first = DcMotor(UPPER, constant=0.05, friction=friction, efficiency=0.8, reverse_efficiency=0.7, **numbers)
    second = SynchronousMotor(LOWER, pole_pairs=7, flux_linkage=0.005, viscous=2e-5, **numbers)
    inputs = Inputs(LoggedInputs(gain=[2.0, 1.0], offset=0.5, delay=delay))
    return jd.System(bench.arm(), (first, second, inputs))


@jax.jit
def vector_field(system, t, q, v, values, inputs):
    """Accelerations, and rates of the measurements that are states, at rows of a log."""

    def row(t, q, v, values, inputs):
        parts = replace_measured(system, system.initial(q, v).parts, values)
        rate = system.rate(t, State(q, v, parts), inputs)
        return rate.v, state_measurements(system, rate.parts)

    return jax.vmap(row)(t, q, v, values, inputs)


def rows_of_vector_field(system: jd.System, scales: dict[str, float], law: LoggedInputs, n: int = 12) -> Log:
    """Rows of random states with the rates of the system, under inputs that are parabolas of the time."""
    rng, nv, count = np.random.default_rng(0), system.model.nv, system.num_inputs
    t, c = 0.01 * np.arange(n), rng.normal(0, 5, (3, count))
    read = lambda t: c[0] + c[1] * t[..., None] + 20 * c[2] * t[..., None] ** 2
    q, v = rng.uniform(-1, 1, (n, nv)), rng.normal(0, 2, (n, nv))
    acting = np.asarray(law.gain) * read(t - float(law.delay)) + np.asarray(law.offset)
    states = state_measurements(system, system.initial(jnp.zeros(nv), jnp.zeros(nv)).parts)
    measured = {name: rng.uniform(0.5, 1.5, n) * scales[name.partition(".")[0]] for name in states}
    a, rates = vector_field(system, *(jax.tree.map(jnp.asarray, x) for x in (t, q, v, measured, acting)))
    speeds = {f"rotor_velocity.{joint}": 20.0 * v[:, k] for k, joint in enumerate(system.model.joint_names)}
    known = measurement_units(system)
    measured |= {name: x for name, x in speeds.items() if name in known}
    return Log(t, q, v, a, np.zeros((n, nv)), "rows", inputs=read(t), measured=measured, measured_rate=rates)


@pytest.mark.slow
def test_residuals_vanish_on_the_vector_field():
    """Torque balance, circuit, heat and tachometer at once; the delay of a parabola is exact in inner rows."""
    system = driven_arm(delay=3e-3)
    *motors, inputs = system.parts
    scales = {"current": 3.0, "temperature": 40.0, "housing_temperature": 30.0}
    log = rows_of_vector_field(jd.System(system.model, tuple(motors)), scales, inputs.controller)
    problem = effort_problem(collect(system, "parts[DcMotor].resistance"), [log], 12)
    kinds = ("current", "housing_temperature", "rotor_velocity", "temperature")
    named = [f"{kind}.{joint}" + " rate" * (kind != "rotor_velocity") for kind in kinds for joint in (LOWER, UPPER)]
    assert problem.channels == (UPPER, LOWER, *named)
    assert problem.units == ("N m",) * 2 + ("A/s",) * 2 + ("K/s",) * 2 + ("rad/s",) * 2 + ("K/s",) * 2
    r = residuals(problem, problem.parameters.read())[:, 2:-2]
    size = np.asarray(problem.measured)[:, None]
    assert np.abs(r / size).max() < 1e-10
    other = residuals(problem, jnp.array([1.3]))[:, 2:-2]
    changed = np.abs((other - r) / size).max(axis=1) > 1e-3
    assert changed.tolist() == [
        name in (f"current.{UPPER} rate", f"temperature.{UPPER} rate") for name in problem.channels
    ]


def lever(q):
    return 0.2 * jnp.sin(q + 0.4)


@pytest.mark.slow
def test_residuals_of_cylinders_and_linear_actuators_vanish_on_the_vector_field():
    """The same rows for any actuator with measured states: load pressures, and states of a linear actuator."""
    oil = {"piston_area": 1e-3, "volume": 4e-4, "bulk_modulus": 1e8, "flow_gain": 1e-3, "flow_pressure": 1e-10}
    cylinder = HydraulicCylinder(UPPER, **oil, mass=2.0, viscous=500.0, mechanism=lever)
    C = np.array([[0, 1, 0, 0], [0, -2, 3, 0.5], [0, -4, -5, 1], [0, 0.3, 0, -7]])
    linear = LinearActuator(LOWER, C, f=[0, -10, 0.2, -0.4], d=[0, 1, 0, 2])
    system = jd.System(bench.arm(), (cylinder, linear))
    log = rows_of_vector_field(system, {"load_pressure": 1e6, "state": 2.0}, LoggedInputs())
    names = (f"load_pressure.{UPPER}", f"state.{LOWER}.0", f"state.{LOWER}.1")
    assert tuple(sorted(log.measured)) == names
    problem = effort_problem(collect(system, "parts[HydraulicCylinder].flow_gain"), [log], 12)
    assert problem.channels[2:] == tuple(f"{name} rate" for name in names) and problem.units[2:] == (
        "Pa/s",
        "1/s",
        "1/s",
    )
    r = residuals(problem, problem.parameters.read())
    assert np.abs(r / np.asarray(problem.measured)[:, None]).max() < 1e-10
    del log.measured[names[1]]
    with pytest.raises(jd.ModelError, match=f"LinearActuator has a state.*measure state.{LOWER}.0"):
        predicted_effort(system, log)


def rod_log(**more) -> Log:
    t, zero = np.linspace(0, 1, 11), np.zeros((11, 1))
    return Log(t, zero, zero, zero, zero, "rod", **more)


def rod(*extra, **options) -> jd.System:
    return jd.System(ROD, (DcMotor(JOINT, constant=0.05, resistance=1.2, **options), *extra))


def test_rows_need_all_states_and_their_rates():
    zero, column = np.zeros((11, 1)), {f"current.{JOINT}": np.zeros(11)}
    for system, log, error, message in (
        (rod(inductance=1e-3), rod_log(inputs=zero), jd.ModelError, f"measure current.{JOINT}"),
        (rod(inductance=1e-3), rod_log(inputs=zero, measured=column), jd.ShapeError, "has no time derivatives of curr"),
        (rod(), rod_log(), jd.ModelError, "has 0 inputs, and the actuators of the system have 1"),
        (rod(thermal=HOT), rod_log(inputs=zero), jd.ModelError, f"temperature.{JOINT}, housing_temperature.{JOINT}"),
        (rod(SampledInputs(jnp.zeros(1), period=0.1)), rod_log(), jd.ModelError, "has SampledInputs"),
        (rod(), rod_log(inputs=np.full((11, 1), np.nan)), jd.ShapeError, "not finite, in inputs"),
        (
            rod(friction=LuGreFriction(0.1, 0.2, 100.0), inductance=1e-3),
            rod_log(inputs=zero, measured=column),
            jd.ModelError,
            "which no column of the logs holds; fit its parameters with OutputError",
        ),
    ):
        with pytest.raises(error, match=message):
            predicted_effort(system, log)
    with pytest.raises(jd.ShapeError, match=r"measured_rate\['x'\] has shape"):
        predicted_effort(rod(), rod_log(inputs=zero, measured_rate={"x": np.zeros(3)}))
    # without an inductance the current is no state: the voltage alone determines the torque
    assert predicted_effort(rod(), rod_log(inputs=zero)).shape == (11, 1)


def test_residuals_of_a_rod_by_hand():
    """`n C i - (m l^2 + n^2 J) a - m g l sin q`, and the circuit, on random rows."""
    names = ("q", "v", "a", "i", "rate", "u")
    q, v, a, i, rate, u = (np.random.default_rng(k).normal(0, 2, 11) for k, _ in enumerate(names))
    system = rod(inductance=2e-3, gear=20.0, rotor_inertia=1e-5)
    log = Log(
        *(np.linspace(0, 1, 11), q[:, None], v[:, None], a[:, None], np.zeros((11, 1)), "rod"),
        inputs=u[:, None],
        measured={f"current.{JOINT}": i},
        measured_rate={f"current.{JOINT}": rate},
    )
    torque = 20 * 0.05 * i - (0.5 * 0.3**2 + 400 * 1e-5) * a - 0.5 * 9.81 * 0.3 * np.sin(q)
    circuit = rate - (u - 1.2 * i - 0.05 * 20 * v) / 2e-3
    problem = effort_problem(collect(system, "parts[DcMotor].resistance"), [log], 11)
    r = residuals(problem, problem.parameters.read())
    np.testing.assert_allclose(r, [torque, circuit], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(problem.measured, np.sqrt(np.mean([i**2, rate**2], axis=1)), rtol=1e-12)  # n C = 1
    np.testing.assert_allclose(predicted_effort(system, log)[:, 0], -torque, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_a_motor_is_found_by_linear_least_squares():
    """Resistance, friction, inertia and noise of the current, in a torque balance and a circuit that are linear."""
    t = np.arange(0, 6, 0.005)
    w, size, phase = np.array([3.0, 8.0, 15.0]), np.array([1.0, 0.5, 0.2]), np.array([0.0, 1.0, 2.0])
    q, v, a, jerk = ((size * w**k * np.sin(np.outer(t, w) + phase + k * np.pi / 2)).sum(1)[:, None] for k in range(4))
    numbers = {"resistance": 1.2, "rotor_inertia": 1.5e-5, "viscous": 2e-5}
    known = {"constant": 0.05, "gear": 20.0, "inductance": 2e-3}
    need = jax.jit(jax.vmap(lambda *x: jd.simulation.required_inputs(rod_with(numbers | known), 0.0, *x)))(
        q, v, a, jerk
    )
    current, u = np.asarray(need.parts[0].current), np.asarray(need.inputs)
    rng = np.random.default_rng(0)
    rate = (u[:, 0] - 1.2 * current - 0.05 * 20 * v[:, 0]) / 2e-3
    noisy = {f"current.{JOINT}": current + rng.normal(0, 0.01, current.shape)}
    log = Log(
        *(t, q, v, a, np.zeros_like(q), "rod"),
        inputs=u,
        measured=noisy,
        measured_rate={f"current.{JOINT}": rate},
    )
    paths = [f"parts[DcMotor].{name}" for name in numbers]
    guess = rod_with({name: 0.5 * x for name, x in numbers.items()} | known)
    found = fit(guess, log, paths, Linear(reweight=3)).checked()
    z = [(row.value - x) / row.deviation for row, x in zip(found.parameters, numbers.values(), strict=True)]
    assert np.abs(z).max() < 3.5
    assert found.errors[1].fit == pytest.approx(1.2 * 0.01 / 2e-3, rel=0.1)  # A/s
    report = report_on(found, [log])  # efforts of the motor at the measured current
    assert report.fit[0].rmse == pytest.approx(0.05 * 20 * 0.01, rel=0.1) and report.fit[0].relative < 0.05


def rod_with(numbers) -> jd.System:
    return jd.System(ROD, (DcMotor(JOINT, **numbers),))


@pytest.mark.slow
def test_thermal_parameters_without_simulation():
    """Heating at two currents and cooling, with noise of 0.3 K that the filter reduces."""
    t = np.arange(0, 1800.0)
    level = np.interp(t, [0, 500, 520, 900, 920, 1800], [5.0, 5.0, 2.0, 2.0, 0.0, 0.0])
    rows = [(22.0, 22.0)]
    for i in np.repeat(level[:-1], 10):  # ten explicit steps a second
        winding, housing = rows[-1]
        heat, inner, outer = 1.2 * (1 + 0.00393 * (winding - 25)) * i**2, (winding - housing) / 2, (housing - 22) / 3
        rows.append((winding + 0.1 * (heat - inner) / 20, housing + 0.1 * (inner - outer) / 150))
    noisy = np.array(rows[::10]) + np.random.default_rng(0).normal(0, 0.3, (len(t), 2))
    named = {f"{name}.{JOINT}": noisy[:, k] for k, name in enumerate(("temperature", "housing_temperature"))}
    table = Table("stall", {"t": t, f"q.{JOINT}": np.zeros(len(t)), f"current.{JOINT}": level, **named})
    fields = ("winding_capacity", "winding_resistance", "housing_capacity", "housing_resistance", "ambient")
    guess = ThermalModel(30.0, 1.0, 100.0, 2.0, ambient=25.0)
    stalled = lambda thermal: jd.System(
        ROD, (DcMotor(JOINT, constant=0.05, resistance=1.2, input_quantity="current", thermal=thermal),)
    )
    logs, _ = prepare([table], stalled(guess), preparation=Preparation(cutoff=0.05, rest_speed=0.0))
    weights = np.array([0.0, 1.0, 1.0])  # the joint does not move
    found = fit(stalled(guess), logs, [f"parts[DcMotor].thermal.{x}" for x in fields], Physical(), weights=weights)
    rows = found.checked().parameters
    z = [(row.value - float(getattr(HOT, x))) / row.deviation for row, x in zip(rows, fields, strict=True)]
    assert np.abs(z).max() < 3 and max(row.deviation / abs(row.value) for row in rows) < 0.1


@pytest.mark.exhaustive
def test_deviations_of_a_driven_arm_over_random_logs():
    """Motor constant, resistance, gear, rotor inertia, friction and delay within their deviations."""
    results = [bench.identify(bench.measure(bench.exact_rows(seed), seed)) for seed in range(4)]
    z = np.array([bench.scaled_errors(result) for result in results])
    assert np.abs(z).max() < 3.5 and bench.within(z) > 0.9
    assert np.sqrt(np.mean(z**2)) > 0.5  # deviations are not much too large either
    relative = np.array([row.deviation / bench.truth(row.name) for row in results[0].parameters])
    assert relative.max() < 0.15 and relative[:6].max() < 1e-3
