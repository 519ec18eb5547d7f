"""Motion in configuration and momentum, without Coriolis forces."""

from dataclasses import dataclass
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn.dynamics._forward import mass_of_bodies
from jaxdyn.kinematics import difference, integrate
from jaxdyn.model._bodies import Bodies, bodies
from jaxdyn.simulation._canonical import canonical
from jaxdyn.simulation._manifold import OnManifold
from jaxdyn.simulation._state import State
from jaxdyn.simulation._system import has_vector_coordinates
from jaxdyn.simulation._term import scaled
from jaxdyn.simulation._wrapper import AbstractWrapper


class MomentumTerm(diffrax.AbstractTerm):
    """`x' = (A^T M A)^-1 p`, `p' = dT/dx + A^T forces` in the chart `q = base (+) x`, where `v = A(x) x'`.

    Where configurations are vectors the base is None, x is q, and A is the identity.
    """

    base: Any
    #: those of the model, once for all stages
    bodies: Bodies

    def vf(self, t, y, args):
        model, x = args.model, y.q
        rate = _rate(model, self.bodies, self.base, x)(y.v)
        q, v = _moving(model, self.base, x, rate)
        action = args.action(t, State(q, v, y.parts))
        p, force = canonical(model, self.bodies, q, v, action.external)
        force = force + action.effort
        if self.base is None:
            return State(rate, force, action.rate)

        def moving(x):
            there, v = _moving(model, self.base, x, rate)
            return difference(model, q, there), v

        return State(rate, jax.vjp(moving, x)[1]((force, p))[0], action.rate)

    def contr(self, t0, t1, **kwargs):
        return t1 - t0

    def prod(self, vf, control):
        return scaled(vf, control)


class Momenta(eqx.Module):
    """A state that holds x and `p = dT/dx'` in the places of q and v."""

    base: Any
    inner: State

    def state(self, model) -> State:
        x, p = self.inner.q, self.inner.v
        q, v = _moving(model, self.base, x, _rate(model, bodies(model), self.base, x)(p))
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
        rate = _rate(model, term.bodies, term.base, y.q)
        q, v = _moving(model, term.base, y.q, rate(y.v))
        if error is not None:
            slope = rate(error.v)
            reach = lambda x: _moving(model, term.base, x, slope)
            (_, v_error), (q_error, _) = jax.jvp(reach, (y.q,), (error.q,))
            error = State(q_error, v_error, error.parts)
        return State(q, v, y.parts), error, {"base": term.base, "inner": dense}, state, result

    def func(self, terms, t0, y0, args):
        return OnManifold(self.solver).func(terms, t0, y0, args)


def _start(model, y: State) -> tuple[MomentumTerm, State]:
    """The equations of a step, and the state at its start in their coordinates."""
    b = bodies(model)
    p, _ = canonical(model, b, y.q, y.v)
    if has_vector_coordinates(model):
        return MomentumTerm(None, b), State(y.q, p, y.parts)
    return MomentumTerm(y.q, b), State(jnp.zeros_like(y.v), p, y.parts)


def _moving(model, base, x, rate):
    """Configuration and velocity at x, of the given rate."""
    if base is None:
        return x, rate
    q = integrate(model, base, x)
    return q, jax.jvp(lambda x: difference(model, q, integrate(model, base, x)), (x,), (rate,))[1]


def _rate(model, b, base, x):
    """The rate of x that a momentum means, `p -> (A^T M A)^-1 p`."""
    if base is None:
        metric = mass_of_bodies(model, b, x)
    else:
        velocity = lambda rate: _moving(model, base, x, rate)[1]
        a = jax.vmap(velocity, out_axes=1)(jnp.eye(x.size, dtype=x.dtype))
        metric = a.T @ mass_of_bodies(model, b, integrate(model, base, x)) @ a
    factor = cho_factor(metric)
    return lambda p: cho_solve(factor, p)
