"""Programs that the tests run in separate processes; each prints one JSON object."""

import json
import re
import sys
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

import jaxdyn as jd  # noqa: E402
from jaxdyn.distributed import (  # noqa: E402
    gather,
    initialize,
    replicate,
    shard,
    shard_local,
    sharded_vmap,
    simulate_sharded,
)
from jaxdyn.simulation import SemiImplicitEuler  # noqa: E402

QUICK_COMPILE = "--xla_backend_optimization_level=0"  # most of the time is compilation
TS = np.linspace(0, 0.1, 3)
OPTIONS: dict[str, Any] = {"dt": 0.02, "solver": SemiImplicitEuler(), "max_steps": 8}
COLLECTIVES = ("all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter")


def problem(samples: int):
    """A robot and seeded states."""
    model = jd.robots.double_pendulum()
    q, v = np.random.default_rng(0).normal(size=(2, samples, model.nv))
    return model, q, v


def final_configuration(model, q, v):
    """The configuration at the end of a simulation."""
    return jd.simulate(model, q, v, jnp.asarray(TS), **OPTIONS).q[-1]


def gradient_function(run):
    """Derivatives of a mean over the batch with respect to the model and the initial states."""
    return jax.grad(lambda model, q, v: jnp.mean(run(model, q, v) ** 2), argnums=(0, 1))


def count_collectives(function, *args) -> tuple:
    """The compiled program, and its number of collective operations of each kind."""
    program = jax.jit(function).lower(*args).compile()
    text = program.as_text()
    return program, {name: len(re.findall(rf"\b{name}(?:-start)?\(", text)) for name in COLLECTIVES}


def largest_difference(a, b) -> float:
    """Largest difference of two trees."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return max(float(np.abs(np.asarray(x) - np.asarray(y)).max()) for x, y in pairs if np.size(x))


def batch_of_robots(samples: int) -> float:
    """Largest difference, over all devices and on one, for pendulums of different masses and efforts."""
    one = jd.robots.pendulum()
    q, v, effort = np.random.default_rng(1).normal(size=(3, samples, 1))
    mass = np.linspace(1.0, 2.0, samples)[:, None]
    models = eqx.tree_at(lambda m: m.links.mass, one, jnp.asarray(mass))
    batched = eqx.tree_at(lambda m: m.links.mass, jax.tree.map(lambda _: False, one), True)
    options = {**OPTIONS, "batched": batched}
    many = simulate_sharded(models, shard(q), shard(v), TS, effort=shard(effort), **options)
    alone = jd.simulate_batch(models, jnp.asarray(q), jnp.asarray(v), TS, effort=jnp.asarray(effort), **options)
    last = jd.simulate(
        eqx.tree_at(lambda m: m.links.mass, one, mass[-1]), q[-1], v[-1], TS, effort=effort[-1], **OPTIONS
    )
    return max(largest_difference((many.q, many.v), (alone.q, alone.v)), largest_difference(many.q[-1], last.q))


def devices(samples: int) -> dict:
    """Differences of a rollout and a gradient over all devices and on one."""
    model, q, v = problem(samples)
    one = jax.vmap(final_configuration, (None, 0, 0))
    many = sharded_vmap(final_configuration, (None, 0, 0))
    place = (replicate(model), shard(q), shard(v))
    _, forward = count_collectives(many, *place)
    gradient, backward = count_collectives(gradient_function(many), *place)
    rollout = simulate_sharded(model, place[1], place[2], TS, **OPTIONS)
    alone = jd.simulate_batch(model, jnp.asarray(q), jnp.asarray(v), TS, **OPTIONS)
    return {
        "devices": jax.device_count(),
        "parts": len(rollout.q.sharding.device_set),
        "rollout": largest_difference((rollout.q, rollout.v, rollout.status), (alone.q, alone.v, alone.status)),
        "by placement": largest_difference(jax.jit(one)(*place), alone.q[:, -1]),
        "gradient": largest_difference(gradient(*place), jax.jit(gradient_function(one))(model, q, v)),
        "different": batch_of_robots(16),
        "forward": forward,
        "backward": backward,
    }


def processes(samples: int) -> dict:
    """A rollout and a gradient over all processes, each of which draws its own rows."""
    model, q, v = problem(samples)
    size, k = samples // jax.process_count(), jax.process_index()
    own = lambda x: x[k * size : (k + 1) * size]
    rollout = simulate_sharded(model, *shard_local((own(q), own(v))), TS, **OPTIONS)
    by_model, by_q = jax.jit(gradient_function(sharded_vmap(final_configuration, (None, 0, 0))))(
        replicate(model), *shard((q, v))
    )
    return {
        "devices": [jax.local_device_count(), jax.device_count()],
        "local rows": sum(x.data.shape[0] for x in rollout.q.addressable_shards),
        "q": gather(rollout.q)[:, -1].tolist(),
        "mass": gather(by_model.links.mass).tolist(),
        "by q": gather(by_q).tolist(),
    }


def forever(samples: int):
    """Computes sums over all processes until one of them ends."""
    model, q, v = problem(samples)
    run = sharded_vmap(lambda m, q, v: jd.forward_dynamics(m, q, v, jnp.zeros(m.nv)), (None, 0, 0))
    total = jax.jit(lambda *args: jnp.sum(run(*args)))
    args = (replicate(model), *shard((q, v)))
    jax.block_until_ready(total(*args))
    print("running", flush=True)
    while True:
        jax.block_until_ready(total(*args))
        time.sleep(0.01)


if __name__ == "__main__":
    program, samples = sys.argv[1], int(sys.argv[2])
    if len(sys.argv) > 3:
        address, count, index, heartbeat = sys.argv[3:]
        initialize(address, int(count), int(index), initialization_timeout=60, heartbeat_timeout=int(heartbeat))
    print(json.dumps(globals()[program](samples)), flush=True)
