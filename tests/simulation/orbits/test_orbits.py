"""Periodic orbits with closed forms: forced, impacting and self-excited oscillators; statuses and derivatives."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.joints import Prismatic
from jaxdyn.simulation import Event, Feedback, OrbitStatus, SimulationStatus, State, System, periodic_orbit, simulate
from jaxdyn.simulation.orbits._return import Return
from jaxdyn.simulation.orbits._sensitivity import ReturnProblem, find_fixed_point
from jaxdyn.simulation.system import part_layout
from jaxdyn.spatial import point_mass

FORWARD = diffrax.ForwardMode()
TIGHT = {"rtol": 1e-12, "atol": 1e-12, "adjoint": FORWARD}
FREQUENCY = 1.5


def _slider(axis=(1.0, 0.0, 0.0), **properties):
    return jd.ModelBuilder().add_link("mass", "world", Prismatic(axis), point_mass(1.0), **properties).build()


def _one_period(system, state, force):
    push = lambda t, q, v: force * jnp.cos(FREQUENCY * t)[None]
    ts = jnp.array([0.0, 2 * jnp.pi / FREQUENCY])
    return simulate(system, state.q, state.v, ts, effort=push, dt=0.01, adjoint=FORWARD)


def _forced(numbers):
    stiffness, damping, force = numbers
    model = _slider(stiffness=stiffness, damping=damping)
    orbit = periodic_orbit(_one_period, model, State(jnp.zeros(1), jnp.zeros(1)), force)
    values = jnp.concatenate([orbit.state.q, orbit.state.v, orbit.period[None]])
    return values, (values, orbit.multipliers, orbit.status, orbit.is_stable)


def test_forced_oscillation_and_its_derivatives():
    numbers = jnp.array([4.0, 0.6, 0.3])
    slopes, (values, multipliers, status, is_stable) = jax.jit(jax.jacrev(_forced, has_aux=True))(numbers)
    k, c, f = np.asarray(numbers)
    response = 1 / (k - FREQUENCY**2 + 1j * FREQUENCY * c)
    waves = f * response * np.array([1, 1j * FREQUENCY])
    period = 2 * np.pi / FREQUENCY
    assert status == OrbitStatus.CONVERGED and is_stable
    np.testing.assert_allclose(values, [*np.real(waves), period], atol=1e-11)
    by_numbers = np.real(np.array([-waves * response, -1j * FREQUENCY * waves * response, waves / f]).T)
    np.testing.assert_allclose(slopes, [*by_numbers, np.zeros(3)], atol=1e-10)
    roots = np.exp(period * np.roots([1, c, k]))
    np.testing.assert_allclose(np.sort_complex(multipliers), np.sort_complex(roots), atol=1e-11)


@pytest.mark.slow
def test_second_derivatives_of_a_fixed_point():
    """`(q, v) -> (p0 v + p1, v / 2 + p0^2)` in the time `p0 v` has the fixed point `(2 p0^3 + p1, 2 p0^2)`."""
    system = System(_slider())
    layout = part_layout(system, "a test")

    def evaluate(numbers, state):
        ((a, b),) = numbers
        v = state.v[0]
        end = State((a * v + b)[None], (v / 2 + a**2)[None])
        return Return(end, a * v, jnp.asarray(True), jnp.asarray(int(SimulationStatus.EVENT)))

    problem = ReturnProblem(evaluate, lambda numbers: system, layout, 2)
    guess = State(jnp.zeros(1), jnp.zeros(1))

    def fixed_point(p):
        state, time, _ = find_fixed_point(problem, [p], guess, jnp.asarray(1e-8), jnp.asarray(10))
        return jnp.stack([state.q[0], state.v[0], time])

    p = jnp.array([0.7, -0.4])
    np.testing.assert_allclose(fixed_point(p), [2 * 0.7**3 - 0.4, 2 * 0.7**2, 2 * 0.7**3], atol=1e-14)
    slopes, second = jax.jit(lambda p: (jax.jacrev(fixed_point)(p), jax.jacfwd(jax.jacrev(fixed_point))(p)))(p)
    np.testing.assert_allclose(slopes, [[6 * 0.7**2, 1], [4 * 0.7, 0], [6 * 0.7**2, 0]], atol=1e-14)
    expected = np.zeros((3, 2, 2))
    expected[:, 0, 0] = 12 * 0.7, 4, 12 * 0.7
    np.testing.assert_allclose(second, expected, atol=1e-13)


def _height(model, t, q, v):
    return q[0]


def _bounce(system, state, restitution, kick, horizon):
    racket = lambda model, t, q, v: (q, -restitution * v + kick)
    events = (Event(_height, racket, terminal=True, direction=-1),)
    return simulate(system, state.q, state.v, jnp.array([0.0, 1.0]) * horizon, events=events, max_events=1, **TIGHT)


@jax.jit
def _juggled(numbers, horizon, start):
    """A ball that a racket returns with `v+ = -e v- + u`."""
    restitution, kick, gravity = numbers
    ball = jd.ModelBuilder(gravity=jnp.array([0.0, 0.0, -1.0]) * gravity)
    ball = ball.add_link("ball", "world", Prismatic((0, 0, 1)), point_mass(1.0)).build()
    guess = State(jnp.array([0.1]), start[None])
    return periodic_orbit(_bounce, ball, guess, restitution, kick, horizon)


@jax.jit
@jax.vmap
def _juggled_values(numbers, horizon, start):
    def values(numbers):
        orbit = _juggled(numbers, horizon, start)
        return jnp.stack([orbit.state.v[0], orbit.period]), orbit

    return *values(numbers), jax.jacfwd(lambda numbers: values(numbers)[0])(numbers)


@pytest.mark.exhaustive
def test_impacts_and_statuses():
    """One program for an orbit, a ball that comes down too late, a multiplier of 1, and NaN."""
    numbers = jnp.array([[0.8, 1.0, 9.81], [0.8, 1.0, 9.81], [1.0, 0.5, 9.81], [0.7, jnp.nan, 9.81]])
    values, orbit, slopes = _juggled_values(numbers, jnp.array([5.0, 0.3, 50.0, 5.0]), 3.0 * jnp.ones(4))
    code = OrbitStatus
    np.testing.assert_array_equal(orbit.status, [code.CONVERGED, code.NO_RETURN, code.STUCK, code.NO_RETURN])
    assert orbit.simulation[1] == jd.SimulationStatus.FINISHED
    e, u, g = np.asarray(numbers[0])
    speed = u / (1 - e)
    np.testing.assert_allclose(values[0], [speed, 2 * speed / g], atol=1e-10)
    by_e, by_u = speed / (1 - e), 1 / (1 - e)
    period = [2 * by_e / g, 2 * by_u / g, -2 * speed / g**2]
    np.testing.assert_allclose(slopes[0], [[by_e, by_u, 0], period], atol=1e-9)
    np.testing.assert_allclose(orbit.multipliers[0], [e, 0], atol=1e-10)
    np.testing.assert_allclose(orbit.jacobian[0, 1], [e * g / speed, e], atol=1e-10)
    assert orbit.is_stable[0] and not orbit.is_stable[1:].any()
    np.testing.assert_array_equal(slopes[1:], 0)  # failures have finite derivatives
    with pytest.raises(jd.ConvergenceError, match=r"3 of 4 .*NO_RETURN, STUCK.*FINISHED"):
        orbit.checked()


@pytest.mark.exhaustive
def test_derivatives_of_multipliers():
    """Second derivatives of a motion with an impact at its fixed point, in both modes."""
    e, u, g = numbers = jnp.array([0.8, 1.0, 9.81])
    jacobian = lambda numbers: _juggled(numbers, 5.0, jnp.array(3.0)).jacobian[1]
    speed = u / (1 - e)
    by_e = g / speed - e * g / speed**2 * speed / (1 - e)
    expected = [[by_e, -e * g / speed**2 / (1 - e), e / speed], [1, 0, 0]]
    np.testing.assert_allclose(jax.jit(jax.jacrev(jacobian))(numbers), expected, atol=1e-8)
    multiplier = lambda numbers: _juggled(numbers, 5.0, jnp.array(3.0)).multipliers[0].real
    np.testing.assert_allclose(jax.jit(jax.jacfwd(multiplier))(numbers), [1, 0, 0], atol=1e-8)


def _van_der_pol(system, state):
    """Half a turn without, and the rest with the section `v = 0`, downwards."""
    crossing = (Event(lambda model, t, q, v: v[0], terminal=True, direction=-1),)
    first = simulate(system, state.q, state.v, jnp.array([0.0, 3.0]), **TIGHT)
    last = first.last
    return first, simulate(system, last.q, last.v, jnp.array([3.0, 12.0]), events=crossing, max_events=1, **TIGHT)


@pytest.mark.exhaustive
def test_two_phases_of_a_self_excited_oscillation():
    law = Feedback(lambda t, q, v: (1 - q**2) * v - q)
    orbit = periodic_orbit(_van_der_pol, System(_slider(), (law,)), State(jnp.array([2.0]), jnp.zeros(1)))
    assert orbit.status == OrbitStatus.CONVERGED and orbit.is_stable
    # period of Andersen and Geer, "Power series expansions for the frequency and period of the limit cycle of the van
    # der Pol equation", SIAM J. Applied Mathematics 42(3), 1982
    np.testing.assert_allclose(orbit.period, 6.66328685932, atol=1e-9)
    np.testing.assert_allclose(orbit.state.q, 2.00861986087, atol=1e-9)
    np.testing.assert_allclose(orbit.multipliers[1], 0, atol=1e-9)
    assert 8e-4 < orbit.multipliers[0].real < 9e-4


def _reverse_only(system, state):
    return simulate(system, state.q, state.v, jnp.array([0.0, 0.1]), dt=0.1)


def test_wrong_arguments_raise():
    model, guess = _slider(), State(jnp.zeros(1), jnp.zeros(1))
    with pytest.raises(jd.ModelError, match=r"ForwardMode"):
        periodic_orbit(_reverse_only, model, guess)
    with pytest.raises(jd.ModelError, match=r"returns an array of shape \(1,\); expected the Trajectory"):
        periodic_orbit(lambda system, state: state.q, model, guess)


@pytest.mark.usefixtures("without_annotations")
def test_wrong_kinds_raise():
    model, guess = _slider(), State(jnp.zeros(1), jnp.zeros(1))
    with pytest.raises(jd.ArgumentError, match="guess is an array"):
        periodic_orbit(_one_period, model, guess.q, 0.1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(jd.ArgumentError, match="returns is 0"):
        periodic_orbit(_one_period, model, guess, 0.1, returns=0)
