"""The contract of descriptions, and the text of a value in a message."""

import abc
from typing import Any, NoReturn

from jaxdyn._errors import ModelError

_MOST_CHARACTERS = 60
_MOST_ENTRIES = 4
_MOST_BITS = 200


class AbstractKind(abc.ABC):
    """The description of a value: which ones are valid, and to what they are converted."""

    @property
    @abc.abstractmethod
    def description(self) -> str:
        """A text for messages, such as "a number from 0 to 1"."""

    @abc.abstractmethod
    def has_type(self, value: Any) -> bool:
        """True if the value has the type that is described, whatever its range."""

    @abc.abstractmethod
    def read(self, value: Any, where: str) -> Any:
        """The value, converted; raises `ModelError` that names `where` if it is not valid."""

    def refuse(self, value: Any, where: str) -> NoReturn:
        """Raises `ModelError` with what was given and what is expected."""
        raise ModelError(f"{where} is {show_value(value)}, expected {self.description}")


def show_value(value: Any) -> str:
    """A short text of a value of any size and depth."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:  # repr refuses integers of thousands of digits
        return f"a whole number of {value.bit_length()} bits"
    if isinstance(value, list):
        shown = [_show_entry(x) for x in value[:_MOST_ENTRIES]]
        return f"[{', '.join(shown + ['...'] * (len(value) > _MOST_ENTRIES))}]"
    if isinstance(value, dict):
        shown = [f"{_shorten(str(key))} = {_show_entry(x)}" for key, x in list(value.items())[:_MOST_ENTRIES]]
        return f"{{{', '.join(shown + ['...'] * (len(value) > _MOST_ENTRIES))}}}"
    return _shorten(repr(value))


def _show_entry(value: Any) -> str:
    if isinstance(value, list | dict):
        return "[...]" if isinstance(value, list) else "{...}"
    return show_value(value)


def _shorten(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 3]}..."


def show_name(where: str, name: str) -> str:
    """The place of an entry of a table; names that are no words are quoted."""
    shown = name if name.replace("-", "_").isidentifier() else repr(name)
    return f"{where}.{_shorten(shown)}" if where else _shorten(shown)
