"""Rollouts over devices."""

from typing import Any

import jax.numpy as jnp
from jax.sharding import Mesh

from jaxdyn._types import Array, Float
from jaxdyn.distributed._vmap import sharded_vmap
from jaxdyn.model import Model
from jaxdyn.simulation import System, Trajectory
from jaxdyn.simulation._batch import completed, one_of_batch, split_batch
from jaxdyn.simulation._inputs import as_part


def simulate_sharded(
    system: Model | System,
    q0: Float[Array, "batch nq"],
    v0: Float[Array, "batch nv"],
    ts: Float[Array, " times"],
    *,
    effort: Any = None,
    batched: Any = False,
    mesh: Mesh | None = None,
    **options: Any,
) -> Trajectory:
    """Trajectories from a batch of starts, `simulate` under `sharded_vmap`: each device simulates its own rows.

    * `q0`, `v0` and `effort`, if there is one, have the leading axis of the batch; see `shard` and `shard_local`.
    * `batched` says which leaves of the system have that axis too, as in `simulate_batch`.
    * `mesh` holds the devices, by default all of all processes.
    * `options` are those of `simulate`.

    The trajectory stays where its rows were computed; `gather` makes numpy arrays of it, whole in every process.
    """
    wide, shared = split_batch(system, batched)
    options = {k: jnp.asarray(x, q0.dtype) if isinstance(x, float) else x for k, x in options.items()}
    run = sharded_vmap(one_of_batch, (None, None, None, 0, 0, 0, 0), mesh=mesh)
    return completed(run(shared, ts, options, wide, q0, v0, None if effort is None else as_part(effort)), shared)
