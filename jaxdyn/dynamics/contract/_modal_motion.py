"""The contract of a motion with modes: a discrete state that changes at events of the motion itself."""

import abc
import enum
from collections.abc import Callable
from typing import Any

import equinox as eqx

from jaxdyn._types import Array, Bool, Float, PyTree, Velocity
from jaxdyn.dynamics.contract._motion import AbstractMotion
from jaxdyn.dynamics.contract._part import AbstractPart
from jaxdyn.model import Model


class SwitchFailure(enum.IntEnum):
    """Why a motion with modes cannot continue."""

    #: it continues
    NONE = 0
    #: forces do not exist or are not unique, as in Painleve's paradox
    INDETERMINATE = 1
    #: impacts at one instant did not end
    IMPACT_LIMIT = 2
    #: equations were not solved
    NOT_SOLVED = 3


class Switch(eqx.Module):
    """The change of velocity and modes at an instant at which a guard of the motion becomes zero."""

    #: velocity after the instant
    v: Float[Array, " nv"]
    #: modes after the instant, a pytree of floating-point arrays
    modes: PyTree
    #: impulses, in the order of the rows of the motion
    impulse: Float[Array, " rows"]
    #: a `SwitchFailure`, as a number
    failure: Float[Array, ""]
    #: index of the contact that a failure concerns
    culprit: Float[Array, ""]


#: efforts `(nv,)` and wrenches `(links, 6)` or None, of a motion in certain modes, at a velocity
Forces = Callable[[AbstractMotion, Velocity], tuple[Velocity, Any]]


class AbstractModalMotion(AbstractMotion):
    """Contract of a motion with a discrete state, the modes, which its own events change.

    `simulate` carries the modes from step to step. The motion in certain modes is `in_modes(modes)`, whose
    accelerations are smooth; a motion without modes, as the user makes it, is not simulated itself. A guard is positive
    within its mode. The step in which one becomes zero ends there, and `switch` returns velocity and modes after it, so
    that the motion has the exact derivatives of an event.
    """

    #: a pytree of floating-point arrays; None for the motion as the user makes it
    modes: eqx.AbstractVar[PyTree]

    @abc.abstractmethod
    def in_modes(self, modes: PyTree) -> "AbstractModalMotion":
        """The motion in these modes."""

    @abc.abstractmethod
    def initial_modes(self, model: Model, t, q, v) -> PyTree:
        """Modes before the start, from which `switch` with `fired` zero finds those at the start."""

    @property
    @abc.abstractmethod
    def num_guards(self) -> int:
        """Number of guards."""

    @property
    @abc.abstractmethod
    def num_impulses(self) -> int:
        """Number of impulses of a switch."""

    @abc.abstractmethod
    def may_switch(self, model: Model, ts, qs, vs) -> Bool[Array, ""]:
        """Whether a guard can become zero on a step with these samples, `(3, ...)`; cheap, and True if in doubt."""

    @abc.abstractmethod
    def guards(self, model: Model, t, q, v, forces: Forces) -> Float[Array, " guards"]:
        """The guards of a motion in its modes; a guard without meaning in a mode is 1."""

    @abc.abstractmethod
    def switch(self, model: Model, t, q, v, fired: Float[Array, " guards"], forces: Forces) -> Switch:
        """The change where the guards marked 1 in `fired` become zero."""

    @abc.abstractmethod
    def update_modes(self, model: Model, t, q, v) -> PyTree:
        """The modes after a step without a switch, whose continuous parts follow the motion."""


class AbstractModalPart(AbstractPart):
    """Contract of a part whose action depends on the modes of the motion, such as a controller with contact sensors.

    `simulate` puts the part into the modes of the motion for each step, so that it switches at the exact instants at
    which the motion does. At these instants the modes that begin are found with the action of the part in them.
    """

    @abc.abstractmethod
    def in_modes(self, modes: PyTree) -> "AbstractModalPart":
        """The part in these modes of the motion."""
