"""Compile time, run time and memory over the number of links; one trace per structure."""

import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from tests.dynamics._cases import chain, model, state
from tests.dynamics._functions import FUNCTIONS, scalar


def _arguments(n, seed=0):
    rng = np.random.default_rng(seed)
    q, v, a = (jnp.asarray(rng.uniform(-0.1, 0.1, n)) for _ in range(3))
    return chain(n), q, v, a, jnp.zeros((n, 6))


def _best_time(f, args, repeats=7):
    jax.block_until_ready(f(*args))
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(f(*args))
        times.append(time.perf_counter() - start)
    return min(times)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rnea", "forward_dynamics"])
def test_compile_time_is_constant_and_run_time_linear_in_links(name):
    args = _arguments(1000)
    start = time.process_time()
    f = jax.jit(FUNCTIONS[name]).lower(*args).compile()
    assert time.process_time() - start < 3.0
    assert np.isfinite(np.asarray(f(*args))).all()
    small = _arguments(250)
    ratio = _best_time(f, args) / _best_time(jax.jit(FUNCTIONS[name]), small)
    assert ratio < 8.0  # four times the links: linear is 4, quadratic 16


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rnea", "forward_dynamics"])
def test_compile_time_of_a_gradient_does_not_depend_on_length(name):
    f = jax.grad(scalar(name), argnums=(0, 1, 2, 3, 4))
    args = _arguments(1000)
    start = time.process_time()
    g = jax.jit(f).lower(*args).compile()(*args)
    assert time.process_time() - start < 9.0  # three seconds on an idle core, and a margin for a busy one
    assert all(np.isfinite(np.asarray(x)).all() for x in jax.tree.leaves(g))


def _gradient_memory(name, n):
    f = jax.jit(jax.grad(scalar(name), argnums=(0, 1, 2, 3, 4)))
    return f.lower(*_arguments(n)).compile().memory_analysis().temp_size_in_bytes


@pytest.mark.slow("forward_dynamics")
@pytest.mark.parametrize("name", ["rnea", "forward_dynamics"])
def test_memory_of_reverse_mode_is_linear_in_links(name):
    """Each further link needs the same memory: doubling the links about doubles the growth."""
    small, middle, large = (_gradient_memory(name, n) for n in (100, 200, 400))
    growth = (large - middle) / max(middle - small, 1)
    assert growth < 2.5  # 2 is linear, 4 quadratic
    assert large / 400 < 64 * 1024  # bytes a link


def _count_traces(f):
    count = [0]

    def g(*args):
        count[0] += 1
        return f(*args)

    return jax.jit(g), count


@pytest.mark.parametrize(
    "name", ["forward_dynamics", *(pytest.param(x, marks=pytest.mark.slow) for x in ("rnea", "mass_matrix"))]
)
def test_models_of_one_structure_are_traced_once(name):
    """Other numbers, a rebuilt robot and edited leaves run the same program."""
    f, count = _count_traces(FUNCTIONS[name])
    args = (model("arm"), *state("arm"))
    f(*args)
    f(model("arm"), *state("arm", 1))
    edited = eqx.tree_at(lambda m: m.links.mass, args[0], args[0].links.mass * 2)
    f(edited, *args[1:])
    rebuilt = jax.tree.unflatten(jax.tree.structure(args[0]), jax.tree.leaves(args[0]))
    f(rebuilt, *args[1:])
    f(*jax.tree.map(np.asarray, args))
    assert count[0] == 1


@pytest.mark.slow
def test_weak_types_do_not_compile_twice():
    """A step of integration preserves shapes, types and weak types, so that its result can be its argument."""
    m = model("arm")

    def step(m, q, v):
        a = jd.forward_dynamics(m, q, v, -v)
        return jd.integrate(m, q, v * 1e-3), v + 1e-3 * a

    f, count = _count_traces(step)
    q, v = jd.neutral(m), jnp.zeros(m.nv)
    for _ in range(3):
        q, v = f(m, q, v)
    assert count[0] == 1
    assert f._cache_size() == 1


@pytest.mark.slow
def test_models_of_one_topology_share_a_program():
    f, count = _count_traces(FUNCTIONS["rnea"])
    for spread in (0.1, 0.2):
        m = chain(4, spread=spread)
        f(m, *(jnp.ones(4),) * 3, jnp.zeros((4, 6)))
    assert count[0] == 1
