"""Notebooks run as they are; the last cell of each one asserts its result."""

import ast
import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"


def code_cells(path: Path) -> list[str]:
    """Source of the code cells of a notebook."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def notebooks() -> list[Path]:
    """All notebooks of the project."""
    return sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_notebook_runs(path: Path):
    code = code_cells(path)
    assert any(isinstance(node, ast.Assert) for node in ast.parse(code[-1]).body), "the last cell checks nothing"
    names: dict = {}
    for number, cell in enumerate(code):
        exec(compile(cell, f"{path.name}[{number}]", "exec"), names)


def test_notebooks_are_found():
    assert len(notebooks()) >= 10
