"""Checks of the XML of MJCF before MuJoCo compiles it.

MuJoCo's XML parser has no limits and accepts texts that are not well-formed. Each text is therefore parsed by
`parse_xml` first and passed to MuJoCo only if accepted, so that both see the same elements and attributes. Elements
that expand (replicas, grids of points, generated textures and height fields) are counted with their multiplicity.
"""

import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jaxdyn._errors import FileFormatError
from jaxdyn.io.files import LARGEST, Element, ParsingLimits, fail, parse_xml

# links of a chain are nested elements; the time of the compiler grows quadratically with the content of a body
LIMITS = ParsingLimits(max_elements=10_000, max_depth=500)
MAX_SIZE = 1 << 23  # entries of one array that the compiler generates
_SIZES = (  # sets of attributes whose product is the size of such an array
    *({"nrow", "ncol"}, {"width", "height"}, {"size"}, {"dim"}, {"nsample"}, {"resolution"}, {"params"}),
    *({"njmax"}, {"nconmax"}, {"nstack"}, {"nuserdata"}),
)
_ONLY_OF = {"size": {"numeric"}, "dim": {"user"}, "params": {"mesh"}}
_PER_ELEMENT = re.compile("nkey|nuser_.*")  # columns or rows that are added to every element
_MAX_PER_ELEMENT = 1_000
# attributes whose value is a name, a list of names or free text, which may read like a number
_NAMES = frozenset(
    "name class childclass model content_type joint joint1 joint2 jointinparent body body1 body2 geom geom1 geom2 site "
    "site1 site2 refsite cranksite slidersite sidesite tendon tendon1 tendon2 actuator camera light material texture "
    "mesh hfield flex skin target objname refname instance plugin prefix key value bodyname node source layer root "
    "meshdir texturedir assetdir sep element".split()
)
_TEXTS = {("text", "data")}
# spellings of NaN and infinity that C reads and Python does not, such as nan(0x1)
_NOT_FINITE = re.compile(r"[+-]?(nan|inf)\b", re.IGNORECASE)
_LONG = 30  # characters of a number that may be too large without an exponent
_SKIPPED = (("<!--", "-->"), ("<?", "?>"), ("<![CDATA[", "]]>"))
_TAG = re.compile(r"<(?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*>")


class Text(NamedTuple):
    """The elements of one XML text, and its size after expansion."""

    elements: list[Element]
    expanded: int  # number of elements after expansion of all replicas
    attached: int  # number of attached models
    repeated: int  # largest number of replicas that contain an included file


def read_text(content: bytes | str, source: str, bounds: ParsingLimits, *, main: bool = False) -> Text:
    """All elements of a text in document order; `main` is true for the model itself, false for an included text."""
    if isinstance(content, bytes):
        try:
            content = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise FileFormatError(
                f"{source}: its characters cannot be decoded ({error}); save the file as UTF-8"
            ) from None
    root = parse_xml(
        _blank_hyphens_in_comments(content) if len(content) <= bounds.max_bytes else content, source, bounds
    )
    if main and root.tag != "mujoco":
        urdf = "is URDF (<robot>); read it with jaxdyn.load_urdf or jaxdyn.parse_urdf"
        fail(root, urdf if root.tag == "robot" else "is not MJCF; the root element must be <mujoco>")
    return _count_content(root, bounds)


def _blank_hyphens_in_comments(text: str) -> str:
    """Replaces hyphens inside comments by spaces: XML forbids them, but many files have them.

    The search ends at the first syntax error, where the parser refuses the text.
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


def _count_content(root: Element, bounds: ParsingLimits) -> Text:
    elements: list[Element] = []
    expanded, attached, repeated = 0, 0, 1
    pending = [(root, 1)]
    while pending:
        element, times = pending.pop()
        elements.append(element)
        expanded += times * _num_elements(element, bounds)
        if expanded > bounds.max_elements:
            fail(
                element,
                f"expands to more than {bounds.max_elements} elements; raise bounds=ParsingLimits(max_elements=...)",
            )
        _check_finite(element)
        _check_sizes(element)
        tag = element.tag.lower()
        attached += times * (tag == "attach")
        repeated = max(repeated, times * (tag == "include"))
        inner = times * _count(element, "count", bounds) if tag == "replicate" else times
        if inner > bounds.max_links:
            fail(
                element, f"expands to more than {bounds.max_links} replicas; raise bounds=ParsingLimits(max_links=...)"
            )
        pending += [(child, inner) for child in reversed(element.children)]
    return Text(elements, expanded, attached, repeated)


def check_total_size(texts: Sequence[Text], source: str, bounds: ParsingLimits):
    """Limits the total size of all texts of a model; an attached model is copied for each attachment."""
    total = sum(text.expanded for text in texts) * max(text.repeated for text in texts)
    total *= math.prod(1 + text.attached for text in texts)
    if total > bounds.max_elements:
        raise FileFormatError(
            f"{source}: its files may expand to {total} elements, more than {bounds.max_elements}; if you trust it, "
            "raise bounds=ParsingLimits(max_elements=...)"
        )


def _num_elements(element: Element, bounds: ParsingLimits) -> int:
    """The size of an element: one, or the number of points of a grid."""
    grid = element.tag in ("flexcomp", "composite")
    return _count(element, "count", bounds) * _count(element, "cellcount", bounds) if grid else 1


def _count(element: Element, key: str, bounds: ParsingLimits) -> int:
    """Product of the whole numbers of an attribute, one where there is none."""
    product = 1
    for value in _array_sizes(element, key):
        product *= max(1, value)
        if product > bounds.max_elements:
            problem = f"{key} asks for more than {bounds.max_elements} elements"
            fail(element, f"{problem}; raise bounds=ParsingLimits(max_elements=...)")
    return product


def _array_sizes(element: Element, key: str) -> Iterator[int]:
    """Magnitudes of the numbers of an attribute, rounded up; words that are not numbers are skipped."""
    for word in element.attributes.get(key, "").split():
        try:
            value = abs(float(word))
        except ValueError:
            continue
        yield math.ceil(value) if value < MAX_SIZE else MAX_SIZE + 1


def _check_finite(element: Element):
    """Refuses NaN and infinite numbers, for some of which MuJoCo substitutes a default."""
    for key, text in element.attributes.items():
        if key in _NAMES or key.startswith("file") or (element.tag, key) in _TEXTS:
            continue
        for word in text.replace(",", " ").split():
            if not _may_be_infinite(word):
                continue
            try:
                finite = abs(float(word)) <= LARGEST  # false for NaN
            except ValueError:
                finite = not _NOT_FINITE.match(word)
            if not finite:
                fail(
                    element,
                    f"{key} has {word[:40]!r}, which is not a finite number of physical size; give finite numbers",
                )


def _may_be_infinite(word: str) -> bool:
    """A quick check, as a file has many words: NaN, infinity, an exponent, or many digits."""
    return len(word) >= _LONG or any(letter in word for letter in "nNeE")


def _check_sizes(element: Element):
    for keys in _SIZES:
        if any(element.tag not in _ONLY_OF.get(key, {element.tag}) for key in keys):
            continue
        if math.prod(max(1, x) for key in keys for x in _array_sizes(element, key)) > MAX_SIZE:
            fail(element, f"{' and '.join(sorted(keys))} request more than {MAX_SIZE} entries; give a smaller size")
    for key in filter(_PER_ELEMENT.fullmatch, element.attributes):
        if max(_array_sizes(element, key), default=0) > _MAX_PER_ELEMENT:
            fail(
                element, f"{key} is {element.attributes[key][:40]}, more than the {_MAX_PER_ELEMENT} allowed; reduce it"
            )
