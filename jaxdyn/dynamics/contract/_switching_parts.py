"""The contract of a part whose action is not smooth at some instants, which simulations locate as events."""

import abc
from collections.abc import Callable

import equinox as eqx

from jaxdyn._numerics import as_function
from jaxdyn._types import PyTree, Scalar
from jaxdyn.dynamics.contract._part import AbstractPart


class PartSwitch(eqx.Module):
    """An instant at which a part changes its law, where `condition(model, t, q, v, state)` passes through zero.

    Arguments:

    * `condition`: a smooth function of the state of the robot and of the part, real.
    * `direction`: 1 if only upward passages through zero count, -1 if only downward ones, 0 for both.
    * `update`: `(model, t, q, v, state) -> state`, the state of the part after the instant; None leaves it unchanged.
    """

    condition: Callable[..., Scalar] = eqx.field(converter=as_function)
    direction: int = eqx.field(static=True, default=0)
    update: Callable[..., PyTree] | None = eqx.field(converter=as_function, default=None)


class AbstractSwitchingPart(AbstractPart):
    """Contract of a part whose efforts or their derivatives jump at some instants.

    `jaxdyn.simulation.switching_events(system)` makes an event of each switch, so that integration steps end at these
    instants and derivatives have the terms of the saltation matrix. A part whose switches have an `update` has a
    discrete state, and `simulate` requires these events.
    """

    @abc.abstractmethod
    def switches(self) -> tuple[PartSwitch, ...]:
        """The instants at which the action is not smooth."""
