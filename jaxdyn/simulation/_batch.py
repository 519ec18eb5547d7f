"""Batches larger than memory."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ShapeError
from jaxdyn._types import Array, Float
from jaxdyn.model import Model
from jaxdyn.simulation._inputs import as_part, with_effort
from jaxdyn.simulation._simulate import simulate
from jaxdyn.simulation._system import System, as_system
from jaxdyn.simulation._trajectory import Batched, Trajectory, with_system


def simulate_batch(
    system: Model | System,
    q0: Float[Array, "batch nq"],
    v0: Float[Array, "batch nv"],
    ts: Float[Array, " times"],
    *,
    effort: Any = None,
    batched: Any = False,
    chunk_size: int | None = None,
    progress: Any = None,
    **options: Any,
) -> Trajectory:
    """Trajectories from a batch of starts, `simulate` under `vmap`, in chunks that fit into memory.

    * `effort` has the leading axis of the batch in all its arrays, or is None.
    * `batched` says which leaves of the system have that axis: True, False, or a pytree of these that is a prefix of
      the system, such as `equinox.tree_at(where, jax.tree.map(lambda _: False, model), True)`.
    * `chunk_size` samples are simulated at a time, all by default, and the results are collected in host memory. The
      last chunk is filled up with copies, so that all have one shape and are compiled once. With fixed steps a
      sample's numbers do not depend on the chunk that it is in.
    * `progress` is called after each chunk as `progress(done, total)`, or is a bar like those of tqdm, whose method
      `update` gets the number of samples that have been done since.
    * `options` are those of `simulate`.

    What the samples share of the system is kept once; `trajectory[k]` is one sample. Arrays are numpy's if there were
    several chunks, otherwise JAX's, so that one chunk can be differentiated.
    """
    q0, v0 = jnp.asarray(q0), jnp.asarray(v0)
    if q0.ndim != 2 or v0.ndim != 2 or q0.shape[0] != v0.shape[0] or q0.shape[0] == 0:
        raise ShapeError(
            f"a batch has q0 of shape {q0.shape} and v0 of shape {v0.shape}; expected (batch, nq) and (batch, nv). "
            "For one sample use simulate."
        )
    total = q0.shape[0]
    size = total if chunk_size is None else min(chunk_size, total)
    if size < 1:
        raise ShapeError(f"chunk_size is {chunk_size}, expected at least 1")
    wide, shared = split_batch(system, batched)
    options = {k: jnp.asarray(x, q0.dtype) if isinstance(x, float) else x for k, x in options.items()}
    batch = (wide, q0, v0, None if effort is None else as_part(effort))
    chunks = []
    for start in range(0, total, size):
        rows = np.minimum(np.arange(start, start + size), total - 1)
        chunk = batch if size == total else jax.tree.map(lambda x, rows=rows: x[rows], batch)
        part = _chunk(shared, chunk, jnp.asarray(ts), options)
        used = min(size, total - start)
        chunks.append(part if size == total else jax.tree.map(lambda x, used=used: np.asarray(x[:used]), part))
        if progress is not None:
            jax.block_until_ready(part)
            _tell(progress, used, start + used, total)
    rows = chunks[0] if len(chunks) == 1 else jax.tree.map(lambda *x: np.concatenate(x), *chunks)
    return completed(rows, shared)


@eqx.filter_jit
def _chunk(shared, chunk, ts, options):
    return jax.vmap(lambda *sample: one_of_batch(shared, ts, options, *sample))(*chunk)


def one_of_batch(shared, ts, options, wide, q, v, effort) -> Trajectory:
    """One sample's trajectory, whose system has no leaves but those with the axis of the batch."""
    tr = simulate(eqx.combine(wide, shared), q, v, ts, effort=effort, **options)
    return with_system(tr, with_effort(wide, effort), Batched())


def completed(rows: Trajectory, shared: System) -> Trajectory:
    """Trajectories of a batch with what its samples share of the system."""
    wide = rows.system
    added = wide.parts[len(shared.parts) :]
    none = jax.tree.map(lambda _: None, added)
    common = System(shared.model, (*shared.parts, *none), shared.motion, shared.passive)
    whole = eqx.combine(wide, common)
    own = jax.tree.leaves(jax.tree.map(lambda _, x: x is not None, whole, wide))
    return with_system(rows, whole, Batched(tuple(own)))


def split_batch(system: Model | System, batched: Any) -> tuple[System, System]:
    """The leaves of a system that have the axis of a batch, and those which its samples share."""
    if not isinstance(system, System) and not isinstance(batched, bool):  # a prefix of the model alone
        batched = eqx.tree_at(lambda s: s.model, jax.tree.map(lambda _: False, as_system(system)), batched)
    return eqx.partition(as_system(system), batched)


def _tell(progress, used: int, done: int, total: int):
    if hasattr(progress, "update"):
        progress.update(used)
    else:
        progress(done, total)
