"""Checks of the numbers of a description: shapes always, values where they are concrete.

A `Rule` is a property of the values; `check_numbers` applies one to an argument and raises `ModelError`, which names
the link or joint and the argument.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from jaxdyn._errors import ModelError, describe
from jaxdyn._numerics import is_concrete, namespace

_SMALL = 1e-12
# rounding of published rotation matrices, whose entries have three digits or more
_ROTATION_TOLERANCE = 1e-2


class Rule(NamedTuple):
    """A property of concrete numbers, and its description."""

    holds: Callable[[np.ndarray], bool]
    expected: str


def _is_rotation(x: np.ndarray) -> bool:
    return bool(np.abs(x @ x.T - np.eye(3)).max() < _ROTATION_TOLERANCE) and bool(np.linalg.det(x) > 0)


FINITE = Rule(lambda x: bool(np.isfinite(x).all()), "finite numbers")
BOUND = Rule(lambda x: not np.isnan(x).any(), "numbers, which may be infinite")
NON_NEGATIVE = Rule(lambda x: bool((np.isfinite(x) & (x >= 0)).all()), "finite numbers that are not negative")
MAGNITUDE = Rule(lambda x: bool((x >= 0).all()), "numbers that are not negative; infinite for no limit")
DIRECTION = Rule(
    lambda x: bool(np.isfinite(x).all() and np.linalg.norm(x) > _SMALL), "finite numbers, not all of them zero"
)
ROTATION = Rule(_is_rotation, "a rotation matrix: orthonormal rows and determinant 1")

#: where a frame is placed, by argument of `ModelBuilder`
PLACEMENT: Mapping[str, tuple[tuple[int, ...], Rule]] = {
    "translation": ((3,), FINITE),
    "rotation": ((3, 3), ROTATION),
    "quaternion": ((4,), DIRECTION),
    "rpy": ((3,), FINITE),
}


def check_numbers(where: str, name: str, value: Any, rule: Rule, *shapes: tuple[int | None, ...]):
    """Raises `ModelError` unless `value` has one of `shapes` and, where it is concrete, obeys the rule.

    None in a shape stands for any length; without shapes, any shape is allowed.
    """
    try:
        array = namespace(value).asarray(value)
    except (TypeError, ValueError):
        array = None
    if array is None or (array.dtype.kind not in "fiub" and str(array.dtype) != "bfloat16"):
        given = describe(value) if array is None or array.dtype.kind in "OUS" else f"complex, {value}"
        raise ModelError(f"{where}: {name} is {given}, expected {rule.expected}{_shape_text(shapes)}")
    if shapes and not any(_fits(array.shape, shape) for shape in shapes):
        raise ModelError(f"{where}: {name} has shape {array.shape}, expected{_shape_text(shapes)}")
    if is_concrete(array) and not rule.holds(np.asarray(array, float)):
        raise ModelError(f"{where}: {name} is {_one_line(array)}, expected {rule.expected}")


def check_placement(where: str, **given: Any):
    """Checks the arguments that place a frame: `translation` and one of `rotation`, `quaternion` and `rpy`."""
    for name, value in given.items():
        if value is not None:
            shape, rule = PLACEMENT[name]
            check_numbers(where, name, value, rule, shape)


def _fits(shape: tuple[int, ...], expected: tuple[int | None, ...]) -> bool:
    return len(shape) == len(expected) and all(b in (None, a) for a, b in zip(shape, expected, strict=True))


def _shape_text(shapes: tuple[tuple[int | None, ...], ...]) -> str:
    as_text = lambda shape: str(tuple("n" if x is None else x for x in shape)).replace("'", "")
    return " " + " or ".join("a number" if shape == () else as_text(shape) for shape in shapes) if shapes else ""


def _one_line(array: Any) -> str:
    return " ".join(str(np.asarray(array)).split())
