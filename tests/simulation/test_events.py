"""Events: times, order, resets, and derivatives across them."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.simulation import Coordinate, Event, Rebound, SimulationStatus, joint_stops, simulate
from tests.simulation._cases import G, ball, state, wheeled

E = 0.9
FIRST, SPEED, END = 0.4515236409857308, -4.4294469180700, 8.578949178728887
FLOOR = Event(Coordinate(0, jnp.array(0.0)), Rebound(0, jnp.array(E)), direction=-1)
TS = jnp.linspace(0, 1, 11)


def drop(h, v=0.0, ts=TS, events=(FLOOR,), **options):
    return simulate(ball(), jnp.array([1.0]) * h, jnp.array([1.0]) * v, ts, events=events, **options)


@pytest.mark.slow
def test_first_impact():
    tr = drop(1.0, dt=0.3)
    assert abs(tr.events.time[0] - FIRST) < 1e-12
    assert abs(tr.events.v_before[0, 0] - SPEED) < 1e-11
    assert abs(tr.events.v[0, 0] + E * SPEED) < 1e-11
    assert int(tr.events.count) == 1 and int(tr.events.index[0]) == 0 and int(tr.events.index[1]) == -1
    after = TS > FIRST
    t = TS - FIRST
    want = np.where(after, -E * SPEED * t - G * t * t / 2, 1 - G * TS * TS / 2)
    np.testing.assert_allclose(tr.q[:, 0], want, atol=1e-11)


@pytest.mark.slow
def test_derivative_of_the_time_of_impact():
    slope = jax.grad(lambda h: drop(h).events.time[0])(1.0)
    assert abs(slope - 1 / np.sqrt(2 * G)) < 1e-12 and abs(slope - 0.22576182049286544) < 1e-12
    in_gravity = jax.grad(
        lambda g: simulate(
            eqx.tree_at(lambda m: m.gravity, ball(), jnp.array([0, 0, -1.0]) * g),
            jnp.ones(1),
            jnp.zeros(1),
            TS,
            events=(FLOOR,),
        ).events.time[0]
    )(G)
    assert abs(in_gravity + FIRST / (2 * G)) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(
    "adjoint", [diffrax.RecursiveCheckpointAdjoint(), diffrax.ForwardMode()], ids=["reverse", "forward"]
)
def test_saltation_matrix(adjoint):
    """Just after the impact the derivative of the state is that before, times `[[-e, 0], [-(1 + e) g / v, -e]]`."""
    t = FIRST + 1e-9

    def final(x):
        tr = drop(x[0], x[1], jnp.array([0.0, t]), adjoint=adjoint)
        return jnp.stack([tr.q[-1, 0], tr.v[-1, 0]])

    mode = jax.jacfwd if isinstance(adjoint, diffrax.ForwardMode) else jax.jacrev
    before = np.array([[1, FIRST], [0, 1]])
    jump = np.array([[-E, 0], [-(1 + E) * G / SPEED, -E]])
    np.testing.assert_allclose(mode(final)(jnp.array([1.0, 0.0])), jump @ before, atol=1e-7)


@pytest.mark.slow
def test_accumulation_ends_with_a_status():
    tr = drop(1.0, ts=jnp.array([0.0, 5.0, 10.0]), max_events=200)
    assert int(tr.status) == SimulationStatus.MAX_EVENTS and int(tr.events.count) == 200
    # what is left of the geometric series after n impacts
    left = 2 * E**200 * FIRST / (1 - E)
    assert abs(tr.events.time[-1] + left - END) < 1e-8
    np.testing.assert_array_equal(tr.reached, [True, True, False])
    with pytest.raises(jd.ConvergenceError, match="raise max_events"):
        tr.checked()


@pytest.mark.slow
def test_a_terminal_event_ends_the_motion():
    end = Event(Coordinate(0, jnp.array(0.0)), terminal=True)
    tr = drop(1.0, events=(end,), ts=jnp.array([0.0, 0.3, 0.6]))
    assert int(tr.status) == SimulationStatus.EVENT
    np.testing.assert_array_equal(tr.reached, [True, True, False])
    assert abs(tr.v[-1, 0] - SPEED) < 1e-11  # the last state is repeated


@pytest.mark.slow
def test_the_earliest_of_several_in_one_step_comes_first():
    """Listed in the wrong order, crossed within one step of constant length."""
    marks = tuple(Event(Coordinate(0, jnp.array(h))) for h in (0.3, 0.7, 0.5))
    tr = drop(1.0, events=marks, ts=jnp.array([0.0, 0.4]), dt=0.4)
    np.testing.assert_array_equal(tr.events.index[:4], [1, 2, 0, -1])
    np.testing.assert_allclose(tr.events.time[:3], np.sqrt(2 * (1 - np.array([0.7, 0.5, 0.3])) / G), atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [0.2, 1e-2, 1e-4])
def test_two_roots_in_one_step(depth):
    """Thrown up just above a mark within one step: the sign at both ends of the step is the same."""
    mark = Event(Coordinate(0, jnp.array(1.0 - depth)), direction=0)
    tr = simulate(ball(), jnp.zeros(1), jnp.array([np.sqrt(2 * G)]), jnp.array([0.0, 0.9]), events=(mark,), dt=0.9)
    half = np.sqrt(2 * depth / G)
    top = np.sqrt(2 / G)
    assert int(tr.events.count) == 2
    np.testing.assert_allclose(tr.events.time[:2], [top - half, top + half], atol=1e-10)


def test_a_comparison_is_refused():
    with pytest.raises(jd.ModelError, match="bool.*no root and no derivative"):
        drop(1.0, events=(Event(_below),))
    with pytest.raises(jd.ModelError, match="direction of an event is 2"):
        Event(Coordinate(0, 0.0), direction=2)


def _below(model, t, q, v):
    return q[0] < 0


@pytest.mark.slow
def test_joint_stops():
    b = jd.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    b.add_link("puck", "world", jd.joints.Prismatic([1, 0, 0]), jd.spatial.point_mass(1.0), lower=-1.0, upper=2.0)
    m = b.build()
    stops = joint_stops(m, 0.5)
    assert len(stops) == 2
    tr = simulate(m, jnp.zeros(1), jnp.ones(1), jnp.array([0.0, 10.0]), events=stops)
    np.testing.assert_allclose(tr.events.time[:2], [2.0, 8.0], atol=1e-10)
    np.testing.assert_array_equal(tr.events.index[:2], [1, 0])


@pytest.mark.slow
def test_a_stop_without_loss_keeps_the_energy():
    m = jd.robots.double_pendulum()
    q, v = jnp.array([0.4, -0.9]), jnp.array([1.0, -2.0])
    _, after = Rebound(1, jnp.array(1.0))(m, 0.0, q, v)
    assert abs(after[1] - 2.0) < 1e-14 and abs(after[0] - v[0]) > 0.1
    energies = [jd.kinetic_energy(m, q, x) for x in (v, after)]
    assert abs(energies[0] - energies[1]) < 1e-12
    # no impulse on the other joint
    jump = jd.mass_matrix(m, q) @ (after - v)
    assert abs(jump[0]) < 1e-12 < abs(jump[1])


@pytest.mark.slow
@pytest.mark.wide
def test_events_on_manifolds_and_in_batches():
    """The base of a wheeled arm passes a line; each sample of a batch at its own time."""
    m = wheeled()
    q, v = state(m)
    v = v.at[0].set(2.0)
    line = Event(_line)

    def passage(speed):
        tr = simulate(m, q, v.at[0].set(speed), jnp.array([0.0, 0.3]), events=(line,), rtol=1e-10, atol=1e-10)
        return tr.events.time[0], tr.events.q[0], tr.events.count

    times, at, counts = jax.vmap(passage)(jnp.array([2.0, 3.0]))
    assert (np.asarray(counts) == 1).all() and abs(times[0] - times[1]) > 1e-3
    start = _line(m, 0.0, q, v)
    for x in at:
        assert abs(_line(m, 0.0, x, v)) < 1e-12 < abs(start)
    slope = jax.grad(lambda s: passage(s)[0])(2.0)
    numeric = (passage(2.0 + 1e-4)[0] - passage(2.0 - 1e-4)[0]) / 2e-4
    assert abs(slope - numeric) < 1e-6 * abs(numeric) + 1e-7


def _line(model, t, q, v):
    along = jd.configuration_velocity(model, LINE_Q, LINE_V)[:2]
    return (q[:2] - LINE_Q[:2]) @ along / jnp.linalg.norm(along) - 0.2


LINE_Q, LINE_V = state(wheeled())
LINE_V = LINE_V.at[0].set(2.0)
