"""The description of an optimal control problem, for all methods alike."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError, ShapeError
from jaxdyn._types import Array, Float
from jaxdyn.model import Model
from jaxdyn.simulation import System
from jaxdyn.simulation._function import as_function
from jaxdyn.trajopt._problem_dynamics import AbstractDynamics, Robot, limits_of


class Boundary(eqx.Module):
    """What holds at one end: some states, or controls, are given, and functions of them vanish."""

    #: `(n,)`, arbitrary where free
    value: Float[Array, "*batch n"]
    #: which are given
    fixed: tuple[bool, ...] = eqx.field(static=True)
    #: `condition(x) -> (rows,)`, to vanish; or None
    condition: Any = None

    @property
    def free(self) -> bool:
        """Whether nothing is asked."""
        return not any(self.fixed) and self.condition is None

    @property
    def rows(self) -> list[int]:
        """Numbers of those that are given."""
        return [k for k, f in enumerate(self.fixed) if f]

    def residual(self, x) -> Float[Array, " rows"]:
        """What is to vanish at the states, or controls, x: given ones first, then the condition."""
        rows = np.array(self.rows, int)
        given = x[rows] - self.value[rows].astype(x.dtype)
        if self.condition is None:
            return given
        return jnp.concatenate([given, jnp.atleast_1d(self.condition(x)).astype(x.dtype)])


def partial(value, components: Sequence[int]):
    """A boundary with given values of only some `components` of the state, or of the controls."""
    return _Partial(jnp.asarray(value, float), tuple(int(k) for k in components))


class _Partial(eqx.Module):
    value: Any
    components: tuple[int, ...] = eqx.field(static=True)


class Bounds(eqx.Module):
    """Ranges of states, controls and rates of controls; infinite, or None, where there is none.

    They hold at all nodes (the ends of the intervals and, with Hermite-Simpson, their middles), those of the rate
    on the polynomial that the controls follow.
    """

    #: `(nx,)`
    lower_state: Any = None
    upper_state: Any = None
    #: `(nu,)`
    lower_control: Any = None
    upper_control: Any = None
    #: largest absolute rate of change of a control, `(nu,)`, a second
    control_rate: Any = None

    @classmethod
    def of(cls, dynamics: AbstractDynamics, control_rate=None) -> "Bounds":
        """The limits of a robot's joints in position, velocity and effort."""
        limits = limits_of(dynamics)
        if limits is None:
            raise ModelError(f"{type(dynamics).__name__} has no model with limits; give Bounds their numbers")
        inputs = getattr(dynamics, "inputs")  # noqa: B009
        effort = jnp.where(inputs != 0, limits.effort[:, None], jnp.inf).min(0)
        forces = jnp.full(dynamics.nu - inputs.shape[1], jnp.inf, effort.dtype)
        effort = jnp.concatenate([effort, forces])
        lower, upper = (jnp.concatenate(p) for p in ((limits.lower, -limits.velocity), (limits.upper, limits.velocity)))
        return cls(lower, upper, -effort, effort, control_rate)


class PathConstraint(eqx.Module):
    """`lower <= function(t, x, u) <= upper` along the whole trajectory, for example a distance to an obstacle."""

    name: str = eqx.field(static=True)
    #: `(t, x, u) -> (rows,)` or a number
    function: Callable[..., Any] = eqx.field(converter=as_function)
    lower: Any = -np.inf
    upper: Any = np.inf

    def rows(self, t, x, u):
        """The function's values, `(rows,)`."""
        return jnp.atleast_1d(jnp.asarray(self.function(t, x, u)))


class Guess(eqx.Module):
    """A first guess: states and controls at points of the horizon, linear in between."""

    #: from 0 to 1, `(points,)`
    s: Float[Array, "*batch points"]
    #: `(points, nx)`
    x: Float[Array, "*batch points nx"]
    #: `(points, nu)`
    u: Float[Array, "*batch points nu"]
    #: s; None for the problem's
    duration: Any = None

    def at(self, s):
        """States and controls at the points s `(n,)`."""
        columns = lambda y: jax.vmap(lambda c: jnp.interp(s, self.s, c), 1, 1)(y)
        return columns(self.x), columns(self.u)


class Problem(eqx.Module):
    """Find the motion and the controls that bring a system from its start to its end at the least cost.

        minimise   final(T, x(T)) + integral of running(t, x, u) dt over [0, T]
        subject to xdot = f(t, x, u), boundary conditions, bounds, path constraints

    One description for collocation, multiple and single shooting, and differential dynamic programming. Structure,
    that is functions and names, is static; every number is a leaf, and `solve(problem).cost`, for example, has
    derivatives in all of them. Functions given are told apart by identity; those with numbers of their own are
    `equinox.Module`s with `__call__`.
    """

    dynamics: AbstractDynamics
    #: length of the horizon, s; its first guess if it is free
    duration: Float[Array, "*batch"]
    start: Boundary
    end: Boundary
    #: of the controls
    start_control: Boundary
    end_control: Boundary
    #: `(t, x, u) -> number`, or None
    running: Any
    #: `(T, x) -> number`, or None
    final: Any
    bounds: Bounds
    path: tuple[PathConstraint, ...]
    #: `(x0, xT) -> (rows,)`, to vanish: for motions that repeat; or None
    coupling: Any
    #: least and greatest length of a free horizon, s
    duration_range: Float[Array, "*batch 2"]
    guess: Guess
    free_duration: bool = eqx.field(static=True)

    def __init__(
        self,
        dynamics: AbstractDynamics | Model | System,
        duration: Any,
        *,
        start: Any = None,
        end: Any = None,
        start_control: Any = None,
        end_control: Any = None,
        running: Callable[..., Any] | None = None,
        final: Callable[..., Any] | None = None,
        bounds: Bounds | None = None,
        path: Sequence[PathConstraint] = (),
        coupling: Callable[..., Any] | None = None,
        free_duration: bool = False,
        duration_range: Any = None,
        guess: Guess | None = None,
    ):
        """`start` and `end`: a state `(nx,)`, `partial(values, components)`, a function that is to vanish, a
        `Boundary`, or None for a free end; `start_control`, `end_control` the same for the controls. A model or
        `System` stands for its `Robot`."""
        self.dynamics = Robot(dynamics) if isinstance(dynamics, Model | System) else dynamics
        self.duration = jnp.asarray(duration, float) if isinstance(duration, int | float) else jnp.asarray(duration)
        nx, nu, dtype = self.dynamics.nx, self.dynamics.nu, self.duration.dtype
        self.start, self.end = (_boundary(n, b, nx, dtype) for n, b in (("start", start), ("end", end)))
        self.start_control = _boundary("start_control", start_control, nu, dtype)
        self.end_control = _boundary("end_control", end_control, nu, dtype)
        self.running, self.final, self.coupling = (
            f if f is None else as_function(f) for f in (running, final, coupling)
        )
        self.bounds = _full_bounds(Bounds() if bounds is None else bounds, nx, nu, dtype)
        self.path = tuple(_finite_rows(c, dtype) for c in path)
        self.free_duration = free_duration
        if duration_range is None:
            duration_range = jnp.stack([self.duration / 100, self.duration * 100])
        self.duration_range = jnp.asarray(duration_range, dtype)
        self.guess = _straight(self.start, self.end, nu) if guess is None else _checked(guess, nx, nu)

    @property
    def nx(self) -> int:
        """Number of states."""
        return self.dynamics.nx

    @property
    def nu(self) -> int:
        """Number of controls."""
        return self.dynamics.nu

    @property
    def dtype(self) -> Any:
        """Precision of the problem."""
        return self.duration.dtype

    def running_cost(self, t, x, u):
        """The integrand of the cost."""
        return jnp.zeros((), x.dtype) if self.running is None else _number("running", self.running(t, x, u), x.dtype)

    def final_cost(self, t, x):
        """The cost of the end."""
        return jnp.zeros((), x.dtype) if self.final is None else _number("final", self.final(t, x), x.dtype)

    def with_guess(self, guess: Guess) -> "Problem":
        """The problem with another first guess; that of an earlier `Solution` makes a warm start."""
        duration = self.duration if guess.duration is None else jnp.asarray(guess.duration, self.dtype)
        new = self if not self.free_duration else eqx.tree_at(lambda p: p.duration, self, duration)
        return eqx.tree_at(lambda p: p.guess, new, _checked(guess, self.nx, self.nu))


def _number(name, y, dtype):
    y = jnp.asarray(y, dtype)
    if y.shape != ():
        raise ShapeError(f"the {name} cost has shape {y.shape}, expected a number; sum over its entries")
    return y


def _boundary(name, given, n, dtype) -> Boundary:
    if isinstance(given, Boundary):
        return given
    free = jnp.zeros(n, dtype)
    if given is None:
        return Boundary(free, (False,) * n)
    if isinstance(given, _Partial):
        if given.value.shape != (len(given.components),):
            raise ShapeError(
                f"{name}: {len(given.components)} components are given values of shape {given.value.shape}; "
                "expected as many values as components"
            )
        at = np.array(given.components, int)
        return Boundary(free.at[at].set(given.value.astype(dtype)), tuple(k in given.components for k in range(n)))
    if callable(given) and not hasattr(given, "shape"):
        return Boundary(free, (False,) * n, as_function(given))
    value = jnp.asarray(given, dtype)
    if value.shape != (n,):
        raise ShapeError(
            f"{name} has shape {value.shape}, expected ({n},), one number for each; for some of them alone use "
            "jaxdyn.trajopt.partial(values, components)"
        )
    return Boundary(value, (True,) * n)


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


def _finite_rows(constraint: PathConstraint, dtype) -> PathConstraint:
    lower, upper = (jnp.asarray(x, dtype) for x in (constraint.lower, constraint.upper))
    return PathConstraint(constraint.name, constraint.function, lower, upper)


def _straight(start: Boundary, end: Boundary, nu) -> Guess:
    """The line from start to end; where one of them is free, the value of the other."""
    known = lambda b: jnp.asarray(np.array(b.fixed))
    x0 = jnp.where(known(start), start.value, jnp.where(known(end), end.value, 0))
    x1 = jnp.where(known(end), end.value, x0)
    x = jnp.stack([x0, x1])
    return Guess(jnp.asarray([0.0, 1.0], x.dtype), x, jnp.zeros((2, nu), x.dtype))


def _checked(guess: Guess, nx, nu) -> Guess:
    n = guess.s.shape[-1]
    for name, value, wide in (("x", guess.x, nx), ("u", guess.u, nu)):
        if value.shape[-2:] != (n, wide):
            raise ShapeError(f"guess.{name} has shape {value.shape}, expected ({n}, {wide}): a row for each point")
    return guess
