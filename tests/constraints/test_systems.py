"""Robots that grip a load, touch a surface or share a load, against trees and the equations of McClamroch 1986."""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn.spatial import Inertia, Pose, box, point_mass

G = jnp.array([0.0, 0.0, 9.81])
solve = jax.jit(jc.constrained_dynamics)
assemble = jax.jit(jc.assemble)
state_of = jax.jit(jc.carried_state)


@ft.cache
def arm():
    """A spatial arm of three joints with a hand away from the link origin."""
    b = jd.ModelBuilder()
    bar = box((0.1, 0.1, 0.6), mass=3.0).moved((0, 0, 0.3))
    b.add_link("turn", "world", jd.joints.Revolute((0, 0, 1)), bar)
    b.add_link("upper", "turn", jd.joints.Revolute((0, 1, 0)), bar, translation=(0, 0, 0.6))
    b.add_link("lower", "upper", jd.joints.Revolute((0, 1, 0)), bar, translation=(0, 0, 0.6))
    return b.add_frame("hand", "lower", translation=(0.05, 0.1, 0.55), rpy=(0.2, -0.4, 0.7)).build()


Q, V, T = jnp.array([0.3, 0.7, 0.9]), jnp.array([0.5, -0.8, 1.1]), jnp.array([4.0, -7.0, 2.0])


@jax.jit
def arm_dynamics(model, q, v):
    """M, G, J and Jdot v of the origin of the hand, in world axes."""
    where = lambda q: jd.frame_pose(model, q, "hand").translation
    j, jdot = jax.jvp(jax.jacfwd(where), (q,), (v,))
    return jd.mass_matrix(model, q), jd.bias_forces(model, q, v), j, jdot @ v


@jax.jit
def energy_rate(model, q, v, a):
    """Rate of kinetic and potential energy along a motion."""
    energy = lambda q, v: jd.kinetic_energy(model, q, v) + jd.potential_energy(model, q)
    return jax.jvp(energy, (q, v), (jd.configuration_velocity(model, q, v), a))[1]


@pytest.mark.slow
def test_point_load_obeys_equation_29_and_equals_a_heavier_arm():
    mass = 2.5
    model, constraints = jc.gripping_load(arm(), "hand", mass)
    got = solve(model, constraints, *state_of(model, constraints, Q, V), jnp.append(T, jnp.zeros(3)))
    m, g, j, drift = arm_dynamics(arm(), Q, V)
    by_m = np.linalg.solve(m, np.column_stack([j.T, g - T]))
    f = np.linalg.solve(np.eye(3) / mass + j @ by_m[:, :3], j @ by_m[:, 3] - drift - G)
    assert_allclose(got.multiplier("grip"), f, rtol=1e-11)
    assert_allclose(got.a[:3], np.linalg.solve(m, T + j.T @ f - g), rtol=1e-10)  # (30)
    assert_allclose(got.a[3:], -f / mass - G, rtol=1e-10)  # (31)
    load = jd.ModelBuilder().add_link("load", "world", None, point_mass(mass)).build()
    heavier = jd.attach(arm(), load, "lower", translation=(0.05, 0.1, 0.55))
    assert_allclose(got.a[:3], jd.forward_dynamics(heavier, Q, V, T), rtol=1e-10)


@pytest.mark.slow
def test_rigid_load_equals_a_heavier_arm():
    body = Inertia(2.5, jnp.array([0.1, 0.05, 0.2]), jnp.diag(jnp.array([0.1, 0.2, 0.25])))
    model, constraints = jc.gripping_load(arm(), "hand", body)
    q, v = state_of(model, constraints, Q, V)
    got = solve(model, constraints, q, v, jnp.append(T, jnp.zeros(6)))
    load = jd.ModelBuilder().add_link("load", "world", None, body).build()
    heavier = jd.attach(arm(), load, "lower", translation=(0.05, 0.1, 0.55), rpy=(0.2, -0.4, 0.7))
    a = jd.forward_dynamics(heavier, Q, V, T)
    assert_allclose(got.a[:3], a, rtol=1e-10)
    assert int(got.status) == jc.ConstraintStatus.SOLVED
    assert_allclose(jd.kinetic_energy(model, q, v), jd.kinetic_energy(heavier, Q, V), rtol=1e-12)
    # the multiplier of the grip equals the reaction of the fixed joint of the load
    carried = jd.joint_reactions(heavier, Q, V, a).wrench[heavier.link_index("load")]
    assert_allclose(-got.multiplier("grip"), carried, rtol=1e-9)


@pytest.mark.slow
def test_contact_with_a_surface_obeys_equation_33():
    phi = lambda p: p[2] - 0.3 * p[0] ** 2 - jnp.sin(p[1]) - 0.9
    model, constraints = jc.on_surface(arm(), "hand", phi)
    start = assemble(model, constraints, Q, V).checked()
    q, v = start.q, start.v
    got = solve(model, constraints, q, v, T)
    m, g, j, drift = arm_dynamics(arm(), q, v)
    p = jd.frame_pose(arm(), q, "hand").translation
    d, turning = jax.jvp(jax.grad(phi), (p,), (j @ v,))
    assert_allclose(d @ j @ v, 0, atol=1e-12)
    by_m = np.linalg.solve(m, np.column_stack([j.T @ d, g - T]))
    pi = (d @ (j @ by_m[:, 1] - drift) - turning @ j @ v) / (d @ j @ by_m[:, 0])
    assert_allclose(got.multipliers, [pi], rtol=1e-10)
    assert_allclose(got.a, np.linalg.solve(m, T + j.T @ d * pi - g), rtol=1e-10)  # (34)
    # the frictionless surface does no work: the rate of the energy equals the power of the motors
    assert_allclose(energy_rate(model, q, v, got.a), T @ v, rtol=1e-10)


PLACED = {"translation": (1.0, 0.1, 0.0), "rpy": (0, 0, np.pi)}  # of the second arm, which faces the first


@pytest.mark.slow
def test_common_point_load_obeys_equation_36():
    model, constraints = jc.common_load(arm(), arm(), ("hand", "hand"), 2.5, **PLACED)
    guess = jnp.concatenate([Q, Q])
    start = assemble(model, constraints, *state_of(model, constraints, guess, jnp.append(V, V))).checked()
    q, v = start.q, start.v
    assert np.abs(v).max() > 0.1
    efforts = jnp.array([4.0, -7.0, 2.0, -3.0, 5.0, 1.0, 0, 0, 0])
    got = solve(model, constraints, q, v, efforts)
    turned = np.diag([-1.0, -1.0, 1.0])  # world axes in those of the second robot
    one, two = (arm_dynamics(arm(), q[s], v[s]) for s in (slice(0, 3), slice(3, 6)))
    two = (two[0], two[1], turned @ two[2], turned @ two[3])
    eye, mass, rows, right = np.eye(3), 2.5, [], []
    for k, (m, g, j, drift) in enumerate((one, two)):
        tau = efforts[3 * k : 3 * k + 3]
        row = [eye, eye]
        row[k] = eye + mass * j @ np.linalg.solve(m, j.T)
        rows.append(row)
        right.append(mass * (j @ np.linalg.solve(m, g - tau) - drift - G))
    f = np.linalg.solve(np.block(rows), np.concatenate(right))
    assert_allclose(got.multipliers, f, rtol=1e-9)
    for k, (m, g, j, _) in enumerate((one, two)):  # (37)
        tau = efforts[3 * k : 3 * k + 3]
        assert_allclose(
            got.a[3 * k : 3 * k + 3], np.linalg.solve(m, tau + j.T @ f[3 * k : 3 * k + 3] - g), rtol=1e-9, atol=1e-10
        )
    assert_allclose(got.a[6:], -(f[:3] + f[3:]) / mass - G, rtol=1e-9)  # (38)


@pytest.mark.exhaustive
def test_common_rigid_load_equals_a_closed_loop_of_two_arms():
    """The joint axes are parallel: one of twelve rows is redundant, and one degree of freedom remains."""
    body = Inertia(2.5, jnp.array([0.1, 0.05, 0.2]), jnp.diag(jnp.array([0.1, 0.2, 0.25])))
    heavier = jd.attach(
        arm(), jd.ModelBuilder().add_link("load", "world", None, body).build(), "lower",
        translation=(0.05, 0.1, 0.55), rpy=(0.2, -0.4, 0.7),
    )  # fmt: skip
    q = jnp.array([0.3, 0.7, 0.9, 0.3, 0.4, 1.2])
    pair = jd.merge(heavier, arm(), prefix="second_", **PLACED)
    hand_poses = jax.jit(lambda q: [jd.frame_pose(pair, q, name) for name in ("hand", "second_hand")])
    first, second = hand_poses(q)
    across = first.inverse() @ second
    held = jc.End("load", across.translation, across.quaternion())
    weld = jc.WeldClosure("held", held, jc.End("second_lower", (0.05, 0.1, 0.55), pair.frames.rotation[1]))
    closed = jax.jit(jc.impulse)(pair, weld, q, jnp.append(V, V))
    v = closed.v
    assert pair.nv - int(closed.rank) == 1
    assert np.abs(v).max() > 0.1
    want = solve(pair, weld, q, v, jnp.append(T, -T))

    one = Pose.identity()
    model, constraints = jc.common_load(arm(), arm(), ("hand", "hand"), body, grips=(one, across), **PLACED)
    full = state_of(model, constraints, q, v)
    got = solve(model, constraints, *full, jnp.concatenate([T, -T, jnp.zeros(6)]))
    assert int(got.rank) == 11
    assert_allclose(got.a[:6], want.a, rtol=1e-8, atol=1e-9)
    assert_allclose(energy_rate(model, *full, got.a), T @ v[:3] - T @ v[3:], atol=1e-9)


@pytest.mark.slow
def test_gripped_load_conserves_energy():
    model, constraints = jc.gripping_load(arm(), "hand", 2.5)
    q, v = state_of(model, constraints, Q, V)
    d = solve(model, constraints, q, v, jnp.zeros(6))
    assert_allclose(energy_rate(model, q, v, d.a), 0, atol=1e-10)


def test_unknown_frame_raises():
    with pytest.raises(jd.ModelError, match="'claw'"):
        jc.gripping_load(arm(), "claw", 1.0)
