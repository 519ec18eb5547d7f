"""Sublinks against the printed numbers of the source, and against beam theory.

L. Celentano, "An Innovative Method for Robots Modeling and Simulation", in "New Approaches in Automation and
Robotics", I-Tech 2008, section 5.2, equations 70 to 76.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.formulations import NeglectedDeformation
from jaxdyn.spatial import Inertia, point_mass

from ._beams import HINGE, frequencies, planar_arm, seed_beam

#: frequencies of the hinged arm, Hz, with more digits than equations 72 and 73 print
HINGED = {
    5: [6.3089288974, 20.3946318147, 41.8823105050, 65.5829537033, 90.8133056798],
    10: [6.3102076372, 20.4459746043, 42.6320742851, 72.7665041543, 110.5000292454],
}


@pytest.mark.slow("5")
@pytest.mark.parametrize("sublinks", [5, 10])
def test_frequencies_of_the_hinged_arm(sublinks):
    found = frequencies(*planar_arm(seed_beam(), sublinks, joint=HINGE))
    assert found[0] == 0
    np.testing.assert_allclose(found[1:6], HINGED[sublinks], rtol=2e-9)


@pytest.mark.exhaustive
def test_frequencies_of_a_cantilever_converge_with_second_order():
    exact = 2.0**-2 * np.sqrt(1e11 * 0.01**2 / 12 / 7876) / (2 * np.pi) * np.array([3.51601526850, 22.0344915647])
    error = np.array([frequencies(*planar_arm(seed_beam(), n))[:2] / exact - 1 for n in (8, 16, 32)])
    np.testing.assert_allclose(100 * error[:, 0], [0.3596, 0.0897, 0.0224], atol=5e-5)
    np.testing.assert_allclose(100 * error[:, 1], [1.257, 0.312, 0.0779], atol=5e-4)
    np.testing.assert_allclose(np.log2(error[:-1] / error[1:]), 2, atol=0.02)


@pytest.mark.exhaustive
def test_payload_and_hub():
    loaded = frequencies(*planar_arm(seed_beam(), 10, payload=point_mass(0.5)))
    np.testing.assert_allclose(loaded[:2], [0.9522197911, 7.2085235464], rtol=1e-8)
    model, part = planar_arm(seed_beam(), 40, joint=HINGE)
    hub = 0.1 * 0.7876 * 2.0**3
    model = eqx.tree_at(lambda m: m.properties.armature, model, model.properties.armature.at[0].add(hub))
    np.testing.assert_allclose(frequencies(model, part)[1:3], [2.8503935983, 9.4101534800], rtol=1e-8)


@jax.jit
def tip_at_rest(model, part, moment, force):
    """Angle and deflection of the tip of the arm with its base held, for a small moment and transverse force."""
    arm = part.mount(model)
    loads = (moment / 1e6, force / 1e6)  # the equations of the source are linear

    def work(model, q):
        pose = jd.frame_pose(model, q, part.tip)
        return -loads[0] * jnp.sum(q) - loads[1] * pose.translation[1]

    rest = jd.static_equilibrium(arm, jnp.zeros(arm.nq), energies=(work,), gravity=False)
    return 1e6 * jnp.sum(rest.q), 1e6 * jd.frame_pose(arm, rest.q, part.tip).translation[1], rest.converged


@pytest.mark.slow("1")
@pytest.mark.parametrize("sublinks", [1, 5, 10])
def test_static_deflections(sublinks):
    model, part = planar_arm(seed_beam(), sublinks)
    angle, deflection, converged = tip_at_rest(model, part, 1.0, 0.0)
    assert converged
    np.testing.assert_allclose([np.rad2deg(angle), deflection], [1.3750987083, 0.024], rtol=1e-9)  # (74)
    angle, deflection, converged = tip_at_rest(model, part, 0.0, 1.0)
    assert converged
    np.testing.assert_allclose(np.rad2deg(angle), 1.3750987083, rtol=1e-9)
    np.testing.assert_allclose(deflection, 0.032 * (1 - 1 / (4 * sublinks**2)), rtol=1e-9)  # (75, 76)


@eqx.filter_jit
def reduced(method, arm, q, v, a):
    straight = jnp.zeros(arm.nq).at[0].set(q[0])
    # one link on a hinge has a constant inertia: no velocity-dependent terms, gravity as in the undeformed arm
    expected = jd.mass_matrix(arm, straight) @ a + jd.gravity_forces(arm, straight)
    masses = method.mass_matrix(arm, q), jd.mass_matrix(arm, straight)
    return masses, (method.inverse_dynamics(arm, q, v, a), expected)


@pytest.mark.slow
def test_reduced_kinetic_model():
    payload = Inertia(0.1, [0.1, 0.2, 0], np.eye(3) * 0.01)
    model, part = planar_arm(seed_beam(), 2, joint=HINGE, gravity=(0.0, -9.81, 0.0), payload=payload)
    arm = part.mount(model)
    method = NeglectedDeformation(part.joint_names)
    for found, expected in reduced(method, arm, *jax.random.normal(jax.random.key(0), (3, arm.nq))):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    with pytest.raises(jd.ModelError, match="no joint called 'elbow'"):
        NeglectedDeformation(("elbow",)).mass_matrix(arm, jnp.zeros(arm.nq))
