"""Results on eight devices equal those on one, without communication; invalid batches raise errors."""

import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.distributed import device_mesh, gather, initialize, replicate, shard, shard_local, sharded_vmap
from jaxdyn.distributed._sharding import check_batch

from .._architecture import ROOT
from ._worker import QUICK_COMPILE

EIGHT = "--xla_force_host_platform_device_count=8"


def run(*arguments: str, flags: str = "") -> dict:
    """The JSON object that a worker prints."""
    environment = {**os.environ, "XLA_FLAGS": f"{QUICK_COMPILE} {flags}", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "tests.distributed._worker", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.exhaustive
def test_eight_devices_give_the_results_of_one():
    result = run("devices", "1040", flags=EIGHT)  # 130 rows a device: three blocks of the kernels, padded
    assert result["devices"] == result["parts"] == 8
    assert result["rollout"] <= 1e-14 and result["by placement"] <= 1e-14
    assert result["gradient"] <= 1e-13
    assert result["different"] <= 1e-14, "a batch of robots and efforts"
    assert set(result["forward"].values()) == {0}, "a rollout has no collective operation"
    sums = result["backward"].pop("all-reduce")
    assert sums > 0 and set(result["backward"].values()) == {0}, "the sum of gradients is the only collective operation"


@pytest.mark.exhaustive
def test_sharded_vmap_on_one_device_is_vmap():
    m = jd.robots.double_pendulum()
    q, v = np.random.default_rng(0).normal(size=(2, 3, 2))
    run = sharded_vmap(jd.mass_matrix, (None, 0))
    np.testing.assert_allclose(run(m, shard(q)), jax.vmap(jd.mass_matrix, (None, 0))(m, q), atol=1e-14)
    energy = lambda run: lambda m, q, v: jnp.sum(run(m, q, v))
    both = sharded_vmap(jd.kinetic_energy, (None, 0, 0)), jax.vmap(jd.kinetic_energy, (None, 0, 0))
    ours, theirs = (jax.grad(energy(f), argnums=(0, 2))(m, q, v) for f in both)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-13), ours, theirs)


@pytest.mark.exhaustive
def test_second_and_forward_derivatives():
    m, q = jd.robots.pendulum(), jnp.array([[0.3], [1.0]])
    potential = sharded_vmap(jd.potential_energy, (None, 0))
    torque = lambda m: jnp.sum(jax.grad(lambda q: jnp.sum(potential(m, q)))(q))
    np.testing.assert_allclose(jax.grad(torque)(m).links.mass, [9.81 * jnp.sum(jnp.sin(q))], rtol=1e-14)
    forward = sharded_vmap(lambda m, q: jax.jvp(lambda q: jd.potential_energy(m, q), (q,), (q,))[1], (None, 0))
    np.testing.assert_allclose(forward(m, q), 9.81 * (q * jnp.sin(q))[:, 0], rtol=1e-14)
    # differentiation with respect to a closed-over value raises an error instead of returning zero
    with pytest.raises(Exception, match="closed-over value"):
        jax.grad(lambda m: jnp.sum(sharded_vmap(lambda q: jd.potential_energy(m, q))(q)))(m)
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(lambda q: potential(m, q), (q,), (q,))


def test_gather_inverts_shard_and_shard_local():
    tree = {"q": np.arange(6.0).reshape(3, 2), "k": np.arange(3)}
    for put in (shard, shard_local):
        back = gather(put(tree))
        assert all(isinstance(x, np.ndarray) for x in jax.tree.leaves(back))
        jax.tree.map(np.testing.assert_array_equal, back, tree)
    assert jax.tree.all(jax.tree.map(lambda x: x.is_fully_replicated, replicate(jd.robots.pendulum())))


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (np.zeros((5, 2)), "a batch of 5 samples does not divide into 2 devices; pad it to 6"),
        (np.zeros((0, 2)), "a batch of 0 samples does not divide into 2 devices; pad it to 2"),
        ((np.zeros((4, 2)), np.zeros(3)), "expected the same leading axis in all of them"),
        (np.zeros(()), "expected the same leading axis"),
        ([], "expected the same leading axis"),
    ],
)
def test_uneven_batches_raise(tree, message):
    with pytest.raises(jd.ShapeError, match=message):
        check_batch(tree, 2)


def test_axes_are_checked():
    with pytest.raises(jd.ShapeError, match="expected the same leading axis"):
        shard(jnp.zeros(()))
    with pytest.raises(jd.ShapeError, match="expected the same leading axis"):
        sharded_vmap(jnp.add)(jnp.zeros(2), jnp.zeros(3))
    with pytest.raises(jd.ShapeError, match="expected 0 for a batch on axis 0"):
        sharded_vmap(jnp.sin, 1)
    with pytest.raises(jd.ShapeError, match="2 entries for 1 arguments"):
        sharded_vmap(jnp.sin, (0, 0))(jnp.zeros(2))
    assert device_mesh(jax.devices()[:1]).size == 1


def test_an_incomplete_address_raises():
    with pytest.raises(jd.JaxdynError, match="give all three"):
        initialize("127.0.0.1:1", 2)
