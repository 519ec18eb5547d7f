"""Batches of trajectories, also larger than memory."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ShapeError, check_count, check_is_array
from jaxdyn._types import Array, Float, PyTree
from jaxdyn.model import Model
from jaxdyn.simulation.rollout._simulate import simulate
from jaxdyn.simulation.system import (
    EffortInput,
    InputsInput,
    System,
    as_inputs,
    as_part,
    as_system,
    with_effort,
    with_inputs,
)
from jaxdyn.simulation.trajectory import Batched, Trajectory, with_system


@runtime_checkable
class ProgressBar(Protocol):
    """A progress bar like those of tqdm."""

    def update(self, n: int, /) -> object: ...


def simulate_batch(
    system: Model | System,
    q0: Float[Array, "batch nq"],
    v0: Float[Array, "batch nv"],
    ts: Float[Array, " times"],
    *,
    effort: EffortInput | None = None,
    inputs: InputsInput | None = None,
    parts: tuple[PyTree, ...] | None = None,
    batched: PyTree = False,
    chunk_size: int | None = None,
    progress: Callable[[int, int], object] | ProgressBar | None = None,
    **options: Any,
) -> Trajectory:
    """Trajectories from a batch of starts: `simulate` under `vmap`, in chunks that fit into memory.

    Arguments:

    * `system`, `ts`: as for `simulate`.
    * `q0`, `v0`: `(batch, nq)` and `(batch, nv)`.
    * `effort`, `inputs`, `parts`: as for `simulate`, with the leading axis of the batch in all their arrays, or None.
    * `batched`: the leaves of the system that have the axis of the batch: True, False, or a pytree of these that is a
      prefix of the system, such as `equinox.tree_at(where, jax.tree.map(lambda _: False, model), True)`.
    * `chunk_size`: number of samples that are simulated at a time, by default all. Results of several chunks are
      collected in host memory. The last chunk is filled with copies, so that all chunks have one shape and compile
      once. With fixed steps the result of a sample does not depend on its chunk.
    * `progress`: called as `progress(done, total)` after each chunk; or a progress bar like those of tqdm, whose method
      `update` receives the number of samples of the chunk.
    * `options`: options of `simulate`, such as `dt`.

    Returns a `Trajectory` whose arrays have a leading batch axis; `trajectory[k]` is one sample. The leaves of the
    system that the samples share are stored once. Arrays are numpy's if there are several chunks, otherwise JAX's, so
    that one chunk can be differentiated. Raises `ShapeError` for wrong shapes.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd

    angles = jnp.linspace(0.1, 1.0, 8)[:, None]
    ts = jnp.linspace(0.0, 1.0, 11)
    swings = jd.simulate_batch(jd.robots.pendulum(), angles, jnp.zeros((8, 1)), ts, dt=0.05, chunk_size=4)
    assert swings.q.shape == (8, 11, 1) and swings[2].q.shape == (11, 1)
    ```
    """
    for name, x in (("q0", q0), ("v0", v0)):
        check_is_array(name, x, "(batch, nq)" if name == "q0" else "(batch, nv)")
    if chunk_size is not None:
        check_count("chunk_size", chunk_size)
    q0, v0 = jnp.asarray(q0), jnp.asarray(v0)
    if q0.ndim != 2 or v0.ndim != 2 or q0.shape[0] != v0.shape[0] or q0.shape[0] == 0:
        raise ShapeError(
            f"a batch has q0 of shape {q0.shape} and v0 of shape {v0.shape}; expected (batch, nq) and (batch, nv). "
            "For one sample use simulate."
        )
    total = q0.shape[0]
    size = total if chunk_size is None else min(chunk_size, total)
    own, shared = split_batch(system, batched)
    options = {k: jnp.asarray(x, q0.dtype) if isinstance(x, float) else x for k, x in options.items()}
    batch = (own, q0, v0, as_batched_options(effort, inputs, parts))
    chunks = []
    for start in range(0, total, size):
        rows = np.minimum(np.arange(start, start + size), total - 1)
        chunk = batch if size == total else jax.tree.map(lambda x, rows=rows: x[rows], batch)
        part = _simulate_chunk(shared, chunk, jnp.asarray(ts), options)
        used = min(size, total - start)
        chunks.append(part if size == total else jax.tree.map(lambda x, used=used: np.asarray(x[:used]), part))
        if progress is not None:
            jax.block_until_ready(part)
            _report_progress(progress, used, start + used, total)
    rows = chunks[0] if len(chunks) == 1 else jax.tree.map(lambda *x: np.concatenate(x), *chunks)
    return combine_batch(rows, shared)


@eqx.filter_jit
def _simulate_chunk(shared, chunk, ts, options):
    return jax.vmap(lambda *sample: simulate_sample(shared, ts, options, *sample))(*chunk)


#: effort, inputs of the actuators, and states of the parts at the start, of one sample or with the axis of a batch
BatchedOptions = tuple[EffortInput | None, InputsInput | None, tuple[PyTree, ...] | None]


def as_batched_options(
    effort: EffortInput | None, inputs: InputsInput | None, parts: tuple[PyTree, ...] | None
) -> BatchedOptions:
    """Options of `simulate` with an axis of the batch, as pytrees that `vmap` can split."""
    return (
        None if effort is None else as_part(effort),
        None if inputs is None else as_inputs(inputs),
        None if parts is None else jax.tree.map(jnp.asarray, tuple(parts)),
    )


def simulate_sample(
    shared: System, ts: Array, options: dict[str, Any], batched: System, q: Array, v: Array, own: BatchedOptions
) -> Trajectory:
    """The trajectory of one sample, with only the batched leaves in its system."""
    effort, inputs, parts = own
    tr = simulate(eqx.combine(batched, shared), q, v, ts, effort=effort, inputs=inputs, parts=parts, **options)
    return with_system(tr, with_inputs(with_effort(batched, effort), inputs), Batched())


def combine_batch(rows: Trajectory, shared: System) -> Trajectory:
    """The trajectories of a batch with the shared leaves of the system added."""
    batched = rows.system
    efforts = batched.parts[len(shared.parts) :]
    none = jax.tree.map(lambda _: None, efforts)
    common = System(shared.model, (*shared.parts, *none), shared.motion, shared.passive)
    whole = eqx.combine(batched, common)
    has_axis = jax.tree.leaves(jax.tree.map(lambda _, x: x is not None, whole, batched))
    return with_system(rows, whole, Batched(tuple(has_axis)))


def split_batch(system: Model | System, batched: PyTree) -> tuple[System, System]:
    """The leaves of a system that have the axis of a batch, and the leaves that the samples share."""
    if not isinstance(system, System) and not isinstance(batched, bool):  # a prefix of the model alone
        batched = eqx.tree_at(lambda s: s.model, jax.tree.map(lambda _: False, as_system(system)), batched)
    return eqx.partition(as_system(system), batched)


def _report_progress(progress, used: int, done: int, total: int):
    if hasattr(progress, "update"):
        progress.update(used)
    else:
        progress(done, total)
