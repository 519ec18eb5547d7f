"""The worked example of docs/joints.md runs, and its joint keeps the contract."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import joints
from jaxdyn.joints import AbstractJoint

PAGE = Path(__file__).parents[2] / "docs" / "joints.md"


@pytest.fixture(scope="module")
def page():
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    assert len(blocks) == 3
    names: dict = {"__name__": "joints_page"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    return names


def test_the_class_and_the_function_are_one_joint(page):
    function, written = page["knee"], page["RollingKnee"](0.03)
    q, v = jnp.linspace(-1, 1, 5)[:, None], jnp.linspace(0.5, 2, 5)[:, None]

    @jax.jit
    def evaluated(joint):
        return jax.vmap(lambda q, v: (*joint.transform(q), joint.subspace(q), joint.bias(q, v)))(q, v)

    for x, y in zip(evaluated(function), evaluated(written), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-14)


def test_a_knee_without_radius_is_a_hinge(page):
    r, p = page["RollingKnee"](0.0).transform(jnp.array([0.2]))
    hinge, _ = joints.Revolute((0, 1, 0)).transform(jnp.array([0.4]))
    np.testing.assert_allclose(r, hinge, atol=1e-15)
    np.testing.assert_array_equal(p, 0)


def test_the_page_names_every_joint_and_every_member():
    text = PAGE.read_text(encoding="utf-8")
    kinds = [k for k in vars(joints) if k[0].isupper() and not k.startswith("Abstract")]
    assert [k for k in kinds if f"`{k}(" not in text] == []
    assert [k for k in sorted(AbstractJoint.__abstractmethods__) if f"`{k}(" not in text] == []
