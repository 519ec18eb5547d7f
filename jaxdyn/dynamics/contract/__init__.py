"""The contracts of parts, actuators, controllers and motions; simulation knows these alone."""

from jaxdyn.dynamics.contract._actuator import AbstractActuator as AbstractActuator
from jaxdyn.dynamics.contract._actuator import AbstractMeasuredActuator as AbstractMeasuredActuator
from jaxdyn.dynamics.contract._actuator import AbstractRatedActuator as AbstractRatedActuator
from jaxdyn.dynamics.contract._controller import AbstractController as AbstractController
from jaxdyn.dynamics.contract._controller import Command as Command
from jaxdyn.dynamics.contract._modal_motion import AbstractModalMotion as AbstractModalMotion
from jaxdyn.dynamics.contract._modal_motion import AbstractModalPart as AbstractModalPart
from jaxdyn.dynamics.contract._modal_motion import Switch as Switch
from jaxdyn.dynamics.contract._modal_motion import SwitchFailure as SwitchFailure
from jaxdyn.dynamics.contract._motion import AbstractMotion as AbstractMotion
from jaxdyn.dynamics.contract._part import AbstractPart as AbstractPart
from jaxdyn.dynamics.contract._part import AbstractSampledPart as AbstractSampledPart
from jaxdyn.dynamics.contract._part import Action as Action
from jaxdyn.dynamics.contract._switching_parts import AbstractSwitchingPart as AbstractSwitchingPart
from jaxdyn.dynamics.contract._switching_parts import PartSwitch as PartSwitch
