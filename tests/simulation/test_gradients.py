"""Derivatives of rollouts with respect to all leaves, in both modes, and their memory."""

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
    CanonicalMomenta,
    Effort,
    Feedback,
    HeldSignal,
    SampledFeedback,
    SemiImplicitEuler,
    System,
    Variational,
    linear_signal,
    simulate,
)
from tests.simulation._cases import floating, state


class Spring(eqx.Module):
    """`-k q - d v`, with gains that are leaves."""

    stiffness: jax.Array
    damping: jax.Array

    def __call__(self, t, q, v):
        return -self.stiffness * q - self.damping * v


#: compilation takes nearly all of the time of these tests
QUICK = {"xla_backend_optimization_level": 0}
TS = jnp.array([0.0, 0.1, 0.3])
FORWARD = diffrax.ForwardMode()


def directions(x):
    """The name of each leaf of a pytree, with a random direction that changes this leaf alone, where it is finite."""
    rng = np.random.default_rng(0)
    paths, tree = jax.tree_util.tree_flatten_with_path(x)
    zeros = [jnp.zeros_like(leaf) for _, leaf in paths]
    for i, (path, leaf) in enumerate(paths):
        d = jnp.asarray(rng.normal(size=leaf.shape)) * jnp.where(jnp.isfinite(leaf), 1, 0)
        yield jax.tree_util.keystr(path), tree.unflatten([*zeros[:i], d, *zeros[i + 1 :]])


def check(f, *starts, step=1e-5, tolerance=1e-6, forward=None):
    """Compares the gradient of f along a random direction in each leaf with central differences and forward mode.

    At one point or several of one structure. Returns the names of the leaves on which f depends at the first point.
    """
    both = jax.jit(jax.value_and_grad(f), compiler_options=QUICK)
    push = forward and jax.jit(lambda x, d: jax.jvp(forward, (x,), (d,)), compiler_options=QUICK)
    first, *_ = [_check_leaves(both, push, x, step, tolerance) for x in starts]
    return first


def _check_leaves(both, push, x, step, tolerance):
    value, gradient = both(x)
    read = set()
    for name, d in directions(x):
        ahead, behind = (both(jax.tree.map(lambda x, d, s=s: x + s * d, x, d))[0] for s in (step, -step))
        numeric = (ahead - behind) / (2 * step)
        ours = sum(jax.tree.leaves(jax.tree.map(lambda g, d: jnp.sum(g * d), gradient, d)))
        assert abs(ours - numeric) <= tolerance * max(1.0, abs(numeric)), (name, ours, numeric)
        if push:
            again, pushed = push(x, d)
            np.testing.assert_allclose([again, pushed], [value, ours], rtol=1e-10, atol=1e-11, err_msg=name)
        if abs(numeric) > 1e-6:
            read.add(name)
    return read


def size(tr):
    """A scalar function of all rows."""
    return jnp.sum(tr.q**2) + jnp.sum(jnp.sin(tr.v))


#: the leaves that affect the motion of the arm below: all but limits, extra frames, couplings and the direction of its
#: axes, which are parallel
LEAVES_READ = {
    *("links.mass", "links.com", "links.inertia", "placements.rotation", "placements.translation", "gravity"),
    *("armature", "damping", "friction", "friction_velocity", "stiffness", "rest"),
    *("law.stiffness", "law.damping", "path.ts", "path.ys", "parts[2].effort", "[1]", "[2]"),
}


def driven_system():
    """A double pendulum with all passive forces of joints, under feedback, a table of efforts and a constant effort."""
    m = jd.robots.double_pendulum(damping=(0.1, 0.2))
    numbers = jnp.array([0.1, 0.2]), jnp.array([0.5, 0.8]), jnp.array([0.3, 0.4])
    own = lambda m: (m.properties.friction, m.properties.friction_velocity, m.properties.stiffness)
    m = eqx.tree_at(own, m, numbers)  # friction smooth enough for central differences
    spring = Feedback(Spring(jnp.array([1.0, 2.0]), jnp.array([0.3, 0.1])))
    table = linear_signal(jnp.array([-0.02, 0.12, 0.4]), jnp.array([[0.5, 0.1], [-1.0, 0.7], [2.0, -0.4]]))
    return System(m, (spring, table, Effort(jnp.array([0.7, -0.3]))))


def undriven_system(system):
    """The same system under gravity alone: no feedback, torques, friction, damping or springs."""
    off = lambda x: jax.tree.map(jnp.zeros_like, x)
    own = system.model.properties
    own = eqx.tree_at(
        lambda p: (p.damping, p.friction, p.stiffness), own, off((own.damping, own.friction, own.stiffness))
    )
    return eqx.tree_at(
        lambda s: (s.model.properties, s.parts[0], s.parts[1].path.path.ys, s.parts[2]),
        system,
        (own, off(system.parts[0]), off(system.parts[1].path.path.ys), off(system.parts[2])),
    )


@pytest.mark.slow("semi-implicit")
@pytest.mark.parametrize(
    "solver",
    [diffrax.Heun(), SemiImplicitEuler(), Variational(), CanonicalMomenta(diffrax.Heun())],
    ids=["heun", "semi-implicit", "variational", "momentum"],
)
def test_gradients_with_respect_to_all_leaves(solver):
    """A driven and an undriven system in one program. No stage is at a corner of the table, where slopes differ."""

    def cost(x, **options):
        return size(simulate(*x, TS, dt=0.016, solver=solver, max_steps=32, **options))

    state = jnp.array([0.4, -0.9]), jnp.array([1.0, 0.3])
    starts = (driven_system(), *state), (undriven_system(driven_system()), *state)
    read = check(cost, *starts, forward=lambda x: cost(x, adjoint=FORWARD))
    assert len(read) == len(LEAVES_READ)
    assert all(any(name.endswith(end) for name in read) for end in LEAVES_READ)


@pytest.mark.exhaustive
@pytest.mark.parametrize("solver", [Variational(), CanonicalMomenta(diffrax.Heun())], ids=["variational", "momentum"])
def test_gradients_without_parts(solver):
    cost = lambda x: size(simulate(*x, TS, dt=0.05, solver=solver, max_steps=16))
    model = jd.robots.double_pendulum(damping=(0.3, 0.1))
    read = check(cost, (model, jnp.array([0.4, -0.9]), jnp.array([1.0, 0.3])))
    assert {"[1]", "[2]"} < read and any(name.endswith("links.inertia") for name in read)


@pytest.mark.exhaustive
def test_gradients_with_respect_to_states_on_manifolds():
    m = floating()
    q, v = state(m)
    cost = lambda x: jnp.sum(simulate(m, jd.integrate(m, q, x[0]), x[1], TS, dt=0.05).q[-1] ** 3)
    check(cost, (jnp.zeros(m.nv), v))


@pytest.mark.exhaustive
def test_gradients_with_respect_to_periods_and_delays():
    """No two instants coincide, where the derivative would be one-sided."""

    def cost(x):
        *parts, q = x
        system = System(jd.robots.pendulum(), tuple(parts))
        path = simulate(system, q, jnp.zeros(1), TS, dt=0.05, solver=SemiImplicitEuler(), max_steps=64)
        return jnp.sum(path.q**2) + jnp.sum(path.v**3)

    law = SampledFeedback(Spring(jnp.array([3.0]), jnp.array([0.5])), 0.071, 0.023)
    rows = HeldSignal(jnp.array([1.0, -2.0, 0.5, 1.5])[:, None], 0.0873, 0.0117)
    read = check(cost, (law, rows, jnp.array([0.7])))
    assert {"[0].period", "[0].delay", "[1].period", "[1].delay", "[1].efforts"} < read


@pytest.mark.exhaustive
def test_gradients_through_adaptive_steps_with_sampled_feedback():
    m = jd.robots.pendulum()

    def cost(x):
        law, q, period = x
        part = SampledFeedback(law, period, 0.02)
        return jnp.sum(simulate(System(m, (part,)), q, jnp.zeros(1), TS, rtol=1e-11, atol=1e-11).q ** 2)

    check(cost, (Spring(jnp.array([3.0]), jnp.array([0.5])), jnp.array([0.7]), jnp.array(0.07)))


@pytest.mark.slow("forward")
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


@pytest.mark.exhaustive
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's account of a process's memory")
def test_gradient_through_ten_thousand_steps_fits_in_a_gigabyte():
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(MEMORY)], capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) < 1024  # MB of the whole process


@pytest.mark.exhaustive
def test_memory_grows_with_the_square_root_of_the_horizon():
    """Memory that XLA reserves for a gradient: from 13 to 141 states, `sqrt(2 n)` (Stumm and Walther 2010)."""
    model = jd.robots.pendulum()
    few, many = (temporaries(model, n, diffrax.RecursiveCheckpointAdjoint(), forward=False) for n in (100, 10_000))
    state = 2 * 8
    assert (141 - 13) * state < many - few < 9_900 * state  # at least the checkpoints, and less than all states


@pytest.mark.exhaustive
@pytest.mark.parametrize("checkpoints", [5, 15])
def test_times_at_the_ends_of_steps_keep_their_cotangents(checkpoints):
    """The reverse pass rounds the ends of steps differently, which would lose whole rows of the result."""
    model, ts = jd.robots.pendulum(damping=0.3), jnp.linspace(0.0, 2.0, 41)  # every fifth step ends at a time

    def cost(gravity):
        m = eqx.tree_at(lambda m: m.gravity, model, gravity)
        adjoint = diffrax.RecursiveCheckpointAdjoint(checkpoints)
        path = simulate(m, jnp.array([1.0]), jnp.zeros(1), ts, dt=0.02, max_steps=4096, adjoint=adjoint)
        return jnp.mean(path.q**2 + path.v**2)

    check(cost, jnp.array([0.0, 0.0, -9.81]))
