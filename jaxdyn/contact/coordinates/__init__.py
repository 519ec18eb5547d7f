"""Functional coordinates: the pose of a tool relative to an object, split into free and constrained coordinates."""

from jaxdyn.contact.coordinates._coordinates import CoordinateKinematics as CoordinateKinematics
from jaxdyn.contact.coordinates._coordinates import FunctionalConstraint as FunctionalConstraint
from jaxdyn.contact.coordinates._coordinates import FunctionalCoordinates as FunctionalCoordinates
from jaxdyn.contact.coordinates._poses import peg_coordinates as peg_coordinates
from jaxdyn.contact.coordinates._poses import pose_coordinates as pose_coordinates
from jaxdyn.contact.coordinates._projected import ProjectedDynamics as ProjectedDynamics
from jaxdyn.contact.coordinates._projected import projected_dynamics as projected_dynamics
