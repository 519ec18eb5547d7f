"""What an optimisation of a trajectory returns, whatever the method."""

import enum
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ConvergenceError
from jaxdyn._types import Array, Float, Int
from jaxdyn.trajopt._problem import Guess, Problem


class SolveStatus(enum.IntEnum):
    """How an optimisation ended."""

    #: optimal to the tolerances
    SOLVED = 0
    #: the number of iterations reached `max_iterations`
    MAX_ITERATIONS = 1
    #: no step reduces the violation of the constraints any more: probably they cannot be met
    INFEASIBLE = 2
    #: no step improves the iterate, which meets the constraints: to the tolerance, that of `solve` to its square root
    STALLED = 3
    #: the first guess, or a number of the problem, is not finite; the trajectory reported is, the cost may be not
    NOT_FINITE = 4


class Residual(eqx.Module):
    """By how much one group of constraints is violated, at each of its times; zero where it is met."""

    name: str = eqx.field(static=True)
    #: what the columns of `amount` are
    components: tuple[str, ...] = eqx.field(static=True)
    #: s
    times: Float[Array, "*batch times"]
    #: in units of the constraint
    amount: Float[Array, "*batch times components"]


class Violation(eqx.Module):
    """One violated constraint: its name, the component, the time (s) and the amount."""

    name: str = eqx.field(static=True)
    component: str = eqx.field(static=True)
    time: float = eqx.field(static=True)
    amount: float = eqx.field(static=True)

    def __str__(self):
        return f"{self.name}, {self.component}, at t = {self.time:.4g} s by {self.amount:.3g}"


class Solution(eqx.Module):
    """A trajectory with its cost and how it was found.

    Derivatives of all its arrays in all numbers of the problem hold at a converged solution. `status` is a
    `SolveStatus`.
    """

    #: nodes, s
    t: Float[Array, "*batch nodes"]
    #: `(nodes, nx)`
    x: Float[Array, "*batch nodes nx"]
    #: at the same nodes, `(nodes, nu)`; where controls are held over intervals the last row repeats
    u: Float[Array, "*batch nodes nu"]
    #: s
    duration: Float[Array, "*batch"]
    cost: Float[Array, "*batch"]
    #: a `SolveStatus`
    status: Int[Array, "*batch"]
    iterations: Int[Array, "*batch"]
    #: largest violation of a constraint, in its units
    violation: Float[Array, "*batch"]
    #: largest error of the conditions of optimality, scaled as the method's tolerance is
    optimality: Float[Array, "*batch"]
    problem: Problem
    #: violations by kind
    residuals: tuple[Residual, ...] = ()
    #: what belongs to one method: multipliers, feedback gains
    details: Any = None
    #: seconds to compile, 0 if it was compiled before; None inside of transformations
    compile_seconds: float | None = eqx.field(static=True, default=None)
    #: seconds to run; None inside of transformations
    run_seconds: float | None = eqx.field(static=True, default=None)

    @property
    def guess(self) -> Guess:
        """This trajectory as the first guess of another problem: a warm start."""
        span = self.t[..., -1:] - self.t[..., :1]
        return Guess((self.t - self.t[..., :1]) / span, self.x, self.u, self.duration)

    def violations(self, count: int = 5) -> list[Violation]:
        """The worst violation of each constraint, the largest first; for concrete values of one problem."""
        found = []
        for r in self.residuals:
            amount = np.nan_to_num(np.asarray(r.amount), nan=np.inf)
            if amount.size == 0:
                continue
            k, c = np.unravel_index(int(amount.argmax()), amount.shape)
            found.append(Violation(r.name, r.components[c], float(np.asarray(r.times)[k]), float(amount[k, c])))
        return sorted(found, key=lambda v: -v.amount)[:count]

    def report(self) -> str:
        """Status, cost and the worst violations in words; for concrete values of one problem."""
        head = (
            f"{SolveStatus(int(self.status)).name} after {int(self.iterations)} iterations: cost "
            f"{float(self.cost):.8g}, violation {float(self.violation):.2g}, optimality {float(self.optimality):.2g}"
        )
        if self.run_seconds is not None:
            head += f"; compiled in {self.compile_seconds:.2f} s, ran {self.run_seconds:.3g} s"
        worst = [f"  {v}" for v in self.violations()]
        return "\n".join([head, "most violated:", *worst]) if worst else head

    def checked(self) -> "Solution":
        """This solution, or `ConvergenceError` with its report if it is none; for concrete values."""
        status = np.asarray(self.status)
        if (status == SolveStatus.SOLVED).all():
            return self
        if status.ndim == 0:
            raise ConvergenceError(f"the trajectory is not optimal: {self.report()}\n{_REMEDY}")
        kinds = sorted({SolveStatus(int(s)).name for s in status.ravel()})
        raise ConvergenceError(
            f"{(status != SolveStatus.SOLVED).sum()} of {status.size} problems were not solved ({', '.join(kinds)})"
        )


_REMEDY = (
    "INFEASIBLE: relax the constraint named first, or give another first guess; MAX_ITERATIONS: raise "
    "max_iterations; STALLED: scale the problem, or loosen the tolerance; NOT_FINITE: look at the guess and the "
    "functions of the problem there."
)


def largest(residuals) -> Any:
    """The largest amount of all residuals."""
    parts = [jnp.max(r.amount, initial=0) for r in residuals]
    return jnp.max(jnp.stack(parts)) if parts else jnp.zeros(())
