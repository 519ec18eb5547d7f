"""XML from untrusted sources, read by the expat parser of the standard library under limits.

Document types are refused, and with them all entities but the five of XML. Size, depth and number of elements are
limited. Refused files raise `FileFormatError` with file, line and element.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Any, NoReturn
from xml.parsers import expat

from jaxdyn._errors import FileFormatError

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_MAX_CHARACTERS = 1_000  # of a number; a double has fewer even with all its digits
LARGEST = 1e30  # larger than any physical number, and finite in single precision


@dataclass(frozen=True)
class ParsingLimits:
    """Limits on a robot file: bytes, XML elements, depth of their nesting, and links or actuators of the robot."""

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
        """The text of the element without surrounding white space."""
        return "".join(self.chunks).strip()

    def all(self, tag: str) -> list["Element"]:
        """All children of a tag."""
        return [x for x in self.children if x.tag == tag]

    def first(self, tag: str) -> "Element | None":
        """The first child of a tag, or None."""
        return next((x for x in self.children if x.tag == tag), None)

    def __str__(self):
        """The element as messages show it: `<joint name="elbow"> <axis>`."""
        name = self.attributes.get("name")
        own = f"<{_short(self.tag)}>" if name is None else f'<{_short(self.tag)} name="{_short(name)}">'
        needs_parent = name is None and self.parent is not None and self.parent.parent is not None
        return f"{self.parent} {own}" if needs_parent else own


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


def fail(element: Element, problem: str) -> NoReturn:
    """Raises `FileFormatError` that names the file, the line and the element."""
    raise FileFormatError(f"{element.source}, line {element.line}, {element}: {problem}")


def parse_xml(text: str | bytes, source: str, bounds: ParsingLimits) -> Element:
    """The root element of an XML text; messages call the text `source`."""
    skipped = len(text) - len(text.lstrip())
    head, text = text[:skipped], text[skipped:]
    if len(text) > bounds.max_bytes:
        raise FileFormatError(
            f"{source}: has {len(text)} bytes, more than the {bounds.max_bytes} allowed; "
            "if you trust it, raise the limit with bounds=ParsingLimits(max_bytes=...)"
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
    """Builds the tree of elements from the events of an expat parser."""

    def __init__(self, source: str, bounds: ParsingLimits, skipped_lines: int):
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
        self.refuse("has a document type (<!DOCTYPE>) or entities, which are refused; delete the declaration")

    def start(self, tag: str, attributes: dict[str, str]):
        self.count += 1
        if self.count > self.bounds.max_elements:
            self.refuse(f"more than {self.bounds.max_elements} elements; raise bounds=ParsingLimits(max_elements=...)")
        if len(self.open) >= self.bounds.max_depth:
            self.refuse(
                f"elements nested deeper than {self.bounds.max_depth}; raise bounds=ParsingLimits(max_depth=...)"
            )
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


# --- values of attributes --------------------------------------------------------------------------


def require_attribute(element: Element, key: str) -> str:
    """The value of an attribute; raises if the attribute is missing or empty."""
    value = element.attributes.get(key, "").strip()
    if not value:
        fail(element, f"has no attribute {key!r}; add it")
    return value


def parse_number(element: Element, key: str, text: str, largest: float = LARGEST) -> float:
    """The finite number in a text; messages call it `key`."""
    text = text.strip()
    if len(text) > _MAX_CHARACTERS or not _NUMBER.fullmatch(text):
        fail(element, f"{key} is {_short(text)!r}, expected a finite number such as 0.25")
    value = float(text)
    if not math.isfinite(value) or abs(value) > largest:
        fail(element, f"{key} is {_short(text)}, larger than {largest:g} in magnitude; give a number of physical size")
    return value


def read_number(element: Element, key: str, default: float | None = None) -> float:
    """An attribute with one number; a missing attribute raises unless there is a default."""
    if key not in element.attributes and default is not None:
        return default
    return parse_number(element, key, require_attribute(element, key))


def read_vector(element: Element, key: str, size: int, default: tuple[float, ...] | None = None) -> tuple[float, ...]:
    """An attribute with `size` numbers; a missing attribute raises unless there is a default."""
    if key not in element.attributes and default is not None:
        return default
    parts = require_attribute(element, key).split()
    if len(parts) != size:
        fail(element, f"{key} has {len(parts)} numbers, expected {size}")
    return tuple(parse_number(element, key, x) for x in parts)
