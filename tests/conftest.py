"""Test tiers, precision, and memory.

Float64 is switched on before any array is made. A test is in one of three tiers, by its marker:

* no marker: the default run, which compiles as users' programs do and checks shapes and types at run time;
* `slow`: CI runs all of them. `slow("case", ...)` puts the named cases of a parametrised test here and its other cases
  into the exhaustive tier;
* `exhaustive`: CI runs one part in `PARTS` at each commit (`--part`).
"""

import gc
import itertools
import os
import subprocess
import zlib
from pathlib import Path

import jax
import pytest

from tests._public_calls import PublicCalls

jax.config.update("jax_enable_x64", True)

MAPPINGS = Path("/proc/self/maps")
MANY_MAPPINGS = 20_000
#: tests between two counts of the mappings; one count takes ten milliseconds
TESTS_BETWEEN_COUNTS = 8
_TESTS = itertools.count(1)
#: number of parts of the exhaustive tier
PARTS = 24


def pytest_addoption(parser):
    group = parser.getgroup("tiers")
    group.addoption(
        "--quick-compile",
        action="store_true",
        help="compile without LLVM's optimisations: tests take two thirds of the time",
    )
    group.addoption(
        "--part",
        metavar="N",
        help=f"run part N of {PARTS} of the selected tests, counted from 0; 'commit' derives N from the commit",
    )


def pytest_configure(config):
    """Garbage collection takes a twentieth of the time at the default thresholds: much of the memory stays."""
    gc.set_threshold(100_000, 50, 50)
    if config.option.quick_compile:
        os.environ["XLA_FLAGS"] = f"--xla_backend_optimization_level=0 {os.environ.get('XLA_FLAGS', '')}".strip()
    config.pluginmanager.register(PublicCalls(config), "public-calls")


def chosen_part(option: str | None) -> int | None:
    """The part that `--part` names, or None for all parts."""
    if option is None:
        return None
    if option == "commit":
        command = ["git", "rev-list", "--count", "HEAD"]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) % PARTS
    if not option.isdigit() or int(option) >= PARTS:
        raise pytest.UsageError(f"--part is {option!r}, expected 'commit' or a number from 0 to {PARTS - 1}")
    return int(option)


def part_of(nodeid: str) -> int:
    """The part of the exhaustive tier that a test belongs to."""
    return zlib.crc32(nodeid.encode()) % PARTS


def _is_unnamed_case(item) -> bool:
    """Whether `slow(...)` names cases of this test, and not this one."""
    named = [m.args for m in item.iter_markers("slow") if m.args]
    return bool(named) and item.callspec.id not in named[0]


@pytest.fixture
def without_annotations(request):
    """For tests of the library's own messages: run-time checks of annotations, if they are on, refuse before."""
    if request.config.getoption("jaxtyping_packages", None):
        pytest.skip("annotations are checked at run time; switch that off by --jaxtyping-packages=")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    for item in items:
        if _is_unnamed_case(item):
            item.add_marker(pytest.mark.exhaustive)
    part = chosen_part(config.option.part)
    if part is not None:
        chosen = [item for item in items if part_of(item.nodeid) == part]
        config.hook.pytest_deselected(items=[item for item in items if part_of(item.nodeid) != part])
        items[:] = chosen


def pytest_terminal_summary(terminalreporter, config):
    part = chosen_part(config.option.part)
    if part is not None:
        command = f"python -m pytest -m '{config.option.markexpr}' --part {part}"
        terminalreporter.write_line(f"part {part} of {PARTS}; run it again with: {command}")


@pytest.fixture(autouse=True)
def clear_full_caches():
    """Clears compiled programs before they fill the process.

    Each one holds some ten memory mappings. Linux allows a process 65,530 (vm.max_map_count), which a few hundred
    slow tests exceed; XLA then aborts.
    """
    yield
    if next(_TESTS) % TESTS_BETWEEN_COUNTS or not MAPPINGS.exists():
        return
    if MAPPINGS.read_bytes().count(b"\n") > MANY_MAPPINGS:
        jax.clear_caches()
