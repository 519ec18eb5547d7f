r"""Patterns of column and table names: placeholders or regular expressions, matched in bounded time.

Python's matcher backtracks: `(a+)+b` tries `2^n` ways to match n letters. The number of ways in which an expression
splits any name of up to `MAX_NAME` characters bounds its steps, and follows from its structure: the product over a
sequence, the sum over alternatives, the number of lengths of a repeat. An expression with more than `_MAX_WAYS` ways is
refused; three repeats such as `.+` and a few alternatives are below it and take milliseconds.
"""

import importlib
import re
from dataclasses import dataclass
from typing import Any

from jaxdyn._errors import ModelError
from jaxdyn.identification.logs.tables import LogError

#: the parser of Python's expressions, which has no type stubs
_CODES: Any = importlib.import_module("re._constants")
_PARSER: Any = importlib.import_module("re._parser")

#: the longest name that is matched, in characters
MAX_NAME = 256
_MAX_WAYS = 4 * MAX_NAME**3
#: up to here the steps grow with the length of a name: one repeat and a few alternatives
_LINEAR_WAYS = 4 * MAX_NAME
_REPEATS = (_CODES.MAX_REPEAT, _CODES.MIN_REPEAT, _CODES.POSSESSIVE_REPEAT)
_PLACEHOLDERS = {"{joint}": "(?P<joint>.+)", "{index}": r"(?P<index>\d+)", "{number}": r"(?P<number>\d+)"}


@dataclass(frozen=True)
class BoundedPattern:
    """A regular expression whose search in a name ends."""

    expression: re.Pattern[str]
    #: upper bound of the number of ways in which a name of `MAX_NAME` characters matches
    ways: int

    def match(self, name: str, holder: str) -> re.Match[str] | None:
        """The match of a whole name; `holder` names the file or topic in errors."""
        return self.expression.fullmatch(self._check(name, holder))

    def is_in(self, name: str, holder: str) -> bool:
        """True if a part of the name matches."""
        return self.expression.search(self._check(name, holder)) is not None

    def _check(self, name: str, holder: str) -> str:
        if len(name) > MAX_NAME and self.ways > _LINEAR_WAYS:
            raise LogError(
                f"{holder[:80]}: has the name {name[:40]!r}... of {len(name)} characters; an expression with several "
                f"repeats matches names of at most {MAX_NAME}: use a placeholder such as {{joint}}, or list the names"
            )
        return name


def compile_column_pattern(pattern: str) -> tuple[BoundedPattern, str]:
    """The regular expression of a pattern, and the name of the group that identifies the joint."""
    bounded = _compile(_to_regex(pattern), "pattern")
    groups = bounded.expression.groupindex.keys() & {"joint", "index", "number"}
    if len(groups) != 1:
        raise ModelError(
            f"pattern {pattern[:80]!r} does not identify the joint; add {{joint}}, {{index}} or {{number}}, or a named "
            "group such as (?P<joint>.+)"
        )
    return bounded, groups.pop()


def compile_table_pattern(pattern: str) -> BoundedPattern:
    """The regular expression that is searched in the names of tables."""
    return _compile(pattern, "table", starts=MAX_NAME)


def _to_regex(pattern: str) -> str:
    """The regular expression of a pattern with placeholders; a pattern without placeholders is already one."""
    pieces = re.split(r"(\{joint\}|\{index\}|\{number\})", pattern)
    if len(pieces) == 1:
        return pattern
    return "".join(_PLACEHOLDERS.get(piece) or re.escape(piece) for piece in pieces)


def _compile(text: str, what: str, starts: int = 1) -> BoundedPattern:
    try:
        compiled, ways = re.compile(text), starts * _ways(_PARSER.parse(text))
    except (re.error, OverflowError, RecursionError) as error:  # the last two for huge counts and many groups
        raise ModelError(f"{what} {text[:80]!r} is not a valid regular expression ({error}); correct it") from None
    if ways > _MAX_WAYS:
        raise ModelError(
            f"{what} {text[:80]!r} can match a name in so many ways that the search does not end; use at most "
            f"{'three' if starts == 1 else 'two'} repeats such as .+ or [a-z_]*, and neither repeats nor alternatives "
            "inside a repeat"
        )
    return BoundedPattern(compiled, ways)


def _ways(items: Any) -> int:
    """The number of ways in which a sequence of parsed items matches the beginning of a name, limited by a bound."""
    total = 1
    for code, value in items:
        total = min(total * _ways_of_item(code, value), _MAX_WAYS + 1)
    return total


def _ways_of_item(code: Any, value: Any) -> int:
    if code in _REPEATS:
        return _ways_of_repeat(*value)
    if code is _CODES.SUBPATTERN:
        return _ways(value[3])
    if code is _CODES.BRANCH:
        return sum(map(_ways, value[1]))
    if code in (_CODES.ASSERT, _CODES.ASSERT_NOT):
        return _ways(value[1])
    if code is _CODES.ATOMIC_GROUP:
        return _ways(value)
    if code is _CODES.GROUPREF_EXISTS:
        return _ways(value[1]) + _ways(value[2] or ())
    return 1  # a character, a set of characters, a position, or a reference to a group


def _ways_of_repeat(least: int, most: int, body: Any) -> int:
    """The sum over the possible numbers of repetitions; more than `MAX_NAME` of them are not in any name."""
    if least > MAX_NAME:
        return _MAX_WAYS + 1
    each, total, power = _ways(body), 0, 1
    for count in range(min(int(most), MAX_NAME) + 1):
        total += power if count >= least else 0
        power = min(power * each, _MAX_WAYS + 1)
    return min(total, _MAX_WAYS + 1)
