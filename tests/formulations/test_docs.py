"""The code of docs/formulations.md runs, and the page names every formulation."""

import re
from pathlib import Path

import pytest

from jaxdyn import formulations
from tests.formulations._cases import COVERED

PAGE = Path(__file__).parents[2] / "docs" / "formulations.md"


@pytest.mark.slow
def test_the_page_runs():
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    assert len(blocks) == 4
    names: dict = {"__name__": "formulations_page"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)


def test_the_page_names_every_formulation_and_function():
    text = PAGE.read_text(encoding="utf-8")
    assert [type(f).__name__ for f, _ in COVERED if f"`{type(f).__name__}(" not in text] == []
    public = [n for n, x in vars(formulations).items() if callable(x) and not n.startswith("_") and n[0].islower()]
    # beside `exponential_jacobian`
    rates = {"exponential_jacobian_rate", "moving_jacobian", "moving_jacobian_rate", "screw_exponential"}
    assert [n for n in public if f"`{n}`" not in text and n not in rates] == []
