"""Derivatives through a simulation under constraints, and single precision."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn.simulation import Feedback, System


class Servo(eqx.Module):
    """A torque on the crank, held back by its speed."""

    gain: Any

    def __call__(self, t, q, v):
        return jnp.zeros_like(v).at[0].set(2.0 - self.gain * v[0])


def swung(numbers, adjoint=None):
    """A number made of the end of a four-bar linkage's motion, of these lengths and masses, a servo's gain and (q, v).

    At q = 0 it is assembled whatever the coupler's length; from next to it the first step is projected back.
    """
    coupler, masses, q, v, gain = numbers
    model = jd.robots.four_bar((1.10, 0.5, coupler, 0.75), masses)
    system = System(model, (Feedback(Servo(gain)),), jc.ConstrainedMotion())
    path = jd.simulate(system, q, v, jnp.array([0.0, 0.1]), dt=0.02, max_steps=8, adjoint=adjoint)
    return path.q[-1] @ jnp.array([1.0, -2.0, 0.5]) + path.v[-1] @ jnp.array([0.3, 0.2, -0.1])


START = (jnp.array(1.2), jnp.array([1.0, 2.0, 1.5]), jnp.zeros(3), jnp.array([2.0, 0.5, 1.0]), jnp.array(0.4))
H = 1e-4
STEPS = jnp.array([0.0, H, -H, 2 * H, -2 * H])


def _moved(along):
    return lambda s: jax.tree.map(lambda x, d: x + s * d, START, along)


def _slope(value):
    """The derivative in the middle, by differences of fourth order."""
    return (8 * (value[1] - value[2]) - value[3] + value[4]) / (12 * H)


def _ways():
    """One direction for each of the numbers at the start, the others being left alone."""
    rng = np.random.default_rng(0)
    full = [jnp.asarray(rng.normal(size=x.shape)) for x in START]
    return [tuple(x if i == k else 0 * x for i, x in enumerate(full)) for k in range(len(START))]


@pytest.mark.slow
def test_derivatives_in_everything():
    """In the coupler's length, with which the closure moves, in masses, the start and a gain; forward mode."""
    point = lambda along, s: jax.jvp(lambda x: swung(x, diffrax.ForwardMode()), (_moved(along)(s),), (along,))
    both = jax.jit(jax.vmap(jax.vmap(point, (None, 0)), (0, None)))
    value, got = both(jax.tree.map(lambda *x: jnp.stack(x), *_ways()), STEPS)
    want = jax.vmap(_slope)(value)
    assert np.abs(want).min() > 1e-3
    assert_allclose(got[:, 0], want, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.wide
def test_gradient_in_everything():
    """The same in reverse mode."""
    both = jax.jit(lambda along: jax.vmap(lambda s: jax.value_and_grad(swung)(_moved(along)(s)))(STEPS))
    for k, along in enumerate(_ways()):
        value, slopes = both(along)
        want = _slope(value)
        assert abs(want) > 1e-3
        assert_allclose(jnp.vdot(slopes[k][0], along[k]), want, rtol=1e-6)


def in_the_plane(mass):
    """A point mass free to move along x and y."""
    b = jd.ModelBuilder(gravity=(0, -9.81, 0))
    b.add_link("x", "world", jd.joints.Prismatic((1, 0, 0)))
    return b.add_link("point", "x", jd.joints.Prismatic((0, 1, 0)), jd.spatial.point_mass(mass)).build()


def flung(numbers):
    """A mass on two rods of one length, whose rows repeat each other, pulled aside by the servo in four Euler steps."""
    length, mass, q, v, gain = numbers
    model, servo, dt = in_the_plane(mass), Servo(gain), 0.02
    motion = jc.ConstrainedMotion(tuple(jc.Distance(rod, "world", "point", length) for rod in ("rod", "again")))

    def step(state, _):
        q, v = state
        v = v + dt * motion.acceleration(model, 0.0, q, v, servo(0.0, q, v), None)
        return motion.project(model, 0.0, q + dt * v, v), None

    q, v = jax.lax.scan(step, (q, v), None, length=4)[0]
    return q @ jnp.array([1.0, -2.0]) + v @ jnp.array([0.3, 0.2])


@pytest.mark.slow
def test_gradient_through_projected_steps():
    """In the rods' length, the mass, the start and the gain; reverse mode, one program for values and slopes."""
    # of definite types, lest a step in one of them compiles anew
    start = tuple(jnp.array(x, jnp.float64) for x in (1.0, 1.5, (0.6, -0.8), (1.6, 1.2), 0.4))
    both = jax.jit(jax.value_and_grad(flung))
    slopes = both(start)[1]
    rng = np.random.default_rng(0)
    for k, x in enumerate(start):
        along = jnp.asarray(rng.normal(size=x.shape))
        at = lambda s, k=k, along=along: tuple(x + s * along if i == k else x for i, x in enumerate(start))
        want = _slope([both(at(s))[0] for s in STEPS])
        assert abs(want) > 1e-3
        assert_allclose(jnp.vdot(slopes[k], along), want, rtol=1e-6)


@pytest.mark.slow
def test_single_precision():
    """A point on a rod (numbers of which are in double precision) after 1 s, as published for problem A01."""
    rod = jc.Distance("rod", "world", "point", 1.0)
    assert rod.length.dtype == jnp.float64
    system = System(in_the_plane(1.0).astype(jnp.float32), (), jc.ConstrainedMotion(rod))
    start, times = jnp.array([-1.0, 0.0], jnp.float32), jnp.array([0.0, 1.0], jnp.float32)
    path = jd.simulate(system, start, 0 * start, times).checked()
    assert path.q.dtype == path.v.dtype == jnp.float32
    assert_allclose(path.q[-1], [0.98629175113187532, -0.16501085312554117], atol=2e-4)
    assert_allclose(jnp.linalg.norm(path.q[-1]), 1.0, atol=1e-6)


@pytest.mark.slow
def test_accelerations_in_single_precision():
    """Of the same squares, closed in double precision too; rows that repeat others are seen as such."""
    model = jd.robots.n_four_bar(2).astype(jnp.float32)
    loops = jc.described_constraints(model)
    turn = jnp.array([-1.0 if name.startswith("bar") else 1.0 for name in model.link_names], jnp.float32)
    angles = jnp.linspace(0.2, 1.4, 4, dtype=jnp.float32)
    f = lambda angle: jc.constrained_dynamics(model, loops, angle * turn, 2 * turn, 0 * turn)
    d = jax.jit(jax.vmap(f))(angles)
    assert d.a.dtype == d.multipliers.dtype == jnp.float32
    assert np.all(d.rank == 4) and np.all(d.status == jc.ConstraintStatus.SOLVED)
    assert_allclose(d.a, np.outer(3.5 * 9.81 / 3 * np.sin(angles), turn), atol=1e-3)
