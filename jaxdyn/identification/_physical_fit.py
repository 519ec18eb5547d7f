"""Fits whose every link is a body, in the parameters themselves."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn.identification._fit_problem import AbstractLoss
from jaxdyn.identification._methods import CHUNK, AbstractMethod, Data, effort_rows, reweighted
from jaxdyn.identification._parameters import inside
from jaxdyn.identification._physical import solve_bodies
from jaxdyn.identification._result import FitStatus


class Physical(AbstractMethod):
    """Least squares of efforts over bodies: `min |W (y - f(x))|^2 / 2 + prior`, with pseudo-inertias `P(x) > 0`.

    Lower bounds of masses, friction and the like are kept too. Where the residual is linear in x the problem is
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
        x0 = inside(parameters, np.asarray(parameters.read(), float))
        data = Data(problem, x0, tell)
        penalty = lambda x: float(prior.cost(parameters, jnp.asarray(x0), jnp.asarray(x)))

        def step(sums, x, now, loss) -> Any:
            return _descend(self, data, prior, penalty, sums, x, x0, now, loss)

        return reweighted(data, step, x0, weights, self.reweight, self.loss)


def _descend(method: Physical, data: Data, prior, penalty, sums, x, x0, weights, loss):
    """Steps of convex problems until the cost does not change."""
    parameters = data.problem.parameters
    history = [float(sums.weighted(weights)[2]) / 2 + penalty(x)]
    damping, steps = 0.0, 0
    while steps < method.max_steps:
        h, g, _ = sums.weighted(weights)
        if not (np.isfinite(h).all() and np.isfinite(g).all()):
            return x, FitStatus.NOT_FINITE, steps, history
        damped = h + damping * np.diag(np.diag(h) + 1e-12 * np.diag(h).max())
        there, _ = solve_bodies(parameters, damped, g, x, x0, prior)
        new = data.at(there, weights, loss)
        cost = float(new.weighted(weights)[2]) / 2 + penalty(there)
        steps += 1
        tolerance = method.rtol * abs(history[-1]) + 1e-14 * abs(history[0]) + 1e-250
        if data.linear and loss is None:
            return there, FitStatus.CONVERGED, steps, [*history, cost]
        if np.isfinite(cost) and cost <= history[-1] + tolerance:
            done = history[-1] - cost <= tolerance
            x, sums = there, new
            history.append(cost)
            data.tell(f"step {steps}: cost {cost:.6g}")
            if done:
                return x, FitStatus.CONVERGED, steps, history
            damping = 0.0 if damping < 1e-6 else damping / 5
        else:
            damping = max(damping * 5, 1e-4)
            if damping > 1e10:
                return x, FitStatus.STALLED, steps, history
    return x, FitStatus.MAX_STEPS, steps, history
