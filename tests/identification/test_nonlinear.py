"""Nonlinear fits: Levenberg-Marquardt, first-order descent, robust losses, bounds and the prior."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import optimistix as optx
import pytest

import jaxdyn as jd
from jaxdyn.actuators import DcMotor, drive, joint_friction
from jaxdyn.identification import (
    Cauchy,
    FirstOrder,
    FitStatus,
    GeometricPrior,
    Huber,
    LevenbergMarquardt,
    Linear,
    Log,
    Physical,
    collect,
    fit,
    link_checks,
    pseudo_inertia,
)
from jaxdyn.identification.methods._levenberg_marquardt import minimise_damped
from jaxdyn.identification.parameters import check_bodies
from jaxdyn.simulation import cubic_signal

from .synthetic_logs import SELECTION, arm, efforts, motion, perturb_model, synthetic_log

ARM = arm()
START = perturb_model(ARM)


@pytest.mark.slow
def test_friction_velocity_is_identified():
    """A nonlinear residual with exact data, so that the truth is the minimum."""
    start = eqx.tree_at(lambda m: m.properties.friction_velocity, ARM, jnp.full(3, 0.09))
    paths = ("joints[*].friction", "joints[*].friction_velocity")
    found = fit(start, synthetic_log(ARM), paths, Physical(reweight=0), weights=jnp.ones(3)).checked()
    for k in (1, 2, 3):
        assert found.value(f"joints[joint{k}].friction_velocity") == pytest.approx(0.05, rel=1e-5)
    assert found.relative_error < 1e-6


@pytest.mark.slow
def test_physical_and_levenberg_marquardt_find_the_same_minimum():
    log = synthetic_log(ARM, 0.05)
    prior = GeometricPrior(1.0, 1.0)
    convex = fit(START, log, SELECTION, Physical(reweight=0), prior=prior, weights=jnp.full(3, 20.0)).checked()
    free = fit(START, log, SELECTION, LevenbergMarquardt(reweight=0), prior=prior, weights=jnp.full(3, 20.0)).checked()
    assert free.is_physical and convex.is_physical
    assert free.cost == pytest.approx(convex.cost, rel=1e-6)


@pytest.mark.exhaustive
def test_friction_parameters_from_closed_form_efforts():
    """Coulomb and viscous friction of both directions, Stribeck friction with its velocity, load-dependent friction."""
    model = arm(2)
    t, q, v, a = motion(2)
    s = np.tanh(v / 0.05)
    up, down = (1 + s) / 2, (1 - s) / 2
    static = np.array(efforts(model, q, 0 * v, 0 * a))
    load = np.sqrt(static**2 + 0.01**2) - 0.01
    friction = 0.3 * up - 0.45 * down + (0.2 * up + 0.35 * down) * v
    friction += (np.array([0.2, 0.25]) * np.exp(-((v / 0.4) ** 2)) + np.array([0.0, 0.05]) * load) * s
    log = Log(t, q, v, a, np.asarray(efforts(model, q, v, a)) + friction)
    start = joint_friction(model, coulomb=0.2, viscous=0.1, stribeck=0.1, stribeck_velocity=0.6, width=0.05)
    truth = {
        "coulomb_forward": 0.3,
        "coulomb_backward": 0.45,
        "viscous_forward": 0.2,
        "viscous_backward": 0.35,
        "stribeck": [0.2, 0.25],
        "stribeck_velocity": 0.4,
        "load_coefficient": [0.0, 0.05],
    }
    paths = [f"parts[JointFriction].{field}" for field in truth if field != "load_coefficient"]
    paths.append("parts[JointFriction].load_coefficient[joint2]")  # gravity does not load the first joint
    system = jd.System(model, (drive(model), start))
    found = fit(system, log, paths, LevenbergMarquardt(reweight=0, rtol=1e-12), weights=jnp.full(2, 1e3)).checked()
    for field, value in truth.items():
        np.testing.assert_allclose(getattr(found.system.parts[1], field), np.broadcast_to(value, 2), atol=1e-4)
    # a sensor offset cannot be told from Coulomb friction that differs by direction
    pair = tuple(f"parts[JointFriction].coulomb_{way}" for way in ("forward", "backward"))
    both = fit(system, log, ("parts[Drive].offset", *pair), Physical(reweight=0))
    assert len(both.unobservable) == 2 and "offset" in " ".join(both.unobservable)


def _pendulum(noise=0.0, samples=120, **parts):
    model = jd.robots.pendulum(**parts)
    t, q, v, a = motion(1, samples)
    u = np.asarray(efforts(model, q, v, a))
    return model, Log(t, q, v, a, u + noise * np.random.default_rng(3).normal(size=u.shape))


def _with_damping(value):
    model, _ = _pendulum(damping=value, samples=4)
    return model, f"joints[{model.joint_names[0]}].damping"


@pytest.mark.exhaustive
def test_several_starts_find_the_global_minimum():
    """The gear n of a motor, `tau = n K (u - K n v) / R`, has a second, local minimum near zero."""
    model, log = _pendulum()
    n, k, ohm = 20.0, 0.5, 1.0
    voltage = ohm * log.effort[:, 0] / (n * k) + k * n * log.v[:, 0]
    path = cubic_signal(log.t, voltage[:, None]).path
    law = lambda t, q, v: path.evaluate(t)[0]
    log = eqx.tree_at(lambda x: x.effort, log, 0 * log.effort)  # there is no sensor of efforts
    system = lambda gear: jd.System(model, (DcMotor(model.joint_names[0], law, constant=k, resistance=ohm, gear=gear),))
    search = lambda gear, **options: fit(
        system(gear), log, "parts[DcMotor].gear", LevenbergMarquardt(reweight=0, **options), weights=[1.0]
    )
    near, alone, several = search(17.0), search(3.0), search(3.0, starts=16, spread=3.0)
    assert near.checked().value("parts[DcMotor].gear") == pytest.approx(n, rel=1e-6)
    assert alone.value("parts[DcMotor].gear") < 5 and alone.relative_error > 0 and alone.cost > 1.0
    assert several.checked().value("parts[DcMotor].gear") == pytest.approx(n, rel=1e-6)


@pytest.mark.exhaustive
def test_minimum_agrees_with_optimistix():
    """Geometry and a gain under noise, against optimistix on the vector of all residuals."""
    model = arm(2)
    system = jd.System(model, (drive(model, gain=1.2),))
    paths = ("joints[joint2].translation", "parts[Drive].gain", "gravity.direction")
    log = synthetic_log(model, 0.3, samples=60)
    method = LevenbergMarquardt(reweight=0, rtol=1e-14)
    found = fit(system, log, paths, method, prior=GeometricPrior(0.0, 1e-9), weights=[1.0, 2.0]).checked()
    parameters = collect(system, paths)
    rows = [jnp.asarray(x) for x in (log.q, log.v, log.a, log.effort)]

    def residual(x, _):
        now = parameters.insert(x)
        one = lambda q, v, a, u: u - jd.rnea(now.model, q, v, a) / now.parts[0].gain
        passive = jax.vmap(lambda q, v: jd.passive_forces(now.model, q, v))(rows[0], rows[1]) / now.parts[0].gain
        return (jax.vmap(one)(*rows) + passive) * jnp.array([1.0, 2.0])

    solver = optx.LevenbergMarquardt(rtol=1e-10, atol=1e-12)
    other = optx.least_squares(residual, solver, parameters.read(), throw=False).value
    # a ten-thousandth of their deviations
    np.testing.assert_allclose([row.value for row in found.parameters], other, rtol=0, atol=1e-6)


class _Kink(eqx.Module):
    """A gradient of the wrong sign: every step raises the cost."""

    def quadratic_model(self, z):
        return 1 + 10 * jnp.sum(jnp.abs(z)), jnp.ones_like(z), jnp.eye(z.shape[0])


def test_rejected_steps_are_not_convergence():
    end = minimise_damped(_Kink(), jnp.zeros(2), 1e-9, 100)
    assert int(end.ended) == 1 + FitStatus.STALLED and int(end.steps) > 10


@pytest.mark.slow
def test_status_of_a_start_that_is_not_finite():
    model, log = _pendulum()
    broken = eqx.tree_at(lambda m: m.properties.armature, model, jnp.array([jnp.nan]))
    for method in (Physical(), LevenbergMarquardt(starts=3), FirstOrder(optax.sgd(0.1), max_steps=20)):
        assert fit(broken, log, "joints[*].damping", method).status == FitStatus.NOT_FINITE


@pytest.mark.slow
def test_first_order_descent_converges_or_reports_otherwise():
    log = _pendulum(0.1, damping=0.3)[1]
    start, name = _with_damping(0.05)
    paths = ("links[*].inertial", "joints[*].damping", "joints[*].friction")
    prior = GeometricPrior(1.0, 1.0)
    known = fit(start, log, paths, Physical(reweight=0), prior=prior, weights=[10.0]).checked()
    adam = optax.adam(0.3)
    found = fit(start, log, paths, FirstOrder(adam, max_steps=6000, reweight=0), prior=prior, weights=[10.0]).checked()
    assert found.cost == pytest.approx(known.cost, rel=1e-4)
    assert found.value(name) == pytest.approx(known.value(name), abs=0.2 * known.parameters[10].deviation)
    early = FirstOrder(adam, max_steps=20, reweight=0)
    assert fit(start, log, paths, early, prior=prior, weights=[10.0]).status == FitStatus.MAX_STEPS
    still = FirstOrder(optax.sgd(0.0), max_steps=50, reweight=0)  # a constant cost is not convergence
    assert fit(start, log, paths, still, prior=prior, weights=[10.0]).status == FitStatus.STALLED


@pytest.mark.slow("free-cauchy")
@pytest.mark.parametrize(
    "method",
    [
        pytest.param(Linear(loss=Huber()), id="linear-huber"),
        pytest.param(LevenbergMarquardt(loss=Cauchy()), id="free-cauchy"),
        pytest.param(Linear(loss=Cauchy(), reweight=4), id="linear-cauchy", marks=pytest.mark.exhaustive),
        pytest.param(Physical(loss=Huber()), id="physical-huber", marks=pytest.mark.exhaustive),
    ],
)
def test_outliers_do_not_bias_robust_fits(method):
    noise = 0.02
    _, clean = _pendulum(noise, samples=400, damping=0.3)
    rng = np.random.default_rng(0)
    wrong = np.where(rng.random(400) < 0.08, 3.0 * np.sign(np.asarray(clean.v)[:, 0]), 0.0)[:, None]
    log = eqx.tree_at(lambda x: x.effort, clean, clean.effort + wrong)
    start, name = _with_damping(0.2)
    paths = ("links[*].inertial", "joints[*].damping")
    plain = fit(start, log, paths, Linear())
    found = fit(start, log, paths, method).checked()
    row = next(row for row in fit(start, clean, paths, Linear()).parameters if row.name == name)
    assert abs(plain.value(name) - 0.3) > 30 * row.deviation
    assert abs(found.value(name) - 0.3) < 6 * row.deviation  # one-sided errors leave a small bias


@pytest.mark.slow
def test_robust_fit_minimises_the_loss():
    _, log = _pendulum(0.1, damping=0.3)
    start, name = _with_damping(0.2)
    log = eqx.tree_at(lambda x: x.effort, log, log.effort.at[::7].add(1.0))
    model = lambda value: eqx.tree_at(lambda m: m.properties.damping, start, jnp.array([value]))
    for method in (Physical(loss=Huber()), LevenbergMarquardt(loss=Huber())):
        found = fit(start, log, "joints[*].damping", method, weights=[10.0]).checked()

        def total(value):
            r = 10.0 * np.abs(np.asarray(log.effort) - np.asarray(efforts(model(value), log.q, log.v, log.a)))
            return np.sum(np.where(r < 1.345, r**2 / 2, 1.345 * (r - 1.345 / 2)))

        best = found.value(name)
        assert found.cost == pytest.approx(total(best), rel=1e-6)
        assert total(best) <= min(total(best + 1e-4), total(best - 1e-4))


@pytest.mark.exhaustive
def test_estimates_stay_within_bounds():
    _, log = _pendulum(damping=0.3)
    start, name = _with_damping(0.1)
    mass = "m(" + start.link_names[0] + ")"
    paths = ("joints[*].damping", "joints[*].friction")
    for method in (Physical(reweight=0), LevenbergMarquardt(reweight=0)):
        search = lambda bounds, method=method: fit(start, log, paths, method, weights=[1.0], bounds=bounds)
        assert search({"joints[*].damping": (0.0, 0.2)}).value(name) == pytest.approx(0.2, abs=1e-4)
        assert search({"joints[*].damping": (-np.inf, 0.25)}).value(name) == pytest.approx(0.25, abs=1e-4)
        assert search({name: (0.0, 4.0)}).checked().value(name) == pytest.approx(0.3, abs=1e-5)
    heavy = float(start.links.mass[0]) * np.array([1.5, 2.0])
    free = ("links[*].inertial", "joints[*].damping")
    found = fit(start, log, free, Physical(), bounds={"m(*)": tuple(heavy)}).checked()
    assert heavy[0] <= found.value(mass) <= heavy[1] and found.value(name) == pytest.approx(0.3, abs=1e-4)
    with pytest.raises(jd.ModelError, match="supported by Physical only"):
        fit(start, log, free, LevenbergMarquardt(), bounds={"m(*)": tuple(heavy)})
    with pytest.raises(jd.ModelError, match="Linear does not support bounds"):
        fit(start, log, free, bounds={"m(*)": tuple(heavy)})


def test_invalid_bounds_and_free_inertias_are_rejected():
    start, name = _with_damping(0.1)
    with pytest.raises(jd.ModelError, match="expected the lower one first"):
        collect(start, name, {name: (2.0, 1.0)})
    with pytest.raises(jd.ModelError, match="name no selected parameter"):
        collect(start, name, {"joints[*].friction": (0.0, 1.0)})
    with pytest.raises(jd.ModelError, match=r"inertia selects nine independent entries"):
        check_bodies(collect(start, "links[*].inertia"), inertial_bounds=True)


@pytest.mark.slow("convex")
@pytest.mark.parametrize("method", [Physical(reweight=0), LevenbergMarquardt(reweight=0)], ids=["convex", "free"])
def test_unobservable_directions_minimise_the_prior(method):
    """Only `Izz = tr(B P)`, `B = diag(1, 1, 0, 0)`, of a link on a vertical axis is identifiable. Among the bodies with
    this Izz, the divergence is least where `P^-1 = P_0^-1 + lambda B`.
    """
    model = arm(1)
    start = eqx.tree_at(lambda m: m.links.inertia, model, 1.5 * model.links.inertia)
    found = fit(
        start, synthetic_log(model), "links[*].inertial", method, weights=[10.0], prior=GeometricPrior(1e-2)
    ).checked()
    assert len(found.unobservable) == 9
    first, last = (
        np.linalg.inv(pseudo_inertia(jnp.array([getattr(row, which) for row in found.parameters])))
        for which in ("prior", "value")
    )
    change = last - first
    assert change[0, 0] > 0.05 * first[0, 0]  # the estimate is lighter than the prior
    np.testing.assert_allclose(change, change[0, 0] * np.diag([1, 1, 0, 0]), atol=1e-4 * change[0, 0])


@pytest.mark.exhaustive
def test_fits_of_a_random_arm_from_random_priors_converge():
    """Truth and prior are random bodies; the residual at the optimum is the noise."""
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
        found = fit(start, synthetic_log(truth, 0.02, seed=k), "links[*].inertial", Physical(reweight=1))
        noise = [e.fit for e in found.errors]
        good = found.status == FitStatus.CONVERGED and found.is_physical and max(noise) < 0.025
        converged += good and all(c.physical for c in link_checks(found.model))
    assert converged == 24


@pytest.mark.slow
def test_parts_with_a_state_are_rejected():
    motor = DcMotor("joint1", 1.0, constant=0.1, resistance=1.0, inductance=0.1)
    with pytest.raises(jd.ModelError, match="DcMotor has a state"):
        fit(jd.System(ARM, (motor,)), synthetic_log(ARM), "parts[DcMotor].resistance", Physical())
    assert motion(3)[1].shape == (400, 3)
