"""Checks of models and states at the entry of every function of `(model, q, v, ...)`.

They read shapes and kinds only, while a function is traced, so compiled code does not contain them.
"""

import functools as ft
from typing import Any, NamedTuple

import jax

from jaxdyn._errors import ArgumentError, ShapeError, check_is_array, check_shape, describe
from jaxdyn.joints import parameter_shapes
from jaxdyn.recursion._topology import Topology
from jaxdyn.recursion._tree import TreeModel


def check_state(model: TreeModel, **state: Any) -> tuple[jax.Array, ...]:
    """Returns the named arrays of a state in floating point, for example `q, v = check_state(model, q=q, v=v)`.

    Names that begin with `q` are configurations, `(nq,)`; the others are velocities, accelerations and efforts,
    `(nv,)`. Raises `ShapeError` if a shape of the state or of the model's leaves is wrong, and `ArgumentError` if an
    argument is not a model or not a real array.
    """
    expected = check_model(model)
    return tuple([_check_vector(name, x, expected.nq, expected.nv) for name, x in state.items()])


def _check_vector(name: str, x: Any, nq: int, nv: int) -> jax.Array:
    size, other = (nq, nv) if name[0] == "q" else (nv, nq)
    check_is_array(name, x, (size,))
    if nq != nv and x.shape == (other,):
        raise ShapeError(
            f"{name} has shape {x.shape}, expected {(size,)}: the model has nq = {nq} coordinates and nv = {nv} "
            "velocities. Check the order of the arguments: (model, q, v, ...)."
        )
    return check_shape(name, x, (size,))


def check_wrenches(model: TreeModel, external: Any) -> jax.Array:
    """Returns external wrenches in floating point; raises if there is not one per link, `(links, 6)`."""
    shape = (len(model.topology.parents), 6)
    check_is_array("external", external, shape)
    return check_shape("external", external, shape)


def check_model(model: TreeModel) -> "ModelShapes":
    """Raises unless `model` is a single model, each leaf of the shape that its structure asks for."""
    t = getattr(model, "topology", None)
    if not isinstance(t, Topology):
        raise ArgumentError(
            f"model is {describe(model)}, expected a jaxdyn Model; give the model first: (model, q, v, ...)"
        )
    expected = _model_shapes(t)
    for holder, leaves in expected.leaves:
        fields = getattr(model, holder)
        for leaf, shape in leaves:
            x = getattr(fields, leaf)
            if getattr(x, "shape", None) != shape:
                _refuse_leaf(f"{holder}.{leaf}", x, shape)
    if getattr(model.gravity, "shape", None) != (3,):
        _refuse_leaf("gravity", model.gravity, (3,))
    for k, (joint, count) in enumerate(zip(model.joints, expected.group_counts, strict=True)):
        for field, shape in parameter_shapes(type(joint)):
            x = getattr(joint, field)
            if getattr(x, "shape", None) != (count, *shape):
                _refuse_leaf(f"joints[{k}].{field}", x, (count, *shape))
    return expected


class ModelShapes(NamedTuple):
    """The shapes that the structure of a model asks for."""

    nq: int
    nv: int
    #: holder, and name and shape of each of its leaves
    leaves: tuple[tuple[str, tuple[tuple[str, tuple[int, ...]], ...]], ...]
    #: number of joints in each group
    group_counts: tuple[int, ...]


@ft.lru_cache(maxsize=1024)
def _model_shapes(t: Topology) -> ModelShapes:
    n, frames, mimics, nq, nv = len(t.parents), len(t.frame_names), len(t.mimics), t.nq, t.nv
    per_velocity = ("armature", "damping", "friction", "friction_velocity", "stiffness")
    leaves = (
        ("links", (("mass", (n,)), ("com", (n, 3)), ("inertia", (n, 3, 3)))),
        ("placements", (("rotation", (n, 4)), ("translation", (n, 3)))),
        ("properties", (*((key, (nv,)) for key in per_velocity), ("rest", (nq,)))),
        ("limits", (("lower", (nq,)), ("upper", (nq,)), ("velocity", (nv,)), ("effort", (nv,)))),
        ("mimic", (("ratio", (mimics,)), ("offset", (mimics,)))),
        ("frames", (("rotation", (frames, 4)), ("translation", (frames, 3)))),
    )
    return ModelShapes(nq, nv, leaves, tuple(t.groups.count(g) for g in range(len(t.group_sizes))))


def _refuse_leaf(name: str, x: Any, expected: tuple[int, ...]):
    shape = getattr(x, "shape", None)
    if shape is None:
        raise ArgumentError(
            f"model.{name} is {describe(x)}, expected an array of shape {expected}; set leaves to arrays"
        )
    if shape[1:] == expected:
        remedy = "the model is a batch: map over it, jax.vmap(f, in_axes=(0, ...))(model, ...)"
    else:
        remedy = "a leaf that is replaced, by equinox.tree_at for example, keeps its shape"
    raise ShapeError(f"model.{name} has shape {shape}, expected {expected}; {remedy}")
