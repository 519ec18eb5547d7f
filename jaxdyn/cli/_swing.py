"""Passive swings of an arm: a batch of them, and derivatives of one in the robot's own numbers."""

import functools as ft
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.dynamics import kinetic_energy, potential_energy
from jaxdyn.kinematics import forward_kinematics, frame_pose, random_configuration
from jaxdyn.model import Model
from jaxdyn.simulation import simulate

STEP = 0.0025  # s
TOOL = "hand_tcp"


def damped(model: Model, damping: Any) -> Model:
    """The robot with this viscous friction in all joints, beside the Coulomb friction that it has."""
    return eqx.tree_at(lambda m: m.properties.damping, model, damping + jnp.zeros(model.nv))


def lossless(model: Model) -> Model:
    """The robot without any friction."""
    friction = lambda m: (m.properties.damping, m.properties.friction)
    return eqx.tree_at(friction, model, (jnp.zeros(model.nv),) * 2)


def swing(model: Model, q, v, ts) -> Any:
    """Motion driven by gravity and the joints' own losses: `(q, v)` at the times `ts`."""
    duration = ts[-1] - ts[0]
    motion = simulate(model, q, v, jnp.asarray(ts), dt=STEP, max_steps=round(float(duration) / STEP) + 2)
    return motion.q, motion.v


def tool(model: Model, q):
    """Position of the tool in the world."""
    return frame_pose(model, q, TOOL).translation


class Swings(NamedTuple):
    """A batch of swings over time, `(samples, times, ...)`."""

    t: np.ndarray
    q: np.ndarray
    energy: np.ndarray  # J, kinetic and potential
    tool: np.ndarray  # m
    arm: np.ndarray  # m, polygon through the joints in the middle of the range, from the base to the tool


def starts(model: Model, samples: int, seed: int = 0):
    """Random configurations at rest."""
    return configurations(model, jax.random.key(seed), samples), jnp.zeros((samples, model.nv))


@ft.partial(jax.jit, static_argnums=2)
def configurations(model: Model, key, samples: int):
    """Random configurations."""
    return jax.vmap(lambda key: random_configuration(model, key))(jax.random.split(key, samples))


def segment_function(duration: float, saved: int):
    """A batch of swings over one segment of time, seen `saved` times."""
    ts = np.linspace(0, duration, saved + 1)
    later = lambda model, q, v: jax.tree.map(lambda x: x[1:], swing(model, q, v, ts))
    return jax.vmap(later, in_axes=(None, 0, 0))


def energy(model: Model, q, v):
    """Kinetic and potential energy, J."""
    return kinetic_energy(model, q, v) + potential_energy(model, q)


def collect(model: Model, start, segments, duration: float) -> Swings:
    """Segments joined over time, the start included."""
    q, v = (
        jnp.concatenate([x[:, None], *parts], axis=1)
        for x, parts in zip(start, zip(*segments, strict=True), strict=True)
    )
    return Swings(*map(np.asarray, (np.linspace(0, duration, q.shape[1]), q, *_seen(model, q, v))))


@jax.jit
def _seen(model: Model, q, v):
    """Energies and positions of the tool of a batch over time, and the arm in the middle of its range."""
    one = lambda q, v: (energy(model, q, v), tool(model, q))
    return (*jax.vmap(jax.vmap(one))(q, v), polygon(model))


def polygon(model: Model):
    """The joints of the arm in the middle of their range, between the base and the tool."""
    middle = (model.limits.lower + model.limits.upper) / 2
    joints = forward_kinematics(model, middle).translation
    return jnp.concatenate([jnp.zeros((1, 3)), joints, tool(model, middle)[None]])


# Derivatives of the outcome of one swing


class Sensitivities(NamedTuple):
    """Derivative of the tool's final height in the length and the mass of each moving link."""

    links: tuple[str, ...]
    has_length: np.ndarray
    length: np.ndarray  # m/m
    mass: np.ndarray  # m/kg


def outcome(model: Model, q, v, duration: float):
    """Height of the tool after a swing."""
    qs, _ = swing(model, q, v, (0.0, duration))
    return tool(model, qs[-1])[2]


def _directions(model: Model):
    """Rows of the links that move, and the direction in which each one's joint is placed in its parent."""
    rows = np.array(model.topology.bodies)
    offset = np.asarray(model.placements.translation)[rows]
    length = np.linalg.norm(offset, axis=1)
    return rows, offset / np.where(length == 0, 1, length)[:, None], length > 0


def sensitivities(model: Model, gradient: Model) -> Sensitivities:
    """The leaves of a gradient that are lengths and masses."""
    rows, along, has_length = _directions(model)
    length = (np.asarray(gradient.placements.translation)[rows] * along).sum(1)
    names = tuple(model.link_names[i] for i in rows)
    return Sensitivities(names, has_length, length, np.asarray(gradient.links.mass)[rows])


def variants(model: Model, step: float) -> Model:
    """A batch of robots: each length, then each mass, changed by `step` up, then by `step` down."""
    rows, along, _ = _directions(model)
    n = len(rows)
    shift = np.zeros((n, *model.placements.translation.shape))
    shift[np.arange(n), rows] = along
    load = np.zeros((n, *model.links.mass.shape))
    load[np.arange(n), rows] = 1
    none = np.zeros_like
    moved = step * np.stack([shift, none(shift), -shift, none(shift)]).reshape(-1, *shift.shape[1:])
    loaded = step * np.stack([none(load), load, none(load), -load]).reshape(-1, *load.shape[1:])
    wide = jax.tree.map(lambda x: jnp.broadcast_to(x, (4 * n, *x.shape)), model)
    leaves = lambda m: (m.placements.translation, m.links.mass)
    return eqx.tree_at(leaves, wide, (wide.placements.translation + moved, wide.links.mass + loaded))


def central_differences(model: Model, outcomes, step: float) -> Sensitivities:
    """The same derivatives out of the outcomes of `variants`."""
    up, down = np.asarray(outcomes).reshape(2, -1)
    length, mass = ((up - down) / (2 * step)).reshape(2, -1)
    rows, _, has_length = _directions(model)
    return Sensitivities(tuple(model.link_names[i] for i in rows), has_length, length, mass)
