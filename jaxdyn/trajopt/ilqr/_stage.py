"""One interval of a shooting method with held controls: next state, cost, and their expansions.

States and the running cost are integrated together by a step of the classical Runge-Kutta method, as in
`MultipleShooting`, so both methods have the same optimum. With `y_i(z)` the four points of the step,
`z = (x, u)`, the cost `l = h sum of w_i r(y_i, u)` has the Hessian `h sum of w_i Y_i^T r'' Y_i` up to second
derivatives of the dynamics, `Y_i = d(y_i, u)/dz` (Gauss and Newton).

Constraints other than control limits enter by an augmented Lagrangian: a row `a <= c <= b` with the multiplier y
and the penalty rho adds `rho/2 r^2 - y^2/(2 rho)`, `r = c + y/rho - clip(c + y/rho, a, b)` (Rockafellar 1974).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdyn._types import Array
from jaxdyn.trajopt.problem import AbstractImplicit, Problem
from jaxdyn.trajopt.transcription import path_limits, path_rows

_WEIGHTS = (1 / 6, 1 / 3, 1 / 3, 1 / 6)


class Multipliers(NamedTuple):
    """Multipliers of the rows at the starts of intervals `(N, rows)` and at the end, and the penalty."""

    inner: Array
    end: Array
    penalty: Array


class Expansion(NamedTuple):
    """Value, gradient and Hessian of a cost in z, and the Jacobian of the next state."""

    cost: Array
    gradient: Array
    hessian: Array
    next: Array
    #: None at the end
    jacobian: Any
    #: contribution of second derivatives of dynamics and constraints to the Hessian, or None
    bend: Array | None = None


def step_points(problem: Problem, t, h, x, u, push=None):
    """The four points of the step `(4, nx)`, their times, and the state at its end.

    The stages are steps of a loop, so that the dynamics and their derivatives are compiled once. `push` `(4, nx)` is
    added to the rates.
    """
    push = jnp.zeros((4, x.shape[0]), x.dtype) if push is None else push
    offsets, weights = (jnp.array(c, x.dtype) for c in ((0.0, 0.5, 0.5, 1.0), _WEIGHTS))

    def stage(carry, row):
        slope, end = carry
        offset, weight, push = row
        y, now = x + h * offset * slope, t + h * offset
        slope = problem.dynamics.rate(now, y, u) + push
        return (slope, end + h * weight * slope), (y, now)

    (_, end), (points, times) = jax.lax.scan(stage, (jnp.zeros_like(x), x), (offsets, weights, push))
    return points, times, end


def step(problem: Problem, t, h, x, u):
    """The state at the end of an interval and the cost of the interval."""
    points, times, end = step_points(problem, t, h, x, u)
    if problem.running is None:
        return end, jnp.zeros((), x.dtype)
    rates = jax.vmap(lambda t, y: problem.running_cost(t, y, u))(times, points)
    return end, h * (jnp.array(_WEIGHTS, x.dtype) @ rates)


def rows(problem: Problem, t, x, u):
    """Rows with limits at a node: the states, then the path constraints."""
    return jnp.concatenate([x, path_rows(problem, t, x, u)])


def row_limits(problem: Problem):
    """Limits of `rows`."""
    low, high = path_limits(problem)
    b = problem.bounds
    return jnp.concatenate([b.lower_state, low]), jnp.concatenate([b.upper_state, high])


def end_rows(problem: Problem, t, x, u):
    """Rows at the end: the rows of a node under the last controls, then the boundary condition."""
    return jnp.concatenate([rows(problem, t, x, u), problem.end.residual(x)])


def end_limits(problem: Problem, size: int):
    """Limits of `end_rows`, `size` of them."""
    low, high = row_limits(problem)
    zeros = jnp.zeros(size - low.shape[0], low.dtype)
    return jnp.concatenate([low, zeros]), jnp.concatenate([high, zeros])


def limit_violation(c, limits):
    """Signed violation of the limits by rows c."""
    return c - jnp.clip(c, *limits)


def augmented_lagrangian(c, y, rho, limits):
    """Contribution of rows to the augmented Lagrangian, and their updated multipliers `rho r`."""
    r = limit_violation(c + y / rho, limits)
    return jnp.sum(rho * r**2 / 2 - y**2 / (2 * rho)), rho * r


def _curvature(jacobian, c, y, rho, limits):
    active = (limit_violation(c + y / rho, limits) != 0) | (limits[0] == limits[1])
    return rho * (jacobian.T * active) @ jacobian


def stage_cost(problem: Problem, t, h, x, u, y, rho):
    """Next state, and augmented cost of an interval."""
    end, cost = step(problem, t, h, x, u)
    return end, cost + augmented_lagrangian(rows(problem, t, x, u), y, rho, row_limits(problem))[0]


def end_cost(problem: Problem, t, x, u, y, rho):
    """Augmented terminal cost."""
    c = end_rows(problem, t, x, u)
    return problem.final_cost(t, x) + augmented_lagrangian(c, y, rho, end_limits(problem, c.shape[0]))[0]


def expand(problem: Problem, t, h, x, u, y, rho, costate=None) -> Expansion:
    """Expansion of an interval about `z = (x, u)`; a costate adds second derivatives of dynamics and constraints."""
    n = x.shape[0]
    z = jnp.concatenate([x, u])

    def points(z):
        points, times, end = step_points(problem, t, h, z[:n], z[n:])
        whole = jnp.concatenate([points, jnp.broadcast_to(z[n:], (4, z.shape[0] - n))], 1)
        return (whole, end), (whole, times, end)

    (moves, jacobian), (places, times, end) = jax.jacfwd(points, has_aux=True)(z)
    cost, gradient, hessian = jnp.zeros((), x.dtype), jnp.zeros_like(z), jnp.zeros((z.shape[0],) * 2, x.dtype)
    if problem.running is not None:
        running = lambda t, w: problem.running_cost(t, w[:n], w[n:])
        weights = h * jnp.array(_WEIGHTS, x.dtype)
        values, slopes = jax.vmap(jax.value_and_grad(running, 1))(times, places)
        bends = jax.vmap(jax.hessian(running, 1))(times, places)
        cost = weights @ values
        gradient = jnp.einsum("i,ij,ijk->k", weights, slopes, moves)
        hessian = jnp.einsum("i,ijk,ijl,ilm->km", weights, moves, bends, moves)
    at = lambda z: rows(problem, t, z[:n], z[n:])
    c, by_z = at(z), jax.jacfwd(at)(z)
    limits = row_limits(problem)
    more, new = augmented_lagrangian(c, y, rho, limits)
    curved = _curvature(by_z, c, y, rho, limits)
    bend = None
    if costate is not None:
        weights = _rate_weights(problem, t, h, x, u, costate)
        curves = jax.vmap(lambda t, w, y: _rate_curvature(problem, t, w, y))(times, places, weights)
        bend = jnp.einsum("ijk,ijl,ilm->km", moves, curves, moves)
        if problem.path:
            bend = bend + jax.hessian(lambda z: jax.lax.stop_gradient(new) @ at(z))(z)
    return Expansion(cost + more, gradient + by_z.T @ new, hessian + curved, end, jacobian, bend)


def _rate_weights(problem: Problem, t, h, x, u, costate):
    """Derivatives `(4, nx)` of `costate . next + cost of the interval` with respect to the rates of the four points."""

    def total(push):
        points, times, end = step_points(problem, t, h, x, u, push)
        rates = jax.vmap(lambda t, y: problem.running_cost(t, y, u))(times, points)
        return costate @ end + h * (jnp.array(_WEIGHTS, x.dtype) @ rates)

    return jax.grad(total)(jnp.zeros((4, x.shape[0]), x.dtype))


def _rate_curvature(problem: Problem, t, z, weight):
    """Hessian of `weight . rate` with respect to `z = (x, u)`; implicit dynamics are not solved for it."""
    d, n, m = problem.dynamics, problem.nx, problem.nx + problem.nu
    if not isinstance(d, AbstractImplicit):
        return jax.hessian(lambda z: weight @ d.rate(t, z[:n], z[n:]))(z)
    y = d.unknowns(t, z[:n], z[n:])
    both = lambda zy: d.implicit(t, zy[:n], zy[n:m], zy[m:])
    rate, residual = jax.jacfwd(both)(jnp.concatenate([z, y]))
    turn = -jnp.linalg.solve(residual[:, m:], residual[:, :m])
    multipliers = jnp.linalg.solve(residual[:, m:].T, rate[:, m:].T @ weight)

    def lagrangian(dz):
        rate, residual = both(jnp.concatenate([z + dz, y + turn @ dz]))
        return weight @ rate - multipliers @ residual

    return jax.hessian(lagrangian)(jnp.zeros_like(z))


def expand_end(problem: Problem, t, x, u, y, rho, exact: bool = False) -> Expansion:
    """Expansion of the end about x; with second derivatives of its rows if `exact`."""
    at = lambda x: end_rows(problem, t, x, u)
    final = lambda x: problem.final_cost(t, x)
    c, by_x = at(x), jax.jacfwd(at)(x)
    limits = end_limits(problem, c.shape[0])
    more, new = augmented_lagrangian(c, y, rho, limits)
    gradient = jax.grad(final)(x) + by_x.T @ new
    bend = jax.hessian(lambda x: jax.lax.stop_gradient(new) @ at(x))(x) if exact else None
    hessian = jax.hessian(final)(x) + _curvature(by_x, c, y, rho, limits)
    return Expansion(final(x) + more, gradient, hessian, x, None, bend)
