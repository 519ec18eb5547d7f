"""The code of docs/constraints.md runs, and the page names what there is."""

import re
from pathlib import Path

import pytest

import jaxdyn.constraints as jc

PAGE = Path(__file__).parents[2] / "docs" / "constraints.md"


@pytest.mark.slow
def test_the_page_runs():
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    assert len(blocks) == 3
    names: dict = {"__name__": "constraints_page"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)


def test_the_page_names_every_constraint_remedy_and_function():
    text = PAGE.read_text(encoding="utf-8")
    bases = jc.AbstractConstraint, jc.AbstractStabilisation
    kinds = [n for n, c in vars(jc).items() if isinstance(c, type) and issubclass(c, bases) and "Abstract" not in n]
    functions = [n for n, f in vars(jc).items() if type(f).__name__ == "function"]
    assert len(kinds) > 20 and len(functions) > 10
    assert [n for n in (*kinds, *functions) if n not in text] == []
