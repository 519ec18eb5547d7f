"""Control laws: functions of time and state, with their gains as leaves, for `simulate`."""

from jaxdyn.control._joint_space import ComputedTorque as ComputedTorque
from jaxdyn.control._joint_space import GravityPD as GravityPD
from jaxdyn.control._joint_space import ReferenceFeedforward as ReferenceFeedforward
from jaxdyn.control._joint_space import StateFeedforward as StateFeedforward
from jaxdyn.control._joint_space import StoredFeedforward as StoredFeedforward
from jaxdyn.control._lqr import LinearFeedback as LinearFeedback
from jaxdyn.control._lqr import Lqr as Lqr
from jaxdyn.control._lqr import TrackingFeedback as TrackingFeedback
from jaxdyn.control._lqr import linearise as linearise
from jaxdyn.control._lqr import lqr as lqr
from jaxdyn.control._lqr import tracking_lqr as tracking_lqr
from jaxdyn.control._operational import HybridPositionForce as HybridPositionForce
from jaxdyn.control._operational import Impedance as Impedance
from jaxdyn.control._operational import OperationalSpace as OperationalSpace
from jaxdyn.control._reference import DesiredMotion as DesiredMotion
from jaxdyn.control._reference import PathReference as PathReference
from jaxdyn.control._reference import Plan as Plan
from jaxdyn.control._reference import desired_motion as desired_motion
from jaxdyn.control._reference import nominal_plan as nominal_plan
from jaxdyn.control._riccati import Riccati as Riccati
from jaxdyn.control._riccati import RiccatiStatus as RiccatiStatus
from jaxdyn.control._riccati import continuous_riccati as continuous_riccati
from jaxdyn.control._riccati import discrete_riccati as discrete_riccati
from jaxdyn.control._riccati import riccati_along as riccati_along
from jaxdyn.control._task import POSE as POSE
from jaxdyn.control._task import POSITION as POSITION
