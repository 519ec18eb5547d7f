"""The dynamics of several phases that run at the same time over the horizon."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag

from jaxdyn.trajopt.phases._stack import Stack
from jaxdyn.trajopt.problem import (
    AbstractConstrainedDynamics,
    AbstractDynamics,
    AbstractImplicit,
    Constrained,
    Problem,
)
from jaxdyn.trajopt.transcription import dynamics_values


class PhasedDynamics(AbstractImplicit, AbstractDynamics):
    """The dynamics of phases without constraint forces: `dx_i/ds = d_i f_i`, or `-d_i f_i` for backward phases."""

    stack: Stack
    phases: tuple[AbstractDynamics, ...]
    state_names: tuple[str, ...] = eqx.field(static=True)
    control_names: tuple[str, ...] = eqx.field(static=True)
    num_unknowns: tuple[int, ...] = eqx.field(static=True)

    def rate(self, t, x, u):
        return _join(self.stack, x, _outcomes(self.stack, self.phases, t, x, u)).rate

    @property
    def has_cheap_residual(self) -> bool:
        return _has_cheap_residual(self.phases)

    @property
    def is_affine(self) -> bool:
        return _is_affine(self.phases)

    def unknowns(self, t, x, u):
        return _unknowns(self.stack, self.phases, t, x, u)

    def implicit(self, t, x, u, y):
        outcome, residual = _implicit(self.stack, self.phases, self.num_unknowns, t, x, u, y)
        return outcome.rate, residual


class ConstrainedPhasedDynamics(AbstractConstrainedDynamics, AbstractImplicit):
    """The dynamics of phases, of which some have constraint forces among their controls."""

    stack: Stack
    phases: tuple[AbstractDynamics, ...]
    state_names: tuple[str, ...] = eqx.field(static=True)
    control_names: tuple[str, ...] = eqx.field(static=True)
    num_unknowns: tuple[int, ...] = eqx.field(static=True)
    num_forces: int = eqx.field(static=True)
    num_invariants: int = eqx.field(static=True)

    def rate(self, t, x, u):
        return self.constrained(t, x, u).rate

    def constrained(self, t, x, u):
        return _join(self.stack, x, _outcomes(self.stack, self.phases, t, x, u))

    @property
    def has_cheap_residual(self) -> bool:
        return _has_cheap_residual(self.phases)

    @property
    def is_affine(self) -> bool:
        return _is_affine(self.phases)

    def unknowns(self, t, x, u):
        return _unknowns(self.stack, self.phases, t, x, u)

    def implicit(self, t, x, u, y):
        return _implicit(self.stack, self.phases, self.num_unknowns, t, x, u, y)


def phased_dynamics(stack: Stack, problems: tuple[Problem, ...]) -> PhasedDynamics | ConstrainedPhasedDynamics:
    """The dynamics of the phases of a multi-phase problem."""
    phases = tuple(p.dynamics for p in problems)
    count = np.array([p.nx for p in problems]), [stack.controls(i) for i in range(stack.count)]
    states = [f"phase {i}: {name}" for i, d in enumerate(phases) for name in d.state_names]
    states += [f"duration of phase {i}" for i in stack.free] + [f"cost of phase {i}" for i in stack.stored_costs]
    controls = [""] * sum(len(own) for own in count[1])
    for i, own in enumerate(count[1]):
        for k, name in zip(own, phases[i].control_names, strict=True):
            controls[k] = f"phase {i}: {name}"
    sizes = tuple(_num_unknowns(p) for p in problems) if _has_cheap_residual(phases) else (0,) * len(phases)
    arguments: Any = stack, phases, tuple(states), tuple(controls), sizes
    constrained = [d for d in phases if isinstance(d, AbstractConstrainedDynamics)]
    if not constrained:
        return PhasedDynamics(*arguments)
    counts = sum(d.num_forces for d in constrained), sum(d.num_invariants for d in constrained)
    constrained_dynamics: Any = ConstrainedPhasedDynamics
    return constrained_dynamics(*arguments, *counts)


def _num_unknowns(problem: Problem) -> int:
    t, x, u = (jax.ShapeDtypeStruct(n, problem.dtype) for n in ((), (problem.nx,), (problem.nu,)))
    dynamics: Any = problem.dynamics
    return jax.eval_shape(dynamics.unknowns, t, x, u).shape[0]


def _has_cheap_residual(phases) -> bool:
    return all(isinstance(d, AbstractImplicit) and d.has_cheap_residual for d in phases)


def _is_affine(phases) -> bool:
    return all(isinstance(d, AbstractImplicit) and d.is_affine for d in phases)


def _outcomes(stack: Stack, phases, s, x, u):
    """The duration, and the rate or `Constrained`, of each phase."""
    out = []
    for d, p in zip(phases, stack.points(s, x, u), strict=True):
        own = (p.t, p.x, p.u)
        out.append((p, d.constrained(*own) if isinstance(d, AbstractConstrainedDynamics) else d.rate(*own)))
    return out


def _unknowns(stack: Stack, phases, s, x, u):
    points = stack.points(s, x, u)
    return jnp.concatenate([d.unknowns(p.t, p.x, p.u) for d, p in zip(phases, points, strict=True)])


def _implicit(stack: Stack, phases, sizes, s, x, u, y):
    parts = jnp.split(y, np.cumsum(sizes)[:-1])
    outcomes, residuals = [], []
    for d, p, own in zip(phases, stack.points(s, x, u), parts, strict=True):
        outcome, residual = d.implicit(p.t, p.x, p.u, own)
        outcomes.append((p, outcome))
        residuals.append(residual)
    return _join(stack, x, outcomes), jnp.concatenate(residuals)


def _join(stack: Stack, x, outcomes) -> Constrained:
    """The values of all phases as those of one; corrections keep their scale."""
    rates, forces, invariants, corrections = [], [], [], []
    for i, (p, outcome) in enumerate(outcomes):
        rate, *rest = dynamics_values(p.x, outcome)
        rates.append((p.duration if stack.is_forward(i) else -p.duration) * rate)
        for group, value in zip((forces, invariants, corrections), rest, strict=True):
            group.append(value)
    correction = block_diag(*corrections)
    correction = jnp.concatenate([correction, jnp.zeros((stack.num_constants, correction.shape[1]), x.dtype)])
    rate = stack.join_states(rates, [0.0] * len(stack.free), 0.0)
    return Constrained(rate, jnp.concatenate(forces), jnp.concatenate(invariants), correction)
