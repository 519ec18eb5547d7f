"""Columns of inputs and measurements of actuators: names, units, filters, rates and errors."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.actuators import DcMotor, SteppingMotor, ThermalModel
from jaxdyn.identification import Columns, LogError, LoggedInputs, Preparation, Source, Table, prepare
from jaxdyn.simulation import Inputs

T = np.arange(0, 12, 0.01)
W = 2 * np.pi * 0.5
NAMES = ("upper", "lower")


def arm() -> jd.Model:
    b = jd.ModelBuilder()
    for name, parent in (("upper", "world"), ("lower", "upper")):
        body = jd.spatial.point_mass(1.0).moved([0, 0, -0.3])
        b.add_link(name, parent, jd.joints.Revolute([0, 1, 0]), body, joint_name=name)
    return b.build()


def system(*extra) -> jd.System:
    """A motor in volts with heat on the upper joint, and a motor in amperes on the lower joint."""
    numbers = {"constant": 0.05, "resistance": 1.2}
    hot = DcMotor("upper", inductance=1e-3, thermal=ThermalModel(20.0, 2.0, 100.0, 3.0), **numbers)
    return jd.System(arm(), (hot, DcMotor("lower", input_quantity="current", **numbers), *extra))


def wave(k: int = 0, order: int = 0):
    return W**order * np.sin(W * T + 0.3 * k + order * np.pi / 2)


POSITION = {f"q.{name}": wave(k) for k, name in enumerate(NAMES)}
RAW = {
    "t": T,
    **POSITION,
    "u upper": 1e3 * wave(2),
    "i set lower": 2 * wave(3) + 1,
    "i upper": 500 * wave(4),
    "w lower": 60 / (2 * np.pi) * wave(5),
    "T upper": 9 / 5 * (40 + 3 * wave(6)) + 32,
    "Th upper": 30 + 273.15 + wave(7),
}
COLUMNS = Columns(
    Source("q.{joint}"),
    inputs={"voltage": Source("u {joint}", unit="mV", sign=-1), "current": Source("i set {joint}", gain=2.0, unit="%")},
    measured={
        "current": Source({"upper": "i upper"}, unit="mA"),
        "rotor_velocity": Source({"lower": "w lower"}, unit="rpm"),
        "temperature": Source({"upper": "T upper"}, unit="degF"),
        "housing_temperature": Source({"upper": "Th upper"}, unit="K"),
    },
)
OPTIONS = Preparation(low_pass=False, rest_speed=0.0)


def test_inputs_and_measurements_are_converted_and_differentiated():
    (log,), _ = prepare([Table("run", RAW)], system(), COLUMNS, OPTIONS)
    np.testing.assert_allclose(log.inputs, np.column_stack([-wave(2), 0.02 * (2 * wave(3) + 1)]), atol=1e-12)
    assert not np.any(log.effort)
    exact = {
        "current.upper": (0.5 * wave(4), 0.5 * wave(4, 1)),
        "rotor_velocity.lower": (wave(5), wave(5, 1)),
        "temperature.upper": (40 + 3 * wave(6), 3 * wave(6, 1)),
        "housing_temperature.upper": (30 + wave(7), wave(7, 1)),
    }
    assert set(log.measured) == set(log.measured_rate) == set(exact)
    inner = slice(300, -300)  # the ends of a spectral derivative without a filter ring
    for name, (value, rate) in exact.items():
        np.testing.assert_allclose(log.measured[name], value, atol=1e-10)
        np.testing.assert_allclose(log.measured_rate[name][inner], rate[inner], atol=0.02 * np.abs(rate).max())
    origins = {channel.name: (channel.unit, channel.source) for channel in log.channels}
    assert origins["voltage.upper"] == ("mV", "run, column 'u upper'")
    assert origins["temperature.upper"] == ("degF", "run, column 'T upper'")
    assert origins["effort.upper"] == ("", "constant 0, no column")


def test_all_columns_pass_one_filter():
    """The filtered rate of a current is the derivative of the filtered current, at a lower sampling rate."""
    noise = np.random.default_rng(0).normal(0, 0.1, T.shape)
    table = Table("run", RAW | {"i upper": 500 * wave(4) + noise})
    (log,), _ = prepare([table], system(), COLUMNS, Preparation(cutoff=5.0, rate=50.0))
    current, rate = (np.asarray(x["current.upper"]) for x in (log.measured, log.measured_rate))
    assert log.num_samples < len(T) / 2 and current.shape == rate.shape == np.asarray(log.t).shape
    step = np.gradient(current, np.asarray(log.t))
    np.testing.assert_allclose(rate[2:-2], step[2:-2], atol=5e-3 * np.abs(rate).max())
    assert log.rows(slice(0, 5)).measured_rate["current.upper"].shape == (5,)


def test_columns_with_the_names_of_inputs_need_no_mapping():
    names = {"voltage.upper": wave(2), "current.lower": wave(3), "current.upper": wave(4), "temperature.upper": wave(5)}
    table = Table("run", {"t": T, **POSITION, **names})
    (log,), _ = prepare([table], system(Inputs(LoggedInputs())), preparation=OPTIONS)
    np.testing.assert_allclose(log.inputs, np.column_stack([wave(2), wave(3)]), atol=1e-12)
    # `current` is an input of this system, so that its columns are commands
    assert set(log.measured) == {"temperature.upper"}
    effort = {f"effort.{name}": wave(k) for k, name in enumerate(NAMES)}
    (log,), _ = prepare([Table("run", {"t": T, **POSITION, **effort})], arm(), preparation=OPTIONS)
    assert log.inputs is None and log.measured is None
    stepping = jd.System(arm(), tuple(SteppingMotor(n, holding_torque=1.0, pole_pairs=50) for n in NAMES))
    angles = {f"field_angle.{name}": np.rad2deg(wave(k)) for k, name in enumerate(NAMES)}
    columns = Columns(Source("q.{joint}"), inputs={"field_angle": Source("field_angle.{joint}", unit="deg")})
    (log,), _ = prepare([Table("run", {"t": T, **POSITION, **angles})], stepping, columns, OPTIONS)
    np.testing.assert_allclose(log.inputs, np.column_stack([wave(0), wave(1)]), atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"inputs": {}}, jd.ModelError, "inputs none, and the actuators of the system take 'voltage', 'current'"),
        ({"inputs": {"torque": Source("u {joint}")}}, jd.ModelError, "Columns have inputs 'torque'"),
        ({"measured": {"pressure": Source("p {joint}")}}, jd.ModelError, "measured 'pressure', which no actuator of"),
        ({"measured": {"current": Source("i {joint}", unit="mA")}}, LogError, "no column of current for 'lower'"),
        ({"measured": {"current": Source({"wrist": "i upper"})}}, jd.ModelError, "has no joint 'wrist'"),
        (
            {"measured": {"current": Source({"upper": "i upper"}, unit="V")}},
            jd.ModelError,
            "not a unit of A and needs a gain",
        ),
        (
            {"measured": {"temperature": Source({"upper": "T upper"}, unit="m")}},
            jd.ModelError,
            "not convertible to 'degC'",
        ),
        ({"measured": {"current": Source({"upper": "i upper"}, gear=5)}}, jd.ModelError, "does not depend on a gear"),
    ],
)
def test_wrong_columns_of_actuators_are_refused(changes, error, message):
    with pytest.raises(error, match=message):
        prepare([Table("run", RAW)], system(), replace(COLUMNS, **changes), OPTIONS)


def test_columns_of_actuators_need_a_system_that_takes_them():
    bare = Columns(Source("q.{joint}"))
    with pytest.raises(jd.ModelError, match="Columns have no effort, and the robot has no actuator with inputs"):
        prepare([Table("run", RAW)], arm(), bare, OPTIONS)
    with pytest.raises(jd.ModelError, match="no actuator that takes inputs from a log"):
        prepare([Table("run", RAW)], system(Inputs(jnp.zeros(2))), COLUMNS, OPTIONS)
    effort = Source(["i upper", "i set lower"])
    with pytest.raises(jd.ModelError, match="give prepare a System with its actuators"):
        prepare([Table("run", RAW)], arm(), Columns(Source("q.{joint}"), effort, measured=COLUMNS.measured), OPTIONS)
