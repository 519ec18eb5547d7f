"""Linear least squares in the parameters that the logs determine."""

from typing import Any

import equinox as eqx
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.identification._fit_problem import AbstractLoss
from jaxdyn.identification._methods import CHUNK, AbstractMethod, Data, effort_rows, reweighted
from jaxdyn.identification._result import FitStatus

#: repetitions with the weights of a loss, and the change of the loss at which they end
_MOST, _CHANGE = 100, 1e-9


class Linear(AbstractMethod):
    """Least squares of efforts in independent combinations of parameters: `min |W (y - J x)|^2`, without a prior.

    `reweight` passes take the inverse residual of each joint for its weight: none is ordinary least squares, one is
    weighted least squares, more are iterated. A `loss` (`Huber`, `Cauchy`) lowers the weight of samples far off, and is
    made least by least squares again and again (Holland and Welsch 1977). What the logs do not determine stays as it
    was. Links may come out with an inertia that no body has; `Physical` is the method that prevents it. All
    parameters must enter linearly. Gautier and Khalil 1990; Swevers, Ganseman and others 1997.
    """

    reweight: int = eqx.field(static=True, default=2)
    loss: AbstractLoss | None = None
    #: samples whose derivatives are in memory at once
    chunk: int = eqx.field(static=True, default=CHUNK)

    def problem(self, parameters, logs):
        return effort_rows(parameters, logs, self.chunk)

    def solve(self, problem, prior, weights, tell):
        if problem.parameters.bounds:
            raise ModelError("Linear keeps no bounds; take Physical or LevenbergMarquardt, or leave the bounds out")
        x0 = np.asarray(problem.parameters.read(), float)
        data = Data(problem, x0, tell)
        if data.finite and not data.linear:
            raise ModelError(
                "the residual is not linear in the selected parameters; use Physical or LevenbergMarquardt, or leave "
                "out widths and velocities of friction, gains, delays and the geometry"
            )

        def step(sums, x, now, loss) -> Any:
            if loss is None:
                d, after = _least(data, sums, now)
                status = FitStatus.CONVERGED if np.isfinite(after) else FitStatus.NOT_FINITE
                return x + d, status, 1, [float(sums.cost(now)), after]
            return _robust(data, sums, x, now, loss)

        return reweighted(data, step, x0, weights, self.reweight, self.loss)


def _least(data: Data, sums, weights) -> tuple[np.ndarray, float]:
    """The change of the base parameters that makes the weighted sum of squares least, and half of that."""
    h, g, square = sums.weighted(weights)
    d = np.zeros(len(g))
    b = data.groups(sums, weights).base
    inner = h[np.ix_(b, b)]
    scale = 1 / np.sqrt(np.diag(inner))
    d[b] = -scale * np.linalg.solve(inner * scale[:, None] * scale, scale * g[b])
    return d, float(square / 2 + g @ d + d @ h @ d / 2)


def _robust(data: Data, sums, x, weights, loss: AbstractLoss):
    """Least squares with the loss's weights of the last residuals, until the loss does not change."""
    history = [float(sums.cost(weights))]
    for steps in range(1, _MOST + 1):
        x = x + _least(data, sums, weights)[0]
        sums = data.at(x, weights, loss)
        history.append(float(sums.cost(weights)))
        if not np.isfinite(history[-1]):
            return x, FitStatus.NOT_FINITE, steps, history
        if abs(history[-2] - history[-1]) <= _CHANGE * history[0]:
            return x, FitStatus.CONVERGED, steps, history
    return x, FitStatus.MAX_STEPS, _MOST, history
