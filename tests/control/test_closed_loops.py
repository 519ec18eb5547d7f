"""Simulated closed loops: against hand-derived equations integrated by scipy, closed forms and the references."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn import control as ct
from jaxdyn.simulation import Feedback, System, Wrench
from jaxdyn.spatial import Pose

G = 9.81
ARM = jd.robots.double_pendulum()
KP, KD = np.array([60.0, 30.0]), np.array([12.0, 6.0])
TIMES = np.linspace(0.0, 2.0, 201)
#: x and z of a frame's origin
PLANE = np.eye(6)[[3, 5]]


# Equations of motion of the double pendulum with unit masses and lengths


def mass(q):
    c = np.cos(q[1])
    return np.array([[3 + 2 * c, 1 + c], [1 + c, 1]])


def bias(q, v):
    h = np.sin(q[1])
    both = np.sin(q[0] + q[1])
    spin = np.array([-h * v[1] * (2 * v[0] + v[1]), h * v[0] ** 2])
    return spin + G * np.array([2 * np.sin(q[0]) + both, both])


def stiffness(q):
    """Derivatives of the gravity torques with respect to the angles."""
    both = np.cos(q[0] + q[1])
    return G * np.array([[2 * np.cos(q[0]) + both, both], [both, both]])


def tip(q):
    return -np.array([np.sin(q[0]) + np.sin(q[0] + q[1]), np.cos(q[0]) + np.cos(q[0] + q[1])])


def integrate_by_scipy(law, q, v):
    """The motion under a law `(t, q, v) -> efforts` at `TIMES`."""

    def rate(t, x):
        return np.concatenate([x[2:], np.linalg.solve(mass(x[:2]), law(t, x[:2], x[2:]) - bias(x[:2], x[2:]))])

    found = scipy.integrate.solve_ivp(rate, (0, 2.0), np.r_[q, v], t_eval=TIMES, rtol=1e-10, atol=1e-10)
    return found.y[:2].T, found.y[2:].T


# References


def swing(t):
    return jnp.stack([jnp.sin(2 * t), 0.5 * jnp.cos(3 * t)])


def swing_motion(t):
    return (
        np.array([np.sin(2 * t), 0.5 * np.cos(3 * t)]),
        np.array([2 * np.cos(2 * t), -1.5 * np.sin(3 * t)]),
        np.array([-4 * np.sin(2 * t), -4.5 * np.cos(3 * t)]),
    )


def circle(t):
    return Pose(jnp.eye(3), jnp.stack([0.3 + 0.2 * jnp.sin(2 * t), 0 * t, -1.2 + 0.2 * jnp.cos(2 * t)]))


REST = np.array([0.6, 0.5])
HELD = Pose(jnp.eye(3), jnp.array([tip(REST)[0], 0.0, tip(REST)[1]]))
SPRING, DAMPER = np.array([300.0, 200.0]), np.array([60.0, 40.0])
COST = np.diag([10.0, 10.0, 1.0, 1.0])


def lqr_by_scipy():
    """A and B of the arm about `REST`, and the LQR gain and cost-to-go, by scipy."""
    inverse = np.linalg.inv(mass(REST))
    a = np.block([[np.zeros((2, 2)), np.eye(2)], [-inverse @ stiffness(REST), np.zeros((2, 2))]])
    b = np.concatenate([np.zeros((2, 2)), inverse])
    cost = scipy.linalg.solve_continuous_are(a, b, COST, np.eye(2))
    return a, b, b.T @ cost, cost


def tracking_lqr_by_hand(plan):
    """Gains along the rows of a plan and the initial cost-to-go, with the arm linearised by differences."""

    def linear(q, v, tau):
        flow = lambda x: np.linalg.solve(mass(x[:2]), tau - bias(x[:2], x[2:]))
        steps = 1e-5 * np.eye(4)
        by_x = np.stack([flow(np.r_[q, v] + e) - flow(np.r_[q, v] - e) for e in steps], 1) / 2e-5
        b = np.concatenate([np.zeros((2, 2)), np.linalg.inv(mass(q))])
        return np.concatenate([np.eye(4)[2:], by_x]), b

    rows = [linear(*row) for row in zip(*map(np.asarray, (plan.q, plan.v, plan.effort)), strict=True)]
    h = 2 * float(plan.times[1] - plan.times[0])
    rate = lambda p, a, b: a.T @ p + p @ a - p @ b @ b.T @ p + COST
    costs = {len(rows) - 1: COST}
    for k in range(len(rows) - 1, 1, -2):  # backward Runge-Kutta steps over two rows
        p = costs[k]
        k1 = rate(p, *rows[k])
        k2 = rate(p + h / 2 * k1, *rows[k - 1])
        k3 = rate(p + h / 2 * k2, *rows[k - 1])
        costs[k - 2] = p + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(p + h * k3, *rows[k - 2]))
    every = np.arange(0, len(rows), 2)
    gains = np.stack([rows[k][1].T @ costs[k] for k in every])
    return ct.Plan(plan.times[every], plan.q[every], plan.v[every], plan.effort[every]), gains, costs[0]


# All laws in one program


class SwitchedLaw(eqx.Module):
    """One of several laws, selected by its index."""

    laws: tuple
    number: Any

    def __call__(self, t, q, v):
        return jax.lax.switch(self.number, [lambda law=law: law(t, q, v) for law in self.laws])


class TipForce(eqx.Module):
    """A force in world axes at the tip, as a wrench on the lower link."""

    force: Any

    def __call__(self, t, q, v):
        pose = jd.frame_pose(ARM, q, "lower")
        force = pose.rotation.T @ self.force
        return jnp.concatenate([jnp.cross(jnp.array([0.0, 0.0, -1.0]), force), force])


@eqx.filter_jit
def simulate_law(laws, number, q, v, force):
    system = System(ARM, (Feedback(SwitchedLaw(laws, number)), Wrench("lower", TipForce(force))))
    path = jd.simulate(system, q, v, jnp.asarray(TIMES), dt=0.01)
    return path.q, path.v, path.status


@pytest.fixture(scope="module")
def laws():
    reference, gain = ct.PathReference(swing), lqr_by_scipy()[2]
    # a reference and its efforts on a fine grid
    times = np.linspace(0.0, 2.0, 1601)
    rows = [swing_motion(t) for t in times]
    efforts = np.stack([mass(q) @ a + bias(q, v) for q, v, a in rows])
    plan = ct.Plan(times, *(np.stack([row[k] for row in rows]) for k in (0, 1)), efforts)
    sparse, gains, _ = tracking_lqr_by_hand(plan)
    return {
        "pd": ct.GravityPD(ARM, REST, KP, KD),
        "reference": ct.ReferenceFeedforward(ARM, reference, KP, KD),
        "stored": ct.StoredFeedforward(ARM, plan, KP, KD),
        "state": ct.StateFeedforward(ARM, reference, KP, KD),
        "frame": ct.OperationalSpace(ARM, "tip", circle, 25.0, 10.0, PLANE),
        "spring": ct.Impedance(ARM, "tip", HELD, SPRING, DAMPER, PLANE),
        "regulator": ct.LinearFeedback(ARM, REST, np.zeros(2), bias(REST, np.zeros(2)), gain, np.eye(2)),
        "tracking": ct.TrackingFeedback(ARM, sparse, gains, np.eye(2)),
    }


def run(laws, name, q, v, force=(0.0, 0.0, 0.0)):
    found = simulate_law(tuple(laws.values()), jnp.asarray(list(laws).index(name)), *map(jnp.asarray, (q, v, force)))
    assert found[2] == jd.SimulationStatus.FINISHED
    return np.asarray(found[0]), np.asarray(found[1])


@pytest.mark.slow
def test_feedforward_with_a_perfect_model_tracks_exactly(laws):
    """Both schemes, the first on line and from a table, with the initial state on the reference."""
    q, v, _ = swing_motion(0.0)
    exact = np.stack([swing_motion(t)[0] for t in TIMES])
    for name, error in (("reference", 1e-7), ("state", 1e-7), ("stored", 1e-5)):
        np.testing.assert_allclose(run(laws, name, q, v)[0], exact, atol=error)


@pytest.mark.slow
def test_feedforward_from_another_state_obeys_the_equations_of_motion(laws):
    def from_reference(t, q, v):
        qd, vd, ad = swing_motion(t)
        return mass(qd) @ ad + bias(qd, vd) + KP * (qd - q) + KD * (vd - v)

    def from_state(t, q, v):
        qd, vd, ad = swing_motion(t)
        return mass(q) @ ad + bias(q, v) + KP * (qd - q) + KD * (vd - v)

    q, v = np.array([0.4, 0.1]), np.array([1.0, 0.5])
    for name, law, error in (
        ("reference", from_reference, 1e-6),
        ("state", from_state, 1e-6),
        ("stored", from_reference, 1e-5),
    ):
        found = run(laws, name, q, v)
        for ours, exact in zip(found, integrate_by_scipy(law, q, v), strict=True):
            np.testing.assert_allclose(ours, exact, atol=10 * error)
        assert np.abs(found[0][-1] - swing_motion(2.0)[0]).max() < 0.05  # initially 0.4


@pytest.mark.slow
def test_gravity_pd_has_the_poles_of_its_gains(laws):
    """`M eddot + Kd edot + Kp e = 0` near the reference, to second order in the deviation."""
    inverse = np.linalg.inv(mass(REST))
    loop = np.block([[np.zeros((2, 2)), np.eye(2)], [-inverse @ np.diag(KP), -inverse @ np.diag(KD)]])
    away = 1e-4 * np.array([1.0, -2.0, 3.0, 1.0])
    q, v = run(laws, "pd", REST + away[:2], away[2:])
    exact = np.stack([scipy.linalg.expm(t * loop) @ away for t in TIMES])
    np.testing.assert_allclose(np.hstack([q - REST, v]), exact, atol=1e-7)
    far, still = np.array([-1.0, 2.0]), np.zeros(2)
    law = lambda t, q, v: KP * (REST - q) - KD * v + bias(q, 0 * v)
    for ours, by_hand in zip(run(laws, "pd", far, still), integrate_by_scipy(law, far, still), strict=True):
        np.testing.assert_allclose(ours, by_hand, atol=1e-5)


@pytest.mark.slow
def test_operational_space_error_has_a_double_pole(laws):
    q, v = REST, np.array([0.3, -0.2])
    path, _ = run(laws, "frame", q, v)
    s = TIMES[:, None]
    target = np.hstack([0.3 + 0.2 * np.sin(2 * s), -1.2 + 0.2 * np.cos(2 * s)])
    rate = np.array([0.4, 0.0]) - (tip(q + 1e-6 * v) - tip(q - 1e-6 * v)) / 2e-6
    first = target[0] - tip(q)
    exact = (first + (rate + 5 * first) * s) * np.exp(-5 * s)
    np.testing.assert_allclose(target - np.stack([tip(q) for q in path]), exact, atol=1e-6)


@pytest.mark.slow
def test_impedance_has_its_static_stiffness(laws):
    force = np.array([12.0, 0.0, -7.0])
    path, v = run(laws, "spring", REST, np.zeros(2), force)
    np.testing.assert_allclose(tip(path[-1]) - tip(REST), force[[0, 2]] / SPRING, atol=1e-5)
    assert np.abs(v[-1]).max() < 1e-4


@pytest.mark.slow
def test_lqr_has_the_poles_and_cost_of_its_riccati_equation(laws):
    a, b, gain, cost = lqr_by_scipy()
    away = 1e-3 * np.array([1.0, -1.0, 2.0, 1.0])
    q, v = run(laws, "regulator", REST + away[:2], away[2:])
    x = np.hstack([q - REST, v])
    exact = np.stack([scipy.linalg.expm(t * (a - b @ gain)) @ away for t in TIMES])
    np.testing.assert_allclose(x, exact, atol=2e-5)
    u = -x @ gain.T
    running_cost = np.einsum("ij,jk,ik->i", x, COST, x) + np.sum(u**2, axis=1)
    left = x[-1] @ cost @ x[-1]
    np.testing.assert_allclose(scipy.integrate.simpson(running_cost, x=TIMES) + left, away @ cost @ away, rtol=1e-2)


@pytest.mark.slow
def test_tracking_lqr_minimises_the_cost(laws):
    law = laws["tracking"]
    away = 3e-3 * np.array([1.0, -1.0, 2.0, 1.0])
    q0, v0, _ = swing_motion(0.0)
    exact = np.stack([np.concatenate(swing_motion(t)[:2]) for t in TIMES])
    gains = np.asarray(law.gain)[::4]

    def running_cost(scale):
        q, v = run(laws | {"tracking": scale_gains(law, scale)}, "tracking", q0 + away[:2], v0 + away[2:])
        x = np.hstack([q, v]) - exact
        u = scale * np.einsum("kij,kj->ki", gains, x)
        rates = np.einsum("ij,jk,ik->i", x, COST, x) + np.sum(u**2, axis=1)
        return scipy.integrate.simpson(rates, x=TIMES) + x[-1] @ COST @ x[-1]

    less, best, more = map(running_cost, (0.95, 1.0, 1.05))
    np.testing.assert_allclose(best, away @ tracking_lqr_by_hand(laws["stored"].plan)[2] @ away, rtol=1e-2)
    assert best < min(less, more)
    assert abs(more - less) < 0.3 * (more + less - 2 * best)  # the first derivative vanishes, the second does not


def scale_gains(law, scale):
    return eqx.tree_at(lambda law: law.gain, law, scale * law.gain)


# Contact with a wall


def wall(p):
    """Signed distance from the plane x = 0.6, positive where x > 0.6."""
    return p[0] - 0.6


@pytest.mark.slow
def test_hybrid_control_tracks_force_and_motion():
    surface = jc.OnSurface("wall", jc.End("tip", jnp.zeros(3)), wall)
    start = np.array([-0.9, np.arcsin(-0.6 - np.sin(-0.9)) + 0.9])
    height = lambda t: -1.6 - 0.2 * jnp.sin(2 * t)
    press = lambda t: 5.0 + 2.0 * jnp.sin(3 * t)
    path = lambda t: Pose(jnp.eye(3), jnp.stack([0.6 + 0 * t, 0 * t, height(t)]))
    law = ct.HybridPositionForce(ARM, "tip", path, wall, press, 25.0, 10.0)

    @jax.jit
    def simulate_contact(q):
        motion = jc.ConstrainedMotion(surface, jc.Baumgarte())
        found = jd.simulate(System(ARM, (Feedback(law),), motion), q, jnp.zeros(2), jnp.asarray(TIMES[::10]), dt=0.02)
        efforts = jax.vmap(law)(found.t, found.q, found.v)
        return found.q, found.v, efforts, found.status

    q, v, efforts, status = simulate_contact(jnp.asarray(start))
    assert status == jd.SimulationStatus.FINISHED
    t = TIMES[::10]
    for k, at in enumerate(t):
        row = np.array([[-np.cos(q[k, 0]) - np.cos(q[k].sum()), -np.cos(q[k].sum())]])
        drift = np.sin(q[k, 0]) * v[k, 0] ** 2 + np.sin(q[k].sum()) * v[k].sum() ** 2
        matrix = np.block([[mass(q[k]), -row.T], [row, np.zeros((1, 1))]])
        felt = np.linalg.solve(matrix, np.append(efforts[k] - bias(q[k], v[k]), -drift))[-1]
        np.testing.assert_allclose(felt, 5.0 + 2.0 * np.sin(3 * at), atol=1e-7)
    tips = np.stack([tip(x) for x in np.asarray(q)])
    np.testing.assert_allclose(tips[:, 0], 0.6, atol=1e-8)
    first = -1.6 - tips[0, 1]
    exact = (first + (-0.4 + 5 * first) * t) * np.exp(-5 * t)  # a unit mass with a double pole
    np.testing.assert_allclose(-1.6 - 0.2 * np.sin(2 * t) - tips[:, 1], exact, atol=1e-5)
