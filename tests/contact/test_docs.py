"""The code of docs/contact.md runs, and the page names every shape, surface and function."""

import pytest

import jaxdyn.contact as ct

from ..pages import read_page, run_page


@pytest.mark.slow
def test_page_runs():
    assert run_page("contact")["floor"].shape.radius == 0.05


def test_page_names_every_shape_surface_and_function():
    text = read_page("contact")
    bases = ct.AbstractGap, ct.AbstractShape, ct.AbstractSurface
    kinds = [n for n, c in vars(ct).items() if isinstance(c, type) and issubclass(c, bases) and "Abstract" not in n]
    functions = [n for n, f in vars(ct).items() if type(f).__name__ == "function"]
    assert len(kinds) > 9 and len(functions) > 4
    assert [n for n in (*kinds, *functions, "FunctionalCoordinates") if n not in text] == []
