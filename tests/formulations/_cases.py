"""Small robots, one a class that formulations cover, and which formulation covers which of them.

A robot is added to `_ROBOTS`, a formulation with the names of all robots that it covers to `COVERED`.
"""

import functools as ft

import numpy as np

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
from jaxdyn.joints import Continuous, Fixed, Revolute, SphericalZYX
from jaxdyn.model import Model, ModelBuilder
from tests.oracles import random_inertia, random_joint, random_model, random_rotation, random_state

TOLERANCE = 1e-10


def _planar() -> Model:
    """Three hinges with parallel axes of any direction, sense and length, and a link fixed to the second."""
    rng = np.random.default_rng(5)
    builder = ModelBuilder(gravity=(1.0, -2.0, -9.0))
    normal, turn = np.array([0.3, -0.5, 0.8]), np.eye(3)
    for i, joint in enumerate((Revolute, Continuous, None, Revolute)):
        rotation = random_rotation(rng)
        turn = turn @ rotation
        axis = turn.T @ normal * (-1) ** i * rng.uniform(0.5, 2)
        builder.add_link(
            f"l{i}",
            f"l{i - 1}" if i else "world",
            joint(axis) if joint else Fixed(),
            random_inertia(rng),
            translation=0.3 * rng.normal(size=3),
            rotation=rotation,
            armature=0.05 if joint else (),
        )
    return builder.build()


def _balls() -> Model:
    """Two ball joints in z-y-x angles, with a link fixed to the first."""
    rng = np.random.default_rng(6)
    builder = ModelBuilder(gravity=(1.0, -2.0, -9.0))
    for i in range(3):
        builder.add_link(
            f"l{i}",
            f"l{i - 1}" if i else "world",
            Fixed() if i == 1 else SphericalZYX(),
            random_inertia(rng),
            translation=0.3 * rng.normal(size=3),
            rotation=random_rotation(rng) if i == 0 else None,
            armature=() if i == 1 else 0.05,
        )
    return builder.build()


def _floating() -> Model:
    """A free body with a ball joint and a branch."""
    rng = np.random.default_rng(7)
    builder = ModelBuilder(gravity=(1.0, -2.0, -9.0))
    for i, (parent, kind) in enumerate((("world", "free"), ("l0", "spherical"), ("l0", "universal"))):
        builder.add_link(
            f"l{i}",
            parent,
            random_joint(rng, kind),
            random_inertia(rng),
            translation=0.3 * rng.normal(size=3),
            rotation=random_rotation(rng),
            armature=0.05,
        )
    return builder.build()


def _geared() -> Model:
    """A slide geared to a hinge."""
    rng = np.random.default_rng(12)
    builder = ModelBuilder()
    for name, parent, kind in (("a", "world", "revolute"), ("b", "a", "prismatic")):
        builder.add_link(
            name, parent, random_joint(rng, kind), random_inertia(rng), translation=0.3 * rng.normal(size=3)
        )
    return builder.add_mimic("b_joint", "a_joint", ratio=-0.7, offset=0.2).build()


def _hinges() -> Model:
    """Two hinges, for what is slow to compile."""
    rng = np.random.default_rng(8)
    builder = ModelBuilder()
    for name, parent in (("upper", "world"), ("lower", "upper")):
        builder.add_link(
            name, parent, Revolute([0, 1, 0]), random_inertia(rng), translation=0.3 * rng.normal(size=3), armature=0.1
        )
    return builder.build()


_ROBOTS = {
    "hinges": _hinges,
    "planar": _planar,
    "balls": _balls,
    "arm": lambda: random_model(2, 3, kinds=("revolute", "prismatic"), branching=0),
    "tree": lambda: random_model(3, 4, kinds=("revolute", "prismatic"), branching=1),
    "floating": _floating,
    "geared": _geared,
}

ROBOTS = tuple(_ROBOTS)

#: every formulation, with the names of all robots above that it covers; the first is that of the default run
COVERED: tuple[tuple[AbstractFormulation, tuple[str, ...]], ...] = (
    (PlanarChain(), ("planar", "hinges")),
    (SphericalChain(), ("balls",)),
    (MomentumEquation(), ("hinges", "planar", "balls", "arm", "tree", "geared")),
    (Hamilton(), ("hinges", "planar", "balls", "arm", "tree", "geared")),
    (Lagrange(), ROBOTS),
    (NewtonEulerReactions(), ("tree", "arm", "planar", "hinges")),
    (TwistWrench(), ("tree", "arm", "planar", "hinges")),
    (GibbsAppell(), ("floating", *(name for name in ROBOTS if name != "floating"))),
)


@ft.cache
def model(name: str) -> Model:
    """One of the robots."""
    return _ROBOTS[name]()


@ft.cache
def state(name: str, seed: int = 0):
    """A state `(q, v, a, external)` of a robot."""
    return random_state(model(name), seed)
