"""Least squares over physically consistent bodies, in the parameters themselves."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn.identification.methods._barrier_method import ConvexMinimum, minimise_over_bodies
from jaxdyn.identification.methods._contract import CHUNK, AbstractMethod
from jaxdyn.identification.methods._evaluation import Evaluator
from jaxdyn.identification.methods._prior import GeometricPrior
from jaxdyn.identification.methods._reweighting import solve_reweighted
from jaxdyn.identification.methods._status import FitStatus
from jaxdyn.identification.parameters import Parameters, check_bodies, feasible_point
from jaxdyn.identification.residuals import AbstractLoss, NormalEquations, effort_problem

#: greatest predicted reduction by an undamped step, in tolerances, at which a short last step counts as convergence
_REDUCTION_LIMIT = 1e3


class Physical(AbstractMethod):
    """Least squares of efforts over physically consistent bodies: `min |W (y - f(x))|^2 / 2 + prior`, `P(x) > 0`.

    P are the pseudo-inertias of the selected links. Bounds of masses, friction and other parameters are kept as well.
    If the residual is linear in x, the problem is convex, and its only minimum is found from any start. Otherwise each
    step solves the convex problem of the linearised residual (Gauss-Newton with Levenberg-Marquardt damping).
    Unobservable directions minimise the divergence of the prior.

    Arguments:

    * `reweight`: passes with the inverse standard deviation of each joint's residual as its weight.
    * `loss`: a robust loss, `Huber()` or `Cauchy()`, or None.
    * `max_steps`: limit of the steps of a pass.
    * `rtol`: relative reduction of the cost at which the steps end.
    * `chunk`: number of samples whose derivatives are in memory at once.

    ```python
    import numpy as np
    import jaxdyn as jd
    from jaxdyn.identification import Log, Physical, fit

    t = np.linspace(0, 4, 100)[:, None]
    q, v, a = np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)
    log = Log(t[:, 0], q, v, a, effort=a + 9.81 * np.sin(q) + 0.3 * v)  # m = 1 kg, l = 1 m, damping 0.3
    result = fit(jd.robots.pendulum(), log, ["joints[*].damping"], Physical(reweight=0))
    assert abs(result.value("joints[rod_joint].damping") - 0.3) < 1e-3 and result.is_physical
    ```
    """

    reweight: int = eqx.field(static=True, default=2)
    loss: AbstractLoss | None = None
    max_steps: int = eqx.field(static=True, default=60)
    rtol: float = 1e-9
    chunk: int = eqx.field(static=True, default=CHUNK)

    def problem(self, parameters, logs):
        return effort_problem(parameters, logs, self.chunk)

    def solve(self, problem, prior, weights, tell):
        parameters = problem.parameters
        check_bodies(parameters, inertial_bounds=True)
        x0 = feasible_point(parameters, np.asarray(parameters.read(), float))
        evaluator = Evaluator(problem, x0, tell)
        convex = _ConvexProblem(parameters, prior, x0)

        def minimise(sums, x, weights, loss) -> tuple[np.ndarray, FitStatus, int, list[float]]:
            return _minimise(self, evaluator, convex, sums, x, weights, loss)

        return solve_reweighted(evaluator, minimise, x0, weights, self.reweight, self.loss)


class _ConvexProblem(NamedTuple):
    """The linearised residual's quadratic cost plus the prior, over bodies and within bounds."""

    parameters: Parameters
    prior: GeometricPrior
    x0: np.ndarray

    def penalty(self, x: np.ndarray) -> float:
        """The contribution of the prior to the cost."""
        return float(self.prior.cost(self.parameters, jnp.asarray(self.x0), jnp.asarray(x)))

    def minimum(self, h: np.ndarray, g: np.ndarray, x: np.ndarray, tolerance: float) -> ConvexMinimum:
        """The minimum for the normal equations h and g at x."""
        return minimise_over_bodies(self.parameters, h, g, x, self.x0, self.prior, tolerance)

    def is_near_minimum(self, h: np.ndarray, g: np.ndarray, x: np.ndarray, tolerance: float) -> bool:
        """Whether the reduction of the cost predicted for an undamped step is small."""
        undamped = self.minimum(h, g, x, tolerance).x
        d = undamped - x
        reduction = self.penalty(x) - self.penalty(undamped) - float(g @ d + d @ h @ d / 2)
        return reduction <= _REDUCTION_LIMIT * tolerance


def _minimise(
    method: Physical,
    evaluator: Evaluator,
    convex: _ConvexProblem,
    sums: NormalEquations,
    x: np.ndarray,
    weights: np.ndarray,
    loss: AbstractLoss | None,
) -> tuple[np.ndarray, FitStatus, int, list[float]]:
    """Damped steps over convex problems until an undamped one would not reduce the cost."""
    history = [float(sums.cost(weights)) + convex.penalty(x)]
    damping, steps = 0.0, 0
    while steps < method.max_steps:
        h, g, _ = sums.weighted(weights)
        if not (np.isfinite(h).all() and np.isfinite(g).all()):
            return x, FitStatus.NOT_FINITE, steps, history
        damped = h + damping * np.diag(np.diag(h) + 1e-12 * np.diag(h).max())
        tolerance = method.rtol * abs(history[-1]) + 1e-14 * abs(history[0]) + 1e-250
        new_x, _, is_converged = convex.minimum(damped, g, x, tolerance)
        new_sums = evaluator.at(new_x, weights, loss)
        cost = float(new_sums.cost(weights)) + convex.penalty(new_x)
        steps += 1
        if evaluator.is_linear and loss is None:
            status = FitStatus.CONVERGED if is_converged else FitStatus.STALLED
            return new_x, status, steps, [*history, cost]
        if np.isfinite(cost) and cost <= history[-1] + tolerance:
            done = history[-1] - cost <= tolerance
            if done and damping > 0:  # a short step does not tell how far the minimum is
                done = convex.is_near_minimum(h, g, x, tolerance)
            x, sums = new_x, new_sums
            history.append(cost)
            evaluator.tell(f"step {steps}: cost {cost:.6g}")
            if done:
                return x, FitStatus.CONVERGED, steps, history
            damping = 0.0 if damping < 1e-6 else damping / 5
        else:
            damping = max(damping * 5, 1e-4)
            if damping > 1e10:
                near = convex.is_near_minimum(h, g, x, tolerance)
                return x, FitStatus.CONVERGED if near else FitStatus.STALLED, steps, history
    return x, FitStatus.MAX_STEPS, steps, history
