"""The contract of a controller, which computes the inputs of the actuators from the whole state."""

import abc

import equinox as eqx

from jaxdyn._types import Array, Float, PyTree
from jaxdyn.model import Model


class Command(eqx.Module):
    """Inputs of the actuators at one instant, and how the controller's memory goes on."""

    #: voltages, currents, torques or whatever the actuators take, in the order of the parts of the system
    inputs: Float[Array, " inputs"]
    #: time derivative of the memory, a pytree like it
    rate: PyTree = None
    #: memory after a sample, for a controller in discrete time; with a `rate`, `period * rate` is added to it
    memory: PyTree = None


class AbstractController(eqx.Module):
    """Contract of a controller: inputs of the actuators from the state of the whole system and from a memory.

    The memory, for example the integral of an error, obeys `d memory / dt = command(...).rate`. In continuous time the
    solver integrates it with the state; a sampled controller advances it by `period * rate` at each sample. A
    controller in discrete time, such as a digital filter or a counter, returns the new memory, with or without a rate.
    """

    @abc.abstractmethod
    def initial(self, model: Model, q, v) -> PyTree:
        """Initial memory, a pytree of floating-point arrays, or None."""

    @abc.abstractmethod
    def command(self, model: Model, t, state, memory) -> Command:
        """Inputs and rate of the memory at time t (s); `state` has the fields `q`, `v` and `parts`."""
