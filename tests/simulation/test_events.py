"""Events: times, order, resets, and derivatives across events."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.joints import Prismatic
from jaxdyn.simulation import Coordinate, Event, JointLimit, Rebound, SimulationStatus, joint_stops, simulate
from jaxdyn.spatial import point_mass
from tests.simulation._cases import G, ball, state, wheeled_arm

E = 0.9
FIRST, SPEED, END = 0.4515236409857308, -4.4294469180700, 8.578949178728887


def drop(h, v=0.0, ts=(0.0, 0.5, 1.0), floor=0.0, mark=-50.0, e=E, dt=0.3):
    """A ball above a floor, and an event at a mark in the air, listed after the floor; one program for all numbers."""
    number = lambda x: jnp.array(float(x))
    bottom = Event(Coordinate(0, number(floor)), Rebound(0, number(e)), direction=-1)
    events = bottom, Event(Coordinate(0, number(mark)))
    start = jnp.full(1, float(h)), jnp.full(1, float(v))
    return simulate(ball(), *start, jnp.array(ts), events=events, dt=number(dt), max_events=8)


def flight(h, v, times):
    """Times at which a ball thrown from height h is at height 0, in order."""
    return sorted(t for t in np.roots([-G / 2, v, h]).real if t > 0)[:times]


@pytest.mark.slow
def test_first_impact():
    ts = np.linspace(0, 1, 3)
    tr = drop(1.0)
    assert abs(tr.events.time[0] - FIRST) < 1e-12
    assert abs(tr.events.v_before[0, 0] - SPEED) < 1e-11
    assert abs(tr.events.v[0, 0] + E * SPEED) < 1e-11
    assert int(tr.events.count) == 1 and int(tr.events.index[0]) == 0 and int(tr.events.index[1]) == -1
    t = ts - FIRST
    want = np.where(t > 0, -E * SPEED * t - G * t * t / 2, 1 - G * ts * ts / 2)
    np.testing.assert_allclose(tr.q[:, 0], want, atol=1e-11)


@pytest.mark.slow
def test_several_events_in_one_step_happen_in_the_order_of_time():
    """In one fixed step down past the mark, off the floor, and past the mark twice."""
    tr = drop(1.0, ts=(0.0, 0.6, 1.2), mark=0.5, dt=1.2)
    rise = -E * SPEED
    times = [np.sqrt(1 / G), FIRST, *(FIRST + np.array(flight(-0.5, rise, 2)))]
    np.testing.assert_array_equal(tr.events.index[:5], [1, 0, 1, 1, -1])
    np.testing.assert_allclose(tr.events.time[:4], times, atol=1e-12)
    assert int(tr.status) == SimulationStatus.FINISHED


@pytest.mark.slow
@pytest.mark.parametrize("depth", [0.2, 1e-2, 1e-4])
def test_two_roots_in_one_step(depth):
    """A throw just above a mark within one step: the condition has the same sign at both ends of the step."""
    tr = drop(0.0, np.sqrt(2 * G), ts=(0.0, 0.5, 0.9), floor=-50.0, mark=1.0 - depth, dt=0.9)
    half, top = np.sqrt(2 * depth / G), np.sqrt(2 / G)
    assert int(tr.events.count) == 2
    np.testing.assert_allclose(tr.events.time[:2], [top - half, top + half], atol=1e-10)


@pytest.mark.slow
def test_max_events_is_reported_as_a_status():
    """Times between impacts are a geometric series."""
    tr = drop(1.0, ts=(0.0, 5.0, 10.0))
    assert int(tr.status) == SimulationStatus.MAX_EVENTS and int(tr.events.count) == 8
    times = FIRST + 2 * FIRST * np.cumsum(E ** np.arange(1, 8))
    np.testing.assert_allclose(tr.events.time, [FIRST, *times], atol=1e-11)
    assert abs(tr.events.time[-1] + 2 * FIRST * E**8 / (1 - E) - END) < 1e-11  # the rest of the series
    np.testing.assert_array_equal(tr.reached, [True, False, False])
    with pytest.raises(jd.ConvergenceError, match="raise max_events"):
        tr.checked()


def ball_with_limit(x):
    """The ball with the floor as the limit of its slide, in the gravity of x."""
    b = jd.ModelBuilder(gravity=(0.0, 0.0, -x["g"]))
    return b.add_link("ball", "world", Prismatic([0, 0, 1]), point_mass(x["mass"]), lower=x["floor"]).build()


def event_times_and_end(x, ts, dt, count=2, **options):
    """Times at which the ball passes the mark (unless count is 1) and meets the floor, and the final state."""
    floor = Event(JointLimit(0), Rebound(0, x["e"]), direction=-1, barrier=True)
    events = (floor, Event(Coordinate(0, x["mark"])))[:count]
    start = x["h"][None], x["v"][None]
    tr = simulate(ball_with_limit(x), *start, ts, events=events, dt=dt, max_events=4, max_steps=64, **options)
    return jnp.stack([*tr.events.time[:count], tr.q[-1, 0], tr.v[-1, 0]])


def closed_form(x, ts):
    """The same by the equations of free fall."""
    fall = lambda height: (x["v"] + jnp.sqrt(x["v"] ** 2 + 2 * x["g"] * (x["h"] - height))) / x["g"]
    mark, floor = fall(x["mark"]), fall(x["floor"])
    up, left = -x["e"] * (x["v"] - x["g"] * floor), ts[-1] - floor
    return jnp.stack([mark, floor, x["floor"] + up * left - x["g"] * left**2 / 2, up - x["g"] * left])


def throw(**given):
    numbers = {"h": 1.0, "v": 0.0, "g": G, "floor": 0.1, "e": 0.5, "mark": 0.6, "mass": 2.0} | given
    return {name: jnp.array(x) for name, x in numbers.items()}


#: the impact within a step; in one step with the mark; exactly at the end of a step; the mark at the end of a step
THROWS = [
    (throw(), (0.0, 0.3, 0.6), 0.05),
    (throw(v=0.4), (0.0, 0.3, 0.6), 0.6),
    (throw(h=0.1 + G * 0.16 / 2), (0.0, 0.3, 0.6), 0.1),
    (throw(h=0.6 + G * 0.04 / 2), (0.0, 0.3, 0.6), 0.1),
]


@pytest.mark.slow("forward")
@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_derivatives_of_event_times_and_of_the_state_after_events(mode):
    """With respect to the initial state, gravity, joint limit, restitution and mark."""

    @jax.jit
    def row(w, x, ts, dt):
        return jax.value_and_grad(lambda x: w @ event_times_and_end(x, ts, dt, count=1))(x)

    @jax.jit
    def column(w, x, ts, dt):
        return jax.jvp(lambda x: event_times_and_end(x, ts, dt, adjoint=diffrax.ForwardMode()), (x,), (w,))

    for x, ts, dt in THROWS:
        args = x, jnp.array(ts), jnp.array(dt)
        want = jax.jacfwd(closed_form)(x, jnp.array(ts))
        if mode == "reverse":
            rows = [row(w, *args)[1] for w in jnp.eye(3)]
            want = jax.tree.map(lambda column: column[1:], want)  # without the mark, to compile faster
            got = {name: jnp.stack([r[name] for r in rows]) for name in x}
        else:
            got = {name: column({k: jnp.array(float(k == name)) for k in x}, *args)[1] for name in x}
        for name in x:
            np.testing.assert_allclose(got[name], want[name], atol=1e-10, err_msg=name)


@pytest.mark.slow
def test_terminal_event_ends_the_simulation():
    end = Event(Coordinate(0, jnp.array(0.0)), terminal=True)
    tr = simulate(ball(), jnp.ones(1), jnp.zeros(1), jnp.array([0.0, 0.3, 0.6]), events=(end,))
    assert int(tr.status) == SimulationStatus.EVENT
    np.testing.assert_array_equal(tr.reached, [True, True, False])
    assert abs(tr.v[-1, 0] - SPEED) < 1e-11  # the last state is repeated


def test_comparisons_as_conditions_raise():
    with pytest.raises(jd.ModelError, match="bool.*no root and no derivative"):
        simulate(ball(), jnp.ones(1), jnp.zeros(1), jnp.array([0.0, 1.0]), events=(Event(_below),))
    with pytest.raises(jd.ModelError, match="direction of an event is 2"):
        Event(Coordinate(0, 0.0), direction=2)


def _below(model, t, q, v):
    return q[0] < 0


@pytest.mark.exhaustive
def test_joint_stops_at_both_limits():
    b = jd.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    b.add_link("puck", "world", jd.joints.Prismatic([1, 0, 0]), jd.spatial.point_mass(1.0), lower=-1.0, upper=2.0)
    m = b.build()
    stops = joint_stops(m, 0.5)
    assert len(stops) == 2
    tr = simulate(m, jnp.zeros(1), jnp.ones(1), jnp.array([0.0, 10.0]), events=stops)
    np.testing.assert_allclose(tr.events.time[:2], [2.0, 8.0], atol=1e-10)
    np.testing.assert_array_equal(tr.events.index[:2], [1, 0])


@pytest.mark.slow
def test_rebound_with_restitution_one_conserves_energy():
    m = jd.robots.double_pendulum()
    q, v = jnp.array([0.4, -0.9]), jnp.array([1.0, -2.0])
    _, after = Rebound(1, jnp.array(1.0))(m, 0.0, q, v)
    assert abs(after[1] - 2.0) < 1e-14 and abs(after[0] - v[0]) > 0.1
    energies = [jd.kinetic_energy(m, q, x) for x in (v, after)]
    assert abs(energies[0] - energies[1]) < 1e-12
    # no impulse on the other joint
    jump = jd.mass_matrix(m, q) @ (after - v)
    assert abs(jump[0]) < 1e-12 < abs(jump[1])


@pytest.mark.exhaustive
def test_events_on_manifolds_and_in_batches():
    """The base of a wheeled arm passes a line, at different times in each sample of a batch."""
    m = wheeled_arm()
    q, v = state(m)
    v = v.at[0].set(2.0)
    line = jax.tree_util.Partial(_line, q, v)

    def passage(speed):
        tr = simulate(m, q, v.at[0].set(speed), jnp.array([0.0, 0.3]), events=(Event(line),), rtol=1e-10, atol=1e-10)
        return tr.events.time[0], tr.events.q[0], tr.events.count

    times, at, counts = jax.vmap(passage)(jnp.array([2.0, 3.0]))
    assert (np.asarray(counts) == 1).all() and abs(times[0] - times[1]) > 1e-3
    start = line(m, 0.0, q, v)
    for x in at:
        assert abs(line(m, 0.0, x, v)) < 1e-12 < abs(start)
    slope = jax.grad(lambda s: passage(s)[0])(2.0)
    numeric = (passage(2.0 + 1e-4)[0] - passage(2.0 - 1e-4)[0]) / 2e-4
    assert abs(slope - numeric) < 1e-6 * abs(numeric) + 1e-7


def _line(start, velocity, model, t, q, v):
    along = jd.configuration_velocity(model, start, velocity)[:2]
    return (q[:2] - start[:2]) @ along / jnp.linalg.norm(along) - 0.2
