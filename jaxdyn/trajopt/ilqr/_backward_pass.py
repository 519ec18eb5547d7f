"""The linear-quadratic subproblem of an iteration under control limits: the optimal step and its feedback gains.

A primal-dual active-set method (Hintermueller, Ito and Kunisch 2003) finds the active control limits: controls of the
active set stay at their limits, the others follow from a Riccati recursion backward in time; then controls that exceed
their limits enter the active set, and controls whose gradient points inside leave it, until the set is stationary. In
box-DDP (Tassa, Mansard and Todorov 2014) each interval determines its active set as if the states did not move, which
misleads where a guess has gaps.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve

from jaxdyn._types import Array
from jaxdyn.trajopt.ilqr._stage import Expansion

_PASSES = 12


class Gains(NamedTuple):
    """Gains `du = feedforward + feedback dx` of each interval, and the cost-to-go."""

    feedforward: Array
    feedback: Array
    #: gradient and Hessian of the cost-to-go at the starts of intervals
    costate: Array
    curvature: Array
    #: whether the Hessian with respect to the controls was not positive definite somewhere
    bad: Array


class Line(NamedTuple):
    """The full step in the linear model."""

    #: directional derivative of the cost
    slope: Array
    #: costates after the step at the ends of intervals, `(N, nx)`
    costate: Array
    #: gradient with respect to the controls after the step, `(N, nu)`
    pull: Array
    #: changes of states, `(N + 1, nx)`, and controls
    dx: Array
    du: Array


def total_hessian(e: Expansion):
    """The Hessian of an expansion, second derivatives of the dynamics included."""
    return e.hessian if e.bend is None else e.hessian + e.bend


def backward_pass(stages: Expansion, end: Expansion, gaps, room, held, regular) -> Gains:
    """Riccati recursion: gains of all intervals from the expansions of the intervals and of the end.

    With `V' (x) = s^T x + x^T S x / 2` of the next node, shifted by the gap d of the dynamics, `s + S d`,

        Q_z = l_z + f_z^T (s + S d),   Q_zz = l_zz + f_z^T S f_z,   Q_uu + regular max(diag Q_uu)

    `room` are the distances `(low, high)` of the controls from their limits; `held`, `(N, nu)`, is the active set: -1
    or 1 for controls at the lower or upper limit, otherwise 0.
    """
    n = end.gradient.shape[0]

    def back(carry, row):
        s, curvature, bad = carry
        stage, gap, low, high, held = row
        free, fixed = held == 0, jnp.where(held < 0, low, jnp.where(held > 0, high, 0))
        shifted = s + curvature @ gap
        slope = stage.gradient + stage.jacobian.T @ shifted
        whole = total_hessian(stage) + stage.jacobian.T @ curvature @ stage.jacobian
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

    start = (end.gradient, total_hessian(end), jnp.asarray(False))
    (_, _, bad), gains = jax.lax.scan(back, start, (stages, gaps, *room, held), reverse=True)
    return gains._replace(bad=bad)


def forward_pass(stages: Expansion, end: Expansion, gaps, gains: Gains, start=None) -> Line:
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
    costate = jnp.concatenate([inner, (end.gradient + total_hessian(end) @ last)[None]])
    bent = stages.gradient + jnp.einsum("kij,kj->ki", total_hessian(stages), dz)
    pull = bent[:, n:] + jnp.einsum("kij,ki->kj", stages.jacobian[:, :, n:], costate)
    slope = jnp.sum(stages.gradient * dz) + end.gradient @ last
    return Line(slope, costate, pull, jnp.concatenate([start[None], dx]), dz[:, n:])


def start_step(gains: Gains, free, given, regular):
    """Step of the initial state: `given`, and for `free` states (indices, static) the minimiser of the cost-to-go.

        S_ff d_f = -(s_f + S_fg d_g)

    The second result is True if S_ff is not positive definite.
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


def solve_bounded(stages: Expansion, end: Expansion, gaps, room, held, regular, free=()) -> tuple[Gains, Line, Array]:
    """Gains, step and active set of the subproblem under control limits, from a guess `held` of the active set.

    `free` are the indices of the states that are free at the start.
    """
    low, high = room

    def solve(held):
        gains = backward_pass(stages, end, gaps, room, held, regular)
        first, worse = start_step(gains, free, jnp.zeros_like(end.gradient), regular)
        return gains._replace(bad=gains.bad | worse), forward_pass(stages, end, gaps, gains, first)

    def is_changing(state):
        _, _, _, changed, k = state
        return changed & (k < _PASSES)

    def update(state):
        held, gains, line, _, k = state
        free = held == 0
        exceeding = jnp.where(line.du < low, -1, jnp.where(line.du > high, 1, 0))
        kept = jnp.where(held * line.pull <= 0, held, 0)
        new = jnp.where(free, exceeding, kept).astype(held.dtype)
        changed = jnp.any(new != held) & ~gains.bad
        keep = lambda: (held, gains, line, changed, k)
        return jax.lax.cond(changed, lambda: (new, *solve(new), changed, k + 1), keep)

    start = (held, *solve(held), jnp.asarray(True), jnp.asarray(0))
    held, gains, line, _, _ = jax.lax.while_loop(is_changing, update, start)
    return gains, line, held
