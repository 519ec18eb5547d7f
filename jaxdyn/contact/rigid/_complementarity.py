"""The complementarity problem of contact with friction.

For all contacts find forces (or impulses) lambda and rates `u = G lambda + w` with

    0 <= lambda_n - l  perpendicular to  u_n >= 0,    |lambda_t| <= mu lambda_n,
    u_t = -k lambda_t,  k >= 0,  k (mu lambda_n - |lambda_t|) = 0

where a friction group with a known direction d of slip has `lambda_t = -mu lambda_n d` instead. The conditions are
equivalent to `R(lambda) = 0` with the projections of Alart and Curnier (1991), a semi-smooth equation on which Newton's
method converges locally in a few steps. The iteration starts at zero; while it does not converge, sweeps of projected
Gauss-Seidel iterations improve its starting point.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdyn._numerics import pseudo_inverse, safe_norm
from jaxdyn._types import Array, Bool, Float
from jaxdyn.contact.rigid._layout import Layout, gather_groups, scatter_groups

_ROUNDS = 40
_SWEEPS = 25
_NEWTON = 12
_PROXIMAL = 3


class ContactProblem(NamedTuple):
    """Data of the complementarity problem."""

    delassus: Float[Array, "rows rows"]
    bias: Float[Array, " rows"]
    #: 1 for the contacts of the problem, 0 for open ones
    takes_part: Float[Array, " contacts"]
    #: lower bounds of the normal forces
    least: Float[Array, " contacts"]
    #: radius of the friction cone of each group
    mu: Float[Array, " groups"]
    #: 1 for groups whose slip is known, and its direction in the rows
    slides: Float[Array, " groups"]
    directions: Float[Array, " rows"]


class ContactSolution(NamedTuple):
    """Forces along all rows, rates of all rows, and whether the conditions hold."""

    forces: Float[Array, " rows"]
    rates: Float[Array, " rows"]
    is_solved: Bool[Array, ""]


def solve_complementarity(layout: Layout, problem: ContactProblem) -> ContactSolution:
    """Solves the problem; the solution is differentiable with respect to all data within its modes.

    Forces of several contacts may not be unique, as those of a box on four corners. A compliance d, equal in all rows,
    selects them continuously: `u = G lambda + w + d (lambda - lambda_0)`, in which lambda_0 are the forces of the
    iteration before, so that the compliance vanishes in the limit (proximal point iteration).
    """
    if layout.num_contacts == 1:
        return _solve(layout, problem, jnp.zeros_like(problem.bias))
    d = jnp.finfo(problem.bias.dtype).eps ** 0.5 * jnp.max(jnp.diagonal(problem.delassus), initial=0)
    d = jax.lax.stop_gradient(jnp.maximum(d, jnp.finfo(d.dtype).tiny))
    soft = problem._replace(delassus=problem.delassus + d * jnp.eye(layout.num_rows, dtype=d.dtype))

    def improve(forces, _):
        solution = _solve(layout, soft._replace(bias=problem.bias - d * forces), jax.lax.stop_gradient(forces))
        return solution.forces, (solution.is_solved, jnp.max(jnp.abs(solution.forces - forces)))

    forces, (is_solved, change) = jax.lax.scan(improve, jnp.zeros_like(problem.bias), None, length=_PROXIMAL)
    # without a solution the forces grow in every iteration
    converges = change[-1] <= jnp.finfo(d.dtype).eps ** 0.3 * (1 + jnp.max(jnp.abs(forces)))
    rates = problem.delassus @ forces + problem.bias
    return ContactSolution(forces, rates, is_solved[-1] & converges)  # earlier iterations are starting points


def _solve(layout: Layout, problem: ContactProblem, start) -> ContactSolution:
    fixed = jax.lax.stop_gradient(problem)
    step = _step_sizes(layout, fixed)
    residual = lambda forces, p: _residual(layout, p, step, forces)
    scale = lambda forces: 1 + jnp.max(jnp.abs(forces), initial=0)
    tolerance = 64 * layout.num_rows * jnp.finfo(problem.bias.dtype).eps
    size = lambda forces: jnp.max(jnp.abs(residual(forces, fixed)), initial=0) / scale(forces)

    def newton(_, forces):
        r, jacobian = residual(forces, fixed), jax.jacfwd(residual)(forces, fixed)
        new = forces - _inverse(jacobian) @ r
        return jnp.where(jnp.all(jnp.isfinite(new)), new, forces)

    def attempt(state):
        start, best, k = state
        trial = jax.lax.fori_loop(0, _NEWTON, newton, start)
        is_better = size(trial) < size(best)
        best = jnp.where(is_better, trial, best)
        sweeps = jax.lax.fori_loop(0, _SWEEPS, lambda _, x: _sweep(layout, fixed, step, x), start)
        return sweeps, best, k + 1

    unsolved = lambda state: (size(state[1]) > tolerance) & (state[2] < _ROUNDS)
    _, forces, _ = jax.lax.while_loop(unsolved, attempt, (start, start, 0))
    is_solved = size(forces) <= 1e3 * tolerance
    # one more step with exact derivatives: d lambda = -R_lambda^-1 dR
    jacobian = jax.jacfwd(residual)(forces, fixed)
    forces = forces - jax.lax.stop_gradient(_inverse(jacobian)) @ residual(forces, problem)
    return ContactSolution(forces, problem.delassus @ forces + problem.bias, is_solved)


def _inverse(jacobian):
    return pseudo_inverse(jacobian, jnp.asarray(jnp.finfo(jacobian.dtype).eps ** 0.75, jacobian.dtype))[0]


def _step_sizes(layout: Layout, p: ContactProblem):
    """For each row the inverse of the diagonal of G, the smallest one of the group for the rows of a group."""
    diagonal = jnp.diagonal(p.delassus)
    largest = jnp.max(gather_groups(layout, diagonal), axis=1, initial=0)
    padded = scatter_groups(
        layout, jnp.zeros_like(diagonal).at[layout.normal].set(diagonal[layout.normal]), largest[:, None]
    )
    return 1 / jnp.where(padded > 0, padded, 1)


def _residual(layout: Layout, p: ContactProblem, step, forces):
    """R(lambda), with the dimension of a force."""
    trial = forces - step * (p.delassus @ forces + p.bias)
    normal = p.takes_part * jnp.maximum(trial[layout.normal], p.least)
    friction = _friction(layout, p, normal[layout.contact], gather_groups(layout, trial))
    target = jnp.zeros_like(forces).at[layout.normal].set(normal)
    return forces - scatter_groups(layout, target, friction)


def _friction(layout: Layout, p: ContactProblem, normal, trial):
    """Friction forces `(groups, 3)`: the trial forces, projected onto the friction cones."""
    radius = (p.mu * jnp.maximum(normal, 0))[:, None]
    length = safe_norm(trial, axis=1)[:, None]
    outside = length > radius
    target = jnp.where(outside, trial * radius / jnp.where(outside, length, 1), trial)
    target = jnp.where(p.slides[:, None] > 0, -radius * gather_groups(layout, p.directions), target)
    return jnp.where(p.takes_part[layout.contact][:, None] > 0, target, 0)


def _sweep(layout: Layout, p: ContactProblem, step, forces):
    """One sweep of projected Gauss-Seidel iterations over the contacts."""

    def visit(i, forces):
        row = jnp.asarray(layout.normal)[i]
        normal = jnp.maximum(forces[row] - step[row] * (p.delassus[row] @ forces + p.bias[row]), p.least[i])
        forces = forces.at[row].set(p.takes_part[i] * normal)
        trial = forces - step * (p.delassus @ forces + p.bias)
        friction = _friction(layout, p, forces[layout.normal][layout.contact], gather_groups(layout, trial))
        return jnp.where(jnp.asarray(layout.contact_of_row) == i, scatter_groups(layout, forces, friction), forces)

    return jax.lax.fori_loop(0, layout.num_contacts, visit, forces)
