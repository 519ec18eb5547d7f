"""Drives, electric motors, geared rotors and joint friction: parts of a `System` whose numbers are leaves."""

from jaxdyn.actuators._described import DescribedActuators as DescribedActuators
from jaxdyn.actuators._described import JointEfforts as JointEfforts
from jaxdyn.actuators._drive import Drive as Drive
from jaxdyn.actuators._drive import drive as drive
from jaxdyn.actuators._friction import JointFriction as JointFriction
from jaxdyn.actuators._friction import joint_friction as joint_friction
from jaxdyn.actuators._motor import DcMotor as DcMotor
from jaxdyn.actuators._motor import MotorFlow as MotorFlow
from jaxdyn.actuators._motor import MotorState as MotorState
from jaxdyn.actuators._rotor import add_rotor as add_rotor
from jaxdyn.actuators._rotor_friction import AbstractRotorFriction as AbstractRotorFriction
from jaxdyn.actuators._rotor_friction import Cogging as Cogging
from jaxdyn.actuators._rotor_friction import LuGreFriction as LuGreFriction
from jaxdyn.actuators._rotor_friction import StribeckFriction as StribeckFriction
from jaxdyn.actuators._thermal import SteadyTemperature as SteadyTemperature
from jaxdyn.actuators._thermal import ThermalModel as ThermalModel
