"""Robots that these tests share, because compilation dominates their time."""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn.joints import Free, Planar, Prismatic, Revolute, Spherical
from jaxdyn.spatial import box, point_mass

G = 9.81


@ft.cache
def ball():
    """A point mass of 1 kg on a vertical slide, its height the only coordinate."""
    return jd.ModelBuilder().add_link("ball", "world", Prismatic([0, 0, 1]), point_mass(1.0)).build()


@ft.cache
def floating():
    """A free body with a ball joint and a hinge."""
    b = jd.ModelBuilder()
    b.add_link("a", "world", Free(), box((0.3, 0.2, 0.1), mass=2.0))
    b.add_link("b", "a", Spherical(), box((0.1, 0.2, 0.4), mass=1.0).moved((0, 0, -0.3)), translation=(0.2, 0, 0))
    b.add_link(
        "c", "b", Revolute([0, 1, 0]), box((0.1, 0.1, 0.4), mass=1.0).moved((0, 0, -0.2)), translation=(0, 0, -0.5)
    )
    return b.build()


@ft.cache
def wheeled_arm():
    """A planar base with an arm of a hinge and a ball joint."""
    b = jd.ModelBuilder()
    b.add_link("base", "world", Planar(), box((0.5, 0.4, 0.2), mass=4.0))
    b.add_link("arm", "base", Revolute([0, 1, 0]), box((0.1, 0.1, 0.5), mass=1.0).moved((0, 0, 0.25)))
    b.add_link("hand", "arm", Spherical(), box((0.2, 0.1, 0.1), mass=0.5).moved((0.1, 0, 0)), translation=(0, 0, 0.5))
    return b.build()


def state(model, seed=0, speed=1.0):
    """A random state."""
    v = speed * np.random.default_rng(seed).normal(size=model.nv)
    return jd.random_configuration(model, jax.random.key(seed)), jnp.asarray(v)


def distance(model, a, b):
    """Largest difference of the last states of two trajectories, on the manifold."""
    dq = jd.difference(model, a.q[-1], b.q[-1])
    return float(jnp.maximum(jnp.abs(dq).max(), jnp.abs(a.v[-1] - b.v[-1]).max()))
