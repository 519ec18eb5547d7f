"""Motion in configuration and momentum, without Coriolis forces."""

from dataclasses import dataclass
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn.dynamics import kinetic_energy, mass_matrix, rnea
from jaxdyn.kinematics import difference, integrate
from jaxdyn.simulation._manifold import OnManifold
from jaxdyn.simulation._state import State
from jaxdyn.simulation._system import has_vector_coordinates
from jaxdyn.simulation._term import scaled
from jaxdyn.simulation._wrapper import AbstractWrapper


def generalised_force(model, q, effort, external):
    """`effort - g(q) + J^T external`, all forces that do not come from inertia."""
    zero = jnp.zeros_like(effort)
    return effort - rnea(model, q, zero, zero, external)


class MomentumTerm(diffrax.AbstractTerm):
    """`x' = (A^T M A)^-1 p`, `p' = dT/dx + A^T forces` in the chart `q = base (+) x`, where `v = A(x) x'`.

    Where configurations are vectors the base is None, x is q, and A is the identity.
    """

    base: Any

    def vf(self, t, y, args):
        model, x = args.model, y.q
        q, v, rate, a = _motion(model, self.base, x, y.v)
        action = args.action(t, State(q, v, y.parts))
        slope = jax.grad if self.base is None else jax.jacfwd  # charts compile four times as fast in forward mode
        inertial = slope(lambda x: kinetic_energy(model, *_moving(model, self.base, x, rate)))(x)
        force = generalised_force(model, q, action.effort, action.external)
        return State(rate, inertial + (force if a is None else a.T @ force), action.rate)

    def contr(self, t0, t1, **kwargs):
        return t1 - t0

    def prod(self, vf, control):
        return scaled(vf, control)


class Momenta(eqx.Module):
    """A state that holds x and `p = dT/dx'` in the places of q and v."""

    base: Any
    inner: State

    def state(self, model) -> State:
        q, v, *_ = _motion(model, self.base, self.inner.q, self.inner.v)
        return State(q, v, self.inner.parts)


class MomentumInterpolation(diffrax.AbstractLocalInterpolation):
    """Interpolation of configuration and momentum over one step."""

    t0: Any
    t1: Any
    base: Any
    inner: diffrax.AbstractLocalInterpolation

    def evaluate(self, t0, t1=None, left=True):
        return Momenta(self.base, self.inner.evaluate(t0))


@dataclass(frozen=True)
class _Interpolations:
    inner: Any

    def __call__(self, *, t0, t1, base, inner):
        return MomentumInterpolation(t0, t1, base, self.inner(t0=t0, t1=t1, **inner))


class MomentumForm(AbstractWrapper):
    """A solver applied to the momenta `p = M v` instead of the velocities.

    Lagrange's equation `d/dt (M v) = dT/dq + forces` needs no Coriolis term: v follows from p by one solve with M(q)
    and `dT/dq` is a gradient at fixed v (Celentano, "An Innovative Method for Robots Modeling and Simulation", theorem
    1). Where v is not the rate of q, at quaternions and planar joints, the equation is that of the vector x in the
    chart `q = q_0 (+) x` at the start of each step, with the momentum `dT/dx'`, which is `M v` there; configurations
    so stay on their manifold, as with `OnManifold`. For the free motion of the tree.
    """

    solver: diffrax.AbstractSolver

    @property
    def interpolation_cls(self):
        return _Interpolations(self.solver.interpolation_cls)

    def init(self, terms, t0, t1, y0, args):
        term, start = _start(args.model, y0)
        return self.solver.init(term, t0, t1, start, args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        model = args.model
        term, start = _start(model, y0)
        if term.base is not None:  # a rate kept from the step before belongs to another chart
            made_jump = jnp.asarray(True)
        y, error, dense, state, result = self.solver.step(term, t0, t1, start, args, solver_state, made_jump)
        end = Momenta(term.base, y).state(model)
        if error is not None:
            _, _, slope, _ = _motion(model, term.base, y.q, error.v)
            reach = lambda x: _moving(model, term.base, x, slope)
            (_, v_error), (q_error, _) = jax.jvp(reach, (y.q,), (error.q,))
            error = State(q_error, v_error, error.parts)
        return end, error, {"base": term.base, "inner": dense}, state, result

    def func(self, terms, t0, y0, args):
        return OnManifold(self.solver).func(terms, t0, y0, args)


def _start(model, y: State) -> tuple[MomentumTerm, State]:
    """The equations of a step, and the state at its start in their coordinates."""
    p = mass_matrix(model, y.q) @ y.v
    if has_vector_coordinates(model):
        return MomentumTerm(None), State(y.q, p, y.parts)
    return MomentumTerm(y.q), State(jnp.zeros_like(y.v), p, y.parts)


def _moving(model, base, x, rate):
    """Configuration and velocity at x, of the given rate."""
    if base is None:
        return x, rate
    q = integrate(model, base, x)
    return q, jax.jvp(lambda x: difference(model, q, integrate(model, base, x)), (x,), (rate,))[1]


def _motion(model, base, x, p):
    """Configuration and velocity at x and the rate of x, at the momentum p, and the matrix A of the chart."""
    velocity = lambda rate: _moving(model, base, x, rate)
    q, _ = velocity(p)
    metric, a = mass_matrix(model, q), None
    if base is not None:
        a = jax.vmap(lambda rate: velocity(rate)[1], out_axes=1)(jnp.eye(p.size, dtype=p.dtype))
        metric = a.T @ metric @ a
    rate = cho_solve(cho_factor(metric), p)
    return (*velocity(rate), rate, a)
