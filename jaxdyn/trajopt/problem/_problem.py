"""The description of an optimal control problem, common to all methods."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError, ShapeError
from jaxdyn._numerics import as_function
from jaxdyn._types import Array, Float
from jaxdyn.model import Model
from jaxdyn.simulation import System
from jaxdyn.trajopt.problem._boundary import Boundary, BoundaryLike, as_boundary
from jaxdyn.trajopt.problem._dynamics import AbstractDynamics, AbstractLimitedDynamics
from jaxdyn.trajopt.problem._robot import Robot
from jaxdyn.trajopt.problem._signatures import CouplingFunction, FinalFunction, PointFunction


class Bounds(eqx.Module):
    """Bounds on states, controls and control rates; None or infinite entries mean no bound.

    State and control bounds are enforced at the nodes and, with Hermite-Simpson, at the midpoints of the intervals;
    rate bounds on the derivative of the control polynomial. A number applies to all entries.

    ```python
    import jax.numpy as jnp

    import jaxdyn as jd
    from jaxdyn.trajopt import Bounds, Robot

    box = Bounds(lower_control=-2.0, upper_control=2.0, control_rate=jnp.array([50.0]))
    limits = Bounds.of(Robot(jd.robots.cart_pole(force=7.0)))
    assert limits.upper_control == 7.0
    ```
    """

    #: `(nx,)`
    lower_state: Any = None
    upper_state: Any = None
    #: `(nu,)`
    lower_control: Any = None
    upper_control: Any = None
    #: largest absolute rate of change of the controls, `(nu,)`, per second
    control_rate: Any = None

    @classmethod
    def of(cls, dynamics: AbstractDynamics, control_rate=None) -> "Bounds":
        """The limits of dynamics, and bounds `control_rate` `(nu,)` of the rates of the controls.

        Limits of a `Robot` are those of its joints in position, velocity and effort, and those of its actuators in
        their inputs, such as voltages, and currents. Efforts of joints that are no controls are not bounded: add a
        `PathConstraint`. Raises `ModelError` for dynamics without limits.
        """
        if not isinstance(dynamics, AbstractLimitedDynamics):
            raise ModelError(
                f"{type(dynamics).__name__} has no model with joint limits; pass numbers to Bounds instead"
            )
        return cls(*dynamics.limits(), control_rate)


class PathConstraint(eqx.Module):
    """`lower <= function(t, x, u) <= upper` at all nodes, for example a distance to an obstacle.

    With Hermite-Simpson the constraint is also enforced at the midpoints of the intervals.

    ```python
    import jax.numpy as jnp

    from jaxdyn.trajopt import PathConstraint


    def distance(t, x, u):
        return jnp.linalg.norm(x[:2] - jnp.array([0.5, 0.1]))


    clearance = PathConstraint("clearance", distance, lower=0.3)
    assert clearance.rows(0.0, jnp.array([0.5, 1.1, 0.0, 0.0]), jnp.zeros(2)).shape == (1,)
    ```
    """

    #: appears in messages
    name: str = eqx.field(static=True)
    #: `(t, x, u) -> (rows,)` or a number
    function: PointFunction = eqx.field(converter=as_function)
    lower: ArrayLike = -np.inf
    upper: ArrayLike = np.inf

    def rows(self, t, x, u):
        """The values of the function, `(rows,)`."""
        return jnp.atleast_1d(jnp.asarray(self.function(t, x, u)))


class Guess(eqx.Module):
    """A guess of the trajectory: states and controls at points of the horizon, with linear interpolation.

    ```python
    import jax.numpy as jnp

    from jaxdyn.trajopt import Guess

    guess = Guess(jnp.array([0.0, 1.0]), jnp.array([[0.0, 0.0], [1.0, 2.0]]), jnp.zeros((2, 1)))
    x, u = guess.at(jnp.array([0.5]))
    assert jnp.allclose(x, jnp.array([[0.5, 1.0]]))
    ```
    """

    #: fractions of the horizon from 0 to 1, `(points,)`
    s: Float[Array, "*batch points"]
    #: `(points, nx)`
    x: Float[Array, "*batch points nx"]
    #: `(points, nu)`
    u: Float[Array, "*batch points nu"]
    #: s; None for the duration of the problem
    duration: ArrayLike | None = None

    def at(self, s):
        """States `(n, nx)` and controls `(n, nu)` at fractions s `(n,)` of the horizon."""
        interpolate = lambda y: jax.vmap(lambda c: jnp.interp(s, self.s, c), 1, 1)(y)
        return interpolate(self.x), interpolate(self.u)


class Problem(eqx.Module):
    """An optimal control problem:

        minimise   final(T, x(T)) + integral of running(t, x, u) dt over [0, T]
        subject to xdot = f(t, x, u), boundary conditions, bounds, path constraints

    The same description serves collocation, multiple and single shooting, and differential dynamic programming.
    Functions and names are static; every number is a leaf, with respect to which the optimum has derivatives.
    Functions are compared by identity: define them at module level to avoid recompilation. A function with parameters
    is an `equinox.Module` with `__call__`.

    ```python
    import jax.numpy as jnp

    from jaxdyn.trajopt import Bounds, Problem, VectorField


    def double_integrator(t, x, u, mass):
        return jnp.stack([x[1], u[0] / mass])


    def effort(t, x, u):
        return u @ u


    field = VectorField(double_integrator, ("position", "velocity"), ("force",), jnp.asarray(2.0))
    problem = Problem(
        field, 1.0, start=jnp.zeros(2), end=jnp.array([1.0, 0.0]), running=effort, bounds=Bounds(upper_control=20.0)
    )
    assert problem.nx == 2 and problem.nu == 1  # ready for solve(problem)
    ```
    """

    dynamics: AbstractDynamics
    #: length of the horizon, s; its guess if it is free
    duration: Float[Array, "*batch"]
    start: Boundary
    end: Boundary
    #: boundary conditions of the controls
    start_control: Boundary
    end_control: Boundary
    #: `(t, x, u) -> (rows,)` of state and controls at the ends, zero at a solution; or None
    start_condition: PointFunction | None
    end_condition: PointFunction | None
    #: `(t, x, u) -> number`, or None
    running: PointFunction | None
    #: `(T, x) -> number`, or None
    final: FinalFunction | None
    bounds: Bounds
    path: tuple[PathConstraint, ...]
    #: `(x0, xT) -> (rows,)`, zero at a solution: for periodic motions; or None
    coupling: CouplingFunction | None
    #: bounds of a free horizon, s
    duration_range: Float[Array, "*batch 2"]
    guess: Guess
    free_duration: bool = eqx.field(static=True)

    def __init__(
        self,
        dynamics: AbstractDynamics | Model | System,
        duration: ArrayLike,
        *,
        start: BoundaryLike = None,
        end: BoundaryLike = None,
        start_control: BoundaryLike = None,
        end_control: BoundaryLike = None,
        start_condition: PointFunction | None = None,
        end_condition: PointFunction | None = None,
        running: PointFunction | None = None,
        final: FinalFunction | None = None,
        bounds: Bounds | None = None,
        path: Sequence[PathConstraint] = (),
        coupling: CouplingFunction | None = None,
        free_duration: bool = False,
        duration_range: ArrayLike | None = None,
        guess: Guess | None = None,
    ):
        """Arguments:

        * `dynamics`: `AbstractDynamics` such as `VectorField` and `Robot`; a model or `System` stands for its `Robot`.
        * `duration`: length T of the horizon, s; its guess with `free_duration`.
        * `start`, `end`: a state `(nx,)`, `partial(values, components)`, a function of the state that vanishes, a
          `Boundary`, or None for a free end.
        * `start_control`, `end_control`: the same for the controls `(nu,)`.
        * `start_condition`, `end_condition`: `(t, x, u) -> (rows,)` of state and controls that vanishes at an end.
        * `running`: integrand `(t, x, u) -> number` of the cost.
        * `final`: terminal cost `(T, x) -> number`.
        * `bounds`: `Bounds` of states, controls and control rates.
        * `path`: sequence of `PathConstraint`.
        * `coupling`: `(x0, xT) -> (rows,)` that vanishes, for periodic motions.
        * `free_duration`: whether T is a decision variable, in the range `duration_range` `(2,)`, s.
        * `guess`: a `Guess`; by default the straight line between start and end with zero controls.
        """
        self.dynamics = Robot(dynamics) if isinstance(dynamics, Model | System) else dynamics
        self.duration = jnp.asarray(duration, float) if isinstance(duration, int | float) else jnp.asarray(duration)
        nx, nu, dtype = self.dynamics.nx, self.dynamics.nu, self.duration.dtype
        self.start, self.end = (as_boundary(n, b, nx, dtype) for n, b in (("start", start), ("end", end)))
        self.start_control = as_boundary("start_control", start_control, nu, dtype)
        self.end_control = as_boundary("end_control", end_control, nu, dtype)
        optional = lambda f: None if f is None else as_function(f)
        self.start_condition, self.end_condition = optional(start_condition), optional(end_condition)
        self.running, self.final, self.coupling = optional(running), optional(final), optional(coupling)
        self.bounds = _full_bounds(Bounds() if bounds is None else bounds, nx, nu, dtype)
        self.path = tuple(_with_array_bounds(c, dtype) for c in path)
        self.free_duration = free_duration
        if duration_range is None:
            duration_range = jnp.stack([self.duration / 100, self.duration * 100])
        self.duration_range = jnp.asarray(duration_range, dtype)
        self.guess = _straight_line(self.start, self.end, nu) if guess is None else _check_guess(guess, nx, nu)

    @property
    def nx(self) -> int:
        """Number of states."""
        return self.dynamics.nx

    @property
    def nu(self) -> int:
        """Number of controls."""
        return self.dynamics.nu

    @property
    def dtype(self) -> np.dtype:
        """Floating-point type of the problem."""
        return self.duration.dtype

    def running_cost(self, t, x, u):
        """The integrand of the cost."""
        return jnp.zeros((), x.dtype) if self.running is None else _as_scalar("running", self.running(t, x, u), x.dtype)

    def final_cost(self, t, x):
        """The terminal cost."""
        return jnp.zeros((), x.dtype) if self.final is None else _as_scalar("final", self.final(t, x), x.dtype)

    def with_guess(self, guess: Guess) -> "Problem":
        """The problem with another guess; `solution.guess` of an earlier solution gives a warm start."""
        duration = self.duration if guess.duration is None else jnp.asarray(guess.duration, self.dtype)
        new = self if not self.free_duration else eqx.tree_at(lambda p: p.duration, self, duration)
        return eqx.tree_at(lambda p: p.guess, new, _check_guess(guess, self.nx, self.nu))


def _as_scalar(name, y, dtype):
    y = jnp.asarray(y, dtype)
    if y.shape != ():
        raise ShapeError(f"the {name} cost has shape {y.shape}, expected a number; sum over its entries")
    return y


def _full_bounds(bounds: Bounds, nx, nu, dtype) -> Bounds:
    def row(name, value, n, missing):
        value = jnp.asarray(np.full(n, missing) if value is None else value, dtype)
        if value.shape not in ((), (n,)):
            raise ShapeError(f"bounds: {name} has shape {value.shape}, expected ({n},) or a number")
        return jnp.broadcast_to(value, (n,))

    return Bounds(
        row("lower_state", bounds.lower_state, nx, -np.inf),
        row("upper_state", bounds.upper_state, nx, np.inf),
        row("lower_control", bounds.lower_control, nu, -np.inf),
        row("upper_control", bounds.upper_control, nu, np.inf),
        None if bounds.control_rate is None else row("control_rate", bounds.control_rate, nu, np.inf),
    )


def _with_array_bounds(constraint: PathConstraint, dtype) -> PathConstraint:
    lower, upper = (jnp.asarray(x, dtype) for x in (constraint.lower, constraint.upper))
    return PathConstraint(constraint.name, constraint.function, lower, upper)


def _straight_line(start: Boundary, end: Boundary, nu) -> Guess:
    """The straight line from start to end; a component that is free at one end is constant."""
    is_fixed = lambda b: jnp.asarray(np.array(b.fixed))
    x0 = jnp.where(is_fixed(start), start.value, jnp.where(is_fixed(end), end.value, 0))
    x1 = jnp.where(is_fixed(end), end.value, x0)
    x = jnp.stack([x0, x1])
    return Guess(jnp.asarray([0.0, 1.0], x.dtype), x, jnp.zeros((2, nu), x.dtype))


def _check_guess(guess: Guess, nx, nu) -> Guess:
    n = guess.s.shape[-1]
    for name, value, width in (("x", guess.x, nx), ("u", guess.u, nu)):
        if value.shape[-2:] != (n, width):
            raise ShapeError(f"guess.{name} has shape {value.shape}, expected ({n}, {width}): one row per point")
    return guess
