"""The contracts of parts, which exert efforts and wrenches on a robot.

A *part* is a drive, a controller, a contact or an applied wrench: a small pytree whose leaves are its numbers. It may
have a state, such as a current or a filtered signal, which is integrated with the state of the robot.
"""

import abc

import equinox as eqx
from jax.typing import ArrayLike

from jaxdyn._types import Array, Float, PyTree
from jaxdyn.model import Model


class Action(eqx.Module):
    """Efforts and wrenches that a part exerts at one instant, and the rate of its state; None stands for zero."""

    #: efforts on the velocity coordinates, N m or N
    effort: Float[Array, " nv"] | None = None
    #: a wrench on every link, (moment, force) in link axes about the link's origin
    external: Float[Array, "links 6"] | None = None
    #: time derivative of the part's state, a pytree like it
    rate: PyTree = None


class AbstractPart(eqx.Module):
    """Contract of a part that acts on a robot in continuous time, with or without a state x.

    The state is a pytree of floating-point arrays: `initial` returns its initial value and `act` its derivative,
    `tau = act(t, q, v, x).effort`, `xdot = act(t, q, v, x).rate`. Efforts and wrenches of all parts of a `System` are
    added. A part implements both methods; its numbers are leaves.

    ```python
    import jax
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.dynamics import AbstractPart, Action

    class Damper(AbstractPart):
        coefficient: jax.Array

        def initial(self, model, q, v):
            return None

        def act(self, model, t, q, v, state):
            return Action(effort=-self.coefficient * v)

    model = jd.robots.pendulum()
    system = jd.System(model, parts=(Damper(jnp.array(0.1)),))
    run = jd.simulate(system, jnp.array([0.5]), jnp.zeros(1), jnp.linspace(0.0, 0.1, 3))
    ```
    """

    @abc.abstractmethod
    def initial(self, model: Model, q, v) -> PyTree:
        """Initial state of the part at the initial state (q, v) of the robot, or None if the part has no state."""

    @abc.abstractmethod
    def act(self, model: Model, t, q, v, state) -> Action:
        """Efforts, wrenches and the rate of the part's state at time t (s), `(q, v)` and the part's `state`."""


class AbstractSampledPart(eqx.Module):
    """Contract of a part that samples the robot every `period` seconds and keeps its state constant in between.

    `sample` is called at `t_k = t_0 + k period`, where t_0 is the start of the simulation. It returns the next state,
    which `act` receives from `t_k + delay` on, `0 <= delay <= period`. Integration steps end at all these instants.
    """

    #: time between two samples, s
    period: eqx.AbstractVar[ArrayLike]
    #: time from a sample until its state takes effect, s
    delay: eqx.AbstractVar[ArrayLike]

    @abc.abstractmethod
    def initial(self, model: Model, q, v) -> PyTree:
        """State of the part before its first sample, a pytree of floating-point arrays."""

    @abc.abstractmethod
    def sample(self, model: Model, t, q, v, state) -> PyTree:
        """State after a sample at time t (s)."""

    @abc.abstractmethod
    def act(self, model: Model, t, q, v, state) -> Action:
        """Efforts and wrenches at the constant `state`; the `rate` of the result is not used."""
