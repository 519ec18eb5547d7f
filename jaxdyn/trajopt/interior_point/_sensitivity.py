"""Derivatives of an optimum with respect to the parameters of its problem.

A solution of the interior-point method satisfies the optimality conditions `R(w; p) = 0`, where w are primal and dual
variables and p are the parameters. By the implicit function theorem `dw = -R_w^-1 R_p dp`, with the KKT matrix of
Newton's method. Bounds enter through their complementarity conditions at the final barrier parameter: active bounds
stay active. One Newton step with a constant KKT matrix is linear in the derivatives of R and therefore provides both
forward and reverse mode.

Fiacco, "Introduction to sensitivity and stability analysis in nonlinear programming", 1983.
"""

import jax
import jax.numpy as jnp

from jaxdyn.trajopt.interior_point._algorithm import LoopState, optimise, scale_cost
from jaxdyn.trajopt.interior_point._barrier import (
    add_barrier_hessian,
    factorise_with_inertia_correction,
    lagrange_multipliers,
    search_direction,
    slack_residuals,
)
from jaxdyn.trajopt.interior_point._lagrangian import interval_variables
from jaxdyn.trajopt.interior_point._program import Program
from jaxdyn.trajopt.problem import differentiate_implicitly


def differentiable_optimum(build, numbers, tolerance, max_iterations: int, progress, mu):
    """The final state of the method, and its variables s and m and cost with derivatives with respect to `numbers`.

    `build(numbers)` returns the program; `numbers` is a list of arrays.
    """

    def run(numbers, others):
        loop = optimise(build(numbers), others[0], max_iterations, progress, others[1])
        return loop, (loop.it.s, loop.it.m, loop.values.cost / loop.scale)

    newton_step = lambda numbers, loop: _newton_step(build(numbers), jax.lax.stop_gradient(build(numbers)), loop)
    return differentiate_implicitly(run, newton_step, numbers, (tolerance, mu))


def _newton_step(program: Program, constant: Program, loop: LoopState):
    """Variables and cost after one Newton step for `program`, with the KKT matrix of `constant`."""
    it, stop = loop.it, jax.lax.stop_gradient
    linearisations = program.linearise(it.s, it.m)
    values, d = scale_cost(*program.first_derivatives(it.s, it.m, linearisations), loop.scale)
    linearisations, d0 = stop((linearisations, d))
    blocks = constant.kkt_blocks(it.s, it.m, linearisations, d0, lagrange_multipliers(it), loop.scale)
    blocks = add_barrier_hessian(blocks, it, d0)
    f, _, is_minimum = factorise_with_inertia_correction(constant, blocks, jnp.zeros((), it.s.dtype), 0.0)
    residuals = slack_residuals(program.limits(), it, values)
    step = search_direction(program.layout.shape, stop(f), d, it, values, residuals, loop.mu).step
    # no derivative exists without a strict minimum
    valid = lambda x: jnp.where(is_minimum & jnp.isfinite(stop(x)).all(), x, jnp.nan * stop(x))
    ds, dm = valid(step.s), valid(step.m)
    dcost = jnp.sum(d0.cost * interval_variables(ds, dm)) + d0.cost_end @ ds[-1]
    return it.s + ds, it.m + dm, (values.cost + dcost) / loop.scale
