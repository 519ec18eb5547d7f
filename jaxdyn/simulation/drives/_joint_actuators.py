"""The actuators of a system that drive one joint each, with their places in states and inputs."""

from typing import Any, NamedTuple

from jaxdyn._errors import ModelError
from jaxdyn.actuators import AbstractJointActuator
from jaxdyn.dynamics import AbstractActuator
from jaxdyn.model import Model
from jaxdyn.simulation.system import System


class PlacedActuator(NamedTuple):
    """An actuator and its places in the system."""

    actuator: AbstractJointActuator
    #: index among the parts of the system
    part: int
    #: first entry of the inputs
    start: int
    #: index of the joint coordinate in q, and in v
    q: int
    v: int

    def own_inputs(self, inputs: Any) -> Any:
        """The entries of the inputs that belong to this actuator."""
        return inputs[self.start : self.start + self.actuator.num_inputs]


def joint_actuators(system: System, model: Model) -> list[PlacedActuator]:
    """All actuators of a system; `ModelError` if one of them has not the contract of `AbstractJointActuator`."""
    found, start = [], 0
    for k, part in enumerate(system.parts):
        if not isinstance(part, AbstractActuator):
            continue
        if not isinstance(part, AbstractJointActuator):
            raise ModelError(
                f"the actuator {type(part).__name__} is an AbstractActuator, whose equations can be simulated but not "
                "inverted; derive it from jaxdyn.actuators.AbstractJointActuator"
            )
        view = model.joint(part.joint)
        found.append(PlacedActuator(part, k, start, view.q.start, view.v.start))
        start += part.num_inputs
    return found
