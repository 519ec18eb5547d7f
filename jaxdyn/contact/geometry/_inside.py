"""The inside of a surface."""

from jaxdyn.contact.geometry._contract import AbstractSurface
from jaxdyn.contact.geometry._search import circle, nearest_point, segment


class Inside(AbstractSurface):
    """A surface touched from inside, such as the wall of a hole: distance and normal have the opposite sign.

    A capsule inside a cylinder or a sphere touches it at its ends: use `capsule_ends`.
    """

    surface: AbstractSurface

    def distance_and_normal(self, p):
        distance, n = self.surface.distance_and_normal(p)
        return -distance, -n

    def nearest_on_segment(self, start, end):
        return nearest_point(self, segment(start, end))

    def nearest_on_circle(self, centre, first, second, radius):
        return nearest_point(self, circle(centre, first, second, radius))
