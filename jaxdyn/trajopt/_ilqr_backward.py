"""The backward pass: the quadratic model of the cost-to-go, and the best step of the controls within their ranges."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve

from jaxdyn.trajopt._ilqr_stage import Expansion

_HALVINGS = 8


class Gains(NamedTuple):
    """`du = alpha feedforward + feedback dx` in each interval, and what the pass found on its way."""

    feedforward: Any
    feedback: Any
    #: gradient in the free controls, zero where a range holds them
    slope: Any
    #: gradient of the cost-to-go at the starts of intervals
    costate: Any
    #: whether a Hessian in the controls was not positive definite
    bad: Any


def box_step(hessian, gradient, low, high):
    """The p that makes `p^T H p / 2 + g^T p` least between `low` and `high`, and which of its entries are free.

    Projected Newton steps (Bertsekas 1982; Tassa, Mansard and Todorov 2014): entries pressed against their range are
    held, the others take a Newton step, shortened until the function falls. Returns p, the mask of free entries, a
    Cholesky factor of H in these (the unit matrix in the others), and whether H was not positive definite.
    """
    eye = jnp.eye(gradient.shape[0], dtype=gradient.dtype)
    value = lambda p: p @ (hessian @ p) / 2 + gradient @ p
    alphas = 0.5 ** jnp.arange(_HALVINGS)

    def free_at(p):
        slope = gradient + hessian @ p
        return slope, ~(((p <= low) & (slope > 0)) | ((p >= high) & (slope < 0)))

    def factor(free):
        both = free[:, None] & free[None, :]
        found = jnp.linalg.cholesky(jnp.where(both, hessian, eye))
        bad = ~jnp.all(jnp.isfinite(found))
        return jnp.where(bad, eye, found), bad

    def go(state):
        _, moved, bad, count = state
        return moved & ~bad & (count < 30)

    def newton(state):
        p, _, _, count = state
        slope, free = free_at(p)
        lower, bad = factor(free)
        move = -cho_solve((lower, True), jnp.where(free, slope, 0))
        tried = jnp.clip(p + alphas[:, None] * move, low, high)
        fall = jax.vmap(value)(tried) - value(p)
        wanted = jax.vmap(lambda new: slope @ (new - p))(tried)
        fits = fall <= 0.1 * wanted
        new = tried[jnp.argmax(fits)]
        size = jnp.max(jnp.abs(new - p))
        moved = jnp.any(fits) & (size > 1e2 * jnp.finfo(p.dtype).eps * jnp.max(jnp.abs(new)))
        same = jnp.all(free_at(new)[1] == free) & fits[0] & jnp.all(jnp.where(free, (new > low) & (new < high), True))
        return jnp.where(jnp.any(fits), new, p), moved & ~same, bad, count + 1

    start = jnp.clip(jnp.zeros_like(gradient), low, high)
    p, _, bad, _ = jax.lax.while_loop(go, newton, (start, jnp.asarray(True), jnp.asarray(False), 0))
    _, free = free_at(p)
    lower, worse = factor(free)
    return p, free, lower, bad | worse


def backward(stages: Expansion, end: Expansion, gaps, room, regular) -> Gains:
    """Gains of all intervals, from the expansions of the intervals and of the end.

    With `V' (x) = s^T x + x^T S x / 2` of the next node moved by the gap d of the dynamics, `s + S d`,

        Q_z = l_z + f_z^T (s + S d),   Q_zz = l_zz + f_z^T S f_z,   Q_uu + regular max(diag Q_uu)

    `room` are the steps `(low, high)` that the ranges of the controls leave.
    """
    n = end.gradient.shape[0]

    def back(carry, row):
        s, curvature, bad = carry
        stage, gap, low, high = row
        moved = s + curvature @ gap
        slope = stage.gradient + stage.jacobian.T @ moved
        whole = stage.hessian + stage.jacobian.T @ curvature @ stage.jacobian
        whole = (whole + whole.T) / 2
        quu, qux = whole[n:, n:], whole[n:, :n]
        largest = jnp.max(jnp.abs(jnp.diagonal(quu)))
        strong = quu + regular * jnp.where(largest > 0, largest, 1) * jnp.eye(quu.shape[0], dtype=quu.dtype)
        step, free, lower, worse = box_step(strong, slope[n:], low, high)
        gain = jnp.where(free[:, None], -cho_solve((lower, True), jnp.where(free[:, None], qux, 0)), 0)
        s = slope[:n] + gain.T @ (quu @ step + slope[n:]) + qux.T @ step
        curvature = whole[:n, :n] + gain.T @ quu @ gain + gain.T @ qux + qux.T @ gain
        curvature = (curvature + curvature.T) / 2
        return (s, curvature, bad | worse), Gains(step, gain, jnp.where(free, slope[n:], 0), s, worse)

    start = (end.gradient, end.hessian, jnp.asarray(False))
    (_, _, bad), gains = jax.lax.scan(back, start, (stages, gaps, *room), reverse=True)
    return gains._replace(bad=bad)


def derivative_along(stages: Expansion, end: Expansion, gaps, gains: Gains):
    """The derivative of the cost along the step, `dx_{k+1} = f_z (dx, du) + d`."""

    def forth(dx, row):
        stage, gap, step, gain = row
        dz = jnp.concatenate([dx, step + gain @ dx])
        return stage.jacobian @ dz + gap, stage.gradient @ dz

    last, slopes = jax.lax.scan(forth, jnp.zeros_like(end.gradient), (stages, gaps, gains.feedforward, gains.feedback))
    return jnp.sum(slopes) + end.gradient @ last
