"""The hot kernels contain only operations that XLA on CPU compiles as one function; others are several times slower."""

import jax
import jax.numpy as jnp
import pytest

import jaxdyn as jd
from jaxdyn._numerics import _block


def _squared_norm(f):
    return lambda m, q, v, a: jnp.sum(f(m, q, v, a) ** 2)


WORK = {
    "rnea": jd.rnea,
    "mass_matrix": lambda m, q, v, a: jd.mass_matrix(m, q),
    "forward_dynamics": jd.forward_dynamics,
    "rnea_derivatives": jd.rnea_derivatives,
    "forward_dynamics_derivatives": jd.forward_dynamics_derivatives,
    "gradient of rnea": jax.grad(_squared_norm(jd.rnea), (0, 1, 2, 3)),
    "gradient of forward_dynamics": jax.grad(_squared_norm(jd.forward_dynamics), (0, 1, 2, 3)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WORK)
def test_every_block_is_compiled_as_one_function(name, monkeypatch):
    _check_all_blocks_emittable(name, jd.robots.double_pendulum(), monkeypatch)


@pytest.mark.slow
def test_blocks_of_joints_with_a_configuration_dependent_subspace(monkeypatch):
    b = jd.ModelBuilder().add_link("hip", "world", jd.joints.Universal((1, 0, 0), (0, 1, 0)))
    b.add_link("leg", "hip", jd.joints.SphericalZYX(), jd.spatial.sphere(0.1, mass=1.0))
    _check_all_blocks_emittable("forward_dynamics_derivatives", b.build(), monkeypatch)


def _check_all_blocks_emittable(name, model, monkeypatch):
    state = (jd.neutral(model), *(jnp.ones(model.nv) for _ in range(2)))
    seen = []
    is_emittable = _block._is_emittable_equation
    monkeypatch.setattr(
        _block,
        "_is_emittable_equation",
        lambda eqn: seen.append((eqn.primitive.name, is_emittable(eqn))) or is_emittable(eqn),
    )
    _block._trace.cache_clear()
    jax.jit(lambda *args: WORK[name](*args)).lower(model, *state)
    assert seen
    assert {primitive for primitive, emittable in seen if not emittable} == set()
