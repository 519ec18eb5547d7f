"""Precision of the tests: float64, switched on before any array is made. The default run compiles in haste."""

import os

import jax

jax.config.update("jax_enable_x64", True)


def pytest_configure(config):
    """Without LLVM's optimisations the default run takes two thirds of the time; the slow tests run as users do."""
    if config.option.markexpr == "not slow":
        os.environ["XLA_FLAGS"] = f"--xla_backend_optimization_level=0 {os.environ.get('XLA_FLAGS', '')}".strip()
