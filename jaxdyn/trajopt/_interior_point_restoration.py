"""The restoration phase: where the line search fails, the method looks for a point that violates constraints less.

It solves, by the same iterations, a problem with the same dynamics and ranges, with ends that are weighted instead of
given:

    minimise   1/2 w |b_N|^2 + 1/2 z |D (x - x_R)|^2,   D = 1/max(1, |x_R|),

x_R being the variables at which the phase began. It is left for the first point that has less of the original
violation and that the filter takes; where it converges without one, the weight grows, and after some rounds the problem
is called infeasible.

Waechter and Biegler 2006, section 3.3; there all equations are relaxed, here those of the end, since those of the
intervals can be met by any controls.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdyn.trajopt._interior_point_barrier import Iterate, Side, mapped
from jaxdyn.trajopt._interior_point_program import Slopes, Values, Weights
from jaxdyn.trajopt._riccati import Blocks

FIRST_WEIGHT = 100.0
ROUNDS = 3


class Restoration(NamedTuple):
    """Whether the phase is on, and what it needs."""

    on: Any
    #: of the end's equations
    weight: Any
    #: of the distance from (s, m)
    near: Any
    s: Any
    m: Any
    rounds: Any
    #: what the method returns to: barrier parameter, filter, its number of entries, and the violation to be undercut
    mu: Any
    filter: Any
    entries: Any
    violation: Any
    #: the largest one
    worst: Any


def off(s, m, mu, filter, whole) -> Restoration:
    """No restoration."""
    zero = jnp.zeros((), s.dtype)
    return Restoration(jnp.asarray(False), zero, zero, s, m, whole, mu, filter, whole, zero, zero)


def relaxed(r: Restoration, s, m, values: Values) -> Values:
    """Values of the problem that is being solved."""
    ds, dm = s - r.s, m - r.m
    distance = jnp.sum(_metric(r.s) * ds**2) + jnp.sum(_metric(r.m) * dm**2)
    cost = (r.near * distance + r.weight * values.bN @ values.bN) / 2
    return values._replace(cost=jnp.where(r.on, cost, values.cost), bN=jnp.where(r.on, 0, values.bN))


def relaxed_slopes(r: Restoration, s, m, values: Values, d: Slopes) -> Slopes:
    """Their first derivatives; `values` are the original ones."""
    gs, gm = r.near * _metric(r.s) * (s - r.s), r.near * _metric(r.m) * (m - r.m)
    own = jnp.concatenate([gs[:-1], gm, jnp.zeros_like(gs[1:])], axis=1)
    end = gs[-1] + r.weight * d.bN.T @ values.bN
    pick = lambda a, b: jnp.where(r.on, a, b)
    return d._replace(cost=pick(own, d.cost), cost_end=pick(end, d.cost_end), bN=pick(jnp.zeros_like(d.bN), d.bN))


def relaxed_weights(r: Restoration, values: Values, w: Weights, scale) -> tuple[Weights, Any]:
    """Multipliers and the scale of the cost for the original second derivatives."""
    return w._replace(bN=jnp.where(r.on, r.weight * values.bN, w.bN)), jnp.where(r.on, 0, scale)


def relaxed_blocks(r: Restoration, blocks: Blocks) -> Blocks:
    """Second derivatives, from those of the original problem with the multipliers above."""
    n, ns = blocks.H.shape[-1], blocks.HN.shape[-1]
    own = jnp.concatenate([_metric(r.s[:-1]), _metric(r.m), jnp.zeros_like(r.s[1:])], axis=1)
    near = jnp.where(r.on, r.near, 0)
    weight = jnp.where(r.on, r.weight, 0)
    H = blocks.H + near * jnp.eye(n, dtype=own.dtype) * own[:, None]
    HN = blocks.HN + near * jnp.diag(_metric(r.s[-1])) + weight * blocks.BN.T @ blocks.BN
    return blocks._replace(H=H, HN=HN, BN=jnp.where(r.on, jnp.zeros((blocks.BN.shape[0], ns), H.dtype), blocks.BN))


def _metric(x):
    return 1 / jnp.maximum(1.0, x * x)


def entered(r: Restoration, it: Iterate, mu, filter, entries, violations) -> tuple[Restoration, Iterate]:
    """The phase from a point at which the line search failed."""
    started = r._replace(
        on=jnp.ones_like(r.on),
        weight=jnp.full_like(r.weight, FIRST_WEIGHT),
        near=jnp.sqrt(mu) / it.m.shape[0],
        s=it.s,
        m=it.m,
        rounds=jnp.zeros_like(r.rounds),
        mu=mu,
        filter=filter,
        entries=entries,
        violation=violations[0],
        worst=violations[1],
    )
    cap = lambda side: Side(side.slack, mapped(lambda y: jnp.minimum(y, 1e3), side.multiplier))
    return started, it._replace(bN=jnp.zeros_like(it.bN), low=cap(it.low), high=cap(it.high))


def left(r: Restoration, it: Iterate) -> tuple[Restoration, Iterate]:
    """The original problem again."""
    return r._replace(on=jnp.zeros_like(r.on)), central(it, r.mu)


def tightened(r: Restoration, it: Iterate, mu) -> tuple[Restoration, Iterate]:
    """Another round, from where the last one converged."""
    return r._replace(weight=100 * r.weight, s=it.s, m=it.m, rounds=r.rounds + 1), central(it, mu)


def central(it: Iterate, mu) -> Iterate:
    """The iterate with multipliers of the ranges on the central path."""
    near = lambda a, y: jnp.where(y > 0, jnp.clip(mu / a, 1e-8, 1e3), 0)
    side = lambda x: Side(x.slack, mapped(near, *x))
    return it._replace(low=side(it.low), high=side(it.high))


def chosen(condition, a, b):
    """`a` where the condition holds, for trees."""
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), a, b)
