"""Dynamics of optimal control problems: vector fields, robots, and the contracts of both."""

import abc
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_function
from jaxdyn._types import Array, Float, PyTree, Scalar
from jaxdyn.joints import has_vector_rate
from jaxdyn.model import Limits, Model
from jaxdyn.simulation import System, coordinate_names, velocity_names
from jaxdyn.simulation.system import as_system


class AbstractDynamics(eqx.Module):
    """Dynamics `xdot = f(t, x, u)` of a state `(nx,)` under controls `(nu,)`.

    Numbers are leaves with derivatives; names are static and appear in messages.
    """

    #: one per state
    state_names: eqx.AbstractVar[tuple[str, ...]]
    #: one per control
    control_names: eqx.AbstractVar[tuple[str, ...]]

    @abc.abstractmethod
    def rate(self, t, x, u) -> Float[Array, " nx"]:
        """The time derivative `(nx,)` of the state x at time t (s) under controls u."""

    @property
    def nx(self) -> int:
        """Number of states."""
        return len(self.state_names)

    @property
    def nu(self) -> int:
        """Number of controls."""
        return len(self.control_names)


class AbstractImplicit(eqx.Module):
    """Contract of dynamics whose rate depends on unknowns y, such as accelerations, that solve equations:

        residual(t, x, u, y) = 0,    rate(t, x, u) = outcome(t, x, u, y).

    Solvers differentiate residual and outcome instead of the solution of the equations. With `p = (t, x, u)`,
    `dy = -r_y^-1 r_p dp`, and the second derivatives of `w . outcome` are the second derivatives of
    `w . outcome - lambda . residual` along `(dp, dy)`, with `lambda = r_y^-T outcome_y^T w`.
    """

    @property
    @abc.abstractmethod
    def is_affine(self) -> bool:
        """True if residual and outcome are affine in (u, y), as in mechanics; otherwise the rate is differentiated."""

    @abc.abstractmethod
    def unknowns(self, t, x, u) -> Float[Array, " n"]:
        """The solution y `(n,)`."""

    @abc.abstractmethod
    def implicit(self, t, x, u, y) -> "tuple[Array | Constrained, Array]":
        """The outcome, a rate or a `Constrained`, and the residual `(n,)` for any y; `d residual/dy` is regular."""


class VectorField(AbstractDynamics):
    """Dynamics `xdot = function(t, x, u, parameters)`.

    Arguments:

    * `function`: returns the time derivative `(nx,)` of the state.
    * `state_names`, `control_names`: nx and nu names, for messages.
    * `parameters`: a pytree of numbers, with respect to which an optimum has derivatives.

    ```python
    import jax.numpy as jnp

    from jaxdyn.trajopt import VectorField


    def pendulum(t, x, u, length):
        return jnp.stack([x[1], u[0] - 9.81 / length * jnp.sin(x[0])])


    field = VectorField(pendulum, ("angle", "rate"), ("torque",), jnp.asarray(0.5))
    assert field.rate(0.0, jnp.array([0.0, 2.0]), jnp.ones(1)).shape == (2,)
    ```
    """

    function: Callable[[Scalar, Float[Array, " nx"], Float[Array, " nu"], PyTree], Float[Array, " nx"]] = eqx.field(
        converter=as_function
    )
    state_names: tuple[str, ...] = eqx.field(static=True)
    control_names: tuple[str, ...] = eqx.field(static=True)
    parameters: PyTree = None

    def rate(self, t, x, u):
        return jnp.asarray(self.function(t, x, u, self.parameters))


class Robot(AbstractDynamics, AbstractImplicit):
    """The dynamics of a robot with state `x = (q, v)` and joint efforts as controls.

        M(q) vdot + h(q, v) = inputs u + passive efforts + efforts of the parts of the system,   qdot = v

    These are the equations of `simulate`, for joints whose coordinates form a vector.

    ```python
    import jax.numpy as jnp

    import jaxdyn as jd
    from jaxdyn.trajopt import Robot

    robot = Robot(jd.robots.acrobot(), actuated=("elbow",))
    assert robot.state_names == ("q.shoulder", "q.elbow", "v.shoulder", "v.elbow")
    assert robot.rate(0.0, jnp.zeros(4), jnp.ones(1)).shape == (4,)
    ```
    """

    system: System
    #: map from controls to generalised forces, `(nv, nu)`
    inputs: Float[Array, "*batch nv nu"]
    state_names: tuple[str, ...] = eqx.field(static=True)
    control_names: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, system: Model | System, actuated: tuple[str, ...] | None = None):
        """Arguments:

        * `system`: a model or a `System`; its parts must not have states.
        * `actuated`: names of the actuated joints; by default the joints with actuators, or all joints without any.

        Raises `ModelError` for joints with quaternions and for parts with states.
        """
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
        q, v = x[: self.model.nq], x[self.model.nq :]
        return self.system.accelerate(t, self.system.initial(q, v, t), effort=self.inputs @ u)[1]

    @property
    def is_affine(self) -> bool:
        return self.system.motion.has_affine_residual and not self.system.uses_acceleration

    def implicit(self, t, x, u, y):
        q, v = x[: self.model.nq], x[self.model.nq :]
        state = self.system.initial(q, v, t)
        action = self.system.action(t, state, effort=self.inputs @ u, acceleration=y)
        residual = self.system.motion.residual(self.system.mounted_model, t, q, v, y, action.effort, action.external)
        return jnp.concatenate([v, y]), residual


class Constrained(NamedTuple):
    """Values of constrained dynamics at one evaluation point."""

    #: xdot, `(nx,)`
    rate: jax.Array
    #: residual `(num_forces,)` of the equations that determine the constraint forces
    forces: jax.Array
    #: residual `(num_invariants,)` of the constraints at position and velocity level
    invariants: jax.Array
    #: derivative `(nx, num_invariants)` of the rate with respect to corrections
    correction: jax.Array


class AbstractConstrainedDynamics(AbstractDynamics):
    """Dynamics whose last controls are constraint forces.

    Along a motion `forces(t, x, u) = 0`, regular in the last `num_forces` entries of u, and `invariants(t, x) = 0`. The
    exact motion keeps the invariants; a discrete motion drifts. Corrections c, one per invariant, in
    `xdot = rate(t, x, u) + correction(t, x) c` enforce the invariants at the nodes; they vanish with the interval
    length (Gear, Gupta and Leimkuhler 1985; Posa, Kuindersma and Tedrake 2016).
    """

    #: number of constraint forces, the last controls
    num_forces: eqx.AbstractVar[int]
    #: number of invariants
    num_invariants: eqx.AbstractVar[int]

    @abc.abstractmethod
    def constrained(self, t, x, u) -> Constrained:
        """All values at one evaluation point; the field `rate` equals the method `rate`."""


def state_names(model: Model) -> tuple[str, ...]:
    """Names of positions and velocities."""
    return tuple(f"q.{n}" for n, _ in coordinate_names(model)) + tuple(f"v.{n}" for n, _ in velocity_names(model))


def actuated_columns(model: Model, actuated: tuple[str, ...] | None) -> list[int]:
    """Velocity coordinates of the joints `actuated`; by default of the joints with actuators, or of all joints."""
    if actuated is None:
        actuated = tuple(dict.fromkeys(a.joint for a in model.actuators))
        if not actuated:
            return list(range(model.nv))
    return [k for name in actuated for k in range(*model.joint(name).v.indices(model.nv))]


def limits_of(dynamics: AbstractDynamics) -> Limits | None:
    """The joint limits of a robot's model, or None."""
    model = getattr(dynamics, "model", None)
    return model.limits if isinstance(model, Model) else None


def _check_coordinates(model: Model):
    views = [model.joint(n) for n in model.joint_names]
    names = [v.name for v in views if not has_vector_rate(v.joint)]
    if names:
        raise ModelError(
            f"joints {names} have coordinates that do not form a vector, but a trajectory needs vectors; replace "
            "Spherical, Free and Planar by joints with angles, such as SphericalZYX and Prismatic"
        )


def _check_parts(system: System):
    zeros = lambda n: jnp.zeros(n, system.model.dtype)
    initial = jax.eval_shape(lambda: system.initial(zeros(system.model.nq), zeros(system.model.nv)).parts)
    names = [type(p).__name__ for p, s in zip(system.parts, initial or (), strict=True) if s is not None]
    if names:
        raise ModelError(
            f"parts {names} have states, but the state of a Robot is (q, v) alone; write the equations of the robot "
            "and its parts as a VectorField"
        )
