"""Task-space inertia with repeated eigenvalues, and at a singular configuration."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.joints import Free, Revolute
from jaxdyn.model import ModelBuilder
from jaxdyn.spatial import sphere
from tests.dynamics._cases import QUICK


def _inertia(model, q):
    return jd.task_space_dynamics(model, q, jnp.zeros(model.nv), model.link_names[-1]).inertia


@pytest.mark.exhaustive
def test_task_space_of_a_free_ball():
    """A free ball: `Lambda = diag(I, m)`, with three equal values twice, and its derivatives in m and in the pose."""
    m = ModelBuilder().add_link("ball", "world", Free(), sphere(0.5, mass=2.0)).build()
    q = jd.neutral(m)
    got = _inertia(m, q)
    np.testing.assert_allclose(got, np.diag([0.2] * 3 + [2.0] * 3), atol=1e-14)
    slopes = jax.jit(jax.jacrev(_inertia, (0, 1)), compiler_options=QUICK)(m, q)
    np.testing.assert_allclose(slopes[0].links.mass[..., 0], np.diag([0.0] * 3 + [1.0] * 3), atol=1e-14)
    np.testing.assert_allclose(slopes[1], 0, atol=1e-14)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(slopes))
    # a stretched arm of two joints moves its end in few directions, which its derivative may not divide by
    b = ModelBuilder()
    for k in range(2):
        body = sphere(0.1, mass=1.0).moved((0.5, 0, 0))
        b.add_link(f"l{k}", f"l{k - 1}" if k else "world", Revolute((0, 0, 1)), body, translation=(k * 1.0, 0, 0))
    arm = b.build()
    held = eqx.filter_jit(jax.jacrev(_inertia, (0, 1)))(arm, jnp.zeros(2))
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(held))
