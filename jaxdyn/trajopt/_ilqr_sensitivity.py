"""Derivatives of a trajectory of differential dynamic programming in the numbers of its problem.

At the end the conditions of optimality hold for the motion, the costates p and the multipliers y of the rows that are
at a limit. A step of Newton's method for them, with its matrix held constant, is linear in what the numbers change,
which gives derivatives in both modes: `_sensitivity`. The matrix is that of a linear-quadratic problem, with second
derivatives of the dynamics, in which controls at a limit stay there. Rows at a limit are kept by the method of
multipliers, which here converges as fast as their penalty is large.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn.trajopt._ilqr import Iterate, Options, expanded, iterate, start_iterate, times_of
from jaxdyn.trajopt._ilqr_backward import along, backward, opened
from jaxdyn.trajopt._ilqr_stage import Multipliers, end_limits, end_rows, outside, row_limits, rows, step
from jaxdyn.trajopt._problem import Problem
from jaxdyn.trajopt._sensitivity import implicit
from jaxdyn.trajopt._shooting_form import free_states

_SWEEPS = 5


def optimised(problem: Problem, options: Options, x, u, multipliers: Multipliers | None, costate=None) -> Iterate:
    """The last iterate from a guess; its states and controls have derivatives in the numbers of the problem."""
    moving, fixed = eqx.partition(problem, eqx.is_array)
    leaves, treedef = jax.tree.flatten(moving)
    build = lambda leaves: eqx.combine(jax.tree.unflatten(treedef, leaves), fixed)
    traced = options._replace(progress=None, exact=None)

    def run(leaves, others):
        numbers, *guess = others
        given = numbers._replace(progress=options.progress, exact=options.exact)
        problem = build(leaves)
        s = iterate(problem, given, start_iterate(problem, given, *guess))
        return s, (s.x, s.u)

    moved = lambda leaves, s: moved_trajectory(build(leaves), jax.lax.stop_gradient(build(leaves)), s)
    s, (x, u) = implicit(run, moved, leaves, (traced, x, u, multipliers, costate))
    return s._replace(x=x, u=u)


def moved_trajectory(problem: Problem, still: Problem, s: Iterate):
    """States and controls after one step of Newton's method for a problem, with the matrix of the problem `still`."""
    m, b = s.multipliers, problem.bounds
    exact = Options(None, None, None, None, None, True)
    stages, end, _ = jax.lax.stop_gradient(expanded(still, exact, s))
    pull, gaps, miss, end_pull, end_miss = _conditions(problem, s)
    slopes, end_slopes = jax.lax.stop_gradient(_row_slopes(still, s))
    # the recursion finds costates, not their changes
    pull = pull - jnp.einsum("kij,ki->kj", stages.jacobian, s.costate)
    room = jnp.where(s.held < 0, b.lower_control - s.u, 0), jnp.where(s.held > 0, b.upper_control - s.u, 0)
    first = problem.start.value.astype(s.x.dtype) - s.x[0]
    zero = jnp.zeros((), s.x.dtype)

    def sweep(carry, _):
        *_, y, y_end, bad = carry
        by_row = jnp.einsum("kij,ki->kj", slopes, y + m.penalty * miss)
        by_end = end_slopes.T @ (y_end + m.penalty * end_miss)
        now = stages._replace(gradient=pull + by_row), end._replace(gradient=end_pull + by_end)
        gains = backward(*now, gaps, room, s.held, zero)
        start, worse = opened(gains, free_states(problem), first, zero)
        line = along(*now, gaps, gains, start)
        dz = jnp.concatenate([line.dx[:-1], line.du], 1)
        y = y + m.penalty * (miss + jnp.einsum("kij,kj->ki", slopes, dz))
        y_end = y_end + m.penalty * (end_miss + end_slopes @ line.dx[-1])
        return (line.dx, line.du, y, y_end, bad | gains.bad | worse), None

    none = jnp.asarray(False)
    begin = jnp.zeros_like(s.x), jnp.zeros_like(s.u), jnp.zeros_like(miss), jnp.zeros_like(end_miss), none
    (dx, du, _, _, bad), _ = jax.lax.scan(sweep, begin, None, length=_SWEEPS)
    known = jnp.where(bad, jnp.nan, 1).astype(s.x.dtype)  # no derivative where there is no strict minimum
    return s.x + known * dx, s.u + known * du


def _held_rows(c, y, rho, limits):
    """The rows' multipliers, how far those at a limit are from it, and which ones these are."""
    frozen, bounds = jax.lax.stop_gradient((c, limits))
    new = rho * outside(frozen + y / rho, bounds)
    active = (new != 0) | (bounds[0] == bounds[1])
    limit = jnp.where(active, jnp.where(new > 0, limits[1], limits[0]), 0)
    return new, jnp.where(active, c - limit, 0), active


def _conditions(problem: Problem, s: Iterate):
    """Gradients of the Lagrangian of all intervals, gaps, and misses of rows at a limit; the same of the end."""
    m, n = s.multipliers, problem.nx
    t, h = times_of(problem, s.u.shape[0])
    limits = row_limits(problem)

    def stage(t, x, u, x1, y, p):
        new, miss, _ = _held_rows(rows(problem, t, x, u), y, m.penalty, limits)

        def lagrangian(z):
            after, cost = step(problem, t, h, z[:n], z[n:])
            return cost + p @ after + new @ rows(problem, t, z[:n], z[n:])

        return jax.grad(lagrangian)(jnp.concatenate([x, u])), step(problem, t, h, x, u)[0] - x1, miss

    c = end_rows(problem, problem.duration, s.x[-1], s.u[-1])
    new, miss, _ = _held_rows(c, m.end, m.penalty, end_limits(problem, c.shape[0]))
    last = lambda x: problem.final_cost(problem.duration, x) + new @ end_rows(problem, problem.duration, x, s.u[-1])
    return *jax.vmap(stage)(t, s.x[:-1], s.u, s.x[1:], m.inner, s.costate), jax.grad(last)(s.x[-1]), miss


def _row_slopes(problem: Problem, s: Iterate):
    """Jacobians of the rows at a limit."""
    m, n = s.multipliers, problem.nx
    t, _ = times_of(problem, s.u.shape[0])
    limits = row_limits(problem)

    def stage(t, x, u, y):
        at = lambda z: rows(problem, t, z[:n], z[n:])
        active = _held_rows(at(jnp.concatenate([x, u])), y, m.penalty, limits)[2]
        return jax.jacfwd(at)(jnp.concatenate([x, u])) * active[:, None]

    at = lambda x: end_rows(problem, problem.duration, x, s.u[-1])
    c = at(s.x[-1])
    active = _held_rows(c, m.end, m.penalty, end_limits(problem, c.shape[0]))[2]
    return jax.vmap(stage)(t, s.x[:-1], s.u, m.inner), jax.jacfwd(at)(s.x[-1]) * active[:, None]
