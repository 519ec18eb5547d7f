"""Every joint satisfies the joint contract: rotations, subspace and bias as derivatives, inverse of integrate."""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import joints as jj
from jaxdyn.spatial import axis_angle_to_matrix

AXIS = (0.3, -1.2, 0.5)


def slider(params, q):
    """A block that rotates while it moves along a curve: a function of two coordinates written for one sample."""
    axis = params["axis"] / jnp.linalg.norm(params["axis"])
    position = jnp.stack([q[0], params["rise"] * q[0] ** 2, jnp.sin(q[1])])
    return axis_angle_to_matrix(axis, q[0] * q[1]), position


JOINTS = {
    "fixed": jj.Fixed(),
    "revolute": jj.Revolute(AXIS),
    "continuous": jj.Continuous(AXIS),
    "prismatic": jj.Prismatic(AXIS),
    "helical": jj.Helical(AXIS, 0.4),
    "cylindrical": jj.Cylindrical(AXIS),
    "universal": jj.Universal(AXIS, (0.2, 0.1, 1.5)),
    "planar": jj.Planar(),
    "spherical": jj.Spherical(),
    "spherical zyx": jj.SphericalZYX(),
    "free": jj.Free(),
    "bushing": jj.Bushing(),
    "flexure": jj.Bushing((2, 0)),
    "custom": jj.Custom({"axis": jnp.array(AXIS), "rise": jnp.array(0.7)}, slider, 2),
}
MOVING = [name for name in JOINTS if name != "fixed"]
EVERY = pytest.mark.parametrize("name", JOINTS)
EVERY_MOVING = pytest.mark.parametrize("name", MOVING)


def tiers(default, slow):
    """Moving joints by name: default, slow, and otherwise exhaustive."""
    marks = {**dict.fromkeys(default, ()), **dict.fromkeys(slow, pytest.mark.slow)}
    return [pytest.param(x, marks=marks.get(x, pytest.mark.exhaustive)) for x in MOVING]


#: one joint of each kind of arithmetic is slow, the others are exhaustive, because compilation takes most of the time
SOME_SLOW = pytest.mark.slow("revolute", "helical", "planar", "spherical zyx", "free", "bushing", "custom")


@ft.cache
def samples(name, n=6):
    """Configurations (neutral, near neutral, random) and as many velocities."""
    joint = JOINTS[name]
    rng = np.random.default_rng(1)
    zero = joint.neutral(jnp.float64)

    @jax.jit
    def draw(keys):
        near = joint.integrate(zero, jnp.full(joint.nv, 1e-7))
        return near, jax.vmap(lambda k: joint.random(k, jnp.float64))(keys)

    near, q = draw(jax.random.split(jax.random.key(0), n - 2))
    return jnp.concatenate([zero[None], near[None], q]), jnp.asarray(rng.normal(size=(n, joint.nv)))


@ft.cache
def poses(name):
    """The transform at the samples."""
    return jax.jit(jax.vmap(JOINTS[name].transform))(samples(name)[0])


def pose_and_rate(joint, q, v):
    """Pose at q, and its first and second rate along the path `integrate(q, t v)`."""
    path = lambda t: joint.transform(joint.integrate(q, t * v))
    rate = lambda t: jax.jvp(path, (t,), (jnp.ones(()),))
    (pose, first), (_, second) = jax.jvp(rate, (jnp.zeros(()),), (jnp.ones(()),))
    return pose, first, second


def vee(m):
    return jnp.stack([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]]) / 2


@SOME_SLOW
@EVERY
def test_transform_is_a_rotation_and_a_translation(name):
    joint = JOINTS[name]
    r, p = poses(name)
    np.testing.assert_allclose(r @ jnp.swapaxes(r, 1, 2), jnp.broadcast_to(jnp.eye(3), r.shape), atol=1e-14)
    np.testing.assert_allclose(jnp.linalg.det(r), 1, rtol=1e-14)
    assert p.shape[1:] == (3,)
    if not joint.translates:
        np.testing.assert_array_equal(p, 0)


@SOME_SLOW
@EVERY_MOVING
def test_subspace_is_the_velocity_of_the_transform(name):
    """`w = vee(R^T Rdot)`, `v = R^T pdot` along the path of constant v."""
    joint = JOINTS[name]

    def both(q, v):
        (r, _), (dr, dp), _ = pose_and_rate(joint, q, v)
        return jnp.concatenate([vee(r.T @ dr), r.T @ dp]), joint.subspace(q) @ v

    velocity, expected = jax.jit(jax.vmap(both))(*samples(name))
    np.testing.assert_allclose(velocity, expected, atol=1e-13)
    if not joint.translates:
        np.testing.assert_array_equal(expected[:, 3:], 0)


@SOME_SLOW
@EVERY_MOVING
def test_bias_is_the_rate_of_the_subspace(name):
    """`Sdot v` along the path of constant v; None only where S is constant."""
    joint = JOINTS[name]

    def both(q, v):
        path = lambda t: joint.subspace(joint.integrate(q, t * v)) @ v
        rate = jax.jvp(path, (jnp.zeros(()),), (jnp.ones(()),))[1]
        bias = joint.bias(q, v)
        return rate, jnp.zeros(6) if bias is None else bias

    rate, bias = jax.jit(jax.vmap(both))(*samples(name))
    np.testing.assert_allclose(bias, rate, atol=1e-13)


@pytest.mark.parametrize("name", tiers(("revolute", "planar", "free"), ("helical", "spherical zyx", "custom")))
def test_integrate_and_difference_are_inverse(name):
    joint = JOINTS[name]
    q, v = samples(name)
    scales = jnp.array([0.0, 1e-9, 1e-4, 0.09, 0.11, 0.5])
    small = scales[:, None] * v / jnp.linalg.norm(v, axis=1, keepdims=True)

    @jax.jit
    @jax.vmap
    def round_trips(q, dv, other):
        there = joint.difference(q, joint.integrate(q, dv))
        return there, joint.transform(joint.integrate(q, joint.difference(q, other)))

    there, reached = round_trips(q, small, q[::-1])
    np.testing.assert_allclose(there, small, atol=2e-15, rtol=1e-12)
    for x, y in zip(reached, poses(name), strict=True):
        np.testing.assert_allclose(x, y[::-1], atol=1e-12)


@SOME_SLOW
@EVERY_MOVING
def test_two_half_steps_of_integrate_equal_one_step(name):
    joint = JOINTS[name]

    @jax.jit
    @jax.vmap
    def both(q, v):
        twice = joint.integrate(joint.integrate(q, v / 2), v / 2)
        return joint.transform(twice), joint.transform(joint.integrate(q, v))

    for x, y in zip(*both(*samples(name)), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-13)


@pytest.mark.parametrize("name", tiers(("planar", "spherical zyx"), ("revolute", "free", "custom")))
def test_derivatives_at_the_neutral_configuration(name):
    """The derivative of the difference at coincidence is the identity; all gradients are finite."""
    joint = JOINTS[name]
    zero = joint.neutral(jnp.float64)

    def slopes(q):
        f = lambda dv: joint.difference(q, joint.integrate(q, dv))
        everything = lambda j, q, v: (j.transform(q), j.subspace(q), j.bias(q, v), j.integrate(q, v))
        total = lambda *x: sum((y**2).sum() for y in jax.tree.leaves(everything(*x)))
        grads = jax.grad(total, (0, 1, 2))(joint, q, jnp.zeros(joint.nv))
        return jax.jacfwd(f)(jnp.zeros(joint.nv)), jax.jacrev(f)(jnp.zeros(joint.nv)), grads

    forward, reverse, grads = jax.jit(slopes)(zero)
    np.testing.assert_allclose(forward, np.eye(joint.nv), atol=1e-14)
    np.testing.assert_allclose(reverse, np.eye(joint.nv), atol=1e-14)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(grads))


@pytest.mark.parametrize(
    "name", [*(pytest.param(x, marks=pytest.mark.slow) for x in ("spherical", "free")), "planar", "continuous"]
)
def test_gradients_of_the_difference_are_finite_at_a_half_turn(name):
    joint = JOINTS[name]
    turn = {"planar": [0, 0, np.pi], "continuous": [np.pi]}.get(name, [0, np.pi, 0, 0, 0, 0][: joint.nv])
    zero = joint.neutral(jnp.float64)
    half = joint.integrate(zero, jnp.array(turn))
    value, slope = jax.jit(lambda *x: (joint.difference(*x), jax.jacrev(joint.difference, 1)(*x)))(zero, half)
    np.testing.assert_allclose(jnp.linalg.norm(value), np.pi, rtol=1e-12)
    assert np.isfinite(slope).all()


@SOME_SLOW
@EVERY_MOVING
def test_trailing_axes_are_batch_axes(name):
    """One call with a block `(nq, 5, 7)` of five joints and seven samples equals a loop over both."""
    joint = JOINTS[name]
    q, v = samples(name, 35)
    block = lambda x: jnp.moveaxis(x, 0, -1).reshape(-1, 5, 7)
    several = jax.tree.map(lambda x: jnp.stack([x * (1 + 0.1 * k) for k in range(5)], -1)[..., None], joint)
    single = [jax.tree.map(lambda x: x[..., k, 0], several) for k in range(5)]  # noqa: B023
    qs, vs = block(q), block(v)

    def evaluate(j, q, v):
        bias = j.bias(q, v)
        return (*j.transform(q), j.subspace(q), *(() if bias is None else (bias,)))

    whole = jax.jit(evaluate)(several, qs, vs)
    one = jax.jit(jax.vmap(evaluate, (None, -1, -1), -1))
    for k in range(5):
        for x, y in zip(whole, one(single[k], qs[:, k], vs[:, k]), strict=True):
            full = jnp.broadcast_to(x, (*x.shape[:-2], 5, 7))
            np.testing.assert_allclose(full[..., k, :], y, atol=1e-14)


@EVERY
def test_single_precision_is_preserved(name):
    joint = jax.tree.map(lambda x: x.astype(jnp.float32), JOINTS[name])
    q = joint.random(jax.random.key(3), jnp.float32)
    v = jnp.ones(joint.nv, jnp.float32)
    every = lambda q, v: (*joint.transform(q), joint.subspace(q), joint.integrate(q, v), joint.difference(q, q))
    assert {x.dtype for x in (q, *jax.eval_shape(every, q, v))} == {jnp.dtype(jnp.float32)}


def test_axes_are_normalised():
    long = jj.Helical(10 * np.array(AXIS), 0.4)
    for x, y in zip(long.transform(jnp.ones(1)), JOINTS["helical"].transform(jnp.ones(1)), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-15)


def test_quaternions_are_normalised():
    joint = jj.Spherical()
    q = 3 * joint.random(jax.random.key(0), jnp.float64)
    r, _ = joint.transform(q)
    np.testing.assert_allclose(r @ r.T, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(jnp.linalg.norm(joint.integrate(q, jnp.ones(3))), 1, rtol=1e-15)
    np.testing.assert_allclose(joint.difference(q, -q), 0, atol=1e-15)


def test_differences_of_continuous_joints_lie_between_minus_pi_and_pi():
    joint = JOINTS["continuous"]
    np.testing.assert_allclose(joint.difference(jnp.array([3.0]), jnp.array([-3.0])), [2 * np.pi - 6])
    np.testing.assert_allclose(JOINTS["revolute"].difference(jnp.array([3.0]), jnp.array([-3.0])), [-6.0])


def helix(params, q):
    axis = params["axis"] / jnp.linalg.norm(params["axis"])
    return axis_angle_to_matrix(axis, q[0]), params["pitch"] * q[0] * axis


def euler(params, q):
    turns = [axis_angle_to_matrix(jnp.eye(3)[2 - k], q[k]) for k in range(3)]
    return turns[0] @ turns[1] @ turns[2], jnp.zeros(3)


@pytest.mark.parametrize(
    ("custom", "name"),
    [
        (jj.Custom({"axis": jnp.array(AXIS), "pitch": jnp.array(0.4)}, helix, 1), "helical"),
        pytest.param(jj.Custom((), euler, 3, translates=False), "spherical zyx", marks=pytest.mark.slow),
    ],
)
def test_custom_joints_agree_with_built_in_ones(custom, name):
    joint = JOINTS[name]

    def evaluate(j, q, v):
        bias = j.bias(q, v)
        return (*j.transform(q), j.subspace(q), jnp.zeros(6) if bias is None else bias)

    run = lambda j: jax.jit(jax.vmap(lambda q, v: evaluate(j, q, v)))(*samples(name))
    for x, y in zip(run(custom), run(joint), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-13)
