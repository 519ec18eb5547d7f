"""Both modes of differentiation for functions that have forward mode only."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero


def moving_arrays(tangents: list) -> list[int]:
    """The positions of tangents that may differ from zero, in a rule with symbolic zeros."""
    is_zero = lambda dx: isinstance(dx, SymbolicZero) or dx.dtype == jax.dtypes.float0
    return [i for i, dx in enumerate(tangents) if not is_zero(dx)]


def dense_derivatives(f: Callable) -> Callable:
    """`f(xs)` of a list of arrays alone, with derivatives of any order as matrices that forward mode computes.

    A loop of unknown length has derivatives in forward mode only. With its Jacobian at hand, reverse mode is a product
    with the transpose. The Jacobian has columns for those arrays of xs that have tangents. f returns a pytree of
    floating-point arrays.
    """
    function = jax.custom_jvp(f)

    def rule(primals, tangents):
        (xs,), (dxs,) = primals, tangents
        moving = moving_arrays(dxs)

        def value_and_jacobian(xs):
            def with_value(inputs):
                everything = list(xs)
                for i, x in zip(moving, inputs, strict=True):
                    everything[i] = x
                y = f(everything)
                return y, y

            jacobian, y = jax.jacfwd(with_value, has_aux=True)([xs[i] for i in moving])
            return y, jax.tree.map(lambda value, columns: columns, y, jacobian)

        y, jacobian = dense_derivatives(value_and_jacobian)(xs)

        def product(value, columns):
            terms = [jnp.tensordot(j, dxs[i], dxs[i].ndim) for i, j in zip(moving, columns, strict=True)]
            return sum(terms, jnp.zeros_like(value))

        return y, jax.tree.map(product, y, jacobian)

    function.defjvp(rule, symbolic_zeros=True)
    return function
