"""A point of the first body."""

import jax.numpy as jnp

from jaxdyn.contact.geometry._contract import AbstractShape, AbstractSurface
from jaxdyn.spatial import Pose


class Point(AbstractShape):
    """A point, the origin of its frame."""

    def nearest_ball(self, surface: AbstractSurface, pose: Pose):
        return pose.translation, jnp.zeros_like(pose.translation[0])
