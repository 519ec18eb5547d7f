"""Efforts from outside: constants, signals over time, and feedback, continuous or sampled."""

from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import core

from jaxdyn._errors import ModelError, ShapeError, check_shape
from jaxdyn._types import Array, Float
from jaxdyn.dynamics import AbstractPart, AbstractSampledPart, Action
from jaxdyn.model import Model
from jaxdyn.simulation._function import as_function
from jaxdyn.simulation._system import System


def _as_float(x):
    x = jnp.asarray(x)
    return x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(jnp.result_type(float))


class Effort(AbstractPart):
    """Constant efforts `(nv,)`, N m or N."""

    effort: Float[Array, "*batch nv"] = eqx.field(converter=_as_float)

    def initial(self, model, q, v):
        return None

    def act(self, model, t, q, v, state):
        return Action(self.effort)


class Feedback(AbstractPart):
    """Efforts `law(t, q, v)`, `(nv,)`, at every instant.

    The law may be a function, or a module whose leaves are gains. A function made anew for each call is compiled
    anew as well.
    """

    law: Callable[..., Any] = eqx.field(converter=as_function)

    def initial(self, model, q, v):
        return None

    def act(self, model, t, q, v, state):
        return Action(self.law(t, q, v))


class Signal(AbstractPart):
    """Efforts along a path over time: `linear_signal`, `cubic_signal`, or any `diffrax.AbstractPath`."""

    path: diffrax.AbstractPath

    def initial(self, model, q, v):
        return None

    def act(self, model, t, q, v, state):
        return Action(self.path.evaluate(t))


def _as_wrench(x):
    return x if isinstance(x, diffrax.AbstractPath) else as_function(x) if callable(x) else _as_float(x)


class Wrench(AbstractPart):
    """A wrench (moment, force) on one link, in link axes about the link's origin; N m and N.

    Constant `(6,)`, a law `(t, q, v) -> (6,)`, or a `diffrax.AbstractPath` over time, such as the `path` of a
    `linear_signal` of wrenches.
    """

    link: str = eqx.field(static=True)
    wrench: Any = eqx.field(converter=_as_wrench)

    def initial(self, model, q, v):
        return None

    def act(self, model, t, q, v, state):
        wrench = self.wrench
        if isinstance(wrench, diffrax.AbstractPath):
            wrench = wrench.evaluate(t)
        elif callable(wrench):
            wrench = wrench(t, q, v)
        wrench = check_shape(f"wrench on {self.link}", jnp.asarray(wrench, v.dtype), (6,))
        return Action(external=jnp.zeros((model.num_links, 6), v.dtype).at[model.link_index(self.link)].set(wrench))


def linear_signal(times: Float[Array, " n"], efforts: Float[Array, "n nv"]) -> Signal:
    """Efforts interpolated linearly between the values `efforts` at `times` (s), constant before and after."""
    times, efforts = _table(times, efforts)
    return Signal(_Clamped(diffrax.LinearInterpolation(times, efforts)))


def cubic_signal(times: Float[Array, " n"], efforts: Float[Array, "n nv"]) -> Signal:
    """Efforts interpolated by cubic Hermite polynomials with backward differences, constant before and after.

    Once continuously differentiable, and at any time without regard to values still to come (Morrill, Kidger, Yang
    and Lyons 2022, "On the choice of interpolation scheme for neural CDEs").
    """
    times, efforts = _table(times, efforts)
    coefficients = diffrax.backward_hermite_coefficients(times, efforts)
    return Signal(_Clamped(diffrax.CubicInterpolation(times, coefficients)))


class _Clamped(diffrax.AbstractPath):
    """A path that stays at its ends."""

    path: Any

    @property
    def t0(self):
        return self.path.t0

    @property
    def t1(self):
        return self.path.t1

    def evaluate(self, t0, t1=None, left=True):
        return self.path.evaluate(jnp.clip(t0, self.path.t0, self.path.t1))


def _table(times, efforts):
    times, efforts = _as_float(times), _as_float(efforts)
    if times.ndim != 1 or efforts.ndim != 2 or times.shape[0] != efforts.shape[0] or times.shape[0] < 2:
        raise ShapeError(
            f"a signal has times of shape {times.shape} and efforts of shape {efforts.shape}; expected (n,) and "
            "(n, nv) with n of at least 2"
        )
    if not isinstance(times, core.Tracer) and not np.all(np.diff(times) > 0):
        raise ModelError("the times of a signal do not increase; sort the rows and keep one of each time")
    return times, efforts


class HeldSignal(AbstractSampledPart):
    """Efforts that change every `period`: row k of `efforts` `(n, nv)` holds from `ts[0] + k period` on, the last on.

    It counts from the start of the simulation, as all sampled parts do, whereas `linear_signal` and `cubic_signal` read
    the clock. With a `delay` every row holds so much later, and the first one before as well. Steps of the simulation
    end where the efforts change, so the jumps cost no accuracy.
    """

    efforts: Float[Array, "*batch n nv"] = eqx.field(converter=_as_float)
    period: Any = eqx.field(converter=_as_float)
    delay: Any = eqx.field(converter=_as_float, default=0.0)

    def initial(self, model, q, v):
        return jnp.zeros(()), self.efforts[0]

    def sample(self, model, t, q, v, state):
        k, _ = state
        row = jnp.minimum(k, self.efforts.shape[0] - 1).astype(int)
        return k + 1, self.efforts[row]

    def act(self, model, t, q, v, state):
        return Action(state[1])


class SampledFeedback(AbstractSampledPart):
    """Efforts `law(t, q, v)` of a controller that looks every `period` seconds and holds its output in between.

    An output takes effect `wait` periods and `delay` seconds after its sample, `0 <= delay <= period`; before the
    first one the efforts are zero.
    """

    law: Callable[..., Any] = eqx.field(converter=as_function)
    period: Any = eqx.field(converter=_as_float)
    delay: Any = eqx.field(converter=_as_float, default=0.0)
    wait: int = eqx.field(static=True, default=0)

    def initial(self, model: Model, q, v):
        return jnp.zeros((self.wait + 1, model.nv), v.dtype)

    def sample(self, model, t, q, v, state):
        new = jnp.asarray(self.law(t, q, v), state.dtype)
        return jnp.concatenate([state[1:], new[None]])

    def act(self, model, t, q, v, state):
        return Action(state[0])


def as_part(effort: Any) -> AbstractPart | AbstractSampledPart:
    """The part that an argument `effort` stands for: a part, a path over time, a law or a constant."""
    if isinstance(effort, AbstractPart | AbstractSampledPart):
        return effort
    if isinstance(effort, diffrax.AbstractPath):
        return Signal(effort)
    if callable(effort):
        return Feedback(effort)
    return Effort(jax.tree.map(jnp.asarray, effort))


def with_effort(system: System, effort: Any) -> System:
    """The system with one part more, if there is an effort."""
    if effort is None:
        return system
    return System(system.model, (*system.parts, as_part(effort)), system.motion, system.passive)
