"""Batched evaluation at all evaluation points of a transcription, each point once.

`inner` holds the points of the intervals by name, with a leading axis of N intervals; `start` is the point of the
initial conditions, or None. If there are points named `START` and `END`, adjacent intervals share a node: the node is
evaluated once for both, and the initial conditions use the first node.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxdyn._types import Array, PyTree
from jaxdyn.trajopt.transcription import END, START


def evaluate_all(
    f: Callable[[PyTree], PyTree], inner: dict[str, PyTree], start: PyTree
) -> tuple[dict[str, PyTree], PyTree]:
    """f at the points of the intervals, by name, and at the start (None without a point there)."""
    n, shared, others = _sizes(inner)
    out = jax.vmap(f)(_gather(inner, start))
    values = {name: _part(out, (n + 1) * shared + k * n, n) for k, name in enumerate(others)}
    if shared:
        values |= {START: _part(out, 0, n), END: _part(out, 1, n)}
    return values, None if start is None else jax.tree.map(lambda y: y[0 if shared else -1], out)


def weighted_hessians(
    hessian: Callable[[PyTree, PyTree], Array], linearisations, weights
) -> tuple[dict[str, Array], Array | None, Array | None]:
    """`hessian(linearisation, weight)` at the points of the intervals, at the start and at the end.

    The weights of both intervals at a shared node are added. The Hessian of a shared node belongs to the interval that
    starts there, the Hessian of the last node to the end; start and end are None where an interval includes them.
    """
    (inner, start), (weight, weight_start) = linearisations, weights
    n, shared, others = _sizes(inner)
    if shared:
        nodes = weight[START].at[1:].add(weight[END][:-1])
        weight = weight | {START: nodes if start is None else nodes.at[0].add(weight_start)}
    out = jax.vmap(hessian)(_gather(inner, start), _gather(weight, weight_start))
    hessians = {name: _part(out, (n + 1) * shared + k * n, n) for k, name in enumerate(others)}
    if shared:
        return hessians | {START: out[:n]}, None, out[n]
    return hessians, None if start is None else out[-1], None


def _sizes(inner: dict[str, PyTree]) -> tuple[int, bool, list[str]]:
    """Number of intervals, whether intervals share nodes, and the names of the points that are not shared."""
    shared = {START, END} <= inner.keys()
    n = jax.tree.leaves(inner)[0].shape[0]
    return n, shared, sorted(name for name in inner if not (shared and name in (START, END)))


def _gather(inner: dict[str, PyTree], start):
    """One batch: the shared nodes, the other points name by name, the start unless it is a shared node."""
    _, shared, others = _sizes(inner)
    parts = [inner[START], jax.tree.map(lambda x: x[-1:], inner[END])] if shared else []
    parts += [inner[name] for name in others]
    if start is not None and not shared:
        parts.append(jax.tree.map(lambda x: x[None], start))
    return jax.tree.map(lambda *x: jnp.concatenate(x), *parts)


def _part(tree, first: int, count: int):
    return jax.tree.map(lambda y: y[first : first + count], tree)
