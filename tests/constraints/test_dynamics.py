"""Accelerations and multipliers under constraints, against independent computations and Pinocchio."""

import dataclasses
import functools as ft

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest
from numpy.testing import assert_allclose

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn.constraints import evaluation as ev
from tests.constraints._cases import UNIT, assemble_four_bar, every_type, four_bar, four_bar_closure
from tests.oracles import random_model, random_state, relative_error, to_pinocchio

KINDS = ("revolute", "prismatic", "spherical", "free", "universal", "helical", "planar", "continuous")

solve = jax.jit(jc.constrained_dynamics)


@pytest.fixture(scope="module")
def tree():
    model = random_model(5, 8, kinds=KINDS, branching=0.6)
    return model, *random_state(model, 6)


@ft.cache
def _independent(model_size):
    del model_size

    def both(model, constraints, t, q, v, a):
        """Rates and second rates of the residuals along a motion, by differentiating forward kinematics."""

        def along(e):
            # the configuration to second order in e, on the manifold: v changes by a
            return jd.integrate(model, q, e * v), v + e * a

        def rate(t, q, v):
            qdot = jd.configuration_velocity(model, q, v)

            def where(t, q):
                poses = jd.forward_kinematics(model, q)
                return t, q, poses.rotation, poses.translation

            at, moved = jax.jvp(where, (t, q), (jnp.ones(()), qdot))
            twists = jnp.stack(
                [jd.frame_velocity(model, q, v, n, reference=jd.WORLD_ALIGNED) for n in model.link_names]
            )
            rows = []
            for c in constraints:
                if isinstance(c, jc.AbstractHolonomic):
                    rows.append(jax.jvp(lambda *x, c=c: c.residual(jc.Configuration(model, *x)), at, moved)[1])
                else:
                    rows.append(
                        c.rate(jc.KinematicState(jc.Configuration(model, *at), v, twists[:, :3], twists[:, 3:]))
                    )
            return jnp.concatenate(rows)

        second = lambda e: rate(t + e, *along(e))
        return jax.jvp(second, (jnp.zeros(()),), (jnp.ones(()),))

    return jax.jit(both)


@pytest.mark.exhaustive
def test_rates_and_accelerations_of_every_constraint_type(tree):
    model, q, v, a, _ = tree
    constraints, t = every_type(), jnp.asarray(0.3)
    want_rate, want_second = _independent(model.nv)(model, constraints, t, q, v, a)

    @jax.jit
    def ours(model, constraints, t, q, v, a):
        x = ev.constraint_kinematics(model, t, q, v)
        jacobian, drift = ev.linearise_constraints(model, constraints, x)
        return (
            ev.constraint_rates(model, constraints, x),
            jacobian @ v - drift,
            jacobian @ a + ev.acceleration_bias(model, constraints, x),
        )

    rate, linear, second = ours(model, constraints, t, q, v, a)
    assert_allclose(rate, want_rate, atol=1e-11)
    assert_allclose(linear, want_rate, atol=1e-11)
    assert_allclose(second, want_second, atol=1e-10)


@pytest.mark.exhaustive
def test_constraint_wrenches_are_equivalent_to_multipliers(tree):
    model, q, v, _, _ = tree
    constraints = every_type()
    x = ev.constraint_kinematics(model, 0.3, q, v)
    jacobian, _ = ev.linearise_constraints(model, constraints, x)
    multipliers = jnp.asarray(np.random.default_rng(0).normal(size=jacobian.shape[0]))
    wrenches, efforts = ev.constraint_wrenches(model, constraints, x, multipliers)
    still = jnp.zeros(model.nv)
    through_links = jd.rnea(model, q, still, still) - jd.rnea(model, q, still, still, wrenches)
    assert_allclose(jacobian.T @ multipliers, through_links + efforts, atol=1e-10)


def _closed_constraint(model, q, name, kind, first, second, at, quat):
    """A closure whose two frames coincide at q."""
    poses = jd.forward_kinematics(model, q)
    frame = poses[first] @ jd.spatial.Pose.from_quaternion(jnp.asarray(quat), at)
    other = poses[second].inverse() @ frame
    return kind(name, jc.End(first, at, quat), jc.End(second, other.translation, other.quaternion()))


@pytest.mark.slow("True")
@pytest.mark.parametrize("floating", [False, True])
def test_against_pinocchio(floating):
    model = random_model(11, 12, kinds=("revolute", "prismatic", "spherical"), branching=0.3, floating=floating)
    q, v, tau, _ = random_state(model, 3)
    turned = np.array([0.8, 0.2, -0.4, 0.3])
    constraints = (
        _closed_constraint(model, q, "weld", jc.WeldClosure, "l11", "l2", jnp.array([0.1, 0.2, 0.3]), turned),
        _closed_constraint(model, q, "point", jc.PointClosure, "l9", "l1", jnp.array([0.0, 0.2, -0.1]), turned),
    )
    v, _ = jc.impulse(model, constraints, q, v)  # on the constraint, where all definitions of the error agree
    got = solve(model, constraints, q, v, tau)

    oracle = to_pinocchio(model)
    models, data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for c, kind in zip(constraints, (pin.ContactType.CONTACT_6D, pin.ContactType.CONTACT_3D), strict=True):
        joints, poses = [], []
        for end in (c.first, c.second):
            joint, placed = oracle.carriers[model.link_index(end.link)]
            w, x, y, z = np.asarray(end.rotation) / np.linalg.norm(end.rotation)
            rotation = pin.Quaternion(w, x, y, z).toRotationMatrix()
            joints.append(joint)
            poses.append(placed * pin.SE3(rotation, np.asarray(end.translation)))
        cm = pin.RigidConstraintModel(kind, oracle.model, joints[0], poses[0], joints[1], poses[1], pin.LOCAL)
        models.append(cm)
        data.append(cm.createData())
    pin.initConstraintDynamics(oracle.model, oracle.data, models, data)
    settings = pin.ProximalSettings(1e-14, 1e-12, 200)
    state = oracle.q(q), oracle.v(v), oracle.v(tau)
    a = pin.constraintDynamics(oracle.model, oracle.data, *state, models, data, settings)
    assert relative_error(got.a, oracle.v_back(a)) < 1e-9
    expected = pin.getConstraintsJacobian(oracle.model, oracle.data, models, data)
    assert int(got.rank) == np.linalg.matrix_rank(expected, tol=1e-6) == 9
    assert int(got.status) == jc.ConstraintStatus.SOLVED
    # Pinocchio: force of the second link on the first, linear first, in axes of the first frame
    six = np.asarray(data[0].contact_force.vector)
    assert relative_error(-got.multiplier("weld"), np.r_[six[3:], six[:3]]) < 1e-9
    assert relative_error(-got.multiplier("point"), data[1].contact_force.linear) < 1e-9


@pytest.mark.slow
def test_redundant_constraints_do_not_change_the_acceleration():
    model, loop = four_bar(), four_bar_closure()
    q, v = _on_four_bar()
    tau = jnp.array([0.3, -0.2, 0.1])
    once = solve(model, (loop,), q, v, tau)
    twice = solve(model, (loop, four_bar_closure(name="again")), q, v, tau)
    assert int(once.rank) == int(twice.rank) == 2  # of five, and of ten rows: a planar loop
    assert_allclose(twice.a, once.a, atol=1e-12)
    assert_allclose(twice.multiplier("loop"), twice.multiplier("again"), atol=1e-10)
    assert_allclose(2 * twice.multiplier("loop"), once.multiplier("loop"), atol=1e-10)


@pytest.mark.slow
def test_batch_of_models_and_closures():
    """A batch of linkages with different coupler lengths equals the single ones."""
    lengths = jnp.array([1.2, 1.3, 1.45])
    models, loops = jax.jit(jax.vmap(lambda length: (four_bar(length), four_bar_closure(length))))(lengths)
    q, v, tau = (jnp.asarray(x) for x in np.random.default_rng(0).normal(size=(3, 3, 3)))
    many = jax.jit(jax.vmap(jc.constrained_dynamics))(models, (loops,), q, v, tau)
    assert_allclose(many.rank, 2)
    for k in range(3):
        model, loop = jax.tree.map(lambda x, k=k: x[k], (models, loops))
        one = solve(model, (loop,), q[k], v[k], tau[k])
        assert_allclose(many.a[k], one.a, atol=1e-11)
        assert_allclose(many.multipliers[k], one.multipliers, atol=1e-10)
        assert_allclose(many.wrenches[k], one.wrenches, atol=1e-10)


@ft.cache
def _on_four_bar():
    start = jnp.array([0.4, 0.9, -0.3]), jnp.array([1.0, 0.0, 0.0])
    closed = assemble_four_bar(1.3, *start).checked()
    return closed.q, closed.v


@pytest.mark.slow
def test_gradients_with_respect_to_all_arguments():
    """With respect to all leaves of model and closures, state, efforts and wrenches, along one direction.

    A spatial loop with two identical closures: three of six rows are redundant.
    """
    model = random_model(3, 4, kinds=("revolute",), branching=0.0)
    q, v, tau, external = random_state(model, 2)
    loop = jc.PointClosure("loop", ("l3", (0.1, 0.2, 0.3)), ("l0", (0.3, 0.1, 0.0)))
    leaves, rest = eqx.partition((model, loop, q, v, tau, external), eqx.is_inexact_array)

    def score(leaves):
        model, loop, *state = eqx.combine(leaves, rest)
        d = jc.constrained_dynamics(model, (loop, dataclasses.replace(loop, name="again")), *state)
        weights = lambda x: jnp.sin(1.0 + jnp.arange(x.size))
        return sum(x.ravel() @ weights(x) for x in (d.a, d.multipliers, d.wrenches)), d.rank

    rng = np.random.default_rng(1)
    way = jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape)), leaves)
    moved = lambda s: jax.tree.map(lambda x, d: x + s * d, leaves, way)
    slope = jax.jit(jax.vmap(lambda s: jax.value_and_grad(score, has_aux=True)(moved(s))))
    h = 1e-4
    steps = jnp.array([0.0, h, -h, 2 * h, -2 * h])
    (value, rank), gradient = slope(steps)
    want = (8 * (value[1] - value[2]) - value[3] + value[4]) / (12 * h)
    assert np.all(rank == 3)
    assert abs(want) > 0.1
    reverse = sum(jnp.vdot(g[0], d) for g, d in zip(*map(jax.tree.leaves, (gradient, way)), strict=True))
    assert_allclose(reverse, want, rtol=1e-7)


@pytest.mark.exhaustive
def test_allowed_forces_and_inverse_dynamics():
    model, loop = four_bar(), four_bar_closure()
    q, v = _on_four_bar()
    tau = jnp.array([0.3, -0.2, 0.1])
    d = solve(model, (loop,), q, v, tau)
    allowed = lambda f: jc.allowed_forces(model, (loop,), q, f)
    needed = jd.mass_matrix(model, q) @ d.a + jd.bias_forces(model, q, v)
    assert_allclose(allowed(tau), allowed(needed), atol=1e-11)  # P tau = P (M a + h)
    p = jax.vmap(allowed, out_axes=1)(jnp.eye(3))
    assert_allclose(p @ p, p, atol=1e-12)
    assert np.linalg.matrix_rank(p, tol=1e-9) == 1
    # the same motion with another internal force in the closure
    desired = d.multipliers + jnp.array([0.0, 0.0, 5.0, -2.0, 0.0])
    other = jc.constrained_inverse_dynamics(model, (loop,), q, v, d.a, desired)
    again = solve(model, (loop,), q, v, other)
    assert_allclose(again.a, d.a, atol=1e-10)
    assert_allclose(again.multipliers[2:4], desired[2:4], atol=1e-9)


@pytest.mark.slow
def test_coupling_equals_a_mimic_joint():
    def build(geared):
        b = jd.ModelBuilder()
        for k, name in enumerate("abc"):
            b.add_link(
                name, "world" if k == 0 else "abc"[k - 1], jd.joints.Revolute((0, 1, 0)),
                jd.spatial.box((0.1, 0.2, 1.0), mass=1.0 + k).moved((0, 0, 0.5)), translation=(0, 0, float(k > 0)),
            )  # fmt: skip
        return (b.add_mimic("c_joint", "a_joint", ratio=-1.5, offset=0.2) if geared else b).build()

    q, v, tau = jnp.array([0.3, -0.4]), jnp.array([1.0, 0.5]), jnp.array([0.7, -0.3])
    want = jd.forward_dynamics(build(True), q, v, tau)
    coupling = jc.JointCoupling("gear", "c_joint", "a_joint", (0.2, -1.5))
    full = lambda x, offset: jnp.array([x[0], x[1], -1.5 * x[0] + offset])
    got = solve(build(False), coupling, full(q, 0.2), full(v, 0.0), jnp.append(tau, 0.0))
    assert_allclose(got.a, full(want, 0.0), atol=1e-11)


@pytest.mark.slow
def test_multipliers_of_prescribed_motion_equal_inverse_dynamics():
    model = jd.robots.double_pendulum()
    drives = tuple(
        jc.PrescribedCoordinate(n, n, lambda t, k=k: jnp.sin(t + k)) for k, n in enumerate(model.joint_names)
    )
    t = jnp.asarray(0.7)
    q, v, a = (f(t + jnp.arange(2.0)) for f in (jnp.sin, jnp.cos, lambda x: -jnp.sin(x)))
    got = solve(model, drives, q, v, jnp.zeros(2), t=t)
    assert_allclose(got.a, a, atol=1e-12)
    assert_allclose(got.multipliers, jd.rnea(model, q, v, a), atol=1e-11)
    assert_allclose(got.efforts, got.multipliers, atol=1e-12)
    assert_allclose(got.wrenches, 0, atol=1e-12)


@pytest.mark.slow
def test_inconsistent_constraints_give_a_status():
    model = jd.robots.pendulum()
    twice = tuple(jc.PrescribedCoordinate(n, model.joint_names[0], lambda t, k=k: k * t**2) for k, n in enumerate("ab"))
    d = solve(model, twice, jnp.zeros(1), jnp.zeros(1), jnp.zeros(1))
    assert int(d.status) == jc.ConstraintStatus.CONTRADICTORY
    d = solve(model, twice, jnp.array([jnp.nan]), jnp.zeros(1), jnp.zeros(1))
    assert int(d.status) == jc.ConstraintStatus.NOT_FINITE


@pytest.mark.slow
def test_plastic_impact_of_two_bodies_conserves_momentum():
    """Two free bodies are welded in flight: momentum is conserved, and their twists are equal afterwards."""
    b = jd.ModelBuilder(gravity=(0, 0, 0))
    for name in "ab":
        b.add_link(name, "world", jd.joints.Free(), jd.spatial.box((0.1, 0.2, 0.3), mass=2.0))
    model = b.build()
    q = jnp.array([*UNIT, 0.0, 0, 0, *UNIT, 0.2, 0.1, 0.0])
    v = jnp.asarray(np.random.default_rng(2).normal(size=12))
    weld = jc.WeldClosure("weld", jc.End("a", (0.2, 0.1, 0.0)), jc.End("b", (0, 0, 0)))
    after, _ = jc.impulse(model, weld, q, v)
    twist = lambda v, n: jd.frame_velocity(model, q, v, n, reference=jd.WORLD)
    assert_allclose(twist(after, "a"), twist(after, "b"), atol=1e-12)
    assert_allclose(jd.momentum(model, q, after), jd.momentum(model, q, v), atol=1e-12)
    assert jd.kinetic_energy(model, q, after) < jd.kinetic_energy(model, q, v)


def test_invalid_constraint_names_raise():
    loop = four_bar_closure()
    with pytest.raises(jd.ModelError, match="share the names"):
        jc.constrained_dynamics(four_bar(), (loop, loop), jnp.zeros(3), jnp.zeros(3), jnp.zeros(3))
    with pytest.raises(jd.ModelError, match="not a constraint"):
        ev.as_constraints(("loop",))
