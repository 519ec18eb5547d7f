"""Loads of links with beams: internal forces, stresses, safety, deflections, for one state and along a trajectory."""

from jaxdyn.loads._deflections import Deflections as Deflections
from jaxdyn.loads._deflections import deflections as deflections
from jaxdyn.loads._deflections import deflections_along as deflections_along
from jaxdyn.loads._internal_loads import InternalLoads as InternalLoads
from jaxdyn.loads._internal_loads import internal_loads as internal_loads
from jaxdyn.loads._internal_loads import internal_loads_along as internal_loads_along
from jaxdyn.loads._stresses import Stresses as Stresses
from jaxdyn.loads._stresses import buckling_utilisation as buckling_utilisation
from jaxdyn.loads._stresses import stresses as stresses
from jaxdyn.loads._worst_case import WorstCase as WorstCase
from jaxdyn.loads._worst_case import worst_case as worst_case
