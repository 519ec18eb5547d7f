"""The worked example of docs/joints.md runs, and its joint satisfies the contract."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import joints
from jaxdyn.joints import AbstractJoint
from tests.pages import read_page, run_page


@pytest.fixture(scope="module")
def page():
    return run_page("joints")


@pytest.mark.slow
def test_the_class_agrees_with_the_custom_joint(page):
    custom, written = page["knee"], page["RollingKnee"](0.03)
    q, v = jnp.linspace(-1, 1, 5)[:, None], jnp.linspace(0.5, 2, 5)[:, None]

    @jax.jit
    def evaluate(joint):
        return jax.vmap(lambda q, v: (*joint.transform(q), joint.subspace(q), joint.bias(q, v)))(q, v)

    for x, y in zip(evaluate(custom), evaluate(written), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-14)


@pytest.mark.slow
def test_a_rolling_knee_of_zero_radius_is_a_revolute_joint(page):
    r, p = page["RollingKnee"](0.0).transform(jnp.array([0.2]))
    revolute, _ = joints.Revolute((0, 1, 0)).transform(jnp.array([0.4]))
    np.testing.assert_allclose(r, revolute, atol=1e-15)
    np.testing.assert_array_equal(p, 0)


def test_the_page_lists_every_joint_and_every_method():
    text = read_page("joints")
    kinds = [k for k in vars(joints) if k[0].isupper() and not k.startswith("Abstract")]
    assert [k for k in kinds if f"`{k}(" not in text] == []
    assert [k for k in sorted(AbstractJoint.__abstractmethods__) if f"`{k}(" not in text] == []
