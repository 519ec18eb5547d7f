"""Derivatives of an optimum in the numbers of its problem.

At the end of the interior-point method the conditions of optimality `R(w; p) = 0` hold, w being variables, slacks and
multipliers and p the problem's numbers; so `dw = -R_w^-1 dR`, with the matrix of Newton's method. Inequalities enter as
they do there, with the barrier parameter at which the method ended: those that bind stay binding, to that parameter.
A step of Newton's method, with its matrix held constant, is linear in the derivatives of R, which gives both modes.

Fiacco, "Introduction to sensitivity and stability analysis in nonlinear programming", 1983.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.trajopt._interior_point import Loop, optimise, scaled
from jaxdyn.trajopt._interior_point_barrier import directed, misfits, regularised, stiffened, weights
from jaxdyn.trajopt._interior_point_program import Program


def implicit(run, moved, numbers, others):
    """`run(numbers, others) -> (state, out)`, of which out has the derivatives of `moved(numbers, state)`.

    The state, and what depends on `others`, is constant to differentiation. Both are pytrees of arrays; numbers are a
    list.
    """
    run = jax.custom_jvp(run)

    @run.defjvp
    def run_jvp(primals, tangents):
        state, out = run(*primals)
        return (state, out), (
            jax.tree.map(_still, state),
            jax.jvp(lambda numbers: moved(numbers, state), primals[:1], tangents[:1])[1],
        )

    return run(numbers, others)


def optimum(build, numbers, tolerance, max_iterations: int, progress, mu):
    """The last state of the method, and its variables s, m and the cost with derivatives in `numbers`.

    `build(numbers)` is the program; numbers are a list of arrays.
    """

    def run(numbers, others):
        loop = optimise(build(numbers), others[0], max_iterations, progress, others[1])
        return loop, (loop.it.s, loop.it.m, loop.values.cost / loop.scale)

    moved = lambda numbers, loop: _moved(build(numbers), jax.lax.stop_gradient(build(numbers)), loop)
    return implicit(run, moved, numbers, (tolerance, mu))


def _still(x):
    exact = jnp.issubdtype(x.dtype, jnp.inexact)
    return jnp.zeros_like(x) if exact else np.zeros(x.shape, jax.dtypes.float0)


def _moved(program: Program, still: Program, loop: Loop):
    """One step of Newton's method for a program, and its cost there, with the matrix of the program `still`."""
    it, stop = loop.it, jax.lax.stop_gradient
    seen = program.seen(it.s, it.m)
    values, d = scaled(*program.slopes(it.s, it.m, seen), loop.scale)
    same = stop((seen, d))
    blocks = stiffened(still.blocks(it.s, it.m, *same, weights(it), loop.scale), it, same[1])
    f, _, sound = regularised(still, blocks, jnp.zeros((), it.s.dtype), 0.0)
    shape, gap = program.layout.shape, misfits(program.limits(), it, values)
    step = directed(shape, stop(f), d, it, values, gap, loop.mu).step
    change = lambda x: jnp.where(sound & jnp.isfinite(stop(x)).all(), x, jnp.nan * stop(x))
    ds, dm = change(step.s), change(step.m)
    z = jnp.concatenate([ds[:-1], dm, ds[1:]], axis=1)
    dcost = jnp.sum(same[1].cost * z) + same[1].cost_end @ ds[-1]
    return it.s + ds, it.m + dm, (values.cost + dcost) / loop.scale
