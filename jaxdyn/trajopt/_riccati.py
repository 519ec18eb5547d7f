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

from jaxdyn._numerics import kernel
from jaxdyn.trajopt._small_matrices import inverse, inverse_kernel, negative_eigenvalues, product, sweep_kernel


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
    #: inverse of the dependent columns of C
    inverse: Any
    #: z in terms of (w, s): (N, z, w + s)
    T: Any
    #: value functions at the ends of the intervals: P and M, (N, s, s) and (N, s, nu)
    P: Any
    M: Any
    #: inverse of the second derivatives in w
    W: Any
    #: w = - K s - K_nu nu - ...
    K: Any
    K_nu: Any
    #: the dense system at the start and its inverse
    full: Any
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
    inverses, T, Hr = jax.vmap(lambda C, H: _reduced(shape, C, H))(blocks.C, blocks.H)
    nN = blocks.BN.shape[0]
    wide = jnp.concatenate([blocks.BN, jnp.zeros((nN == 0, ns), eye.dtype)])  # kernels take no empty arrays
    start = blocks.HN + _end_weight(blocks) * blocks.BN.T @ blocks.BN, wide.T, jnp.zeros((len(wide),) * 2, eye.dtype)
    (P0, M0, N0), (P, M, W, K, K_nu, pivots) = _recursion(nw, *start, T[:, -ns:], Hr)
    M0, N0, M, K_nu = M0[:, :nN], N0[:nN, :nN], M[:, :, :nN], K_nu[:, :, :nN]
    full, sound = _dense(blocks, P0, M0, N0, dual)
    sound = sound & jnp.isfinite(P0).all() & (pivots > 0).all()
    return Factors(blocks, inverses, T, P, M, W, K, K_nu, full, inverse(full)), sound


def _reduced_lanes(shape: Shape, C, H):
    """The dependent columns' inverse, T, and `T' H T`: with `z = (o, d)` and `d = X o` that is of blocks of H."""
    d = ns_columns(shape)
    o = np.concatenate([shape.ns + shape.free, np.arange(shape.ns)])
    columns = lambda a, at: jnp.concatenate([a[:, j : j + 1] for j in at], axis=1)
    rows = lambda a, at: jnp.concatenate([a[j : j + 1] for j in at])
    invert = inverse_kernel(None, columns(C, d))
    X = -product(invert, columns(C, o))
    Ho, Hd = rows(H, o), rows(H, d)
    Hod = columns(Ho, d)
    turned = jnp.swapaxes(X, 0, 1)
    Hr = columns(Ho, o) + product(Hod, X) + product(turned, columns(Hd, o) + product(columns(Hd, d), X))
    eye = jnp.broadcast_to(jnp.asarray(np.eye(len(o))[..., None], C.dtype), (len(o), len(o), X.shape[-1]))
    return invert, rows(jnp.concatenate([eye, X]), shape.order), Hr


def _recursion_lanes(nw: int, PN, MN, NN, F, Hr):
    """Value functions at the starts of all intervals out of that at the end."""
    lanes = max(x.shape[-1] for x in (PN, MN, NN, F, Hr))
    wide = lambda x: jnp.broadcast_to(x, (*x.shape[:-1], lanes))

    def back(carry, stage):
        P, M, N = carry
        F, Hr = stage
        turned, end = jnp.swapaxes(F, 0, 1), nw + F.shape[0]
        G, FM = Hr + product(turned, product(P, F)), product(turned, M)
        whole = [[G, FM], [jnp.swapaxes(FM, 0, 1), -N]]
        m, pivots = sweep_kernel(nw, jnp.concatenate([jnp.concatenate(row, axis=1) for row in whole]))
        P0, M0, N0 = m[nw:end, nw:end], m[nw:end, end:], -m[end:, end:]
        P0 = (P0 + jnp.swapaxes(P0, 0, 1)) / 2
        return (P0, M0, N0), (P, M, m[:nw, :nw], m[:nw, nw:end], m[:nw, end:], pivots)

    return jax.lax.scan(back, (wide(PN), wide(MN), wide(NN)), (wide(F), wide(Hr)), reverse=True)


_reduced, _recursion = kernel(_reduced_lanes), kernel(_recursion_lanes)


def _end_weight(blocks: Blocks):
    """A weight on the squares of the end's equations: it leaves the solution as it is, and more problems convex."""
    if blocks.BN.shape[0] == 0:
        return jnp.zeros((), blocks.H.dtype)
    size = jnp.max(jnp.abs(blocks.HN)) + jnp.max(jnp.abs(blocks.H))
    # as heavy as rounding allows: a weight too light calls problems without a minimum that have one at their ends
    heavy = jnp.clip(100 * size, 1.0, jnp.finfo(size.dtype).eps ** -0.45)
    return heavy / jnp.maximum(jnp.max(jnp.abs(blocks.BN)) ** 2, 1e-8)


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
    return full, negative_eigenvalues(full) == n0 + nN


def solved(shape: Shape, f: Factors, r: Right) -> Step:
    """The solution for one set of vectors, refined once with what the first one leaves of the equations."""

    def refined(step, _):
        more = _swept(shape, f, _left(f.blocks, step, r))
        return jax.tree.map(jnp.add, step, more), None

    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(lambda r: _swept(shape, f, r), r))
    return jax.lax.scan(refined, zeros, None, length=2)[0]


def _left(b: Blocks, step: Step, r: Right) -> Right:
    """The vectors with the matrix times a step added."""
    z = jnp.concatenate([step.s[:-1], step.m, step.s[1:]], axis=1)
    g = r.g + jnp.einsum("kij,kj->ki", b.H, z) + jnp.einsum("kij,ki->kj", b.C, step.multipliers)
    first, last = step.s[0], step.s[-1]
    return Right(
        g,
        r.c + jnp.einsum("kij,kj->ki", b.C, z),
        r.g0 + b.H0 @ first + b.B0.T @ step.start,
        r.b0 + b.B0 @ first,
        r.gN + b.HN @ last + b.BN.T @ step.end,
        r.bN + b.BN @ last,
    )


def _swept(shape: Shape, f: Factors, r: Right) -> Step:
    """Two sweeps of one matrix-vector product an interval."""
    ns, nw, dependent = shape.ns, len(shape.free), ns_columns(shape)
    b = f.blocks
    times = lambda A, x: jnp.einsum("kij,kj->ki", A, x)
    back = lambda A, x: jnp.einsum("kij,ki->kj", A, x)
    t = jnp.zeros_like(r.g).at[:, dependent].set(-times(f.inverse, r.c))
    F, drift = f.T[:, -ns:], t[:, -ns:]
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
    kw = times(f.W, qw)
    n = r.bN + jnp.einsum("kij,ki->j", f.M, drift - times(F[:, :, :nw], kw))
    right = jnp.concatenate([-(p0 + r.g0), -n, -r.b0])
    first = f.dense @ right
    first = first + f.dense @ (right - f.full @ first)
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
    multipliers = -back(f.inverse, load)
    return Step(jnp.concatenate([s, sN[None]]), z[:, ns:-ns], multipliers, start, end)
