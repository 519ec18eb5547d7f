"""The sticks and shapes of a robot in a picture, and their places at a configuration."""

from dataclasses import dataclass

import jax
import numpy as np

from jaxdyn.joints import Free
from jaxdyn.kinematics import forward_kinematics
from jaxdyn.model import Closure, Model, Shape
from jaxdyn.spatial import Pose
from jaxdyn.viz._canvas import COLORS, GREY
from jaxdyn.viz._solids import Faces, polyhedron

#: number of the world among links
WORLD = -1


@dataclass(frozen=True)
class Stick:
    """A straight piece between two points, each fixed to a link (`WORLD` for the world)."""

    links: tuple[int, int]
    #: the points in the axes of their links, `(2, 3)`, m
    points: np.ndarray
    color: str


@dataclass(frozen=True)
class Solid:
    """A polyhedron fixed to a link."""

    link: int
    #: in the axes of the link, `(n, 3)`, m
    vertices: np.ndarray
    faces: Faces
    color: str


@dataclass(frozen=True)
class Scene:
    """The sticks and solids of a robot."""

    sticks: list[Stick]
    solids: list[Solid]
    #: points `(n, 3)` at which joints are marked, and their links
    joints: np.ndarray
    joint_links: np.ndarray


def build_scene(model: Model, shapes: bool = True) -> Scene:
    """The scene of a model: the shapes of links that have any, sticks for the others.

    Sticks lead from a link's origin to those of its children; at a last link, to its frames or its centre of mass.
    """
    solids = _solids(model) if shapes else []
    solid_links = {s.link for s in solids}
    sticks = [s for s in _sticks(model) if s.links[0] not in solid_links]
    links = [k for k, free in enumerate(_is_free(model)) if not free and k not in solid_links]
    return Scene(sticks, solids, np.zeros((len(links), 3)), np.asarray(links, int))


def link_poses(model: Model, q) -> tuple[np.ndarray, np.ndarray]:
    """Rotations `(..., links + 1, 3, 3)` and origins `(..., links + 1, 3)`; the last one is the world."""
    q = np.asarray(q)
    poses = _poses(model, q.reshape(-1, q.shape[-1]))
    rotation, origin = np.asarray(poses.rotation, float), np.asarray(poses.translation, float)
    rotation = np.concatenate([rotation, np.broadcast_to(np.eye(3), (len(rotation), 1, 3, 3))], axis=1)
    origin = np.concatenate([origin, np.zeros((len(origin), 1, 3))], axis=1)
    return rotation.reshape(*q.shape[:-1], *rotation.shape[1:]), origin.reshape(*q.shape[:-1], *origin.shape[1:])


@jax.jit
def _poses(model: Model, q):
    return jax.vmap(lambda q: forward_kinematics(model, q))(q)


def place(rotation: np.ndarray, origin: np.ndarray, links, points: np.ndarray) -> np.ndarray:
    """World positions `(..., n, 3)` of points `(n, 3)` fixed to `links`."""
    return np.einsum("...ij,...j->...i", rotation[..., links, :, :], points) + origin[..., links, :]


def stick_points(scene: Scene, rotation: np.ndarray, origin: np.ndarray) -> np.ndarray:
    """World positions of the ends of all sticks, `(..., sticks, 2, 3)`."""
    links = np.array([s.links for s in scene.sticks], int).reshape(-1)
    points = np.array([s.points for s in scene.sticks]).reshape(-1, 3)
    return place(rotation, origin, links, points).reshape(*origin.shape[:-2], len(scene.sticks), 2, 3)


def scene_points(scene: Scene, rotation: np.ndarray, origin: np.ndarray) -> np.ndarray:
    """World positions `(n, 3)` of all points, over all configurations."""
    clouds = [stick_points(scene, rotation, origin).reshape(-1, 3)]
    clouds += [place(rotation, origin, [s.link] * len(s.vertices), s.vertices).reshape(-1, 3) for s in scene.solids]
    return np.concatenate(clouds)


def ground_grid(points: np.ndarray) -> list[np.ndarray]:
    """A grid at height zero under a scene that is above it; none otherwise."""
    low, high = points.min(axis=0), points.max(axis=0)
    if low[2] < -0.02 * max(high[2] - low[2], 1e-9):
        return []
    pitch = 10.0 ** np.floor(np.log10(max(*(high - low), 1e-3)))
    a, b = np.floor(low[:2] / pitch) * pitch, np.ceil(high[:2] / pitch) * pitch
    along_y = [np.array([[x, a[1], 0], [x, b[1], 0]]) for x in np.arange(a[0], b[0] + pitch / 2, pitch)]
    along_x = [np.array([[a[0], y, 0], [b[0], y, 0]]) for y in np.arange(a[1], b[1] + pitch / 2, pitch)]
    return along_y + along_x


def link_color(link: int) -> str:
    """Colour of a link; neighbours differ."""
    return GREY if link == WORLD else COLORS[link % len(COLORS)]


def _is_free(model: Model) -> list[bool]:
    """Whether each link moves freely in space."""
    names = model.joint_names
    return [isinstance(model.joint(name).joint, Free) for name in names]


def _sticks(model: Model) -> list[Stick]:
    parents, zero = model.topology.parents, np.zeros(3)
    free = _is_free(model)
    joints = [
        Stick((p, k), np.stack([zero, zero]), link_color(p))
        for k, p in enumerate(parents)
        if not (p == WORLD and free[k])
    ]
    ends = [(k, np.asarray(point)) for k, points in enumerate(_free_ends(model)) for point in points]
    return joints + [Stick((k, k), np.stack([zero, point]), link_color(k)) for k, point in ends]


def _free_ends(model: Model) -> list[list[np.ndarray]]:
    """Points of each link to which sticks lead: points of closures, and frames or the centre of mass of a last link."""
    names = model.link_names
    ends: list[list[np.ndarray]] = [[] for _ in names]
    for closure in model.closures:
        if not isinstance(closure, Closure):
            continue
        for name, point in zip(closure.links, np.asarray(closure.translations), strict=True):
            if name in names:
                ends[names.index(name)].append(point)
    frames = np.asarray(model.frames.translation)
    for k in range(len(names)):
        if k not in model.topology.parents and not ends[k]:
            own = [frames[i] for i, link in enumerate(model.topology.frame_links) if link == k]
            ends[k] = own or [np.asarray(model.links.com)[k]]
    return ends


def _solids(model: Model) -> list[Solid]:
    """Visual shapes, or those of collisions where a model has no others."""
    shapes = model.info.shapes
    visual = [s for s in shapes if not s.collision and polyhedron(s) is not None]
    chosen = visual or [s for s in shapes if polyhedron(s) is not None]
    return [_solid(model, s) for s in chosen]


def _solid(model: Model, shape: Shape) -> Solid:
    drawn = polyhedron(shape)
    assert drawn is not None
    vertices, faces = drawn
    pose = Pose.from_quaternion(np.asarray(shape.quaternion), np.asarray(shape.translation))
    vertices = vertices @ np.asarray(pose.rotation).T + np.asarray(pose.translation)
    link = model.link_names.index(shape.link) if shape.link in model.link_names else WORLD
    color = "#" + "".join(f"{round(255 * c):02x}" for c in shape.color[:3]) if shape.color else link_color(link)
    return Solid(link, vertices, faces, color)
