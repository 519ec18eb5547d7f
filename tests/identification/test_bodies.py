"""Replacement of inertias that are not physically consistent."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn.identification import as_bodies, link_checks


def test_inconsistent_inertias_are_replaced_and_others_stay():
    arm = jd.robots.double_pendulum()
    typed = jnp.array([[2.4e-8, 6.1e-8, 1.2e-8], [6.1e-8, 2.8e-8, 7.7e-9], [1.2e-8, 7.7e-9, 3.8e-8]])
    row = arm.num_links - 1
    wrong = eqx.tree_at(lambda m: m.links.inertia, arm, arm.links.inertia.at[row].set(typed))
    assert [check.link for check in link_checks(wrong) if not check.physical] == [arm.link_names[row]]
    consistent = as_bodies(wrong)
    assert all(check.physical for check in link_checks(consistent))
    np.testing.assert_array_equal(consistent.links.inertia[:row], arm.links.inertia[:row])
    np.testing.assert_array_equal(consistent.links.mass, arm.links.mass)
    np.testing.assert_array_equal(consistent.links.com, arm.links.com)
    # eigenvalues of the second moments are raised, positive ones stay
    moments = lambda i: np.trace(i) / 2 * np.eye(3) - np.asarray(i)
    before, axes = np.linalg.eigh(moments(typed))
    after = np.diag(axes.T @ moments(consistent.links.inertia[row]) @ axes)
    np.testing.assert_allclose(after, np.maximum(before, 1e-5 * before.max()), rtol=1e-9)
    np.testing.assert_array_equal(as_bodies(consistent).links.inertia, consistent.links.inertia)
