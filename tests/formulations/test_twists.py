"""Twists and wrenches of one body, its inertia in several frames, and a robot with helical joints."""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.formulations import (
    GibbsAppell,
    NewtonEulerReactions,
    TwistWrench,
    body_wrench,
    inertia_in_frame,
    principal_frame,
    spatial_inertia,
    twist_bracket,
)
from jaxdyn.spatial import Inertia, Pose
from tests.formulations._cases import TOLERANCE, model
from tests.oracles import random_inertia, random_model, random_rotation, random_state, relative_error

jit = ft.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


@ft.cache
def _body():
    """A body, a frame {a} fixed to it, and its twist and acceleration in {b} at the centre of mass."""
    rng = np.random.default_rng(0)
    pose = Pose(random_rotation(rng), rng.normal(size=3))
    return random_inertia(rng), pose, jnp.asarray(rng.normal(size=6)), jnp.asarray(rng.normal(size=6))


def _cross(x):
    """`[x]`."""
    return np.cross(np.eye(3), np.asarray(x))


def test_inertia_in_a_rotated_frame():
    """`I_c = R_bc^T I_b R_bc`."""
    body, pose, *_ = _body()
    turned = Pose(pose.rotation, jnp.zeros(3))
    got = inertia_in_frame(spatial_inertia(body.mass, body.inertia), turned)
    wanted = body.moved(rotation=pose.rotation.T).inertia
    np.testing.assert_allclose(got, spatial_inertia(body.mass, wanted), atol=1e-14)


def test_inertia_in_a_translated_frame():
    """Steiner's rule: in {a} the centre of mass is at c, and `G_a = [I + m [c] [c]^T, m [c]; m [c]^T, m 1]`."""
    body, pose, *_ = _body()
    inverse = pose.inverse()
    seen = Inertia(body.mass, jnp.zeros(3), body.inertia).moved(inverse.translation, inverse.rotation)
    c, mass = _cross(seen.com), float(seen.mass)
    wanted = np.block([[np.asarray(seen.inertia) + mass * c @ c.T, mass * c], [mass * c.T, mass * np.eye(3)]])
    got = inertia_in_frame(spatial_inertia(body.mass, body.inertia), pose)
    np.testing.assert_allclose(got, wanted, atol=1e-13)


def test_wrench_at_the_centre_of_mass_is_the_newton_euler_equation():
    """`m_b = I dw + w x I w`, `f_b = m (dv + w x v)`."""
    body, _, twist, rate = _body()
    w, v, dw, dv = (np.asarray(x) for x in (twist[:3], twist[3:], rate[:3], rate[3:]))
    inertia = np.asarray(body.inertia)
    wanted = [*(inertia @ dw + np.cross(w, inertia @ w)), *(float(body.mass) * (dv + np.cross(w, v)))]
    np.testing.assert_allclose(body_wrench(spatial_inertia(body.mass, body.inertia), twist, rate), wanted, atol=1e-13)


def test_wrench_has_the_same_form_in_all_frames():
    """`F_a = Ad(T_ba)^T F_b` with `V_b = Ad(T_ba) V_a`, and the kinetic energy is the same."""
    body, pose, twist, rate = _body()
    adjoint, back = pose.adjoint(), pose.inverse().adjoint()
    g_b = spatial_inertia(body.mass, body.inertia)
    g_a = inertia_in_frame(g_b, pose)
    got = body_wrench(g_a, back @ twist, back @ rate)
    np.testing.assert_allclose(got, adjoint.T @ body_wrench(g_b, twist, rate), atol=1e-12)
    np.testing.assert_allclose((back @ twist) @ g_a @ (back @ twist), twist @ g_b @ twist, rtol=1e-13)


def test_bracket_is_the_commutator_of_matrices():
    """`[V_1] [V_2] - [V_2] [V_1]` of the 4 x 4 matrices of two twists."""

    def matrix(x):
        return np.vstack([np.column_stack([_cross(x[:3]), np.asarray(x[3:])]), np.zeros(4)])

    _, _, one, other = _body()
    got = twist_bracket(one) @ other
    np.testing.assert_allclose(matrix(got), matrix(one) @ matrix(other) - matrix(other) @ matrix(one), atol=1e-13)


def test_principal_frame():
    """`R_bp^T I_b R_bp` is diagonal, in right-handed axes at the centre of mass; Euler's equations are simple there."""
    body, *_ = _body()
    moments, pose = principal_frame(body)
    r = np.asarray(pose.rotation)
    np.testing.assert_allclose(r.T @ np.asarray(body.inertia) @ r, np.diag(moments), atol=1e-14)
    np.testing.assert_allclose([np.linalg.det(r), *(r.T @ r).ravel()], [1, *np.eye(3).ravel()], atol=1e-14)
    np.testing.assert_array_equal(pose.translation, body.com)
    turned = Pose(pose.rotation, jnp.zeros(3))
    g = inertia_in_frame(spatial_inertia(body.mass, body.inertia), turned)
    w = np.array([0.3, -0.7, 0.5])
    x, y, z = np.asarray(moments)
    wanted = [(z - y) * w[1] * w[2], (x - z) * w[0] * w[2], (y - x) * w[0] * w[1]]
    got = body_wrench(g, jnp.asarray([*w, 0, 0, 0]), jnp.zeros(6))[:3]
    np.testing.assert_allclose(got, wanted, atol=1e-14)


@jit
def _derivatives(inertia):
    """Derivatives of moments and axes with respect to the inertia."""

    def frame(x):
        moments, pose = principal_frame(Inertia(1.0, jnp.zeros(3), x))
        return moments, pose.rotation

    return jax.jacrev(frame)(inertia)


def test_derivatives_of_the_principal_frame():
    """Against central differences along a symmetric direction."""
    body, *_ = _body()
    change = np.asarray(random_inertia(np.random.default_rng(5)).inertia)
    got = jax.tree.map(lambda d: np.tensordot(np.asarray(d), change, 2), _derivatives(body.inertia))
    h = 1e-6
    ends = [principal_frame(Inertia(1.0, jnp.zeros(3), body.inertia + s * h * change)) for s in (1, -1)]
    differ = lambda x, y: (np.asarray(x) - np.asarray(y)) / (2 * h)
    np.testing.assert_allclose(got[0], differ(ends[0][0], ends[1][0]), rtol=1e-6)
    np.testing.assert_allclose(got[1], differ(ends[0][1].rotation, ends[1][1].rotation), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("moments", [(2.0, 2.0, 2.0), (1.0, 2.0, 2.0), (2.0, 2.0, 3.0)])
def test_equal_moments_have_finite_derivatives(moments):
    """The sum of the moments has the derivative of the trace; only rotations within the pair have derivative zero."""
    first, axes = _derivatives(jnp.diag(jnp.asarray(moments)))
    np.testing.assert_allclose(np.sum(first, axis=0), np.eye(3), atol=1e-14)
    assert np.isfinite(axes).all()
    assert (np.abs(axes).max() > 0.1) == (len(set(moments)) > 1)


@jit
def _both(m, q, v, a, external):
    method = TwistWrench()
    got = method.inverse_dynamics(m, q, v, a, external), method.mass_matrix(m, q)
    return got, (jd.rnea(m, q, v, a, external), jd.mass_matrix(m, q))


@pytest.mark.slow
def test_screws():
    """A tree with helical joints, wrenches and fixed links."""
    m = random_model(7, 5, kinds=("helical", "revolute", "prismatic"), fixed_fraction=0.2)
    assert m.nv < m.num_links
    for got, wanted in zip(*_both(m, *random_state(m, 0)), strict=True):
        assert relative_error(got, wanted) < TOLERANCE


def test_uncovered_joints_raise_an_error():
    assert "'l0_joint' is a Free" in (TwistWrench().covers(model("floating")) or "")


@pytest.mark.parametrize(
    "method", [TwistWrench(), NewtonEulerReactions(), GibbsAppell()], ids=lambda x: type(x).__name__
)
def test_fixed_models_raise_an_error(method):
    builder = jd.ModelBuilder()
    builder.add_link("post", "world", jd.joints.Fixed(), jd.spatial.sphere(0.1, mass=1.0))
    with pytest.raises(jd.ModelError, match="nothing moves: joint 'post_joint' is fixed"):
        method.bias(builder.build(), jnp.zeros(0), jnp.zeros(0))
