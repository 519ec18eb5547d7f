"""Small robots, one for each class that formulations cover, and the robots that each formulation covers.

Add a robot to `_ROBOTS`, and a formulation with the names of all robots that it covers to `COVERED`. The numbers of a
robot depend on a seed, its structure does not, so that robots of several seeds share one compiled program.
"""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jaxdyn as jd
from jaxdyn.formulations import (
    AbstractFormulation,
    GibbsAppell,
    Hamilton,
    Lagrange,
    MomentumEquation,
    NewtonEulerReactions,
    PlanarChain,
    SphericalChain,
    TwistWrench,
)
from jaxdyn.joints import Continuous, Fixed, Revolute
from jaxdyn.model import Model, ModelBuilder
from tests.oracles import random_inertia, random_joint, random_rotation, random_state

TOLERANCE = 1e-10


def _tree(kinds: str, parents=None, *, armature=0.05):
    """A function `seed -> robot` with joints of these types in random frames; by default a chain."""
    names = kinds.split()
    parents = range(-1, len(names) - 1) if parents is None else parents

    def make(seed: int) -> Model:
        rng = np.random.default_rng([len(names), seed])
        builder = ModelBuilder(gravity=5 * rng.normal(size=3))
        for i, (kind, parent) in enumerate(zip(names, parents, strict=True)):
            builder.add_link(
                f"l{i}",
                f"l{parent}" if parent >= 0 else "world",
                random_joint(rng, kind),
                random_inertia(rng),
                translation=0.3 * rng.normal(size=3),
                rotation=random_rotation(rng),
                armature=() if kind == "fixed" else armature,
            )
        return builder.build()

    return make


def _planar(seed: int) -> Model:
    """Three revolute joints with parallel axes of either sense and any norm, and a rotated link fixed to the first."""
    rng = np.random.default_rng([5, seed])
    builder = ModelBuilder(gravity=(1.0, -2.0, -9.0))
    normal, turns = np.array([0.3, -0.5, 0.8]), [np.eye(3)]
    parents = ("world", "l0", "l0", "l2")
    for i, joint in enumerate((Revolute, None, Continuous, Revolute)):
        rotation = random_rotation(rng)
        turns.append(turns[0 if i == 0 else 1 + int(parents[i][1:])] @ rotation)
        axis = turns[-1].T @ normal * (-1) ** i * rng.uniform(0.5, 2)
        builder.add_link(
            f"l{i}",
            parents[i],
            joint(axis) if joint else Fixed(),
            random_inertia(rng),
            translation=0.3 * rng.normal(size=3),
            rotation=rotation,
            armature=0.05 if joint else (),
        )
    return builder.build()


def _mimicking(seed: int) -> Model:
    """A prismatic joint that mimics a revolute joint."""
    rng = np.random.default_rng([12, seed])
    builder = ModelBuilder()
    for name, parent, kind in (("a", "world", "revolute"), ("b", "a", "prismatic")):
        builder.add_link(
            name,
            parent,
            random_joint(rng, kind),
            random_inertia(rng),
            translation=0.3 * rng.normal(size=3),
            rotation=random_rotation(rng),
        )
    return builder.add_mimic("b_joint", "a_joint", ratio=-0.7, offset=0.2).build()


def _two_parallel_joints(seed: int) -> Model:
    """Two parallel revolute joints, for functions that compile slowly."""
    rng = np.random.default_rng([8, seed])
    builder = ModelBuilder()
    for name, parent in (("upper", "world"), ("lower", "upper")):
        builder.add_link(
            name, parent, Revolute([0, 1, 0]), random_inertia(rng), translation=0.3 * rng.normal(size=3), armature=0.1
        )
    return builder.build()


_ROBOTS = {
    "hinges": _two_parallel_joints,
    "planar": _planar,
    "balls": _tree("spherical_zyx fixed spherical_zyx"),
    "pair": _tree("revolute prismatic"),
    "ball_slide": _tree("spherical prismatic"),
    "tree": _tree("revolute prismatic revolute prismatic", (-1, 0, 0, 2)),
    "floating": _tree("free spherical universal", (-1, 0, 0)),
    "geared": _mimicking,
}

ROBOTS = tuple(_ROBOTS)

#: every formulation, with the names of all robots above that it covers; the first two are those of CI
COVERED: tuple[tuple[AbstractFormulation, tuple[str, ...]], ...] = (
    (PlanarChain(), ("hinges", "planar")),
    (SphericalChain(), ("balls",)),
    (MomentumEquation(), ("pair", "geared", "hinges", "planar", "balls", "tree")),
    (Hamilton(), ("pair", "geared", "hinges", "planar", "balls", "tree")),
    (Lagrange(), ("ball_slide", "geared", "pair", "hinges", "planar", "balls", "tree", "floating")),
    (NewtonEulerReactions(), ("pair", "tree", "hinges", "planar")),
    (TwistWrench(), ("pair", "tree", "hinges", "planar")),
    (GibbsAppell(), ("ball_slide", "geared", "pair", "hinges", "planar", "balls", "tree", "floating")),
)


def each():
    """Every formulation with a robot that it covers: two revolute joints, or another."""
    soonest = lambda robots: "hinges" if "hinges" in robots else robots[0]
    return [pytest.param(x, soonest(robots), id=type(x).__name__) for x, robots in COVERED]


@ft.cache
def model(name: str, seed: int = 0) -> Model:
    """One of the robots."""
    return _ROBOTS[name](seed)


@ft.cache
def state(name: str, seed: int = 0):
    """A state `(q, v, a, external)` of a robot."""
    return random_state(model(name), seed)


@ft.cache
def batch(name: str):
    """Three robots in three states, stacked: `(models, q, v, a, external)`; the last is neutral and at rest."""
    models = [model(name, seed) for seed in range(3)]
    states = [state(name, seed) for seed in range(3)]
    rest = (jd.neutral(models[0]), *(jnp.zeros_like(x) for x in states[0][1:3]), states[0][3])
    stack = lambda *x: jnp.stack(x)
    return jax.tree.map(stack, *models), *jax.tree.map(stack, *states[:2], rest)


def with_pitch(m, pitch):
    """Coordinates at which the first link has absolute angles `(0.2, pitch, 0.3)`."""
    home = Rotation.from_quat(np.roll(np.asarray(m.placements.rotation[0]), -1))
    own = home.inv() * Rotation.from_euler("ZYX", (0.2, pitch, 0.3))
    return jnp.zeros(m.nq).at[:3].set(own.as_euler("ZYX"))
