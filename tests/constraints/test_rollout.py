"""Derivatives of constrained simulations, and single precision."""

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
    """A torque on the crank with damping."""

    gain: Any

    def __call__(self, t, q, v):
        return jnp.zeros_like(v).at[0].set(2.0 - self.gain * v[0])


def simulate_four_bar(numbers, adjoint=None):
    """A scalar function of the final state of a four-bar linkage; arguments are lengths, masses, state and gain.

    At q = 0 the linkage is closed for any coupler length; from a neighbouring state the first step is projected.
    """
    coupler, masses, q, v, gain = numbers
    model = jd.robots.four_bar((1.10, 0.5, coupler, 0.75), masses)
    system = System(model, (Feedback(Servo(gain)),), jc.ConstrainedMotion())
    path = jd.simulate(system, q, v, jnp.array([0.0, 0.1]), dt=0.02, max_steps=8, adjoint=adjoint)
    return path.q[-1] @ jnp.array([1.0, -2.0, 0.5]) + path.v[-1] @ jnp.array([0.3, 0.2, -0.1])


START = (jnp.array(1.2), jnp.array([1.0, 2.0, 1.5]), jnp.zeros(3), jnp.array([2.0, 0.5, 1.0]), jnp.array(0.4))
H = 1e-4
STEPS = jnp.array([0.0, H, -H, 2 * H, -2 * H])


def _perturb(along):
    return lambda s: jax.tree.map(lambda x, d: x + s * d, START, along)


def _central_difference(value):
    """Central difference of fourth order."""
    return (8 * (value[1] - value[2]) - value[3] + value[4]) / (12 * H)


def _directions():
    """One direction for each entry of `START`, zero in the others."""
    rng = np.random.default_rng(0)
    full = [jnp.asarray(rng.normal(size=x.shape)) for x in START]
    return [tuple(x if i == k else 0 * x for i, x in enumerate(full)) for k in range(len(START))]


@pytest.mark.exhaustive
def test_forward_derivatives_of_a_simulation():
    """With respect to the coupler length, the masses, the initial state and the gain."""
    point = lambda along, s: jax.jvp(
        lambda x: simulate_four_bar(x, diffrax.ForwardMode()), (_perturb(along)(s),), (along,)
    )
    both = jax.jit(jax.vmap(jax.vmap(point, (None, 0)), (0, None)))
    value, got = both(jax.tree.map(lambda *x: jnp.stack(x), *_directions()), STEPS)
    want = jax.vmap(_central_difference)(value)
    assert np.abs(want).min() > 1e-3
    assert_allclose(got[:, 0], want, rtol=1e-6)


@pytest.mark.exhaustive
def test_reverse_derivatives_of_a_simulation():
    """With respect to the coupler length, the masses, the initial state and the gain."""
    both = jax.jit(lambda along: jax.vmap(lambda s: jax.value_and_grad(simulate_four_bar)(_perturb(along)(s)))(STEPS))
    for k, along in enumerate(_directions()):
        value, slopes = both(along)
        want = _central_difference(value)
        assert abs(want) > 1e-3
        assert_allclose(jnp.vdot(slopes[k][0], along[k]), want, rtol=1e-6)


def planar_point_mass(mass):
    """A point mass free to move along x and y."""
    b = jd.ModelBuilder(gravity=(0, -9.81, 0))
    b.add_link("x", "world", jd.joints.Prismatic((1, 0, 0)))
    return b.add_link("point", "x", jd.joints.Prismatic((0, 1, 0)), jd.spatial.point_mass(mass)).build()


def simulate_euler_steps(numbers):
    """A scalar function of four Euler steps of a mass on two coincident rods, one of them redundant."""
    length, mass, q, v, gain = numbers
    model, servo, dt = planar_point_mass(mass), Servo(gain), 0.02
    motion = jc.ConstrainedMotion(tuple(jc.Distance(rod, "world", "point", length) for rod in ("rod", "again")))

    def step(state, _):
        q, v = state
        v = v + dt * motion.acceleration(model, 0.0, q, v, servo(0.0, q, v), None)
        return motion.project(model, 0.0, q + dt * v, v), None

    q, v = jax.lax.scan(step, (q, v), None, length=4)[0]
    return q @ jnp.array([1.0, -2.0]) + v @ jnp.array([0.3, 0.2])


@pytest.mark.exhaustive
def test_gradient_through_projected_steps():
    """With respect to rod length, mass, initial state and gain; one program for values and gradients."""
    # strongly typed, to avoid recompilation for perturbed values
    start = tuple(jnp.array(x, jnp.float64) for x in (1.0, 1.5, (0.6, -0.8), (1.6, 1.2), 0.4))
    both = jax.jit(jax.value_and_grad(simulate_euler_steps))
    slopes = both(start)[1]
    rng = np.random.default_rng(0)
    for k, x in enumerate(start):
        along = jnp.asarray(rng.normal(size=x.shape))
        at = lambda s, k=k, along=along: tuple(x + s * along if i == k else x for i, x in enumerate(start))
        want = _central_difference([both(at(s))[0] for s in STEPS])
        assert abs(want) > 1e-3
        assert_allclose(jnp.vdot(slopes[k], along), want, rtol=1e-6)


@pytest.mark.exhaustive
def test_single_precision():
    """A point on a rod, with double-precision parameters, after 1 s: published result of problem A01."""
    rod = jc.Distance("rod", "world", "point", 1.0)
    assert rod.length.dtype == jnp.float64
    system = System(planar_point_mass(1.0).astype(jnp.float32), (), jc.ConstrainedMotion(rod))
    start, times = jnp.array([-1.0, 0.0], jnp.float32), jnp.array([0.0, 1.0], jnp.float32)
    path = jd.simulate(system, start, 0 * start, times).checked()
    assert path.q.dtype == path.v.dtype == jnp.float32
    assert_allclose(path.q[-1], [0.98629175113187532, -0.16501085312554117], atol=2e-4)
    assert_allclose(jnp.linalg.norm(path.q[-1]), 1.0, atol=1e-6)


@pytest.mark.slow
def test_accelerations_in_single_precision():
    """Accelerations and rank of parallelograms with closures in double precision."""
    model = jd.robots.n_four_bar(2).astype(jnp.float32)
    loops = jc.described_constraints(model)
    turn = jnp.array([-1.0 if name.startswith("bar") else 1.0 for name in model.link_names], jnp.float32)
    angles = jnp.linspace(0.2, 1.4, 4, dtype=jnp.float32)
    f = lambda angle: jc.constrained_dynamics(model, loops, angle * turn, 2 * turn, 0 * turn)
    d = jax.jit(jax.vmap(f))(angles)
    assert d.a.dtype == d.multipliers.dtype == jnp.float32
    assert np.all(d.rank == 4) and np.all(d.status == jc.ConstraintStatus.SOLVED)
    assert_allclose(d.a, np.outer(3.5 * 9.81 / 3 * np.sin(angles), turn), atol=1e-3)
