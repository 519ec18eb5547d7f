"""Each test, notebook and page with code is in exactly one tier; the parts cover the exhaustive tier."""

import re
import subprocess
import sys

import pytest

from tests.conftest import PARTS, chosen_part, part_of
from tests.notebooks.test_notebooks import notebooks
from tests.pages import DOCS, code_blocks

ROOT = DOCS.parent
#: the selections of README.md and .ci/run
TIERS = {"default": "not slow and not exhaustive", "slow": "slow and not exhaustive", "exhaustive": "exhaustive"}


def collect(*options: str) -> list[str]:
    """Identifiers of the tests that pytest selects with these options."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", "--jaxtyping-packages=", *options]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    return [line for line in run.stdout.splitlines() if "::" in line]


@pytest.fixture(scope="module")
def tiers() -> dict[str, list[str]]:
    return {name: collect("-m", expression) for name, expression in TIERS.items()}


@pytest.mark.slow
def test_each_test_is_in_one_tier(tiers):
    everything = collect("-m", "slow or not slow")
    assert sorted(test for tests in tiers.values() for test in tests) == sorted(everything)
    assert all(tiers.values())


@pytest.mark.slow
def test_notebooks_and_pages_run_in_ci(tiers):
    run = [test for name in ("default", "slow") for test in tiers[name]]
    for path in notebooks():
        assert any(f"test_notebook_runs[{path.stem}]" in test for test in run), path.name
    sources = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("tests/**/test_*.py"))
    pages = ["README", *(path.stem for path in DOCS.glob("*.md") if code_blocks(path.stem))]
    assert [page for page in pages if f'run_page("{page}"' not in sources] == []


def test_parts_cover_the_exhaustive_tier():
    names = [f"tests/test_a.py::test_b[{k}]" for k in range(500)]
    sizes = [sum(part_of(name) == part for name in names) for part in range(PARTS)]
    assert sum(sizes) == len(names) and min(sizes) > 0
    assert chosen_part(None) is None and chosen_part("7") == 7 and chosen_part("commit") in range(PARTS)
    with pytest.raises(pytest.UsageError, match="expected 'commit' or a number"):
        chosen_part(str(PARTS))


def test_ci_runs_every_tier():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    commands = re.findall(r"^step \"python -m pytest (.*)\"$", script, re.M)
    slow, exhaustive = commands
    assert f"-m '{TIERS['slow']}'" in slow and "-m exhaustive" in exhaustive
    assert "--part commit" in exhaustive


def test_no_test_is_skipped_for_good():
    files = [path for path in ROOT.glob("tests/**/*.py") if path.name != "test_tiers.py"]
    pattern = re.compile(r"pytest\.mark\.(skip\b|skipif\(True)")
    assert [str(path) for path in files if pattern.search(path.read_text(encoding="utf-8"))] == []
