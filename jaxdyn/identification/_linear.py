"""Linear least squares in the parameters that the logs determine."""

from typing import Any

import equinox as eqx
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.identification._fit_problem import AbstractLoss
from jaxdyn.identification._methods import CHUNK, AbstractMethod, Data, effort_rows, reweighted
from jaxdyn.identification._result import FitStatus


class Linear(AbstractMethod):
    """Least squares of efforts in independent combinations of parameters: `min |W (y - J x)|^2`, without a prior.

    `reweight` passes take the inverse residual of each joint for its weight: none is ordinary least squares, one is
    weighted least squares, more are iterated. A `loss` (`Huber`, `Cauchy`) lowers the weight of samples far off at each
    of them. What the logs do not determine stays as it was. Links may come out with an inertia that no body has;
    `Physical` is the method that prevents it. All parameters must enter linearly. Gautier and Khalil 1990; Swevers,
    Ganseman and others 1997.
    """

    reweight: int = eqx.field(static=True, default=2)
    loss: AbstractLoss | None = None
    #: samples whose derivatives are in memory at once
    chunk: int = eqx.field(static=True, default=CHUNK)

    def problem(self, parameters, logs):
        return effort_rows(parameters, logs, self.chunk)

    def solve(self, problem, prior, weights, tell):
        x0 = np.asarray(problem.parameters.read(), float)
        data = Data(problem, x0, tell)
        if data.finite and not data.linear:
            raise ModelError(
                "the residual is not linear in the selected parameters; use Physical or LevenbergMarquardt, or leave "
                "out widths and velocities of friction, gains, delays and the geometry"
            )

        def step(sums, x, now, loss) -> Any:
            groups = data.groups(sums, now)
            h, g, square = sums.weighted(now)
            d = np.zeros_like(x)
            b = groups.base
            inner = h[np.ix_(b, b)]
            scale = 1 / np.sqrt(np.diag(inner))
            d[b] = -scale * np.linalg.solve(inner * scale[:, None] * scale, scale * g[b])
            after = square / 2 + g @ d + d @ h @ d / 2
            status = FitStatus.CONVERGED if np.isfinite(after) else FitStatus.NOT_FINITE
            return x + d, status, 1, [float(square) / 2, float(after)]

        return reweighted(data, step, x0, weights, self.reweight, self.loss)
