"""The notebooks run as they are; each one ends in a check of its own."""

import ast
import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"


def cells(path: Path) -> list[str]:
    """Code of a notebook, cell by cell."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def notebooks() -> list[Path]:
    return sorted(FOLDER.glob("*.ipynb"))


def test_there_are_notebooks():
    assert notebooks()


def _case(path: Path):
    """CI leaves out what compiles for more than half a minute and is checked piece by piece in other tests."""
    heavy = path.stem == "carrying_a_load"
    return pytest.param(path, marks=[pytest.mark.wide] * heavy, id=path.stem)


@pytest.mark.slow
@pytest.mark.parametrize("path", [_case(path) for path in notebooks()])
def test_notebook_runs(path: Path):
    code = cells(path)
    assert any(isinstance(node, ast.Assert) for node in ast.parse(code[-1]).body), "the last cell checks nothing"
    names: dict = {}
    for number, cell in enumerate(code):
        exec(compile(cell, f"{path.name}[{number}]", "exec"), names)
