"""A function at all instants at which a transcription looks, one batch, each instant once.

Instants are those of the intervals, `(N, K, ...)`, and that of the start, or None. They are `shared` if the first two
of each interval are its ends: the node between two intervals is then looked at once for both of them.
"""

import jax
import jax.numpy as jnp


def everywhere(f, shared: bool, inner, start):
    """f at all instants: `(N, K, ...)`, and at the start or None."""
    n, k = inner.shape[:2]
    flat = _nodes_and_rest(inner) if shared else jnp.concatenate([_flat(inner), *_listed(start)])
    out = jax.vmap(f)(flat)
    first = None if start is None else jax.tree.map(lambda y: y[0 if shared else -1], out)
    if not shared:
        return jax.tree.map(lambda y: y[: n * k].reshape(n, k, *y.shape[1:]), out), first
    whole = lambda y: jnp.concatenate([y[:n, None], y[1 : n + 1, None], _rest(y, n, k)], axis=1)
    return jax.tree.map(whole, out), first


def curvatures(curvature, shared: bool, seen, weights):
    """Weighted second derivatives: of the intervals' instants, of the start and of the end.

    Where instants are shared, the weights of both sides are added: a node counts in the interval that begins there,
    without the second instant of each, and the last one in the end. Start and end are None where they count elsewhere.
    """
    (inner, start), (weight, weight_start) = seen, weights
    n, k = weight.shape[:2]
    if not shared:
        out = jax.vmap(jax.vmap(curvature))(inner, weight)
        return out, None if start is None else curvature(start, weight_start), None
    nodes = jnp.concatenate([weight[:, 0], weight[-1:, 1]]).at[1:-1].add(weight[:-1, 1])
    nodes = nodes if start is None else nodes.at[0].add(weight_start)
    out = jax.vmap(curvature)(jax.tree.map(_nodes_and_rest, inner), jnp.concatenate([nodes, _flat(weight[:, 2:])]))
    return jnp.concatenate([out[:n, None], _rest(out, n, k)], axis=1), None, out[n]


def _nodes_and_rest(x):
    return jnp.concatenate([x[:, 0], x[-1:, 1], _flat(x[:, 2:])])


def _rest(y, n: int, k: int):
    return y[n + 1 :].reshape(n, k - 2, *y.shape[1:])


def _flat(x):
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])


def _listed(start):
    return [] if start is None else [start[None]]
