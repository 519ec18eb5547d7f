"""Analytic Jacobians against automatic differentiation, for varying subspaces, user-defined and mimicking joints."""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.joints import Revolute, Universal
from jaxdyn.model import ModelBuilder
from tests.dynamics._cases import QUICK, TOLERANCE, call, model
from tests.dynamics._own_joints import OnCircle, Stretched
from tests.oracles import random_inertia, random_rotation, random_state, relative_error

quick = ft.partial(jax.jit, compiler_options=QUICK)


def _series(*joints):
    rng = np.random.default_rng(3)
    builder, parent = ModelBuilder(gravity=(1.0, -2.0, -9.0)), "world"
    for k, joint in enumerate(joints):
        place = {"translation": 0.3 * rng.normal(size=3), "rotation": random_rotation(rng)}
        builder.add_link(f"l{k}", parent, joint, random_inertia(rng), **place, armature=0.1)
        parent = f"l{k}"
    return builder


def _robot_of_user_joints():
    return _series(Revolute((0.3, 0.5, -0.7)), OnCircle(), Stretched(), Revolute((0.1, -0.5, 0.4))).build()


def _robot_with_mimicking_joint():
    """A joint that mimics a joint with a configuration-dependent subspace."""
    joints = (Revolute((0.3, 0.5, -0.7)), Universal((1, 0.2, 0), (0.1, 1, 0)), Revolute((0.1, -0.5, 0.4)))
    return _series(*joints[:2]).add_link("l2", "l1", joints[2], random_inertia(np.random.default_rng(1))).add_mimic(
        "l2_joint", "l0_joint", ratio=-0.6, offset=0.3
    ).build()  # fmt: skip


ROBOTS = {"own": _robot_of_user_joints, "tied": _robot_with_mimicking_joint, "geared": lambda: model("geared")}


@quick
def _automatic(m, q, v, x, e):
    zero = jnp.zeros(m.nv)
    each = []
    for f in (jd.rnea, ft.partial(jd.forward_dynamics, method=jd.crba_solve)):
        at = lambda dq, dv, dx, f=f: f(m, jd.integrate(m, q, dq), v + dv, x + dx, e)
        each.append(jax.jacfwd(at, (0, 1, 2))(zero, zero, zero))
    return each


@quick
def _analytic(m, q, v, x, e):
    return jd.rnea_derivatives(m, q, v, x, e), jd.forward_dynamics_derivatives(m, q, v, x, e)


@pytest.mark.slow("own")
@pytest.mark.parametrize("robot", ROBOTS)
def test_analytic_jacobians_equal_automatic_derivatives(robot):
    m = ROBOTS[robot]()
    args = (m, *random_state(m, 1))
    for got, want in zip(_analytic(*args), _automatic(*args), strict=True):
        for x, y in zip(jax.tree.leaves(got), want, strict=True):
            assert relative_error(x, y) < TOLERANCE


@pytest.mark.slow
def test_dynamics_do_not_depend_on_joint_coordinates():
    """Two joints describe the same motion in different coordinates: `tau_v = tau_angle dangle/dv`."""
    rng = np.random.default_rng(0)
    angle, rate, second = 0.4, -0.8, 0.3
    one, other = _series(OnCircle()).build(), _series(Stretched()).build()
    e = jnp.asarray(rng.normal(size=(1, 6)))
    state = (jnp.array([np.cos(angle), np.sin(angle)]), jnp.array([rate]), jnp.array([second]))
    gain = np.exp(angle)
    stretched = (jnp.array([angle]), jnp.array([gain * rate]), jnp.array([gain * (second + rate**2)]))
    pairs = ((one, state), (other, stretched))
    first, then = (call("rnea", m, *s, e) - m.properties.armature * s[2] for m, s in pairs)
    assert relative_error(then * gain, first) < TOLERANCE


@pytest.mark.exhaustive
def test_jacobians_in_single_precision():
    m = _robot_with_mimicking_joint()
    args = (m, *random_state(m, 1))
    low = jax.tree.map(lambda x: x.astype(jnp.float32), args)
    for x, y in zip(jax.tree.leaves(_analytic(*low)), jax.tree.leaves(_analytic(*args)), strict=True):
        assert x.dtype == jnp.float32
        assert relative_error(x, y) < 1e-4  # accelerations lose the digits of the condition number
