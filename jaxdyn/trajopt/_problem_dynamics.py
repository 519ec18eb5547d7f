"""What moves: a vector field, a robot, and the contracts that a problem knows."""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.dynamics import FreeMotion, rnea
from jaxdyn.joints import has_vector_rate
from jaxdyn.model import Limits, Model
from jaxdyn.simulation import System, coordinate_names, velocity_names
from jaxdyn.simulation._function import as_function
from jaxdyn.simulation._system import as_system


class AbstractDynamics(eqx.Module):
    """A state `(nx,)` that moves under controls `(nu,)`: `xdot = f(t, x, u)`.

    Numbers are leaves, and have derivatives; names are structure and appear in messages.
    """

    #: one a state
    state_names: eqx.AbstractVar[tuple[str, ...]]
    #: one a control
    control_names: eqx.AbstractVar[tuple[str, ...]]

    @abc.abstractmethod
    def rate(self, t, x, u) -> Any:
        """The derivative `(nx,)` of the state at time t (s), under controls u."""

    @property
    def nx(self) -> int:
        """Number of states."""
        return len(self.state_names)

    @property
    def nu(self) -> int:
        """Number of controls."""
        return len(self.control_names)


class AbstractImplicit(eqx.Module):
    """What dynamics have besides their contract if their rate follows from unknowns y that solve equations.

        residual(t, x, u, y) = 0,    rate(t, x, u) = outcome(t, x, u, y),

    y being accelerations, for example. Derivatives are then those of residual and outcome, however the equations are
    solved: `dy = -r_y^-1 r_p dp`, and the second derivatives of a sum `w . outcome` are those of
    `w . outcome - lambda . residual` along `(dp, dy)`, with `lambda = r_y^-T outcome_y^T w`. What is left out
    is of third order.
    """

    @property
    @abc.abstractmethod
    def affine(self) -> bool:
        """Whether both are affine in u and y together, as in mechanics; if not, the rate is differentiated as it is."""

    @abc.abstractmethod
    def unknowns(self, t, x, u) -> Any:
        """The solution y, `(n,)`."""

    @abc.abstractmethod
    def implicit(self, t, x, u, y) -> tuple[Any, Any]:
        """For any y what the dynamics say, a rate or a `Constrained`, and the residual `(n,)`, regular in y."""


class VectorField(AbstractDynamics):
    """Any `xdot = function(t, x, u, parameters)`, `parameters` being a pytree of numbers."""

    function: Callable[..., Any] = eqx.field(converter=as_function)
    state_names: tuple[str, ...] = eqx.field(static=True)
    control_names: tuple[str, ...] = eqx.field(static=True)
    parameters: Any = None

    def rate(self, t, x, u):
        return jnp.asarray(self.function(t, x, u, self.parameters))


class Robot(AbstractDynamics, AbstractImplicit):
    """A tree of links with `x = (q, v)` and the efforts of some joints for controls.

    `M(q) vdot + h(q, v) = inputs u + passive efforts + those of the system's parts`, `qdot = v`: the equations of
    `simulate`, for coordinates that form a vector. Parts with states of their own are refused.
    """

    system: System
    #: how controls act on the velocity coordinates, `(nv, nu)`
    inputs: Float[Array, "*batch nv nu"]
    state_names: tuple[str, ...] = eqx.field(static=True)
    control_names: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, system: Model | System, actuated: tuple[str, ...] | None = None):
        """`actuated` are names of joints; by default those with actuators, or all if the model has none."""
        self.system = as_system(system)
        model = self.system.model
        _check_coordinates(model)
        _check_parts(self.system)
        columns = actuated_columns(model, actuated)
        names = [name for name, _ in velocity_names(model)]
        self.inputs = jnp.asarray(np.eye(model.nv)[:, columns], model.dtype)
        self.state_names = state_names(model)
        self.control_names = tuple(names[k] for k in columns)

    @property
    def model(self) -> Model:
        """The robot."""
        return self.system.model

    def rate(self, t, x, u):
        return jnp.concatenate([x[self.model.nq :], self.unknowns(t, x, u)])

    def unknowns(self, t, x, u):
        q, v, effort, external = self._acting(t, x, u)
        return self.system.motion.acceleration(self.model, t, q, v, effort, external)

    @property
    def affine(self) -> bool:
        motion = self.system.motion
        return isinstance(motion, FreeMotion) and motion.method is None

    def implicit(self, t, x, u, y):
        q, v, effort, external = self._acting(t, x, u)
        motion = self.system.motion
        if isinstance(motion, FreeMotion):
            residual = rnea(self.model, q, v, y, external) - effort
        else:  # forces of constraints are in its accelerations only
            residual = y - motion.acceleration(self.model, t, q, v, effort, external)
        return jnp.concatenate([v, y]), residual

    def _acting(self, t, x, u):
        q, v = x[: self.model.nq], x[self.model.nq :]
        action = self.system.action(t, self.system.initial(q, v, t))
        return q, v, action.effort + self.inputs @ u, action.external


class Constrained(NamedTuple):
    """What constrained dynamics say about one instant."""

    #: xdot, `(nx,)`
    rate: Any
    #: `(num_forces,)`, zero where the last controls are what the constraint makes of state and other controls
    forces: Any
    #: `(num_invariants,)`, zero on the constraint and its velocity level
    invariants: Any
    #: `(nx, num_invariants)`, how corrections move the state
    correction: Any


class AbstractConstrainedDynamics(AbstractDynamics):
    """Dynamics whose last controls are forces that a constraint determines.

    Along a motion `forces(t, x, u) = 0`, regular in the last `num_forces` entries of u, and `invariants(t, x) = 0`,
    which the exact motion keeps and a discrete one would leave. The latter is held by unknown corrections c, as many
    as there are invariants, in `xdot = rate(t, x, u) + correction(t, x) c`, that vanish with the length of the
    intervals (Gear, Gupta and Leimkuhler 1985; Posa, Kuindersma and Tedrake 2016).
    """

    #: number of controls, the last ones, that follow from the others
    num_forces: eqx.AbstractVar[int]
    #: number of invariants
    num_invariants: eqx.AbstractVar[int]

    @abc.abstractmethod
    def constrained(self, t, x, u) -> Constrained:
        """Everything at one instant; its `rate` is that of the method of this name."""


def state_names(model: Model) -> tuple[str, ...]:
    """Names of positions and velocities."""
    return tuple(f"q.{n}" for n, _ in coordinate_names(model)) + tuple(f"v.{n}" for n, _ in velocity_names(model))


def actuated_columns(model: Model, actuated: tuple[str, ...] | None) -> list[int]:
    """Velocity coordinates of the joints given, of those with actuators, or all."""
    if actuated is None:
        actuated = tuple(dict.fromkeys(a.joint for a in model.actuators))
        if not actuated:
            return list(range(model.nv))
    return [k for name in actuated for k in range(*model.joint(name).v.indices(model.nv))]


def limits_of(dynamics: Any) -> Limits | None:
    """The joint limits of a robot's model, or None."""
    model = getattr(dynamics, "model", None)
    return model.limits if isinstance(model, Model) else None


def _check_coordinates(model: Model):
    views = [model.joint(n) for n in model.joint_names]
    names = [v.name for v in views if not has_vector_rate(v.joint)]
    if names:
        raise ModelError(
            f"joints {names} have coordinates that are no vector, which a trajectory is made of; give them angles, "
            "with joints such as SphericalZYX and Prismatic in place of Spherical, Free and Planar"
        )


def _check_parts(system: System):
    zeros = lambda n: jnp.zeros(n, system.model.dtype)
    initial = jax.eval_shape(lambda: system.initial(zeros(system.model.nq), zeros(system.model.nv)).parts)
    names = [type(p).__name__ for p, s in zip(system.parts, initial or (), strict=True) if s is not None]
    if names:
        raise ModelError(
            f"parts {names} have states of their own, which a Robot has no place for; write their equations and the "
            "robot's into a VectorField"
        )
