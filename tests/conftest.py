"""Precision of the tests: float64, switched on before any array is made. What CI runs compiles in haste."""

import gc
import os
from pathlib import Path

import jax
import pytest

jax.config.update("jax_enable_x64", True)

MAPPINGS = Path("/proc/self/maps")
MANY_MAPPINGS = 20_000


IN_HASTE = ("not slow", "slow and not wide")


def pytest_configure(config):
    """Without LLVM's optimisations tests take two thirds of the time; with any other selection they run as users do.

    Collecting garbage takes a twentieth, as what stays, programs and their traces, is much: less often, then.
    """
    gc.set_threshold(100_000, 50, 50)
    if config.option.markexpr in IN_HASTE:
        os.environ["XLA_FLAGS"] = f"--xla_backend_optimization_level=0 {os.environ.get('XLA_FLAGS', '')}".strip()


def _continuous() -> set[str]:
    """The slow tests that CI runs: second words of the lines of the list."""
    lines = Path(__file__).with_name("continuous.txt").read_text(encoding="utf-8").splitlines()
    return {line.split(None, 1)[1] for line in lines if line and not line.startswith("#")}


def pytest_collection_modifyitems(items):
    """What is slow and not on the list is wide."""
    listed = _continuous()
    for item in items:
        if item.get_closest_marker("slow") and item.nodeid not in listed:
            item.add_marker(pytest.mark.wide)


@pytest.fixture(autouse=True)
def programs_are_forgotten():
    """Forgets compiled programs before they fill the process.

    Each one holds some ten memory mappings. Linux allows a process 65,530 (vm.max_map_count), which a few hundred
    slow tests exceed; XLA then aborts.
    """
    yield
    if MAPPINGS.exists() and MAPPINGS.read_bytes().count(b"\n") > MANY_MAPPINGS:
        jax.clear_caches()
