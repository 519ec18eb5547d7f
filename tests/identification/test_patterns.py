"""Regular expressions of users for column names match in bounded time, or are refused."""

import random
import time

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.identification import Columns, LogError, Source, Table
from jaxdyn.identification.logs import map_columns
from jaxdyn.identification.logs._patterns import MAX_NAME, compile_column_pattern, compile_table_pattern

JOINT = "(?P<joint>.+)"
#: each takes minutes to years on a name of 40 to 256 letters that does not match
ENDLESS = (
    "(a+)+(?P<joint>b)",
    "(?:a|a)*(?P<joint>b)",
    "(?:a|ab|b)*(?P<joint>c)",
    "(?:a?){40}a{40}(?P<joint>b)",
    "((?:a*)*)*(?P<joint>b)",
    "(?:(?=a*b)a)*(?P<joint>b)",
    "(?:(?P<joint>.)|a)+?b",
    "(?:(?>a*)b?)*(?P<joint>c)",
    "(?:a*+a?)*(?P<joint>c)",
    "(?:){4000000000}(?P<joint>b)",
    ".*.*.*.*(?P<joint>b)",
    "(a)?(?(1)(?:a|a)*|a)(?P<joint>b)",
)
USUAL = (
    "{joint}",
    "q[{index}]",
    r"p(?P<number>\d)",
    r"p\d|i (?P<joint>.+)",
    r"(?:left|right)_(?P<joint>[a-z_]+)_(?:pos|position)(?:_rad)?",
    r".*/(?P<joint>\w+)/position",
    r"(?i:Joint)(?P<number>\d{1,3})\.(?:q|pos)(?<!x)$",
)


@pytest.mark.parametrize("pattern", ENDLESS)
def test_expressions_that_do_not_end_are_refused(pattern):
    with pytest.raises(jd.ModelError, match="in so many ways that the search does not end; use at most three repeats"):
        compile_column_pattern(pattern)
    with pytest.raises(jd.ModelError, match="use at most two repeats"):
        compile_table_pattern(pattern)


@pytest.mark.parametrize("pattern", USUAL)
def test_usual_expressions_are_accepted(pattern):
    compile_column_pattern(pattern)


def test_names_are_limited_where_the_time_grows_faster_than_their_length():
    name, column = "a" * (MAX_NAME + 1), np.zeros(3)
    arm = jd.robots.pendulum()
    joint = arm.joint_names[0]
    table = Table("run", {"t": np.arange(3.0), f"q {joint}": column, f"e {joint}": column, name: column})
    mapped = lambda pattern: map_columns([table], arm, Columns(Source(pattern), Source("e {joint}")), "run")
    mapped("q {joint}")
    with pytest.raises(
        LogError, match="run: has the name 'a+'... of 257 characters; an expression with several repeats"
    ):
        mapped(".*(?P<joint>[a-z]+).*")


def _random_expression(rng: random.Random, depth: int = 3) -> str:
    inner = lambda: _random_expression(rng, depth - 1)
    if depth == 0 or rng.random() < 0.25:
        return rng.choice(("a", "b", ".", "[ab]", "a*", ".*", "a+?", "a?", "(?:ab)*", "a{0,9}"))
    return rng.choice(
        (
            lambda: inner() + inner(),
            lambda: f"(?:{inner()}|{inner()})",
            lambda: f"(?:{inner()}){rng.choice(('*', '+', '?', '*?', '{2,5}', '{3}', '*+'))}",
            lambda: rng.choice(("(?={})", "(?!{})", "(?>{})", "(?:{})")).format(inner()),
        )
    )()


@pytest.mark.slow
def test_random_expressions_end_or_are_refused():
    rng, names = random.Random(0), ("a" * MAX_NAME, "ab" * (MAX_NAME // 2))
    accepted, slowest = 0, 0.0
    for _ in range(4000):
        try:
            expression, _ = compile_column_pattern(f"{_random_expression(rng)}(?P<joint>c)")
        except jd.ModelError:
            continue
        accepted += 1
        for name in names:
            start = time.perf_counter()
            assert expression.match(name, "") is None
            slowest = max(slowest, time.perf_counter() - start)
    assert accepted > 1000 and slowest < 2
