"""Masses and joint friction of an arm, identified from a log of an exciting motion."""

import functools as ft

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn.dynamics import passive_forces, rnea
from jaxdyn.identification import FitResult, LevenbergMarquardt, Log, fit, random_fourier
from jaxdyn.model import Model

DURATION = 10.0  # s


def fitted_parameters(model: Model) -> list[str]:
    """Paths of the fitted parameters: friction of all joints, and masses of all moving links but the first.

    The joint axis of the first link is vertical and fixed in the world, so its mass has no effect on the efforts.
    """
    links = [model.link_names[i] for i in model.topology.bodies[1:]]
    return [*(f"links[{name}].mass" for name in links), "joints[*].damping", "joints[*].friction"]


@jax.jit
def perturb_model(model: Model, key, size: float = 0.4) -> Model:
    """The robot with its fitted parameters multiplied by random factors between `exp(-size)` and `exp(size)`."""
    leaves = lambda m: (m.links.mass, m.properties.damping, m.properties.friction)
    factor = lambda key, x: jnp.exp(jax.random.uniform(key, x.shape, x.dtype, -size, size))
    mass, damping, friction = (x * factor(k, x) for k, x in zip(jax.random.split(key, 3), leaves(model), strict=True))
    is_fitted = jnp.zeros(mass.shape, bool).at[jnp.array(model.topology.bodies[1:])].set(True)
    return eqx.tree_at(leaves, model, (jnp.where(is_fitted, mass, model.links.mass), damping, friction))


def generate_log(model: Model, key, samples: int, noise: float) -> Log:
    """A log of a random periodic motion with the efforts of the motors and Gaussian noise of `noise` N m."""
    return Log(*_measure_efforts(model, key, samples, noise))


@ft.partial(jax.jit, static_argnums=2)
def _measure_efforts(model: Model, key, samples: int, noise):
    motion, disturbance = jax.random.split(key)
    middle = (model.limits.lower + model.limits.upper) / 2
    curve = random_fourier(motion, middle, 2.0 * jnp.ones_like(middle), DURATION)
    t = jnp.linspace(0, DURATION, samples, endpoint=False)
    q, v, a = jax.vmap(curve.at)(t)
    effort = jax.vmap(lambda q, v, a: rnea(model, q, v, a) - passive_forces(model, q, v))(q, v, a)
    return t, q, v, a, effort + noise * jax.random.normal(disturbance, effort.shape)


def identify_losses_and_masses(start: Model, log: Log) -> FitResult:
    """Fits the predicted efforts to the log by the Levenberg-Marquardt method from `start`."""
    return fit(start, log, fitted_parameters(start), LevenbergMarquardt())
