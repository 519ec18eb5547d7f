"""The centre of mass against Pinocchio, and the Jacobian against automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from jaxdyn.kinematics import (
    center_of_mass,
    center_of_mass_jacobian,
    center_of_mass_velocity,
    integrate,
    total_mass,
)
from jaxdyn.model import ModelBuilder
from jaxdyn.spatial import box
from tests.kinematics.test_frames import assert_close, robot_with_mimicking_joint
from tests.oracles import ALL_KINDS, random_model, random_state, to_pinocchio


@jax.jit
def _all(model, q, v):
    return (
        total_mass(model),
        center_of_mass(model, q),
        center_of_mass_velocity(model, q, v),
        center_of_mass_jacobian(model, q),
    )


def _assert_agreement(model):
    oracle = to_pinocchio(model)
    q, v, _, _ = random_state(model, 0)
    m, d = oracle.model, oracle.data
    mass, center, velocity, matrix = _all(model, q, v)
    assert_close(mass, pin.computeTotalMass(m))
    assert_close(center, pin.centerOfMass(m, d, oracle.q(q), oracle.v(v)))
    assert_close(velocity, d.vcom[0])
    assert_close(matrix, oracle.columns_back(pin.jacobianCenterOfMass(m, d, oracle.q(q))))


@pytest.mark.slow
def test_links_fixed_to_the_world_do_not_count():
    _assert_agreement(random_model(10, 5, kinds=("revolute", "spherical"), fixed_fraction=0.3, based=True))


@pytest.mark.slow("True")
@pytest.mark.parametrize("floating", [False, True])
def test_agreement_with_pinocchio(floating):
    _assert_agreement(random_model(10, 12, fixed_fraction=0.2, floating=floating, based=not floating))


@pytest.mark.exhaustive
def test_jacobian_is_the_derivative():
    model = random_model(11, 11, kinds=ALL_KINDS)
    q, *_ = random_state(model, 1)
    moved = lambda dv: center_of_mass(model, integrate(model, q, dv))
    assert_close(_all(model, q, jnp.zeros(model.nv))[3], jax.jit(jax.jacfwd(moved))(jnp.zeros(model.nv)))


@pytest.mark.slow
def test_no_mass_and_no_bodies():
    model = robot_with_mimicking_joint()  # weightless
    _, center, _, matrix = _all(model, jnp.zeros(2), jnp.zeros(2))
    assert_close(center, np.zeros(3))
    assert_close(matrix, np.zeros((3, 2)))
    b = ModelBuilder()
    b.add_link("table", inertia=box((1, 1, 1), mass=5.0))
    fixed = b.build()
    assert total_mass(fixed) == 0
    assert center_of_mass_velocity(fixed, jnp.zeros(0), jnp.zeros(0)).shape == (3,)
