"""Actuators with linear equations: canonical forms, hydraulic and pneumatic cylinders."""

from jaxdyn.actuators.linear._cylinder import HydraulicCylinder as HydraulicCylinder
from jaxdyn.actuators.linear._cylinder import PneumaticCylinder as PneumaticCylinder
from jaxdyn.actuators.linear._linear import LinearActuator as LinearActuator
from jaxdyn.actuators.linear._linear_effort import LinearEffort as LinearEffort
