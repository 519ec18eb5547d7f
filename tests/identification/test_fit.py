"""Normal equations, and the kinds of parameters that fits identify."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.actuators import DcMotor, drive
from jaxdyn.identification import Huber, Log, LowPassed, Physical, collect, fit, predicted_effort
from jaxdyn.identification.methods._evaluation import Evaluator
from jaxdyn.identification.residuals import stack_chunks, sum_normal_equations
from jaxdyn.simulation import cubic_signal

from .synthetic_logs import arm, motion, perturb_model, synthetic_log

ARM = arm()


@pytest.mark.exhaustive
def test_chunked_normal_equations_agree_with_the_full_jacobian():
    """Against the Jacobian of all residuals, with and without a robust loss, in both modes of differentiation."""
    model = arm(2)
    paths = ("links[link2].inertial", "joints[*].friction_velocity", "joints[joint2].rotation", "gravity.direction")
    found = collect(perturb_model(model), paths)
    problem = Physical(chunk=7).problem(found, [synthetic_log(model, 0.1, samples=18)])
    assert problem.present.shape == (3, 7) and int(problem.present.sum()) == 18
    x = found.read() * 1.1 + 0.01
    flat = jax.tree.map(lambda y: y.reshape(21, *y.shape[2:])[:18], problem.samples)
    rows = lambda x: jax.vmap(lambda s: problem.residual(found.insert(x), s))(flat)
    r, j = jax.jit(lambda x: (rows(x), jax.jacfwd(rows)(x)))(x)
    h, g = jnp.einsum("scki,sckj->cij", j, j), jnp.einsum("scki,sck->ci", j, r)
    for one in (problem, dataclasses.replace(problem, forward=True)):
        sums = sum_normal_equations(one, x)
        for mine, plain in ((sums.hessian, h), (sums.gradient, g), (sums.square, jnp.sum(r**2, (0, 2)))):
            np.testing.assert_allclose(mine, plain, rtol=1e-10, atol=1e-10 * float(jnp.abs(plain).max()))
        np.testing.assert_array_equal(sums.count, 18)

    weights, loss = jnp.array([0.5, 2.0]), Huber(0.7)
    rho = lambda x, loss: jnp.sum(weights[:, None] ** 2 * _rho(loss, weights[:, None], rows(x)))
    for robust in (None, loss):
        value, slope = jax.jit(jax.value_and_grad(lambda x, robust=robust: rho(x, robust)))(x)
        both = lambda x, robust=robust: (
            problem.value_and_gradient(x, weights, robust),
            problem.normal_equations(x, weights, robust),
        )
        mine = jax.jit(both)
        (cost, gradient), sums = mine(x)
        assert float(cost) == pytest.approx(float(value), rel=1e-12)
        assert float(sums.cost(weights)) == pytest.approx(float(value), rel=1e-12)
        for own in (gradient, sums.weighted(weights)[1]):
            np.testing.assert_allclose(own, slope, rtol=1e-9, atol=1e-9 * float(jnp.abs(slope).max()))


def _rho(loss, w, r):
    """Half squares, or Huber's function of residuals in standard deviations, in the units of the residual."""
    if loss is None:
        return r**2 / 2
    far = jnp.abs(w * r) > loss.limit
    return jnp.where(far, loss.limit * (jnp.abs(w * r) - loss.limit / 2), (w * r) ** 2 / 2) / w**2


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_chunks():
    """Four times the samples take the same memory, and chunks sixteen times as long much more."""
    model = jd.robots.pendulum(damping=0.3)
    parameters = collect(model, ("links[*].inertial", "joints[*].damping"))

    def temporary(samples, chunk):
        t, q, v, a = motion(1, samples)
        problem = Physical(chunk=chunk).problem(parameters, [Log(t, q, v, a, q)])
        numbers, rest = eqx.partition(problem, eqx.is_inexact_array)
        sums = jax.jit(lambda numbers, x: eqx.combine(numbers, rest).normal_equations(x))
        return sums.lower(numbers, parameters.read()).compile().memory_analysis().temp_size_in_bytes

    short, long, whole = temporary(1024, 64), temporary(4096, 64), temporary(4096, 1024)
    assert long < 1.2 * short + 4096 and whole > 4 * long
    t, q, v, a = motion(1, 400)
    size = lambda method: sum(
        x.nbytes for x in jax.tree.leaves(method.problem(parameters, [Log(t, q, v, a, q)]).samples)
    )
    assert 3.5 < size(LowPassed(2.0, overlap=4)) / size(Physical()) < 5.5  # each row as often as windows overlap


@pytest.mark.slow
def test_linearity_is_decided_by_all_samples_if_a_parameter_has_no_influence_on_the_drawn_ones():
    """The friction velocity influences a single row of a log at rest, which is not among the rows drawn at random."""
    model = jd.robots.pendulum()
    t = np.linspace(0, 1, 401)
    resting = lambda v: Log(t, 0.3 * np.ones((401, 1)), v, np.zeros((401, 1)), np.ones((401, 1)))
    paths = ("links[*].mass", "joints[*].friction", "joints[*].friction_velocity")
    method = Physical(chunk=8)
    problem = lambda v: method.problem(collect(model, paths), [resting(v)])
    drawn = problem(np.zeros((401, 1))).draw_chunks(4)
    assert drawn.present.shape == (4, 8) and drawn.present.all()
    times = np.sort(drawn.samples[0].ravel())
    assert (np.diff(times) > 0).all() and np.isin(times, t).all() and np.ptp(times) > 0.7
    missed = np.where(np.isin(t, times) | (t < 0.5), 0.0, 0.01)[:, None]
    missed[np.flatnonzero(missed)[1:]] = 0
    data = Evaluator(problem(missed), collect(model, paths).read(), lambda line: None)
    assert not data.is_linear and np.count_nonzero(missed) == 1
    with pytest.raises(jd.ModelError, match=r"friction_velocity: no influence"):
        Evaluator(problem(np.zeros((401, 1))), collect(model, paths).read(), lambda line: None)


@pytest.mark.slow
def test_parameters_of_a_joint_at_rest_are_rejected_before_solving():
    model = arm(2)
    log = synthetic_log(model, samples=60)
    still = eqx.tree_at(lambda x: (x.q, x.v, x.a), log, tuple(x.at[:, 1].set(0.0) for x in (log.q, log.v, log.a)))
    lines: list[str] = []
    with pytest.raises(jd.ModelError, match=r"joints\[joint2\].damping: no influence"):
        fit(model, still, ("links[*].inertial", "joints[*].damping"), Physical(), progress=lines.append)
    assert lines == []
    found = fit(model, still, ("links[*].inertial", "joints[joint1].damping"), Physical())
    assert len(found.unobservable) > 10  # some of a link's ten parameters are never identifiable


@pytest.mark.parametrize("size", [1, 4, 5, 9])
def test_chunks_contain_each_sample_once(size):
    samples = (np.arange(5.0), np.arange(10.0).reshape(5, 2))
    (one, two), present = stack_chunks(samples, size)
    keep = np.asarray(present, bool).reshape(-1)
    np.testing.assert_array_equal(np.asarray(one).reshape(-1)[keep], samples[0])
    np.testing.assert_array_equal(np.asarray(two).reshape(-1, 2)[keep], samples[1])
    assert np.isfinite(np.asarray(two)).all() and keep.sum() == 5


def _motor(log, constant, resistance):
    """A motor on the first joint, under the voltage that gives the efforts of the log."""
    gear, k, ohm = 20.0, 0.05, 0.8
    voltage = ohm * log.effort[:, 0] / (gear * k) + k * gear * log.v[:, 0]
    at = cubic_signal(log.t, voltage[:, None]).path
    return DcMotor("joint1", lambda t, q, v: at.evaluate(t)[0], constant=constant, resistance=resistance, gear=gear)


@pytest.mark.slow
def test_springs_gravity_gains_geometry_rotors_and_motors_are_identified_together():
    """Exact data, so that the truth is the minimum; the motor is driven by a voltage and has no effort sensor."""
    stiff = lambda m: (m.properties.stiffness, m.properties.rest)
    truth = eqx.tree_at(stiff, ARM, (jnp.array([0.0, 3.0, 0.0]), jnp.array([0.0, 0.2, 0.0])))
    bare = synthetic_log(truth)
    effort = np.asarray(bare.effort).copy()
    effort[:, 0] = 0.0  # there is no sensor of effort at the motor's joint
    effort[:, 2] /= 1.3  # the log holds efforts divided by the gain
    log = eqx.tree_at(lambda x: x.effort, bare, jnp.asarray(effort))
    fields = lambda m: (*stiff(m), m.properties.armature, m.placements.translation, m.gravity)
    translations = truth.placements.translation.at[2].add(jnp.array([0.02, -0.01, 0.03]))
    tilted = jnp.array([0.0, 9.81 * np.sin(0.03), -9.81 * np.cos(0.03)])
    some = jnp.array([0.0, 1.0, 0.0]), jnp.array([0.0, 0.05, 0.0]), ARM.properties.armature.at[2].multiply(1.5)
    start = eqx.tree_at(fields, truth, (*some, translations, tilted))
    system = jd.System(start, (drive(start), _motor(bare, 0.06, 0.6)))
    paths = (
        "joints[joint2].stiffness",
        "joints[joint2].rest",
        "joints[joint3].armature",
        "joints[joint3].translation",
        "gravity.direction",
        "parts[Drive].gain[joint3]",
        "parts[DcMotor].constant",
        "parts[DcMotor].resistance",
    )
    found = fit(system, log, paths, Physical(reweight=0), weights=jnp.ones(3)).checked()
    expected = {
        "joints[joint2].stiffness": 3.0,
        "joints[joint2].rest": 0.2,
        "joints[joint3].armature": float(ARM.properties.armature[2]),
        "parts[Drive].gain[joint3]": 1.3,
        "parts[DcMotor].constant": 0.05,
        "parts[DcMotor].resistance": 0.8,
    }
    for name, value in expected.items():
        assert found.value(name) == pytest.approx(value, rel=1e-5), name
    np.testing.assert_allclose(found.model.placements.translation[2], truth.placements.translation[2], atol=1e-6)
    np.testing.assert_allclose(found.model.gravity, truth.gravity, atol=1e-5)


@pytest.mark.slow
def test_inertia_of_a_free_base():
    """No effort acts on a floating base; the reactions of its arm make its inertia identifiable."""
    b = jd.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    body = lambda m: jd.spatial.box((0.3, 0.2, 0.1), mass=m).moved([0.02, 0.01, 0.05])
    b.add_link("base", "world", jd.joints.Free(), body(4.0))
    b.add_link("arm", "base", jd.joints.Revolute([0, 1, 0]), body(1.0), joint_name="elbow", translation=[0.1, 0, 0.1])
    truth = b.build()
    rng = np.random.default_rng(1)
    q, v = rng.normal(size=(60, 8)), rng.normal(size=(60, 7))
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1, keepdims=True)
    effort = np.zeros((60, 7))
    effort[:, 6] = rng.normal(size=60)
    a = jax.jit(jax.vmap(lambda *x: jd.forward_dynamics(truth, *x)))(q, v, effort)
    log = Log(np.arange(60.0), q, v, a, effort)
    start = eqx.tree_at(lambda m: m.links.mass, truth, truth.links.mass * jnp.array([1.5, 1.0]))
    paths = ("links[base].mass", "links[base].com")
    found = fit(start, log, paths, Physical(reweight=0), weights=jnp.ones(7)).checked()
    assert found.value("links[base].mass") == pytest.approx(4.0, rel=1e-6)
    np.testing.assert_allclose(found.model.links.com[0], [0.02, 0.01, 0.05], atol=1e-7)


@pytest.mark.slow
def test_progress_of_a_fit(capsys):
    """One line for each pass, to a function or to stderr."""
    model = jd.robots.pendulum(damping=0.3)
    t, q, v, a = motion(1, 50)
    log = Log(t, q, v, a, q)
    log = eqx.tree_at(lambda x: x.effort, log, predicted_effort(model, log))
    lines: list[str] = []
    fit(model, log, "joints[*].damping", progress=lines.append)
    assert [line.split(":")[0] for line in lines] == ["pass 1 of 3", "pass 2 of 3", "pass 3 of 3"]
    fit(model, log, "joints[*].damping", progress=True)
    assert capsys.readouterr().err.count("fit: pass") == 3
