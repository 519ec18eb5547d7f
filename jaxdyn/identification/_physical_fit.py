"""Fits whose every link is a body, in the parameters themselves."""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn.identification._fit_problem import AbstractLoss
from jaxdyn.identification._methods import CHUNK, AbstractMethod, Data, effort_rows, reweighted
from jaxdyn.identification._parameters import Parameters, check_bodies, inside
from jaxdyn.identification._physical import GeometricPrior, Minimum, solve_bodies
from jaxdyn.identification._result import FitStatus

#: what a whole step may still promise where the last one gained less than the tolerance, in tolerances
_ENOUGH = 1e3


class Physical(AbstractMethod):
    """Least squares of efforts over bodies: `min |W (y - f(x))|^2 / 2 + prior`, with pseudo-inertias `P(x) > 0`.

    Bounds of masses, friction and the like are kept too. Where the residual is linear in x the problem is
    convex and has one minimum, which is found from anywhere; else each step solves the convex problem of the
    linearised residual (Gauss-Newton with damping as Levenberg and Marquardt's). What the logs do not
    determine goes to where the prior's divergence is least, which is the prior itself as far as bodies allow.
    """

    reweight: int = eqx.field(static=True, default=2)
    loss: AbstractLoss | None = None
    max_steps: int = eqx.field(static=True, default=60)
    #: relative change of the cost at which the steps end
    rtol: float = 1e-9
    chunk: int = eqx.field(static=True, default=CHUNK)

    def problem(self, parameters, logs):
        return effort_rows(parameters, logs, self.chunk)

    def solve(self, problem, prior, weights, tell):
        parameters = problem.parameters
        check_bodies(parameters, inertial_bounds=True)
        x0 = inside(parameters, np.asarray(parameters.read(), float))
        data = Data(problem, x0, tell)
        convex = _Convex(parameters, prior, x0)

        def step(sums, x, now, loss) -> Any:
            return _descend(self, data, convex, sums, x, now, loss)

        return reweighted(data, step, x0, weights, self.reweight, self.loss)


class _Convex(NamedTuple):
    """The problem that is left of a residual by its normal equations at one place."""

    parameters: Parameters
    prior: GeometricPrior
    x0: np.ndarray

    def penalty(self, x) -> float:
        """The prior's share of the cost."""
        return float(self.prior.cost(self.parameters, jnp.asarray(self.x0), jnp.asarray(x)))

    def minimum(self, h, g, x, tolerance: float) -> Minimum:
        """Its solution."""
        return solve_bodies(self.parameters, h, g, x, self.x0, self.prior, tolerance)

    def enough(self, h, g, x, tolerance: float) -> bool:
        """Whether a step without damping would gain next to nothing, were the residual linear."""
        whole = self.minimum(h, g, x, tolerance).x
        d = whole - x
        return self.penalty(x) - self.penalty(whole) - float(g @ d + d @ h @ d / 2) <= _ENOUGH * tolerance


def _descend(method: Physical, data: Data, convex: _Convex, sums, x, weights, loss):
    """Steps of convex problems until one without damping would not lower the cost."""
    history = [float(sums.cost(weights)) + convex.penalty(x)]
    damping, steps = 0.0, 0
    while steps < method.max_steps:
        h, g, _ = sums.weighted(weights)
        if not (np.isfinite(h).all() and np.isfinite(g).all()):
            return x, FitStatus.NOT_FINITE, steps, history
        damped = h + damping * np.diag(np.diag(h) + 1e-12 * np.diag(h).max())
        tolerance = method.rtol * abs(history[-1]) + 1e-14 * abs(history[0]) + 1e-250
        there, _, reached = convex.minimum(damped, g, x, tolerance)
        new = data.at(there, weights, loss)
        cost = float(new.cost(weights)) + convex.penalty(there)
        steps += 1
        if data.linear and loss is None:
            status = FitStatus.CONVERGED if reached else FitStatus.STALLED
            return there, status, steps, [*history, cost]
        if np.isfinite(cost) and cost <= history[-1] + tolerance:
            done = history[-1] - cost <= tolerance
            if done and damping > 0:  # a short step says nothing of what a whole one would do
                done = convex.enough(h, g, x, tolerance)
            x, sums = there, new
            history.append(cost)
            data.tell(f"step {steps}: cost {cost:.6g}")
            if done:
                return x, FitStatus.CONVERGED, steps, history
            damping = 0.0 if damping < 1e-6 else damping / 5
        else:
            damping = max(damping * 5, 1e-4)
            if damping > 1e10:
                near = convex.enough(h, g, x, tolerance)
                return x, FitStatus.CONVERGED if near else FitStatus.STALLED, steps, history
    return x, FitStatus.MAX_STEPS, steps, history
