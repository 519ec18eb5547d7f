"""The contracts of what acts on a robot, and of how it moves under it.

A *part* is a drive, a controller, a contact, an applied wrench: a small pytree whose leaves are its numbers. It may
have a state of its own, a current or a filtered signal, which is integrated along with the robot's. A *motion* turns
efforts and wrenches into accelerations. The folders above define parts and motions, and a simulation composes them
knowing these contracts alone.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn._types import Array, Float
from jaxdyn.dynamics._forward import forward_dynamics, mass_matrix
from jaxdyn.model import Model


class Action(eqx.Module):
    """What a part does at one instant; None stands for nothing."""

    #: efforts on the velocity coordinates, N m or N
    effort: Float[Array, " nv"] | None = None
    #: a wrench on every link, (moment, force) in link axes about the link's origin
    external: Float[Array, "links 6"] | None = None
    #: time derivative of the part's state, a pytree like it
    rate: Any = None


class AbstractPart(eqx.Module):
    """Something that acts on a robot at every instant, with a state `x` of its own or none.

    The state is a pytree of floating-point arrays that `initial` gives and whose derivative `act` returns, so that
    `tau = act(t, q, v, x).effort`, `xdot = act(t, q, v, x).rate`. Efforts and wrenches of all parts add up.
    """

    @abc.abstractmethod
    def initial(self, model: Model, q, v) -> Any:
        """The part's state at the start, or None if it has none."""

    @abc.abstractmethod
    def act(self, model: Model, t, q, v, state) -> Action:
        """Efforts, wrenches and the rate of the part's state at time t (s)."""


class AbstractSampledPart(eqx.Module):
    """Something that looks at the robot every `period` seconds and holds what it has decided in between.

    `sample` is called at `t_k = t_0 + k period`, t_0 being the start of the simulation, with the part's state and
    returns the next one, which reaches `act` at `t_k + delay`, `0 <= delay <= period`. Steps end at all these instants.
    """

    #: time between two samples, s
    period: eqx.AbstractVar[Any]
    #: time from a sample until it takes effect, s
    delay: eqx.AbstractVar[Any]

    @abc.abstractmethod
    def initial(self, model: Model, q, v) -> Any:
        """The part's state before its first sample, a pytree of floating-point arrays."""

    @abc.abstractmethod
    def sample(self, model: Model, t, q, v, state) -> Any:
        """The state after a sample at time t (s)."""

    @abc.abstractmethod
    def act(self, model: Model, t, q, v, state) -> Action:
        """Efforts and wrenches while `state` is held; its `rate` is not read."""


class AbstractMotion(eqx.Module):
    """How a robot moves under given efforts: freely, or along constraints."""

    #: whether `project` changes anything
    projects: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def acceleration(self, model: Model, t, q, v, effort, external) -> Any:
        """Accelerations `(nv,)` under efforts `(nv,)` and wrenches `(links, 6)` or None."""

    @abc.abstractmethod
    def velocity(self, model: Model, t, q, v) -> Any:
        """The velocity `(nv,)` with which q moves: v, but for motions that steer q back to where it may be."""

    @abc.abstractmethod
    def project(self, model: Model, t, q, v) -> Any:
        """The state `(q, v)` brought back to where it may be; applied after each step."""

    @abc.abstractmethod
    def exerted(self, model: Model, t, q, v, effort, external) -> Action:
        """What makes the robot move so besides the given efforts and wrenches: those of constraints."""

    @abc.abstractmethod
    def jump(self, model: Model, t, q, impulse) -> Any:
        """The change of v by an impulse on the velocity coordinates, `(nv,)` in N m s or N s."""

    @abc.abstractmethod
    def astray(self, model: Model, t, q, v) -> Any:
        """Whether a state is not where it may be, as where constraints contradict each other or have come apart."""


def _pytree(method: Any) -> Any:
    """A plain function as a pytree without leaves, which can be batched and told apart by identity."""
    known = method is None or isinstance(method, eqx.Module | jax.tree_util.Partial)
    return method if known else jax.tree_util.Partial(method)


class FreeMotion(AbstractMotion):
    """The tree by itself: `M(q) a + h(q, v) = effort + J^T external`.

    `method` is that of `forward_dynamics`: a function, or a formulation of `jaxdyn.formulations`, whose numbers are
    leaves. Define a function once, it is told apart by identity.
    """

    method: Any = eqx.field(converter=_pytree, default=None)
    projects: bool = eqx.field(static=True, default=False, init=False)

    def acceleration(self, model, t, q, v, effort, external):
        return forward_dynamics(model, q, v, effort, external, method=self.method)

    def velocity(self, model, t, q, v):
        return v

    def project(self, model, t, q, v):
        return q, v

    def exerted(self, model, t, q, v, effort, external):
        return Action()

    def astray(self, model, t, q, v):
        return jnp.zeros((), bool)

    def jump(self, model, t, q, impulse):
        return cho_solve(cho_factor(mass_matrix(model, q)), impulse)
