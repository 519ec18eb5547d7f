"""Actuators with one input, whose state is one vector of measurements."""

import abc
from collections.abc import Mapping, Sequence

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._types import Array, Float
from jaxdyn.actuators.contract import AbstractJointActuator, infinite_limits, symmetric_limits
from jaxdyn.dynamics import AbstractMeasuredActuator, AbstractRatedActuator


def entries_by_name(names: Sequence[str], state: Array | None) -> dict[str, Float[Array, ""]]:
    """The entries of a state by their names."""
    return {} if state is None else {name: state[k] for k, name in enumerate(names)}


def replace_entries(names: Sequence[str], state: Array | None, values: Mapping[str, Array]) -> Array | None:
    """The state with the values of the entries that `values` names."""
    if state is None or not names:
        return state
    return jnp.stack([jnp.asarray(values.get(name, state[k])) for k, name in enumerate(names)])


class _AbstractVectorStateActuator(AbstractJointActuator, AbstractRatedActuator, AbstractMeasuredActuator):
    """An actuator with one input whose measurements, in the order of `measurement_units`, are its state."""

    #: largest magnitude of the input; None for no limit
    input_limit: eqx.AbstractVar[Array | None]

    @property
    @abc.abstractmethod
    def _dtype(self):
        """Type of the limits."""

    def holds(self, v):
        return jnp.zeros((), bool)

    def input_limits(self):
        return symmetric_limits(self.input_limit, self._dtype)

    def state_limits(self, state):
        return infinite_limits(state)

    def measurements(self, model, t, q, v, state, inputs):
        return self.state_measurements(state)

    def state_measurements(self, state):
        return entries_by_name(tuple(self.measurement_units), state)

    def replace_measured(self, state, values):
        return replace_entries(tuple(self.measurement_units), state, values)
