"""Derivatives of an optimal trajectory with respect to the parameters of its problem.

At the solution the optimality conditions hold for the trajectory, the costates p and the multipliers y of active
rows. A step of Newton's method for these conditions, with its matrix held constant, is linear in the change of the
parameters and so gives derivatives in both modes (implicit function theorem). The matrix is that of a
linear-quadratic problem, with second derivatives of the dynamics, in which active controls stay at their limits. The
method of multipliers keeps active rows at their limits; its rate of convergence grows with the penalty.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn.trajopt.ilqr._algorithm import Iterate, Options, expand_trajectory, iterate, start_iterate, times_of
from jaxdyn.trajopt.ilqr._backward_pass import backward_pass, forward_pass, start_step
from jaxdyn.trajopt.ilqr._shooting_form import free_states
from jaxdyn.trajopt.ilqr._stage import Multipliers, end_limits, end_rows, limit_violation, row_limits, rows, step
from jaxdyn.trajopt.problem import Problem, differentiate_implicitly

_SWEEPS = 5


def optimise(problem: Problem, options: Options, x, u, multipliers: Multipliers | None, costate=None) -> Iterate:
    """The last iterate from a guess; its states and controls are differentiable with respect to the problem."""
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

    correct = lambda leaves, s: newton_step(build(leaves), jax.lax.stop_gradient(build(leaves)), s)
    s, (x, u) = differentiate_implicitly(run, correct, leaves, (traced, x, u, multipliers, costate))
    return s._replace(x=x, u=u)


def newton_step(problem: Problem, still: Problem, s: Iterate):
    """States and controls after one Newton step for a problem, with the matrix of the constant problem `still`."""
    m, b = s.multipliers, problem.bounds
    stages, end, _ = jax.lax.stop_gradient(expand_trajectory(still, s, exact=True))
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
        gains = backward_pass(*now, gaps, room, s.held, zero)
        start, worse = start_step(gains, free_states(problem), first, zero)
        line = forward_pass(*now, gaps, gains, start)
        dz = jnp.concatenate([line.dx[:-1], line.du], 1)
        y = y + m.penalty * (miss + jnp.einsum("kij,kj->ki", slopes, dz))
        y_end = y_end + m.penalty * (end_miss + end_slopes @ line.dx[-1])
        return (line.dx, line.du, y, y_end, bad | gains.bad | worse), None

    none = jnp.asarray(False)
    begin = jnp.zeros_like(s.x), jnp.zeros_like(s.u), jnp.zeros_like(miss), jnp.zeros_like(end_miss), none
    (dx, du, _, _, bad), _ = jax.lax.scan(sweep, begin, None, length=_SWEEPS)
    known = jnp.where(bad, jnp.nan, 1).astype(s.x.dtype)  # no derivative where there is no strict minimum
    return s.x + known * dx, s.u + known * du


def _active_rows(c, y, rho, limits):
    """Multipliers of the rows, distances of active rows from their limits, and the active set."""
    frozen, bounds = jax.lax.stop_gradient((c, limits))
    new = rho * limit_violation(frozen + y / rho, bounds)
    active = (new != 0) | (bounds[0] == bounds[1])
    limit = jnp.where(active, jnp.where(new > 0, limits[1], limits[0]), 0)
    return new, jnp.where(active, c - limit, 0), active


def _conditions(problem: Problem, s: Iterate):
    """Optimality conditions: gradients of the Lagrangian, gaps, residuals of active rows; the same at the end."""
    m, n = s.multipliers, problem.nx
    t, h = times_of(problem, s.u.shape[0])
    limits = row_limits(problem)

    def stage(t, x, u, x1, y, p):
        new, miss, _ = _active_rows(rows(problem, t, x, u), y, m.penalty, limits)

        def lagrangian(z):
            after, cost = step(problem, t, h, z[:n], z[n:])
            return cost + p @ after + new @ rows(problem, t, z[:n], z[n:])

        return jax.grad(lagrangian)(jnp.concatenate([x, u])), step(problem, t, h, x, u)[0] - x1, miss

    c = end_rows(problem, problem.duration, s.x[-1], s.u[-1])
    new, miss, _ = _active_rows(c, m.end, m.penalty, end_limits(problem, c.shape[0]))
    last = lambda x: problem.final_cost(problem.duration, x) + new @ end_rows(problem, problem.duration, x, s.u[-1])
    return *jax.vmap(stage)(t, s.x[:-1], s.u, s.x[1:], m.inner, s.costate), jax.grad(last)(s.x[-1]), miss


def _row_slopes(problem: Problem, s: Iterate):
    """Jacobians of the active rows."""
    m, n = s.multipliers, problem.nx
    t, _ = times_of(problem, s.u.shape[0])
    limits = row_limits(problem)

    def stage(t, x, u, y):
        at = lambda z: rows(problem, t, z[:n], z[n:])
        active = _active_rows(at(jnp.concatenate([x, u])), y, m.penalty, limits)[2]
        return jax.jacfwd(at)(jnp.concatenate([x, u])) * active[:, None]

    at = lambda x: end_rows(problem, problem.duration, x, s.u[-1])
    c = at(s.x[-1])
    active = _active_rows(c, m.end, m.penalty, end_limits(problem, c.shape[0]))[2]
    return jax.vmap(stage)(t, s.x[:-1], s.u, m.inner), jax.jacfwd(at)(s.x[-1]) * active[:, None]
