"""The contract of constraints: abstract classes and the kinematics that they are functions of."""

from jaxdyn.constraints.contract._contract import AbstractConstraint as AbstractConstraint
from jaxdyn.constraints.contract._contract import AbstractHolonomic as AbstractHolonomic
from jaxdyn.constraints.contract._contract import AbstractNonholonomic as AbstractNonholonomic
from jaxdyn.constraints.contract._contract import Configuration as Configuration
from jaxdyn.constraints.contract._contract import ConstraintSet as ConstraintSet
from jaxdyn.constraints.contract._contract import KinematicState as KinematicState
from jaxdyn.constraints.contract._contract import carrying_link as carrying_link
