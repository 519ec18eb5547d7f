"""The result of a trajectory optimisation, common to all methods."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ConvergenceError
from jaxdyn._status import Status
from jaxdyn._types import Array, Float, Int, PyTree, Scalar
from jaxdyn.trajopt.problem._problem import Guess, Problem


class SolveStatus(Status):
    """Outcome of a trajectory optimisation."""

    SOLVED = 0, "the optimality conditions hold to the tolerance"
    MAX_ITERATIONS = 1, "`max_iterations` iterations were done without convergence"
    INFEASIBLE = 2, "no step reduces the constraint violation: the problem is probably infeasible"
    STALLED = (
        3,
        "no step improves a feasible iterate (`solve` accepts violations up to the square root of its tolerance)",
    )
    NOT_FINITE = 4, "the guess or a number of the problem is not finite; the trajectory is finite, the cost need not be"


class Residual(eqx.Module):
    """Violation of one group of constraints at each of its times; zero where the constraints are satisfied."""

    name: str = eqx.field(static=True)
    #: names of the columns of `amount`
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
    """A trajectory, its cost, and the convergence of the method.

    At a converged solution cost and trajectory have derivatives with respect to every number of the problem.

    ```python
    import jax.numpy as jnp

    from jaxdyn.trajopt import Problem, SolveStatus, Trapezoidal, VectorField, solve

    field = VectorField(lambda t, x, u, p: jnp.stack([x[1], u[0]]), ("position", "velocity"), ("force",))
    problem = Problem(field, 1.0, start=jnp.zeros(2), end=jnp.array([1.0, 0.0]), running=lambda t, x, u: u @ u)
    solution = solve(problem, transcription=Trapezoidal(), intervals=4)
    assert solution.status == SolveStatus.SOLVED
    assert solution.t.shape == (5,) and solution.x.shape == (5, 2) and solution.u.shape == (5, 1)
    print(solution.report())
    ```
    """

    #: nodes, s
    t: Float[Array, "*batch nodes"]
    #: `(nodes, nx)`
    x: Float[Array, "*batch nodes nx"]
    #: at the same nodes, `(nodes, nu)`; for piecewise constant controls the last row is repeated
    u: Float[Array, "*batch nodes nu"]
    #: s
    duration: Float[Array, "*batch"]
    cost: Float[Array, "*batch"]
    #: a `SolveStatus`
    status: Int[Array, "*batch"]
    iterations: Int[Array, "*batch"]
    #: largest violation of a constraint, in units of the constraint
    violation: Float[Array, "*batch"]
    #: largest error of the optimality conditions, in the scale of the tolerance of the method
    optimality: Float[Array, "*batch"]
    problem: Problem
    #: violations, grouped by kind of constraint
    residuals: tuple[Residual, ...] = ()
    #: results of one method: multipliers, feedback gains
    details: PyTree = None
    #: seconds of compilation, 0 if a compiled program was reused; None inside of transformations
    compile_seconds: float | None = eqx.field(static=True, default=None)
    #: seconds of execution; None inside of transformations
    run_seconds: float | None = eqx.field(static=True, default=None)

    @property
    def guess(self) -> Guess:
        """This trajectory as the guess of another problem, for a warm start."""
        span = self.t[..., -1:] - self.t[..., :1]
        return Guess((self.t - self.t[..., :1]) / span, self.x, self.u, self.duration)

    def violations(self, count: int = 5) -> list[Violation]:
        """The largest violation of each group of constraints, in decreasing order; needs concrete values, no batch."""
        found = []
        for r in self.residuals:
            amount = np.nan_to_num(np.asarray(r.amount), nan=np.inf)
            if amount.size == 0:
                continue
            k, c = np.unravel_index(int(amount.argmax()), amount.shape)
            found.append(Violation(r.name, r.components[c], float(np.asarray(r.times)[k]), float(amount[k, c])))
        return sorted(found, key=lambda v: -v.amount)[:count]

    def report(self) -> str:
        """Text with status, cost and largest violations; needs concrete values, no batch."""
        head = (
            f"{SolveStatus(int(self.status)).name} after {int(self.iterations)} iterations: cost "
            f"{float(self.cost):.8g}, violation {float(self.violation):.2g}, optimality {float(self.optimality):.2g}"
        )
        if self.run_seconds is not None:
            head += f"; compiled in {self.compile_seconds:.2f} s, ran {self.run_seconds:.3g} s"
        worst = [f"  {v}" for v in self.violations()]
        return "\n".join([head, "most violated:", *worst]) if worst else head

    def checked(self) -> "Solution":
        """This solution; raises `ConvergenceError` with the report unless solved. Needs concrete values."""
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
    "INFEASIBLE: relax the constraint named first, or give another guess; MAX_ITERATIONS: raise "
    "max_iterations; STALLED: scale the problem, or loosen the tolerance; NOT_FINITE: evaluate the functions of the "
    "problem at the guess."
)


def largest_residual(residuals: Sequence[Residual]) -> Scalar:
    """The largest violation among all residuals."""
    parts = [jnp.max(r.amount, initial=0) for r in residuals]
    return jnp.max(jnp.stack(parts)) if parts else jnp.zeros(())
