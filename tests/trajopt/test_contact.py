"""Phases with contact against the contact engine, and planning through contact against its simulation."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn._errors import ModelError
from jaxdyn.contact import Contact, ContactMotion, Coulomb, Gap, Plane, Point
from jaxdyn.joints import Prismatic, Revolute
from jaxdyn.simulation import HeldSignal, SimulationStatus
from jaxdyn.spatial import box, point_mass
from jaxdyn.trajopt import (
    BackwardEuler,
    Bounds,
    ComplementarityRobot,
    ContactRobot,
    Problem,
    SolveStatus,
    Transition,
    VectorField,
    lift_off,
    partial,
    relax_contacts,
    solve,
    solve_through_contact,
    touch_down,
)

from .problems import push


def finger_and_block(mu=0.3):
    """A finger that moves along x, and a block of 2 kg ahead of it on a floor with friction."""
    b = jd.ModelBuilder()
    b.add_link("finger", "world", Prismatic((1, 0, 0)), point_mass(1.0))
    b.add_link("slide", "world", Prismatic((1, 0, 0)))
    model = b.add_link("block", "slide", Prismatic((0, 0, 1)), point_mass(2.0)).build()
    tip = Contact("tip", Gap("block", Point(), "finger", Plane((1, 0, 0))))
    floor = Contact("floor", Gap("block", Point(), "world", Plane()), friction=mu, plane=(0, 1, 0))
    return jd.System(model, motion=ContactMotion((tip, floor)))


def tilting_rod():
    """A rod in the vertical plane with an end on a floor with friction."""
    b = jd.ModelBuilder()
    b.add_link("x", "world", Prismatic((1, 0, 0)))
    b.add_link("z", "x", Prismatic((0, 0, 1)))
    model = b.add_link("rod", "z", Revolute((0, 1, 0)), box([0.1, 0.1, 1.0], mass=1.5)).build()
    end = Contact("end", Gap(("rod", (0, 0, -0.5)), Point(), "world", Plane()), friction=0.4, plane=(0, 1, 0))
    return jd.System(model, motion=ContactMotion(end))


# Default tier


def test_names_and_messages():
    system = finger_and_block()
    held = ContactRobot(system, closed=("floor",), actuated=("finger_joint",))
    assert held.control_names == ("finger_joint", "floor.normal", "floor.friction.0")
    sliding = ContactRobot(system, ("tip", "floor"), {"floor": (1, 0, 0)}, actuated=("finger_joint",))
    assert sliding.control_names == ("finger_joint", "tip.normal", "floor.normal") and sliding.num_forces == 2
    for make, message in (
        (lambda: ContactRobot(system, closed=("wall",)), r"no contacts \['wall'\]; expected names among"),
        (lambda: ContactRobot(system, sliding={"floor": (1, 0, 0)}), r"\['floor'\] slide but are not closed"),
        (
            lambda: ContactRobot(jd.System(system.model)),
            "a ContactRobot has contacts, but the motion of this System is Free",
        ),
        (lambda: lift_off(held, ["tip"]), r"\['tip'\] are open in the phase before"),
        (lambda: touch_down(held, ["wall"]), r"no contacts \['wall'\]"),
        (lambda: relax_contacts(push(), 1.0), "are VectorField, whose contact forces are no free controls"),
        (lambda: solve_through_contact(push(), relaxations=()), "relaxations is empty"),
    ):
        with pytest.raises(ModelError, match=message):
            make()
    assert isinstance(touch_down(held, ["tip"]), Transition) and isinstance(lift_off(held, ["floor"]), Transition)
    rolling: Any = system.motion
    rolling = [dataclasses.replace(c, friction=Coulomb(0.3, rolling=0.1)) for c in rolling.contacts]
    with pytest.raises(ModelError, match="friction against rolling or spinning"):
        ComplementarityRobot(jd.System(system.model, motion=ContactMotion(rolling)))


def test_relaxed_problem_bounds_contact_forces():
    robot = ComplementarityRobot(finger_and_block(), actuated=("finger_joint",))
    names = ("finger_joint", "tip.normal", "floor.normal", "floor.along.0", "floor.against.0", "floor.slip")
    assert robot.control_names == names
    problem = relax_contacts(Problem(robot, 1.0, bounds=Bounds(lower_control=-5.0)), 1e-2)
    np.testing.assert_array_equal(problem.bounds.lower_control, [-5.0, 0, 0, 0, 0, 0])
    assert problem.path[1].upper == 1e-2
    forces = robot.contact_forces(jnp.array([9.0, 1.0, 2.0, 3.0, 5.0, 7.0]))
    np.testing.assert_array_equal(forces, [1.0, 2.0, -2.0])


def test_backward_euler_refuses_rates():
    with pytest.raises(ModelError, match="unbounded rates"):
        solve(push(bounds=Bounds(control_rate=1.0)), transcription=BackwardEuler(), intervals=2)


# Slow: against the engine


@pytest.mark.slow
@pytest.mark.parametrize("slip", [0.0, pytest.param(-0.7, marks=pytest.mark.exhaustive)], ids=["sticks", "slides"])
def test_motion_in_a_phase_is_that_of_the_engine(slip):
    """Forces at which the equations of the phase vanish, and accelerations, equal those of the motion in its modes."""
    system, angle, spin = tilting_rod(), 0.3, 0.8
    sliding = {"end": (np.sign(slip), 0, 0)} if slip else None
    phase = ContactRobot(system, ("end",), sliding, actuated=("rod_joint",))
    # the end at rest, or sliding: x' - 0.5 cos(angle) spin = slip, z' + 0.5 sin(angle) spin = 0
    q = jnp.array([0.2, 0.5 * np.cos(angle), angle])
    v = jnp.array([slip + 0.5 * np.cos(angle) * spin, -0.5 * np.sin(angle) * spin, spin])
    x, torque = jnp.concatenate([q, v]), jnp.array([0.3])

    @jax.jit
    def both(x):
        equation = lambda y: phase.constrained(0.0, x, jnp.concatenate([torque, y]))
        at_zero = equation(jnp.zeros(phase.num_forces)).forces
        slope = jax.jacfwd(lambda y: equation(y).forces)(jnp.zeros(phase.num_forces))
        u = jnp.concatenate([torque, -jnp.linalg.solve(slope, at_zero)])
        motion: Any = system.motion
        effort = jnp.array([0.0, 0.0, 0.3])
        held = motion.in_modes(phase.modes)
        a = held.acceleration(system.model, 0.0, q, v, effort, None)
        state = held.contact_state(system.model, 0.0, q, v, effort, None)
        margins = phase.limits_of_modes().rows(0.0, x, u)
        y = phase.unknowns(0.0, x, u)
        rest = phase.implicit(0.0, x, u, y)[1]
        return phase.rate(0.0, x, u)[3:] - a, phase.contact_forces(0.0, x, u), state, margins, rest

    error, forces, state, margins, rest = both(x)
    np.testing.assert_allclose(error, 0, atol=1e-10)
    np.testing.assert_allclose(rest, 0, atol=1e-10)
    np.testing.assert_allclose(forces[0], state.normal_force[0], rtol=1e-10)
    np.testing.assert_allclose(abs(forces[1]), abs(state.friction[0, 0]), rtol=1e-10)
    cone = 0.4 * forces[0]
    expected = [forces[0], abs(slip)] if slip else [forces[0], cone - forces[1], cone + forces[1]]
    np.testing.assert_allclose(margins, expected, atol=1e-10)
    if slip:
        assert state.friction[0, 0] > 0  # against the slip


# Exhaustive: planning


def _mass(t, x, u, m):
    return jnp.stack([x[1], u[0] / m])


def _effort(t, x, u):
    return u[0] ** 2


@pytest.mark.exhaustive
def test_backward_euler_reaches_its_quadratic_program():
    """Least integral of u^2 from rest to rest: with n constant controls the rows of `x_n` and `v_n` are linear in u."""
    n, m, d = 8, 2.0, 1.5
    h = 1 / n
    rows = np.stack([h**2 * np.arange(n, 0, -1), np.full(n, h)]) / m
    u = rows.T @ np.linalg.solve(rows @ rows.T, [d, 0])
    field = VectorField(_mass, ("p", "v"), ("u",), jnp.asarray(m))
    problem = Problem(field, 1.0, start=jnp.zeros(2), end=jnp.array([d, 0.0]), running=_effort)
    found = solve(problem, transcription=BackwardEuler(), intervals=n).checked()
    np.testing.assert_allclose(found.u[:-1, 0], u, atol=1e-8)
    np.testing.assert_allclose(found.cost, h * u @ u, rtol=1e-9)


@pytest.mark.exhaustive
def test_finger_pushes_a_block_to_its_goal():
    """The finger has to reach the block, hit it, and push it until it stops; no contact is prescribed or guessed."""
    n, system = 20, finger_and_block()
    robot = ComplementarityRobot(system, actuated=("finger_joint",))
    start, goal = jnp.array([0.0, 0.1, 0.0, 0.0, 0.0, 0.0]), partial([0.4, 0.0], [1, 4])
    plan = solve_through_contact(Problem(robot, 1.0, start=start, end=goal, running=_effort), intervals=n)
    assert (np.asarray(plan.statuses) == SolveStatus.SOLVED).all()
    assert (np.asarray(plan.products) < 1.001 * np.asarray(plan.relaxations)).all() and plan.complementarity < 1.001e-6
    found = plan.solution
    gap, tip = np.asarray(found.x[1:, 1] - found.x[1:, 0]), np.asarray(found.u[:-1, 1])
    assert gap.min() > -1e-7 and tip.min() > -1e-9
    assert (gap[:2] > 0.01).all() and tip.max() > 20  # it starts apart, and hits
    law = HeldSignal(jnp.zeros((n, 3)).at[:, 0].set(found.u[:-1, 0]), 1 / n)
    run = jd.simulate(system, start[:3], start[3:], found.t, effort=law)
    assert run.status == SimulationStatus.FINISHED
    hit = run.phases.time[1]
    assert abs(hit - found.t[1:][tip > 20][0]) < 1.5 / n
    # of first order: twice as many intervals halve the error
    assert np.abs(run.q - found.x[:, :3]).max() < 1 / n
    np.testing.assert_allclose(run.v[-1], 0, atol=1e-3)
