"""Slack variables, primal-dual optimality conditions, search direction and step lengths.

For bounds `low <= r <= high`, with slack variables `r - low = a > 0`, `high - r = b > 0` and multipliers `y, z > 0`,
the perturbed optimality conditions for the barrier parameter mu are

    a y = mu,   b z = mu,   gradient of (cost + multipliers . equations) + (z - y) . gradient of r = 0.

Eliminating slacks and bound multipliers leaves a KKT system for the Riccati recursion, with `y/a + z/b` added to the
Hessian. Section and equation numbers are those of Waechter and Biegler 2006.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdyn.trajopt.interior_point._kkt import Blocks, Factors, RightHandSide, Step, factorise, solve_kkt
from jaxdyn.trajopt.interior_point._lagrangian import (
    Bounded,
    FirstDerivatives,
    Multipliers,
    Values,
    lagrangian_gradients,
    stationarity,
)
from jaxdyn.trajopt.interior_point._program import Program
from jaxdyn.trajopt.transcription import Shape


class Side(NamedTuple):
    """Slack variables and multipliers of all lower, or of all upper bounds."""

    slack: Bounded
    multiplier: Bounded


class Iterate(NamedTuple):
    """Primal and dual variables."""

    s: jax.Array
    m: jax.Array
    #: multipliers of the equations
    c: jax.Array
    b0: jax.Array
    bN: jax.Array
    low: Side
    high: Side


class Direction(NamedTuple):
    """A search direction for all primal and dual variables."""

    step: Step
    low: Side
    high: Side


class Errors(NamedTuple):
    """Errors of the optimality conditions."""

    #: infeasibility of the dual and the primal
    dual: jax.Array
    primal: jax.Array
    #: smallest and largest complementarity product of slack and multiplier
    least: jax.Array
    greatest: jax.Array


def map_bounded(f, *trees):
    """Applies f to corresponding arrays of `Bounded` quantities."""
    return jax.tree.map(f, *trees)


def distances_to_bounds(limits, values: Values) -> tuple[Bounded, Bounded]:
    """`r - low` and `high - r`, infinite without a bound."""
    low, high = limits
    return map_bounded(lambda r, x: r - x, values.bounded, low), map_bounded(lambda r, x: x - r, values.bounded, high)


def slack_residuals(limits, it: Iterate, values: Values) -> tuple[Bounded, Bounded]:
    """Distances to the bounds less the slack variables; zero without a bound."""
    difference = lambda g, a: jnp.where(jnp.isfinite(g), g - a, 0)
    below, above = distances_to_bounds(limits, values)
    return map_bounded(difference, below, it.low.slack), map_bounded(difference, above, it.high.slack)


def push_into_bounds(limits, s, m, mu):
    """The variables, pushed from their bounds into the interior (section 3.6)."""
    part = bound_push(mu)

    def push(x, low, high):
        width = jnp.where(jnp.isfinite(high - low), high - low, jnp.inf)
        distance = lambda bound: part * jnp.minimum(jnp.maximum(1, jnp.abs(bound)), width)
        least = jnp.where(jnp.isfinite(low), low + distance(low), low)
        greatest = jnp.where(jnp.isfinite(high), high - distance(high), high)
        return jnp.clip(x, least, greatest)

    low, high = limits
    return push(s, low.s, high.s), push(m, low.m, high.m)


def bound_push(mu):
    """Relative distance to the bounds of the initial point: one hundredth, less for a small barrier parameter."""
    return jnp.minimum(1e-2, mu / 10)


def initial_slacks(limits, values: Values, mu) -> tuple[Side, Side]:
    """Slacks equal to sufficiently large distances; multipliers of `10 mu`, or up to one for small slacks."""
    part = bound_push(mu)

    def slack(distance, low, high):
        width = high - low
        least = part * jnp.where(jnp.isfinite(width), jnp.minimum(1.0, 10 * jnp.abs(width)), 1.0)
        return jnp.where(jnp.isfinite(distance), jnp.maximum(distance, jnp.maximum(least, 1e-8)), 1.0)

    def multiplier(a, distance):
        return jnp.where(jnp.isfinite(distance), jnp.maximum(10 * mu, jnp.minimum(mu / a, 1)), 0)

    sides = []
    for distance in distances_to_bounds(limits, values):
        a = map_bounded(slack, distance, *limits)
        sides.append(Side(a, map_bounded(multiplier, a, distance)))
    return sides[0], sides[1]


def lagrange_multipliers(it: Iterate) -> Multipliers:
    """Multipliers of the Lagrangian of the original problem."""
    y = map_bounded(lambda z, y: z - y, it.high.multiplier, it.low.multiplier)
    return Multipliers(it.c, it.b0, it.bN, y)


def constraint_violation(limits, it: Iterate, values: Values):
    """The 1-norm `theta` of all constraints and slack equations, which the filter compares."""
    parts = [values.c, values.b0, values.bN, *slack_residuals(limits, it, values)]
    return sum(jnp.abs(x).sum() for x in jax.tree.leaves(parts))


def largest_violation(limits, it: Iterate, values: Values):
    """The maximum norm of all constraints and slack equations."""
    parts = [values.c, values.b0, values.bN, *slack_residuals(limits, it, values)]
    return jnp.stack([jnp.max(jnp.abs(x), initial=0) for x in jax.tree.leaves(parts)]).max()


def barrier_function(limits, it: Iterate, cost, mu):
    """`cost - mu sum of log(slack)`; slacks without a bound are one."""
    return cost - mu * sum(jnp.log(a).sum() for a in jax.tree.leaves((it.low.slack, it.high.slack)))


def optimality_errors(limits, it: Iterate, values: Values, d: FirstDerivatives) -> Errors:
    """Largest error of each kind; dual and complementarity errors are scaled for large multipliers (equation 6)."""
    s, m = stationarity(d, lagrange_multipliers(it))
    duals = [it.c, it.b0, it.bN, it.low.multiplier, it.high.multiplier]
    leaves = jax.tree.leaves(duals)
    mean = sum(jnp.abs(x).sum() for x in leaves) / sum(x.size for x in leaves)
    scale = jnp.maximum(mean, 100.0) / 100
    primal = largest_violation(limits, it, values)
    products, has_bound = [], []
    for side, distance in zip((it.low, it.high), distances_to_bounds(limits, values), strict=True):
        products += jax.tree.leaves(map_bounded(lambda a, y: a * y, *side))
        has_bound += [jnp.isfinite(g) for g in jax.tree.leaves(distance)]
    pairs = list(zip(products, has_bound, strict=True))
    extreme = lambda f, fill: [f(jnp.where(has, p, fill), initial=fill) for p, has in pairs]
    greatest = jnp.stack(extreme(jnp.max, -jnp.inf)).max() / scale
    least = jnp.stack(extreme(jnp.min, jnp.inf)).min() / scale
    dual = jnp.maximum(jnp.max(jnp.abs(s)), jnp.max(jnp.abs(m), initial=0))
    return Errors(dual / scale, primal, least, greatest)


def total_error(e: Errors, mu):
    """The optimality error `E_mu` for the barrier parameter mu (equation 5)."""
    complementarity = jnp.maximum(jnp.maximum(e.greatest - mu, mu - e.least), 0)
    return jnp.maximum(jnp.maximum(e.dual, e.primal), complementarity)


def add_barrier_hessian(blocks: Blocks, it: Iterate, d: FirstDerivatives) -> Blocks:
    """The blocks with the primal-dual barrier terms `y/a + z/b` in the Hessian."""
    n, ns = blocks.H.shape[-1], blocks.HN.shape[-1]
    ratio = lambda side: map_bounded(lambda a, y: y / a, *side)
    w = map_bounded(lambda x, y: x + y, ratio(it.low), ratio(it.high))
    diagonal = jnp.concatenate([w.s[:-1], w.m, jnp.zeros((w.m.shape[0], ns), w.m.dtype)], axis=1)
    H = blocks.H + jnp.eye(n, dtype=diagonal.dtype) * diagonal[:, None]
    H = H + jnp.swapaxes(d.rows, 1, 2) @ (w.rows[:, :, None] * d.rows)
    HN = blocks.HN + jnp.diag(w.s[-1]) + d.end.T @ (w.end[:, None] * d.end)
    return blocks._replace(H=H, HN=HN)


def with_identity_hessian(blocks: Blocks) -> Blocks:
    """The blocks of the least-squares problem for the multipliers: the Hessian is the identity."""
    n, ns = blocks.H.shape[-1], blocks.HN.shape[-1]
    H = jnp.diag(jnp.where(jnp.arange(n) < n - ns, 1.0, 0.0).astype(blocks.H.dtype))
    return blocks._replace(
        H=jnp.broadcast_to(H, blocks.H.shape), H0=0 * blocks.H0, HN=jnp.eye(ns, dtype=blocks.H.dtype)
    )


def search_direction(
    shape: Shape,
    f: Factors,
    d: FirstDerivatives,
    it: Iterate,
    values: Values,
    residuals,
    mu,
    keep_bound_duals: bool | jax.Array = False,
) -> Direction:
    """Newton's direction for equations `values`, slack residuals `residuals` and barrier parameter mu.

    With `keep_bound_duals` the right-hand side has the present bound multipliers, as the least-squares problem for
    the multipliers of the equations needs it.
    """

    def zero_step_duals(side, residual):  # bound multipliers that a primal step of zero would lead to
        return map_bounded(
            lambda a, y, p: jnp.where((y > 0) & ~jnp.asarray(keep_bound_duals), mu / a - y / a * p, y),
            side.slack,
            side.multiplier,
            residual,
        )

    low, high = zero_step_duals(it.low, residuals[0]), zero_step_duals(it.high, residuals[1])
    y = map_bounded(lambda z, y: z - y, high, low)
    g, g0, gN = lagrangian_gradients(d, Multipliers(it.c, it.b0, it.bN, y))
    step = solve_kkt(shape, f, RightHandSide(g, values.c, g0, values.b0, gN, values.bN))
    z = jnp.concatenate([step.s[:-1], step.m, step.s[1:]], axis=1)
    change = Bounded(step.s, step.m, jnp.einsum("kij,kj->ki", d.rows, z), d.end @ step.s[-1])

    def side(at, residual, sign):
        has_bound = map_bounded(lambda y: y > 0, at.multiplier)
        a = map_bounded(lambda r, p, h: jnp.where(h, sign * r + p, 0), change, residual, has_bound)
        dual = lambda a, y, da, h: jnp.where(h, (mu - y * da) / a - y, 0)
        return Side(a, map_bounded(dual, at.slack, at.multiplier, a, has_bound))

    return Direction(step, side(it.low, residuals[0], 1.0), side(it.high, residuals[1], -1.0))


def fraction_to_boundary(direction: Direction, it: Iterate, fraction):
    """Largest primal and dual step lengths in (0, 1] by the fraction-to-boundary rule (equation 15)."""

    def longest(values, steps):
        ratio = lambda x, d: jnp.min(jnp.where(d < 0, -fraction * x / jnp.where(d < 0, d, -1), 1), initial=1)
        return jnp.stack(jax.tree.leaves(jax.tree.map(ratio, values, steps))).min()

    sides = lambda i: ((it.low[i], it.high[i]), (direction.low[i], direction.high[i]))
    return longest(*sides(0)), longest(*sides(1))


def take_step(it: Iterate, d: Direction, primal, dual, equations) -> Iterate:
    """The iterate after a step; lengths for the variables, the bound multipliers and the equations' multipliers."""
    add = lambda x, dx, length: jax.tree.map(lambda x, dx: x + length * dx, x, dx)
    s, m = add((it.s, it.m), d.step[:2], primal)
    c, start, end = add((it.c, it.b0, it.bN), d.step[2:], equations)
    side = lambda x, dx: Side(add(x.slack, dx.slack, primal), add(x.multiplier, dx.multiplier, dual))
    return Iterate(s, m, c, start, end, side(it.low, d.low), side(it.high, d.high))


def set_multipliers(it: Iterate, step: Step) -> Iterate:
    """The iterate with the least-squares multipliers of the equations, or zero if these are large (section 3.6)."""
    size = jnp.stack([jnp.max(jnp.abs(x), initial=0) for x in (step.multipliers, step.start, step.end)]).max()
    update = lambda old, new: jnp.where(size < 1e3, old + new, 0)
    return it._replace(c=update(it.c, step.multipliers), b0=update(it.b0, step.start), bN=update(it.bN, step.end))


def reset_bound_multipliers(it: Iterate, mu) -> Iterate:
    """The iterate with bound multipliers in a neighbourhood of the central path (equation 16)."""
    clip = lambda a, y: jnp.where(y > 0, jnp.clip(y, mu / a / 1e10, mu / a * 1e10), y)
    side = lambda x: Side(x.slack, map_bounded(clip, x.slack, x.multiplier))
    return it._replace(low=side(it.low), high=side(it.high))


def factorise_with_inertia_correction(
    program: Program, blocks: Blocks, previous, least, relax_ends: bool | jax.Array = False
):
    """Factors of the KKT matrix with the smallest trial regularisation of correct inertia; its size; success.

    The regularisation is added to the diagonal of the Hessian (algorithm IC). The regularisation of the ends'
    multipliers decreases in turn, so that fixed ends stay fixed; not with `relax_ends`, where the ends' equations
    consist of this regularisation alone.
    """
    shape, dtype = program.layout.shape, blocks.H.dtype
    dual = jnp.finfo(dtype).eps ** 0.5 * 1e-2

    def is_unfinished(carry):
        tried, _, is_minimum, _ = carry
        return ~is_minimum & (tried < 40)

    def attempt(carry):
        tried, size, _, _ = carry
        f, is_minimum = factorise(shape, blocks, size, dual / (1 + jnp.where(relax_ends, 0, size)))
        first = jnp.where(previous > 0, jnp.maximum(1e-20, previous / 3), 1e-4)
        grown = jnp.where(previous > 0, 8 * size, 100 * size)
        larger = jnp.where(size == 0, first, grown)
        return tried + 1, jnp.where(is_minimum, size, larger), is_minimum, f

    empty = jax.eval_shape(lambda b: factorise(shape, b, least, dual)[0], blocks)
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), empty)
    start = jnp.zeros((), int), jnp.asarray(least, dtype), jnp.asarray(False), zeros
    _, size, is_minimum, f = jax.lax.while_loop(is_unfinished, attempt, start)
    return f, size, is_minimum
