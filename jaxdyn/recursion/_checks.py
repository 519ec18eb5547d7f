"""Checks of the shapes of states."""

from jaxdyn._errors import check_shape
from jaxdyn.recursion._tree import TreeModel


def check_state(model: TreeModel, q, *rates):
    """Returns `q` and `rates` as floating-point arrays; raises `ShapeError` if a shape does not fit the model."""
    t = model.topology
    q = check_shape("q", q, (t.nq,))
    return (q, *(check_shape(n, x, (t.nv,)) for n, x in zip(("v", "a or tau"), rates, strict=False)))
