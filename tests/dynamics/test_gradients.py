"""Derivatives of every function with respect to every leaf: reverse mode, forward mode, central differences."""

import functools as ft

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.joints import Free, Spherical
from tests.dynamics._cases import QUICK, call, chain, integrate_configuration, model, state
from tests.dynamics._functions import FUNCTIONS, PASSIVE, scalar
from tests.oracles import relative_error

FAST = ("rnea", "forward_dynamics")


def _case(robot, name):
    """A default test if it compiles in seconds."""
    fast = (robot, name) == ("pair", "forward_dynamics")  # which differentiates rnea as well
    return pytest.param(robot, name, marks=() if fast else pytest.mark.exhaustive)


ROBOTS = ("pair", "rare", "geared", "every")
cases = pytest.mark.parametrize(("robot", "name"), [_case(r, n) for r in ROBOTS for n in FUNCTIONS])


@ft.cache
def value(name):
    return jax.jit(scalar(name), compiler_options=QUICK)


@ft.cache
def gradient(name):
    return jax.jit(jax.grad(scalar(name), argnums=(0, 1, 2, 3, 4)), compiler_options=QUICK)


@ft.cache
def tangent(name):
    return jax.jit(lambda args, d: jax.jvp(scalar(name), args, d)[1], compiler_options=QUICK)


def _paths(tree):
    return [(jax.tree_util.keystr(path), x) for path, x in jax.tree_util.tree_flatten_with_path(tree)[0]]


def _direction(args, seed):
    """Random tangents of all leaves; zero for infinite limits. By numpy: JAX compiles each operation for each shape."""
    rng = np.random.default_rng(seed)
    draw = lambda x: np.where(np.isfinite(x), rng.normal(size=x.shape), 0).astype(x.dtype)
    return jax.tree.map(draw, args)


def _dot(a, b):
    return sum(float((x * y).sum()) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def _step(args, direction, h):
    return jax.tree.map(lambda x, d: np.asarray(x) + h * np.asarray(d), args, direction)


def _difference(name, args, direction, h=1e-4):
    """Fourth-order central difference along a direction."""
    f = lambda k: float(value(name)(*_step(args, direction, k * h)))
    return (8 * (f(1) - f(-1)) - (f(2) - f(-2))) / (12 * h)


def _check(name, args, seeds=(0, 1), tolerance=1e-7):
    """A difference with step 1e-4 has a relative rounding error near 1e-16 / 1e-4 of the subtracted values."""
    g = gradient(name)(*args)
    for path, x in _paths(g):
        assert np.isfinite(np.asarray(x)).all(), path
    for seed in seeds:
        d = _direction(args, seed)
        reverse, forward = _dot(g, d), float(tangent(name)(args, d))
        scale = np.sqrt(_dot(g, g) * _dot(d, d) / len(jax.tree.leaves(d))) + abs(float(value(name)(*args)))
        assert abs(reverse - forward) <= 1e-10 * scale
        assert abs(reverse - _difference(name, args, d)) <= tolerance * scale
    return g


@pytest.mark.slow
@cases
def test_reverse_forward_and_differences_agree(robot, name):
    robot = _affordable(robot, name)
    _check(name, (model(robot), *state(robot)))


def _affordable(robot, name):
    """The robot, or a smaller one for gradients of derivatives, which compile for minutes in gigabytes."""
    too_large = name.endswith("_derivatives") and robot in ("every", "rare")
    too_large |= name in ("coriolis_matrix", "christoffel_symbols") and robot == "every"
    return "few" if too_large else robot


@pytest.mark.slow
@cases
def test_each_leaf(robot, name):
    """Directions in one leaf at a time, so that no error hides behind a larger derivative."""
    robot = _affordable(robot, name)
    args = (model(robot), *state(robot))
    g = gradient(name)(*args)
    tree = jax.tree.structure(args)
    direction = jax.tree.leaves(_direction(args, 3))
    for k, (path, x) in enumerate(_paths(g)):
        if not x.size:
            continue
        d = tree.unflatten([y if i == k else jnp.zeros_like(y) for i, y in enumerate(direction)])
        got, want = float((x * direction[k]).sum()), _difference(name, args, d)
        scale = float(jnp.abs(x * direction[k]).sum()) + abs(float(value(name)(*args)))
        assert abs(got - want) < 1e-7 * scale, path  # rounding of the difference, as above


@pytest.mark.parametrize(("robot", "name"), [_case(r, n) for r in ROBOTS for n in FAST])
def test_no_leaf_has_a_zero_derivative(robot, name):
    """Both functions depend on all leaves but those of the passive forces."""
    args = (model(robot), *state(robot))
    for path, x in _paths(gradient(name)(*args)):
        if not x.size:
            continue
        free = any(word in path for word in PASSIVE)
        assert np.any(np.asarray(x) != 0) != free, path


@pytest.mark.slow("rnea")
@pytest.mark.parametrize(
    "name", ["rnea", *(pytest.param(x, marks=pytest.mark.exhaustive) for x in FUNCTIONS if x != "rnea")]
)
def test_vmap_equals_a_loop(name):
    """For states with a shared robot, and for robots with a shared state."""
    m = model("pair")
    f = FUNCTIONS[name]
    states = [state("pair", k) for k in range(3)]
    batch = jax.tree.map(lambda *x: jnp.stack(x), *states)
    quick = ft.partial(jax.jit, compiler_options=QUICK)
    many = quick(jax.vmap(f, (None, 0, 0, 0, 0)))(m, *batch)
    one = quick(f)
    for k, s in enumerate(states):
        for got, want in zip(jax.tree.leaves(many), jax.tree.leaves(one(m, *s)), strict=True):
            assert relative_error(got[k], want) < 1e-10
    robots = [m, _step(m, _direction(m, 7), 1e-2)]
    batch = jax.tree.map(lambda *x: jnp.stack(x), *robots)
    many = quick(jax.vmap(f, (0, None, None, None, None)))(batch, *states[0])
    for k, r in enumerate(robots):
        for got, want in zip(jax.tree.leaves(many), jax.tree.leaves(one(r, *states[0])), strict=True):
            assert relative_error(got[k], want) < 1e-10


@pytest.mark.exhaustive
def test_gradients_of_a_batch():
    """Gradients of each sample, and of the sum with respect to the shared robot."""
    m = model("every")
    states = [state("every", k) for k in range(3)]
    batch = jax.tree.map(lambda *x: jnp.stack(x), *states)
    each = [gradient("rnea")(m, *s) for s in states]
    total = jax.jit(jax.grad(lambda m, s: jax.vmap(lambda s: scalar("rnea")(m, *s))(s).sum(), (0, 1)))(m, batch)
    for got, *want in zip(jax.tree.leaves(total[0]), *(jax.tree.leaves(g[0]) for g in each), strict=True):
        assert relative_error(got, sum(np.asarray(w) for w in want)) < 1e-10
    for got, *want in zip(jax.tree.leaves(total[1]), *(jax.tree.leaves(g[1:]) for g in each), strict=True):
        assert relative_error(got, np.stack(want)) < 1e-10


@pytest.mark.exhaustive
def test_batch_size_that_needs_padding():
    """135 samples need padded blocks of lanes; each result equals that of the single sample."""
    m = model("pair")
    states = [state("pair", k) for k in range(5)]
    batch = jax.tree.map(lambda *x: jnp.concatenate([jnp.stack(x)] * 27), *states)
    for f in (FUNCTIONS["rnea"], FUNCTIONS["forward_dynamics"], jax.grad(scalar("forward_dynamics"), (0, 1, 2, 3))):
        many = jax.jit(jax.vmap(f, (None, 0, 0, 0, 0)))(m, *batch)
        alone = jax.jit(f, compiler_options=QUICK)
        for k in (0, 63, 134):
            one = alone(m, *states[k % 5])
            for got, want in zip(jax.tree.leaves(many), jax.tree.leaves(one), strict=True):
                assert relative_error(got[k], want) < 1e-10


# --- singular points ---------------------------------------------------------------------------------


def _quaternions(m, q, quaternion):
    for name in m.joint_names:
        view = m.joint(name)
        if isinstance(view.joint, Free | Spherical):
            q = q.at[view.q].set(jnp.zeros(view.joint.nq).at[:4].set(jnp.array(quaternion, q.dtype)))
    return q


def _at_rest(m, s):
    zero = tuple(jnp.zeros_like(x) for x in s)
    return m, (_quaternions(m, zero[0], (1, 0, 0, 0)), *zero[1:])


def _identity(m, s):
    return m, (_quaternions(m, s[0], (1, 0, 0, 0)), *s[1:])


def _half_turn(m, s):
    return m, (_quaternions(m, s[0], (0, 1, 0, 0)).at[-1].set(jnp.pi), *s[1:])


def _aligned(m, s):
    """All axes along z, or x for the second axis of a universal joint, without offsets and rotations."""

    def axis(path, x):
        name = jax.tree_util.keystr(path)
        if "axis" not in name:
            return x
        one = jnp.array([1.0, 0, 0] if "axis2" in name else [0, 0, 1.0])
        return jnp.broadcast_to(one, x.shape)

    joints = jax.tree_util.tree_map_with_path(axis, m.joints)
    identity = jnp.zeros_like(m.placements.rotation).at[:, 0].set(1)
    m = eqx.tree_at(
        lambda m: (m.joints, m.placements.rotation, m.placements.translation),
        m,
        (joints, identity, jnp.zeros_like(m.placements.translation)),
    )
    return m, _at_rest(m, s)[1]


def _weightless(m, s):
    """Links without mass and inertia, one of them a leaf of the tree; armatures keep M regular."""
    rows = jnp.array([1, m.num_links // 2, m.num_links - 1])
    return eqx.tree_at(
        lambda m: (m.links.mass, m.links.inertia),
        m,
        (m.links.mass.at[rows].set(0), m.links.inertia.at[rows].set(0)),
    ), s


def _no_rotors_at_rest(m, s):
    m = eqx.tree_at(lambda m: m.properties.armature, m, jnp.zeros_like(m.properties.armature))
    return _at_rest(m, s)


def _anywhere(m, s):
    return m, s


POINTS = (_at_rest, _identity, _half_turn, _aligned, _weightless, _no_rotors_at_rest)


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS, ids=lambda f: f.__name__.strip("_"))
@pytest.mark.parametrize(("robot", "name"), [_case(r, n) for r in ("pair", "few", "every") for n in FAST])
def test_singular_points(robot, point, name):
    m, s = point(model(robot), state(robot))
    _check(name, (m, *s), seeds=(0,))


@pytest.mark.exhaustive
@pytest.mark.parametrize("point", POINTS, ids=lambda f: f.__name__.strip("_"))
@pytest.mark.parametrize("name", [x for x in FUNCTIONS if x not in FAST])
def test_singular_points_of_other_functions(point, name):
    robot = _affordable("every", name)
    m, s = point(model(robot), state(robot))
    _check(name, (m, *s), seeds=(0,))


# --- derivative functions ----------------------------------------------------------------------------


@pytest.mark.exhaustive
@pytest.mark.parametrize("robot", ["every", "geared"])
def test_analytic_derivatives_equal_derivatives_of_the_functions(robot):
    """Includes joint types that Pinocchio lacks: `dq` in the tangent space of `integrate`."""
    m, (q, v, a, e) = model(robot), state(robot)
    inverse = call("rnea_derivatives", m, q, v, a, e)
    forward = call("forward_dynamics_derivatives", m, q, v, a, e)
    rng = np.random.default_rng(0)
    for _ in range(2):
        dq, dv, da = (jnp.asarray(rng.normal(size=m.nv)) for _ in range(3))

        def path(s, name, dq=dq, dv=dv, da=da):
            return np.asarray(call(name, m, integrate_configuration(m, q, s * dq), v + s * dv, a + s * da, e))

        for name, got in (
            ("rnea", inverse.dq @ dq + inverse.dv @ dv + inverse.da @ da),
            ("forward_dynamics", forward.dq @ dq + forward.dv @ dv + forward.dtau @ da),
        ):
            h = 1e-4
            want = (8 * (path(h, name) - path(-h, name)) - path(2 * h, name) + path(-2 * h, name)) / (12 * h)
            assert relative_error(got, want) < 1e-8  # the difference's own rounding


@pytest.mark.slow(
    "any-forward_dynamics-pair",
    "half_turn-forward_dynamics-pair",
)
@pytest.mark.parametrize("robot", ["pair", "every"])
@pytest.mark.parametrize("name", ["rnea", "forward_dynamics"])
@pytest.mark.parametrize("point", [lambda m, s: (m, s), _at_rest, _half_turn], ids=["any", "rest", "half_turn"])
def test_second_order(robot, name, point):
    """Products with the Hessian: forward over reverse, reverse over forward, and differences of gradients."""
    m, s = point(model(robot), state(robot))
    args = (m, *s)
    d, w = _direction(args, 0), _direction(args, 1)
    product = _hessian_product(name)(args, d)
    for path, x in _paths(product):
        assert np.isfinite(np.asarray(x)).all(), path
    other = _hessian_product(name)(args, w)
    assert abs(_dot(product, w) - _dot(other, d)) < 1e-9 * np.sqrt(_dot(product, product) * _dot(w, w))
    h = 1e-4
    g = lambda k: gradient(name)(*_step(args, d, k * h))
    four = [g(k) for k in (1, -1, 2, -2)]
    want = jax.tree.map(lambda a, b, c, e: (8 * (a - b) - (c - e)) / (12 * h), *four)
    norm = np.sqrt(_dot(want, want))
    off = jax.tree.map(lambda x, y: x - y, product, want)
    assert np.sqrt(_dot(off, off)) < 1e-6 * norm  # the difference's rounding and its step


@ft.cache
def _hessian_product(name):
    f = jax.grad(scalar(name), argnums=(0, 1, 2, 3, 4))
    return jax.jit(lambda args, d: jax.jvp(f, args, d)[1], compiler_options=QUICK)


@pytest.mark.exhaustive
def test_jacobian_of_one_state_by_reverse_mode():
    """`jax.jacrev` pulls a batch of cotangents back through an unbatched value, for the robot and the state."""
    args = (model("pair"), *state("pair"))
    leaves, tree = jax.tree.flatten(args)
    f = lambda leaves: FUNCTIONS["forward_dynamics"](*tree.unflatten(leaves))
    backward, forward = (jax.jit(d(f), compiler_options=QUICK)(leaves) for d in (jax.jacrev, jax.jacfwd))
    for got, want in zip(backward, forward, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10)


@pytest.mark.exhaustive
def test_reverse_over_reverse():
    m, s = model("every"), state("every")
    args = (m, *s)
    d = _direction(args, 0)
    f = jax.grad(scalar("forward_dynamics"), argnums=(0, 1, 2, 3, 4))
    got = jax.jit(jax.grad(lambda args: sum(
        (x * y).sum() for x, y in zip(jax.tree.leaves(f(*args)), jax.tree.leaves(d), strict=True)
    )))(args)  # fmt: skip
    want = _hessian_product("forward_dynamics")(args, d)
    for (path, x), (_, y) in zip(_paths(got), _paths(want), strict=True):
        scale = max(np.abs(np.asarray(y)).max(initial=0), 1e-6)
        assert np.abs(np.asarray(x - y)).max(initial=0) < 1e-9 * scale, path


def test_norm_of_a_quaternion_leaf_has_no_effect():
    """The norm of a placement's quaternion has no effect: the derivative along the quaternion is zero."""
    m, s = model("pair"), state("pair")
    g = gradient("forward_dynamics")(m, *s)[0]
    radial = np.einsum("ni,ni->n", g.placements.rotation, m.placements.rotation)
    assert np.abs(radial).max() < 1e-10 * np.abs(np.asarray(g.placements.rotation)).max()


@pytest.mark.slow
def test_gradient_through_model_construction():
    """A robot built inside the differentiated function has derivatives with respect to a length."""

    def effort(length):
        m = chain(3, spread=length)
        return FUNCTIONS["rnea"](m, jnp.ones(3), jnp.ones(3), jnp.ones(3), jnp.zeros((3, 6)))[0]

    f = jax.jit(effort)
    slope, h = jax.jit(jax.grad(effort))(0.3), 1e-4
    assert abs(slope - (f(0.3 + h) - f(0.3 - h)) / (2 * h)) < 1e-6 * abs(slope)  # second-order difference
