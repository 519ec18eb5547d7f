"""Derivatives of rollouts in everything they depend on, in both modes, and their memory."""

import subprocess
import sys
import textwrap
from pathlib import Path

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from benchmarks.memory import temporaries
from jaxdyn.simulation import (
    Feedback,
    SampledFeedback,
    System,
    simulate,
)
from tests.simulation._cases import floating, state


class Spring(eqx.Module):
    """`-k q - d v`, with gains that are leaves."""

    stiffness: jax.Array
    damping: jax.Array

    def __call__(self, t, q, v):
        return -self.stiffness * q - self.damping * v


#: compiling is nearly all of these tests' time
QUICK = {"xla_backend_optimization_level": 0}


def check(f, x, step=1e-5, tolerance=1e-6):
    """The gradient of a scalar f along random directions of a pytree, against central differences."""
    gradient = jax.jit(jax.grad(f), compiler_options=QUICK)(x)
    f = jax.jit(f, compiler_options=QUICK)
    leaves, tree = jax.tree.flatten(x)
    rng = np.random.default_rng(0)
    for i, leaf in enumerate(leaves):
        d = jnp.asarray(rng.normal(size=leaf.shape)) * jnp.where(jnp.isfinite(leaf), 1, 0)
        moved = lambda s, i=i, d=d, leaf=leaf: jax.tree.unflatten(tree, [*leaves[:i], leaf + s * d, *leaves[i + 1 :]])
        numeric = (f(moved(step)) - f(moved(-step))) / (2 * step)
        ours = jnp.sum(jax.tree.leaves(gradient)[i] * d)
        assert abs(ours - numeric) <= tolerance * max(1.0, abs(numeric)), (i, ours, numeric)
    return gradient


TS = jnp.array([0.0, 0.1, 0.3])


@pytest.mark.slow
def test_every_leaf_of_model_gains_and_state():
    m = jd.robots.double_pendulum(damping=(0.1, 0.2))
    m = eqx.tree_at(
        lambda m: (m.properties.friction, m.properties.stiffness), m, (jnp.array([0.1, 0.2]), jnp.array([0.3, 0.4]))
    )
    law = Spring(jnp.array([1.0, 2.0]), jnp.array([0.3, 0.1]))

    def cost(x):
        m, law, q, v = x
        tr = simulate(System(m, (Feedback(law),)), q, v, TS, dt=0.02)
        return jnp.sum(tr.q**2) + jnp.sum(jnp.sin(tr.v))

    gradient = check(cost, (m, law, jnp.array([0.4, -0.9]), jnp.array([1.0, 0.3])))
    read = (gradient[0].links, gradient[0].properties.damping, gradient[0].gravity[2], gradient[1])
    assert all(np.abs(x).max() > 1e-6 for x in jax.tree.leaves(read)[:1] + jax.tree.leaves(read)[2:])


@pytest.mark.slow
def test_states_on_manifolds():
    m = floating()
    q, v = state(m)
    cost = lambda x: jnp.sum(simulate(m, jd.integrate(m, q, x[0]), x[1], TS, dt=0.05).q[-1] ** 3)
    check(cost, (jnp.zeros(m.nv), v))


@pytest.mark.slow
def test_adaptive_steps_and_sampled_feedback():
    m = jd.robots.pendulum()

    def cost(x):
        law, q, period = x
        part = SampledFeedback(law, period, 0.02)
        return jnp.sum(simulate(System(m, (part,)), q, jnp.zeros(1), TS, rtol=1e-11, atol=1e-11).q ** 2)

    check(cost, (Spring(jnp.array([3.0]), jnp.array([0.5])), jnp.array([0.7]), jnp.array(0.07)))


@pytest.mark.slow
@pytest.mark.parametrize("forward", [diffrax.ForwardMode(), diffrax.DirectAdjoint()], ids=["forward", "direct"])
def test_forward_and_reverse_mode_agree(forward):
    m = jd.robots.double_pendulum()
    final = lambda q, adjoint: simulate(m, q, jnp.zeros(2), TS, dt=0.05, adjoint=adjoint, max_steps=16).q[-1]
    q = jnp.array([0.4, -0.9])
    quick = lambda f: jax.jit(f, compiler_options=QUICK)(q)
    reverse = quick(jax.jacrev(lambda q: final(q, diffrax.RecursiveCheckpointAdjoint())))
    np.testing.assert_allclose(quick(jax.jacfwd(lambda q: final(q, forward))), reverse, atol=1e-12)


MEMORY = r"""
    import re
    import jax
    import jax.numpy as jnp
    jax.config.update("jax_enable_x64", True)
    import jaxdyn as jd
    m = jd.robots.panda()
    q, v = jnp.linspace(-0.5, 0.5, m.nq), jnp.zeros(m.nv)
    height = lambda q: jd.simulate(m, q, v, jnp.array([0.0, 10.0]), dt=1e-3).q[-1, 0]
    g = jax.jit(jax.grad(height))(q)
    assert bool(jnp.isfinite(g).all())
    print(int(re.search(r"VmHWM:\s+(\d+) kB", open("/proc/self/status").read())[1]) / 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's account of a process's memory")
def test_gradient_through_ten_thousand_steps_fits_in_a_gigabyte():
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(MEMORY)], capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) < 1024  # MB, of the whole process


@pytest.mark.slow
@pytest.mark.wide
def test_memory_grows_with_the_square_root_of_the_horizon():
    """What the compiler reserves for a gradient: from 13 to 141 states, `sqrt(2 n)` (Stumm and Walther 2010)."""
    model = jd.robots.pendulum()
    few, many = (temporaries(model, n, diffrax.RecursiveCheckpointAdjoint(), forward=False) for n in (100, 10_000))
    state = 2 * 8
    assert (141 - 13) * state < many - few < 9_900 * state  # at least its own, and less than all of a tape


@pytest.mark.slow
@pytest.mark.parametrize("checkpoints", [5, 15])
def test_times_at_the_ends_of_steps_keep_their_cotangents(checkpoints):
    """Steps made once more on the way back round their ends differently, which lost whole rows of the result."""
    model, ts = jd.robots.pendulum(damping=0.3), jnp.linspace(0.0, 2.0, 41)  # every fifth step ends at a time

    def cost(gravity):
        m = eqx.tree_at(lambda m: m.gravity, model, gravity)
        adjoint = diffrax.RecursiveCheckpointAdjoint(checkpoints)
        path = simulate(m, jnp.array([1.0]), jnp.zeros(1), ts, dt=0.02, max_steps=4096, adjoint=adjoint)
        return jnp.mean(path.q**2 + path.v**2)

    check(cost, jnp.array([0.0, 0.0, -9.81]))
