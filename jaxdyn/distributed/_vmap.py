"""`vmap` over devices."""

import functools as ft
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.extend
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from jaxdyn._errors import ShapeError
from jaxdyn.distributed._sharding import BATCH, check_batch, device_mesh


def sharded_vmap(fun: Callable[..., Any], in_axes: Any = 0, *, mesh: Mesh | None = None) -> Callable[..., Any]:
    """`jax.vmap(fun, in_axes)` with the batch cut over the devices of `mesh`, by default all of all processes.

    Each device runs one program on its own rows, without a word to the others (`jax.shard_map`). The results keep
    their rows where they were computed. Under `grad` the cotangent of an argument that the batch shares is summed over
    all devices, and that is the only communication.

    * `in_axes` are those of `jax.vmap`, 0 or None: for all arguments, or a tuple with one for each or for parts of it.
    * Arguments may be anywhere; `shard` and `replicate` put them in place beforehand.
    * For derivatives, what they are taken in is an argument, not closed over by `fun`. Forward mode goes inside:
      `sharded_vmap(lambda x, dx: jax.jvp(f, (x,), (dx,)))`.

    The result is compiled, once for each function, structure and shape; leaves that are no arrays are static.
    """
    if any(axis != 0 for axis in jax.tree.leaves(in_axes)):
        raise ShapeError(f"in_axes is {in_axes}; a batch to be cut is on axis 0, and None marks what all samples share")

    def call(*args):
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
        if len(axes) != len(args):
            raise ShapeError(f"in_axes has {len(axes)} entries for {len(args)} arguments; give one for each")
        where = device_mesh() if mesh is None else mesh
        check_batch(_batched(axes, args), where.size)
        return _run(fun, axes, where, args)

    return call


@eqx.filter_jit
def _run(fun, axes, mesh, args):
    arrays, static = eqx.partition((fun, *args), eqx.is_array)
    axes = (None, *axes)

    def one(*arrays):
        fun, *args = eqx.combine(arrays, static)
        return fun(*args)

    return _on_devices(jax.vmap(one, axes), axes, mesh, arrays)


def _on_devices(local, axes, mesh, arrays):
    """`local` on the rows of each device, with a pullback that runs on each device as well.

    Both are traced as programs for one device, which know nothing of the mesh: the checkpointed loops of diffrax, when
    differentiated inside of `shard_map`, compare shardings from within and without, and stop. For the same reason
    its check of what varies over devices is off. What the pullback remembers is stacked over devices.
    """
    own, everywhere = PartitionSpec(BATCH), PartitionSpec()
    specs = jax.tree.map(lambda a: everywhere if a is None else own, axes, is_leaf=_is_none)
    spread = ft.partial(jax.shard_map, mesh=mesh, check_vma=False)
    split = lambda tree: eqx.partition(tree, eqx.is_inexact_array)
    smooth, rest = split(arrays)
    rows = lambda a, part: jax.tree.map(ft.partial(_rows, mesh.size if a == 0 else 1), part)
    given = tuple(jax.tree.map(rows, axes, x, is_leaf=_is_none) for x in (smooth, rest))

    def values(smooth, rest):
        return split(local(*eqx.combine(smooth, rest)))

    def remembering(smooth, rest):
        out, pull, aux = jax.vjp(lambda x: values(x, rest), smooth, has_aux=True)
        return (out, aux), pull

    @jax.custom_vjp
    def call(smooth, rest):
        return spread(_program(values, *given), in_specs=(specs, specs), out_specs=own)(smooth, rest)

    def forward(smooth, rest):
        run = _stacking(_program(remembering, *given))
        return spread(run, in_specs=(specs, specs), out_specs=own)(smooth, rest)

    def backward(pull, cotangents):
        part = lambda x: jax.tree.map(ft.partial(_rows, mesh.size), x)
        inner = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), pull)
        run = _summing(_program(lambda pull, c: pull(c)[0], inner, part(cotangents[0])), axes)
        return spread(run, in_specs=(own, own), out_specs=specs)(pull, cotangents[0]), None

    call.defvjp(forward, backward)
    return eqx.combine(*call(smooth, rest))


def _program(fun, *shapes):
    """`fun` traced for arguments of these shapes."""
    jaxpr, out = jax.make_jaxpr(fun, return_shape=True)(*shapes)
    run = jax.extend.core.jaxpr_as_fun(jaxpr)
    return lambda *args: jax.tree.structure(out).unflatten(run(*jax.tree.leaves(args)))


def _stacking(run):
    """`run` with an axis of devices before what its pullback remembers."""

    def stacking(*args):
        out, pull = run(*args)
        return out, jax.tree.map(lambda x: x[None], pull)

    return stacking


def _summing(run, axes):
    """A pullback from what is stacked, with the slopes in what the batch shares summed over devices."""

    def summing(pull, cotangents):
        slopes = run(jax.tree.map(lambda x: x[0], pull), cotangents)
        total = lambda axis, x: jax.lax.psum(x, BATCH) if axis is None else x
        return jax.tree.map(total, axes, slopes, is_leaf=_is_none)

    return summing


def _rows(parts: int, x) -> jax.ShapeDtypeStruct:
    """One of so many parts of an array that is cut along its leading axis."""
    shape = x.shape if parts == 1 else (x.shape[0] // parts, *x.shape[1:])
    return jax.ShapeDtypeStruct(shape, x.dtype)


def _is_none(x) -> bool:
    return x is None


def _batched(axes, args) -> list:
    """The arrays that have the axis of the batch."""
    take = lambda axis, part: [] if axis is None else [x for x in jax.tree.leaves(part) if _is_array(x)]
    return jax.tree.leaves(jax.tree.map(take, axes, args, is_leaf=_is_none))


def _is_array(x) -> bool:
    return isinstance(x, jax.Array | np.ndarray)
