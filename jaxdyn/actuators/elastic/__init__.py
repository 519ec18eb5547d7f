"""Elastic transmissions, couplings and supports."""

from jaxdyn.actuators.elastic._elastic_coupling import ElasticCoupling as ElasticCoupling
from jaxdyn.actuators.elastic._elastic_inverse_dynamics import ElasticMotion as ElasticMotion
from jaxdyn.actuators.elastic._elastic_inverse_dynamics import elastic_inverse_dynamics as elastic_inverse_dynamics
from jaxdyn.actuators.elastic._elastic_support import ElasticSupport as ElasticSupport
from jaxdyn.actuators.elastic._elastic_support import add_elastic_object as add_elastic_object
from jaxdyn.actuators.elastic._elastic_support import on_elastic_support as on_elastic_support
from jaxdyn.actuators.elastic._elastic_transmission import add_elastic_transmission as add_elastic_transmission
from jaxdyn.actuators.elastic._hysteresis import BoucWen as BoucWen
from jaxdyn.actuators.elastic._springs import AbstractSpring as AbstractSpring
from jaxdyn.actuators.elastic._springs import Backlash as Backlash
from jaxdyn.actuators.elastic._springs import CubicSpring as CubicSpring
from jaxdyn.actuators.elastic._springs import LinearSpring as LinearSpring
from jaxdyn.actuators.elastic._springs import PiecewiseLinearSpring as PiecewiseLinearSpring
from jaxdyn.actuators.elastic._stage import Stage as Stage
from jaxdyn.actuators.elastic._transmission_springs import TransmissionSprings as TransmissionSprings
