"""The one recursion over a tree: a scan in depth-first order, down from the root or up from the leaves.

Compile time does not depend on the number of nodes, and reverse mode stays linear in them, because the
carry is the state of one node and of the few branching nodes that wait for another child
(`Topology.*_slots`), never a buffer with all of them.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.model._topology import Slots

_map = jax.tree.map


def _where(mask, a, b):
    return _map(lambda x, y: jnp.where(mask, x, y), a, b)


def sweep_down(slots: Slots, step, root, xs):
    """`state, out = step(state of the parent, x)` for each node after its parent; returns stacked outs.

    `root` is the state of the world: a pytree of arrays, to which every state is equal in shape.
    """
    if slots.count == 0:
        return jax.lax.scan(step, root, xs)[1]
    load = [jnp.asarray(np.equal(slots.load, k)) for k in range(slots.count)]
    save = [jnp.asarray(np.equal(slots.save, k)) for k in range(slots.count)]
    zero = _map(jnp.zeros_like, root)
    kept = [root if k == slots.root else zero for k in range(slots.count)]

    def body(carry, xs):
        state, kept = carry
        load, save, x = xs
        for mask, slot in zip(load, kept, strict=True):
            state = _where(mask, slot, state)
        state, out = step(state, x)
        kept = [_where(mask, state, slot) for mask, slot in zip(save, kept, strict=True)]
        return (state, kept), out

    return jax.lax.scan(body, (root, kept), (load, save, xs))[1]


def sweep_up(slots: Slots, step, zero, xs):
    """`contribution, out = step(sum of the children's contributions, x)` for each node after its children."""
    if slots.count == 0:
        return jax.lax.scan(step, zero, xs, reverse=True)[1]
    load = [jnp.asarray(np.equal(slots.load, k)) for k in range(slots.count)]
    save = [jnp.asarray(np.equal(slots.save, k)) for k in range(slots.count)]
    near = jnp.asarray(np.equal(slots.load, -1))

    def body(carry, xs):
        total, kept = carry
        load, save, near, x = xs
        for mask, slot in zip(save, kept, strict=True):
            total = _map(lambda t, s, m=mask: t + jnp.where(m, s, 0), total, slot)
        given, out = step(total, x)
        kept = [
            _map(lambda s, g, a=a, b=b: jnp.where(a, 0, s) + jnp.where(b, g, 0), slot, given)
            for a, b, slot in zip(save, load, kept, strict=True)
        ]
        return (_map(lambda g: jnp.where(near, g, 0), given), kept), out

    return jax.lax.scan(body, (zero, [zero] * slots.count), (load, save, near, xs), reverse=True)[1]
