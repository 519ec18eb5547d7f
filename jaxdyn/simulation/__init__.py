"""Simulation: a robot with what acts on it, integrated on its manifold, with events, inputs and derivatives."""

from jaxdyn.simulation._batch import simulate_batch as simulate_batch
from jaxdyn.simulation._events import Coordinate as Coordinate
from jaxdyn.simulation._events import Event as Event
from jaxdyn.simulation._events import Rebound as Rebound
from jaxdyn.simulation._events import joint_stops as joint_stops
from jaxdyn.simulation._inputs import Effort as Effort
from jaxdyn.simulation._inputs import Feedback as Feedback
from jaxdyn.simulation._inputs import HeldSignal as HeldSignal
from jaxdyn.simulation._inputs import SampledFeedback as SampledFeedback
from jaxdyn.simulation._inputs import Signal as Signal
from jaxdyn.simulation._inputs import Wrench as Wrench
from jaxdyn.simulation._inputs import cubic_signal as cubic_signal
from jaxdyn.simulation._inputs import linear_signal as linear_signal
from jaxdyn.simulation._manifold import OnManifold as OnManifold
from jaxdyn.simulation._momentum import MomentumForm as MomentumForm
from jaxdyn.simulation._semi_implicit import SemiImplicitEuler as SemiImplicitEuler
from jaxdyn.simulation._simulate import simulate as simulate
from jaxdyn.simulation._state import State as State
from jaxdyn.simulation._system import System as System
from jaxdyn.simulation._trajectory import EventRecord as EventRecord
from jaxdyn.simulation._trajectory import Interpolant as Interpolant
from jaxdyn.simulation._trajectory import SimulationStatus as SimulationStatus
from jaxdyn.simulation._trajectory import Trajectory as Trajectory
from jaxdyn.simulation._variational import Variational as Variational
