"""The code of docs/constraints.md runs, and the page names every constraint, stabilisation method and function."""

import pytest

import jaxdyn.constraints as jc

from ..pages import read_page, run_page


@pytest.mark.slow
def test_page_runs():
    run_page("constraints")


def test_page_names_every_constraint_stabilisation_and_function():
    text = read_page("constraints")
    bases = jc.AbstractConstraint, jc.AbstractStabilisation
    kinds = [n for n, c in vars(jc).items() if isinstance(c, type) and issubclass(c, bases) and "Abstract" not in n]
    functions = [n for n, f in vars(jc).items() if type(f).__name__ == "function"]
    assert len(kinds) > 20 and len(functions) > 10
    assert [n for n in (*kinds, *functions) if n not in text] == []
