"""Rigid contact in systems: beside closed loops and actuators with states, in batches, and in single precision."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn.actuators import DcMotor
from jaxdyn.contact import Contact, ContactMotion, Gap, Plane, Point
from jaxdyn.joints import Prismatic, Revolute
from jaxdyn.simulation import SimulationStatus
from jaxdyn.spatial import point_mass, rod

pytestmark = pytest.mark.exhaustive

simulate: Any = jd.simulate
CRANK, ROD, STOP = 0.2, 0.5, 0.6


def slider_crank():
    """A crank and a rod in the plane of x and z without gravity, and a slider along x, closed by a joint."""
    b = jd.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    b.add_link("crank", "world", Revolute((0, 1, 0)), point_mass(0.2).moved((CRANK, 0, 0)))
    b.add_link("rod", "crank", Revolute((0, 1, 0)), rod(ROD, mass=0.3), translation=(CRANK, 0, 0))
    b.add_link("slider", "world", Prismatic((1, 0, 0)), point_mass(1.0))
    return b.build(), jc.PointClosure("pin", ("rod", (ROD, 0, 0)), ("slider", (0, 0, 0)))


def test_a_motor_presses_a_closed_loop_against_a_stop():
    """A DC motor with an inductance: after the impact current and force at the stop approach those of a stall."""
    model, pin = slider_crank()
    stop = Contact("stop", Gap("slider", Point(), ("world", (STOP, 0, 0)), Plane((-1.0, 0.0, 0.0))))
    constant, resistance, inductance, gear, voltage = 0.05, 1.0, 0.05, 20.0, -6.0
    motor = DcMotor(
        model.joint_names[0],
        voltage,
        constant=constant,
        resistance=resistance,
        inductance=inductance,
        gear=gear,
        rotor_inertia=1e-5,
    )
    system = jd.System(model, (motor,), ContactMotion(stop, pin))
    angle = 1.2
    lean = -np.arcsin(CRANK * np.sin(angle) / ROD)
    q0 = jnp.array([angle, lean - angle, CRANK * np.cos(angle) + ROD * np.cos(lean)])
    run = simulate(system, q0, jnp.zeros(3), jnp.linspace(0.0, 1.2, 25), max_events=4)
    assert run.status == SimulationStatus.FINISHED and run.phases.count == 2
    pressed = run.t > run.phases.time[1]
    assert 8 < pressed.sum() < 24
    q = np.asarray(run.q)[pressed]
    assert_allclose(q[:, 2], STOP, atol=1e-9)
    assert_allclose(np.asarray(run.v)[pressed], 0, atol=1e-9)
    current = np.asarray(run.parts[0].current)[pressed]
    stall = voltage / resistance
    decay = np.exp(-np.diff(np.asarray(run.t)[pressed]) * resistance / inductance)
    assert_allclose(current[1:] - stall, (current[:-1] - stall) * decay, atol=1e-6)
    sine, lean = np.sin(q[:, 0]), CRANK * np.sin(q[:, 0])
    lever = -CRANK * sine - lean * CRANK * np.cos(q[:, 0]) / np.sqrt(ROD**2 - lean**2)  # dx / d angle
    force = np.asarray(run.contacts.normal_force)[pressed, 0]
    assert_allclose(force, gear * constant * current / lever, rtol=1e-7)
    assert force[-1] > 20


def puck_over_a_floor():
    """A point mass that falls, bounces by half of its speed, slides and rests."""
    b = jd.ModelBuilder()
    b.add_link("x", "world", Prismatic((1, 0, 0)))
    model = b.add_link("puck", "x", Prismatic((0, 0, 1)), point_mass(1.0)).build()
    floor = Contact("floor", Gap("puck", Point(), "world", Plane()), 0.3, 0.5, plane=(0.0, 1.0, 0.0))
    return jd.System(model, motion=ContactMotion(floor))


STARTS = np.array([[0.0, 0.5], [1.0, 0.02], [0.0, 0.0]]), np.array([[2.0, 0.0], [-3.0, 0.1], [1.0, 0.0]])


def test_a_batch_is_equal_to_single_runs():
    """Samples whose events differ in kind, number and time."""
    system, ts = puck_over_a_floor(), jnp.linspace(0.0, 2.0, 5)
    q0, v0 = map(jnp.asarray, STARTS)
    batch = jd.simulate_batch(system, q0, v0, ts)
    one = jax.jit(lambda q, v: simulate(system, q, v, ts))
    assert len(set(np.asarray(batch.phases.count).tolist())) > 1
    for k in range(3):
        single, own = one(q0[k], v0[k]), batch[k]
        assert own.status == single.status == SimulationStatus.FINISHED
        for name in ("q", "v", "modes"):
            compare = lambda x, y: assert_allclose(x, y, atol=1e-9)
            jax.tree.map(compare, getattr(own, name), getattr(single, name))
        n = int(single.phases.count)
        assert own.phases.count == n
        assert_allclose(own.phases.time[:n], single.phases.time[:n], atol=1e-9)
        assert_allclose(own.contacts.normal_force, single.contacts.normal_force, atol=1e-9)


def test_single_precision():
    """The puck in float32, against float64: the same modes at the end, and errors of the size of the tolerance."""
    ts, system = jnp.linspace(0.0, 2.0, 5), puck_over_a_floor()
    low = lambda tree: jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), tree)
    coarse = jd.simulate_batch(low(system), *low(STARTS), low(ts))
    fine = jd.simulate_batch(system, *map(jnp.asarray, STARTS), ts)
    assert {x.dtype for x in jax.tree.leaves((coarse.q, coarse.v, coarse.modes))} == {jnp.dtype("float32")}
    assert (coarse.status == SimulationStatus.FINISHED).all()
    assert_allclose(coarse.q, fine.q, atol=2e-3)
    assert_allclose(coarse.v[:, -1], 0, atol=1e-5)
    assert_allclose(coarse.modes.closed[:, -1], 1)
    assert_allclose(coarse.modes.sliding[:, -1], 0)
