"""Slacks of ranged quantities, the perturbed conditions of optimality, and Newton's direction for them.

For `low <= r <= high`, `r - low = a`, `high - r = b` with slacks `a, b > 0` and multipliers `y, z > 0`,

    a y = mu,   b z = mu,   gradient of cost + multipliers * equations + (z - y) * r = 0.

Slacks and their multipliers are eliminated, which leaves a problem for the Riccati recursion with
`y/a + z/b` added to its second derivatives.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdyn.trajopt._interior_point_program import (
    Program,
    Ranged,
    Slopes,
    Values,
    Weights,
    gradients,
    stationarity,
)
from jaxdyn.trajopt._riccati import Blocks, Factors, Right, Shape, Step, factorised, solved


class Side(NamedTuple):
    """One side of all ranges: slacks and multipliers."""

    slack: Ranged
    multiplier: Ranged


class Iterate(NamedTuple):
    """A point of the method."""

    s: Any
    m: Any
    #: multipliers of the equations
    c: Any
    b0: Any
    bN: Any
    low: Side
    high: Side


class Direction(NamedTuple):
    """A step of all of it."""

    step: Step
    low: Side
    high: Side


class Errors(NamedTuple):
    """How far a point is from optimal."""

    dual: Any
    primal: Any
    #: least and greatest product of slack and multiplier
    least: Any
    greatest: Any


def mapped(f, *trees):
    """f on the leaves of `Ranged`s."""
    return jax.tree.map(f, *trees)


def gaps(limits, values: Values) -> tuple[Ranged, Ranged]:
    """`r - low` and `high - r`, infinite where there is no limit."""
    low, high = limits
    return mapped(lambda r, x: r - x, values.ranged, low), mapped(lambda r, x: x - r, values.ranged, high)


def misfits(limits, it: Iterate, values: Values) -> tuple[Ranged, Ranged]:
    """By how much slacks differ from the gaps; zero where there is no limit."""
    differ = lambda g, a: jnp.where(jnp.isfinite(g), g - a, 0)
    below, above = gaps(limits, values)
    return mapped(differ, below, it.low.slack), mapped(differ, above, it.high.slack)


def inside(limits, s, m, mu):
    """The variables, moved into their ranges by a hundredth of these (section 3.6), or less for a small mu."""
    part = push(mu)

    def moved(x, low, high):
        span = jnp.where(jnp.isfinite(high - low), high - low, jnp.inf)
        away = lambda bound: part * jnp.minimum(jnp.maximum(1, jnp.abs(bound)), span)
        least = jnp.where(jnp.isfinite(low), low + away(low), low)
        greatest = jnp.where(jnp.isfinite(high), high - away(high), high)
        return jnp.clip(x, least, greatest)

    low, high = limits
    return moved(s, low.s, high.s), moved(m, low.m, high.m)


def push(mu):
    """How far from its limits a quantity begins, relative to its range."""
    return jnp.minimum(1e-2, mu / 10)


def begin(limits, values: Values, mu) -> tuple[Side, Side]:
    """Slacks at the gaps where these are large enough; multipliers of `10 mu`, or up to one where a slack is small."""
    part = push(mu)

    def slack(gap, low, high):
        span = high - low
        least = part * jnp.where(jnp.isfinite(span), jnp.minimum(1.0, 10 * jnp.abs(span)), 1.0)
        return jnp.where(jnp.isfinite(gap), jnp.maximum(gap, jnp.maximum(least, 1e-8)), 1.0)

    def multiplier(a, gap):
        return jnp.where(jnp.isfinite(gap), jnp.maximum(10 * mu, jnp.minimum(mu / a, 1)), 0)

    sides = []
    for gap in gaps(limits, values):
        a = mapped(slack, gap, *limits)
        sides.append(Side(a, mapped(multiplier, a, gap)))
    return sides[0], sides[1]


def weights(it: Iterate) -> Weights:
    """Multipliers of the Lagrangian."""
    y = mapped(lambda z, y: z - y, it.high.multiplier, it.low.multiplier)
    return Weights(it.c, it.b0, it.bN, y)


def violation(limits, it: Iterate, values: Values):
    """Sum of all violations: what the line search weighs against the cost."""
    parts = [values.c, values.b0, values.bN, *misfits(limits, it, values)]
    return sum(jnp.abs(x).sum() for x in jax.tree.leaves(parts))


def largest_violation(limits, it: Iterate, values: Values):
    """The largest of them."""
    parts = [values.c, values.b0, values.bN, *misfits(limits, it, values)]
    return jnp.stack([jnp.max(jnp.abs(x), initial=0) for x in jax.tree.leaves(parts)]).max()


def barrier(limits, it: Iterate, cost, mu):
    """Cost less `mu` times the logarithms of all slacks; those without a limit are one."""
    return cost - mu * sum(jnp.log(a).sum() for a in jax.tree.leaves((it.low.slack, it.high.slack)))


def errors(limits, it: Iterate, values: Values, d: Slopes) -> Errors:
    """Largest error of each kind; the dual one is scaled down where multipliers are large, as IPOPT does."""
    s, m = stationarity(d, weights(it))
    duals = [it.c, it.b0, it.bN, it.low.multiplier, it.high.multiplier]
    leaves = jax.tree.leaves(duals)
    mean = sum(jnp.abs(x).sum() for x in leaves) / sum(x.size for x in leaves)
    scale = jnp.maximum(mean, 100.0) / 100
    primal = largest_violation(limits, it, values)
    products, limited = [], []
    for side, gap in zip((it.low, it.high), gaps(limits, values), strict=True):
        products += jax.tree.leaves(mapped(lambda a, y: a * y, *side))
        limited += [jnp.isfinite(g) for g in jax.tree.leaves(gap)]
    pick = lambda p, has, fill: jnp.where(has, p, fill)
    pairs = list(zip(products, limited, strict=True))
    greatest = jnp.stack([jnp.max(pick(p, has, -jnp.inf), initial=-jnp.inf) for p, has in pairs]).max() / scale
    least = jnp.stack([jnp.min(pick(p, has, jnp.inf), initial=jnp.inf) for p, has in pairs]).min() / scale
    dual = jnp.maximum(jnp.max(jnp.abs(s)), jnp.max(jnp.abs(m), initial=0))
    return Errors(dual / scale, primal, least, greatest)


def total(e: Errors, mu):
    """The largest error for the barrier parameter mu."""
    complementarity = jnp.maximum(jnp.maximum(e.greatest - mu, mu - e.least), 0)
    return jnp.maximum(jnp.maximum(e.dual, e.primal), complementarity)


def stiffened(blocks: Blocks, it: Iterate, d: Slopes) -> Blocks:
    """Second derivatives with those of the barrier."""
    n, ns = blocks.H.shape[-1], blocks.HN.shape[-1]
    ratio = lambda side: mapped(lambda a, y: y / a, *side)
    w = mapped(lambda x, y: x + y, ratio(it.low), ratio(it.high))
    own = jnp.concatenate([w.s[:-1], w.m, jnp.zeros((w.m.shape[0], ns), w.m.dtype)], axis=1)
    H = blocks.H + jnp.eye(n, dtype=own.dtype) * own[:, None]
    H = H + jnp.swapaxes(d.rows, 1, 2) @ (w.rows[:, :, None] * d.rows)
    HN = blocks.HN + jnp.diag(w.s[-1]) + d.end.T @ (w.end[:, None] * d.end)
    return blocks._replace(H=H, HN=HN)


def identity(blocks: Blocks) -> Blocks:
    """The same equations with the identity as second derivatives."""
    n, ns = blocks.H.shape[-1], blocks.HN.shape[-1]
    own = jnp.diag(jnp.where(jnp.arange(n) < n - ns, 1.0, 0.0).astype(blocks.H.dtype))
    return blocks._replace(
        H=jnp.broadcast_to(own, blocks.H.shape), H0=0 * blocks.H0, HN=jnp.eye(ns, dtype=blocks.H.dtype)
    )


def directed(shape: Shape, f: Factors, d: Slopes, it: Iterate, values: Values, gap, mu, first=False) -> Direction:
    """Newton's direction for equations `values`, misfits `gap` and barrier parameter mu."""

    def pushed(side, misfit):  # multiplier that a step of zero would have
        return mapped(
            lambda a, y, p: jnp.where((y > 0) & ~jnp.asarray(first), mu / a - y / a * p, y),
            side.slack,
            side.multiplier,
            misfit,
        )

    y = mapped(lambda z, y: z - y, pushed(it.high, gap[1]), pushed(it.low, gap[0]))
    g, g0, gN = gradients(d, Weights(it.c, it.b0, it.bN, y))
    step = solved(shape, f, Right(g, values.c, g0, values.b0, gN, values.bN))
    z = jnp.concatenate([step.s[:-1], step.m, step.s[1:]], axis=1)
    moved = Ranged(step.s, step.m, jnp.einsum("kij,kj->ki", d.rows, z), d.end @ step.s[-1])

    def side(at, misfit, sign):
        has = mapped(lambda y: y > 0, at.multiplier)
        a = mapped(lambda r, p, h: jnp.where(h, sign * r + p, 0), moved, misfit, has)
        new = lambda a, y, da, h: jnp.where(h, (mu - y * da) / a - y, 0)
        return Side(a, mapped(new, at.slack, at.multiplier, a, has))

    return Direction(step, side(it.low, gap[0], 1.0), side(it.high, gap[1], -1.0))


def longest(direction: Direction, it: Iterate, fraction):
    """Largest steps of slacks and of multipliers that keep them positive, up to one."""

    def reach(values, steps):
        ratio = lambda x, d: jnp.min(jnp.where(d < 0, -fraction * x / jnp.where(d < 0, d, -1), 1), initial=1)
        return jnp.stack(jax.tree.leaves(jax.tree.map(ratio, values, steps))).min()

    pick = lambda i: ((it.low[i], it.high[i]), (direction.low[i], direction.high[i]))
    return reach(*pick(0)), reach(*pick(1))


def moved(it: Iterate, d: Direction, primal, dual, equations) -> Iterate:
    """The iterate after a step of these lengths in variables, multipliers of ranges and those of equations."""
    add = lambda x, dx, by: jax.tree.map(lambda x, dx: x + by * dx, x, dx)
    s, m = add((it.s, it.m), d.step[:2], primal)
    c, start, end = add((it.c, it.b0, it.bN), d.step[2:], equations)
    side = lambda x, dx: Side(add(x.slack, dx.slack, primal), add(x.multiplier, dx.multiplier, dual))
    return Iterate(s, m, c, start, end, side(it.low, d.low), side(it.high, d.high))


def multiplied(it: Iterate, step: Step) -> Iterate:
    """The iterate with the multipliers of the equations that a step gives, or none where these are large."""
    size = jnp.stack([jnp.max(jnp.abs(x), initial=0) for x in (step.multipliers, step.start, step.end)]).max()
    pick = lambda old, new: jnp.where(size < 1e3, old + new, 0)
    return it._replace(c=pick(it.c, step.multipliers), b0=pick(it.b0, step.start), bN=pick(it.bN, step.end))


def safeguarded(it: Iterate, mu) -> Iterate:
    """Multipliers within a wide neighbourhood of the central path, which keeps the linear systems sound."""
    near = lambda a, y: jnp.where(y > 0, jnp.clip(y, mu / a / 1e10, mu / a * 1e10), y)
    side = lambda x: Side(x.slack, mapped(near, x.slack, x.multiplier))
    return it._replace(low=side(it.low), high=side(it.high))


def regularised(program: Program, blocks: Blocks, previous, least, free_ends=False):
    """Factors with the smallest diagonal, found by trial, for which the step is one to a minimum; its size; success.

    The diagonal of the ends' multipliers falls as the other grows, so that given ends stay given; not for `free_ends`,
    of whose equations nothing but that diagonal is left.
    """
    shape, dtype = program.layout.shape, blocks.H.dtype
    dual = jnp.finfo(dtype).eps ** 0.5 * 1e-2

    def again(carry):
        tried, _, sound, _ = carry
        return ~sound & (tried < 40)

    def attempt(carry):
        tried, size, _, _ = carry
        f, sound = factorised(shape, blocks, size, dual / (1 + jnp.where(free_ends, 0, size)))
        first = jnp.where(previous > 0, jnp.maximum(1e-20, previous / 3), 1e-4)
        grown = jnp.where(previous > 0, 8 * size, 100 * size)
        larger = jnp.where(size == 0, first, grown)
        return tried + 1, jnp.where(sound, size, larger), sound, f

    empty = jax.eval_shape(lambda b: factorised(shape, b, least, dual)[0], blocks)
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), empty)
    start = jnp.zeros((), int), jnp.asarray(least, dtype), jnp.asarray(False), zeros
    _, size, sound, f = jax.lax.while_loop(again, attempt, start)
    return f, size, sound
