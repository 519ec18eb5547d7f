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
from tests.kinematics.test_frames import close, geared
from tests.oracles import ALL_KINDS, random_model, random_state, to_pinocchio


@pytest.mark.parametrize("floating", [pytest.param(False, marks=pytest.mark.slow), True])
def test_agreement_with_pinocchio(floating):
    model = random_model(10, 12, fixed_fraction=0.2, floating=floating)
    oracle = to_pinocchio(model)
    q, v, _, _ = random_state(model, 0)
    m, d = oracle.model, oracle.data
    close(total_mass(model), pin.computeTotalMass(m))
    close(center_of_mass(model, q), pin.centerOfMass(m, d, oracle.q(q), oracle.v(v)))
    close(center_of_mass_velocity(model, q, v), d.vcom[0])
    want = pin.jacobianCenterOfMass(m, d, oracle.q(q))
    close(center_of_mass_jacobian(model, q), oracle.columns_back(want))


@pytest.mark.slow
def test_jacobian_is_the_derivative():
    model = random_model(11, 11, kinds=ALL_KINDS)
    q, *_ = random_state(model, 1)
    moved = lambda dv: center_of_mass(model, integrate(model, q, dv))
    close(center_of_mass_jacobian(model, q), jax.jacfwd(moved)(jnp.zeros(model.nv)))


def test_no_mass_and_no_bodies():
    model = geared()  # weightless
    q = jnp.zeros(2)
    close(center_of_mass(model, q), np.zeros(3))
    close(center_of_mass_jacobian(model, q), np.zeros((3, 2)))
    b = ModelBuilder()
    b.add_link("table", inertia=box((1, 1, 1), mass=5.0))
    fixed = b.build()
    assert total_mass(fixed) == 0
    assert center_of_mass_velocity(fixed, jnp.zeros(0), jnp.zeros(0)).shape == (3,)
