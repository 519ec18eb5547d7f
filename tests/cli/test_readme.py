"""The README's code runs and its links exist."""

import re
from pathlib import Path

import pytest

from tests.pages import run_page

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_code_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_page("README")
    assert names["accelerations"].shape == (4096, 2)
    assert abs(names["fall"].energy[-1] - names["fall"].energy[0]) < 1e-6
    assert names["model"].report == ()


def test_links_exist():
    targets = re.findall(r'\]\(([^)#:]+)\)|src="([^":]+)"', README)
    assert targets
    assert [path for pair in targets for path in pair if path and not (ROOT / path).exists()] == []


def test_set_up_is_two_commands():
    fenced = "".join(re.findall(r"^ *```.*?^ *```", README, re.DOTALL | re.MULTILINE))
    commands = re.findall(r"^ *(python -m pip install.*)$", fenced, re.MULTILINE)
    assert commands == [
        "python -m pip install . && jaxdyn tour",
        'python -m pip install ".[test]" && python -m pytest',
    ]
