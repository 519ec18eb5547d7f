"""Riccati equations of linear-quadratic control, differentiated by the implicit function theorem.

The discrete equation is solved by doubling: with `A_0 = A`, `G_0 = B R^-1 B^T`, `H_0 = Q`,

    W = 1 + G_k H_k,                           A_{k+1} = A_k W^-1 A_k,
    G_{k+1} = G_k + A_k W^-1 G_k A_k^T,        H_{k+1} = H_k + A_k^T H_k W^-1 A_k

H converges to the stabilising solution as `rho^(2^k)`, where rho is the spectral radius of the closed loop (Chu, Fan,
Lin and Wang 2004). A Cayley transform maps the continuous equation to a discrete one with the same solution (Chu, Fan
and Lin 2005).
"""

import functools as ft

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._status import Status
from jaxdyn._types import Array, Float, Int

_MAX_DOUBLINGS = 60


class RiccatiStatus(Status):
    """Outcome of the solution of a Riccati equation."""

    SOLVED = 0, "the stabilising solution was found"
    NOT_STABILISABLE = (
        1,
        "the residual is too large: (A, B) is not stabilisable, or an unstable mode is not detectable through Q",
    )
    NOT_FINITE = 2, "an argument has entries that are not finite, or R is not positive definite; cost and gain are zero"


class Riccati(eqx.Module):
    """Result of `continuous_riccati` and `discrete_riccati`: `cost-to-go = x^T P x`, `u = -K x`."""

    #: P
    cost: Float[Array, "n n"]
    #: K
    gain: Float[Array, "m n"]
    #: largest residual of the equation, relative to its largest term
    residual: Float[Array, ""]
    #: a `RiccatiStatus`
    status: Int[Array, ""]


def _symmetrise(x):
    return (x + x.T) / 2


def _solve_by_doubling(a, g, h):
    """The limit H of the doubling iteration."""
    n = a.shape[0]
    eps = jnp.finfo(a.dtype).eps

    def is_running(state):
        _, _, h, change, k = state
        return (change > 2 * eps * jnp.max(jnp.abs(h))) & (k < _MAX_DOUBLINGS)

    def step(state):
        a, g, h, _, k = state
        w = jnp.linalg.solve(jnp.eye(n, dtype=a.dtype) + g @ h, jnp.concatenate([a, g], 1))
        wa, wg = w[:, :n], w[:, n:]
        increment = _symmetrise(a.T @ h @ wa)
        return a @ wa, _symmetrise(g + a @ wg @ a.T), h + increment, jnp.max(jnp.abs(increment)), k + 1

    return jax.lax.while_loop(is_running, step, (a, g, h, jnp.asarray(jnp.inf, a.dtype), 0))[2]


def _cayley_transform(a, g, h):
    """Matrices A, G, H of the discrete equation with the same solution as `A^T P + P A - P G P + H = 0`."""
    eye = jnp.eye(a.shape[0], dtype=a.dtype)
    shift = 2 * jnp.maximum(jnp.max(jnp.sum(jnp.abs(a), 1)), jnp.sqrt(jnp.max(jnp.abs(g)) * jnp.max(jnp.abs(h))))
    shift = jnp.where(shift > 0, shift, 1)
    low = a - shift * eye
    inverse = jnp.linalg.inv(low)
    w = low.T + h @ inverse @ g
    back = jnp.linalg.inv(w)
    return (
        eye + 2 * shift * back.T,
        _symmetrise(2 * shift * inverse @ g @ back),
        _symmetrise(2 * shift * back @ h @ inverse),
    )


def _solve_matrix_equation(left, right):
    """Solves `left(X) = right` for X, with a linear map of matrices, by one dense solve."""
    n = right.shape[0]
    columns = jax.vmap(lambda x: left(x.reshape(n, n)).ravel())(jnp.eye(n * n, dtype=right.dtype)).T
    return jnp.linalg.solve(columns, right.ravel()).reshape(n, n)


def _continuous_equation(p, a, g, h):
    return a.T @ p + p @ a - p @ g @ p + h


def _discrete_equation(p, a, g, h):
    return a.T @ p @ jnp.linalg.solve(jnp.eye(a.shape[0], dtype=a.dtype) + g @ p, a) + h - p


@ft.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _solution(prepare, equation, a, g, h):
    return _solve_by_doubling(*prepare(a, g, h))


@_solution.defjvp
def _solution_jvp(prepare, equation, primals, tangents):
    p = _solution(prepare, equation, *primals)
    _, change = jax.jvp(lambda *x: equation(p, *x), primals, tangents)
    linear_map = lambda x: jax.jvp(lambda p: equation(p, *primals), (p,), (x,))[1]
    return p, _symmetrise(_solve_matrix_equation(linear_map, -change))


def _continuous_gain(p, a, b, r):
    return jnp.linalg.solve(r, b.T @ p)


def _discrete_gain(p, a, b, r):
    return jnp.linalg.solve(r + b.T @ p @ b, b.T @ p @ a)


def _identity(a, g, h):
    return a, g, h


@eqx.filter_jit  # a loop outside of a compiled function is compiled at every call
def _solve_riccati(prepare, equation, a, b, q, r, gain) -> Riccati:
    q, r = _symmetrise(q), _symmetrise(r)
    factor = jnp.linalg.cholesky(r)
    valid = jnp.all(jnp.stack([jnp.all(jnp.isfinite(x)) for x in (a, b, q, factor)]))
    n, m = b.shape
    # invalid arguments are replaced by an equation with a finite solution, so that derivatives are finite
    a, b = jnp.where(valid, a, -jnp.eye(n, dtype=a.dtype) / 2), jnp.where(valid, b, 0)
    q, r = jnp.where(valid, q, jnp.eye(n, dtype=q.dtype)), jnp.where(valid, r, jnp.eye(m, dtype=r.dtype))
    g = _symmetrise(b @ jnp.linalg.solve(r, b.T))
    p = _solution(prepare, equation, a, g, q)
    solved = jnp.all(jnp.isfinite(p))
    p = jnp.where(solved & valid, p, 0)
    error = jnp.max(jnp.abs(equation(p, a, g, q)))
    size = jnp.max(jnp.abs(q)) + jnp.max(jnp.abs(a.T @ p)) + jnp.max(jnp.abs(p))
    residual = error / jnp.where(size > 0, size, 1)
    code = RiccatiStatus
    accurate = solved & (residual < jnp.finfo(a.dtype).eps ** 0.5)
    status = jnp.where(valid, jnp.where(accurate, code.SOLVED, code.NOT_STABILISABLE), code.NOT_FINITE)
    k = jnp.where(valid, gain(p, a, b, r), 0)
    return Riccati(p, k, residual, jax.lax.stop_gradient(status).astype(jnp.int32))


def continuous_riccati(
    a: Float[Array, "n n"], b: Float[Array, "n m"], q: Float[Array, "n n"], r: Float[Array, "m m"]
) -> Riccati:
    """Solves `A^T P + P A - P B R^-1 B^T P + Q = 0`, with `K = R^-1 B^T P`, for `xdot = A x + B u`.

    `u = -K x` minimises the integral of `x^T Q x + u^T R u`. Q is positive semidefinite and R positive definite.
    Differentiable with respect to all arguments, by a Lyapunov equation of the closed loop. Anderson and Moore 1990,
    section 3.1.
    """
    a, b, q, r = (jnp.asarray(x) for x in (a, b, q, r))
    return _solve_riccati(_cayley_transform, _continuous_equation, a, b, q, r, _continuous_gain)


def discrete_riccati(
    a: Float[Array, "n n"], b: Float[Array, "n m"], q: Float[Array, "n n"], r: Float[Array, "m m"]
) -> Riccati:
    """Solves `P = A^T P A - A^T P B (R + B^T P B)^-1 B^T P A + Q` for `x+ = A x + B u`.

    `u = -K x` with `K = (R + B^T P B)^-1 B^T P A` minimises the sum of `x^T Q x + u^T R u`. Differentiable with respect
    to all arguments, by a Stein equation of the closed loop. Anderson and Moore 1990, section 2.4.
    """
    a, b, q, r = (jnp.asarray(x) for x in (a, b, q, r))
    return _solve_riccati(_identity, _discrete_equation, a, b, q, r, _discrete_gain)


def riccati_along(
    times: Float[Array, " rows"],
    a: Float[Array, "rows n n"],
    b: Float[Array, "rows n m"],
    q: Float[Array, "n n"],
    r: Float[Array, "m m"],
    final: Float[Array, "n n"],
) -> tuple[Float[Array, "rows n n"], Float[Array, "rows m n"]]:
    """Integrates `-Pdot = A^T P + P A - P B R^-1 B^T P + Q`, `P(end) = final`, for tables of A and B over time.

    Returns P and K at the `times` (s). Between rows A and B are constant at their mean, for which `P = Y X^-1` with
    `(X; Y) = exp(h [[-A, G], [Q, A^T]]) (1; P_next)` is exact: of second order in the intervals, and stable for any.
    """
    return _integrate_riccati(*(jnp.asarray(x) for x in (times, a, b, q, r, final)))


@jax.jit  # a loop outside of a compiled function is compiled at every call
def _integrate_riccati(times, a, b, q, r, final):
    mean = lambda x: (x[1:] + x[:-1]) / 2
    n = a.shape[-1]
    gains = jnp.linalg.solve(r, jnp.swapaxes(b, -1, -2))

    def flow(h, a, b):
        g = b @ jnp.linalg.solve(r, b.T)
        return jax.scipy.linalg.expm(h * jnp.block([[-a, g], [q, a.T]]))

    def back(p, e):
        x, y = e[:n, :n] + e[:n, n:] @ p, e[n:, :n] + e[n:, n:] @ p
        p = _symmetrise(jnp.linalg.solve(x.T, y.T).T)
        return p, p

    flows = jax.vmap(flow)(jnp.diff(times), mean(a), mean(b))
    _, rows = jax.lax.scan(back, final, flows, reverse=True)
    costs = jnp.concatenate([rows, final[None]])
    return costs, gains @ costs
