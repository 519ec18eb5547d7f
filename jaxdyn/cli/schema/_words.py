"""Texts and switches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxdyn._errors import ModelError
from jaxdyn.cli.schema._contract import AbstractKind, show_value


@dataclass(frozen=True)
class Text(AbstractKind):
    """A text of at most `most` characters."""

    most: int = 1_000

    @property
    def description(self) -> str:
        return f"a text of at most {self.most} characters"

    def has_type(self, value: Any) -> bool:
        return isinstance(value, str)

    def read(self, value: Any, where: str) -> str:
        if not self.has_type(value) or len(value) > self.most:
            self.refuse(value, where)
        return value


@dataclass(frozen=True)
class Choice(AbstractKind):
    """One of several texts."""

    names: Sequence[str]

    @property
    def description(self) -> str:
        return f"one of {', '.join(self.names)}" if len(self.names) > 1 else repr(self.names[0])

    def has_type(self, value: Any) -> bool:
        return isinstance(value, str)

    def read(self, value: Any, where: str) -> str:
        if not self.has_type(value):
            self.refuse(value, where)
        if value not in self.names:
            raise ModelError(f"{where}: {show_value(value)} is unknown; expected {self.description}")
        return value


@dataclass(frozen=True)
class Flag(AbstractKind):
    """True or false."""

    @property
    def description(self) -> str:
        return "true or false"

    def has_type(self, value: Any) -> bool:
        return isinstance(value, bool)

    def read(self, value: Any, where: str) -> bool:
        if not self.has_type(value):
            self.refuse(value, where)
        return value
