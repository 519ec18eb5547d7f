"""A model is a pytree of numbers: leaves may be replaced, batched, differentiated and optimised."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxdyn.dynamics import rnea

from ._robots import branched_robot, efforts, mass_matrix, neutral, pendulum, random_state

ARM = pendulum()
TREE = branched_robot()


def numbers(model):
    return dict(jax.tree_util.tree_flatten_with_path(model)[0])


def test_every_leaf_is_a_floating_point_array():
    for leaf in jax.tree.leaves(TREE):
        assert isinstance(leaf, jax.Array) and leaf.dtype == jnp.float64


def test_tree_operations_keep_the_structure():
    doubled = jax.tree.map(lambda x: 2 * x, TREE)
    assert doubled.topology == TREE.topology
    leaves, structure = jax.tree.flatten(TREE)
    again = jax.tree.unflatten(structure, leaves)
    assert jax.tree.structure(again) == structure and hash(jax.tree.structure(again)) == hash(structure)


def test_replacing_a_mass_changes_the_results():
    state = random_state(ARM)
    heavier = eqx.tree_at(lambda m: m.links.mass, ARM, replace_fn=lambda x: 2 * x)
    denser = pendulum(density=5400.0)
    assert not np.allclose(efforts(heavier, *state), efforts(ARM, *state))
    both = eqx.tree_at(lambda m: m.links.inertia, heavier, replace_fn=lambda x: 2 * x)
    np.testing.assert_allclose(efforts(both, *state), efforts(denser, *state), rtol=1e-13)


def test_replacing_a_length_changes_the_results():
    state = random_state(ARM)
    longer = eqx.tree_at(lambda m: m.placements.translation, ARM, replace_fn=lambda x: 1.5 * x)
    assert not np.allclose(efforts(longer, *state), efforts(ARM, *state))


def test_gravity_is_a_leaf():
    zero = jnp.zeros(2)
    down = efforts(ARM, jnp.array([0.3, 0.2]), zero, zero)
    up = eqx.tree_at(lambda m: m.gravity, ARM, replace_fn=lambda g: -g)
    np.testing.assert_allclose(efforts(up, jnp.array([0.3, 0.2]), zero, zero), -down, rtol=1e-13)


@pytest.mark.slow
def test_a_batch_of_different_robots():
    lengths = jnp.linspace(0.3, 0.9, 5)
    state = random_state(ARM)
    robots = jax.vmap(lambda x: pendulum((x, 0.4)))(lengths)
    assert robots.topology == ARM.topology and robots.links.mass.shape == (5, 2)
    together = jax.jit(jax.vmap(rnea, (0, None, None, None)))(robots, *state)
    one_by_one = [efforts(pendulum((x, 0.4)), *state) for x in lengths]
    np.testing.assert_allclose(together, jnp.stack(one_by_one), rtol=1e-13)


@pytest.mark.slow
def test_inverse_dynamics_is_differentiable_with_respect_to_every_leaf():
    """One directional derivative per leaf against central differences."""
    state = random_state(TREE)
    weights = jnp.cos(jnp.arange(TREE.nv))
    value = jax.jit(lambda m: weights @ rnea(m, *state))
    gradient = numbers(jax.jit(jax.grad(value))(TREE))
    flat, structure = jax.tree.flatten(TREE)
    unused = ("limits", "frames", "damping", "friction", "stiffness", "rest")
    for k, (path, leaf) in enumerate(numbers(TREE).items()):
        name = jax.tree_util.keystr(path)
        direction = jnp.asarray(np.random.default_rng(k).normal(size=leaf.shape))
        if name.endswith("inertia"):
            direction = direction + jnp.swapaxes(direction, -1, -2)
        if any(s in name for s in unused) or leaf.size == 0:
            np.testing.assert_array_equal(gradient[path], 0)
            continue
        shifted = lambda h: value(
            jax.tree.unflatten(structure, [*flat[:k], leaf + h * direction, *flat[k + 1 :]])  # noqa: B023
        )
        h = 1e-4
        expected = (8 * (shifted(h) - shifted(-h)) - (shifted(2 * h) - shifted(-2 * h))) / (12 * h)
        np.testing.assert_allclose(
            (gradient[path] * direction).sum(), expected, rtol=1e-8, atol=1e-8, err_msg=name
        )  # accuracy of the differences
        assert expected != 0, name


@pytest.mark.slow
def test_an_optimiser_step_reduces_the_loss():
    """A gradient step by optax on masses brings the efforts closer to those of another robot."""
    state = random_state(ARM)
    target = efforts(pendulum(density=3000.0), *state)
    loss = jax.jit(jax.value_and_grad(lambda m: jnp.sum((rnea(m, *state) - target) ** 2)))
    optimiser = optax.sgd(1e-4)
    before, grads = loss(ARM)
    updates, _ = optimiser.update(grads, optimiser.init(ARM), ARM)
    updated = optax.apply_updates(ARM, updates)
    assert updated.topology == ARM.topology
    assert loss(updated)[0] < before


@pytest.mark.slow
def test_one_trace_per_topology():
    traces = []

    @jax.jit
    def f(model, q, v, a):
        traces.append(1)
        return rnea(model, q, v, a)

    state = random_state(ARM)
    for density in (2700.0, 5000.0):
        f(pendulum(density=density), *state)
    f(jax.tree.map(lambda x: 1.1 * x, ARM), *state)
    assert len(traces) == 1


def test_armature_is_added_to_the_mass_matrix():
    heavy = eqx.tree_at(lambda m: m.properties.armature, ARM, jnp.array([0.5, 0.7]))
    difference = mass_matrix(heavy, neutral(ARM)) - mass_matrix(ARM, neutral(ARM))
    np.testing.assert_allclose(difference, np.diag([0.5, 0.7]), atol=1e-13)


@pytest.mark.slow
def test_inertia_of_a_mimic_joint_is_scaled_by_the_ratio():
    """The diagonal of the mass matrix is a quadratic in the ratio with the mass of the mimic's link as coefficient."""
    q = neutral(TREE)
    d = TREE.joint("d_joint").v.start
    at = lambda ratio: mass_matrix(eqx.tree_at(lambda m: m.mimic.ratio, TREE, jnp.array([ratio])), q)[d, d]
    # the joint is prismatic, so that its position does not enter
    second = (at(1.0) - 2 * at(0.0) + at(-1.0)) / 2
    np.testing.assert_allclose(second, TREE.link("f").mass, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [jnp.float32])
def test_single_precision_agrees_with_double(dtype):
    state = random_state(ARM)
    single = efforts(ARM.astype(dtype), *(x.astype(dtype) for x in state))
    assert single.dtype == dtype
    scale = np.abs(efforts(ARM, *state)).max()
    np.testing.assert_allclose(single, efforts(ARM, *state), atol=1e-5 * scale)
