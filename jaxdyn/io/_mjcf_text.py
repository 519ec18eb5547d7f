"""The XML of MJCF, bounded before MuJoCo's compiler sees it.

MuJoCo reads XML with a parser that has no bounds, and takes what is not well-formed. A text is therefore read by our
own first, and what that one refuses is not given to MuJoCo: both then see the same elements and attributes. What
makes much out of little (replicas, grids of points, textures and height fields that are computed) is counted.
"""

import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jaxdyn._errors import FileFormatError
from jaxdyn.io._xml import Bounds, Element, fail, parse_xml

# a chain of links is a chain of elements here; the compiler's time grows with the square of what one body holds
BOUNDS = Bounds(max_elements=10_000, max_depth=500)
MAX_SIZE = 1 << 23  # entries of one array that the compiler is told to make
_SIZES = (  # attributes whose product is the size of such an array
    *({"nrow", "ncol"}, {"width", "height"}, {"size"}, {"dim"}, {"nsample"}, {"resolution"}, {"params"}),
    *({"njmax"}, {"nconmax"}, {"nstack"}, {"nuserdata"}),
)
_ONLY_OF = {"size": {"numeric"}, "dim": {"user"}, "params": {"mesh"}}
_PER_ELEMENT = re.compile("nkey|nuser_.*")  # columns or rows that every element gets
_MAX_PER_ELEMENT = 1_000
_SKIPPED = (("<!--", "-->"), ("<?", "?>"), ("<![CDATA[", "]]>"))
_TAG = re.compile(r"<(?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*>")


class Text(NamedTuple):
    """What one XML text holds."""

    elements: list[Element]
    expanded: int  # elements when all replicas are written out
    attached: int  # how many models it attaches
    repeated: int  # the largest number of replicas in which it includes a file


def read_text(content: bytes | str, source: str, bounds: Bounds, *, main: bool = False) -> Text:
    """All elements of a text, in their order; `main` says that it is a model and not included in one."""
    if isinstance(content, bytes):
        try:
            content = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise FileFormatError(
                f"{source}: its characters cannot be decoded ({error}); save the file as UTF-8"
            ) from None
    root = parse_xml(_plain_comments(content) if len(content) <= bounds.max_bytes else content, source, bounds)
    if main and root.tag != "mujoco":
        urdf = "is URDF (<robot>); read it with jaxdyn.load_urdf or jaxdyn.parse_urdf"
        fail(root, urdf if root.tag == "robot" else "is not MJCF; its first element must be <mujoco>")
    return _measured(root, bounds)


def _plain_comments(text: str) -> str:
    """Comments without hyphens in them, which XML forbids and many files have; nothing else is changed.

    A place that is no part of XML ends the search, and the parser refuses the text there.
    """
    parts, done, at = [], 0, text.find("<")
    while at >= 0:
        ends = next((pair for pair in _SKIPPED if text.startswith(pair[0], at)), None)
        if ends is None:
            tag = _TAG.match(text, at)
            after = tag.end() if tag else -1
        else:
            after = text.find(ends[1], at + len(ends[0])) + len(ends[1])
            if after < at + len(ends[0]) + len(ends[1]):
                break
            if ends[0] == "<!--":
                parts += [text[done : at + 4], text[at + 4 : after - 3].replace("-", " "), "-->"]
                done = after
        if after < 0:
            break
        at = text.find("<", after)
    return "".join([*parts, text[done:]])


def _measured(root: Element, bounds: Bounds) -> Text:
    elements: list[Element] = []
    expanded, attached, repeated = 0, 0, 1
    pending = [(root, 1)]
    while pending:
        element, times = pending.pop()
        elements.append(element)
        expanded += times * _points(element, bounds)
        if expanded > bounds.max_elements:
            fail(element, f"makes more than {bounds.max_elements} elements; raise bounds=Bounds(max_elements=...)")
        _check_sizes(element)
        tag = element.tag.lower()
        attached += times * (tag == "attach")
        repeated = max(repeated, times * (tag == "include"))
        inner = times * _count(element, "count", bounds) if tag == "replicate" else times
        if inner > bounds.max_links:
            fail(element, f"makes more than {bounds.max_links} replicas; raise bounds=Bounds(max_links=...)")
        pending += [(child, inner) for child in reversed(element.children)]
    return Text(elements, expanded, attached, repeated)


def check_together(texts: Sequence[Text], source: str, bounds: Bounds):
    """Bounds what all texts of a model may come to: models attached to models are copied once for each."""
    total = sum(text.expanded for text in texts) * max(text.repeated for text in texts)
    total *= math.prod(1 + text.attached for text in texts)
    if total > bounds.max_elements:
        raise FileFormatError(
            f"{source}: its files may come to {total} elements, more than {bounds.max_elements}; if you trust it, "
            "raise bounds=Bounds(max_elements=...)"
        )


def _points(element: Element, bounds: Bounds) -> int:
    """What an element counts for: one, or the points of a grid."""
    grid = element.tag in ("flexcomp", "composite")
    return _count(element, "count", bounds) * _count(element, "cellcount", bounds) if grid else 1


def _count(element: Element, key: str, bounds: Bounds) -> int:
    """Product of the whole numbers of an attribute, one where there is none."""
    product = 1
    for value in _whole(element, key):
        product *= max(1, value)
        if product > bounds.max_elements:
            problem = f"{key} asks for more than {bounds.max_elements} elements"
            fail(element, f"{problem}; raise bounds=Bounds(max_elements=...)")
    return product


def _whole(element: Element, key: str) -> Iterator[int]:
    """Sizes of the numbers of an attribute, rounded up; what is no number is left to the compiler."""
    for word in element.attributes.get(key, "").split():
        try:
            value = abs(float(word))
        except ValueError:
            continue
        yield math.ceil(value) if value < MAX_SIZE else MAX_SIZE + 1


def _check_sizes(element: Element):
    for keys in _SIZES:
        if any(element.tag not in _ONLY_OF.get(key, {element.tag}) for key in keys):
            continue
        if math.prod(max(1, x) for key in keys for x in _whole(element, key)) > MAX_SIZE:
            fail(element, f"{' and '.join(sorted(keys))} ask for more than {MAX_SIZE} entries; give a smaller size")
    for key in filter(_PER_ELEMENT.fullmatch, element.attributes):
        if max(_whole(element, key), default=0) > _MAX_PER_ELEMENT:
            fail(element, f"{key} is {element.attributes[key][:40]}, at most {_MAX_PER_ELEMENT} are read")
