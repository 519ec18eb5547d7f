"""Synthetic logs of robots with known parameters."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn.identification import Log

SELECTION = ("links[*].inertial", "joints[*].damping", "joints[*].friction", "joints[*].armature")


def arm(links: int = 3) -> jd.Model:
    """A serial arm with alternating joint axes, friction, rotor inertias and different masses."""
    b = jd.ModelBuilder()
    parent = "world"
    for k in range(links):
        body = jd.spatial.box((0.1, 0.12 + 0.02 * k, 0.3), mass=3.0 - 0.6 * k).moved([0.02, -0.03, 0.15])
        axis = ([0, 0, 1], [0, 1, 0], [1, 0, 0])[k % 3]
        offset = [0.0, 0.0, 0.3 if k else 0.0]
        b.add_link(
            f"link{k + 1}",
            parent,
            jd.joints.Revolute(axis),
            body,
            joint_name=f"joint{k + 1}",
            translation=offset,
            damping=0.2 + 0.1 * k,
            friction=0.4 - 0.05 * k,
            friction_velocity=0.05,
            armature=0.05 + 0.01 * k,
        )
        parent = f"link{k + 1}"
    return b.build()


def motion(nv: int, samples: int = 400, seed: int = 0):
    """`t, q, v, a` of random Fourier series."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 6, samples)
    phase, size = rng.uniform(0, 6, (nv, 4)), rng.normal(0, 0.35, (nv, 4))
    w = 2 * np.pi * 0.25 * np.arange(1, 5)
    angle = w * t[:, None, None] + phase
    q, v, a = ((size * f).sum(2) for f in (np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle)))
    return t, q, v, a


@jax.jit
def efforts(model, q, v, a):
    """Inverse dynamics with friction, for each sample."""
    return jax.vmap(lambda q, v, a: jd.rnea(model, q, v, a) - jd.passive_forces(model, q, v))(q, v, a)


def synthetic_log(model, noise: float = 0.0, samples: int = 400, seed: int = 0) -> Log:
    """A log of `motion` with Gaussian noise on the efforts."""
    t, q, v, a = motion(model.nv, samples)
    u = np.asarray(efforts(model, q, v, a))
    return Log(t, q, v, a, u + np.random.default_rng(seed + 7).normal(0, noise, u.shape), "made")


def perturb_model(model):
    """The robot with perturbed masses, centres of mass and friction, as initial model of a fit."""
    fields = lambda m: (m.links.mass, m.links.com, m.properties.damping, m.properties.friction)
    links, some = model.links, jnp.full(model.nv, 0.1)
    return eqx.tree_at(fields, model, (1.3 * links.mass, links.com + 0.01, some, some))
