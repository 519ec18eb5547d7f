"""Polyhedra of the shapes of a model: vertices and faces in the axes of the shape."""

import itertools

import numpy as np

from jaxdyn.model import Shape

#: sides of round shapes
_SIDES = 16
#: rings of a half sphere
_RINGS = 4

Faces = list[tuple[int, ...]]
Polyhedron = tuple[np.ndarray, Faces]


def polyhedron(shape: Shape) -> Polyhedron | None:
    """Vertices `(n, 3)` in m and faces of a shape in its own axes; None for planes and meshes."""
    size = shape.size
    if shape.kind == "box":
        return _box(np.asarray(size) / 2)
    if shape.kind == "cylinder":
        return _revolve([(0.0, -size[1] / 2), (size[0], -size[1] / 2), (size[0], size[1] / 2), (0.0, size[1] / 2)])
    if shape.kind == "capsule":
        radius, half = size[0], size[1] / 2
        return _revolve([(r, z + np.copysign(half, z)) for r, z in _half_circle(radius)])
    if shape.kind == "sphere":
        return _revolve(_half_circle(size[0]))
    if shape.kind == "ellipsoid":
        vertices, faces = _revolve(_half_circle(1.0))
        return vertices * np.asarray(size), faces
    return None


def _box(half: np.ndarray) -> Polyhedron:
    corners = np.array(list(itertools.product((-1, 1), repeat=3))) * half
    return corners, [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]


def _half_circle(radius: float) -> list[tuple[float, float]]:
    """Points (r, z) from the south to the north pole; none on the equator, where a capsule has its cylinder."""
    angles = (np.arange(2 * _RINGS) + 0.5) / (2 * _RINGS) * np.pi - np.pi / 2
    return [(0.0, -radius), *((radius * np.cos(a), radius * np.sin(a)) for a in angles), (0.0, radius)]


def _revolve(profile: list[tuple[float, float]]) -> Polyhedron:
    """The surface of a profile of points (r, z), upwards from axis to axis, turned about z."""
    angles = 2 * np.pi * np.arange(_SIDES) / _SIDES
    rings = [(r * np.cos(angles), r * np.sin(angles), np.full(_SIDES, z)) for r, z in profile[1:-1]]
    ends = [(0.0, 0.0, profile[0][1]), (0.0, 0.0, profile[-1][1])]
    vertices = np.concatenate([np.stack(ring, axis=1) for ring in rings] + [np.array(ends)])
    south, north = len(vertices) - 2, len(vertices) - 1
    last = (len(rings) - 1) * _SIDES
    faces: Faces = []
    for i in range(_SIDES):
        j = (i + 1) % _SIDES
        faces += [(south, j, i), (north, last + i, last + j)]
        for k in range(0, last, _SIDES):
            faces.append((k + i, k + j, k + j + _SIDES, k + i + _SIDES))
    return vertices, faces
