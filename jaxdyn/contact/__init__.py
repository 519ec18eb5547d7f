"""Contact: gaps between bodies, with laws of impact and friction."""

from jaxdyn.contact.contract import AbstractGap as AbstractGap
from jaxdyn.contact.contract import Touch as Touch
from jaxdyn.contact.geometry import AbstractShape as AbstractShape
from jaxdyn.contact.geometry import AbstractSurface as AbstractSurface
from jaxdyn.contact.geometry import Gap as Gap
from jaxdyn.contact.geometry import GapFunction as GapFunction
from jaxdyn.contact.geometry import Plane as Plane
from jaxdyn.contact.geometry import Point as Point
from jaxdyn.contact.geometry import Sphere as Sphere
