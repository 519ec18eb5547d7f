"""The linear-quadratic problem of an iteration: the best step of the controls within their ranges, and its gains.

Which controls a range holds is found by a primal-dual active-set method (Hintermueller, Ito and Kunisch 2003): held
controls stay at their limit, the others are those of a Riccati recursion backward in time; then controls that leave
their range are held, and those that the cost pulls inside are let go, until nothing changes. In box-DDP (Tassa, Mansard
and Todorov 2014) each interval chooses for itself, as if the states did not move, which misleads where a guess has
gaps.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve

from jaxdyn.trajopt._ilqr_stage import Expansion

_PASSES = 12


class Gains(NamedTuple):
    """`du = feedforward + feedback dx` in each interval, and what the pass found on its way."""

    feedforward: Any
    feedback: Any
    #: gradient and Hessian of the cost-to-go at the starts of intervals
    costate: Any
    curvature: Any
    #: whether a Hessian in the controls was not positive definite
    bad: Any


class Line(NamedTuple):
    """Where the step of full length leads in the linear model."""

    #: derivative of the cost along it
    slope: Any
    #: costates at the ends of intervals there, `(N, nx)`
    costate: Any
    #: gradient in the controls there, `(N, nu)`
    pull: Any
    #: changes of states, `(N + 1, nx)`, and controls
    dx: Any
    du: Any


def curved(e: Expansion):
    """The whole Hessian of an expansion."""
    return e.hessian if e.bend is None else e.hessian + e.bend


def backward(stages: Expansion, end: Expansion, gaps, room, held, regular) -> Gains:
    """Gains of all intervals, from the expansions of the intervals and of the end.

    With `V' (x) = s^T x + x^T S x / 2` of the next node moved by the gap d of the dynamics, `s + S d`,

        Q_z = l_z + f_z^T (s + S d),   Q_zz = l_zz + f_z^T S f_z,   Q_uu + regular max(diag Q_uu)

    `room` are the steps `(low, high)` that the ranges of the controls leave; `held`, `(N, nu)`, is -1 or 1 for controls
    at the lower or upper limit, otherwise 0.
    """
    n = end.gradient.shape[0]

    def back(carry, row):
        s, curvature, bad = carry
        stage, gap, low, high, held = row
        free, fixed = held == 0, jnp.where(held < 0, low, jnp.where(held > 0, high, 0))
        moved = s + curvature @ gap
        slope = stage.gradient + stage.jacobian.T @ moved
        whole = curved(stage) + stage.jacobian.T @ curvature @ stage.jacobian
        whole = (whole + whole.T) / 2
        quu, qux = whole[n:, n:], whole[n:, :n]
        largest = jnp.max(jnp.abs(jnp.diagonal(quu)))
        eye = jnp.eye(quu.shape[0], dtype=quu.dtype)
        strong = quu + regular * jnp.where(largest > 0, largest, 1) * eye
        lower = jnp.linalg.cholesky(jnp.where(free[:, None] & free, strong, eye))
        worse = ~jnp.all(jnp.isfinite(lower))
        lower = jnp.where(worse, eye, lower)
        right = jnp.concatenate([(slope[n:] + quu @ fixed)[:, None], qux], 1)
        found = -cho_solve((lower, True), jnp.where(free[:, None], right, 0))
        step, gain = fixed + found[:, 0], found[:, 1:]
        s = slope[:n] + gain.T @ (quu @ step + slope[n:]) + qux.T @ step
        curvature = whole[:n, :n] + gain.T @ quu @ gain + gain.T @ qux + qux.T @ gain
        curvature = (curvature + curvature.T) / 2
        return (s, curvature, bad | worse), Gains(step, gain, s, curvature, worse)

    start = (end.gradient, curved(end), jnp.asarray(False))
    (_, _, bad), gains = jax.lax.scan(back, start, (stages, gaps, *room, held), reverse=True)
    return gains._replace(bad=bad)


def along(stages: Expansion, end: Expansion, gaps, gains: Gains, start=None) -> Line:
    """The full step in the linear model, `dx_{k+1} = f_z (dx, du) + d_k`, from a change `start` of the first state."""
    n = end.gradient.shape[0]
    start = jnp.zeros_like(end.gradient) if start is None else start

    def forth(dx, row):
        stage, gap, step, gain = row
        dz = jnp.concatenate([dx, step + gain @ dx])
        new = stage.jacobian @ dz + gap
        return new, (new, dz)

    last, (dx, dz) = jax.lax.scan(forth, start, (stages, gaps, gains.feedforward, gains.feedback))
    inner = gains.costate[1:] + jnp.einsum("kij,kj->ki", gains.curvature[1:], dx[:-1])
    costate = jnp.concatenate([inner, (end.gradient + curved(end) @ last)[None]])
    bent = stages.gradient + jnp.einsum("kij,kj->ki", curved(stages), dz)
    pull = bent[:, n:] + jnp.einsum("kij,ki->kj", stages.jacobian[:, :, n:], costate)
    slope = jnp.sum(stages.gradient * dz) + end.gradient @ last
    return Line(slope, costate, pull, jnp.concatenate([start[None], dx]), dz[:, n:])


def opened(gains: Gains, free, given, regular):
    """The change of the first state: `given`, but where it is `free` (numbers, static) the one that costs least.

        S_ff d_f = -(s_f + S_fg d_g)

    The second result tells whether S_ff is not positive definite.
    """
    if len(free) == 0:
        return given, jnp.asarray(False)
    curvature, given = gains.curvature[0], given.at[free].set(0)
    slope = (gains.costate[0] + curvature @ given)[free]
    own = curvature[np.ix_(free, free)]
    largest = jnp.max(jnp.abs(jnp.diagonal(own)))
    eye = jnp.eye(len(free), dtype=own.dtype)
    lower = jnp.linalg.cholesky(own + regular * jnp.where(largest > 0, largest, 1) * eye)
    worse = ~jnp.all(jnp.isfinite(lower))
    step = -cho_solve((jnp.where(worse, eye, lower), True), slope)
    return given.at[free].set(jnp.where(worse, 0, step)), worse


def within(stages: Expansion, end: Expansion, gaps, room, held, regular, free=()) -> tuple[Gains, Line, Any]:
    """Gains and step with the controls in their ranges, and which ones are held, beginning with a guess of these.

    `free` are the numbers of the states that are free at the start.
    """
    low, high = room

    def passed(held):
        gains = backward(stages, end, gaps, room, held, regular)
        first, worse = opened(gains, free, jnp.zeros_like(end.gradient), regular)
        return gains._replace(bad=gains.bad | worse), along(stages, end, gaps, gains, first)

    def go(state):
        _, _, _, changed, k = state
        return changed & (k < _PASSES)

    def again(state):
        held, gains, line, _, k = state
        free = held == 0
        pressed = jnp.where(line.du < low, -1, jnp.where(line.du > high, 1, 0))
        kept = jnp.where(held * line.pull <= 0, held, 0)
        new = jnp.where(free, pressed, kept).astype(held.dtype)
        changed = jnp.any(new != held) & ~gains.bad
        keep = lambda: (held, gains, line, changed, k)
        return jax.lax.cond(changed, lambda: (new, *passed(new), changed, k + 1), keep)

    start = (held, *passed(held), jnp.asarray(True), jnp.asarray(0))
    held, gains, line, _, _ = jax.lax.while_loop(go, again, start)
    return gains, line, held
