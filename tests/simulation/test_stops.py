"""Stops: rebound, rest, starts beyond a stop, impacts under constraints, and derivatives with respect to limits."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.constraints import ConstrainedMotion, PointClosure
from jaxdyn.joints import Prismatic
from jaxdyn.simulation import Coordinate, Event, Rebound, SimulationStatus, System, joint_stops, simulate
from jaxdyn.spatial import point_mass
from tests.simulation._cases import G, ball

FLOOR = Event(Coordinate(0, jnp.array(0.0)), Rebound(0, jnp.array(0.5)), direction=-1, barrier=True)
OPEN = Event(Coordinate(0, jnp.array(0.0)), Rebound(0, jnp.array(0.5)), direction=-1)
TS = jnp.linspace(0, 1, 11)


def drop(h, v, e, floor):
    floor = eqx.tree_at(lambda f: f.reset.restitution, floor, jnp.asarray(e))
    return simulate(ball(), jnp.array([h]), jnp.array([v]), TS, events=(floor,))


@pytest.mark.slow
@pytest.mark.parametrize("floor", [FLOOR, OPEN], ids=["barrier", "open"])
def test_resting_contact_is_reported_as_a_status(floor):
    fell = drop(1.0, 0.0, 0.0, floor)  # plastic: the ball rests on the floor
    fall = np.sqrt(2 / G)
    assert int(fell.status) == SimulationStatus.HELD and int(fell.events.count) == 1
    assert abs(fell.events.time[0] - fall) < 1e-12
    np.testing.assert_array_equal(fell.reached, fall >= TS)
    np.testing.assert_allclose([fell.q[-1, 0], fell.v[-1, 0]], 0, atol=1e-13)
    with pytest.raises(jd.ConvergenceError, match="HELD: the robot rests against"):
        fell.checked()
    lies = drop(0.0, 0.0, 0.5, floor)
    assert int(lies.status) == SimulationStatus.HELD and int(lies.events.count) == 0
    np.testing.assert_array_equal(lies.reached, TS <= 0)
    # infinitely many bounces in finite time: none is missed, however low
    bounces = drop(1e-3, 0.0, 0.5, floor)
    end = np.sqrt(2e-3 / G) * (1 + 2 * 0.5 / (1 - 0.5))
    assert int(bounces.status) == SimulationStatus.MAX_EVENTS or int(bounces.status) == SimulationStatus.HELD
    assert abs(bounces.events.time[int(bounces.events.count) - 1] - end) < 1e-8


@pytest.mark.slow
def test_starts_beyond_a_barrier():
    beyond = drop(-0.1, 0.0, 0.5, FLOOR)
    assert int(beyond.status) == SimulationStatus.HELD and not beyond.reached[1:].any()
    assert int(drop(-0.1, 0.0, 0.5, OPEN).status) == SimulationStatus.FINISHED  # the floor is never passed downwards
    thrown = drop(0.0, -2.0, 0.5, FLOOR)  # impact at the start, and half of the speed after it
    assert int(thrown.events.count) >= 1 and abs(thrown.events.time[0]) < 1e-12
    assert abs(thrown.events.v[0, 0] - 1.0) < 1e-12
    assert abs(thrown.q[1, 0] - (0.1 - G * 0.01 / 2)) < 1e-10


def test_barriers_without_direction_raise():
    with pytest.raises(jd.ModelError, match="a barrier has direction 0"):
        Event(Coordinate(0, 0.0), barrier=True)
    with pytest.raises(jd.ModelError, match="the restitution of a Rebound is -0.1"):
        Rebound(0, -0.1)


def puck(upper=2.0):
    b = jd.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    b.add_link("puck", "world", Prismatic([1, 0, 0]), point_mass(1.0), lower=-1.0, upper=upper)
    return b.build()


class Push(eqx.Module):
    """A force of 1 N from a time on."""

    late: jax.Array

    def __call__(self, t, q, v):
        return jnp.where(t >= self.late, 1.0, 0.0) * jnp.ones(1)


def slide(model, speed, e, late):
    """From the origin in steps of 0.1 s, with an impact at the end of a step at 2 s; pushed from time `late` on."""
    start, ts = (jnp.zeros(1), speed * jnp.ones(1)), jnp.linspace(0.0, 4.0, 9)
    return simulate(model, *start, ts, effort=Push(jnp.asarray(late)), events=joint_stops(model, e), dt=0.1)


@pytest.mark.slow
def test_plastic_stop_holds_a_joint_until_it_is_pushed():
    rests = slide(puck(), 1.0, 0.0, 9.0)
    assert int(rests.status) == SimulationStatus.FINISHED and int(rests.events.count) == 1
    np.testing.assert_allclose(rests.q[:, 0], np.minimum(rests.t, 2.0), atol=1e-12)
    pushed = slide(puck(), 1.0, 0.0, 3.05)
    assert int(pushed.status) == SimulationStatus.HELD
    np.testing.assert_array_equal(pushed.reached, rests.t <= 3.0)
    np.testing.assert_allclose(pushed.q[-1, 0], 2.0, atol=1e-12)


@pytest.mark.exhaustive
def test_impact_at_the_end_of_a_step_has_derivatives():
    """`t = limit / v`, and `q = limit - e v (T - t)` after it; the limit is a leaf of the model."""
    e, speed, limit = 0.5, 1.0, 2.0

    def impact_and_end(speed, limit):
        tr = slide(eqx.tree_at(lambda m: m.limits.upper, puck(), limit[None]), speed, e, 9.0)
        return jnp.stack([tr.events.time[0], tr.q[-1, 0], tr.v[-1, 0]])

    at = jnp.asarray(speed), jnp.asarray(limit)
    np.testing.assert_allclose(impact_and_end(*at), [2.0, 2.0 - e * 2, -e], atol=1e-12)
    by_speed, by_limit = jax.jacrev(impact_and_end, argnums=(0, 1))(*at)
    np.testing.assert_allclose(by_speed, [-limit / speed**2, -e * 4, -e], atol=1e-12)
    np.testing.assert_allclose(by_limit, [1 / speed, 1 + e, 0], atol=1e-12)


@pytest.mark.exhaustive
def test_traced_and_infinite_limits():
    """One program with an event for each side of each joint; infinite limits never stop the joint."""
    run = jax.jit(lambda m: slide(m, 1.0, 0.5, 9.0).q[-1, 0])
    assert abs(run(puck()) - 1.0) < 1e-12 and abs(run(puck(np.inf)) - 4.0) < 1e-12


@pytest.mark.exhaustive
def test_second_derivative_of_the_time_of_impact():
    def impact(h):
        start = h * jnp.ones(1), jnp.zeros(1)
        return simulate(ball(), *start, TS, events=(FLOOR,), dt=0.05, adjoint=diffrax.ForwardMode()).events.time[0]

    def twice(h):
        slope = jax.jacfwd(impact)(h)
        return slope, slope

    second, first = jax.jacfwd(twice, has_aux=True)(1.0)
    np.testing.assert_allclose([first, second], [(2 * G) ** -0.5, -0.5 * (2 * G) ** -0.5], atol=1e-10)


@pytest.mark.exhaustive
def test_impulses_of_stops_satisfy_the_constraints():
    """A four-bar linkage, and a double pendulum with a fixed tip."""
    m = jd.robots.four_bar()
    q = jd.constraints.assemble(m, jd.constraints.described_constraints(m), jd.neutral(m)).checked().q
    v = ConstrainedMotion().project(m, 0.0, q, jnp.ones(m.nv))[1]
    _, after = Rebound(0, 0.3)(m, 0.0, q, v)
    assert abs(after[0] + 0.3 * v[0]) < 1e-13 * abs(v[0])
    np.testing.assert_allclose(after, -0.3 * v, atol=1e-12)  # one degree of freedom: all velocities reverse
    free = jd.mass_matrix(m, q) @ (Rebound(0, 0.3, jd.dynamics.FreeMotion())(m, 0.0, q, v)[1] - v)
    np.testing.assert_allclose(free[1:], 0, atol=1e-13)
    pinned = System(jd.robots.double_pendulum(), motion=ConstrainedMotion(_pin()))
    stops = (Event(Coordinate(0, 0.5), Rebound(0, 0.3), direction=-1),)
    with pytest.raises(jd.ModelError, match="the ConstrainedMotion of its system has constraints"):
        simulate(pinned, jnp.zeros(2), jnp.zeros(2), TS, events=stops)


def _pin():
    return PointClosure("pin", "world", jd.robots.double_pendulum().link_names[-1])


@pytest.mark.slow
def test_simultaneous_events_and_exactly_max_events():
    """Two marks at one height are passed at once, in the order in which they are given; `max_events` counts both."""
    marks = tuple(Event(Coordinate(0, jnp.array(h))) for h in (0.5, 0.5, 0.2))
    run = lambda cap: simulate(ball(), jnp.ones(1), jnp.zeros(1), jnp.array([0, 0.42]), events=marks, max_events=cap)
    three = run(3)
    np.testing.assert_array_equal(three.events.index, [0, 1, 2])
    times = np.sqrt(2 * (1 - np.array([0.5, 0.5, 0.2])) / G)
    np.testing.assert_allclose(three.events.time, times, atol=1e-12)
    assert int(three.status) == SimulationStatus.MAX_EVENTS and int(three.events.count) == 3
    assert int(run(4).status) == SimulationStatus.FINISHED


@pytest.mark.slow
def test_single_precision_across_an_impact():
    m = ball().astype(jnp.float32)
    one = jnp.ones(1, jnp.float32)
    tr = simulate(m, one, 0 * one, TS.astype(jnp.float32), events=(FLOOR,))
    assert all(x.dtype == jnp.float32 for x in (tr.q, tr.v, tr.events.time, tr.events.v))
    assert abs(tr.events.time[0] - np.sqrt(2 / G)) < 1e-5 and abs(tr.events.v[0, 0] - 0.5 * np.sqrt(2 * G)) < 1e-4
