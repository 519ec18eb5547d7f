"""Electric motors: equations, friction, heating, ratings, rotors and shafts."""

from jaxdyn.actuators.motors._motor import DcMotor as DcMotor
from jaxdyn.actuators.motors._motor_state import MotorFlow as MotorFlow
from jaxdyn.actuators.motors._motor_state import MotorState as MotorState
from jaxdyn.actuators.motors._ratings import MotorRatings as MotorRatings
from jaxdyn.actuators.motors._ratings import TorqueRange as TorqueRange
from jaxdyn.actuators.motors._ratings import motor_ratings as motor_ratings
from jaxdyn.actuators.motors._ratings import torque_range as torque_range
from jaxdyn.actuators.motors._rotor import add_rotor as add_rotor
from jaxdyn.actuators.motors._rotor_friction import AbstractRotorFriction as AbstractRotorFriction
from jaxdyn.actuators.motors._rotor_friction import Cogging as Cogging
from jaxdyn.actuators.motors._rotor_friction import LuGreFriction as LuGreFriction
from jaxdyn.actuators.motors._rotor_friction import StribeckFriction as StribeckFriction
from jaxdyn.actuators.motors._shaft import add_shaft as add_shaft
from jaxdyn.actuators.motors._stepping import SteppingMotor as SteppingMotor
from jaxdyn.actuators.motors._synchronous import SynchronousMotor as SynchronousMotor
from jaxdyn.actuators.motors._thermal import SteadyTemperature as SteadyTemperature
from jaxdyn.actuators.motors._thermal import ThermalModel as ThermalModel
from jaxdyn.actuators.motors._thermal import rms_current as rms_current
