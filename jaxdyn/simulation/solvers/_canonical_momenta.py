"""Lagrange's equation in configuration and momentum, without Coriolis forces."""

from collections.abc import Callable
from dataclasses import dataclass

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn._types import Array, Float
from jaxdyn.dynamics import mass_matrix_of_bodies
from jaxdyn.kinematics import difference, integrate
from jaxdyn.model import Model
from jaxdyn.recursion import Bodies, bodies
from jaxdyn.simulation.solvers._contract import AbstractSystemSolver
from jaxdyn.simulation.solvers._free_motion import check_free_motion
from jaxdyn.simulation.solvers._manifold import OnManifold, as_system_solver
from jaxdyn.simulation.solvers._momenta import momentum_and_slope
from jaxdyn.simulation.solvers._term import scale_rate
from jaxdyn.simulation.solvers._wrapper import AbstractWrapper
from jaxdyn.simulation.system import State, has_vector_coordinates


class MomentumTerm(diffrax.AbstractTerm):
    """`x' = (A^T M A)^-1 p`, `p' = dT/dx + A^T forces` in the chart `q = base (+) x`, where `v = A(x) x'`.

    Where configurations are vectors, the base is None, x is q, and A is the identity.
    """

    base: Float[Array, "*batch nq"] | None
    #: bodies of the model, computed once for all stages
    bodies: Bodies

    def vf(self, t, y, args):
        model, x = args.mounted_model, y.q
        rate = _rate_of_momentum(model, self.bodies, self.base, x)(y.v)
        q, v = _state_in_chart(model, self.base, x, rate)
        action = args.action(t, State(q, v, y.parts))
        p, force = momentum_and_slope(model, self.bodies, q, v, action.external)
        force = force + action.effort
        if self.base is None:
            return State(rate, force, action.rate)

        def displacement_and_velocity(x):
            displaced, v = _state_in_chart(model, self.base, x, rate)
            return difference(model, q, displaced), v

        return State(rate, jax.vjp(displacement_and_velocity, x)[1]((force, p))[0], action.rate)

    def contr(self, t0, t1, **kwargs):
        return t1 - t0

    def prod(self, vf, control):
        return scale_rate(vf, control)


class MomentumState(eqx.Module):
    """A state with x and `p = dT/dx'` in the places of q and v."""

    base: Float[Array, "*batch nq"] | None
    inner: State

    def state(self, model: Model) -> State:
        x, p = self.inner.q, self.inner.v
        rate = _rate_of_momentum(model, bodies(model), self.base, x)(p)
        q, v = _state_in_chart(model, self.base, x, rate)
        return State(q, v, self.inner.parts)


class MomentumInterpolation(diffrax.AbstractLocalInterpolation):
    """Interpolation of configuration and momentum over one step."""

    t0: Float[Array, "*batch"]
    t1: Float[Array, "*batch"]
    base: Float[Array, "*batch nq"] | None
    inner: diffrax.AbstractLocalInterpolation

    def evaluate(self, t0, t1=None, left=True):
        return MomentumState(self.base, self.inner.evaluate(t0))


@dataclass(frozen=True)
class _MomentumInterpolations:
    """Creates a `MomentumInterpolation`. Compares equal if the inner class does, as a static field must."""

    inner: Callable[..., diffrax.AbstractLocalInterpolation]

    def __call__(self, *, t0, t1, base, inner):
        return MomentumInterpolation(t0, t1, base, self.inner(t0=t0, t1=t1, **inner))


class CanonicalMomenta(AbstractWrapper, AbstractSystemSolver):
    """A solver applied to the canonical momenta `p = M v` instead of the velocities.

    Lagrange's equation `d/dt (M v) = dT/dq + forces` needs no Coriolis term: v follows from p by one solve with M(q),
    and `dT/dq` is a gradient at fixed v (Celentano, "An Innovative Method for Robots Modeling and Simulation", theorem
    1). Where v is not the rate of q, at quaternions and planar joints, the coordinate is the vector x in the
    chart `q = q_0 (+) x` at the start of each step, with the momentum `dT/dx'`, which equals `M v` at the start.
    Configurations therefore stay on their manifold, as with `OnManifold`. For the free motion of the tree only.

    Arguments:

    * `solver`: a Runge-Kutta method of diffrax.

    ```python
    import diffrax
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.simulation import CanonicalMomenta

    start, ts = jnp.array([1.0]), jnp.array([0.0, 1.0])
    solver = CanonicalMomenta(diffrax.Heun())
    path = jd.simulate(jd.robots.pendulum(), start, jnp.zeros(1), ts, dt=0.01, solver=solver)
    assert abs(path.energy[-1] - path.energy[0]) < 1e-2  # J
    ```
    """

    solver: diffrax.AbstractSolver

    def check_system(self, system):
        if not has_vector_coordinates(system.model):
            OnManifold(self.solver)  # raises for solvers that store past iterates
        check_free_motion(self, system)

    def with_loop_kind(self, kind):
        return CanonicalMomenta(as_system_solver(self.solver).with_loop_kind(kind))

    def on_manifold(self, model):
        return self

    @property
    def interpolation_cls(self):
        return _MomentumInterpolations(self.solver.interpolation_cls)

    def init(self, terms, t0, t1, y0, args):
        term, start = _start_step(args.mounted_model, y0)
        return self.solver.init(term, t0, t1, start, args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        model = args.mounted_model
        term, start = _start_step(model, y0)
        if term.base is not None:  # a rate stored by the previous step belongs to another chart
            made_jump = jnp.asarray(True)
        y, error, dense, state, result = self.solver.step(term, t0, t1, start, args, solver_state, made_jump)
        rate = _rate_of_momentum(model, term.bodies, term.base, y.q)
        q, v = _state_in_chart(model, term.base, y.q, rate(y.v))
        if error is not None:
            rate_error = rate(error.v)
            from_chart = lambda x: _state_in_chart(model, term.base, x, rate_error)
            (_, v_error), (q_error, _) = jax.jvp(from_chart, (y.q,), (error.q,))
            error = State(q_error, v_error, error.parts)
        return State(q, v, y.parts), error, {"base": term.base, "inner": dense}, state, result

    def func(self, terms, t0, y0, args):
        return OnManifold(self.solver).func(terms, t0, y0, args)


def _start_step(model: Model, y: State) -> tuple[MomentumTerm, State]:
    """The equations of a step, and the state at its start in their coordinates."""
    b = bodies(model)
    p, _ = momentum_and_slope(model, b, y.q, y.v)
    if has_vector_coordinates(model):
        return MomentumTerm(None, b), State(y.q, p, y.parts)
    return MomentumTerm(y.q, b), State(jnp.zeros_like(y.v), p, y.parts)


def _state_in_chart(model: Model, base, x, rate):
    """Configuration and velocity at the point x of the chart, where x has the given rate."""
    if base is None:
        return x, rate
    q = integrate(model, base, x)
    return q, jax.jvp(lambda x: difference(model, q, integrate(model, base, x)), (x,), (rate,))[1]


def _rate_of_momentum(model: Model, b: Bodies, base, x) -> Callable[[Array], Array]:
    """The map from momentum to the rate of x, `p -> (A^T M A)^-1 p`."""
    if base is None:
        metric = mass_matrix_of_bodies(model, b, x)
    else:
        velocity = lambda rate: _state_in_chart(model, base, x, rate)[1]
        a = jax.vmap(velocity, out_axes=1)(jnp.eye(x.size, dtype=x.dtype))
        metric = a.T @ mass_matrix_of_bodies(model, b, integrate(model, base, x)) @ a
    factor = cho_factor(metric)
    return lambda p: cho_solve(factor, p)
