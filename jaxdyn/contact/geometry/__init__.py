"""Gaps between shapes on a body and surfaces of another body."""

from jaxdyn.contact.geometry._contract import AbstractShape as AbstractShape
from jaxdyn.contact.geometry._contract import AbstractSurface as AbstractSurface
from jaxdyn.contact.geometry._gap import Gap as Gap
from jaxdyn.contact.geometry._gap import GapFunction as GapFunction
from jaxdyn.contact.geometry._plane import Plane as Plane
from jaxdyn.contact.geometry._point import Point as Point
from jaxdyn.contact.geometry._sphere import Sphere as Sphere
