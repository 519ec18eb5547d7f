"""A pendulum from its screw and from its link vectors, in closed form."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.model import JointVectors, from_link_vectors, from_screws
from jaxdyn.spatial import Inertia

MASS, LENGTH, INERTIA = 2.0, 0.5, 0.01


def _from_screw():
    home = np.eye(4)
    home[2, 3] = -LENGTH  # the centre of mass hangs below the joint
    body = np.diag([INERTIA] * 3 + [MASS] * 3)
    return from_screws([[0, 1, 0, -LENGTH, 0, 0]], [home], [body])


def _from_vectors():
    body = Inertia(MASS, jnp.zeros(3), INERTIA * jnp.eye(3))
    return from_link_vectors([JointVectors((0, 1, 0), (0, 1, 0), (0, 0, 0.3), (0, 0, -LENGTH))], [body])


@pytest.mark.parametrize("build", [_from_screw, _from_vectors])
def test_pendulum(build):
    model, q = build(), jnp.array([0.7])
    np.testing.assert_allclose(jd.mass_matrix(model, q), [[INERTIA + MASS * LENGTH**2]], rtol=1e-12)
    np.testing.assert_allclose(jd.gravity_forces(model, q), [MASS * 9.81 * LENGTH * np.sin(0.7)], rtol=1e-12)
