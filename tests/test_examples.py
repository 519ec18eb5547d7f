"""The examples at the ends of docstrings run as they stand."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "jaxdyn"


def examples() -> Iterator[tuple[str, str]]:
    """Names of the documented objects and the Python blocks of their docstrings."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                doc = inspect.cleandoc(ast.get_docstring(node) or "")
                blocks = re.findall(r"^ *```python\n(.*?)^ *```", doc, re.S | re.M)
                if blocks:
                    folder = ".".join(path.relative_to(PACKAGE).parts[:-1])
                    yield f"{folder}.{getattr(node, 'name', path.stem)}", "\n".join(map(textwrap.dedent, blocks))


EXAMPLES = list(examples())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_example_runs(name: str, code: str, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, name, "exec"), {"__name__": "example"})


def test_entry_points_have_examples():
    assert len(EXAMPLES) >= 40
    assert len({name for name, _ in EXAMPLES}) == len(EXAMPLES)
