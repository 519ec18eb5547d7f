"""The feasibility restoration phase: a problem that reduces the constraint violation after the line search fails.

The restoration problem has the same dynamics and bounds; its terminal conditions are penalised instead of enforced:

    minimise   1/2 w |b_N|^2 + 1/2 z |D (x - x_R)|^2,   D = 1/max(1, |x_R|),

where x_R is the point at which the phase began. The phase ends at the first point that reduces the violation of the
original problem and is acceptable to its filter. If the restoration problem converges without such a point, its weight
w grows; after `ROUNDS` rounds the original problem is declared infeasible.

Waechter and Biegler 2006, section 3.3. They relax all equations; here only the terminal conditions are relaxed, since
the equations of the intervals can be satisfied for any controls.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdyn._types import Array
from jaxdyn.trajopt.interior_point._barrier import Iterate, Side, map_bounded
from jaxdyn.trajopt.interior_point._kkt import Blocks
from jaxdyn.trajopt.interior_point._lagrangian import FirstDerivatives, Multipliers, Values

FIRST_WEIGHT = 100.0
ROUNDS = 3


class Restoration(NamedTuple):
    """State of the restoration phase."""

    is_active: jax.Array
    #: w, of the terminal conditions
    weight: jax.Array
    #: z, of the distance from x_R = (s, m)
    proximity: jax.Array
    s: jax.Array
    m: jax.Array
    rounds: jax.Array
    #: of the original problem: barrier parameter, filter, number of its entries, violation to be reduced
    mu: jax.Array
    filter: jax.Array
    entries: jax.Array
    violation: jax.Array
    #: the largest violation of a constraint
    largest_violation: jax.Array


def inactive_restoration(s, m, mu, filter, zero) -> Restoration:
    """The state outside of the restoration phase; `zero` is an integer."""
    none = jnp.zeros((), s.dtype)
    return Restoration(jnp.asarray(False), none, none, s, m, zero, mu, filter, zero, none, none)


def restoration_values(r: Restoration, s, m, values: Values) -> Values:
    """Values of the problem that is being solved: the original or the restoration problem."""
    ds, dm = s - r.s, m - r.m
    distance = jnp.sum(_metric(r.s) * ds**2) + jnp.sum(_metric(r.m) * dm**2)
    cost = (r.proximity * distance + r.weight * values.bN @ values.bN) / 2
    return values._replace(cost=jnp.where(r.is_active, cost, values.cost), bN=jnp.where(r.is_active, 0, values.bN))


def restoration_derivatives(r: Restoration, s, m, values: Values, d: FirstDerivatives) -> FirstDerivatives:
    """First derivatives of the problem that is being solved; `values` and d are those of the original problem."""
    gs, gm = r.proximity * _metric(r.s) * (s - r.s), r.proximity * _metric(r.m) * (m - r.m)
    gradient = jnp.concatenate([gs[:-1], gm, jnp.zeros_like(gs[1:])], axis=1)
    end = gs[-1] + r.weight * d.bN.T @ values.bN
    either = lambda a, b: jnp.where(r.is_active, a, b)
    return d._replace(
        cost=either(gradient, d.cost), cost_end=either(end, d.cost_end), bN=either(jnp.zeros_like(d.bN), d.bN)
    )


def restoration_multipliers(r: Restoration, values: Values, w: Multipliers, scale) -> tuple[Multipliers, Array]:
    """Multipliers and scale of the cost with which the original blocks enter the problem that is being solved."""
    return w._replace(bN=jnp.where(r.is_active, r.weight * values.bN, w.bN)), jnp.where(r.is_active, 0, scale)


def restoration_blocks(r: Restoration, blocks: Blocks) -> Blocks:
    """KKT blocks of the problem that is being solved, from those for `restoration_multipliers`."""
    n, ns = blocks.H.shape[-1], blocks.HN.shape[-1]
    diagonal = jnp.concatenate([_metric(r.s[:-1]), _metric(r.m), jnp.zeros_like(r.s[1:])], axis=1)
    proximity = jnp.where(r.is_active, r.proximity, 0)
    weight = jnp.where(r.is_active, r.weight, 0)
    H = blocks.H + proximity * jnp.eye(n, dtype=diagonal.dtype) * diagonal[:, None]
    HN = blocks.HN + proximity * jnp.diag(_metric(r.s[-1])) + weight * blocks.BN.T @ blocks.BN
    BN = jnp.where(r.is_active, jnp.zeros((blocks.BN.shape[0], ns), H.dtype), blocks.BN)
    return blocks._replace(H=H, HN=HN, BN=BN)


def _metric(x):
    return 1 / jnp.maximum(1.0, x * x)


def enter_restoration(r: Restoration, it: Iterate, mu, filter, entries, violations) -> tuple[Restoration, Iterate]:
    """Begins the phase at a point where the line search failed; `violations` are its 1-norm and maximum norm."""
    started = r._replace(
        is_active=jnp.ones_like(r.is_active),
        weight=jnp.full_like(r.weight, FIRST_WEIGHT),
        proximity=jnp.sqrt(mu) / it.m.shape[0],
        s=it.s,
        m=it.m,
        rounds=jnp.zeros_like(r.rounds),
        mu=mu,
        filter=filter,
        entries=entries,
        violation=violations[0],
        largest_violation=violations[1],
    )
    cap = lambda side: Side(side.slack, map_bounded(lambda y: jnp.minimum(y, 1e3), side.multiplier))
    return started, it._replace(bN=jnp.zeros_like(it.bN), low=cap(it.low), high=cap(it.high))


def leave_restoration(r: Restoration, it: Iterate) -> tuple[Restoration, Iterate]:
    """Returns to the original problem."""
    return r._replace(is_active=jnp.zeros_like(r.is_active)), reset_to_central_path(it, r.mu)


def tighten_restoration(r: Restoration, it: Iterate, mu) -> tuple[Restoration, Iterate]:
    """Begins another round with a larger weight where the last round converged."""
    return r._replace(weight=100 * r.weight, s=it.s, m=it.m, rounds=r.rounds + 1), reset_to_central_path(it, mu)


def reset_to_central_path(it: Iterate, mu) -> Iterate:
    """The iterate with bound multipliers on the central path, `mu / slack`."""
    dual = lambda a, y: jnp.where(y > 0, jnp.clip(mu / a, 1e-8, 1e3), 0)
    side = lambda x: Side(x.slack, map_bounded(dual, *x))
    return it._replace(low=side(it.low), high=side(it.high))


def select(condition, a, b):
    """`jnp.where` for trees."""
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), a, b)
