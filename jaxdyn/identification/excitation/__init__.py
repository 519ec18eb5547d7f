"""Optimal excitation trajectories: motion curves, limits, the information of the base regressor, and their design."""

from jaxdyn.identification.excitation._design import Excitation as Excitation
from jaxdyn.identification.excitation._design import ExcitationStatus as ExcitationStatus
from jaxdyn.identification.excitation._design import design_excitation as design_excitation
from jaxdyn.identification.excitation._information import Information as Information
from jaxdyn.identification.excitation._information import information_of as information_of
from jaxdyn.identification.excitation._information import log_condition as log_condition
from jaxdyn.identification.excitation._information import log_volume as log_volume
from jaxdyn.identification.excitation._limits import MotionLimits as MotionLimits
from jaxdyn.identification.excitation._limits import link_above as link_above
from jaxdyn.identification.excitation._limits import link_in_box as link_in_box
from jaxdyn.identification.excitation._limits import links_apart as links_apart
from jaxdyn.identification.excitation._limits import motion_limits as motion_limits
from jaxdyn.identification.excitation._motions import AbstractMotionCurve as AbstractMotionCurve
from jaxdyn.identification.excitation._motions import FourierMotion as FourierMotion
from jaxdyn.identification.excitation._motions import SplineMotion as SplineMotion
from jaxdyn.identification.excitation._motions import random_fourier as random_fourier
from jaxdyn.identification.excitation._motions import random_spline as random_spline
