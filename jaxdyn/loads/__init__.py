"""Loads of links with beams: internal forces, stresses, safety, deflections, for one state and along a trajectory."""

from jaxdyn.loads._internal_loads import InternalLoads as InternalLoads
from jaxdyn.loads._internal_loads import internal_loads as internal_loads
from jaxdyn.loads._internal_loads import internal_loads_along as internal_loads_along
