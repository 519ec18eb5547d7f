"""Poses, velocities, accelerations, Jacobians and their rates against Pinocchio, and identities."""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from jaxdyn._errors import ModelError, ShapeError
from jaxdyn.joints import Fixed, Prismatic, Revolute
from jaxdyn.kinematics import (
    LOCAL,
    WORLD,
    WORLD_ALIGNED,
    forward_kinematics,
    frame_acceleration,
    frame_classical_acceleration,
    frame_pose,
    frame_velocity,
    integrate,
    jacobian,
    jacobian_derivative,
    neutral,
)
from jaxdyn.model import ModelBuilder
from tests.oracles import ALL_KINDS, random_model, random_state, to_pinocchio

REFERENCES = {
    "local": (LOCAL, pin.LOCAL),
    "world": (WORLD, pin.WORLD),
    "aligned": (WORLD_ALIGNED, pin.LOCAL_WORLD_ALIGNED),
}
CONSTANT_SUBSPACE = ("revolute", "prismatic", "spherical", "helical", "planar", "continuous")


@ft.cache
def case(name: str):
    """All joint types that both engines have, and links behind fixed joints; `few` compiles fast."""
    make = {
        "few": lambda: random_model(4, 5, kinds=("spherical", "universal"), fixed_fraction=0.3, floating=True),
        "held": lambda: random_model(3, 12, fixed_fraction=0.2, based=True),
        "floating": lambda: random_model(4, 12, fixed_fraction=0.2, floating=True),
    }
    model = make[name]()
    oracle = to_pinocchio(model)
    q, v, a, _ = random_state(model, 0)
    pin.forwardKinematics(oracle.model, oracle.data, oracle.q(q), oracle.v(v), oracle.v(a))
    pin.updateFramePlacements(oracle.model, oracle.data)
    pin.computeJointJacobians(oracle.model, oracle.data, oracle.q(q))
    return model, oracle, (q, v, a)


cases = pytest.mark.parametrize(
    "robot",
    ["few", *(pytest.param(x, marks=m) for x, m in (("held", pytest.mark.slow), ("floating", pytest.mark.exhaustive)))],
)


@ft.partial(jax.jit, static_argnums=4)
def motion(model, q, v, a, names):
    """Pose of each frame, and velocity, accelerations and Jacobian in each reference."""
    return {
        name: (
            frame_pose(model, q, name),
            {
                key: (
                    frame_velocity(model, q, v, name, reference=ours),
                    frame_acceleration(model, q, v, a, name, reference=ours),
                    frame_classical_acceleration(model, q, v, a, name, reference=ours),
                    jacobian(model, q, name, reference=ours),
                )
                for key, (ours, _) in REFERENCES.items()
            },
        )
        for name in names
    }


def angular_first(x):
    x = np.asarray(x)
    return np.concatenate([x[3:], x[:3]])


def assert_close(got, want, tolerance=1e-10):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= tolerance * max(1, np.abs(want).max())


@cases
def test_poses_of_all_links(robot):
    model, oracle, (q, _, _) = case(robot)
    poses = jax.jit(forward_kinematics)(model, q)
    assert poses.rotation.shape == (model.num_links, 3, 3)
    for name in model.link_names:
        want = oracle.data.oMf[oracle.frame_id(name)]
        assert_close(poses[name].rotation, want.rotation)
        assert_close(poses[name].translation, want.translation)


@pytest.mark.exhaustive
@cases
def test_motion_of_frames_agrees_with_pinocchio(robot):
    model, oracle, (q, v, a) = case(robot)
    m, d = oracle.model, oracle.data
    names = ("f0",) if robot == "few" else ("f0", "f1", model.link_names[-1])
    for name, (pose, seen) in motion(model, q, v, a, names).items():
        i = oracle.frame_id(name)
        assert_close(pose.rotation, d.oMf[i].rotation)
        assert_close(pose.translation, d.oMf[i].translation)
        for key, got in seen.items():
            theirs = REFERENCES[key][1]
            want = (
                pin.getFrameVelocity(m, d, i, theirs).vector,
                pin.getFrameAcceleration(m, d, i, theirs).vector,
                pin.getFrameClassicalAcceleration(m, d, i, theirs).vector,
                oracle.columns_back(pin.getFrameJacobian(m, d, i, theirs)),
            )
            for x, y in zip(got, want, strict=True):
                assert_close(x, angular_first(y))


@pytest.mark.slow("local")
@pytest.mark.parametrize("reference", REFERENCES)
def test_jacobian_derivative_agrees_with_pinocchio(reference):
    """For joints with a constant motion subspace; Pinocchio omits the rate of other subspaces."""
    model = random_model(5, 8, kinds=CONSTANT_SUBSPACE, floating=True)
    oracle = to_pinocchio(model)
    q, v, _, _ = random_state(model, 1)
    ours, theirs = REFERENCES[reference]
    pin.computeJointJacobiansTimeVariation(oracle.model, oracle.data, oracle.q(q), oracle.v(v))
    i = oracle.frame_id("f1")
    want = pin.getFrameJacobianTimeVariation(oracle.model, oracle.data, i, theirs)
    got = jacobian_derivative(model, q, v, "f1", reference=ours)
    assert_close(got, angular_first(oracle.columns_back(want)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("reference", REFERENCES)
def test_identities_with_every_joint_type(reference):
    model = random_model(6, 13, kinds=ALL_KINDS, fixed_fraction=0.1)
    q, v, a, _ = random_state(model, 2)
    reference, _ = REFERENCES[reference]
    name = max(model.frame_names, key=lambda f: np.abs(jacobian(model, q, f)).sum())
    J = jacobian(model, q, name, reference=reference)
    dJ = jacobian_derivative(model, q, v, name, reference=reference)
    assert_close(J @ v, frame_velocity(model, q, v, name, reference=reference))
    rate = frame_classical_acceleration if reference is WORLD_ALIGNED else frame_acceleration
    assert_close(J @ a + dJ @ v, rate(model, q, v, a, name, reference=reference))
    h = 1e-5
    at = lambda s: jacobian(model, integrate(model, q, s * v), name, reference=reference)
    assert_close(dJ, (at(h) - at(-h)) / (2 * h), 1e-8)  # central differences


@pytest.mark.exhaustive
def test_gradients_at_singular_configurations_equal_finite_differences():
    model = random_model(7, 11, kinds=ALL_KINDS, branching=0.0)
    name = model.link_names[-1]
    weights = jnp.asarray(np.random.default_rng(0).normal(size=(6, model.nv)))

    def f(model, q):
        pose = frame_pose(model, q, name)
        moved = (weights * jacobian(model, q, name)).sum()
        return moved + jnp.sin(pose.rotation).sum() + jnp.cos(pose.translation).sum()

    rng = np.random.default_rng(1)
    home = neutral(model)
    half_turn = home
    for joint in model.joint_names:
        view = model.joint(joint)
        if view.joint.nq > view.joint.nv:
            half_turn = half_turn.at[view.q].set(jnp.zeros(view.joint.nq).at[2].set(1.0))
    value, grad = jax.jit(f), jax.jit(jax.grad(f, (0, 1)))
    moved = lambda s, at, step: jax.tree.map(lambda x, d: jnp.where(jnp.isfinite(x), x + s * d, x), at, step)
    for q in (home, half_turn):
        g = grad(model, q)
        assert all(jnp.isfinite(x).all() for x in jax.tree.leaves(g))
        step = jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape)), (model, q))
        h = 1e-6
        go = lambda s, q=q, step=step: value(*moved(s, (model, q), step))
        along = sum((x * d).sum() for x, d in zip(jax.tree.leaves(g), jax.tree.leaves(step), strict=True))
        difference = (go(h) - go(-h)) / (2 * h)
        assert abs(along - difference) < 1e-6 * max(1, abs(along))  # central differences


def robot_with_mimicking_joint():
    b = ModelBuilder()
    b.add_link("base")
    b.add_link("a", "base", Revolute([0, 0, 1]), translation=(0, 0, 1))
    b.add_link("b", "a", Prismatic([1, 0, 0]))
    b.add_link("c", "b", Revolute([0, 1, 0]), translation=(1, 0, 0))
    b.add_mimic("b_joint", "c_joint", ratio=0.5, offset=0.2)
    b.add_frame("tip", "c", translation=(0, 0, 1))
    return b.build()


@pytest.mark.exhaustive
def test_mimicking_joints():
    model = robot_with_mimicking_joint()
    q, v, a = jnp.array([0.3, -0.4]), jnp.array([1.0, 2.0]), jnp.array([0.5, -1.0])
    slide = 0.2 + 0.5 * -0.4
    planar = 1 + slide + np.sin(-0.4)
    pose, seen = motion(model, q, v, a, ("tip",))["tip"]
    assert_close(pose.translation, [planar * np.cos(0.3), planar * np.sin(0.3), 1 + np.cos(-0.4)])
    velocity, acceleration, _, J = seen["local"]
    dJ = jax.jit(jacobian_derivative, static_argnums=3)(model, q, v, "tip")
    assert J.shape == (6, 2)
    assert_close(J @ v, velocity)
    assert_close(J @ a + dJ @ v, acceleration)


def test_robots_without_moving_links():
    model = ModelBuilder()
    model.add_link("a", "world", Fixed(), translation=(1, 2, 3))
    model.add_link("b", "a", Fixed(), translation=(0, 0, 1))
    model = model.build()
    q = v = jnp.zeros(0)
    assert_close(forward_kinematics(model, q)["b"].translation, [1, 2, 4])
    assert_close(frame_pose(model, q, "b").translation, [1, 2, 4])
    assert jacobian(model, q, "b").shape == jacobian_derivative(model, q, v, "b").shape == (6, 0)
    assert_close(frame_velocity(model, q, v, "b"), np.zeros(6))
    assert_close(frame_acceleration(model, q, v, v, "b"), np.zeros(6))
    assert forward_kinematics(ModelBuilder().build(), q).rotation.shape == (0, 3, 3)


@pytest.mark.slow
def test_links_fixed_to_the_world_beside_moving_links():
    model = robot_with_mimicking_joint()
    q = jnp.array([0.3, -0.4])
    assert_close(jax.jit(forward_kinematics)(model, q)["base"].translation, np.zeros(3))
    assert_close(jacobian(model, q, "base"), np.zeros((6, 2)))


@pytest.mark.exhaustive
def test_batches_and_single_precision():
    model = random_model(8, 6, floating=True, fixed_fraction=0.2)
    states = [random_state(model, k)[:3] for k in range(5)]
    q, v, a = (jnp.stack(x) for x in zip(*states, strict=True))

    def everything(model, q, v, a):
        return (
            forward_kinematics(model, q),
            jacobian(model, q, "f0", reference=WORLD),
            frame_classical_acceleration(model, q, v, a, "f0"),
        )

    together = jax.jit(jax.vmap(everything, (None, 0, 0, 0)))(model, q, v, a)
    single = everything(model, q[3], v[3], a[3])
    jax.tree.map(lambda x, y: assert_close(x[3], y, 1e-12), together, single)
    assert together[0]["l2"].translation.shape == (5, 3)
    low = lambda x: x.astype(jnp.float32)
    coarse = everything(model.astype(jnp.float32), *map(low, (q[3], v[3], a[3])))
    assert all(x.dtype == jnp.float32 for x in jax.tree.leaves(coarse))
    jax.tree.map(lambda x, y: assert_close(x, y, 2e-5), coarse, single)  # float32


def test_error_messages():
    model = robot_with_mimicking_joint()
    with pytest.raises(ModelError, match="no link or frame is called 'hand'"):
        frame_pose(model, jnp.zeros(2), "hand")
    with pytest.raises(ModelError, match="no link is called 'hand'"):
        forward_kinematics(model, jnp.zeros(2))["hand"]
    with pytest.raises(ShapeError, match="q has shape"):
        forward_kinematics(model, jnp.zeros(3))
