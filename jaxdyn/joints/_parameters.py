"""Shapes of the parameters of a joint, read from the annotations of its class."""

import dataclasses
import functools as ft
from typing import Any

from jaxdyn.joints._joint import AbstractJoint


@ft.cache
def parameter_shapes(joint: type[AbstractJoint]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Name and shape of each parameter whose annotation has a fixed shape, such as `Float[Array, "*n 3"]`.

    The leading `*n` stands for the joints of a group, which a single joint does not have.
    """
    found = ((field.name, _fixed_shape(field.type)) for field in dataclasses.fields(joint))
    return tuple((name, shape) for name, shape in found if shape is not None)


def _fixed_shape(annotation: Any) -> tuple[int, ...] | None:
    words = getattr(annotation, "dim_str", None)
    if words is None:
        return None
    leading, *sizes = words.split() or [""]
    if not leading.startswith("*") or not all(x.isdigit() for x in sizes):
        return None
    return tuple(map(int, sizes))
