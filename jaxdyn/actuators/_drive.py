"""Drives: from a command, or a measured current, to the effort at the joint."""

from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import core

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.actuators._friction import per_coordinate
from jaxdyn.dynamics import AbstractPart, Action
from jaxdyn.model import Model


class Law(eqx.Module):
    """A plain function as structure, so that the part that holds it has numbers alone for leaves."""

    function: Callable[..., Any] = eqx.field(static=True)

    def __call__(self, *args):
        return self.function(*args)


def as_law(f: Any) -> Any:
    """f itself if it is a pytree whose leaves may be parameters; otherwise f as a `Law`."""
    return Law(f) if callable(f) and jax.tree.leaves(f) == [f] else f


class Drive(AbstractPart):
    """A drive on every velocity coordinate: `effort(t) = gain * command(t - delay) + offset`.

    `command` is a path over time, a law `(t, q, v)` or None, where a log stands in its place: identification takes the
    measured efforts of a log for commands, so a gain may be gear ratio times motor constant and a log may hold
    currents. A law sees the present state alone and cannot be delayed: with a delay it is a `ModelError`, or effort
    NaN where the delay is known only when the program runs. A sampled part can hold back a law.
    """

    #: effort per unit of command
    gain: Float[Array, "*batch nv"]
    #: N m or N
    offset: Float[Array, "*batch nv"]
    #: dead time, s
    delay: Float[Array, "*batch nv"]
    command: Any = eqx.field(converter=as_law, default=None)

    def __check_init__(self):
        if self._law and not isinstance(self.delay, core.Tracer) and np.any(np.asarray(self.delay) != 0):
            raise ModelError(
                f"a Drive delays a path over time, but this command is a law (t, q, v) and the delay {self.delay} s; "
                "give a path, leave the delay out, or use a jaxdyn.simulation.SampledFeedback, which holds a law back"
            )

    @property
    def _law(self) -> bool:
        return self.command is not None and not isinstance(self.command, diffrax.AbstractPath)

    def effort(self, command: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """The effort of a command that has arrived, N m or N."""
        return self.gain * command + self.offset

    def inverse(self, effort: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """The command that makes this effort: `(effort - offset) / gain`."""
        return (effort - self.offset) / self.gain

    def initial(self, model, q, v):
        return None

    def act(self, model, t, q, v, state):
        return Action(self.effort(self._arrived(t, q, v)))

    def _arrived(self, t, q, v):
        if self.command is None:
            raise ModelError("a Drive without a command cannot act; give it a path over time or a law (t, q, v)")
        if self._law:
            return jnp.where(self.delay == 0, self.command(t, q, v), jnp.nan)
        path = self.command
        evaluate = lambda s: path.evaluate(jnp.clip(s, path.t0, path.t1))
        return jnp.diagonal(jax.vmap(evaluate)(t - self.delay))


def drive(model: Model, *, gain: Any = 1.0, offset: Any = 0.0, delay: Any = 0.0, command: Any = None) -> Drive:
    """A `Drive` of this model's size; gain, offset and delay are numbers or `(nv,)`."""
    each = lambda name, x: per_coordinate(model, name, x)
    return Drive(each("gain", gain), each("offset", offset), each("delay", delay), command)
