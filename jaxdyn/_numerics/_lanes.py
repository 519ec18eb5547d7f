"""Lanes: runs a per-sample algorithm over a whole batch as wide vector code.

XLA on CPU gives `vmap` over a leading axis arrays such as `(4096, 3, 3)`, whose innermost loops have
length 3. With the batch *last*, every scalar of the algorithm is one contiguous vector
of samples. A kernel is a function written for that layout: each argument carries its structure in the
leading axes and one trailing axis of *lanes*, one lane per sample: of size 1 (shared by all samples) or `L`. A
kernel written with elementwise operations on components is batched without further effort.

`kernel` wraps such a function as an ordinary JAX function of one sample, with rules for:

* `vmap`: the batch axis becomes lanes; nested `vmap`s are merged into one axis;
* `jvp` and `transpose`: derivatives are kernels themselves (`_Jvp`, `_Vjp`), so any order and any
  nesting of transformations stays wide. The cotangent of an argument shared by the batch is summed
  inside the kernel instead of being written out for each sample;
* lowering: on CPU the batch is cut into blocks of lanes that stay in cache and each block is compiled
  as a single function, without per-operation dispatch (the attribute `xla_cpu_small_call`, which XLA
  itself uses for small loops; unknown attributes are ignored). On other platforms all lanes are
  lowered at once as plain operations.

`docs/performance.md` has the measurements.
"""

import functools as ft
import math
import operator
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import core
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from jaxdyn._numerics._block import block_p

BLOCK_LANES = 64
BLOCK_BYTES = 1 << 21
SUM_LANES = 8  # lanes of the running sums over blocks: XLA adds the numbers of one lane axis sequentially
CACHE_WAYS = 8
ALIGNED = 256  # samples of 16 bytes fill one way of a first-level cache

Flat = tuple[Any, ...]


@dataclass(frozen=True)
class _Fn:
    """A user's kernel: `fun(static, *args)` on lane-last arrays, with an optional custom pullback."""

    fun: Callable
    static: Hashable
    tree: Any
    custom_pullback: Callable | None

    def __call__(self, *flat):
        return tuple(jax.tree.leaves(self.fun(self.static, *self.tree.unflatten(flat))))

    def pullback(self, flat: Flat, wrt: tuple[int, ...], cts: Flat) -> Flat:
        if self.custom_pullback is None:
            return _pullback(self, flat, wrt, cts)
        args = self.custom_pullback(self.static, self.tree.unflatten(flat), cts)
        out = self.tree.flatten_up_to(args)
        return tuple(_broadcast_lanes(out[i], _num_lanes((*flat, *cts))) for i in wrt)


@dataclass(frozen=True)
class _Jvp:
    """Maps `(primals, tangents of the arguments in wrt)` to the tangents of the outputs."""

    base: Any
    num_in: int
    wrt: tuple[int, ...]

    def __call__(self, *flat):
        primals, tangents = flat[: self.num_in], flat[self.num_in :]
        pairs = [jnp.broadcast_arrays(primals[i], t) for i, t in zip(self.wrt, tangents, strict=True)]
        f = _restrict(self.base, primals, self.wrt)
        return jax.jvp(f, tuple(p for p, _ in pairs), tuple(t for _, t in pairs))[1]

    def pullback(self, flat: Flat, wrt: tuple[int, ...], cts: Flat) -> Flat:
        if all(i >= self.num_in for i in wrt):  # linear in the tangents: transpose of the base
            back = tuple(self.wrt[i - self.num_in] for i in wrt)
            return self.base.pullback(flat[: self.num_in], back, cts)
        return _pullback(self, flat, wrt, cts)


@dataclass(frozen=True)
class _Vjp:
    """Maps `(primals, cotangents of the outputs)` to the cotangents of the arguments in wrt."""

    base: Any
    num_in: int
    wrt: tuple[int, ...]

    def __call__(self, *flat):
        return self.base.pullback(flat[: self.num_in], self.wrt, flat[self.num_in :])

    def pullback(self, flat: Flat, wrt: tuple[int, ...], cts: Flat) -> Flat:
        return _pullback(self, flat, wrt, cts)


def _num_lanes(flat: Flat) -> int:
    sizes = [x.shape[-1] for x in flat]
    return 0 if 0 in sizes else max(sizes, default=1)


def _broadcast_lanes(x, lanes: int):
    return jnp.broadcast_to(x, (*x.shape[:-1], lanes))


def _restrict(fun: Callable, flat: Flat, wrt: tuple[int, ...]) -> Callable:
    def f(*active):
        full = list(flat)
        for i, x in zip(wrt, active, strict=True):
            full[i] = x
        return fun(*full)

    return f


def _pullback(fun: Callable, flat: Flat, wrt: tuple[int, ...], cts: Flat) -> Flat:
    lanes = _num_lanes((*flat, *cts))
    f = _restrict(fun, flat, wrt)
    wide = lambda *active: tuple(_broadcast_lanes(y, lanes) for y in f(*active))
    _, vjp = jax.vjp(wide, *(_broadcast_lanes(flat[i], lanes) for i in wrt))
    return vjp(tuple(_broadcast_lanes(ct, lanes) for ct in cts))


# --- the primitive -------------------------------------------------------------------------------

lanes_p = Primitive("lanes")
lanes_p.multiple_results = True


@ft.lru_cache(maxsize=4096)
def _event_avals(fun, avals):
    out = jax.eval_shape(fun, *(jax.ShapeDtypeStruct((*s, 1), d) for s, d in avals))
    return tuple((x.shape[:-1], x.dtype) for x in out)


def _batch_size(args, batched) -> int | None:
    return next((x.shape[0] for x, b in zip(args, batched, strict=True) if b), None)


def _abstract_eval(*args, fun, batched, reduced):
    size = _batch_size(args, batched)
    events = tuple((x.shape[1:] if b else x.shape, jnp.dtype(x.dtype)) for x, b in zip(args, batched, strict=True))
    lead = () if size is None else (size,)
    return [
        core.ShapedArray(shape if r else (*lead, *shape), dtype)
        for (shape, dtype), r in zip(_event_avals(fun, events), _reduction_flags(reduced, fun, events), strict=True)
    ]


def _reduction_flags(reduced, fun, events):
    return reduced if reduced else (False,) * len(_event_avals(fun, events))


@ft.lru_cache(maxsize=4096)
def _compile(fun, batched, reduced):
    return jax.jit(ft.partial(lanes_p.bind, fun=fun, batched=batched, reduced=reduced))


def _impl(*args, fun, batched, reduced):
    if jax.config.jax_disable_jit:  # pyright: ignore[reportAttributeAccessIssue]; jit would recurse into this rule
        return _evaluate_at_once(*args, fun=fun, batched=batched, reduced=reduced)
    return _compile(fun, batched, reduced)(*args)


lanes_p.def_abstract_eval(_abstract_eval)
lanes_p.def_impl(_impl)


def _jvp(primals, tangents, *, fun, batched, reduced):
    out = lanes_p.bind(*primals, fun=fun, batched=batched, reduced=reduced)
    wrt = tuple(i for i, t in enumerate(tangents) if type(t) is not ad.Zero)
    if not wrt:
        return out, [ad.Zero.from_primal_value(x) for x in out]  # pyright: ignore[reportAttributeAccessIssue]
    tangents_out = lanes_p.bind(
        *primals,
        *(tangents[i] for i in wrt),
        fun=_Jvp(fun, len(primals), wrt),
        batched=(*batched, *(batched[i] for i in wrt)),
        reduced=reduced,
    )
    return out, tangents_out


def _transpose(cts, *args, fun, batched, reduced):
    linear = tuple(i for i, x in enumerate(args) if ad.is_undefined_primal(x))
    if all(type(ct) is ad.Zero for ct in cts):
        return [None] * len(args)
    if isinstance(fun, _Jvp) and all(i >= fun.num_in for i in linear):  # the transpose of a JVP is the VJP of its base
        base, primals = fun.base, args[: fun.num_in]
        num_in, wrt = fun.num_in, tuple(fun.wrt[i - fun.num_in] for i in linear)
    else:
        base, num_in, wrt = fun, len(args), linear
        # `fun` is linear in these arguments, so that its pullback does not depend on their values
        primals = tuple(jnp.zeros(x.aval.shape, x.aval.dtype) if ad.is_undefined_primal(x) else x for x in args)
    any_batched = any(batched)
    reduced = reduced or (False,) * len(cts)
    out = lanes_p.bind(
        *primals,
        *(ad.instantiate_zeros(ct) for ct in cts),
        fun=_Vjp(base, num_in, wrt),
        batched=(*batched[:num_in], *(any_batched and not r for r in reduced)),
        reduced=tuple(any_batched and not batched[i] for i in linear),
    )
    result: list = [None] * len(args)
    for i, ct in zip(linear, out, strict=True):
        result[i] = ct
    return result


def _batch(args, dims, *, fun, batched, reduced):
    args = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    size = next(x.shape[0] for x, d in zip(args, dims, strict=True) if d is not None)
    inner = next((x.shape[0 if d is None else 1] for x, d, b in zip(args, dims, batched, strict=True) if b), None)
    if inner is None:  # the first batch becomes the lanes
        new = tuple(d is not None for d in dims)
        out = lanes_p.bind(*args, fun=fun, batched=new, reduced=())
        return out, [0] * len(out)
    # a nested batch is merged with the lanes into one axis
    merged, new = [], []
    for x, d, b in zip(args, dims, batched, strict=True):
        if d is None and not b:
            merged.append(x)
        else:
            x = x[None] if d is None else (x if b else x[:, None])
            event = x.shape[2:]
            merged.append(jnp.broadcast_to(x, (size, inner, *event)).reshape(size * inner, *event))
        new.append(d is not None or b)
    out = lanes_p.bind(*merged, fun=fun, batched=tuple(new), reduced=())
    out = [y.reshape(size, inner, *y.shape[1:]) for y in out]
    if reduced:  # cotangents are summed over the inner batch only
        out = [y.sum(1) if r else y for y, r in zip(out, reduced, strict=True)]
    return out, [0] * len(out)


ad.primitive_jvps[lanes_p] = _jvp
ad.primitive_transposes[lanes_p] = _transpose
batching.primitive_batchers[lanes_p] = _batch


# --- lowering ------------------------------------------------------------------------------------


def _to_lanes(x, batched: bool):
    return jnp.moveaxis(x, 0, -1) if batched else x[..., None]


def _evaluate_block(call: Callable, args, batched, reduced, valid=None, sum_lanes=lambda y: y.sum(-1)):
    """Evaluates one block; arguments and results are batch-first, or summed over the batch if `reduced`."""
    lanes = _batch_size(args, batched)
    out = call(*(_to_lanes(x, b) for x, b in zip(args, batched, strict=True)))
    if lanes is None:
        return [y[..., 0] for y in out]
    out = [_broadcast_lanes(y, lanes) for y in out]
    reduced = reduced or (False,) * len(out)
    if valid is not None:
        out = [jnp.where(valid, y, 0) if r else y for y, r in zip(out, reduced, strict=True)]
    return [sum_lanes(y) if r else jnp.moveaxis(y, -1, 0) for y, r in zip(out, reduced, strict=True)]


def _fold_lanes(y):
    """Adds the lanes that are `SUM_LANES` apart."""
    return ft.reduce(operator.add, (y[..., k : k + SUM_LANES] for k in range(0, y.shape[-1], SUM_LANES)))


def _evaluate_at_once(*args, fun, batched, reduced):
    return _evaluate_block(fun, args, batched, reduced)


def _block_size(size: int, event_bytes: int, results: int) -> tuple[int, int]:
    """Lanes per block and number of blocks, without padding if the batch has a suitable divisor.

    If the number of samples is a multiple of `ALIGNED`, all results begin in the same cache set; with at least as many
    results as the cache has ways they evict each other in the loop that reads them together. Such a batch is padded to
    another size.
    """
    target = max(SUM_LANES, min(BLOCK_LANES, BLOCK_BYTES // max(event_bytes, 1) // SUM_LANES * SUM_LANES))
    if size <= target:
        return size, 1
    if results >= CACHE_WAYS and size % ALIGNED == 0:
        blocks = lambda lanes: size // lanes + 1  # one more than necessary if lanes divide the batch
        least = max(1, target * 3 // 4 // SUM_LANES) * SUM_LANES
        lanes = min(range(least, target * 3 // 2 + 1, SUM_LANES), key=lambda x: blocks(x) * x)
        return lanes, blocks(lanes)
    for lanes in range(target, target // 2 - 1, -1):
        if size % lanes == 0 and lanes % SUM_LANES == 0:
            return lanes, size // lanes
    blocks = math.ceil(size / target)
    lanes = math.ceil(math.ceil(size / blocks) / SUM_LANES) * SUM_LANES
    return lanes, math.ceil(size / lanes)


def _evaluate_in_blocks(*args, fun, batched, reduced):
    args = jax.lax.optimization_barrier(args)  # XLA's emitter aborts on operands that can be folded to constants
    call = ft.partial(block_p.bind, fun=fun)
    size = _batch_size(args, batched)
    if size is None or size == 0:
        return _evaluate_block(call if size is None else fun, args, batched, reduced)
    outs = _abstract_eval(*args, fun=fun, batched=batched, reduced=())
    traffic = sum(x.size // x.shape[0] * x.dtype.itemsize for x in outs)
    traffic += sum(x.size // size * x.dtype.itemsize for x, b in zip(args, batched, strict=True) if b)
    reduced = reduced or (False,) * len(outs)
    lanes, blocks = _block_size(size, traffic, len(outs) - sum(reduced))
    if blocks == 1:
        return _evaluate_block(call, args, batched, reduced)
    pad = blocks * lanes - size

    def cut(x):
        if pad:
            x = jnp.concatenate([x, jnp.broadcast_to(x[-1:], (pad, *x.shape[1:]))])
        return x.reshape(blocks, lanes, *x.shape[1:])

    def step(totals, xs):
        k, cut_args = xs
        it = iter(cut_args)
        full = [next(it) if b else x for x, b in zip(args, batched, strict=True)]
        valid = k * lanes + jnp.arange(lanes, dtype=jnp.int32) < size if pad else None
        out = _evaluate_block(call, full, batched, reduced, valid, _fold_lanes)
        sums = [y for y, r in zip(out, reduced, strict=True) if r]
        return [t + s for t, s in zip(totals, sums, strict=True)], [
            y for y, r in zip(out, reduced, strict=True) if not r
        ]

    totals = [jnp.zeros((*o.shape[1:], SUM_LANES), o.dtype) for o, r in zip(outs, reduced, strict=True) if r]
    xs = [cut(x) for x, b in zip(args, batched, strict=True) if b]
    totals, stacked = jax.lax.scan(step, totals, (jnp.arange(blocks, dtype=jnp.int32), xs))
    totals, stacked = (t.sum(-1) for t in totals), iter(stacked)
    return [
        next(totals) if r else next(stacked).reshape(blocks * lanes, *o.shape[1:])[:size]
        for o, r in zip(outs, reduced, strict=True)
    ]


mlir.register_lowering(lanes_p, mlir.lower_fun(_evaluate_at_once, multiple_results=True))
mlir.register_lowering(lanes_p, mlir.lower_fun(_evaluate_in_blocks, multiple_results=True), platform="cpu")


# --- public interface ----------------------------------------------------------------------------


def kernel(fun: Callable, *, pullback: Callable | None = None) -> Callable:
    """Turns `fun(static, *args)` on lane-last arrays into a function of one sample.

    `args` are pytrees of floating-point arrays; `static` is hashable. The result is a pytree of arrays,
    each with a trailing lane axis. `pullback(static, args, cotangents)`, if given, replaces reverse-mode
    differentiation of `fun` at first order; it receives and returns lane-last arrays as well and is
    differentiated itself for higher orders.
    """

    def call(static, *args):
        flat, tree = jax.tree.flatten(args)
        flat = [_strip_weak_type(x) for x in flat]
        fn = _Fn(fun, static, tree, pullback)
        out = lanes_p.bind(*flat, fun=fn, batched=(False,) * len(flat), reduced=())
        return _out_tree(fn, tuple((x.shape, jnp.dtype(x.dtype)) for x in flat)).unflatten(out)

    return ft.wraps(fun)(call)


@ft.lru_cache(maxsize=4096)
def _out_tree(fn: _Fn, avals):
    args = fn.tree.unflatten([jax.ShapeDtypeStruct((*s, 1), d) for s, d in avals])
    return jax.tree.structure(jax.eval_shape(ft.partial(fn.fun, fn.static), *args))


def _strip_weak_type(x):
    x = jnp.asarray(x)
    return jax.lax.convert_element_type(x, x.dtype)
