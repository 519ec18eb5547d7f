"""Sentences of package and documentation avoid archaic words and subjects that name nothing (see CONTRIBUTING.md)."""

import ast
import re

import pytest

from tests._architecture import ROOT

ARCHAIC = re.compile(r"\b(lest|whereof|wherein|thereof|astray|hitherto|so to speak|told apart)\b")
#: a docstring that begins with a pronoun instead of naming its subject
PRONOUN = re.compile(r"^(What|That which|Those that|Whatever)\b")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = sorted((ROOT / "jaxdyn").rglob("*.py"))


def archaic_lines(text: str) -> list[str]:
    """Lines with an archaic word outside code spans."""
    return [line for line in text.splitlines() if ARCHAIC.search(re.sub(r"`[^`]*`", "", line))]


def docstrings_without_subject(text: str) -> list[str]:
    """First lines of docstrings that begin with a pronoun."""
    nodes = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef))
    docs = ((ast.get_docstring(node) or "").partition("\n")[0] for node in nodes)
    return [doc for doc in docs if PRONOUN.search(doc)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page(path):
    assert archaic_lines(path.read_text(encoding="utf-8")) == []


def test_modules():
    texts = {path: path.read_text(encoding="utf-8") for path in MODULES}
    found = {str(path): archaic_lines(text) + docstrings_without_subject(text) for path, text in texts.items()}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_violations_are_found():
    assert archaic_lines("a value, lest it be lost\n`astray`") == ["a value, lest it be lost"]
    assert docstrings_without_subject('"""What is done."""\ndef f():\n    """The sum."""') == ["What is done."]
