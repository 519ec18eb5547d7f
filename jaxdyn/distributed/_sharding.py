"""Sharding, replication and gathering of arrays."""

import functools as ft
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import core
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxdyn._errors import ShapeError
from jaxdyn._types import PyTree
from jaxdyn.distributed._fork import check_not_forked

#: name of the mesh axis over which a batch is sharded
BATCH = "batch"


def device_mesh(devices: Sequence[Any] | None = None) -> Mesh:
    """A mesh with the single axis "batch" of the given `devices`, by default all devices of all processes."""
    check_not_forked()
    return Mesh(np.array(jax.devices() if devices is None else devices), (BATCH,))


def shard(tree: PyTree, *, mesh: Mesh | None = None) -> PyTree:
    """Shards the arrays of a batch along their leading axis over the devices of `mesh`, by default all devices.

    Each of several processes calls this function with the whole batch, and keeps the rows of its own devices. The size
    of the batch must be a multiple of the number of devices; otherwise raises `ShapeError`.
    """
    mesh = device_mesh() if mesh is None else mesh
    check_batch(tree, mesh.size)
    return jax.tree.map(lambda x: _put_array(x, NamedSharding(mesh, PartitionSpec(BATCH))), tree)


def shard_local(tree: PyTree, *, mesh: Mesh | None = None) -> PyTree:
    """Shards a batch of which each process passes only the rows for its own devices, in the order of processes.

    No process needs to hold the whole batch: each draws or reads its own samples.
    """
    mesh = device_mesh() if mesh is None else mesh
    check_batch(tree, mesh.local_mesh.size)
    sharding = NamedSharding(mesh, PartitionSpec(BATCH))
    return jax.tree.map(lambda x: jax.make_array_from_process_local_data(sharding, _as_host_array(x)), tree)


def replicate(tree: PyTree, *, mesh: Mesh | None = None) -> PyTree:
    """Copies arrays that all samples share, such as a model, to every device of `mesh`."""
    mesh = device_mesh() if mesh is None else mesh
    return jax.tree.map(lambda x: _put_array(x, NamedSharding(mesh, PartitionSpec())), tree)


def gather(tree: PyTree) -> PyTree:
    """Converts arrays of any sharding to whole numpy arrays in every process; call it in all processes."""
    check_not_forked()
    return jax.tree.map(_gather_array, tree)


def check_batch(tree: PyTree, devices: int):
    """Raises `ShapeError` unless all arrays have the same leading axis, divisible by the number of devices."""
    shapes = [np.shape(x) for x in jax.tree.leaves(tree)]
    sizes = {shape[0] if shape else None for shape in shapes}
    if not shapes or len(sizes) != 1 or None in sizes:
        raise ShapeError(f"a batch has arrays of shapes {shapes}; expected the same leading axis in all of them")
    size = sizes.pop() or 0
    if size == 0 or size % devices:
        above = max(-(-size // devices), 1) * devices
        raise ShapeError(
            f"a batch of {size} samples does not divide into {devices} devices; pad it to {above} samples, for "
            "instance with copies, or use a mesh of fewer devices: device_mesh(jax.devices()[:n])"
        )


def _as_host_array(x) -> np.ndarray:
    """The array in host memory, in JAX's precision."""
    return np.asarray(x, jnp.result_type(x))


def _put_array(x, sharding: NamedSharding):
    """Puts an array on the devices; each process creates the shards of its own devices."""
    if isinstance(x, jax.Array) and (isinstance(x, core.Tracer) or not x.is_fully_addressable):
        return jax.device_put(x, sharding)
    if sharding.is_fully_addressable:
        return jax.device_put(x, sharding)
    host = _as_host_array(x)
    return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])


def _gather_array(x):
    if not isinstance(x, jax.Array) or x.is_fully_addressable:
        return np.asarray(x)
    sharding: Any = x.sharding
    return np.asarray(x if x.is_fully_replicated else _replicate_on(sharding.mesh)(x))


@ft.cache
def _replicate_on(mesh: Mesh):
    """A compiled function that replicates an array on all devices of a mesh."""
    return jax.jit(lambda x: x, out_shardings=NamedSharding(mesh, PartitionSpec()))
