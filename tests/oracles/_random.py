"""Random robots without special values of any parameter."""

import jax.numpy as jnp
import numpy as np

from jaxdyn.joints import (
    Continuous,
    Custom,
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    SphericalZYX,
    Universal,
)
from jaxdyn.model import Model, ModelBuilder
from jaxdyn.spatial import Inertia

PINOCCHIO_KINDS = (
    "revolute",
    "continuous",
    "prismatic",
    "helical",
    "universal",
    "planar",
    "spherical",
    "spherical_zyx",
)
MUJOCO_KINDS = (
    "revolute",
    "continuous",
    "prismatic",
    "spherical",
    "universal",
    "cylindrical",
    "spherical_zyx",
)
ALL_KINDS = (*PINOCCHIO_KINDS, "cylindrical", "custom", "free")


def screw_with_a_twist(params, q):
    """The pose of an uncommon joint: a rotation about z by q0 + k q1, and a curved translation."""
    angle = q[0] + params["k"] * q[1]
    s, c = jnp.sin(angle), jnp.cos(angle)
    zero, one = 0 * s, 1 + 0 * s
    rotation = jnp.stack([jnp.stack([c, -s, zero]), jnp.stack([s, c, zero]), jnp.stack([zero, zero, one])])
    return rotation, jnp.stack([params["r"] * q[0] * q[1], q[1], params["r"] * jnp.sin(q[0])])


def random_rotation(rng) -> np.ndarray:
    """A rotation matrix."""
    r = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return r * np.sign(np.linalg.det(r))


def random_inertia(rng) -> Inertia:
    """A body whose principal moments satisfy the triangle inequality strictly."""
    spread = rng.normal(size=(3, 3))
    second = 0.01 * spread @ spread.T
    inertia = np.trace(second) * np.eye(3) - second
    return Inertia(rng.uniform(0.5, 2), 0.1 * rng.normal(size=3), (inertia + inertia.T) / 2)


def random_joint(rng, kind: str):
    """A joint of the given kind; the axes of a universal one are perpendicular unit vectors."""
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    across = np.cross(axis, rng.normal(size=3))
    across /= np.linalg.norm(across)
    pitch, ratio, radius = rng.uniform(0.1, 0.5, 3)
    makers = {
        "fixed": lambda: Fixed(),
        "revolute": lambda: Revolute(axis),
        "continuous": lambda: Continuous(axis),
        "prismatic": lambda: Prismatic(axis),
        "helical": lambda: Helical(axis, pitch),
        "cylindrical": lambda: Cylindrical(axis),
        "universal": lambda: Universal(axis, across),
        "planar": lambda: Planar(),
        "spherical": lambda: Spherical(),
        "spherical_zyx": lambda: SphericalZYX(),
        "free": lambda: Free(),
        "custom": lambda: Custom({"k": jnp.asarray(ratio), "r": jnp.asarray(radius)}, screw_with_a_twist, 2),
    }
    return makers[kind]()


def random_model(
    seed: int,
    num_joints: int,
    *,
    kinds=PINOCCHIO_KINDS,
    branching: float = 0.5,
    fixed_fraction: float = 0.0,
    floating: bool = False,
    based: bool = False,
    frames: int = 2,
    dtype=None,
) -> Model:
    """A tree of `num_joints` links called l0, l1, ...; each kind occurs once before any is repeated.

    With probability `branching` the parent of a link is one of the few links before it instead of the last one; with
    probability `fixed_fraction` its joint is fixed. `floating` makes the first joint a free one; `based` puts the
    first joint on a heavy link called base that is fixed to the world. Frames are called f0, f1, ...
    """
    rng = np.random.default_rng(seed)
    builder = ModelBuilder(gravity=5 * rng.normal(size=3))
    kinds = list(kinds)
    deck: list[str] = []
    if based:
        own = np.random.default_rng(seed + 1000)  # the rest of the robot stays as it is without a base
        heavy = random_inertia(own)
        where = {"translation": own.normal(size=3), "rotation": random_rotation(own)}
        builder.add_link("base", "world", Fixed(), Inertia(5 * heavy.mass, heavy.com, heavy.inertia), **where)
    for i in range(num_joints):
        parent = "base" if based else "world"
        if i > 0:
            near = rng.integers(max(0, i - 4), i) if rng.uniform() < branching else i - 1
            parent = f"l{near}"
        if not deck:
            deck = [kinds[k] for k in rng.permutation(len(kinds))]
        if floating and i == 0:
            kind = "free"
        elif i > 0 and rng.uniform() < fixed_fraction:
            kind = "fixed"
        else:
            kind = deck.pop()
        joint = random_joint(rng, kind)
        n, nq = joint.nv, joint.nq
        scalar = n == nq and kind not in ("free", "spherical", "planar")
        drawn = lambda low, high, n=n: rng.uniform(low, high, n)
        if kind == "free":  # nothing that depends on the axes along which the base moves
            drawn = lambda low, high: np.repeat(rng.uniform(low, high, 2), 3)
        armature = drawn(0.01, 0.1)
        if kind == "free":
            armature[3:] = 0
        builder.add_link(
            f"l{i}",
            parent,
            joint,
            random_inertia(rng),
            translation=0.3 * rng.normal(size=3),
            rotation=random_rotation(rng),
            armature=armature,
            damping=drawn(0.1, 0.5),
            friction=drawn(0.1, 0.3),
            friction_velocity=drawn(0.1, 0.2),
            stiffness=drawn(0.5, 1.5),
            **({"rest": 0.1 * rng.normal(size=nq)} if scalar else {}),
        )
    for k in range(frames):
        builder.add_frame(
            f"f{k}",
            f"l{rng.integers(num_joints)}",
            translation=0.2 * rng.normal(size=3),
            rotation=random_rotation(rng),
        )
    return builder.build(dtype)


def random_state(model: Model, seed: int):
    """Coordinates, velocity, acceleration (or effort) and link wrenches, reproducible; not singular."""
    rng = np.random.default_rng(seed)
    q = np.zeros(model.nq)
    for name in model.joint_names:
        view = model.joint(name)
        nq = view.joint.nq
        q[view.q] = rng.uniform(-1, 1, nq)
        if isinstance(view.joint, Spherical | Free):
            quat = rng.normal(size=4)
            q[view.q][:4] = quat / np.linalg.norm(quat)
    v, a = rng.normal(size=model.nv), rng.normal(size=model.nv)
    external = rng.normal(size=(model.num_links, 6))
    return tuple(jnp.asarray(x, model.dtype) for x in (q, v, a, external))


def relative_error(got, want) -> float:
    """Largest difference relative to the largest expected magnitude."""
    got, want = np.asarray(got, float), np.asarray(want, float)
    assert got.shape == want.shape, (got.shape, want.shape)
    if want.size == 0:
        return 0.0
    error = np.abs(got - want).max() / max(np.abs(want).max(), 1e-300)
    return float(error) if np.isfinite(error) else np.inf
