"""Places in a tree, for messages."""

from __future__ import annotations

from typing import Any, NamedTuple

_LONGEST = 200


class Place(NamedTuple):
    """A place in a tree: the place that contains it, and the key there.

    The text is put together for a message only: trees may have many places below a long key.
    """

    parent: Place | None
    #: how the text shows the key: `.name`, `[3]`, ` key 'a'`
    pattern: str
    key: Any

    def field(self, name: str) -> Place:
        """The place of a field."""
        return Place(self, ".{}", name)

    def item(self, key: Any) -> Place:
        """The place of an item of a sequence or dictionary."""
        return Place(self, "[{!r}]", key)

    def key_itself(self, key: Any) -> Place:
        """The place of a key of a dictionary."""
        return Place(self, " key {!r}", key)

    def __str__(self) -> str:
        texts: list[str] = []
        place: Place | None = self
        while place is not None:
            texts.append(place._text())
            place = place.parent
        return "".join(reversed(texts))

    def _text(self) -> str:
        try:
            text = self.pattern.format(self.key)
        except Exception:  # the key may be any object, and an integer of many digits has no text
            text = self.pattern.format(type(self.key))
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


ROOT = Place(None, "{}", "tree")
