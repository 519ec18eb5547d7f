"""Dynamics of optimal control problems: contracts, and vector fields."""

import abc
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._numerics import as_function
from jaxdyn._types import Array, Float, PyTree, Scalar


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
    def has_cheap_residual(self) -> bool:
        """Whether residual and outcome cost less than the solution y; otherwise `rate` is differentiated."""

    @property
    @abc.abstractmethod
    def is_affine(self) -> bool:
        """True if residual and outcome are affine in (u, y), as in mechanics, which saves second derivatives."""

    @abc.abstractmethod
    def unknowns(self, t, x, u) -> Float[Array, " n"]:
        """The solution y `(n,)`."""

    @abc.abstractmethod
    def implicit(self, t, x, u, y) -> "tuple[Array | Constrained, Array]":
        """The outcome, a rate or a `Constrained`, and the residual `(n,)` for any y; `d residual/dy` is regular."""


class DynamicsLimits(NamedTuple):
    """Limits of states `(nx,)` and controls `(nu,)`, infinite where there is none."""

    lower_state: jax.Array
    upper_state: jax.Array
    lower_control: jax.Array
    upper_control: jax.Array


class AbstractLimitedDynamics(AbstractDynamics):
    """Contract of dynamics that know limits of their states and controls, which `Bounds.of` takes."""

    @abc.abstractmethod
    def limits(self) -> DynamicsLimits:
        """Limits of states and controls."""


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
