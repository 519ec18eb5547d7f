"""Precision of the tests: float64, switched on before any array is made."""

import jax

jax.config.update("jax_enable_x64", True)
