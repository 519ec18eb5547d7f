"""The only tree recursion of the package: a scan in depth-first order, from the root down or from the leaves up.

The carry of the scan is the state of one node and of the few branching nodes with children to come (*slots*,
`Topology.body_slots`), never a buffer with all nodes. Therefore compile time does not depend on the number of nodes,
and the cost of reverse mode is linear in it.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.recursion._topology import Slots

_map = jax.tree.map


def _where(mask, a, b):
    return _map(lambda x, y: jnp.where(mask, x, y), a, b)


def sweep_down(slots: Slots, step, root, xs):
    """Evaluates `state, out = step(state of the parent, x)` for each node after its parent; returns the stacked `out`.

    `root` is the state of the world, a pytree of arrays with the shapes of every state; `xs` has one row per node.
    """
    if slots.count == 0:
        return jax.lax.scan(step, root, xs)[1]
    load = [jnp.asarray(np.equal(slots.load, k)) for k in range(slots.count)]
    save = [jnp.asarray(np.equal(slots.save, k)) for k in range(slots.count)]
    zero = _map(jnp.zeros_like, root)
    stored = [root if k == slots.root else zero for k in range(slots.count)]

    # masks select instead of indices: a dynamic index into a buffer is several times slower, in reverse mode above all
    def body(carry, xs):
        state, stored = carry
        load, save, x = xs
        for mask, slot in zip(load, stored, strict=True):
            state = _where(mask, slot, state)
        state, out = step(state, x)
        stored = [_where(mask, state, slot) for mask, slot in zip(save, stored, strict=True)]
        return (state, stored), out

    return jax.lax.scan(body, (root, stored), (load, save, xs))[1]


def sweep_up(slots: Slots, step, zero, xs):
    """Evaluates `contribution, out = step(sum of the children's contributions, x)` for each node after its children.

    Returns the stacked `out`. `zero` is the contribution of no children, `xs` has one row per node.
    """
    if slots.count == 0:
        return jax.lax.scan(step, zero, xs, reverse=True)[1]
    load = [jnp.asarray(np.equal(slots.load, k)) for k in range(slots.count)]
    save = [jnp.asarray(np.equal(slots.save, k)) for k in range(slots.count)]
    parent_is_previous = jnp.asarray(np.equal(slots.load, -1))

    # the reverse of `sweep_down`: contributions go to the previous node, or are added to the slot of the parent
    def body(carry, xs):
        total, stored = carry
        load, save, parent_is_previous, x = xs
        for mask, slot in zip(save, stored, strict=True):
            total = _map(lambda t, s, m=mask: t + jnp.where(m, s, 0), total, slot)
        contribution, out = step(total, x)
        stored = [
            _map(lambda s, g, a=a, b=b: jnp.where(a, 0, s) + jnp.where(b, g, 0), slot, contribution)
            for a, b, slot in zip(save, load, stored, strict=True)
        ]
        return (_map(lambda g: jnp.where(parent_is_previous, g, 0), contribution), stored), out

    return jax.lax.scan(body, (zero, [zero] * slots.count), (load, save, parent_is_previous, xs), reverse=True)[1]
