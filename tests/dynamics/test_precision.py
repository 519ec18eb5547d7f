"""Errors in single precision, without NaN or drift."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.joints import Free, Spherical
from jaxdyn.model import ModelBuilder
from tests.dynamics._cases import QUICK, call, chain, model, state
from tests.dynamics._functions import FUNCTIONS, scalar
from tests.oracles import random_inertia, relative_error

# largest relative error against float64 on the 14-link tree; measured were 2e-7 (inverse dynamics) to 6e-7 (mass
# matrix), and 2.3e-6 for accelerations, to which the condition number of the mass matrix adds
SINGLE = {
    "rnea": 3e-6,
    "mass_matrix": 3e-6,
    "bias_forces": 3e-6,
    "gravity_forces": 3e-6,
    "coriolis_matrix": 3e-6,
    "kinetic_energy": 3e-6,
    "potential_energy": 3e-6,
    "momentum": 3e-6,
    "forward_dynamics": 3e-5,
}


def _single(args):
    return jax.tree.map(lambda x: x.astype(jnp.float32), args)


@pytest.mark.slow("rnea", "mass_matrix")
@pytest.mark.parametrize("name", SINGLE)
def test_single_precision(name):
    _in_single_precision("tree", name)


@pytest.mark.slow
def test_forward_dynamics_in_single_precision():
    _in_single_precision("pair", "forward_dynamics")


def _in_single_precision(robot, name):
    args = (model(robot), *state(robot))
    f = jax.jit(FUNCTIONS[name], compiler_options=QUICK)
    want, got = f(*args), f(*_single(args))
    assert got.dtype == jnp.float32
    assert relative_error(got, want) < SINGLE[name]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["rnea", "forward_dynamics"])
def test_gradients_in_single_precision(name):
    args = (model("tree"), *state("tree"))
    f = jax.jit(jax.grad(scalar(name), argnums=(0, 1, 2, 3, 4)), compiler_options=QUICK)
    want, got = f(*args), f(*_single(args))
    for (path, x), y in zip(jax.tree_util.tree_flatten_with_path(got)[0], jax.tree.leaves(want), strict=True):
        assert x.dtype == jnp.float32, path
        assert np.isfinite(np.asarray(x)).all(), path
        # a derivative of forward dynamics passes through the solve twice
        if np.any(np.asarray(y)):
            assert relative_error(x, y) < {"rnea": 1e-4, "forward_dynamics": 1e-2}[name], path


@pytest.mark.exhaustive
@pytest.mark.parametrize("robot", ["geared", "every"])
def test_single_precision_at_rest_has_finite_gradients(robot):
    m = model(robot)
    q = jnp.asarray(jd.neutral(m))
    zero = (jnp.zeros(m.nv), jnp.zeros(m.nv), jnp.zeros((m.num_links, 6)))
    args = _single((m, q, *zero))
    g = jax.jit(jax.grad(scalar("forward_dynamics"), argnums=(0, 1, 2, 3, 4)))(*args)
    assert all(np.isfinite(np.asarray(x)).all() for x in jax.tree.leaves(g))


@pytest.mark.parametrize("dtype", [jnp.float32, pytest.param(jnp.float64, marks=pytest.mark.exhaustive)])
def test_quaternion_keeps_unit_norm(dtype):
    """The norm stays one to rounding over 1e5 steps."""
    rng = np.random.default_rng(0)
    builder = ModelBuilder()
    builder.add_link("body", "world", Free(), random_inertia(rng))
    builder.add_link("ball", "body", Spherical(), random_inertia(rng), translation=(0, 0, 1))
    m = builder.build(dtype)
    v = jnp.asarray(rng.normal(size=m.nv), dtype)

    @jax.jit
    def run(q):
        step = lambda q, k: (jd.integrate(m, q, 1e-2 * v * jnp.cos(1e-3 * k.astype(dtype))), None)
        return jax.lax.scan(step, q, jnp.arange(100_000))[0]

    q = run(jd.neutral(m))
    eps = float(jnp.finfo(dtype).eps)
    assert q.dtype == dtype
    for start in (0, 7):
        assert abs(float(jnp.linalg.norm(q[start : start + 4])) - 1) < 4 * eps
    turn = np.asarray(call("forward_kinematics", m, q).rotation, float)
    assert np.abs(turn @ turn.swapaxes(1, 2) - np.eye(3)).max() < 16 * eps


@pytest.mark.slow
def test_single_precision_of_a_long_chain():
    """50 links: no NaN, and the error of inverse dynamics grows at most linearly with the chain."""
    m = chain(50)
    rng = np.random.default_rng(0)
    q, v, a = (jnp.asarray(rng.uniform(-1, 1, 50)) for _ in range(3))
    args = (m, q, v, a, jnp.zeros((50, 6)))
    want = jax.jit(FUNCTIONS["rnea"])(*args)
    assert relative_error(jax.jit(FUNCTIONS["rnea"])(*_single(args)), want) < 1e-4  # 50 times one link's 2e-6
