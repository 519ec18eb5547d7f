"""`jax.vmap` over the devices of a mesh."""

import functools as ft
from collections.abc import Callable

import equinox as eqx
import jax
import jax.extend
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from jaxdyn._errors import ShapeError
from jaxdyn._types import PyTree
from jaxdyn.distributed._sharding import BATCH, check_batch, device_mesh


def sharded_vmap(
    fun: Callable[..., PyTree], in_axes: int | tuple[PyTree, ...] | None = 0, *, mesh: Mesh | None = None
) -> Callable[..., PyTree]:
    """`jax.vmap(fun, in_axes)` with the batch sharded over the devices of a mesh.

    Each device runs one program on its own rows, without communication (`jax.shard_map`), and the results stay there.
    Under `jax.grad` the cotangents of arguments that the batch shares are summed over all devices, the only
    communication. Arguments:

    * `fun`: function of one sample.
    * `in_axes`: 0 or None, as in `jax.vmap`, for all arguments, or a tuple with one entry (or pytree) an argument.
    * `mesh`: devices, by default all devices of all processes.

    Returns a function of the batch. Its arguments may be on any device; `shard` and `replicate` place them beforehand.
    It is compiled once for each function, structure and shape; leaves that are not arrays are static. Variables of
    differentiation must be arguments, not closed over by `fun`. Use forward mode inside:
    `sharded_vmap(lambda x, dx: jax.jvp(f, (x,), (dx,)))`. Raises `ShapeError` for other axes, and for batches that the
    devices do not divide.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.distributed import sharded_vmap

    model = jd.robots.pendulum()
    energies = sharded_vmap(jd.potential_energy, in_axes=(None, 0))
    assert energies(model, jnp.zeros((8, 1))).shape == (8,)
    ```
    """
    if any(axis != 0 for axis in jax.tree.leaves(in_axes)):
        raise ShapeError(
            f"in_axes is {in_axes}; expected 0 for a batch on axis 0, or None for arguments that all samples share"
        )

    def call(*args):
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
        if len(axes) != len(args):
            raise ShapeError(
                f"in_axes has {len(axes)} entries for {len(args)} arguments; give one entry for each argument"
            )
        devices = device_mesh() if mesh is None else mesh
        check_batch(_batch_arrays(axes, args), devices.size)
        return _run_sharded(fun, axes, devices, args)

    return call


@eqx.filter_jit
def _run_sharded(fun, axes, mesh, args):
    arrays, static = eqx.partition((fun, *args), eqx.is_array)
    axes = (None, *axes)

    def one(*arrays):
        fun, *args = eqx.combine(arrays, static)
        return fun(*args)

    return _map_over_devices(jax.vmap(one, axes), axes, mesh, arrays)


def _map_over_devices(local, axes, mesh, arrays):
    """Applies `local` to the rows of each device, with a pullback that runs on each device as well.

    Both are traced beforehand as programs for one device, independent of the mesh: the checkpointed loops of diffrax,
    when differentiated inside `shard_map`, compare shardings from inside and outside, and raise an error. `check_vma`
    is off for the same reason. The residuals of the pullback are stacked over devices.
    """
    sharded, replicated = PartitionSpec(BATCH), PartitionSpec()
    specs = jax.tree.map(lambda a: replicated if a is None else sharded, axes, is_leaf=_is_none)
    map_devices = ft.partial(jax.shard_map, mesh=mesh, check_vma=False)
    split = lambda tree: eqx.partition(tree, eqx.is_inexact_array)
    smooth, rest = split(arrays)
    part_shapes = lambda a, part: jax.tree.map(ft.partial(_part_shape, mesh.size if a == 0 else 1), part)
    shapes = tuple(jax.tree.map(part_shapes, axes, x, is_leaf=_is_none) for x in (smooth, rest))

    def values(smooth, rest):
        return split(local(*eqx.combine(smooth, rest)))

    def values_and_pullback(smooth, rest):
        out, pull, aux = jax.vjp(lambda x: values(x, rest), smooth, has_aux=True)
        return (out, aux), pull

    @jax.custom_vjp
    def call(smooth, rest):
        return map_devices(_trace_program(values, *shapes), in_specs=(specs, specs), out_specs=sharded)(smooth, rest)

    def forward(smooth, rest):
        run = _stack_pullback(_trace_program(values_and_pullback, *shapes))
        return map_devices(run, in_specs=(specs, specs), out_specs=sharded)(smooth, rest)

    def backward(pull, cotangents):
        part = lambda x: jax.tree.map(ft.partial(_part_shape, mesh.size), x)
        inner = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), pull)
        run = _sum_shared_cotangents(_trace_program(lambda pull, c: pull(c)[0], inner, part(cotangents[0])), axes)
        return map_devices(run, in_specs=(sharded, sharded), out_specs=specs)(pull, cotangents[0]), None

    call.defvjp(forward, backward)
    return eqx.combine(*call(smooth, rest))


def _trace_program(fun, *shapes):
    """Traces `fun` for arguments of these shapes and returns the traced function."""
    jaxpr, out = jax.make_jaxpr(fun, return_shape=True)(*shapes)
    run = jax.extend.core.jaxpr_as_fun(jaxpr)
    return lambda *args: jax.tree.structure(out).unflatten(run(*jax.tree.leaves(args)))


def _stack_pullback(run):
    """Adds a leading axis for the devices to the residuals of the pullback that `run` returns."""

    def stacked(*args):
        out, pull = run(*args)
        return out, jax.tree.map(lambda x: x[None], pull)

    return stacked


def _sum_shared_cotangents(run, axes):
    """The pullback with stacked residuals, which sums the cotangents of shared arguments over devices."""

    def pullback(pull, cotangents):
        gradients = run(jax.tree.map(lambda x: x[0], pull), cotangents)
        total = lambda axis, x: jax.lax.psum(x, BATCH) if axis is None else x
        return jax.tree.map(total, axes, gradients, is_leaf=_is_none)

    return pullback


def _part_shape(parts: int, x) -> jax.ShapeDtypeStruct:
    """Shape of one of `parts` equal parts of an array along its leading axis."""
    shape = x.shape if parts == 1 else (x.shape[0] // parts, *x.shape[1:])
    return jax.ShapeDtypeStruct(shape, x.dtype)


def _is_none(x) -> bool:
    return x is None


def _batch_arrays(axes, args) -> list:
    """The arrays with a batch axis."""
    take = lambda axis, part: [] if axis is None else [x for x in jax.tree.leaves(part) if _is_array(x)]
    return jax.tree.leaves(jax.tree.map(take, axes, args, is_leaf=_is_none))


def _is_array(x) -> bool:
    return isinstance(x, jax.Array | np.ndarray)
