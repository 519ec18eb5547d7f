"""The contract of actuators of one joint, and the gear between actuator and joint."""

from jaxdyn.actuators.contract._gear import is_self_locking as is_self_locking
from jaxdyn.actuators.contract._gear import saturate as saturate
from jaxdyn.actuators.contract._gear import transmitted_fraction as transmitted_fraction
from jaxdyn.actuators.contract._gear import velocity_index as velocity_index
from jaxdyn.actuators.contract._joint_actuator import AbstractJointActuator as AbstractJointActuator
from jaxdyn.actuators.contract._joint_actuator import CanonicalForm as CanonicalForm
from jaxdyn.actuators.contract._joint_actuator import JointMotion as JointMotion
from jaxdyn.actuators.contract._joint_actuator import PowerFlow as PowerFlow
from jaxdyn.actuators.contract._joint_actuator import Requirement as Requirement
from jaxdyn.actuators.contract._joint_actuator import inputs_of_form as inputs_of_form
from jaxdyn.actuators.contract._limits import infinite_limits as infinite_limits
from jaxdyn.actuators.contract._limits import symmetric_limits as symmetric_limits
