"""Gaps equal distances by other routes, and their derivatives are exact to third order."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jaxdyn.constraints as jc
import jaxdyn.contact as ct
from jaxdyn import ArgumentError, ShapeError
from jaxdyn.constraints.contract import KinematicState
from jaxdyn.constraints.evaluation import (
    acceleration_bias,
    as_constraints,
    constraint_kinematics,
    constraint_rates,
    constraint_residuals,
)
from jaxdyn.contact.contract import relative_velocity, slip_velocity

from ._cases import (
    DISTANCES,
    SHAPES,
    configuration,
    derivatives,
    flat_touch,
    least_distance,
    move,
    random_poses,
    surfaces,
    two_bodies,
)


@pytest.mark.parametrize("surface", DISTANCES)
@pytest.mark.slow("plane", "inside cylinder", "capsule")
def test_gaps_are_least_distances(surface):
    """All shapes, by minimisation of a distance in numpy along the curve of the shape."""
    gaps = {shape: ct.Gap("a", s, "b", surfaces()[surface]) for shape, s in SHAPES.items()}
    rotation, translation = random_poses(20, seed=1, spread=1.5 if surface == "implicit" else 1.0)
    measure = jax.jit(jax.vmap(lambda r, p: {k: g.measure(configuration(r, p)) for k, g in gaps.items()}))
    for shape, touch in measure(jnp.asarray(rotation), jnp.asarray(translation)).items():
        checked = 0
        for i in range(len(rotation)):
            if surface == "implicit" and touch.gap[i] < 0.05:
                continue  # the route in numpy is for points outside
            assert abs(touch.gap[i] - least_distance(shape, surface, rotation[i], translation[i])) < 1e-10
            checked += 1
        assert checked > 10
        assert np.abs(np.linalg.norm(touch.normal, axis=-1) - 1).max() < 1e-14


MUJOCO = {
    "sphere": ("sphere", "0.1"),
    "capsule": ("capsule", "0.1 0.3"),
    "other sphere": ("sphere", "0.4"),
    "other capsule": ("capsule", "0.2 0.4"),
}


def mujoco_distance(first, second, rotation, translation):
    """Distance and nearest points of two primitives."""
    quaternions = Rotation.from_matrix(rotation).as_quat(scalar_first=True)
    geoms = "".join(
        f'<geom type="{MUJOCO[name][0]}" size="{MUJOCO[name][1]}" pos="{" ".join(map(repr, map(float, p)))}" '
        f'quat="{" ".join(map(repr, map(float, q)))}"/>'
        for name, p, q in zip((first, second), translation, quaternions, strict=True)
    )
    mujoco: Any = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{geoms}</worldbody></mujoco>")
    data, segment = mujoco.MjData(model), np.zeros(6)
    mujoco.mj_forward(model, data)
    return mujoco.mj_geomDistance(model, data, 0, 1, 100.0, segment), segment


@pytest.mark.slow
@pytest.mark.parametrize("surface", ["sphere", "capsule"])
@pytest.mark.parametrize("shape", ["sphere", "capsule"])
def test_gaps_agree_with_mujoco(shape, surface):
    gap = ct.Gap("a", SHAPES[shape], "b", surfaces()[surface])
    rotation, translation = random_poses(10, seed=2)
    touch = jax.jit(jax.vmap(lambda r, p: gap.measure(configuration(r, p))))(
        jnp.asarray(rotation), jnp.asarray(translation)
    )
    for i in range(len(rotation)):
        distance, segment = mujoco_distance(shape, f"other {surface}", rotation[i], translation[i])
        assert abs(touch.gap[i] - distance) < 1e-9
        assert np.abs(touch.point[i] - segment[:3]).max() < 1e-8
        assert np.abs(touch.normal[i] * distance - (segment[:3] - segment[3:])).max() < 1e-8


class Slip(jc.AbstractNonholonomic):
    """Rows of a slip velocity along two tangents, axes of body b."""

    name: str
    gap: ct.AbstractGap
    tangents: jax.Array

    def rate(self, x):
        touch = self.gap.measure(x.configuration)
        return (self.tangents @ x.configuration.pose("b").rotation.T) @ slip_velocity(self.gap, x, touch)


PAIRS = [f"{shape}-{surface}" for shape in SHAPES for surface in DISTANCES]


def touch_derivatives(pair: str):
    """Function from e to `(4, 7)`: a touch and its first three derivatives along a motion, with moving leaves."""
    shape, surface = pair.split("-")
    gap = ct.Gap(
        ("a", (0.1, 0.2, 0.1), (0.9, 0.1, 0.2, 0.3)), SHAPES[shape], ("b", (0.0, 0.1, 0.05)), surfaces()[surface]
    )
    rng = np.random.default_rng(3)
    leaves, structure = jax.tree.flatten(gap)
    changes = [jnp.asarray(0.3 * rng.normal(size=x.shape)) for x in leaves]
    rotation, _ = random_poses(1, seed=4)
    translation = jnp.array([[0.8, 0.7, 0.6], [0.0, 0.0, 0.0]])
    twists = jnp.asarray(rng.normal(size=(2, 6)))

    def touch(e):
        moved = jax.tree.unflatten(structure, [x + e * dx for x, dx in zip(leaves, changes, strict=True)])
        return flat_touch(moved.measure(move(rotation[0], translation, twists, e)))

    return derivatives(touch, 3)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.slow("point-plane", "capsule-capsule", "disc-cylinder", "sphere-implicit", "disc-inside cylinder")
def test_derivatives_are_exact_to_third_order(pair):
    """With respect to poses and leaves at once, against central differences of the order below."""
    h = 1e-3
    values = jax.jit(jax.vmap(touch_derivatives(pair)))(h * jnp.arange(-3.0, 4.0))
    weights = np.array([-1, 9, -45, 0, 45, -9, 1]) / (60 * h)
    assert np.abs(values[:, 0, 0]).min() > 0.01  # no ball has its centre on the surface
    scale = 1 + np.abs(values[3, 1:]).max(axis=1, keepdims=True)
    differences = np.tensordot(weights, values[:, :-1], axes=1)
    assert (np.abs(values[3, 1:] - differences) / scale).max() < 1e-9


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.slow("sphere-plane", "capsule-cylinder", "disc-capsule", "capsule-implicit")
def test_gap_rate_is_the_normal_velocity_at_the_point(pair):
    shape, surface = pair.split("-")
    gap = ct.Gap(("a", (0.1, 0.2, 0.1)), SHAPES[shape], ("b", (0.0, 0.1, 0.05)), surfaces()[surface])

    @jax.jit
    @jax.vmap
    def rates(rotation, translation, twists):
        e = jnp.zeros(())
        touch, change = jax.jvp(
            lambda e: gap.measure(move(rotation, translation, twists, e)), (e,), (jnp.ones_like(e),)
        )
        x = configuration(rotation, translation)
        state = KinematicState(x, jnp.zeros(12), twists[:, :3], twists[:, 3:])
        return (
            touch.gap,
            change.gap,
            touch.normal @ relative_velocity(gap, state, touch),
            touch.normal @ slip_velocity(gap, state, touch),
        )

    rotation, translation = random_poses(20, seed=5, spread=1.5 if surface == "implicit" else 1.0)
    value, rate, normal, slip = rates(rotation, translation, np.random.default_rng(6).normal(size=(20, 2, 6)))
    checked = value > 0 if surface == "implicit" else np.full(20, True)
    assert checked.sum() > 8
    assert np.abs(rate - normal)[checked].max() < 1e-12
    assert np.abs(slip).max() < 1e-14


@pytest.mark.slow
def test_gaps_with_a_plane_are_constraints_of_rolling():
    """Value, rate and acceleration bias of gap and slip equal those of balls and discs on a moving plane."""
    normal = np.array([0.1, 0.2, 1.0])
    first = np.cross(normal, [1.0, 0, 0]) / np.hypot(normal[1], normal[2])
    tangents = jnp.asarray(np.stack([first, np.cross(normal, first) / np.linalg.norm(normal)]))
    gaps = [ct.Gap("a", shape, "b", ct.Plane(normal)) for shape in (ct.Sphere(0.3), ct.Disc(0.4))]
    constraints = as_constraints(
        (
            *(jc.Holonomic(f"gap {k}", lambda x, g=g: g.measure(x).gap) for k, g in enumerate(gaps)),
            *(Slip(f"slip {k}", g, tangents) for k, g in enumerate(gaps)),
            jc.BallOnPlane("height", "a", 0.3, normal, "b"),
            jc.DiscOnPlane("rim", "a", 0.4, normal, "b"),
            jc.RollingBall("ball", "a", 0.3, normal, "b"),
            jc.RollingDisc("disc", "a", 0.4, normal, "b"),
        )
    )
    model = two_bodies()

    @jax.jit
    def evaluate(q, v):
        x = constraint_kinematics(model, 0.0, q, v)
        return tuple(f(model, constraints, x) for f in (constraint_residuals, constraint_rates, acceleration_bias))

    rng = np.random.default_rng(7)
    for x in evaluate(jnp.asarray(rng.normal(size=model.nq)), jnp.asarray(rng.normal(size=model.nv))):
        assert x.shape == (12,)
        assert np.abs(x[:6] - x[6:]).max() < 1e-11 * (1 + np.abs(x).max())


def test_ends_and_corners_are_the_points_of_the_shape():
    """The least of their gaps with a plane is the gap of the shape, or the lowest corner of the box."""
    rotation, translation = (jnp.asarray(x[0]) for x in random_poses(1, seed=8))
    x, frame = configuration(rotation, translation), ("a", (0.1, 0.2, 0.1), (0.9, 0.1, 0.2, 0.3))
    ends = ct.capsule_ends(frame, SHAPES["capsule"], "b", ct.Plane())
    whole = ct.Gap(frame, SHAPES["capsule"], "b", ct.Plane()).measure(x).gap
    assert abs(min(end.measure(x).gap for end in ends) - whole) < 1e-14
    size = np.array([0.2, 0.4, 0.6])
    corners = ct.box_corners(frame, size, "world", ct.Plane())
    pose = corners[0].first.pose(x)
    centre = pose.translation + pose.rotation @ (size / 2)
    lowest = centre[2] - np.abs(pose.rotation[2]) @ (size / 2)
    assert abs(min(corner.measure(x).gap for corner in corners) - lowest) < 1e-14


def test_gap_functions_and_wrong_arguments():
    rotation, translation = (jnp.asarray(x[0]) for x in random_poses(1, seed=9))
    x, up = configuration(rotation, translation), jnp.array([0.0, 0.0, 1.0])
    height = ct.GapFunction("a", "world", lambda x: (x.pose("a").translation[2], x.pose("a").translation, up))
    expected = ct.Gap("a", ct.Point(), "world", ct.Plane()).measure(x)
    assert all(np.array_equal(a, b) for a, b in zip(height.measure(x), expected, strict=True))
    with pytest.raises(ShapeError, match="expected"):
        ct.GapFunction("a", "world", lambda x: (up, up, up)).measure(x)
    with pytest.raises(ShapeError, match="return a scalar"):
        ct.ImplicitSurface(lambda p: p).distance_and_normal(up)


def test_wrong_shapes_and_surfaces_are_refused(without_annotations):
    with pytest.raises(ArgumentError, match="shape is"):
        ct.Gap("a", ct.Plane(), "b", ct.Plane())
    with pytest.raises(ArgumentError, match="surface is"):
        ct.Gap("a", ct.Point(), "b", ct.Point())
