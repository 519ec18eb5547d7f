"""Numbers in a range."""

import math
from dataclasses import dataclass
from typing import Any

from jaxdyn.cli.schema._contract import AbstractKind
from jaxdyn.io.files import LARGEST


@dataclass(frozen=True)
class Number(AbstractKind):
    """A real number from `low` to `high`, converted to `float`.

    Arguments:

    * `low`, `high`: bounds, which are valid numbers themselves.
    * `is_above`: whether `low` itself is excluded.
    * `may_be_infinite`: whether infinities within the bounds are valid.
    """

    low: float | int = -LARGEST
    high: float | int = LARGEST
    is_above: bool = False
    may_be_infinite: bool = False

    @property
    def description(self) -> str:
        if abs(self.low) >= LARGEST and self.high >= LARGEST:
            return "a number" if self.may_be_infinite else "a finite number"
        if self.is_above:
            start = "a positive number" if self.low == 0 else f"a number above {self.low:g}"
            return start if self.high >= LARGEST else f"{start} of at most {self.high:g}"
        if self.high >= LARGEST:
            return f"a number of at least {self.low:g}"
        return f"a number from {self.low:g} to {self.high:g}"

    def has_type(self, value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool)

    def read(self, value: Any, where: str) -> float:
        if not self.has_type(value) or not self._is_inside(value):
            self.refuse(value, where)
        return float(value)

    def parse(self, text: str, where: str) -> float:
        """The number that a text gives."""
        return self.read(_parse(float, text), where)

    def _is_inside(self, value: float | int) -> bool:
        if isinstance(value, float) and math.isinf(value) and self.may_be_infinite:
            return (value > 0 and self.high >= LARGEST) or (value < 0 and self.low <= -LARGEST)
        return self.low <= value <= self.high and not (self.is_above and value == self.low)


@dataclass(frozen=True)
class Whole(AbstractKind):
    """A whole number from `low` to `high`."""

    low: int
    high: int

    @property
    def description(self) -> str:
        return f"a whole number from {self.low} to {self.high}"

    def has_type(self, value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool)

    def read(self, value: Any, where: str) -> int:
        if not self.has_type(value) or not self.low <= value <= self.high:
            self.refuse(value, where)
        return value

    def parse(self, text: str, where: str) -> int:
        """The whole number that a text gives."""
        return self.read(_parse(int, text), where)


def _parse(convert: Any, text: str) -> Any:
    """The number in a text, or the text itself if it is none."""
    try:
        return convert(text)
    except ValueError:
        return text
