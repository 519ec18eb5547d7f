"""Drives, electric motors, geared rotors, elastic transmissions and joint friction: parts whose numbers are leaves."""

from jaxdyn.actuators._drive import Drive as Drive
from jaxdyn.actuators._drive import drive as drive
from jaxdyn.actuators._elastic_coupling import ElasticCoupling as ElasticCoupling
from jaxdyn.actuators._elastic_inverse_dynamics import ElasticMotion as ElasticMotion
from jaxdyn.actuators._elastic_inverse_dynamics import elastic_inverse_dynamics as elastic_inverse_dynamics
from jaxdyn.actuators._elastic_support import ElasticSupport as ElasticSupport
from jaxdyn.actuators._elastic_support import add_elastic_object as add_elastic_object
from jaxdyn.actuators._elastic_support import on_elastic_support as on_elastic_support
from jaxdyn.actuators._elastic_transmission import add_elastic_transmission as add_elastic_transmission
from jaxdyn.actuators._friction import JointFriction as JointFriction
from jaxdyn.actuators._friction import joint_friction as joint_friction
from jaxdyn.actuators._hysteresis import BoucWen as BoucWen
from jaxdyn.actuators._motor import DcMotor as DcMotor
from jaxdyn.actuators._rotor import add_rotor as add_rotor
from jaxdyn.actuators._springs import AbstractSpring as AbstractSpring
from jaxdyn.actuators._springs import Backlash as Backlash
from jaxdyn.actuators._springs import CubicSpring as CubicSpring
from jaxdyn.actuators._springs import LinearSpring as LinearSpring
from jaxdyn.actuators._springs import PiecewiseLinearSpring as PiecewiseLinearSpring
from jaxdyn.actuators._stage import Stage as Stage
from jaxdyn.actuators._transmission_springs import TransmissionSprings as TransmissionSprings
