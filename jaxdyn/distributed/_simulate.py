"""Simulation of batches over devices."""

from typing import Any

import jax.numpy as jnp
from jax.sharding import Mesh

from jaxdyn._types import Array, Float, PyTree
from jaxdyn.distributed._vmap import sharded_vmap
from jaxdyn.model import Model
from jaxdyn.simulation import System, Trajectory
from jaxdyn.simulation.rollout import as_batched_options, combine_batch, simulate_sample, split_batch
from jaxdyn.simulation.system import EffortInput, InputsInput


def simulate_sharded(
    system: Model | System,
    q0: Float[Array, "batch nq"],
    v0: Float[Array, "batch nv"],
    ts: Float[Array, " times"],
    *,
    effort: EffortInput | None = None,
    inputs: InputsInput | None = None,
    parts: tuple[PyTree, ...] | None = None,
    batched: PyTree = False,
    mesh: Mesh | None = None,
    **options: Any,
) -> Trajectory:
    """Simulates a batch of initial states, each device its own rows (`simulate` under `sharded_vmap`).

    Arguments:

    * `system`: a model or `System`.
    * `q0`, `v0`: initial states, `(batch, nq)` and `(batch, nv)`; see `shard` and `shard_local`.
    * `ts`: times at which the state is saved, s.
    * `effort`, `inputs`, `parts`: as for `simulate`, with a leading batch axis in all their arrays, or None.
    * `batched`: mask of the leaves of the system that have a batch axis, as in `simulate_batch`.
    * `mesh`: devices, by default all devices of all processes.
    * `options`: those of `simulate`.

    Returns a `Trajectory` with a leading batch axis, sharded over the devices; `gather` converts it to numpy arrays.
    Raises `ShapeError` for batches that the devices do not divide.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.distributed import gather, shard, simulate_sharded

    q0 = shard(jnp.linspace(0.1, 0.8, 8)[:, None])
    path = simulate_sharded(jd.robots.pendulum(), q0, 0 * q0, jnp.array([0.0, 0.1]), dt=0.02)
    assert gather(path.q).shape == (8, 2, 1)
    ```
    """
    wide, shared = split_batch(system, batched)
    options = {k: jnp.asarray(x, q0.dtype) if isinstance(x, float) else x for k, x in options.items()}
    run = sharded_vmap(simulate_sample, (None, None, None, 0, 0, 0, 0), mesh=mesh)
    own = as_batched_options(effort, inputs, parts)
    return combine_batch(run(shared, ts, options, wide, q0, v0, own), shared)
