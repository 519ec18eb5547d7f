"""Contact: gaps between bodies, with laws of impact and friction."""

from jaxdyn.contact.contract import AbstractGap as AbstractGap
from jaxdyn.contact.contract import Touch as Touch
from jaxdyn.contact.coordinates import CoordinateKinematics as CoordinateKinematics
from jaxdyn.contact.coordinates import FunctionalConstraint as FunctionalConstraint
from jaxdyn.contact.coordinates import FunctionalCoordinates as FunctionalCoordinates
from jaxdyn.contact.coordinates import ProjectedDynamics as ProjectedDynamics
from jaxdyn.contact.coordinates import peg_coordinates as peg_coordinates
from jaxdyn.contact.coordinates import pose_coordinates as pose_coordinates
from jaxdyn.contact.coordinates import projected_dynamics as projected_dynamics
from jaxdyn.contact.geometry import AbstractShape as AbstractShape
from jaxdyn.contact.geometry import AbstractSurface as AbstractSurface
from jaxdyn.contact.geometry import Capsule as Capsule
from jaxdyn.contact.geometry import Cylinder as Cylinder
from jaxdyn.contact.geometry import Disc as Disc
from jaxdyn.contact.geometry import Gap as Gap
from jaxdyn.contact.geometry import GapFunction as GapFunction
from jaxdyn.contact.geometry import ImplicitSurface as ImplicitSurface
from jaxdyn.contact.geometry import Inside as Inside
from jaxdyn.contact.geometry import Plane as Plane
from jaxdyn.contact.geometry import Point as Point
from jaxdyn.contact.geometry import Sphere as Sphere
from jaxdyn.contact.geometry import box_corners as box_corners
from jaxdyn.contact.geometry import capsule_ends as capsule_ends
