"""Derivatives through a simulation under constraints, and single precision."""

from typing import Any

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


def swing(coupler, masses, q, v, gain):
    """State of a four-bar linkage, built with these numbers, 0.1 s after the assembled start next to (q, v)."""
    model = jd.robots.four_bar((1.10, 0.5, coupler, 0.75), masses)
    loop = jc.described_constraints(model)
    start = jc.assemble(model, loop, q, v)
    system = System(model, (Feedback(Servo(gain)),), jc.ConstrainedMotion(loop))
    path = jd.simulate(system, start.q, start.v, jnp.array([0.0, 0.1]), dt=0.02, max_steps=8)
    return path.q[-1], path.v[-1]


def score(numbers):
    q, v = swing(*numbers)
    return q @ jnp.array([1.0, -2.0, 0.5]) + v @ jnp.array([0.3, 0.2, -0.1])


START = (  # q = 0 is assembled: next to it the nearest closed pose moves by the least step
    jnp.array(1.2, jnp.float64),  # not weakly typed: one trace serves all
    jnp.array([1.0, 2.0, 1.5]),
    jnp.zeros(3),
    jnp.array([2.0, 0.5, 1.0]),
    jnp.array(0.4, jnp.float64),
)


@pytest.mark.slow
def test_gradient_in_everything():
    """In the coupler's length, with which the closure moves, in masses, the start and a gain."""
    both = jax.jit(jax.value_and_grad(score), compiler_options={"xla_backend_optimization_level": 0})
    _, slopes = both(START)
    rng = np.random.default_rng(0)
    for k, x in enumerate(START):
        along = jnp.asarray(rng.normal(size=x.shape))
        at = lambda s, k=k, along=along: both((*START[:k], START[k] + s * along, *START[k + 1 :]))[0]
        step = 1e-4
        want = (8 * (at(step) - at(-step)) - at(2 * step) + at(-2 * step)) / (12 * step)
        got = jnp.vdot(slopes[k], along)
        assert abs(want) > 1e-3
        assert_allclose(got, want, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.wide
def test_single_precision():
    want = swing(*START)
    single = jax.tree.map(lambda x: x.astype(jnp.float32), START)
    with jax.enable_x64(False):
        got = swing(*single)
    for a, b in zip(got, want, strict=True):
        assert a.dtype == jnp.float32
        assert_allclose(a, b, rtol=1e-4, atol=1e-4)
