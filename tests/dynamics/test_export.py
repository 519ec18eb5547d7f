"""Every public function lowers for accelerators, without operations that exist on CPUs only."""

import collections
import re

import jax
import jax.numpy as jnp
import pytest

from tests.dynamics._cases import model, state
from tests.dynamics._functions import FUNCTIONS, scalar

PLATFORMS = ("cuda", "tpu")


def _lower(f, args, platforms=PLATFORMS):
    """Exports one program for several platforms."""
    return jax.export.export(jax.jit(f), platforms=platforms)(*args)


def _operations(exported):
    return collections.Counter(re.findall(r"\bstablehlo\.(\w+)", exported.mlir_module()))


@pytest.mark.slow(
    "rnea",
    "mass_matrix",
    "forward_dynamics",
    "gravity_forces",
    "kinetic_energy",
    "momentum",
    "inertial_regressor",
    "inertial_parameters",
    "passive_forces",
)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_lowers(name):
    args = (model("every"), *state("every"))
    assert _lower(FUNCTIONS[name], args).platforms == PLATFORMS


@pytest.mark.slow("forward_dynamics")
@pytest.mark.parametrize("name", ["rnea", "forward_dynamics", "mass_matrix"])
def test_gradient_lowers(name):
    args = (model("every"), *state("every"))
    f = jax.grad(scalar(name), argnums=(0, 1, 2, 3, 4))
    assert _lower(f, args).platforms == PLATFORMS


@pytest.mark.slow
def test_batch_lowers():
    args = (model("every"), *(jnp.stack([x, x]) for x in state("every")))
    f = jax.vmap(FUNCTIONS["rnea"], (None, 0, 0, 0, 0))
    assert _lower(f, args).platforms == PLATFORMS


# Upper bounds of one inverse dynamics of the 7-joint arm on a GPU: each loop is a round of kernel launches a link, each
# arithmetic operation outside of loops at most one kernel. With JAX 0.9.0 and 0.10.2 the arithmetic is the same, 704
# operations (656 before bodies had moments about their origin, whose derivatives are exact at zero mass); operations
# that only move data are some 550 and 370, because indexing is lowered differently.
MOST_LOOPS = 2
MOST_ARITHMETIC = 750
MOVES = {"broadcast_in_dim", "concatenate", "constant", "convert", "dynamic_slice", "dynamic_update_slice", "gather"}
MOVES |= {"iota", "pad", "reshape", "return", "reverse", "scatter", "slice", "transpose"}


def test_size_of_inverse_dynamics_on_a_gpu():
    args = (model("arm"), *state("arm"))
    count = _operations(_lower(FUNCTIONS["rnea"], args, ["cuda"]))
    moves = sum(count[name] for name in MOVES)
    assert count["while"] <= MOST_LOOPS
    assert count["multiply"] > 100  # the operations are found
    assert count.total() - moves <= MOST_ARITHMETIC
    assert moves <= MOST_ARITHMETIC
