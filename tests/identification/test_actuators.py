"""Identification of motors from logs of voltages, currents, rotor velocities and temperatures."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.actuators import DcMotor, MotorState, StribeckFriction, ThermalModel
from jaxdyn.identification import (
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
    return 5.0 * np.sin(2 * np.pi * 0.8 * t) + 4.0 * np.sin(2 * np.pi * 2.3 * t) + 2.5 * np.sin(2 * np.pi * 6.1 * t)


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
    run = drive_rod(jd.System(ROD, (motor(),)), cubic_signal(t, u).path, t)
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
    start = np.zeros_like(v)  # the log begins at rest
    coordinates[0] = 0.0
    columns[f"current.{JOINT}"][0] = 0.0
    return Log(t, coordinates, start, None, np.zeros_like(q), "driven", inputs=u, measured=columns)


def whole_log() -> OutputError:
    """One window from rest, whose initial state is known."""
    return OutputError(Windows(length=DURATION - 0.02, lead=0.0, every=5), Physical(reweight=3), chunk=1)
