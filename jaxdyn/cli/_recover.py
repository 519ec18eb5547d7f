"""Masses and joint losses of an arm, recovered from a log of an exciting motion."""

import functools as ft

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn.dynamics import passive_forces, rnea
from jaxdyn.identification import FitResult, LevenbergMarquardt, Log, fit, random_fourier
from jaxdyn.model import Model

DURATION = 10.0  # s


def selection(model: Model) -> list[str]:
    """What is fitted: losses of all joints, and masses of the links that move, but the first.

    The first link turns about an axis that is fixed in the world and, in the arm at hand, vertical: efforts do not
    show its mass.
    """
    links = [model.link_names[i] for i in model.topology.bodies[1:]]
    return [*(f"links[{name}].mass" for name in links), "joints[*].damping", "joints[*].friction"]


@jax.jit
def perturbed(model: Model, key, size: float = 0.4) -> Model:
    """The robot with those numbers multiplied by random factors between `exp(-size)` and `exp(size)`."""
    leaves = lambda m: (m.links.mass, m.properties.damping, m.properties.friction)
    factor = lambda key, x: jnp.exp(jax.random.uniform(key, x.shape, x.dtype, -size, size))
    mass, damping, friction = (x * factor(k, x) for k, x in zip(jax.random.split(key, 3), leaves(model), strict=True))
    fitted = jnp.zeros(mass.shape, bool).at[jnp.array(model.topology.bodies[1:])].set(True)
    return eqx.tree_at(leaves, model, (jnp.where(fitted, mass, model.links.mass), damping, friction))


def generated_log(model: Model, key, samples: int, noise: float) -> Log:
    """Efforts of the motors on a random periodic motion, with Gaussian noise of `noise` newton metres."""
    return Log(*_measured(model, key, samples, noise))


@ft.partial(jax.jit, static_argnums=2)
def _measured(model: Model, key, samples: int, noise):
    motion, disturbance = jax.random.split(key)
    middle = (model.limits.lower + model.limits.upper) / 2
    curve = random_fourier(motion, middle, 2.0 * jnp.ones_like(middle), DURATION)
    t = jnp.linspace(0, DURATION, samples, endpoint=False)
    q, v, a = jax.vmap(curve.at)(t)
    effort = jax.vmap(lambda q, v, a: rnea(model, q, v, a) - passive_forces(model, q, v))(q, v, a)
    return t, q, v, a, effort + noise * jax.random.normal(disturbance, effort.shape)


def recovered(start: Model, log: Log) -> FitResult:
    """The robot whose predicted efforts are nearest to the log, by Levenberg and Marquardt's method from `start`."""
    return fit(start, log, selection(start), LevenbergMarquardt())
