"""Rollouts against closed forms, MuJoCo and each other; failures and errors."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.joints import Free
from jaxdyn.simulation import CanonicalMomenta, SemiImplicitEuler, SimulationStatus, System, simulate
from tests.oracles import to_mujoco
from tests.simulation._cases import G, ball, distance, floating, state, wheeled_arm

# a point mass on a rod of 1 m, g = 9.81, from the horizontal at rest: position at t = 1 and t = 10
PENDULUM = np.array([[0.98629175113187532, -0.16501085312554117], [-0.27508746257611686, -0.96141920509912506]])
PERIOD = 2.3678419475762374
START = (jnp.array([-np.pi / 2]), jnp.zeros(1))


def pendulum_error(**options):
    tr = simulate(jd.robots.pendulum(), *START, jnp.array([0.0, 1.0, 10.0]), **options)
    assert int(tr.status) == SimulationStatus.FINISHED
    tip = np.stack([np.sin(tr.q[1:, 0]), -np.cos(tr.q[1:, 0])], axis=1)
    return np.abs(tip - PENDULUM).max()


def test_pendulum_error_is_within_its_tolerances():
    assert pendulum_error() < 1e-6
    assert pendulum_error(rtol=1e-13, atol=1e-13) < 1e-11


def test_pendulum_returns_after_its_period():
    ts = jnp.array([0.0, PERIOD / 2, PERIOD])
    tr = simulate(jd.robots.pendulum(), *START, ts, rtol=1e-13, atol=1e-13)
    assert abs(tr.q[-1, 0] + np.pi / 2) < 1e-10 and abs(tr.v[-1, 0]) < 1e-9
    assert abs(tr.q[1, 0] - np.pi / 2) < 1e-10


@pytest.mark.slow
def test_quaternions_keep_their_length_over_long_simulations():
    m = floating()
    q, v = state(m)
    tr = simulate(m, q, v, jnp.linspace(0, 50, 11), dt=5e-3)
    assert int(tr.status) == 0
    quaternions = np.stack([tr.q[:, :4], tr.q[:, 7:11]])
    np.testing.assert_allclose(np.linalg.norm(quaternions, axis=-1), 1, atol=1e-12)


@pytest.mark.slow
def test_floating_tree_conserves_momentum_and_energy():
    m = eqx.tree_at(lambda m: m.gravity, floating(), jnp.zeros(3))
    q, v = state(m)
    tr = simulate(m, q, v, jnp.linspace(0, 2, 5), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(tr.momentum, np.broadcast_to(tr.momentum[0], tr.momentum.shape), atol=1e-8)
    np.testing.assert_allclose(tr.energy, tr.energy[0], atol=1e-8)


@pytest.mark.slow("two", "six", "panda")
@pytest.mark.parametrize(
    "make",
    [
        lambda: jd.robots.chain(2, length=0.5, mass=1.0),
        lambda: jd.robots.chain(6),
        jd.robots.panda,
        jd.robots.humanoid,
        floating,
    ],
    ids=["two", "six", "panda", "humanoid", "floating"],
)
def test_rollouts_agree_with_mujoco(make):
    """Under gravity and torques on all hinges and ball joints."""
    m = make()
    m = eqx.tree_at(lambda m: m.properties.friction, m, jnp.zeros(m.nv))
    q, v = state(m, speed=0.3)
    horizon, h = 0.1, 1e-4
    effort = 0.1 * np.random.default_rng(1).normal(size=m.nv)
    for joint in map(m.joint, m.joint_names):
        if isinstance(joint.joint, Free):
            effort[joint.v] = 0
    tr = simulate(m, q, v, jnp.array([0.0, horizon]), effort=effort, rtol=1e-11, atol=1e-11)
    o = to_mujoco(m)
    o.model.opt.integrator, o.model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, h
    data = o.set(q, v)
    data.qfrc_applied[:] = effort
    for _ in range(round(horizon / h)):
        mujoco.mj_step(o.model, data)
    ours = o.q(tr.q[-1])
    np.testing.assert_allclose(ours, data.qpos, atol=2e-8, rtol=0)
    np.testing.assert_allclose(o.tangent(tr.q[-1]) @ np.asarray(tr.v[-1]), data.qvel, atol=2e-6, rtol=0)


@pytest.mark.exhaustive
def test_a_million_semi_implicit_steps_stay_finite():
    m = jd.robots.double_pendulum()
    tr = simulate(
        m,
        jnp.array([2.0, 1.0]),
        jnp.zeros(2),
        jnp.array([0.0, 1000.0]),
        dt=1e-3,
        solver=SemiImplicitEuler(),
        max_steps=1_000_100,
    )
    assert int(tr.status) == 0 and int(tr.num_steps) >= 999_999
    # the method is not symplectic where M depends on q, so the energy of this chaotic motion drifts
    assert np.isfinite(tr.q).all() and np.isfinite(tr.v).all()


@pytest.mark.slow
def test_dense_output_of_free_fall_is_exact():
    """Steps of the fifth order are exact for a parabola, also at times between the steps."""
    fall = lambda t: np.stack([0.3 + 0.7 * t - G * t * t / 2, 0.7 - G * t])
    tr = simulate(ball(), jnp.array([0.3]), jnp.array([0.7]), jnp.array([0.0, 1.0]), dt=0.1, dense=True, max_steps=16)
    ts = jnp.linspace(0, 1, 41)
    q, v = jax.vmap(tr.interpolant)(ts)
    np.testing.assert_allclose(np.stack([q[:, 0], v[:, 0]]), fall(np.asarray(ts)), atol=1e-13)
    assert np.isnan(jax.vmap(tr.interpolant)(jnp.array([-0.1, 1.1]))[0]).all()


@pytest.mark.slow
def test_dense_output_on_manifolds():
    """The quaternion of a body that rotates about one axis."""
    b = jd.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    b.add_link("ball", "world", jd.joints.Spherical(), jd.spatial.box((0.2, 0.2, 0.2), mass=1.0))
    m = b.build()
    start = jnp.array([1.0, 0, 0, 0]), jnp.array([0.0, 0, 2.0])
    tr = simulate(m, *start, jnp.array([0.0, 1.0]), dt=0.25, dense=True, max_steps=8)
    ts = jnp.linspace(0, 1, 9)
    want = np.stack([np.cos(ts), 0 * ts, 0 * ts, np.sin(ts)], axis=1)
    np.testing.assert_allclose(jax.vmap(tr.interpolant)(ts)[0], want, atol=1e-12)


@pytest.mark.slow
def test_max_steps_is_reported_as_a_status():
    tr = simulate(jd.robots.pendulum(), *START, jnp.array([0.0, 1.0, 10.0]), max_steps=100)
    assert int(tr.status) == SimulationStatus.MAX_STEPS
    np.testing.assert_array_equal(tr.reached, [True, True, False])
    assert np.isfinite(tr.q[:2]).all() and np.isnan(tr.q[2]).all()
    with pytest.raises(jd.ConvergenceError, match="MAX_STEPS.*raise max_steps"):
        tr.checked()


@pytest.mark.slow
def test_max_steps_raises_on_request():
    with pytest.raises(Exception, match="max_steps|maximum number of solver steps"):
        simulate(jd.robots.pendulum(), *START, jnp.array([0.0, 10.0]), max_steps=100, throw=True)


@pytest.mark.slow
def test_states_that_are_not_finite_are_reported_as_a_status():
    tr = simulate(jd.robots.pendulum(), *START, jnp.array([0.0, 1.0]), dt=0.1, effort=jnp.array([jnp.inf]))
    assert int(tr.status) == SimulationStatus.NOT_FINITE


@pytest.mark.slow
def test_derived_quantities():
    m = jd.robots.double_pendulum(damping=(0.3, 0.2))
    ts = jnp.linspace(0, 1, 201)
    tr = simulate(m, jnp.array([0.4, -0.9]), jnp.zeros(2), ts)
    # the work of damping is the change of the energy
    work = jd.work(ts, tr.power)
    np.testing.assert_allclose(tr.energy - tr.energy[0], work, atol=2e-4)
    assert work[-1] < -0.1
    tip = tr.frame_pose("tip").translation
    np.testing.assert_allclose(tip[3], jd.frame_pose(m, tr.q[3], "tip").translation, atol=1e-14)
    assert tr.poses.translation.shape == (201, 2, 3)
    efforts = tr.reactions.effort
    np.testing.assert_allclose(efforts, -np.array([0.3, 0.2]) * tr.v, atol=1e-10)


@pytest.mark.exhaustive
def test_adapted_steps_that_shrink_to_nothing_are_reported_as_a_status():
    """Efforts that become NaN, and a motion that diverges in finite time: `v' = v^2`, from 1 at 0 s to 1 s."""
    broken = lambda t, q, v: jnp.where(t > 0.5, jnp.nan, 1.0) * jnp.ones(1)
    runaway = lambda t, q, v: v * v + G
    for law, v in ((broken, 0.0), (runaway, 1.0)):
        tr = simulate(ball(), jnp.zeros(1), jnp.full(1, v), jnp.array([0.0, 0.4, 2.0]), effort=law)
        assert int(tr.status) in (SimulationStatus.FAILED, SimulationStatus.NOT_FINITE) and int(tr.num_steps) < 5000
        np.testing.assert_array_equal(tr.reached, [True, True, False])
        with pytest.raises(jd.ConvergenceError, match="check the parts"):
            tr.checked()


def test_invalid_arguments_raise():
    m = jd.robots.pendulum()
    with pytest.raises(jd.ModelError, match="ts decreases"):
        simulate(m, *START, jnp.array([1.0, 0.0]))
    with pytest.raises(jd.ModelError, match="SemiImplicitEuler has no error estimate.*dt="):
        simulate(m, *START, jnp.array([0.0, 1.0]), solver=SemiImplicitEuler())
    f = floating()
    for solver in (diffrax.LeapfrogMidpoint(), CanonicalMomenta(diffrax.LeapfrogMidpoint())):
        with pytest.raises(jd.ModelError, match="LeapfrogMidpoint stores past iterates"):
            simulate(f, *state(f), jnp.array([0.0, 1.0]), dt=0.1, solver=solver)
    with pytest.raises(jd.ShapeError, match="q0 has shape"):
        simulate(m, jnp.zeros(3), jnp.zeros(1), jnp.array([0.0, 1.0]))
    with pytest.raises(jd.ModelError, match="neither an AbstractPart"):
        System(m, parts=(lambda t, q, v: v,))


@pytest.mark.slow
def test_single_precision_is_preserved():
    m = jd.robots.pendulum().astype(jnp.float32)
    tr = simulate(m, *(x.astype(jnp.float32) for x in START), jnp.array([0.0, 1.0]))
    assert tr.q.dtype == tr.v.dtype == tr.t.dtype == jnp.float32
    assert abs(np.sin(tr.q[1, 0]) - PENDULUM[0, 0]) < 1e-4


@pytest.mark.exhaustive
def test_implicit_and_explicit_solvers_agree_on_manifolds():
    m = wheeled_arm()
    q, v = state(m)
    ts = jnp.array([0.0, 0.2])
    explicit = simulate(m, q, v, ts, rtol=1e-10, atol=1e-10)
    implicit = simulate(m, q, v, ts, solver=diffrax.Kvaerno5(), rtol=1e-9, atol=1e-9)
    assert int(implicit.status) == 0 and distance(m, explicit, implicit) < 1e-7


@pytest.mark.slow
def test_canonical_momenta_of_a_cart_pole():
    """Integration in configuration and momentum against integration in configuration and velocity."""
    model = jd.robots.cart_pole()
    q, v, ts = jnp.array([0.1, 0.7]), jnp.array([0.3, -0.2]), jnp.array([0.0, 1.0])
    got = jd.simulate(model, q, v, ts, solver=CanonicalMomenta(diffrax.Tsit5()), dt=1e-3)
    want = jd.simulate(model, q, v, ts, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(got.q[-1], want.q[-1], atol=1e-9)
    np.testing.assert_allclose(got.v[-1], want.v[-1], atol=1e-9)
