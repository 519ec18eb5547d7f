"""Structured solution of the KKT system: a Riccati factorisation, backwards in time, and solves with its factors.

Variables are states `s_k`, `k = 0..N`, and interval variables `m_k`. With `z_k = (s_k, m_k, s_{k+1})` the problem is

    minimise   sum (1/2 z_k' H_k z_k + g_k' z_k) + 1/2 s_0' H_0 s_0 + g_0' s_0 + 1/2 s_N' H_N s_N + g_N' s_N
    subject to C_k z_k + c_k = 0,   B_0 s_0 + b_0 = 0,   B_N s_N + b_N = 0.

The equations of an interval are solve_kkt for its dependent variables among `(m_k, s_{k+1})`. The independent variables
w are the controls of a linear-quadratic problem. The backward recursion computes its value function, which depends on
the multipliers nu of `B_N`:

    V_k(s, nu) = 1/2 s'P s + s'(p + M nu) - 1/2 nu'N nu + nu'n.

Terminal conditions, alone or coupled with the start, therefore cost one dense system at the start. The work grows
linearly with N. The blocks `H_k` may be indefinite: the factorisation reports whether the inertia is correct, that is
whether the solution is a minimum.

Recursion: Rao, Wright and Rawlings, JOTA 99(3), 1998; the border: Jorgensen, Rawlings and Jorgensen 2004.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._numerics import kernel
from jaxdyn._types import Array
from jaxdyn.trajopt.interior_point._small_matrices import (
    inverse,
    inverse_kernel,
    negative_eigenvalues,
    product,
    sweep_kernel,
)
from jaxdyn.trajopt.transcription import Shape


class Blocks(NamedTuple):
    """The matrices of the problem above."""

    #: (N, z, z)
    H: jax.Array
    #: (N, c, z)
    C: jax.Array
    H0: jax.Array
    B0: jax.Array
    HN: jax.Array
    BN: jax.Array


class RightHandSide(NamedTuple):
    """The vectors of the problem above."""

    #: (N, z)
    g: jax.Array
    #: (N, c)
    c: jax.Array
    g0: jax.Array
    b0: jax.Array
    gN: jax.Array
    bN: jax.Array


class Step(NamedTuple):
    """The solution: variables, and multipliers of the three groups of equations."""

    #: (N + 1, s)
    s: jax.Array
    #: (N, m)
    m: jax.Array
    #: (N, c)
    multipliers: jax.Array
    start: jax.Array
    end: jax.Array


class Factors(NamedTuple):
    """Factors of the KKT matrix; see `factorise`."""

    blocks: Blocks
    #: inverse of the dependent columns of C
    inverse: jax.Array
    #: z as a linear function of (w, s): (N, z, w + s)
    T: jax.Array
    #: value functions at the ends of the intervals: P and M, (N, s, s) and (N, s, nu)
    P: jax.Array
    M: jax.Array
    #: inverse of the Hessian with respect to w
    W: jax.Array
    #: w = - K s - K_nu nu - ...
    K: jax.Array
    K_nu: jax.Array
    #: the dense system at the start and its inverse
    full: jax.Array
    dense: jax.Array


def factorise(shape: Shape, blocks: Blocks, regularisation, dual) -> tuple[Factors, Array]:
    """Factors of the KKT matrix with regularised diagonals, and whether its inertia is correct.

    `regularisation` is added to the diagonal of H, `-dual` to the diagonal of the ends' multipliers. The inertia is
    correct if the matrix has as many negative eigenvalues as equations, so that the solution is a minimum.
    """
    ns, nw = shape.ns, len(shape.independent)
    eye = jnp.eye(blocks.H.shape[-1], dtype=blocks.H.dtype)
    # the state at the end of an interval is the state at the start of the next: regularise it once
    eye = eye.at[ns + shape.nm :, ns + shape.nm :].set(0)
    blocks = blocks._replace(
        H=blocks.H + regularisation * eye, HN=blocks.HN + regularisation * jnp.eye(ns, dtype=eye.dtype)
    )
    inverses, T, Hr = jax.vmap(lambda C, H: _reduce(shape, C, H))(blocks.C, blocks.H)
    nN = blocks.BN.shape[0]
    BN = jnp.concatenate([blocks.BN, jnp.zeros((nN == 0, ns), eye.dtype)])  # kernels take no empty arrays
    start = blocks.HN + _end_weight(blocks) * blocks.BN.T @ blocks.BN, BN.T, jnp.zeros((len(BN),) * 2, eye.dtype)
    (P0, M0, N0), (P, M, W, K, K_nu, pivots) = _recursion(nw, *start, T[:, -ns:], Hr)
    M0, N0, M, K_nu = M0[:, :nN], N0[:nN, :nN], M[:, :, :nN], K_nu[:, :, :nN]
    full, correct = _dense(blocks, P0, M0, N0, dual)
    correct = correct & jnp.isfinite(P0).all() & (pivots > 0).all()
    return Factors(blocks, inverses, T, P, M, W, K, K_nu, full, inverse(full)), correct


def _reduce_lanes(shape: Shape, C, H):
    """Inverse of the dependent columns of C, T, and the reduced Hessian `T' H T`, from `z = (o, d)` and `d = X o`."""
    d = dependent_columns(shape)
    o = np.concatenate([shape.ns + shape.independent, np.arange(shape.ns)])
    columns = lambda a, at: jnp.concatenate([a[:, j : j + 1] for j in at], axis=1)
    rows = lambda a, at: jnp.concatenate([a[j : j + 1] for j in at])
    invert = inverse_kernel(None, columns(C, d))
    X = -product(invert, columns(C, o))
    Ho, Hd = rows(H, o), rows(H, d)
    Hod = columns(Ho, d)
    X_T = jnp.swapaxes(X, 0, 1)
    Hr = columns(Ho, o) + product(Hod, X) + product(X_T, columns(Hd, o) + product(columns(Hd, d), X))
    eye = jnp.broadcast_to(jnp.asarray(np.eye(len(o))[..., None], C.dtype), (len(o), len(o), X.shape[-1]))
    return invert, rows(jnp.concatenate([eye, X]), shape.order), Hr


def _recursion_lanes(nw: int, PN, MN, NN, F, Hr):
    """Value functions at the starts of all intervals, from the value function at the end."""
    lanes = max(x.shape[-1] for x in (PN, MN, NN, F, Hr))
    broadcast = lambda x: jnp.broadcast_to(x, (*x.shape[:-1], lanes))

    def back(carry, stage):
        P, M, N = carry
        F, Hr = stage
        F_T, end = jnp.swapaxes(F, 0, 1), nw + F.shape[0]
        G, FM = Hr + product(F_T, product(P, F)), product(F_T, M)
        matrix = [[G, FM], [jnp.swapaxes(FM, 0, 1), -N]]
        m, pivots = sweep_kernel(nw, jnp.concatenate([jnp.concatenate(row, axis=1) for row in matrix]))
        P0, M0, N0 = m[nw:end, nw:end], m[nw:end, end:], -m[end:, end:]
        P0 = (P0 + jnp.swapaxes(P0, 0, 1)) / 2
        return (P0, M0, N0), (P, M, m[:nw, :nw], m[:nw, nw:end], m[:nw, end:], pivots)

    return jax.lax.scan(
        back, (broadcast(PN), broadcast(MN), broadcast(NN)), (broadcast(F), broadcast(Hr)), reverse=True
    )


_reduce, _recursion = kernel(_reduce_lanes), kernel(_recursion_lanes)


def _end_weight(blocks: Blocks):
    """Weight of an augmented-Lagrangian term of the terminal conditions.

    The term leaves the solution unchanged and makes the Hessian of more problems positive definite.
    """
    if blocks.BN.shape[0] == 0:
        return jnp.zeros((), blocks.H.dtype)
    size = jnp.max(jnp.abs(blocks.HN)) + jnp.max(jnp.abs(blocks.H))
    # as large as rounding allows: with a smaller weight, problems that are convex on their terminal conditions alone
    # are reported to have no minimum
    weight = jnp.clip(100 * size, 1.0, jnp.finfo(size.dtype).eps ** -0.45)
    return weight / jnp.maximum(jnp.max(jnp.abs(blocks.BN)) ** 2, 1e-8)


def dependent_columns(shape: Shape) -> np.ndarray:
    """Columns of z of the dependent variables."""
    return shape.ns + np.array(shape.dependent, int)


def _dense(blocks: Blocks, P, M, N, dual):
    """The system for the initial state and the multipliers of both ends, and whether its inertia is correct."""
    n0, nN = blocks.B0.shape[0], blocks.BN.shape[0]
    zero = jnp.zeros((n0, nN), P.dtype)
    rows = (
        jnp.concatenate([P + blocks.H0, M, blocks.B0.T], axis=1),
        jnp.concatenate([M.T, -N - dual * jnp.eye(nN, dtype=P.dtype), zero.T], axis=1),
        jnp.concatenate([blocks.B0, zero, -dual * jnp.eye(n0, dtype=P.dtype)], axis=1),
    )
    full = jnp.concatenate(rows)
    full = jnp.where(jnp.isfinite(full).all(), full, jnp.eye(full.shape[0], dtype=full.dtype))
    return full, negative_eigenvalues(full) == n0 + nN


def solve_kkt(shape: Shape, f: Factors, r: RightHandSide) -> Step:
    """The solution for one right-hand side, with one step of iterative refinement."""

    def refine(step, _):
        correction = _solve_once(shape, f, _kkt_residual(f.blocks, step, r))
        return jax.tree.map(jnp.add, step, correction), None

    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(lambda r: _solve_once(shape, f, r), r))
    return jax.lax.scan(refine, zeros, None, length=2)[0]


def _kkt_residual(b: Blocks, step: Step, r: RightHandSide) -> RightHandSide:
    """Residual of the KKT system: right-hand side plus matrix times step."""
    z = jnp.concatenate([step.s[:-1], step.m, step.s[1:]], axis=1)
    g = r.g + jnp.einsum("kij,kj->ki", b.H, z) + jnp.einsum("kij,ki->kj", b.C, step.multipliers)
    first, last = step.s[0], step.s[-1]
    return RightHandSide(
        g,
        r.c + jnp.einsum("kij,kj->ki", b.C, z),
        r.g0 + b.H0 @ first + b.B0.T @ step.start,
        r.b0 + b.B0 @ first,
        r.gN + b.HN @ last + b.BN.T @ step.end,
        r.bN + b.BN @ last,
    )


def _solve_once(shape: Shape, f: Factors, r: RightHandSide) -> Step:
    """A backward and a forward sweep of matrix-vector products."""
    ns, nw, dependent = shape.ns, len(shape.independent), dependent_columns(shape)
    b = f.blocks
    times = lambda A, x: jnp.einsum("kij,kj->ki", A, x)
    back = lambda A, x: jnp.einsum("kij,ki->kj", A, x)
    t = jnp.zeros_like(r.g).at[:, dependent].set(-times(f.inverse, r.c))
    F, drift = f.T[:, -ns:], t[:, -ns:]
    gr = back(f.T, r.g + times(b.H, t)) + back(F, times(f.P, drift))
    A = F[:, :, nw:] - F[:, :, :nw] @ f.K
    q_s = gr[:, nw:] - back(f.K, gr[:, :nw])
    weight = _end_weight(b)
    pN = r.gN + weight * (b.BN.T @ r.bN)

    def backwards(p, stage):
        A, q = stage
        return A.T @ p + q, p

    p0, p = jax.lax.scan(backwards, pN, (A, q_s), reverse=True)
    qw = gr[:, :nw] + back(F[:, :, :nw], p)
    kw = times(f.W, qw)
    n = r.bN + jnp.einsum("kij,ki->j", f.M, drift - times(F[:, :, :nw], kw))
    right = jnp.concatenate([-(p0 + r.g0), -n, -r.b0])
    first = f.dense @ right
    first = first + f.dense @ (right - f.full @ first)
    s0, end, start = jnp.split(first, [ns, ns + b.BN.shape[0]])
    kw = kw + f.K_nu @ end

    def forwards(s, stage):
        A, b = stage
        return A @ s + b, s

    sN, s = jax.lax.scan(forwards, s0, (A, drift - times(F[:, :, :nw], kw)))
    z = times(f.T, jnp.concatenate([-kw - times(f.K, s), s], axis=1)) + t
    costate = p + times(f.P, z[:, -ns:]) + f.M @ end
    load = (r.g + times(b.H, z)).at[:, -ns:].add(costate)[:, dependent]
    # p belongs to the point that the drift leads to, so P multiplies all of s'
    multipliers = -back(f.inverse, load)
    return Step(jnp.concatenate([s, sN[None]]), z[:, ns:-ns], multipliers, start, end)
