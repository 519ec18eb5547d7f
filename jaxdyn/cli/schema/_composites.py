"""Lists, tables and alternatives of other descriptions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxdyn._errors import ModelError
from jaxdyn.cli.schema._contract import AbstractKind, show_name
from jaxdyn.cli.schema._numbers import Number
from jaxdyn.cli.schema._words import Choice


@dataclass(frozen=True)
class ListOf(AbstractKind):
    """A list of `least` to `most` values of one kind."""

    item: AbstractKind
    least: int = 0
    most: int = 1_000

    @property
    def description(self) -> str:
        return f"a list of {self.least} to {self.most} entries, each {self.item.description}"

    def has_type(self, value: Any) -> bool:
        return isinstance(value, list)

    def read(self, value: Any, where: str) -> list[Any]:
        if not self.has_type(value) or not self.least <= len(value) <= self.most:
            self.refuse(value, where)
        return [self.item.read(x, f"{where}[{k}]") for k, x in enumerate(value)]


@dataclass(frozen=True)
class Pair(AbstractKind):
    """A pair of numbers, the first one less than the second one."""

    item: Number
    meaning: str

    @property
    def description(self) -> str:
        return f"a pair of numbers {self.meaning}, the first one less than the second one"

    def has_type(self, value: Any) -> bool:
        return isinstance(value, list)

    def read(self, value: Any, where: str) -> tuple[float, float]:
        if not self.has_type(value) or len(value) != 2:
            self.refuse(value, where)
        low, high = (self.item.read(x, f"{where}[{k}]") for k, x in enumerate(value))
        if not low < high:
            self.refuse(value, where)
        return low, high


@dataclass(frozen=True)
class TableOf(AbstractKind):
    """A table with free names and values of one kind."""

    item: AbstractKind
    most: int = 1_000

    @property
    def description(self) -> str:
        return f"a table of at most {self.most} entries, each {self.item.description}"

    def has_type(self, value: Any) -> bool:
        return isinstance(value, dict)

    def read(self, value: Any, where: str) -> dict[str, Any]:
        if not self.has_type(value) or len(value) > self.most:
            self.refuse(value, where)
        return {name: self.item.read(x, show_name(where, name)) for name, x in value.items()}


@dataclass(frozen=True)
class Fields(AbstractKind):
    """A table with known names, each with a kind of its own.

    Arguments:

    * `entries`: kind of each entry.
    * `required`: what to give, by the name of an entry that must be there.
    """

    entries: Mapping[str, AbstractKind]
    required: Mapping[str, str] = field(default_factory=dict)

    @property
    def description(self) -> str:
        return f"a table with some of {', '.join(self.entries) or 'no entries'}"

    def has_type(self, value: Any) -> bool:
        return isinstance(value, dict)

    def read(self, value: Any, where: str) -> dict[str, Any]:
        if not self.has_type(value):
            self.refuse(value, where)
        known = ", ".join(self.entries) or "no entries"
        for name in value:
            if name not in self.entries:
                raise ModelError(f"has an entry {show_name(where, name)!r}; expected some of {known}")
        for name, remedy in self.required.items():
            if name not in value:
                raise ModelError(f"{where} has no {name!r}; give {remedy}")
        return {name: self.entries[name].read(x, show_name(where, name)) for name, x in value.items()}


@dataclass(frozen=True)
class OneOf(AbstractKind):
    """A value of one of several kinds, which differ in their types."""

    kinds: Sequence[AbstractKind]

    @property
    def description(self) -> str:
        return ", or ".join(kind.description for kind in self.kinds)

    def has_type(self, value: Any) -> bool:
        return any(kind.has_type(value) for kind in self.kinds)

    def read(self, value: Any, where: str) -> Any:
        for kind in self.kinds:
            if kind.has_type(value) and not (isinstance(kind, Choice) and value not in kind.names):
                return kind.read(value, where)
        self.refuse(value, where)


@dataclass(frozen=True)
class Named(AbstractKind):
    """A name, or a table with `name` and the fields that belong to this name; converted to `(name, fields)`."""

    choices: Mapping[str, Fields]

    @property
    def description(self) -> str:
        return f"one of {', '.join(self.choices)}, or a table with this name and numbers"

    def has_type(self, value: Any) -> bool:
        return isinstance(value, str | dict)

    def read(self, value: Any, where: str) -> tuple[str, dict[str, Any]]:
        if not self.has_type(value):
            self.refuse(value, where)
        table = {"name": value} if isinstance(value, str) else dict(value)
        name = Choice(tuple(self.choices)).read(table.pop("name", ""), f"{where}.name")
        return name, self.choices[name].read(table, where)
