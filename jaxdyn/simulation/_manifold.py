"""Solvers of vector spaces, made to work on manifolds."""

from dataclasses import dataclass
from typing import Any

import diffrax
import jax
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn.kinematics import configuration_velocity, integrate
from jaxdyn.simulation._state import Charted, State
from jaxdyn.simulation._term import ChartTerm
from jaxdyn.simulation._wrapper import AbstractWrapper


class ChartInterpolation(diffrax.AbstractLocalInterpolation):
    """Interpolation in the chart of one step."""

    t0: Any
    t1: Any
    base: Any
    inner: diffrax.AbstractLocalInterpolation

    def evaluate(self, t0, t1=None, left=True):
        y = self.inner.evaluate(t0)
        return Charted(self.base, y.q, y.v, y.parts)


class OnManifold(AbstractWrapper):
    """A solver whose configurations stay on their manifold, `simulate` adds it where a robot needs it.

    Each step is made in the chart `q = q_0 (+) x` at its start, where x obeys `xdot = d/ds ((q (+) s v) (-) q_0)` at
    `s = 0`. This is the method of Munthe-Kaas (1999, "High order Runge-Kutta methods on manifolds", Applied Numerical
    Mathematics 29), for any solver that keeps no past iterates: it retains its order, its error estimate and its
    interpolation, and quaternions keep their length without being normalised.
    """

    solver: diffrax.AbstractSolver

    def __check_init__(self):
        if isinstance(self.solver, diffrax.LeapfrogMidpoint | diffrax.ReversibleHeun):
            raise ModelError(
                f"{type(self.solver).__name__} keeps past iterates, which belong to other charts; for robots with "
                "quaternions or planar joints use a Runge-Kutta method such as diffrax.Tsit5"
            )

    @property
    def interpolation_cls(self):
        return _Interpolations(self.solver.interpolation_cls)

    def init(self, terms, t0, t1, y0, args):
        return self.solver.init(ChartTerm(terms, y0.q), t0, t1, _start(y0), args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        solver_state = _moved(solver_state, args.motion.velocity(args.model, t0, y0.q, y0.v))
        chart, start = ChartTerm(terms, y0.q), _start(y0)
        y, error, dense, solver_state, result = self.solver.step(chart, t0, t1, start, args, solver_state, made_jump)
        reach = lambda x: integrate(args.model, y0.q, x)
        if error is None:
            q1 = reach(y.q)
        else:
            q1, q_error = jax.jvp(reach, (y.q,), (error.q,))
            error = State(q_error, error.v, error.parts)
        return State(q1, y.v, y.parts), error, {"base": y0.q, "inner": dense}, solver_state, result

    def func(self, terms, t0, y0, args):
        rate = terms.vf(t0, y0, args)
        return State(configuration_velocity(args.model, y0.q, rate.q), rate.v, rate.parts)


@dataclass(frozen=True)
class _Interpolations:
    """Makes a `ChartInterpolation`; compares equal where its class does, as a static field must."""

    inner: Any

    def __call__(self, *, t0, t1, base, inner):
        return ChartInterpolation(t0, t1, base, self.inner(t0=t0, t1=t1, **inner))


def _start(y: State) -> State:
    return State(jnp.zeros_like(y.v), y.v, y.parts)


def _moved(solver_state, velocity):
    """A derivative kept from the step before, in the chart of this step, where the rate of x is the velocity itself."""
    is_state = lambda x: isinstance(x, State)
    move = lambda s: State(velocity.astype(s.q.dtype), s.v, s.parts) if is_state(s) else s
    return jax.tree.map(move, solver_state, is_leaf=is_state)
