"""The linear algebra of a trajectory: one factorisation of the KKT matrix, backwards in time, and solves with it.

Variables are states `s_k`, `k = 0..N`, and variables `m_k` inside of the intervals. With `z_k = (s_k, m_k, s_{k+1})`

    minimise   sum (1/2 z_k' H_k z_k + g_k' z_k) + the same with H_0, g_0 of s_0 and with H_N, g_N of s_N
    subject to C_k z_k + c_k = 0,   B_0 s_0 + b_0 = 0,   B_N s_N + b_N = 0.

The equations of an interval are solved for as many of its variables `(m_k, s_{k+1})`, the dependent ones; those left,
w, are the controls of a linear-quadratic problem. Its value function is carried backwards along with the
multipliers nu of `B_N`, on which it depends as

    V_k(s, nu) = 1/2 s'P s + s'(p + M nu) - 1/2 nu'N nu + nu'n,

so that ends that are given, freely or together with the start, cost one dense system at the start. The work grows
linearly with N. Nothing is assumed about the sign of `H_k`: whether the problem has a minimum, on the motions alone
and then with the ends, is returned.

Recursion: Rao, Wright and Rawlings, JOTA 99(3), 1998; the border: Jorgensen, Rawlings and Jorgensen 2004.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import lu_factor, lu_solve, solve_triangular


class Blocks(NamedTuple):
    """The matrices of the problem above, of any signs."""

    #: (N, z, z)
    H: Any
    #: (N, c, z)
    C: Any
    H0: Any
    B0: Any
    HN: Any
    BN: Any


class Right(NamedTuple):
    """Its vectors."""

    #: (N, z)
    g: Any
    #: (N, c)
    c: Any
    g0: Any
    b0: Any
    gN: Any
    bN: Any


class Step(NamedTuple):
    """Its solution: variables, and multipliers of the three groups of equations."""

    #: (N + 1, s)
    s: Any
    #: (N, m)
    m: Any
    #: (N, c)
    multipliers: Any
    start: Any
    end: Any


class Shape(NamedTuple):
    """Which of the variables `y = (m, s')` are dependent; static."""

    ns: int
    nm: int
    dependent: tuple[int, ...]

    @property
    def free(self) -> np.ndarray:
        return np.setdiff1d(np.arange(self.nm + self.ns), self.dependent)

    @property
    def order(self) -> np.ndarray:
        """Where each entry of z is in (w, s, dependent)."""
        natural = [self.ns + self.free, np.arange(self.ns), self.ns + np.array(self.dependent, int)]
        return np.argsort(np.concatenate(natural))


class Factors(NamedTuple):
    """What solves need; see `factorised`."""

    blocks: Blocks
    #: LU factors of the dependent columns of C
    lu: Any
    #: z in terms of (w, s): (N, z, w + s)
    T: Any
    #: value functions at the ends of the intervals: P and M, (N, s, s) and (N, s, nu)
    P: Any
    M: Any
    #: Cholesky factors of the second derivatives in w
    L: Any
    #: w = - K s - K_nu nu - ...
    K: Any
    K_nu: Any
    #: LU factors of the dense system at the start
    dense: Any


def factorised(shape: Shape, blocks: Blocks, regular, dual) -> tuple[Factors, Any]:
    """Factors of the KKT matrix with `regular` added to the diagonal of H and `-dual` to that of the ends' multipliers.

    The second result tells whether the matrix has as many negative eigenvalues as equations, so that the solution is a
    minimum.
    """
    ns, nw = shape.ns, len(shape.free)
    eye = jnp.eye(blocks.H.shape[-1], dtype=blocks.H.dtype)
    eye = eye.at[ns + shape.nm :, ns + shape.nm :].set(0)  # the state at the end of an interval begins the next
    blocks = blocks._replace(H=blocks.H + regular * eye, HN=blocks.HN + regular * jnp.eye(ns, dtype=eye.dtype))
    lu, T = _eliminated(shape, blocks.C)
    F = T[:, -ns:]
    Hr = jnp.swapaxes(T, -1, -2) @ blocks.H @ T
    weight = _end_weight(blocks)
    start = blocks.HN + weight * blocks.BN.T @ blocks.BN, blocks.BN.T
    zero = jnp.zeros((blocks.BN.shape[0],) * 2, eye.dtype)

    def back(carry, stage):
        P, M, N = carry
        F, Hr = stage
        G = Hr + F.T @ (P @ F)
        L = jnp.linalg.cholesky(G[:nw, :nw], symmetrize_input=False)
        FM = F.T @ M
        Y = solve_triangular(L, jnp.concatenate([G[:nw, nw:], FM[:nw]], axis=1), lower=True)
        X = Y.T @ Y
        P0 = G[nw:, nw:] - X[:ns, :ns]
        return ((P0 + P0.T) / 2, FM[nw:] - X[:ns, ns:], N + X[ns:, ns:]), (P, M, L, Y)

    (P0, M0, N0), (P, M, L, Y) = jax.lax.scan(back, (*start, zero), (F, Hr), reverse=True)
    K = jax.vmap(lambda L, Y: solve_triangular(L, Y, lower=True, trans=1))(L, Y)
    full, sound = _dense(blocks, P0, M0, N0, dual)
    sound = sound & jnp.isfinite(P0).all() & jnp.isfinite(L).all()
    return Factors(blocks, lu, T, P, M, L, K[:, :, :ns], K[:, :, ns:], lu_factor(full)), sound


def _end_weight(blocks: Blocks):
    """A weight on the squares of the end's equations: it leaves the solution as it is, and more problems convex."""
    if blocks.BN.shape[0] == 0:
        return jnp.zeros((), blocks.H.dtype)
    size = jnp.max(jnp.abs(blocks.HN)) + jnp.max(jnp.abs(blocks.H))
    return jnp.clip(size, 1.0, 1e4) / jnp.maximum(jnp.max(jnp.abs(blocks.BN)) ** 2, 1e-8)


def _eliminated(shape: Shape, C):
    dependent, ns = ns_columns(shape), shape.ns
    others = np.concatenate([ns + shape.free, np.arange(ns)])
    lu = jax.vmap(lu_factor)(C[:, :, dependent])
    X = -jax.vmap(lu_solve)(lu, C[:, :, others])
    eye = jnp.broadcast_to(jnp.eye(len(others), dtype=C.dtype), (C.shape[0], len(others), len(others)))
    return lu, jnp.concatenate([eye, X], axis=1)[:, shape.order]


def ns_columns(shape: Shape) -> np.ndarray:
    """Columns of z that are dependent."""
    return shape.ns + np.array(shape.dependent, int)


def _dense(blocks: Blocks, P, M, N, dual):
    """The system for the state at the start and the multipliers of both ends, and whether its signs are right."""
    n0, nN = blocks.B0.shape[0], blocks.BN.shape[0]
    zero = jnp.zeros((n0, nN), P.dtype)
    rows = (
        jnp.concatenate([P + blocks.H0, M, blocks.B0.T], axis=1),
        jnp.concatenate([M.T, -N - dual * jnp.eye(nN, dtype=P.dtype), zero.T], axis=1),
        jnp.concatenate([blocks.B0, zero, -dual * jnp.eye(n0, dtype=P.dtype)], axis=1),
    )
    full = jnp.concatenate(rows)
    full = jnp.where(jnp.isfinite(full).all(), full, jnp.eye(full.shape[0], dtype=full.dtype))
    negative = jnp.sum(jnp.linalg.eigvalsh(full) < 0)
    return full, negative == n0 + nN


def solved(shape: Shape, f: Factors, r: Right) -> Step:
    """The solution for one set of vectors: two sweeps of one matrix-vector product an interval."""
    ns, nw, dependent = shape.ns, len(shape.free), ns_columns(shape)
    b = f.blocks
    own = -jax.vmap(lu_solve)(f.lu, r.c)
    t = jnp.zeros_like(r.g).at[:, dependent].set(own)
    F, drift = f.T[:, -ns:], t[:, -ns:]
    times = lambda A, x: jnp.einsum("kij,kj->ki", A, x)
    back = lambda A, x: jnp.einsum("kij,ki->kj", A, x)
    gr = back(f.T, r.g + times(b.H, t)) + back(F, times(f.P, drift))
    A = F[:, :, nw:] - F[:, :, :nw] @ f.K
    own_p = gr[:, nw:] - back(f.K, gr[:, :nw])
    weight = _end_weight(b)
    pN = r.gN + weight * (b.BN.T @ r.bN)

    def backwards(p, stage):
        A, own = stage
        return A.T @ p + own, p

    p0, p = jax.lax.scan(backwards, pN, (A, own_p), reverse=True)
    qw = gr[:, :nw] + back(F[:, :, :nw], p)
    kw = jax.vmap(lambda L, q: solve_triangular(L, solve_triangular(L, q, lower=True), lower=True, trans=1))(f.L, qw)
    n = r.bN + jnp.einsum("kij,ki->j", f.M, drift - times(F[:, :, :nw], kw))
    right = jnp.concatenate([-(p0 + r.g0), -n, -r.b0])
    first = lu_solve(f.dense, right)
    s0, end, start = jnp.split(first, [ns, ns + b.BN.shape[0]])
    kw = kw + f.K_nu @ end

    def forwards(s, stage):
        A, own = stage
        return A @ s + own, s

    sN, s = jax.lax.scan(forwards, s0, (A, drift - times(F[:, :, :nw], kw)))
    z = times(f.T, jnp.concatenate([-kw - times(f.K, s), s], axis=1)) + t
    costate = p + times(f.P, z[:, -ns:]) + f.M @ end
    load = (r.g + times(b.H, z)).at[:, -ns:].add(costate)[:, dependent]
    # p was built for the point that the drift leads to, so P acts on the whole s'
    multipliers = -jax.vmap(lambda lu, x: lu_solve(lu, x, trans=1))(f.lu, load)
    return Step(jnp.concatenate([s, sN[None]]), z[:, ns:-ns], multipliers, start, end)
