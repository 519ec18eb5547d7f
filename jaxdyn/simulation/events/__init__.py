"""Events: their guards, their times along a motion, their reset maps, and stops of joints."""

from jaxdyn.simulation.events._events import AbstractReset as AbstractReset
from jaxdyn.simulation.events._events import Event as Event
from jaxdyn.simulation.events._log import Log as Log
from jaxdyn.simulation.events._log import append_entry as append_entry
from jaxdyn.simulation.events._log import empty_log as empty_log
from jaxdyn.simulation.events._phases import GuardRoots as GuardRoots
from jaxdyn.simulation.events._phases import Phases as Phases
from jaxdyn.simulation.events._phases import append_switch as append_switch
from jaxdyn.simulation.events._phases import empty_phases as empty_phases
from jaxdyn.simulation.events._phases import find_guard_roots as find_guard_roots
from jaxdyn.simulation.events._phases import no_roots as no_roots
from jaxdyn.simulation.events._roots import first_root as first_root
from jaxdyn.simulation.events._roots import time_tolerance as time_tolerance
from jaxdyn.simulation.events._stops import Coordinate as Coordinate
from jaxdyn.simulation.events._stops import JointLimit as JointLimit
from jaxdyn.simulation.events._stops import Rebound as Rebound
from jaxdyn.simulation.events._stops import joint_stops as joint_stops
from jaxdyn.simulation.events._switches import bind_switches as bind_switches
from jaxdyn.simulation.events._switches import switching_events as switching_events
