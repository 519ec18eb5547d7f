"""Orbits on the manifold of rotations and of driven robots, orbits of two returns, and batches."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.actuators import DcMotor
from jaxdyn.joints import Spherical
from jaxdyn.simulation import OrbitStatus, State, System, periodic_orbit, simulate
from jaxdyn.spatial import box

OPTIONS = {"dt": 0.05, "adjoint": diffrax.ForwardMode()}


def _tumble(system, state, force):
    # a spring keeps the angle about the vertical, which would otherwise be free
    push = lambda t, q, v: force * jnp.array([jnp.cos(2 * t), 0.5 * jnp.sin(2 * t), 0.2]) - q[1:]
    return simulate(system, state.q, state.v, jnp.array([0.0, jnp.pi]), effort=push, **OPTIONS)


@jax.jit
@jax.vmap
def _spherical_orbit(force):
    body = box((0.1, 0.2, 0.5), mass=1.0).moved((0.02, 0.0, -0.3))
    model = jd.ModelBuilder().add_link("bob", "world", Spherical(), body, damping=0.2 * jnp.ones(3)).build()

    def state(force):
        orbit = periodic_orbit(_tumble, model, State(jd.neutral(model), jnp.zeros(3)), force)
        return jnp.append(orbit.state.q, orbit.state.v), orbit

    slope, orbit = jax.jacrev(state, has_aux=True)(force)
    return slope, orbit


@pytest.mark.exhaustive
def test_quaternions():
    h = 1e-4
    slope, orbit = _spherical_orbit(jnp.array([0.5, 0.5 + h, 0.5 - h]))
    assert (orbit.status == OrbitStatus.CONVERGED).all() and orbit.is_stable.all()
    np.testing.assert_allclose(orbit.error, 0, atol=1e-10)
    value = jnp.concatenate([orbit.state.q, orbit.state.v], axis=1)
    np.testing.assert_allclose(slope[0], (value[1] - value[2]) / (2 * h), atol=1e-6)
    np.testing.assert_allclose(jnp.linalg.norm(orbit.state.q, axis=1), 1, atol=1e-12)


def _driven(system, state, voltage):
    inputs = lambda t, state: voltage * jnp.sin(2 * t)[None]
    ts = jnp.array([0.0, jnp.pi])
    return simulate(system, state.q, state.v, ts, inputs=inputs, parts=(*state.parts, None), **OPTIONS)


@jax.jit
def _driven_orbits(constant):
    motor = DcMotor("rod_joint", constant=constant, resistance=1.0, inductance=0.2, gear=10.0, rotor_inertia=1e-3)
    system = System(jd.robots.pendulum(damping=0.1), (motor,))
    guess = State(jnp.zeros(1), jnp.zeros(1))
    one, two = (periodic_orbit(_driven, system, guess, 3.0, returns=n) for n in (1, 2))
    current = lambda orbit: orbit.state.parts[0].current
    back = _driven(system, one.state, 3.0).last
    return one, two, current(one), current(two), (back.parts or ())[0].current


@pytest.mark.exhaustive
def test_states_of_parts_and_two_returns():
    one, two, current, again, back = _driven_orbits(0.1)
    assert one.status == two.status == OrbitStatus.CONVERGED
    assert abs(current) > 0.1
    np.testing.assert_allclose([again, back], [current, current], atol=1e-10)
    np.testing.assert_allclose(two.period, 2 * one.period)
    np.testing.assert_allclose(two.jacobian, one.jacobian @ one.jacobian, atol=1e-9)
    assert one.multipliers.shape == (3,)
