"""Levenberg-Marquardt and first-order descent over bodies, and the nonlinear physical fit."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxdyn as jd
from jaxdyn.actuators import DcMotor, drive, joint_friction
from jaxdyn.identification import (
    FirstOrder,
    FitStatus,
    GeometricPrior,
    LevenbergMarquardt,
    Physical,
    fit,
    link_checks,
    predicted_effort,
)

from ._made import SELECTION, arm, disturbed, log_of, motion

ARM = arm()
START = disturbed(ARM)


@pytest.mark.slow
def test_the_smoothing_velocity_of_friction_is_found():
    """Not linear: summed anew at each step. Exact data, so that the truth is the minimum."""
    start = eqx.tree_at(lambda m: m.properties.friction_velocity, ARM, jnp.full(3, 0.09))
    paths = ("joints[*].friction", "joints[*].friction_velocity")
    found = fit(start, log_of(ARM), paths, Physical(reweight=0), weights=jnp.ones(3)).checked()
    for k in (1, 2, 3):
        assert found.value(f"joints[joint{k}].friction_velocity") == pytest.approx(0.05, rel=1e-5)
    assert found.relative_error < 1e-6


@pytest.mark.slow
def test_both_methods_over_bodies_find_one_minimum():
    log = log_of(ARM, 0.05)
    prior = GeometricPrior(1.0, 1.0)
    convex = fit(START, log, SELECTION, Physical(reweight=0), prior=prior, weights=jnp.full(3, 20.0))
    free = fit(START, log, SELECTION, LevenbergMarquardt(reweight=0), prior=prior, weights=jnp.full(3, 20.0)).checked()
    several = fit(
        START, log, SELECTION, LevenbergMarquardt(reweight=0, starts=4), prior=prior, weights=jnp.full(3, 20.0)
    ).checked()
    assert free.is_physical and convex.is_physical
    assert free.cost == pytest.approx(convex.cost, rel=1e-6)
    assert several.cost == pytest.approx(convex.cost, rel=1e-6)
    adam = FirstOrder(optax.adam(optax.cosine_decay_schedule(5.0, 8000)), max_steps=8000, reweight=0)
    descent = fit(START, log, SELECTION, adam, prior=prior, weights=jnp.full(3, 20.0))
    assert descent.is_physical and descent.cost < 1.2 * convex.cost < 0.01 * descent.initial_cost


@pytest.mark.slow
def test_asymmetric_stribeck_and_load_dependent_friction_and_offsets_are_found():
    friction = joint_friction(ARM, coulomb=0.3, stribeck=0.2, stribeck_velocity=0.4, load_coefficient=0.05, width=0.05)
    friction = eqx.tree_at(lambda p: p.coulomb_backward, friction, jnp.full(3, 0.45))
    truth = jd.System(ARM, (drive(ARM, offset=0.2), friction))
    bare = log_of(ARM)
    log = eqx.tree_at(lambda x: x.effort, bare, predicted_effort(truth, bare))
    start = jd.System(ARM, (drive(ARM), joint_friction(ARM, coulomb=0.3, stribeck_velocity=0.4, width=0.05)))
    fields = ("stribeck[joint2]", "load_coefficient[joint2]", "coulomb_backward")
    paths = ("parts[Drive].offset", *(f"parts[JointFriction].{field}" for field in fields))
    found = fit(start, log, paths, Physical(reweight=0), weights=jnp.ones(3))
    assert found.value("parts[JointFriction].stribeck[joint2]") == pytest.approx(0.2, abs=1e-4)
    assert found.value("parts[JointFriction].load_coefficient[joint2]") == pytest.approx(0.05, abs=1e-4)


@pytest.mark.slow
def test_random_fits_of_seven_joints_converge_24_of_24():
    """Truth and prior are random bodies; the optimum is known from the data without noise."""
    model = jd.robots.panda()
    rng = np.random.default_rng(5)
    converged = 0
    for k in range(24):
        factors = np.exp(rng.normal(0, 0.3, model.num_links))
        links = lambda m: (m.links.mass, m.links.inertia, m.links.com)
        random = lambda factors: (
            model.links.mass * factors,
            model.links.inertia * factors[:, None, None],
            model.links.com * (1 + 0.2 * rng.normal(size=model.links.com.shape)),
        )
        truth = eqx.tree_at(links, model, random(factors))
        factors = np.exp(rng.normal(0, 0.5, model.num_links))
        start = eqx.tree_at(links, model, random(factors))
        found = fit(start, log_of(truth, 0.02, seed=k), "links[*].inertial", Physical(reweight=1))
        noise = [e.fit for e in found.errors]
        good = found.status == FitStatus.CONVERGED and found.is_physical and max(noise) < 0.025
        converged += good and all(c.physical for c in link_checks(found.model))
    assert converged == 24


def test_parts_with_a_state_are_refused():
    motor = DcMotor("joint1", 1.0, constant=0.1, resistance=1.0, inductance=0.1)
    with pytest.raises(jd.ModelError, match="DcMotor has a state"):
        fit(jd.System(ARM, (motor,)), log_of(ARM), "parts[DcMotor].resistance", Physical())
    assert motion(3)[1].shape == (400, 3)
