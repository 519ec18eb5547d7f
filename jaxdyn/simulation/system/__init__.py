"""Systems, their states, and the parts that act on a robot from outside: efforts, wrenches, signals, feedback."""

from jaxdyn.simulation.system._controllers import Inputs as Inputs
from jaxdyn.simulation.system._controllers import InputsInput as InputsInput
from jaxdyn.simulation.system._controllers import SampledInputs as SampledInputs
from jaxdyn.simulation.system._controllers import as_inputs as as_inputs
from jaxdyn.simulation.system._inputs import Effort as Effort
from jaxdyn.simulation.system._inputs import EffortInput as EffortInput
from jaxdyn.simulation.system._inputs import Feedback as Feedback
from jaxdyn.simulation.system._inputs import HeldSignal as HeldSignal
from jaxdyn.simulation.system._inputs import SampledFeedback as SampledFeedback
from jaxdyn.simulation.system._inputs import Signal as Signal
from jaxdyn.simulation.system._inputs import Wrench as Wrench
from jaxdyn.simulation.system._inputs import as_part as as_part
from jaxdyn.simulation.system._inputs import cubic_signal as cubic_signal
from jaxdyn.simulation.system._inputs import linear_signal as linear_signal
from jaxdyn.simulation.system._inputs import with_effort as with_effort
from jaxdyn.simulation.system._inputs import with_inputs as with_inputs
from jaxdyn.simulation.system._sampling import SampledState as SampledState
from jaxdyn.simulation.system._sampling import next_instant as next_instant
from jaxdyn.simulation.system._state import ChartedState as ChartedState
from jaxdyn.simulation.system._state import State as State
from jaxdyn.simulation.system._state import to_state as to_state
from jaxdyn.simulation.system._state import unsolved_result as unsolved_result
from jaxdyn.simulation.system._system import System as System
from jaxdyn.simulation.system._system import as_system as as_system
from jaxdyn.simulation.system._system import described_motion as described_motion
from jaxdyn.simulation.system._system import has_vector_coordinates as has_vector_coordinates
