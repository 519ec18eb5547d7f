"""Orthographic projection of a scene onto a picture."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Camera:
    """An orthographic camera: points x right, y up, z towards the observer."""

    #: rows are the axes of the picture in the world, `(3, 3)`
    axes: np.ndarray
    #: whether the scene is planar and seen along its normal, so that the picture has a scale
    is_planar: bool

    @property
    def angles(self) -> tuple[float, float]:
        """Azimuth and elevation, degrees."""
        x, y, z = self.axes[2]
        azimuth = np.arctan2(y, x) if np.hypot(x, y) > 1e-9 else np.arctan2(-self.axes[1, 1], -self.axes[1, 0])
        return float(np.rad2deg(azimuth)), float(np.rad2deg(np.arcsin(np.clip(z, -1, 1))))

    def project(self, points: np.ndarray) -> np.ndarray:
        """Picture coordinates and height above the picture, `(..., 3)`, of world points `(..., 3)`."""
        return points @ self.axes.T


def camera_at(azimuth: float, elevation: float) -> Camera:
    """A camera that looks from an azimuth (about z, from the x axis) and an elevation, degrees, at the origin."""
    a, e = np.deg2rad([azimuth, elevation])
    right = np.array([-np.sin(a), np.cos(a), 0.0])
    towards = np.array([np.cos(a) * np.cos(e), np.sin(a) * np.cos(e), np.sin(e)])
    return Camera(np.stack([right, np.cross(towards, right), towards]), False)


def choose_camera(points: np.ndarray, view: tuple[float, float] | None) -> Camera:
    """The camera of a view (azimuth, elevation) in degrees; by default along the normal of a planar scene,
    otherwise from the side of its longest extent.
    """
    if view is not None:
        return camera_at(*view)
    extent = np.ptp(points, axis=0)
    flat = extent < 1e-6 * max(extent.max(), 1e-12)
    if flat[1]:
        return Camera(np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]]), True)
    if flat[2]:
        return Camera(np.eye(3), True)
    if flat[0]:
        return Camera(np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]]), True)
    return camera_at(_side(points), 20.0)


def _side(points: np.ndarray) -> float:
    """Azimuth that shows the longest horizontal extent from the side, from the front of the x axis; -60 without one."""
    across = points[:, :2] - points[:, :2].mean(axis=0)
    _, extents, axes = np.linalg.svd(across, full_matrices=False)
    if extents[0] < 1.5 * extents[1]:
        return -60.0
    azimuth = np.rad2deg(np.arctan2(axes[0, 1], axes[0, 0])) - 70.0
    return float((azimuth + 180.0) % 180.0 - 180.0)
