"""Passive swings of an arm: a batch, and the derivatives of one swing with respect to the parameters of the robot."""

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


def with_damping(model: Model, damping: Any) -> Model:
    """The robot with a viscous friction in all joints; its Coulomb friction stays."""
    return eqx.tree_at(lambda m: m.properties.damping, model, damping + jnp.zeros(model.nv))


def without_friction(model: Model) -> Model:
    """The robot without viscous and Coulomb friction."""
    friction = lambda m: (m.properties.damping, m.properties.friction)
    return eqx.tree_at(friction, model, (jnp.zeros(model.nv),) * 2)


def simulate_swing(model: Model, q, v, ts) -> Any:
    """The motion under gravity and joint friction: `(q, v)` at the times `ts`."""
    duration = ts[-1] - ts[0]
    motion = simulate(model, q, v, jnp.asarray(ts), dt=STEP, max_steps=round(float(duration) / STEP) + 2)
    return motion.q, motion.v


def tool_position(model: Model, q):
    """Position of the tool in world axes, m."""
    return frame_pose(model, q, TOOL).translation


class Swings(NamedTuple):
    """A batch of swings over time, `(samples, times, ...)`."""

    t: np.ndarray
    q: np.ndarray
    energy: np.ndarray  # J, kinetic and potential
    tool: np.ndarray  # m
    arm: np.ndarray  # m, `arm_polygon` of the model


def random_starts(model: Model, samples: int, seed: int = 0):
    """Random configurations, and zero velocities."""
    return random_configurations(model, jax.random.key(seed), samples), jnp.zeros((samples, model.nv))


@ft.partial(jax.jit, static_argnums=2)
def random_configurations(model: Model, key, samples: int):
    """Random configurations."""
    return jax.vmap(lambda key: random_configuration(model, key))(jax.random.split(key, samples))


def segment_function(duration: float, saved: int):
    """A function that simulates a batch of swings over one segment of time and returns `saved` states of each."""
    ts = np.linspace(0, duration, saved + 1)
    without_start = lambda model, q, v: jax.tree.map(lambda x: x[1:], simulate_swing(model, q, v, ts))
    return jax.vmap(without_start, in_axes=(None, 0, 0))


def energy(model: Model, q, v):
    """Kinetic and potential energy, J."""
    return kinetic_energy(model, q, v) + potential_energy(model, q)


def concatenate_segments(model: Model, start, segments, duration: float) -> Swings:
    """The swings of consecutive segments, with the initial state first."""
    q, v = (
        jnp.concatenate([x[:, None], *parts], axis=1)
        for x, parts in zip(start, zip(*segments, strict=True), strict=True)
    )
    return Swings(*map(np.asarray, (np.linspace(0, duration, q.shape[1]), q, *_energies_and_tool(model, q, v))))


@jax.jit
def _energies_and_tool(model: Model, q, v):
    """Energies and tool positions of a batch over time, and the polygon of the arm."""
    quantities = lambda q, v: (energy(model, q, v), tool_position(model, q))
    return (*jax.vmap(jax.vmap(quantities))(q, v), arm_polygon(model))


def arm_polygon(model: Model):
    """Positions of the base, the joints and the tool with all joints in the middle of their ranges, m."""
    middle = (model.limits.lower + model.limits.upper) / 2
    joints = forward_kinematics(model, middle).translation
    return jnp.concatenate([jnp.zeros((1, 3)), joints, tool_position(model, middle)[None]])


# Derivatives of the final height of one swing


class Sensitivities(NamedTuple):
    """Derivatives of the tool's final height with respect to the length and the mass of each moving link."""

    links: tuple[str, ...]
    has_length: np.ndarray
    length: np.ndarray  # m/m
    mass: np.ndarray  # m/kg


def final_height(model: Model, q, v, duration: float):
    """Height of the tool after a swing, m."""
    qs, _ = simulate_swing(model, q, v, (0.0, duration))
    return tool_position(model, qs[-1])[2]


def _length_directions(model: Model):
    """Rows of the moving links, and the unit vectors along their lengths, from the parent's origin to the joint."""
    rows = np.array(model.topology.bodies)
    offset = np.asarray(model.placements.translation)[rows]
    length = np.linalg.norm(offset, axis=1)
    return rows, offset / np.where(length == 0, 1, length)[:, None], length > 0


def select_sensitivities(model: Model, gradient: Model) -> Sensitivities:
    """The derivatives with respect to lengths and masses in a gradient with respect to the whole model."""
    rows, along, has_length = _length_directions(model)
    length = (np.asarray(gradient.placements.translation)[rows] * along).sum(1)
    names = tuple(model.link_names[i] for i in rows)
    return Sensitivities(names, has_length, length, np.asarray(gradient.links.mass)[rows])


def perturbed_models(model: Model, step: float) -> Model:
    """A batch of robots: each length, then each mass, increased by `step`; then the same decreased."""
    rows, along, _ = _length_directions(model)
    n = len(rows)
    shift = np.zeros((n, *model.placements.translation.shape))
    shift[np.arange(n), rows] = along
    load = np.zeros((n, *model.links.mass.shape))
    load[np.arange(n), rows] = 1
    zeros = np.zeros_like
    lengths = step * np.stack([shift, zeros(shift), -shift, zeros(shift)]).reshape(-1, *shift.shape[1:])
    masses = step * np.stack([zeros(load), load, zeros(load), -load]).reshape(-1, *load.shape[1:])
    batch = jax.tree.map(lambda x: jnp.broadcast_to(x, (4 * n, *x.shape)), model)
    leaves = lambda m: (m.placements.translation, m.links.mass)
    return eqx.tree_at(leaves, batch, (batch.placements.translation + lengths, batch.links.mass + masses))


def central_differences(model: Model, heights, step: float) -> Sensitivities:
    """The derivatives by central differences, from the final heights of `perturbed_models`."""
    up, down = np.asarray(heights).reshape(2, -1)
    length, mass = ((up - down) / (2 * step)).reshape(2, -1)
    rows, _, has_length = _length_directions(model)
    return Sensitivities(tuple(model.link_names[i] for i in rows), has_length, length, mass)
