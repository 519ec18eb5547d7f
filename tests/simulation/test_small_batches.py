"""Batches of a pendulum in chunks and over devices, the events of stops, and held inputs."""

import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn.distributed import gather, shard, simulate_sharded
from jaxdyn.joints import Prismatic
from jaxdyn.simulation import State, held_inputs, joint_stops, simulate_batch

TIMES = jnp.array([0.0, 0.1])


def test_batches_equal_single_simulations():
    model, q0 = jd.robots.pendulum(), jnp.array([[0.2], [0.7], [1.1], [1.5]])
    chunks = simulate_batch(model, q0, 0 * q0, TIMES, dt=0.02, chunk_size=2)
    devices = gather(simulate_sharded(model, shard(q0), shard(0 * q0), TIMES, dt=0.02))
    np.testing.assert_allclose(chunks.q, devices.q, atol=1e-14)
    np.testing.assert_allclose(chunks[1].q, devices.q[1], atol=1e-14)


def test_stops_of_a_slider():
    """The condition is the distance from the stop; the reset reverses the velocity times the restitution."""
    b = jd.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    b.add_link("puck", "world", Prismatic((1, 0, 0)), jd.spatial.point_mass(1.0), lower=-1.0, upper=2.0)
    puck = b.build()
    lower, upper = joint_stops(puck, 0.5)
    q, v = jnp.array([0.5]), jnp.array([3.0])
    assert lower.condition(puck, 0.0, q, v) == 1.5 and upper.condition(puck, 0.0, q, v) == 1.5
    np.testing.assert_allclose(upper.reset(puck, 0.0, q, v)[1], [-1.5], rtol=1e-15)


def test_held_inputs_advance_one_row_per_sample():
    """The last row is held to the end."""
    held, model, q = held_inputs(jnp.array([[1.0], [4.0]]), 0.01), jd.robots.pendulum(), jnp.zeros(1)
    waiting, outputs = held.initial_queue(model, q, q, 1), []
    for k in range(3):
        waiting = held.sample(model, k * held.period, State(q, q), waiting)
        outputs.append(float(waiting[0][-1, 0]))
    assert outputs == [1.0, 4.0, 4.0]
