"""Efforts and wrenches from outside, parts with states, sampled controllers, and motions."""

import itertools
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import jaxdyn as jd
from jaxdyn.dynamics import AbstractMotion, AbstractPart, Action
from jaxdyn.simulation import (
    Effort,
    Event,
    Feedback,
    HeldSignal,
    SampledFeedback,
    Signal,
    System,
    Wrench,
    cubic_signal,
    linear_signal,
    simulate,
)
from tests.simulation._cases import ball, floating, state


def free_mass():
    """A mass of 1 kg without gravity: `a = f`."""
    return eqx.tree_at(lambda m: m.gravity, ball(), jnp.zeros(3))


ZERO, ONE = jnp.zeros(1), jnp.ones(1)
TS = jnp.array([0.0, 0.5, 1.0])


def spring(t, q, v):
    return -4.0 * q


@pytest.mark.exhaustive
def test_constants_laws_signals_and_wrenches_exert_the_same_force():
    m = free_mass()
    wanted = 3.0 * TS**2 / 2
    table = (jnp.array([0.0, 2.0]), jnp.full((2, 1), 3.0))
    inputs = [
        jnp.array([3.0]),
        Effort(jnp.array([3.0])),
        lambda t, q, v: 3.0 + 0 * v,
        linear_signal(*table),
        cubic_signal(*table),
    ]
    for effort in inputs:
        np.testing.assert_allclose(simulate(m, ZERO, ZERO, TS, effort=effort).q[:, 0], wanted, atol=1e-11)
    tr = simulate(System(m, (Wrench("ball", [0, 0, 0, 0, 0, 3.0]),)), ZERO, ZERO, TS)
    np.testing.assert_allclose(tr.q[:, 0], wanted, atol=1e-11)
    np.testing.assert_allclose(tr.power, 3.0 * tr.v[:, 0], atol=1e-12)


@pytest.mark.slow
def test_signals_interpolate_their_tables():
    times = jnp.array([0.0, 0.25, 0.5, 1.0])
    efforts = jnp.array([[0.0], [1.0], [0.0], [2.0]])
    # the integral of straight lines; fixed steps end at the corners
    tr = simulate(free_mass(), ZERO, ZERO, TS, effort=linear_signal(times, efforts), dt=0.125)
    np.testing.assert_allclose(tr.v[:, 0], [0, 0.25, 0.75], atol=1e-12)
    cubic = cubic_signal(times, efforts).path
    np.testing.assert_allclose(jax.vmap(cubic.evaluate)(times), efforts, atol=1e-14)
    with pytest.raises(jd.ShapeError, match="times of shape"):
        linear_signal(times[:1], efforts[:1])
    path = diffrax.LinearInterpolation(times, efforts)
    np.testing.assert_allclose(Signal(path).act(free_mass(), 0.125, ZERO, ZERO, None).effort, [0.5], atol=1e-14)


@pytest.mark.slow("fixed")
@pytest.mark.parametrize("options", [{}, {"dt": 0.07}], ids=["adaptive", "fixed"])
def test_held_signal_changes_exactly_at_its_instants(options):
    held = HeldSignal(jnp.array([[1.0], [-2.0], [4.0]]), 0.3)
    tr = simulate(free_mass(), ZERO, ZERO, jnp.array([0.0, 0.3, 0.6, 1.0]), effort=held, **options)
    np.testing.assert_allclose(tr.v[:, 0], [0, 0.3, -0.3, 1.3], atol=1e-12)
    np.testing.assert_allclose(tr.q[:, 0], [0, 0.045, 0.045, 0.045 + 0.4 * -0.3 + 2 * 0.16], atol=1e-12)


@pytest.mark.slow
def test_velocity_under_a_cubic_signal_is_its_integral():
    """By Simpson's rule between the knots, which is exact for cubics."""
    times, efforts = np.array([0.0, 0.25, 0.5, 1.0]), np.array([[0.0], [1.0], [0.0], [2.0]])
    signal = cubic_signal(jnp.asarray(times), jnp.asarray(efforts))
    tr = simulate(free_mass(), ZERO, ZERO, jnp.asarray(times), effort=signal, dt=0.0625)
    u = lambda t: float(signal.path.evaluate(t)[0])
    area = [(b - a) / 6 * (u(a) + 4 * u((a + b) / 2) + u(b)) for a, b in itertools.pairwise(times)]
    np.testing.assert_allclose(tr.v[1:, 0], np.cumsum(area), atol=1e-12)


@pytest.mark.slow
def test_wrenches_from_laws_and_signals():
    m = free_mass()
    path = linear_signal(jnp.array([0.0, 2.0]), jnp.outer(jnp.array([0.0, 2.0]), jnp.eye(6)[5])).path
    for wrench in (lambda t, q, v: t * jnp.eye(6)[5], path):
        tr = simulate(System(m, (Wrench("ball", wrench),)), ZERO, ZERO, TS, dt=0.25)
        np.testing.assert_allclose(tr.q[:, 0], TS**3 / 6, atol=1e-13)
    with pytest.raises(jd.ShapeError, match="wrench on ball has shape"):
        bad = System(m, (Wrench("ball", jnp.zeros(3)),))
        bad.action(0.0, bad.initial(ZERO, ZERO))


def test_invalid_periods_delays_and_tables_raise():
    with pytest.raises(jd.ModelError, match="HeldSignal has period 0.1 s and delay 0.2 s"):
        System(free_mass(), (HeldSignal(jnp.zeros((2, 1)), 0.1, 0.2),))
    for period, delay in ((0.0, 0.0), (-0.1, 0.0), (0.1, -0.05)):
        with pytest.raises(jd.ModelError, match="expected a positive period"):
            System(free_mass(), (SampledFeedback(spring, period, delay),))
    with pytest.raises(jd.ModelError, match="times of a signal do not increase"):
        linear_signal(jnp.array([0.0, 1.0, 1.0]), jnp.zeros((3, 1)))


@pytest.mark.slow
def test_held_signal_counts_from_the_start():
    held = HeldSignal(jnp.array([[1.0], [-2.0]]), 0.3)
    tr = simulate(free_mass(), ZERO, ZERO, 5.0 + jnp.array([0.0, 0.3, 0.5]), effort=held)
    np.testing.assert_allclose(tr.v[:, 0], [0, 0.3, -0.1], atol=1e-12)


def exact_sampled(period, delay, wait, horizon, gain=4.0):
    """State of a mass under a sampled spring, by the exact solution between instants."""
    instants = sorted({round(x, 9) for k in range(60) for x in (k * period, k * period + delay)})
    q, v, t, acting = 0.7, 0.0, 0.0, 0.0
    outputs = []
    for nxt in [x for x in instants if x < horizon] + [horizon]:
        h = nxt - t
        q, v, t = q + h * v + h * h / 2 * acting, v + h * acting, nxt
        if abs(t - round(t / period) * period) < 1e-9 and t < horizon - 1e-9:
            outputs.append(-gain * q)
        due = int(np.floor((t - delay) / period + 1e-9))
        due = min(due, len(outputs) - 1)
        acting = outputs[due - wait] if due - wait >= 0 else 0.0
    return q, v


@pytest.mark.slow("0.03-1-options4")
@pytest.mark.parametrize(
    ("delay", "wait", "options"),
    [(0.0, 0, {}), (0.04, 0, {}), (0.1, 0, {}), (0.0, 2, {}), (0.03, 1, {"dt": 0.033})],
)
def test_sampled_feedback_with_delay_against_the_exact_solution(delay, wait, options):
    law = SampledFeedback(spring, 0.1, delay, wait)
    tr = simulate(free_mass(), 0.7 * ONE, ZERO, jnp.array([0.0, 1.05]), effort=law, **options)
    want = exact_sampled(0.1, delay, wait, 1.05)
    np.testing.assert_allclose([tr.q[-1, 0], tr.v[-1, 0]], want, atol=1e-10)


class Filter(AbstractPart):
    """A first-order lag `T x' = u - x` whose output drives the first joint."""

    law: Any
    time: Any

    def initial(self, model, q, v):
        return {"x": jnp.zeros(())}

    def act(self, model, t, q, v, state):
        return Action(state["x"] * jnp.ones(1), rate={"x": (self.law(t, q, v)[0] - state["x"]) / self.time})


@pytest.mark.slow
def test_part_with_a_state_against_the_matrix_exponential():
    """A spring with a lag is a linear system of third order."""
    system = System(free_mass(), (Filter(eqx.Partial(spring), jnp.array(0.2)),))
    tr = simulate(system, ONE, ZERO, TS, rtol=1e-11, atol=1e-11)
    a = np.array([[0, 1, 0], [0, 0, 1], [-4 / 0.2, 0, -1 / 0.2]])
    for t, q, v, x in zip(TS, tr.q, tr.v, tr.parts[0]["x"], strict=True):
        np.testing.assert_allclose([q[0], v[0], x], scipy.linalg.expm(a * t) @ [1, 0, 0], atol=1e-9)


def lag_minus_half(model, t, q, v, parts):
    return parts[0]["x"] - 0.5


@pytest.mark.exhaustive
def test_conditions_that_read_the_states_of_parts():
    """A first-order lag under a constant input: `x = 1 - exp(-t / T)` is one half at `T log 2`."""
    one = lambda t, q, v: jnp.ones(1)
    system = System(free_mass(), (Filter(eqx.Partial(one), jnp.array(0.2)),))
    event = Event(lag_minus_half, terminal=True, sees_parts=True)
    tr = simulate(system, ONE, ZERO, TS, events=(event,), rtol=1e-11, atol=1e-11)
    assert abs(tr.events.time[0] - 0.2 * np.log(2)) < 1e-9


class WithoutRate(AbstractPart):
    """Has a state, but returns no rate."""

    def initial(self, model, q, v):
        return jnp.zeros(())

    def act(self, model, t, q, v, state):
        return Action()


def test_missing_rates_and_wrong_shapes_raise():
    with pytest.raises(jd.ModelError, match="WithoutRate: act returns a rate"):
        simulate(System(free_mass(), (WithoutRate(),)), ZERO, ZERO, TS)
    with pytest.raises(jd.ShapeError, match="effort of Effort has shape"):
        simulate(free_mass(), ZERO, ZERO, TS, effort=jnp.zeros(2))


class OnCircle(AbstractMotion):
    """Projects onto `q^2 + v^2 = 1`."""

    projects: bool = eqx.field(static=True, default=True)
    adds_constraints: bool = eqx.field(static=True, default=True)

    def check(self, model):
        pass

    def acceleration(self, model, t, q, v, effort, external):
        return -q

    def residual(self, model, t, q, v, a, effort, external):
        return a + q

    @property
    def has_affine_residual(self):
        return False

    def velocity(self, model, t, q, v):
        return v

    def project(self, model, t, q, v):
        size = jnp.sqrt(q[0] ** 2 + v[0] ** 2)
        return q / size, v / size

    def exerted(self, model, t, q, v, effort, external):
        return Action()

    def jump(self, model, t, q, impulse):
        return impulse

    def violates_constraints(self, model, t, q, v):
        return abs(q[0] ** 2 + v[0] ** 2 - 1) > 1e-9


@pytest.mark.exhaustive
def test_motion_with_projection():
    tr = simulate(
        System(free_mass(), motion=OnCircle()), ONE, ZERO, jnp.array([0.0, 20.0]), dt=0.1, solver=diffrax.Heun()
    )
    assert abs(tr.q[-1, 0] ** 2 + tr.v[-1, 0] ** 2 - 1) < 1e-13
    assert abs(tr.q[-1, 0] - np.cos(20)) < 0.1


def test_passive_forces_are_optional():
    m = jd.robots.pendulum(damping=0.7)
    state = System(m).initial(jnp.array([0.3]), jnp.array([2.0]))
    with_damping, without = (System(m, passive=p).action(0.0, state).effort for p in (True, False))
    np.testing.assert_allclose(with_damping, [-1.4], atol=1e-14)
    np.testing.assert_array_equal(without, [0.0])


def test_leaves_of_systems_are_arrays():
    assert all(eqx.is_array(x) for x in jax.tree.leaves(System(ball(), (Feedback(spring), Effort([1.0])))))


class Current(AbstractPart):
    """The current of a coil and the angles of two wheels, with parameters of either precision."""

    resistance: Any

    def initial(self, model, q, v):
        return {"i": jnp.zeros(()), "turns": jnp.zeros(2)}

    def act(self, model, t, q, v, state):
        rate = {"i": 1.0 - self.resistance * state["i"], "turns": v[-2:]}
        wrench = jnp.zeros((model.num_links, 6)).at[0, 5].set(state["i"])
        return Action(jnp.zeros(model.nv).at[-1].set(state["i"]), wrench, rate)


@pytest.mark.exhaustive
def test_single_precision_is_preserved_with_all_parts_on_manifolds():
    """The precision of robot and state counts, not the precision of the parts' parameters."""
    m = floating().astype(jnp.float32)
    hold = HeldSignal(jnp.zeros((2, m.nv)), 0.02)
    law = SampledFeedback(lambda t, q, v: -0.1 * np.ones(m.nv) * v, 0.03, 0.01)
    table = linear_signal(jnp.array([0.0, 1.0]), jnp.ones((2, m.nv)))
    parts = (Current(np.array(2.0)), hold, law, table, Wrench("b", jnp.ones(6)), Effort(jnp.ones(m.nv)))
    q, v = (x.astype(jnp.float32) for x in state(m))
    tr = simulate(System(m, parts), q, v, jnp.array([0.0, 0.05, 0.1], jnp.float32), events=(Event(_far_base),))
    assert int(tr.status) == 0 and int(tr.num_steps) < 100
    arrays = tr.t, tr.q, tr.v, tr.parts, tr.action, tr.events.time, tr.events.q, tr.events.v
    assert {str(x.dtype) for x in jax.tree.leaves(arrays)} == {"float32"}
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(arrays[:5]))
    assert abs(tr.parts[0]["i"][-1] - (1 - np.exp(-0.2)) / 2) < 1e-6
    np.testing.assert_allclose(np.linalg.norm(tr.q[:, :4], axis=1), 1, atol=1e-6)


def _far_base(model, t, q, v):
    return q[6] - np.float64(1e3)
