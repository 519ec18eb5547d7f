"""XML that may come from anywhere, read with the standard library's expat under bounds.

There is no document type, hence no entities beyond the five of XML; size, depth and number of elements are
bounded; what is refused raises `FileFormatError` with file, line and element.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Any, NoReturn
from xml.parsers import expat

from jaxdyn._errors import FileFormatError

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONGEST = 1_000  # characters of a number; a double written out in full has fewer
LARGEST = 1e30  # what no physical number exceeds, and what single precision can hold


@dataclass(frozen=True)
class Bounds:
    """How large a file may be: bytes, XML elements, how deep these may be nested, and links or drives of the robot."""

    max_bytes: int = 32_000_000
    max_elements: int = 50_000
    max_depth: int = 64
    max_links: int = 2_000


@dataclass(eq=False, slots=True)
class Element:
    """An XML element with its place in the file."""

    tag: str
    attributes: dict[str, str]
    source: str
    line: int
    parent: "Element | None" = None
    children: list["Element"] = field(default_factory=list)
    chunks: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.chunks).strip()

    def all(self, tag: str) -> list["Element"]:
        return [x for x in self.children if x.tag == tag]

    def first(self, tag: str) -> "Element | None":
        return next((x for x in self.children if x.tag == tag), None)

    def __str__(self):
        """The element as a reader of the file would look for it: `<joint name="elbow"> <axis>`."""
        name = self.attributes.get("name")
        own = f"<{_short(self.tag)}>" if name is None else f'<{_short(self.tag)} name="{_short(name)}">'
        nameless = name is None and self.parent is not None and self.parent.parent is not None
        return f"{self.parent} {own}" if nameless else own


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


def fail(element: Element, problem: str) -> NoReturn:
    """Refuses a file because of an element."""
    raise FileFormatError(f"{element.source}, line {element.line}, {element}: {problem}")


def parse_xml(text: str | bytes, source: str, bounds: Bounds) -> Element:
    """The outermost element of an XML text; `source` is what messages call it."""
    skipped = len(text) - len(text.lstrip())
    head, text = text[:skipped], text[skipped:]
    if len(text) > bounds.max_bytes:
        raise FileFormatError(
            f"{source}: has {len(text)} bytes, more than the {bounds.max_bytes} allowed; "
            "if you trust it, raise the limit with bounds=Bounds(max_bytes=...)"
        )
    reader = _Reader(source, bounds, head.count("\n") if isinstance(head, str) else head.count(b"\n"))
    try:
        reader.parser.Parse(text, True)
    except expat.ExpatError as error:
        raise FileFormatError(
            f"{source}, line {error.lineno + reader.skipped_lines}: is not well-formed XML "
            f"({expat.ErrorString(error.code)}); correct it there"
        ) from None
    except (ValueError, LookupError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(f"{source}: its characters cannot be decoded ({error}); save the file as UTF-8") from None
    assert reader.root is not None  # expat refuses a document without an element
    return reader.root


class _Reader:
    """Makes a tree of the events of an expat parser."""

    def __init__(self, source: str, bounds: Bounds, skipped_lines: int):
        self.source, self.bounds, self.skipped_lines = source, bounds, skipped_lines
        self.root: Element | None = None
        self.open: list[Element] = []
        self.count = 0
        self.parser: Any = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.parser.EntityDeclHandler = self.doctype

    def refuse(self, problem: str) -> NoReturn:
        line = self.parser.CurrentLineNumber + self.skipped_lines
        raise FileFormatError(f"{self.source}, line {line}: {problem}")

    def doctype(self, *_):
        self.refuse("has a document type (<!DOCTYPE>) or entities, which are not read; delete the declaration")

    def start(self, tag: str, attributes: dict[str, str]):
        self.count += 1
        if self.count > self.bounds.max_elements:
            self.refuse(f"more than {self.bounds.max_elements} elements; raise bounds=Bounds(max_elements=...)")
        if len(self.open) >= self.bounds.max_depth:
            self.refuse(f"elements nested deeper than {self.bounds.max_depth}; raise bounds=Bounds(max_depth=...)")
        parent = self.open[-1] if self.open else None
        line = self.parser.CurrentLineNumber + self.skipped_lines
        element = Element(tag, attributes, self.source, line, parent)
        if parent is None:
            self.root = element
        else:
            parent.children.append(element)
        self.open.append(element)

    def end(self, _):
        self.open.pop()

    def characters(self, text: str):
        self.open[-1].chunks.append(text)


# --- what attributes hold --------------------------------------------------------------------------


def required(element: Element, key: str) -> str:
    """An attribute that must be there and hold something."""
    value = element.attributes.get(key, "").strip()
    if not value:
        fail(element, f"has no attribute {key!r}; give it one")
    return value


def as_number(element: Element, key: str, text: str, largest: float = LARGEST) -> float:
    """A finite number from a text that `key` names."""
    text = text.strip()
    if len(text) > _LONGEST or not _NUMBER.fullmatch(text):
        fail(element, f"{key} is {_short(text)!r}, expected a finite number such as 0.25")
    value = float(text)
    if not math.isfinite(value) or abs(value) > largest:
        fail(element, f"{key} is {_short(text)}, beyond {largest:g}; give a number of physical size")
    return value


def number(element: Element, key: str, default: float | None = None) -> float:
    """An attribute that is one number; it must be there unless there is a default."""
    if key not in element.attributes and default is not None:
        return default
    return as_number(element, key, required(element, key))


def vector(element: Element, key: str, size: int, default: tuple[float, ...] | None = None) -> tuple[float, ...]:
    """An attribute that is `size` numbers; it must be there unless there is a default."""
    if key not in element.attributes and default is not None:
        return default
    parts = required(element, key).split()
    if len(parts) != size:
        fail(element, f"{key} has {len(parts)} numbers, expected {size}")
    return tuple(as_number(element, key, x) for x in parts)
