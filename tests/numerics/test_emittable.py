"""The hot kernels stay within what is compiled as one function on CPU: a new operation would cost multiples."""

import jax
import jax.numpy as jnp
import pytest

import jaxdyn as jd
from jaxdyn._numerics import _block


def _both(f):
    return lambda m, q, v, a: jnp.sum(f(m, q, v, a) ** 2)


WORK = {
    "rnea": jd.rnea,
    "mass_matrix": lambda m, q, v, a: jd.mass_matrix(m, q),
    "forward_dynamics": jd.forward_dynamics,
    "rnea_derivatives": jd.rnea_derivatives,
    "forward_dynamics_derivatives": jd.forward_dynamics_derivatives,
    "gradient of rnea": jax.grad(_both(jd.rnea), (0, 1, 2, 3)),
    "gradient of forward_dynamics": jax.grad(_both(jd.forward_dynamics), (0, 1, 2, 3)),
}


@pytest.mark.parametrize("name", WORK)
def test_every_block_is_one_function(name, monkeypatch):
    _taken(name, jd.robots.double_pendulum(), monkeypatch)


@pytest.mark.slow
def test_joints_whose_subspace_varies(monkeypatch):
    b = jd.ModelBuilder().add_link("hip", "world", jd.joints.Universal((1, 0, 0), (0, 1, 0)))
    b.add_link("leg", "hip", jd.joints.SphericalZYX(), jd.spatial.sphere(0.1, mass=1.0))
    _taken("forward_dynamics_derivatives", b.build(), monkeypatch)


def _taken(name, model, monkeypatch):
    state = (jd.neutral(model), *(jnp.ones(model.nv) for _ in range(2)))
    seen = []
    judge = _block._takes
    monkeypatch.setattr(_block, "_takes", lambda eqn: seen.append((eqn.primitive.name, judge(eqn))) or judge(eqn))
    _block._traced.cache_clear()
    jax.jit(lambda *args: WORK[name](*args)).lower(model, *state)
    assert seen
    assert {primitive for primitive, taken in seen if not taken} == set()
