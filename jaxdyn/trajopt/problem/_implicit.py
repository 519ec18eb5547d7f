"""Derivatives of the result of an iteration, by the implicit function theorem."""

import jax
import jax.numpy as jnp
import numpy as np


def differentiate_implicitly(run, newton_step, numbers, others):
    """`run(numbers, others) -> (state, out)`, where out has the derivatives of `newton_step(numbers, state)`.

    `newton_step` returns out after one step of Newton's method from the converged state. The state and `others` have
    no derivatives. State and out are pytrees of arrays; `numbers` is a list of arrays.
    """
    run = jax.custom_jvp(run)

    @run.defjvp
    def run_jvp(primals, tangents):
        state, out = run(*primals)
        return (state, out), (
            jax.tree.map(_zero_tangent, state),
            jax.jvp(lambda numbers: newton_step(numbers, state), primals[:1], tangents[:1])[1],
        )

    return run(numbers, others)


def _zero_tangent(x):
    inexact = jnp.issubdtype(x.dtype, jnp.inexact)
    return jnp.zeros_like(x) if inexact else np.zeros(x.shape, jax.dtypes.float0)
