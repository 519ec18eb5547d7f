"""Contracts of parts, which exert efforts and wrenches on a robot, and of motions, which yield its accelerations.

A *part* is a drive, a controller, a contact or an applied wrench: a small pytree whose leaves are its numbers. It may
have a state, such as a current or a filtered signal, which is integrated with the state of the robot. A *motion* maps
efforts and wrenches to accelerations. Actuators, constraints and control define parts and motions; a simulation knows
their contracts only.
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve
from jax.typing import ArrayLike
from jaxtyping import Bool

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_function
from jaxdyn._types import Array, Float, PyTree, Velocity
from jaxdyn.dynamics._crba import mass_matrix
from jaxdyn.dynamics._forward_dynamics import forward_dynamics
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


class AbstractMotion(eqx.Module):
    """Contract of the equations of motion: accelerations under given efforts, with or without constraints."""

    #: True if `project` changes the state
    projects: eqx.AbstractVar[bool]
    #: whether the motion obeys constraints that the model does not describe
    adds_constraints: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def check(self, model: Model) -> None:
        """Raises `ModelError` if the motion cannot be computed for this model."""

    @abc.abstractmethod
    def acceleration(self, model: Model, t, q, v, effort, external) -> Float[Array, " nv"]:
        """Accelerations `(nv,)` under efforts `(nv,)` and wrenches `(links, 6)` or None."""

    @abc.abstractmethod
    def velocity(self, model: Model, t, q, v) -> Float[Array, " nv"]:
        """The velocity `(nv,)` with which q is integrated: v, or v with a correction towards the constraints."""

    @abc.abstractmethod
    def project(self, model: Model, t, q, v) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
        """The state `(q, v)` projected onto the constraints; applied after each step."""

    @abc.abstractmethod
    def exerted(self, model: Model, t, q, v, effort, external) -> Action:
        """Efforts and wrenches of the constraints under the given efforts and wrenches."""

    @abc.abstractmethod
    def jump(self, model: Model, t, q, impulse) -> Float[Array, " nv"]:
        """Change of v, `(nv,)`, by an impulse on the velocity coordinates, `(nv,)` in N m s or N s."""

    @abc.abstractmethod
    def violates_constraints(self, model: Model, t, q, v) -> Bool[Array, ""]:
        """Whether a state violates the constraints, as when they contradict each other or the correction failed."""


class FreeMotion(AbstractMotion):
    """Motion of the tree without constraints: `M(q) a + h(q, v) = effort + J^T external`.

    `method` is the algorithm that `forward_dynamics` takes: a function, or a formulation of `jaxdyn.formulations`,
    whose numbers are leaves; None takes the default. Functions are compared by identity: define them at module level
    to avoid recompilation.

    ```python
    import jaxdyn as jd
    from jaxdyn.dynamics import FreeMotion

    model = jd.robots.pendulum()
    system = jd.System(model, motion=FreeMotion(method=jd.crba_solve))
    ```
    """

    method: Callable[..., Velocity] | None = eqx.field(converter=as_function, default=None)
    projects: bool = eqx.field(static=True, default=False, init=False)
    adds_constraints: bool = eqx.field(static=True, default=False, init=False)

    def check(self, model):
        # a formulation states which models it covers, a plain function does not
        covers = getattr(self.method, "covers", None)
        reason = covers(model) if callable(covers) else None
        if reason is not None:
            raise ModelError(
                f"{type(self.method).__name__}, the method of this motion, does not cover this model: {reason}; omit "
                "the method, or choose one that covers the model, such as jaxdyn.formulations.Lagrange()"
            )

    def acceleration(self, model, t, q, v, effort, external):
        return forward_dynamics(model, q, v, effort, external, method=self.method)

    def velocity(self, model, t, q, v):
        return v

    def project(self, model, t, q, v):
        return q, v

    def exerted(self, model, t, q, v, effort, external):
        return Action()

    def violates_constraints(self, model, t, q, v):
        return jnp.zeros((), bool)

    def jump(self, model, t, q, impulse):
        return cho_solve(cho_factor(mass_matrix(model, q)), impulse)
