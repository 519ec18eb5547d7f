"""Motion in configuration and momentum, without Coriolis forces."""

from dataclasses import dataclass
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn.dynamics import kinetic_energy, mass_matrix, rnea
from jaxdyn.simulation._state import State
from jaxdyn.simulation._term import scaled
from jaxdyn.simulation._wrapper import AbstractWrapper


def generalised_force(model, q, effort, external):
    """`effort - g(q) + J^T external`, all forces that do not come from inertia."""
    zero = jnp.zeros_like(effort)
    return effort - rnea(model, q, zero, zero, external)


class MomentumTerm(diffrax.AbstractTerm):
    """`q' = M^-1 p`, `p' = dT/dq + forces`, with the momentum in the place of v."""

    def vf(self, t, y, args):
        v = _velocity(args.model, y.q, y.v)
        action = args.action(t, State(y.q, v, y.parts))
        inertial = jax.grad(lambda q: kinetic_energy(args.model, q, v))(y.q)
        return State(v, inertial + generalised_force(args.model, y.q, action.effort, action.external), action.rate)

    def contr(self, t0, t1, **kwargs):
        return t1 - t0

    def prod(self, vf, control):
        return scaled(vf, control)


class Momenta(eqx.Module):
    """A state that holds `p = M(q) v` in the place of v."""

    inner: State

    def state(self, model) -> State:
        q, p = self.inner.q, self.inner.v
        return State(q, _velocity(model, q, p), self.inner.parts)


class MomentumInterpolation(diffrax.AbstractLocalInterpolation):
    """Interpolation of configuration and momentum over one step."""

    t0: Any
    t1: Any
    inner: diffrax.AbstractLocalInterpolation

    def evaluate(self, t0, t1=None, left=True):
        return Momenta(self.inner.evaluate(t0))


@dataclass(frozen=True)
class _Interpolations:
    inner: Any

    def __call__(self, *, t0, t1, **info):
        return MomentumInterpolation(t0, t1, self.inner(t0=t0, t1=t1, **info))


class MomentumForm(AbstractWrapper):
    """A solver applied to the momenta `p = M v` instead of the velocities.

    Lagrange's equation `d/dt (M v) = dT/dq + forces` needs no Coriolis term: v follows from p by one solve with M(q)
    and `dT/dq` is a gradient at fixed v (Celentano, "An Innovative Method for Robots Modeling and Simulation", theorem
    1). For robots whose coordinates are plain vectors, and the free motion of the tree.
    """

    solver: diffrax.AbstractSolver

    @property
    def interpolation_cls(self):
        return _Interpolations(self.solver.interpolation_cls)

    def init(self, terms, t0, t1, y0, args):
        return self.solver.init(MomentumTerm(), t0, t1, _momenta(args.model, y0), args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        start = _momenta(args.model, y0)
        y, error, dense, state, result = self.solver.step(MomentumTerm(), t0, t1, start, args, solver_state, made_jump)
        factor = cho_factor(mass_matrix(args.model, y.q))
        if error is not None:
            error = State(error.q, cho_solve(factor, error.v), error.parts)
        return State(y.q, cho_solve(factor, y.v), y.parts), error, dense, state, result

    def func(self, terms, t0, y0, args):
        return terms.vf(t0, y0, args)


def _momenta(model, y: State) -> State:
    return State(y.q, mass_matrix(model, y.q) @ y.v, y.parts)


def _velocity(model, q, p):
    return cho_solve(cho_factor(mass_matrix(model, q)), p)
