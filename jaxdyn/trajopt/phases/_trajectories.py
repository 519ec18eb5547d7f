"""The phases of a solution."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.trajopt.phases._dynamics import ConstrainedPhasedDynamics, PhasedDynamics
from jaxdyn.trajopt.phases._stack import Stack
from jaxdyn.trajopt.problem import AbstractDynamics, Guess, Solution


class PhaseTrajectory(eqx.Module):
    """One phase of the solution of a multi-phase problem."""

    #: nodes, s, from the start of the first phase
    t: Float[Array, "*batch nodes"]
    #: `(nodes, nx)`
    x: Float[Array, "*batch nodes nx"]
    #: at the nodes, `(nodes, nu)`
    u: Float[Array, "*batch nodes nu"]
    #: in the middle of the intervals, `(nodes - 1, nu)`
    middle: Float[Array, "*batch intervals nu"]
    #: s
    duration: Float[Array, "*batch"]
    dynamics: AbstractDynamics

    @property
    def guess(self) -> Guess:
        """This phase as the guess of its problem, for a warm start."""
        return Guess((self.t - self.t[..., :1]) / self.duration[..., None], self.x, self.u, self.duration)

    def control(self, t) -> Float[Array, " nu"]:
        """The controls at time t (s): in each interval the parabola through its ends and its middle."""
        last = self.t.shape[0] - 2
        k = jnp.clip(jnp.searchsorted(self.t, t, side="right") - 1, 0, last)
        z = (t - self.t[k]) / (self.t[k + 1] - self.t[k])
        return (1 - z) * (1 - 2 * z) * self.u[k] + 4 * z * (1 - z) * self.middle[k] + z * (2 * z - 1) * self.u[k + 1]


def phase_trajectories(solution: Solution) -> tuple[PhaseTrajectory, ...]:
    """The phases of a solution of `multi_phase(...)`, in the order of time.

    The argument is the `Solution` of `solve` or `ipopt`; raises `ModelError` for solutions of other problems.

    ```python
    import jax.numpy as jnp

    from jaxdyn.trajopt import Problem, Transition, VectorField, multi_phase, phase_trajectories, solve

    field = VectorField(lambda t, x, u, p: u, ("x",), ("u",))
    effort = lambda t, x, u: u @ u
    first = Problem(field, 1.0, start=jnp.zeros(1), running=effort)
    second = Problem(field, 2.0, end=jnp.array([3.0]), running=effort)
    plan = solve(multi_phase([first, second], [Transition()]), intervals=2)
    a, b = phase_trajectories(plan)
    assert jnp.allclose(a.control(0.3), 1.0) and jnp.allclose(b.t[-1], 3.0)
    ```
    """
    dynamics: Any = solution.problem.dynamics
    if not isinstance(dynamics, PhasedDynamics | ConstrainedPhasedDynamics):
        raise ModelError(
            f"the dynamics of this solution are {type(dynamics).__name__}, not those of phases; expected the solution "
            "of a problem from multi_phase(...)"
        )
    return tuple(_trajectory(dynamics.stack, solution, i, d) for i, d in enumerate(dynamics.phases))


def _trajectory(stack: Stack, solution: Solution, i: int, dynamics: AbstractDynamics) -> PhaseTrajectory:
    order = slice(None) if stack.is_forward(i) else slice(None, None, -1)
    rows: Any = jax.vmap(lambda s, x, u: stack.point(i, s, x, u))(solution.t, solution.x, solution.u)
    middle = solution.details.middle[:, stack.controls(i)]
    return PhaseTrajectory(rows.t[order], rows.x[order], rows.u[order], middle[order], rows.duration[0], dynamics)
