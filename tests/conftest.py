"""Precision of the tests: float64, switched on before any array is made. The default run compiles in haste."""

import os
from pathlib import Path

import jax
import pytest

jax.config.update("jax_enable_x64", True)

MAPPINGS = Path("/proc/self/maps")
MANY_MAPPINGS = 20_000


def pytest_configure(config):
    """Without LLVM's optimisations the default run takes two thirds of the time; the slow tests run as users do."""
    if config.option.markexpr == "not slow":
        os.environ["XLA_FLAGS"] = f"--xla_backend_optimization_level=0 {os.environ.get('XLA_FLAGS', '')}".strip()


@pytest.fixture(autouse=True)
def programs_are_forgotten():
    """Forgets compiled programs before they fill the process.

    Each one holds some ten memory mappings. Linux allows a process 65,530 (vm.max_map_count), which a few hundred
    slow tests exceed; XLA then aborts.
    """
    yield
    if MAPPINGS.exists() and MAPPINGS.read_bytes().count(b"\n") > MANY_MAPPINGS:
        jax.clear_caches()
