"""A free horizon, limited rates of controls and ends that depend on a given start, for methods that simulate.

These methods know a start, of which some states may be free, and controls held over intervals of a known horizon. With

    y = (x, u, T),   dy/ds = T (f(s T, x, u), w, 0),   s from 0 to 1,

a free horizon T is a constant state, free at the start, and controls whose rates w are limited are states; either is
left out where a problem does not ask for it.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.trajopt._problem import Boundary, Bounds, Guess, PathConstraint, Problem
from jaxdyn.trajopt._problem_dynamics import AbstractConstrainedDynamics, AbstractDynamics
from jaxdyn.trajopt._result import Residual, Solution


class _Parts(eqx.Module):
    """Where the parts of y are, and the horizon where it is given."""

    nx: int = eqx.field(static=True)
    nu: int = eqx.field(static=True)
    free: bool = eqx.field(static=True)
    rated: bool = eqx.field(static=True)

    def state(self, y):
        return y[..., : self.nx]

    def control(self, y, w):
        return y[..., self.nx : self.nx + self.nu] if self.rated else w

    def scale(self, y):
        """Seconds for a unit of s; 1 where the horizon is given and s is time."""
        return y[..., -1] if self.free else jnp.ones(y.shape[:-1], y.dtype)


class _Carried(AbstractDynamics):
    """The dynamics of y."""

    state_names: tuple[str, ...] = eqx.field(static=True)
    control_names: tuple[str, ...] = eqx.field(static=True)
    dynamics: AbstractDynamics
    parts: _Parts

    def rate(self, t, x, u):
        p, scale = self.parts, self.parts.scale(x)
        rate = self.dynamics.rate(t * scale, p.state(x), p.control(x, u))
        return jnp.concatenate([scale * rate, *([scale * u] if p.rated else []), jnp.zeros(int(p.free), x.dtype)])


class _Along(eqx.Module):
    """A function `(t, x, u)` of a problem; of a rate where `weighted`."""

    function: Any
    parts: _Parts
    weighted: bool = eqx.field(static=True)

    def __call__(self, t, y, w):
        scale = self.parts.scale(y)
        value = self.function(t * scale, self.parts.state(y), self.parts.control(y, w))
        return scale * value if self.weighted else value


class _Final(eqx.Module):
    """A cost `(T, x)` of the end."""

    function: Any
    parts: _Parts

    def __call__(self, t, y):
        return self.function(t * self.parts.scale(y), self.parts.state(y))


class _Ends(eqx.Module):
    """Conditions at the end: of the state, of controls that are states, and those that couple it with a given start."""

    end: Any
    control: Any
    coupling: Any
    start: Any
    parts: _Parts

    def __call__(self, y):
        x = self.parts.state(y)
        rows = [] if self.end is None else [self.end(x)]
        rows += [] if self.control is None else [self.control(self.parts.control(y, None))]
        rows += [] if self.coupling is None else [self.coupling(self.start, x)]
        return jnp.concatenate([jnp.atleast_1d(r).astype(y.dtype) for r in rows])


def check_simulated(problem: Problem, method: str):
    """Refuses what a method that simulates from a start cannot do."""
    rated = problem.bounds.control_rate is not None
    why = None
    if problem.start.condition is not None or problem.start_control.condition is not None:
        why = "its start is given by a function"
    elif problem.coupling is not None and not all(problem.start.fixed):
        why = "it couples the end with a start that is not given"
    elif not rated and not (problem.start_control.free and problem.end_control.free):
        why = "it gives controls at its ends, where those that are held have no value"
    elif isinstance(problem.dynamics, AbstractConstrainedDynamics):
        why = f"it integrates {type(problem.dynamics).__name__}, whose forces are unknowns"
    if why:
        raise ModelError(f"{method} cannot take this problem: {why}; use jaxdyn.trajopt.solve")


def carried(problem: Problem) -> tuple[Problem, _Parts | None]:
    """The problem in y, and where the parts of y are; the problem itself, and None, if it asks for nothing special."""
    b, d = problem.bounds, problem.dynamics
    p = _Parts(problem.nx, problem.nu, problem.free_duration, b.control_rate is not None)
    if not (p.free or p.rated or problem.coupling is not None):
        return problem, None
    names = d.state_names + d.control_names * p.rated + ("duration",) * p.free
    rates = tuple(f"rate of {u}" for u in d.control_names) if p.rated else d.control_names
    low, high = ((r[None],) * p.free for r in problem.duration_range)
    bounds = Bounds(
        _joined(p, b.lower_state, b.lower_control, low),
        _joined(p, b.upper_state, b.upper_control, high),
        -b.control_rate if p.rated else b.lower_control,
        b.control_rate if p.rated else b.upper_control,
    )
    conditions = (problem.end.condition, problem.end_control.condition, problem.coupling)
    ends = None if all(c is None for c in conditions) else _Ends(*conditions, problem.start.value, p)
    along = lambda f, weighted: None if f is None else _Along(f, p, weighted)
    return Problem(
        _Carried(names, rates, d, p),
        jnp.ones_like(problem.duration) if p.free else problem.duration,
        start=_boundary(p, problem.start, problem.start_control, None),
        end=_boundary(p, problem.end, problem.end_control, ends),
        running=along(problem.running, True),
        final=None if problem.final is None else _Final(problem.final, p),
        bounds=bounds,
        path=[PathConstraint(c.name, along(c.function, False), c.lower, c.upper) for c in problem.path],
        guess=_guess(p, problem),
    ), p


def _joined(p: _Parts, state, control, horizon):
    return jnp.concatenate([state, *([control] if p.rated else []), *horizon])


def _boundary(p: _Parts, state: Boundary, control: Boundary, condition) -> Boundary:
    free = (jnp.ones(1, state.value.dtype),) * p.free
    fixed = state.fixed + control.fixed * p.rated + (False,) * p.free
    return Boundary(_joined(p, state.value, control.value, free), fixed, condition)


def _guess(p: _Parts, problem: Problem) -> Guess:
    g = problem.guess
    horizon = problem.duration if g.duration is None else g.duration
    free = (jnp.broadcast_to(horizon, (g.s.shape[0], 1)),) * p.free
    y = jnp.concatenate([g.x, *([g.u] if p.rated else []), *free], axis=1)
    if not p.rated:
        return Guess(g.s, y, g.u)
    slope = jnp.diff(g.u, axis=0) / (horizon * jnp.diff(g.s))[:, None]
    return Guess(g.s, y, jnp.concatenate([slope, slope[-1:]]))


def restored(problem: Problem, solution: Solution, parts: _Parts | None) -> Solution:
    """A solution in y as one of the problem."""
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
    """Numbers of the states that are free at the start."""
    return np.array([k for k, fixed in enumerate(problem.start.fixed) if not fixed], int)


def with_start(problem: Problem, x):
    """States `(N + 1, nx)` with the given ones at the start."""
    return x.at[0].set(jnp.where(np.array(problem.start.fixed), problem.start.value.astype(x.dtype), x[0]))
