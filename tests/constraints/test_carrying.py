"""Simulations of robots with a load, against the reduced equations of McClamroch 1986 for planar arms of two bars.

scipy integrates the reduced equations in the coordinates of the arms alone. Every motion satisfies its energy balance.
"""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn.simulation import System
from jaxdyn.spatial import Inertia, Pose, rpy_to_matrix

LENGTH, MASS, CENTER, LOAD = 0.5, 2.0, 0.25, 1.5
INERTIA = MASS * (0.05**2 + LENGTH**2) / 12
WEIGHT = np.array([0.0, 9.81])  # g of the document, along x and z
Q, V, T = np.array([0.3, 0.9]), np.array([0.5, -0.4]), np.array([4.0, -2.0])


@ft.cache
def arm():
    """Two bars with revolute joints about y, upright at q = 0, with a hand at the end."""
    b = jd.ModelBuilder()
    bar = jd.spatial.box((0.05, 0.05, LENGTH), mass=MASS).moved((0, 0, CENTER))
    b.add_link("upper", "world", jd.joints.Revolute((0, 1, 0)), bar)
    b.add_link("lower", "upper", jd.joints.Revolute((0, 1, 0)), bar, translation=(0, 0, LENGTH))
    return b.add_frame("hand", "lower", translation=(0, 0, LENGTH)).build()


def arm_dynamics(q, v):
    """M, G, and the Jacobian J and Jdot v of x, z and the rotation angle of the hand."""
    s, c = np.sin(np.cumsum(q)), np.cos(np.cumsum(q))
    bent, swing, i = (
        MASS * LENGTH * CENTER * np.cos(q[1]),
        MASS * LENGTH * CENTER * np.sin(q[1]),
        _inertia_about_the_joint(),
    )
    m = np.array([[2 * i + MASS * LENGTH**2 + 2 * bent, i + bent], [i + bent, i]])
    pull = MASS * 9.81 * np.array([(CENTER + LENGTH) * s[0] + CENTER * s[1], CENTER * s[1]])
    g = np.array([-swing * v[1] * (2 * v[0] + v[1]), swing * v[0] ** 2]) - pull
    j = np.array([[LENGTH * c.sum(), LENGTH * c[1]], [-LENGTH * s.sum(), -LENGTH * s[1]], [1, 1]])
    square = np.cumsum(v) ** 2
    return m, g, j, np.array([-LENGTH * s @ square, -LENGTH * c @ square, 0])


def _inertia_about_the_joint():
    return INERTIA + MASS * CENTER**2


def hand(q):
    turn = np.cumsum(q)
    return np.array([LENGTH * np.sin(turn).sum(), LENGTH * np.cos(turn).sum(), turn[1]])


def gripping(q, v):
    """Equations 29 and 30."""
    m, g, j, drift = arm_dynamics(q, v)
    j, drift = j[:2], drift[:2]
    f = np.linalg.solve(np.eye(2) / LOAD + j @ np.linalg.solve(m, j.T), j @ np.linalg.solve(m, g - T) - drift - WEIGHT)
    return np.linalg.solve(m, T + j.T @ f - g)


def sea(p):
    return p[2] - 0.55 - 0.2 * jnp.sin(3 * p[0])


def touching(q, v):
    """Equations 33 and 34, for the surface above."""
    m, g, j, drift = arm_dynamics(q, v)
    j, drift, x = j[:2], drift[:2], hand(q)[0]
    d, turning = np.array([-0.6 * np.cos(3 * x), 1.0]), 1.8 * np.sin(3 * x) * (j @ v)[0] ** 2
    force = j.T @ d
    pi = (d @ (j @ np.linalg.solve(m, g - T) - drift) - turning) / (force @ np.linalg.solve(m, force))
    return np.linalg.solve(m, T + force * pi - g)


def sharing(q, v):
    """Equations 36 and 37."""
    one, two = (arm_dynamics(q[k], v[k]) for k in (slice(0, 2), slice(2, 4)))
    rows, right = [[np.eye(2), np.eye(2)], [np.eye(2), np.eye(2)]], []
    for k, ((m, g, j, drift), own) in enumerate(zip((one, two), (T, -T), strict=True)):
        j, drift = j[:2], drift[:2]
        rows[k][k] = np.eye(2) + LOAD * j @ np.linalg.solve(m, j.T)
        right.append(LOAD * (j @ np.linalg.solve(m, g - own) - drift - WEIGHT))
    f = np.linalg.solve(np.block(rows), np.concatenate(right)).reshape(2, 2)
    accelerations = [
        np.linalg.solve(m, own + j[:2].T @ push - g)
        for (m, g, j, _), own, push in zip((one, two), (T, -T), f, strict=True)
    ]
    return np.concatenate(accelerations)


BODY = Inertia(LOAD, np.zeros(3), LOAD / 12 * np.diag([0.2**2 + 0.1**2, 0.3**2 + 0.2**2, 0.3**2 + 0.1**2]))
APART = np.array([0.2, 0.1])  # from the first hand to the second, in world axes at the start


def clasping(q, v):
    """A rigid load: the KKT system of seven coordinates (arms and load) and six constraints (hands)."""
    one, two = (arm_dynamics(q[k], v[k]) for k in (slice(0, 2), slice(2, 4)))
    turn, spin = Q.sum() - q[:2].sum(), v[:2].sum()
    c, s = np.cos(turn), np.sin(turn)
    x, z = np.array([[c, -s], [s, c]]) @ APART  # turned with the load
    m, a, right = np.zeros((7, 7)), np.zeros((6, 7)), np.zeros(13)
    m[4:, 4:] = np.diag([LOAD, LOAD, BODY.inertia[1, 1]])
    right[4:7] = -LOAD * np.append(WEIGHT, 0)
    carried = np.eye(3), np.array([[1, 0, z], [0, 1, -x], [0, 0, 1]])
    for k, ((mass, g, j, drift), own) in enumerate(zip((one, two), (T, -T), strict=True)):
        here, rows = slice(2 * k, 2 * k + 2), slice(3 * k, 3 * k + 3)
        m[here, here], right[here] = mass, own - g
        a[rows, here], a[rows, 4:] = j, -carried[k]
        right[7 + 3 * k : 10 + 3 * k] = -drift - (k * spin**2 * np.array([x, z, 0]))
    return np.linalg.solve(np.block([[m, a.T], [a, np.zeros((6, 6))]]), right)[:4]


def alone():
    model, constraints = jc.gripping_load(arm(), "hand", LOAD)
    return model, constraints, *jax.jit(jc.carried_state)(model, constraints, Q, V), gripping


def on_the_surface():
    """An initial state on the surface, by Newton iterations in the first angle, with a tangential velocity."""
    q = Q.copy()
    for _ in range(20):
        x, z, _ = hand(q)
        d, j = np.array([-0.6 * np.cos(3 * x), 1.0]), arm_dynamics(q, V)[2][:2]
        q[0] -= (z - 0.55 - 0.2 * np.sin(3 * x)) / (d @ j)[0]
    v = np.array([(d @ j)[1], -(d @ j)[0]])
    return *jc.on_surface(arm(), "hand", sea), jnp.asarray(q), jnp.asarray(v), touching


def together():
    """Two arms face to face, whose hands coincide and move up and sideways."""
    q = np.append(Q, -Q)
    model, constraints = jc.common_load(arm(), arm(), ("hand", "hand"), LOAD, translation=(2 * hand(Q)[0], 0.0, 0.0))
    v = np.concatenate([np.linalg.solve(arm_dynamics(k, V)[2][:2], [0.3, 0.6]) for k in (Q, -Q)])
    return model, constraints, *jax.jit(jc.carried_state)(model, constraints, q, v), sharing


def with_a_crate():
    """Two arms with a body welded to both hands, which leaves one degree of freedom; from rest."""
    q = np.append(Q, -Q)
    rotation = lambda k: rpy_to_matrix(jnp.array([0.0, k.sum(), 0.0]))
    first, second = Pose(rotation(Q), jnp.zeros(3)), Pose(rotation(-Q), jnp.array([APART[0], 0.0, APART[1]]))
    base = 2 * hand(Q)[0] + APART[0]
    model, constraints = jc.common_load(
        arm(), arm(), ("hand", "hand"), BODY, grips=(Pose.identity(), first.inverse() @ second),
        translation=(base, 0.0, APART[1]),
    )  # fmt: skip
    return model, constraints, *jax.jit(jc.carried_state)(model, constraints, q, np.zeros(4)), clasping


CASES = [
    *(pytest.param(f, id=f.__name__) for f in (alone, on_the_surface, together)),
    pytest.param(with_a_crate, id="with_a_crate", marks=pytest.mark.exhaustive),
]


@pytest.mark.slow("on_the_surface")
@pytest.mark.parametrize("case", CASES)
def test_motion_and_energy(case):
    """The work of constant torques, `tau . (q - q_0)`, equals the change of the energy to the default rtol of 1e-8."""
    model, constraints, q, v, reduced = case()
    n = 4 if reduced in (sharing, clasping) else 2
    effort, times = jnp.zeros(model.nv).at[:n].set(np.append(T, -T)[:n]), jnp.linspace(0, 0.4, 5)
    path = jd.simulate(System(model, (), jc.ConstrainedMotion(constraints)), q, v, times, effort=effort).checked()
    rate = lambda t, y: np.concatenate([y[n:], reduced(y[:n], y[n:])])
    start = np.concatenate([q[:n], v[:n]])
    want = solve_ivp(rate, (0, 0.4), start, method="DOP853", rtol=1e-11, atol=1e-11, t_eval=times).y.T
    assert np.abs(want[-1, :n] - start[:n]).max() > 0.1
    assert_allclose(path.q[:, :n], want[:, :n], atol=1e-6)
    assert_allclose(path.v[:, :n], want[:, n:], atol=1e-5)
    work = (path.q - path.q[0])[:, :n] @ effort[:n]
    assert np.abs(work).max() > 0.02
    assert_allclose(path.energy - path.energy[0], work, atol=1e-6)
