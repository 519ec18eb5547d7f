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


#: prints the markers of each test
COLLECT = """
import pytest

class PrintMarkers:
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        for item in items:
            print("MARKERS", "slow" in item.keywords, "exhaustive" in item.keywords, item.nodeid)

options = ["--collect-only", "-q", "-n", "0", "--jaxtyping-packages=", "-m", "slow or not slow"]
raise SystemExit(pytest.main(options, plugins=[PrintMarkers()]))
"""


def select_tiers(slow: bool, exhaustive: bool) -> list[str]:
    """The tiers whose selections hold for a test with these markers."""
    markers = {"slow": slow, "exhaustive": exhaustive}
    return [name for name, expression in TIERS.items() if eval(expression, {}, markers)]


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("exhaustive", [False, True])
def test_each_test_is_in_one_tier(slow, exhaustive):
    assert len(select_tiers(slow, exhaustive)) == 1


@pytest.mark.slow
def test_notebooks_and_pages_run_in_ci():
    command = [sys.executable, "-c", COLLECT]
    collected = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert collected.returncode == 0, collected.stdout[-2000:] + collected.stderr[-2000:]
    rows = [line.split(maxsplit=3) for line in collected.stdout.splitlines() if line.startswith("MARKERS")]
    tiers: dict[str, list[str]] = {name: [] for name in TIERS}
    for _, slow, exhaustive, test in rows:
        tiers[select_tiers(slow == "True", exhaustive == "True")[0]].append(test)
    assert all(tiers.values())
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
