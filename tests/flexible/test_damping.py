"""Damping of flexible links: material damping and ratios of modes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.flexible import ModalDamping
from jaxdyn.simulation import State, linearise_system
from jaxdyn.spatial import point_mass

from ._beams import planar_arm, slender_beam


@jax.jit
def state_matrices(model, part, time, ratios):
    """State matrices with material damping and with ratios of the modes, and the frequencies without damping."""
    zero = jnp.zeros(model.nv)
    damped = eqx.tree_at(lambda p: p.beam.material.retardation_time, part, time)
    systems = jd.System(model, (damped,)), jd.System(model, (part, ModalDamping(part.joint_names, ratios)))
    mounted = part.mount(model)
    matrices = [linearise_system(system, State(zero, zero))[0] for system in systems]
    return matrices, jd.modes(mounted, zero).frequencies


def ratios_of(matrix, frequencies):
    """Damping ratios of the poles, in the order of the frequencies."""
    poles = np.linalg.eigvals(matrix)
    poles = poles[poles.imag > 0]
    poles = poles[np.argsort(np.abs(poles))]
    np.testing.assert_allclose(np.abs(poles), frequencies, rtol=1e-9)
    return -poles.real / np.abs(poles)


@pytest.mark.slow
def test_damping_ratios():
    model, part = planar_arm(slender_beam(1.0, 2.0, 0.5), 3, payload=point_mass(0.2))
    ratios = np.array([0.01, 0.05, 0.02])
    (material, modal), frequencies = state_matrices(model, part, 1e-3, ratios)
    np.testing.assert_allclose(ratios_of(material, frequencies), 1e-3 * frequencies / 2, rtol=1e-8)
    np.testing.assert_allclose(ratios_of(modal, frequencies), ratios, rtol=1e-8)


def test_quaternions_have_no_modal_damping():
    model = jd.ModelBuilder().add_link("ball", "world", jd.joints.Spherical(), point_mass(1.0)).build()
    with pytest.raises(jd.ModelError, match="'ball_joint' have quaternions"):
        ModalDamping(("ball_joint",), 0.1).act(model, 0.0, jd.neutral(model), jnp.zeros(3), None)
