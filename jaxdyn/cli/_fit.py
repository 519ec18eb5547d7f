"""Masses and joint losses of an arm, recovered from a log of an exciting motion."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import optax

from jaxdyn.dynamics import passive_forces, rnea
from jaxdyn.model import Model


class Log(NamedTuple):
    """Motion and measured joint efforts, one row a sample."""

    q: jax.Array
    v: jax.Array
    a: jax.Array
    effort: jax.Array


class Parameters(NamedTuple):
    """What is fitted: logarithms of factors on a reference robot's numbers, so that all stay positive."""

    mass: jax.Array
    damping: jax.Array
    friction: jax.Array


def fitted_links(model: Model) -> np.ndarray:
    """Links whose mass can be told from joint efforts: those that move, but the first.

    The first link turns about an axis that is fixed in the world and, in the arm at hand, vertical: gravity
    does not show its mass.
    """
    return np.array(model.topology.bodies[1:])


def with_parameters(model: Model, p: Parameters) -> Model:
    """The reference robot with its numbers scaled."""
    rows = fitted_links(model)
    leaves = lambda m: (m.links.mass, m.properties.damping, m.properties.friction)
    mass, damping, friction = leaves(model)
    return eqx.tree_at(
        leaves,
        model,
        (
            mass * jnp.ones_like(mass).at[rows].set(jnp.exp(p.mass)),
            damping * jnp.exp(p.damping),
            friction * jnp.exp(p.friction),
        ),
    )


def perturbation(model: Model, key, size: float = 0.4) -> Parameters:
    """Random factors between `exp(-size)` and `exp(size)`."""
    sizes = (len(fitted_links(model)), model.nv, model.nv)
    keys = jax.random.split(key, 3)
    return Parameters(*(jax.random.uniform(k, (n,), float, -size, size) for k, n in zip(keys, sizes, strict=True)))


def excitation(model: Model, key, samples: int, duration: float = 10.0, harmonics: int = 5):
    """Positions, velocities and accelerations of a random Fourier series about the middle of the range."""
    middle = (model.limits.lower + model.limits.upper) / 2
    amplitude, phase = jax.random.split(key)
    k = jnp.arange(1, harmonics + 1)
    size = jax.random.uniform(amplitude, (harmonics, model.nv), float, 0.3, 1.0) / k[:, None]
    shift = jax.random.uniform(phase, (harmonics, model.nv), float, 0, 2 * jnp.pi)
    rate = 2 * jnp.pi / duration * k[:, None]
    position = lambda t: middle + (size * jnp.sin(rate * t + shift)).sum(0)
    velocity = jax.jacfwd(position)
    acceleration = jax.jacfwd(velocity)
    t = jnp.linspace(0, duration, samples, endpoint=False)
    return tuple(jax.vmap(f)(t) for f in (position, velocity, acceleration))


def efforts(model: Model, q, v, a):
    """What the motors give on a motion, one row a sample."""
    return jax.vmap(lambda q, v, a: rnea(model, q, v, a) - passive_forces(model, q, v))(q, v, a)


def generated_log(model: Model, key, samples: int, noise: float) -> Log:
    """The efforts on an exciting motion, with Gaussian noise of `noise` newton metres."""
    motion, disturbance = jax.random.split(key)
    q, v, a = excitation(model, motion, samples)
    clean = efforts(model, q, v, a)
    return Log(q, v, a, clean + noise * jax.random.normal(disturbance, clean.shape))


def residuals(model: Model, log: Log, noise, p: Parameters):
    """Efforts of the model minus those of the log, in units of the noise."""
    return (efforts(with_parameters(model, p), log.q, log.v, log.a) - log.effort) / noise


def descent(model: Model, noise: float, rate: float, steps: int):
    """Functions `init(p)` and `run(log, state, count)` of an Adam descent on the mean square residual."""
    optimiser = optax.adam(optax.cosine_decay_schedule(rate, steps))

    def init(p: Parameters):
        return p, optimiser.init(p)

    def loss(p, log):
        return jnp.mean(residuals(model, log, noise, p) ** 2)

    def run(log, state, count: int):
        def step(state, _):
            p, memory = state
            value, slope = jax.value_and_grad(loss)(p, log)
            update, memory = optimiser.update(slope, memory)
            return (optax.apply_updates(p, update), memory), value

        return jax.lax.scan(step, state, None, length=count)

    return init, run


def standard_errors(model: Model, log: Log, noise, p: Parameters) -> Parameters:
    """Of the logarithms, from the Fisher information `J^T J` of the log."""
    flat, unravel = jax.flatten_util.ravel_pytree(p)
    columns = jax.vmap(lambda e: jax.jvp(lambda x: residuals(model, log, noise, unravel(x)), (flat,), (e,))[1])
    jacobian = columns(jnp.eye(flat.size)).reshape(flat.size, -1)
    covariance = jnp.linalg.inv(jacobian @ jacobian.T)
    return unravel(jnp.sqrt(jnp.diag(covariance)))
