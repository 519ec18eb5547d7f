"""The code of docs/formulations.md runs, and the page lists every formulation."""

import pytest

from jaxdyn import formulations
from tests.formulations._cases import COVERED
from tests.pages import code_blocks, read_page, run_page


@pytest.mark.slow
def test_page_runs():
    assert len(code_blocks("formulations")) == 4
    run_page("formulations")


def test_page_lists_every_formulation_and_function():
    text = read_page("formulations")
    assert [type(f).__name__ for f, _ in COVERED if f"`{type(f).__name__}(" not in text] == []
    public = [n for n, x in vars(formulations).items() if callable(x) and not n.startswith("_") and n[0].islower()]
    # beside `exponential_jacobian`
    rates = {"exponential_jacobian_rate", "moving_jacobian", "moving_jacobian_rate", "screw_exponential"}
    assert [n for n in public if f"`{n}`" not in text and n not in rates] == []
