"""States, and what a solver's interpolation gives in place of them."""

from typing import Any

import diffrax
import equinox as eqx
import optimistix as optx

from jaxdyn._types import Array, Float
from jaxdyn.kinematics import integrate
from jaxdyn.model import Model


def not_converged() -> Any:
    """Status of a step whose equations were not solved."""
    return diffrax.RESULTS.promote(optx.RESULTS.nonlinear_max_steps_reached)


class State(eqx.Module):
    """Configuration, velocity and the states of a system's parts, one a part.

    A rate of change has the same shape, with the velocity `(nv,)` in the place of q and the acceleration in that of v.
    """

    q: Float[Array, "*batch coordinates"]
    v: Float[Array, "*batch nv"]
    #: None if the system has no parts: equinox's loops take an empty tuple for a number
    parts: Any = None


class Charted(eqx.Module):
    """A state whose configuration is `base (+) offset`: how solvers on manifolds interpolate."""

    base: Any
    offset: Any
    v: Any
    parts: Any

    def state(self, model: Model) -> State:
        return State(integrate(model, self.base, self.offset), self.v, self.parts)


def to_state(model: Model, y: Any) -> State:
    """The state that a solver's iterate or interpolation stands for."""
    while not isinstance(y, State):
        y = y.state(model)
    return y
