"""Solvers of diffrax, which work on vector spaces, made to work on configuration manifolds."""

from collections.abc import Callable
from dataclasses import dataclass

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.kinematics import configuration_velocity, integrate
from jaxdyn.simulation.solvers._contract import AbstractSystemSolver
from jaxdyn.simulation.solvers._term import ChartTerm
from jaxdyn.simulation.solvers._wrapper import AbstractWrapper
from jaxdyn.simulation.system import ChartedState, State, has_vector_coordinates


class ChartInterpolation(diffrax.AbstractLocalInterpolation):
    """Interpolation in the chart of one step."""

    t0: Float[Array, "*batch"]
    t1: Float[Array, "*batch"]
    base: Float[Array, "*batch nq"]
    inner: diffrax.AbstractLocalInterpolation

    def evaluate(self, t0, t1=None, left=True):
        y = self.inner.evaluate(t0)
        return ChartedState(self.base, y.q, y.v, y.parts)


class OnManifold(AbstractWrapper, AbstractSystemSolver):
    """A solver whose configurations stay on their manifold. `simulate` adds it where a robot needs it.

    Each step is made in the chart `q = q_0 (+) x` at its start, where x obeys `xdot = d/ds ((q (+) s v) (-) q_0)` at
    `s = 0`. This is the method of Munthe-Kaas (1999, "High order Runge-Kutta methods on manifolds", Applied Numerical
    Mathematics 29), for any solver that stores no past iterates: the solver retains its order, its error estimate and
    its interpolation, and quaternions keep their length without normalisation.
    """

    solver: diffrax.AbstractSolver

    def __check_init__(self):
        if isinstance(self.solver, diffrax.LeapfrogMidpoint | diffrax.ReversibleHeun):
            raise ModelError(
                f"{type(self.solver).__name__} stores past iterates, which belong to other charts; for robots with "
                "quaternions or planar joints use a Runge-Kutta method such as diffrax.Tsit5"
            )

    def check_system(self, system):
        as_system_solver(self.solver).check_system(system)

    def with_loop_kind(self, kind):
        return OnManifold(as_system_solver(self.solver).with_loop_kind(kind))

    def on_manifold(self, model):
        return self

    @property
    def interpolation_cls(self):
        return _ChartInterpolations(self.solver.interpolation_cls)

    def init(self, terms, t0, t1, y0, args):
        return self.solver.init(ChartTerm(terms, y0.q), t0, t1, _chart_origin(y0), args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        solver_state = _rechart(solver_state, args.motion.velocity(args.mounted_model, t0, y0.q, y0.v))
        chart, start = ChartTerm(terms, y0.q), _chart_origin(y0)
        y, error, dense, solver_state, result = self.solver.step(chart, t0, t1, start, args, solver_state, made_jump)
        from_chart = lambda x: integrate(args.model, y0.q, x)
        if error is None:
            q1 = from_chart(y.q)
        else:
            q1, q_error = jax.jvp(from_chart, (y.q,), (error.q,))
            error = State(q_error, error.v, error.parts)
        return State(q1, y.v, y.parts), error, {"base": y0.q, "inner": dense}, solver_state, result

    def func(self, terms, t0, y0, args):
        rate = terms.vf(t0, y0, args)
        return State(configuration_velocity(args.model, y0.q, rate.q), rate.v, rate.parts)


@dataclass(frozen=True)
class _ChartInterpolations:
    """Creates a `ChartInterpolation`. Compares equal if the inner class does, as a static field must."""

    inner: Callable[..., diffrax.AbstractLocalInterpolation]

    def __call__(self, *, t0, t1, base, inner):
        return ChartInterpolation(t0, t1, base, self.inner(t0=t0, t1=t1, **inner))


def _chart_origin(y: State) -> State:
    return State(jnp.zeros_like(y.v), y.v, y.parts)


def _rechart(solver_state, velocity):
    """A rate from the previous step in the chart of this step, at whose origin the rate of x is the velocity."""
    is_state = lambda x: isinstance(x, State)
    rechart = lambda s: State(velocity.astype(s.q.dtype), s.v, s.parts) if is_state(s) else s
    return jax.tree.map(rechart, solver_state, is_leaf=is_state)


class PlainSolver(AbstractSystemSolver):
    """The adapter of a solver of diffrax, which knows nothing of robots, to the contract."""

    solver: diffrax.AbstractSolver

    @property
    def _wrapped(self) -> diffrax.AbstractSolver | None:
        """The solver inside of one of diffrax's wrappers, such as `HalfSolver`."""
        return self.solver.solver if isinstance(self.solver, diffrax.AbstractWrappedSolver) else None

    def check_system(self, system):
        if self._wrapped is not None:
            as_system_solver(self._wrapped).check_system(system)

    def with_loop_kind(self, kind):
        if self._wrapped is not None:
            return eqx.tree_at(lambda s: s.solver, self.solver, as_system_solver(self._wrapped).with_loop_kind(kind))
        if getattr(self.solver, "scan_kind", kind) is None:
            return eqx.tree_at(lambda s: s.scan_kind, self.solver, kind, is_leaf=lambda x: x is None)
        return self.solver

    def on_manifold(self, model):
        if has_vector_coordinates(model) or isinstance(self._wrapped, AbstractSystemSolver):
            return self.solver
        return OnManifold(self.solver)


def as_system_solver(solver: diffrax.AbstractSolver) -> AbstractSystemSolver:
    """The solver itself if it has the contract, otherwise its adapter."""
    return solver if isinstance(solver, AbstractSystemSolver) else PlainSolver(solver)
