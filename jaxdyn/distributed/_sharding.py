"""Arrays spread over devices, and back."""

import functools as ft
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import core
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxdyn._errors import ShapeError

#: name of the axis of a mesh along which a batch is cut
BATCH = "batch"


def device_mesh(devices: Any = None) -> Mesh:
    """All devices of all processes in a row, or the given `devices`: a mesh with the one axis "batch"."""
    return Mesh(np.array(jax.devices() if devices is None else devices), (BATCH,))


def shard(tree: Any, *, mesh: Mesh | None = None) -> Any:
    """Arrays of a batch, cut along their leading axis over the devices of `mesh`, by default all there are.

    With several processes each calls this with the whole batch, and keeps the rows of its own devices. The size of
    the batch is a multiple of the number of devices.
    """
    mesh = device_mesh() if mesh is None else mesh
    check_batch(tree, mesh.size)
    return jax.tree.map(lambda x: _placed(x, NamedSharding(mesh, PartitionSpec(BATCH))), tree)


def shard_local(tree: Any, *, mesh: Mesh | None = None) -> Any:
    """Arrays of a batch of which each process gives the rows for its own devices, in the order of processes.

    So that no process needs to hold the batch: samples are drawn or read where they are used.
    """
    mesh = device_mesh() if mesh is None else mesh
    check_batch(tree, mesh.local_mesh.size)
    sharding = NamedSharding(mesh, PartitionSpec(BATCH))
    return jax.tree.map(lambda x: jax.make_array_from_process_local_data(sharding, _numbers(x)), tree)


def replicate(tree: Any, *, mesh: Mesh | None = None) -> Any:
    """Arrays that all samples share, a model say, copied to every device of `mesh`."""
    mesh = device_mesh() if mesh is None else mesh
    return jax.tree.map(lambda x: _placed(x, NamedSharding(mesh, PartitionSpec())), tree)


def gather(tree: Any) -> Any:
    """Arrays of any placement as numpy arrays, whole in every process; all processes call it together."""
    return jax.tree.map(_gathered, tree)


def check_batch(tree: Any, devices: int):
    """Raises `ShapeError` unless all arrays have one leading axis that the devices share out evenly."""
    shapes = [np.shape(x) for x in jax.tree.leaves(tree)]
    sizes = {shape[0] if shape else None for shape in shapes}
    if not shapes or len(sizes) != 1 or None in sizes:
        raise ShapeError(f"a batch has arrays of shapes {shapes}; expected one leading axis in all of them")
    size = sizes.pop() or 0
    if size == 0 or size % devices:
        above = max(-(-size // devices), 1) * devices
        raise ShapeError(
            f"a batch of {size} samples does not divide into {devices} devices; give {above}, the last ones being "
            "copies if need be, or a mesh of fewer devices: device_mesh(jax.devices()[:n])"
        )


def _numbers(x) -> np.ndarray:
    """An array in host memory in the precision that JAX would give it."""
    return np.asarray(x, jnp.result_type(x))


def _placed(x, sharding: NamedSharding):
    if isinstance(x, jax.Array) and (isinstance(x, core.Tracer) or not x.is_fully_addressable):
        return jax.device_put(x, sharding)
    if sharding.is_fully_addressable:
        return jax.device_put(x, sharding)
    host = _numbers(x)
    return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])


def _gathered(x):
    if not isinstance(x, jax.Array) or x.is_fully_addressable:
        return np.asarray(x)
    sharding: Any = x.sharding
    return np.asarray(x if x.is_fully_replicated else _everywhere(sharding.mesh)(x))


@ft.cache
def _everywhere(mesh: Mesh):
    return jax.jit(lambda x: x, out_shardings=NamedSharding(mesh, PartitionSpec()))
