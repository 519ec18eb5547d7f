"""Runs the Python code of a documentation page."""

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"


def read_page(page: str) -> str:
    """The text of `docs/{page}.md`; "README" is the front page."""
    path = DOCS.parent / "README.md" if page == "README" else DOCS / f"{page}.md"
    return path.read_text(encoding="utf-8")


def code_blocks(page: str, language: str = "python") -> list[str]:
    """The fenced blocks of one language on a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", read_page(page), re.S | re.M)


def run_page(page: str, *, skip=lambda block: False) -> dict[str, Any]:
    """Executes the Python blocks of a page one after the other in one namespace, which it returns."""
    names: dict[str, Any] = {"__name__": f"{page}_page"}
    blocks = [block for block in code_blocks(page) if not skip(block)]
    assert blocks, f"{page} has no Python code"
    for number, block in enumerate(blocks):
        exec(compile(block, f"{page}.md[{number}]", "exec"), names)
    return names
