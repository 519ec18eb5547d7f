"""A free horizon, limited control rates, and boundary conditions that couple both ends, for shooting methods.

Shooting methods take a start, of which some states may be free, and controls held over intervals of a known horizon.
With

    y = (x, u, T),   dy/ds = T (f(s T, x, u), w, 0),   s from 0 to 1,

a free horizon T is a constant state, free at the start, and controls with limited rates w are states. A problem without
either is solved as it is.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.trajopt.problem import (
    AbstractConstrainedDynamics,
    AbstractDynamics,
    Boundary,
    Bounds,
    CouplingFunction,
    FinalFunction,
    Guess,
    PathConstraint,
    PointFunction,
    Problem,
    Residual,
    Solution,
    StateFunction,
)


class _AugmentedLayout(eqx.Module):
    """Slices of the augmented state y."""

    nx: int = eqx.field(static=True)
    nu: int = eqx.field(static=True)
    free: bool = eqx.field(static=True)
    rated: bool = eqx.field(static=True)

    def state(self, y):
        return y[..., : self.nx]

    def control(self, y, w) -> Array:
        return y[..., self.nx : self.nx + self.nu] if self.rated else w

    def scale(self, y):
        """Seconds for a unit of s; 1 where the horizon is given and s is time."""
        return y[..., -1] if self.free else jnp.ones(y.shape[:-1], y.dtype)


class _AugmentedDynamics(AbstractDynamics):
    """Dynamics of the augmented state y."""

    state_names: tuple[str, ...] = eqx.field(static=True)
    control_names: tuple[str, ...] = eqx.field(static=True)
    dynamics: AbstractDynamics
    parts: _AugmentedLayout

    def rate(self, t, x, u):
        p, scale = self.parts, self.parts.scale(x)
        rate = self.dynamics.rate(t * scale, p.state(x), p.control(x, u))
        return jnp.concatenate([scale * rate, *([scale * u] if p.rated else []), jnp.zeros(int(p.free), x.dtype)])


class _AugmentedFunction(eqx.Module):
    """A function `(t, x, u)` of the problem as a function of `(s, y, w)`; multiplied by dt/ds if `weighted`."""

    function: PointFunction
    parts: _AugmentedLayout
    weighted: bool = eqx.field(static=True)

    def __call__(self, t, y, w):
        scale = self.parts.scale(y)
        value = self.function(t * scale, self.parts.state(y), self.parts.control(y, w))
        return scale * value if self.weighted else value


class _AugmentedFinal(eqx.Module):
    """A terminal cost `(T, x)` as a function of y."""

    function: FinalFunction
    parts: _AugmentedLayout

    def __call__(self, t, y):
        return self.function(t * self.parts.scale(y), self.parts.state(y))


class _AugmentedEnds(eqx.Module):
    """Terminal conditions: of the state, of controls that are states, and of the coupling with a given start."""

    end: StateFunction | None
    control: StateFunction | None
    coupling: CouplingFunction | None
    start: Float[Array, "*batch nx"]
    parts: _AugmentedLayout

    def __call__(self, y):
        x = self.parts.state(y)
        rows = [] if self.end is None else [self.end(x)]
        rows += [] if self.control is None else [self.control(self.parts.control(y, None))]
        rows += [] if self.coupling is None else [self.coupling(self.start, x)]
        return jnp.concatenate([jnp.atleast_1d(r).astype(y.dtype) for r in rows])


def check_simulated(problem: Problem, method: str):
    """Raises `ModelError` for a problem that a shooting method cannot solve."""
    rated = problem.bounds.control_rate is not None
    why = None
    if problem.start.condition is not None or problem.start_control.condition is not None:
        why = "its initial state is given by a function"
    elif problem.coupling is not None and not all(problem.start.fixed):
        why = "it couples the end with an initial state that is not fixed"
    elif problem.start_condition is not None or problem.end_condition is not None:
        why = "it has a condition of state and controls at an end"
    elif not rated and not (problem.start_control.is_free and problem.end_control.is_free):
        why = "it fixes controls at the ends, and controls held over intervals have no value there"
    elif isinstance(problem.dynamics, AbstractConstrainedDynamics):
        why = f"the constraint forces of {type(problem.dynamics).__name__} are decision variables"
    if why:
        raise ModelError(f"{method} cannot solve this problem: {why}; use jaxdyn.trajopt.solve")


def augment_problem(problem: Problem) -> tuple[Problem, _AugmentedLayout | None]:
    """The problem in y and the layout of y; the problem itself and None if it needs no augmentation."""
    b, d = problem.bounds, problem.dynamics
    p = _AugmentedLayout(problem.nx, problem.nu, problem.free_duration, b.control_rate is not None)
    if not (p.free or p.rated or problem.coupling is not None):
        return problem, None
    names = d.state_names + d.control_names * p.rated + ("duration",) * p.free
    rates = tuple(f"rate of {u}" for u in d.control_names) if p.rated else d.control_names
    low, high = ((r[None],) * p.free for r in problem.duration_range)
    bounds = Bounds(
        _concatenate(p, b.lower_state, b.lower_control, low),
        _concatenate(p, b.upper_state, b.upper_control, high),
        -b.control_rate if p.rated else b.lower_control,
        b.control_rate if p.rated else b.upper_control,
    )
    conditions = (problem.end.condition, problem.end_control.condition, problem.coupling)
    ends = None if all(c is None for c in conditions) else _AugmentedEnds(*conditions, problem.start.value, p)
    carry = lambda f, weighted: None if f is None else _AugmentedFunction(f, p, weighted)
    return Problem(
        _AugmentedDynamics(names, rates, d, p),
        jnp.ones_like(problem.duration) if p.free else problem.duration,
        start=_boundary(p, problem.start, problem.start_control, None),
        end=_boundary(p, problem.end, problem.end_control, ends),
        running=carry(problem.running, True),
        final=None if problem.final is None else _AugmentedFinal(problem.final, p),
        bounds=bounds,
        path=[PathConstraint(c.name, carry(c.function, False), c.lower, c.upper) for c in problem.path],
        guess=_guess(p, problem),
    ), p


def _concatenate(p: _AugmentedLayout, state, control, horizon):
    return jnp.concatenate([state, *([control] if p.rated else []), *horizon])


def _boundary(p: _AugmentedLayout, state: Boundary, control: Boundary, condition) -> Boundary:
    free = (jnp.ones(1, state.value.dtype),) * p.free
    fixed = state.fixed + control.fixed * p.rated + (False,) * p.free
    return Boundary(_concatenate(p, state.value, control.value, free), fixed, condition)


def _guess(p: _AugmentedLayout, problem: Problem) -> Guess:
    g = problem.guess
    horizon = problem.duration if g.duration is None else g.duration
    free = (jnp.broadcast_to(horizon, (g.s.shape[0], 1)),) * p.free
    y = jnp.concatenate([g.x, *([g.u] if p.rated else []), *free], axis=1)
    if not p.rated:
        return Guess(g.s, y, g.u)
    slope = jnp.diff(g.u, axis=0) / (horizon * jnp.diff(g.s))[:, None]
    return Guess(g.s, y, jnp.concatenate([slope, slope[-1:]]))


def restore_solution(problem: Problem, solution: Solution, parts: _AugmentedLayout | None) -> Solution:
    """The solution of the problem from the solution in y."""
    if parts is None:
        return solution
    y = solution.x
    scale = parts.scale(y[-1])
    times = lambda r: Residual(r.name, r.components, r.times * jax.lax.stop_gradient(scale), r.amount)
    return dataclasses.replace(
        solution,
        t=solution.t * scale,
        x=parts.state(y),
        u=parts.control(y, solution.u),
        duration=solution.duration * scale,
        problem=problem,
        residuals=tuple(times(r) for r in solution.residuals),
    )


def free_states(problem: Problem) -> np.ndarray:
    """Indices of the states that are free at the start."""
    return np.array([k for k, fixed in enumerate(problem.start.fixed) if not fixed], int)


def set_start(problem: Problem, x):
    """States `(N + 1, nx)` with the fixed initial states set."""
    return x.at[0].set(jnp.where(np.array(problem.start.fixed), problem.start.value.astype(x.dtype), x[0]))
