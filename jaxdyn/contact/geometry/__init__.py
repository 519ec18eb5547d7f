"""Gaps between shapes on a body and surfaces of another body."""

from jaxdyn.contact.geometry._capsule import Capsule as Capsule
from jaxdyn.contact.geometry._contract import AbstractShape as AbstractShape
from jaxdyn.contact.geometry._contract import AbstractSurface as AbstractSurface
from jaxdyn.contact.geometry._corners import box_corners as box_corners
from jaxdyn.contact.geometry._corners import capsule_ends as capsule_ends
from jaxdyn.contact.geometry._cylinder import Cylinder as Cylinder
from jaxdyn.contact.geometry._disc import Disc as Disc
from jaxdyn.contact.geometry._gap import Gap as Gap
from jaxdyn.contact.geometry._gap import GapFunction as GapFunction
from jaxdyn.contact.geometry._implicit import ImplicitSurface as ImplicitSurface
from jaxdyn.contact.geometry._inside import Inside as Inside
from jaxdyn.contact.geometry._plane import Plane as Plane
from jaxdyn.contact.geometry._point import Point as Point
from jaxdyn.contact.geometry._sphere import Sphere as Sphere
