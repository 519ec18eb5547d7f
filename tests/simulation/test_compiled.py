"""Compilation of rollouts: number of traces, size, platforms; and batches."""

import os
import re
import subprocess
import sys
import textwrap

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.simulation import Feedback, System, simulate, simulate_batch

TS = jnp.linspace(0, 0.5, 3)


@pytest.mark.slow
def test_one_trace_per_shape():
    traces = []

    def law(t, q, v):
        traces.append(1)
        return -q

    m = jd.robots.pendulum()
    system = System(m, (Feedback(law),))
    simulate(system, jnp.array([0.1]), jnp.zeros(1), TS, dt=0.1)
    first = len(traces)
    assert first > 0
    for dt, scale in ((0.05, 1.0), (0.02, 2.0)):
        simulate(
            eqx.tree_at(lambda s: s.model.links.mass, system, jnp.ones(1) * scale),
            jnp.array([scale]),
            jnp.ones(1),
            scale * TS,
            dt=dt,
        )
    # Python numbers and weakly typed arrays do not trace again
    for number in (2.0, jnp.asarray(2.0), jnp.array([2.0])[0]):
        scaled = eqx.tree_at(lambda s: s.model.links.mass, system, jnp.ones(1) * number)
        simulate(scaled, jnp.array([0.1]), jnp.full(1, number), jnp.linspace(0.0, number, 3), dt=number)
    assert len(traces) == first


def batched_rollout(model, **options):
    return jax.jit(jax.vmap(lambda q, v: simulate(model, q, v, TS, dt=0.01, **options).q))


# operations of the compiled loops over steps and stages, each a kernel or a call, for 256 arms at once: 180 measured
MOST_KERNELS = 200


def loop_kernels(text):
    """Number of kernels and calls in the loop bodies of an HLO module, each body counted once."""
    bodies = re.split(r"\n(?=%|ENTRY)", text)
    named = {re.match(r"(?:ENTRY )?%?([\w.\-]+)", b)[1]: b for b in bodies if re.match(r"(?:ENTRY )?%?[\w.\-]+", b)}
    inside = set(re.findall(r"body=%?([\w.\-]+)", text))
    kind = re.compile(r"= .*? (?:fusion|call|custom-call|dot|while|scatter|gather|dynamic-update-slice)\(")
    return sum(len(kind.findall(named.get(name, ""))) for name in inside)


@pytest.mark.slow
def test_number_of_kernels_in_one_step():
    m = jd.robots.chain(7)
    q = jnp.zeros((256, 7))
    text = batched_rollout(m).lower(q, q).compile().as_text()
    assert 0 < loop_kernels(text) <= MOST_KERNELS


LOWER = """
    import jax
    import jax.numpy as jnp
    jax.config.update("jax_enable_x64", True)
    import jaxdyn as jd
    m, ts = jd.robots.double_pendulum(), jnp.linspace(0, 0.5, 3)
    swarm = jax.jit(jax.vmap(lambda q, v: jd.simulate(m, q, v, ts, dt=0.01).q))
    for platform in ("cuda", "tpu"):
        exported = jax.export.export(swarm, platforms=[platform])(jnp.zeros((4, 2)), jnp.zeros((4, 2)))
        assert exported.mlir_module().count("stablehlo.while") > 0
        print(platform)
"""


@pytest.mark.slow
def test_batched_rollouts_lower_for_accelerators():
    """In a separate process, because equinox reads the variable that disables its callbacks at import.

    diffrax checks the times at run time by a callback to the host, which lowers only for the current platform.
    """
    environment = {**os.environ, "EQX_ON_ERROR": "nan"}
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LOWER)], capture_output=True, text=True, timeout=600, env=environment
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["cuda", "tpu"]


@pytest.mark.exhaustive
def test_chunks_give_the_same_results_as_one_batch():
    m = jd.robots.pendulum()
    rng = np.random.default_rng(0)
    q, v, effort = jnp.asarray(rng.normal(size=(3, 10, 1)))
    done = []
    whole = simulate_batch(m, q, v, TS, effort=effort, dt=0.01)
    parts = simulate_batch(m, q, v, TS, effort=effort, dt=0.01, chunk_size=4, progress=lambda k, n: done.append((k, n)))
    assert done == [(4, 10), (8, 10), (10, 10)]
    np.testing.assert_array_equal(parts.q, whole.q)
    again = simulate_batch(m, q, v, TS, effort=effort, dt=0.01, chunk_size=4)
    np.testing.assert_array_equal(parts.q, again.q)
    one = simulate(m, q[7], v[7], TS, effort=effort[7], dt=0.01)
    np.testing.assert_allclose(parts.q[7], one.q, atol=1e-13)
    for tr in (whole, parts):
        assert tr.system.model.links.mass.shape == m.links.mass.shape  # stored once
        np.testing.assert_allclose(tr.energy[7], one.energy, atol=1e-12)
    np.testing.assert_allclose(parts[7].action.effort, one.action.effort, atol=1e-12)
    np.testing.assert_allclose(parts[5:8].action.effort[2], one.action.effort, atol=1e-12)
    assert parts[7].q.ndim == 2 and parts[7].batched.leaves is None
    many = jax.tree.map(lambda *x: jnp.stack(x), *(parts[k] for k in range(4)))  # as jax.vmap stacks them
    np.testing.assert_allclose(many.energy[3], many[3].energy, atol=1e-13)
    with pytest.raises(jd.ShapeError, match="is not a batch"):
        one[0]


@pytest.mark.slow
def test_batches_of_models():
    m = jd.robots.pendulum()
    masses = jnp.array([[1.0], [2.0], [3.0]])
    wide = eqx.tree_at(lambda m: m.links.mass, m, masses)
    batched = eqx.tree_at(lambda m: m.links.mass, jax.tree.map(lambda _: False, m), True)
    force = jnp.ones((3, 1))
    tr = simulate_batch(wide, jnp.zeros((3, 1)), jnp.zeros((3, 1)), TS, effort=force, batched=batched, chunk_size=2)
    for k in range(3):
        one = simulate(jd.robots.pendulum(mass=float(masses[k, 0])), jnp.zeros(1), jnp.zeros(1), TS, effort=force[k])
        np.testing.assert_allclose(tr.q[k], one.q, atol=1e-9)
        np.testing.assert_allclose(tr.energy[k], one.energy, atol=1e-8)
        np.testing.assert_allclose(tr[k].system.model.links.mass, one.system.model.links.mass)
    with pytest.raises(jd.ArgumentError, match="chunk_size is 0"):
        simulate_batch(m, jnp.zeros((3, 1)), jnp.zeros((3, 1)), TS, chunk_size=0)
