"""A block of lanes as one function for XLA's CPU compiler, if its emitter supports all operations of the block."""

import functools as ft
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
from jax import core
from jax.extend.core import Primitive
from jax.interpreters import mlir

block_p = Primitive("lanes_block")
block_p.multiple_results = True

# Primitives that XLA's whole-function emitter is known to support. A block with any other primitive is lowered as
# ordinary operations: matrix products, scatters, sorts and library calls, which a user's joint may contain, and sums
# along an axis, which XLA replaces by a library call when they are large. Hot kernels add components explicitly.
_EMITTABLE = frozenset(
    """abs acos acosh add add_any and asin asinh atan atan2 atanh broadcast_in_dim cbrt ceil clamp closed_call
    concatenate cond convert_element_type copy copy_p cos cosh custom_jvp_call custom_vjp_call div dynamic_slice
    dynamic_update_slice eq erf exp exp2 expand_dims expm1 floor gather ge gt integer_pow iota is_finite jit le
    log log1p logistic lt max min mul ne neg nextafter not optimization_barrier or pad pjit platform_index pow
    reduce_and reduce_or rem reshape rev round rsqrt scan select_n shift_left shift_right_arithmetic
    shift_right_logical sign sin sinh slice split sqrt square squeeze stack stop_gradient sub tan tanh transpose
    unstack while xor zeros_like""".split()
)


def _is_emittable_equation(eqn) -> bool:
    if eqn.primitive.name == "reduce_sum":  # a sum over axes of length one is a reshape
        return all(eqn.invars[0].aval.shape[k] == 1 for k in eqn.params["axes"])
    return eqn.primitive.name in _EMITTABLE


def _is_emittable(jaxpr) -> bool:
    inner = (sub for eqn in jaxpr.eqns for sub in _jaxprs_in(eqn.params.values()))
    return all(map(_is_emittable_equation, jaxpr.eqns)) and all(map(_is_emittable, inner))


def _jaxprs_in(values):
    for x in values:
        if isinstance(x, (tuple, list)):
            yield from _jaxprs_in(x)
        elif isinstance(x, jax.extend.core.ClosedJaxpr):
            yield x.jaxpr
        elif isinstance(x, jax.extend.core.Jaxpr):
            yield x


@ft.lru_cache(maxsize=4096)
def _trace(fun, avals):
    return jax.make_jaxpr(fun)(*(jax.ShapeDtypeStruct(*a) for a in avals))


def _outline(jaxpr):
    def outlined(*flat):
        # XLA's emitter aborts on an unused parameter, so this sum reads every parameter.
        touched = sum(x.reshape(-1)[0].astype(jnp.float32) for x in flat if x.size)
        return (*jax.extend.core.jaxpr_as_fun(jaxpr)(*flat), touched)

    return jax.jit(outlined)


def _abstract_block(*args, fun):
    jaxpr = _trace(fun, tuple((x.shape, jnp.dtype(x.dtype)) for x in args))
    return [core.ShapedArray(x.shape, x.dtype) for x in jaxpr.out_avals]


block_p.def_abstract_eval(_abstract_block)


def _lower_block(ctx, *args, fun):
    jaxpr = _trace(fun, tuple((x.shape, jnp.dtype(x.dtype)) for x in ctx.avals_in))
    if not _is_emittable(jaxpr.jaxpr) or not all(x.size for x in ctx.avals_in):
        return mlir.lower_fun(jax.extend.core.jaxpr_as_fun(jaxpr), multiple_results=True)(ctx, *args)
    ctx = ctx.replace(avals_out=[*ctx.avals_out, core.ShapedArray((), jnp.float32)])
    out = mlir.lower_fun(_outline(jaxpr), multiple_results=True)(ctx, *args)
    call = jax.tree.leaves(list(out))[0].owner
    if call.name == "func.call":
        text = mlir.ir.StringAttr.get
        hints: dict[str, Any] = {"xla_cpu_small_call": text("true"), "inlineable": text("false")}
        call.attributes["mhlo.frontend_attributes"] = mlir.ir.DictAttr.get(hints)
    return out[:-1]


mlir.register_lowering(block_p, _lower_block)
