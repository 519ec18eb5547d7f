"""Linear least squares in the base parameters."""

import equinox as eqx
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.identification.methods._contract import CHUNK, AbstractMethod
from jaxdyn.identification.methods._evaluation import Evaluator
from jaxdyn.identification.methods._reweighting import solve_reweighted
from jaxdyn.identification.methods._status import FitStatus
from jaxdyn.identification.residuals import AbstractLoss, NormalEquations, effort_problem

#: limit of the iterations with a robust loss, and the relative change of the loss at which they end
_MAX_ITERATIONS, _RTOL = 100, 1e-9


class Linear(AbstractMethod):
    """Linear least squares of efforts in the base parameters, `min |W (y - J x)|^2`, without a prior.

    All parameters must enter the residual linearly. Unobservable directions stay as they are. Links may become
    physically inconsistent; `Physical` prevents that. Gautier and Khalil 1990; Swevers, Ganseman and others 1997.

    Arguments:

    * `reweight`: passes with the inverse standard deviation of each joint's residual as its weight: 0 is ordinary, 1 is
      weighted, more are iteratively reweighted least squares.
    * `loss`: a robust loss, `Huber()` or `Cauchy()`, that reduces the weight of outliers, by iteratively reweighted
      least squares (Holland and Welsch 1977).
    * `chunk`: number of samples whose derivatives are in memory at once.

    ```python
    import numpy as np
    import jaxdyn as jd
    from jaxdyn.identification import Linear, Log, fit

    t = np.linspace(0, 4, 100)[:, None]
    q, v, a = np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)
    log = Log(t[:, 0], q, v, a, effort=a + 9.81 * np.sin(q) + 0.3 * v)  # m = 1 kg, l = 1 m, damping 0.3
    result = fit(jd.robots.pendulum(), log, ["joints[*].damping"], Linear(reweight=0))
    assert abs(result.value("joints[rod_joint].damping") - 0.3) < 1e-3
    ```
    """

    reweight: int = eqx.field(static=True, default=2)
    loss: AbstractLoss | None = None
    chunk: int = eqx.field(static=True, default=CHUNK)

    def problem(self, parameters, logs):
        return effort_problem(parameters, logs, self.chunk)

    def solve(self, problem, prior, weights, tell):
        if problem.parameters.bounds:
            raise ModelError(
                "Linear does not support bounds; use Physical or LevenbergMarquardt, or leave the bounds out"
            )
        x0 = np.asarray(problem.parameters.read(), float)
        evaluator = Evaluator(problem, x0, tell)
        if evaluator.is_finite and not evaluator.is_linear:
            raise ModelError(
                "the residual is not linear in the selected parameters; use Physical or LevenbergMarquardt, or leave "
                "out widths and velocities of friction, gains, delays and the geometry"
            )

        def minimise(sums, x, weights, loss) -> tuple[np.ndarray, FitStatus, int, list[float]]:
            if loss is None:
                d, cost = _least_squares_step(evaluator, sums, weights)
                status = FitStatus.CONVERGED if np.isfinite(cost) else FitStatus.NOT_FINITE
                return x + d, status, 1, [float(sums.cost(weights)), cost]
            return _minimise_loss(evaluator, sums, x, weights, loss)

        return solve_reweighted(evaluator, minimise, x0, weights, self.reweight, self.loss)


def _least_squares_step(evaluator: Evaluator, sums: NormalEquations, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """The step of the base parameters to the minimum of the weighted sum of squares, and half of that minimum."""
    h, g, square = sums.weighted(weights)
    d = np.zeros(len(g))
    b = evaluator.groups(sums, weights).base
    inner = h[np.ix_(b, b)]
    scale = 1 / np.sqrt(np.diag(inner))
    d[b] = -scale * np.linalg.solve(inner * scale[:, None] * scale, scale * g[b])
    return d, float(square / 2 + g @ d + d @ h @ d / 2)


def _minimise_loss(
    evaluator: Evaluator, sums: NormalEquations, x: np.ndarray, weights: np.ndarray, loss: AbstractLoss
) -> tuple[np.ndarray, FitStatus, int, list[float]]:
    """Iteratively reweighted least squares, with the loss's weights at the last residuals."""
    history = [float(sums.cost(weights))]
    for steps in range(1, _MAX_ITERATIONS + 1):
        x = x + _least_squares_step(evaluator, sums, weights)[0]
        sums = evaluator.at(x, weights, loss)
        history.append(float(sums.cost(weights)))
        if not np.isfinite(history[-1]):
            return x, FitStatus.NOT_FINITE, steps, history
        if abs(history[-2] - history[-1]) <= _RTOL * history[0]:
            return x, FitStatus.CONVERGED, steps, history
    return x, FitStatus.MAX_STEPS, _MAX_ITERATIONS, history
