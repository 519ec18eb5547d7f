"""Drives, electric motors, geared rotors and joint friction: parts of a `System` whose numbers are leaves."""

from jaxdyn.actuators._drive import Drive as Drive
from jaxdyn.actuators._drive import drive as drive
from jaxdyn.actuators._friction import JointFriction as JointFriction
from jaxdyn.actuators._friction import joint_friction as joint_friction
from jaxdyn.actuators._motor import DcMotor as DcMotor
from jaxdyn.actuators._rotor import add_rotor as add_rotor
