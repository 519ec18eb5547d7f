"""Costs, path constraints and boundary conditions of phases as functions of the whole state and controls."""

import equinox as eqx
import jax.numpy as jnp

from jaxdyn.trajopt.phases._stack import Stack
from jaxdyn.trajopt.phases._transition import Transition
from jaxdyn.trajopt.problem import CouplingFunction, FinalFunction, PointFunction, StateFunction


class RunningCost(eqx.Module):
    """The sum of the running costs of the phases, each over its own time."""

    stack: Stack
    costs: tuple[PointFunction | None, ...]

    def __call__(self, s, x, u):
        total = jnp.zeros((), x.dtype)
        for p, cost in zip(self.stack.points(s, x, u), self.costs, strict=True):
            if cost is not None:
                total = total + p.duration * jnp.asarray(cost(p.t, p.x, p.u), x.dtype)
        return total


class FinalCost(eqx.Module):
    """The sum of the final costs of the phases; those of backward phases are states."""

    stack: Stack
    costs: tuple[FinalFunction | None, ...]

    def __call__(self, _, x):
        total = jnp.zeros((), x.dtype)
        for i, cost in enumerate(self.costs):
            if i in self.stack.stored_costs:
                total = total + x[self.stack.cost_index(i)]
            elif cost is not None:
                total = total + jnp.asarray(final_cost(self.stack, i, cost, x), x.dtype)
        return total


def final_cost(stack: Stack, i: int, cost: FinalFunction, x):
    """The final cost of phase i, at its end."""
    durations = stack.phase_durations(x)
    return cost(sum(durations[1 : i + 1], durations[0]), x[stack.states(i)])


class PhaseFunction(eqx.Module):
    """A function of time, state and controls of one phase."""

    stack: Stack
    function: PointFunction
    index: int = eqx.field(static=True)

    def __call__(self, s, x, u):
        p = self.stack.point(self.index, s, x, u)
        return self.function(p.t, p.x, p.u)


class StateCondition(eqx.Module):
    """A boundary condition of the states of one phase."""

    stack: Stack
    function: StateFunction
    index: int = eqx.field(static=True)

    def __call__(self, s, x, u):
        return self.function(x[self.stack.states(self.index)])


class ControlCondition(eqx.Module):
    """A boundary condition of the controls of one phase."""

    stack: Stack
    function: StateFunction
    index: int = eqx.field(static=True)

    def __call__(self, s, x, u):
        return self.function(u[self.stack.controls(self.index)])


class Jump(eqx.Module):
    """The difference between the start of a phase and the image of the end of the phase before it."""

    stack: Stack
    transition: Transition
    #: the phases before and after
    before: int = eqx.field(static=True)
    after: int = eqx.field(static=True)

    def __call__(self, s, x, u):
        return self.difference(x, x)

    def difference(self, x_before, x_after):
        """The difference, from the whole state at both instants."""
        image = self.transition.apply(x_before[self.stack.states(self.before)])
        return x_after[self.stack.states(self.after)] - image


class StoredCost(eqx.Module):
    """The difference between a state and the final cost that it stores."""

    stack: Stack
    cost: FinalFunction
    index: int = eqx.field(static=True)

    def __call__(self, s, x, u):
        return x[self.stack.cost_index(self.index)] - final_cost(self.stack, self.index, self.cost, x)


class Conditions(eqx.Module):
    """All conditions at one end of the horizon."""

    functions: tuple[PointFunction, ...]

    def __call__(self, s, x, u):
        return jnp.concatenate([jnp.atleast_1d(f(s, x, u)).astype(x.dtype) for f in self.functions])


class Coupling(eqx.Module):
    """Conditions on both ends of the horizon: couplings within phases, and the return of an odd number of phases."""

    stack: Stack
    couplings: tuple[CouplingFunction | None, ...]
    closing: Jump | None

    def __call__(self, x0, x1):
        rows = []
        for i, coupling in enumerate(self.couplings):
            if coupling is not None:
                first, last = (x0, x1) if self.stack.is_forward(i) else (x1, x0)
                at = self.stack.states(i)
                rows.append(coupling(first[at], last[at]))
        if self.closing is not None:
            rows.append(self.closing.difference(x1, x0))
        return jnp.concatenate([jnp.atleast_1d(r).astype(x1.dtype) for r in rows])
