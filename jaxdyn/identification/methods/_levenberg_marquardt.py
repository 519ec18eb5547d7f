"""The Levenberg-Marquardt method over unconstrained coordinates."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._types import Array
from jaxdyn.identification.methods._contract import CHUNK, AbstractMethod
from jaxdyn.identification.methods._status import FitStatus
from jaxdyn.identification.methods._unconstrained import Cost, predicted_reduction, solve_unconstrained
from jaxdyn.identification.residuals import AbstractLoss, effort_problem

#: greatest predicted reduction, in tolerances, at which a small actual reduction counts as convergence
_REDUCTION_LIMIT = 1e3


class _State(NamedTuple):
    """The state of the iteration."""

    z: Array
    cost: Array
    gradient: Array
    matrix: Array
    damping: Array
    steps: Array
    history: Array
    #: 0 while running, then 1 + FitStatus
    ended: Array


class LevenbergMarquardt(AbstractMethod):
    """Nonlinear least squares by damped Gauss-Newton steps with exact Jacobians, over unconstrained coordinates.

    Links have the log-Cholesky coordinates of their pseudo-inertia, bounded parameters softplus and logistic ones, so
    that every iterate is physically consistent and within bounds. The normal equations of a linear residual are summed
    once; those of a nonlinear one at each step, in chunks. Levenberg 1944, Marquardt 1963.

    Arguments:

    * `reweight`: passes with the inverse standard deviation of each joint's residual as its weight.
    * `loss`: a robust loss, `Huber()` or `Cauchy()`, or None.
    * `max_steps`: limit of the steps of a pass.
    * `rtol`: relative reduction of the cost at which the steps end.
    * `starts`: number of starts, run side by side by `vmap`; the first one is the initial model, the others are
      drawn around it with the standard deviation `spread` in unconstrained coordinates, and the best result is taken.
    * `seed`: of the random starts.
    * `chunk`: number of samples whose derivatives are in memory at once.

    ```python
    import numpy as np
    import jaxdyn as jd
    from jaxdyn.identification import LevenbergMarquardt, Log, fit

    t = np.linspace(0, 4, 100)[:, None]
    q, v, a = np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)
    log = Log(t[:, 0], q, v, a, effort=a + 9.81 * np.sin(q) + 0.3 * v)  # m = 1 kg, l = 1 m, damping 0.3
    start = jd.robots.pendulum(damping=0.1)
    bounds = {"joints[*].damping": (0.0, 1.0)}
    result = fit(start, log, ["joints[*].damping"], LevenbergMarquardt(reweight=0), bounds=bounds)
    assert abs(result.value("joints[rod_joint].damping") - 0.3) < 1e-3
    ```
    """

    reweight: int = eqx.field(static=True, default=2)
    loss: AbstractLoss | None = None
    max_steps: int = eqx.field(static=True, default=200)
    rtol: float = 1e-9
    starts: int = eqx.field(static=True, default=1)
    spread: float = 0.3
    seed: int = eqx.field(static=True, default=0)
    chunk: int = eqx.field(static=True, default=CHUNK)

    def problem(self, parameters, logs):
        return effort_problem(parameters, logs, self.chunk)

    def solve(self, problem, prior, weights, tell):
        return solve_unconstrained(problem, prior, weights, tell, self._minimise, self.reweight, self.loss)

    def _minimise(self, cost: Cost, z: Array) -> tuple[Array, FitStatus, int, list[float]]:
        zs, rtol = z[None] + self._offsets(z), jnp.asarray(self.rtol, z.dtype)
        if self.starts == 1:
            end = minimise_damped(cost, zs[0], rtol, self.max_steps)
        else:
            ends = eqx.filter_vmap(lambda y: minimise_damped(cost, y, rtol, self.max_steps))(zs)
            costs = np.asarray(ends.cost)
            best = int(np.argmin(np.where(np.isfinite(costs), costs, np.inf)))  # the first where none is finite
            end = jax.tree.map(lambda y: y[best], ends)
        steps = int(end.steps)
        return end.z, _status(end.ended), steps, [float(y) for y in np.asarray(end.history[: steps + 1])]

    def _offsets(self, z: Array) -> Array:
        noise = self.spread * jax.random.normal(jax.random.key(self.seed), (self.starts, z.shape[0]), z.dtype)
        return noise.at[0].set(0)


def _status(ended: Array) -> FitStatus:
    return FitStatus(int(ended) - 1) if int(ended) else FitStatus.MAX_STEPS


@eqx.filter_jit
def minimise_damped(cost: Any, z: Array, rtol: float | Array, max_steps: int) -> _State:
    """Steps `(A + mu diag A) dz = -g`, mu by the gain ratio (Nielsen 1999), until the predicted reduction is small.

    `cost.quadratic_model(z)` returns the cost, its gradient g and the Gauss-Newton matrix A.
    """
    f, g, a = cost.quadratic_model(z)
    history = jnp.full(max_steps + 1, jnp.nan, z.dtype).at[0].set(f)
    ended = jnp.where(jnp.isfinite(f), 0, 1 + FitStatus.NOT_FINITE)
    first = _State(z, f, g, a, jnp.asarray(1e-3, z.dtype), jnp.asarray(0), history, ended)
    return jax.lax.while_loop(
        lambda s: (s.ended == 0) & (s.steps < max_steps), lambda s: _step(cost, s, rtol, first.cost), first
    )


def _step(cost: Any, s: _State, rtol: float | Array, initial: Array) -> _State:
    floor = 1e-9 * jnp.max(jnp.diagonal(s.matrix)) + jnp.finfo(s.z.dtype).tiny
    scale = 1 / jnp.sqrt(jnp.diagonal(s.matrix) + floor)
    system = s.matrix * scale[:, None] * scale + s.damping * jnp.eye(s.z.shape[0], dtype=s.z.dtype)
    dz = -scale * jnp.linalg.solve(system, scale * s.gradient)
    z = s.z + dz
    f, g, a = cost.quadratic_model(z)
    expected = -(s.gradient @ dz) - dz @ s.matrix @ dz / 2
    gain = (s.cost - f) / jnp.where(expected == 0, 1, expected)
    better = jnp.isfinite(f) & (f <= s.cost)
    tolerance = rtol * jnp.abs(s.cost) + 64 * jnp.finfo(z.dtype).eps * jnp.abs(initial)
    reduction = predicted_reduction(s.gradient, s.matrix)
    stationary = (better & (s.cost - f <= tolerance) & (gain > 0.1)) | (s.damping > 1e12)
    converged = (reduction <= tolerance) | (stationary & (reduction <= _REDUCTION_LIMIT * tolerance))
    stalled = ~better & (s.damping > 1e12)
    ended = jnp.where(converged, 1 + FitStatus.CONVERGED, jnp.where(stalled, 1 + FitStatus.STALLED, 0))
    shrink = jnp.maximum(1 / 3, 1 - (2 * gain - 1) ** 3)
    damping = jnp.where(better, jnp.clip(s.damping * shrink, 1e-15, None), s.damping * 4)
    accept = lambda new, old: jax.tree.map(lambda x, y: jnp.where(better, x, y), new, old)
    z, f, g, a = accept((z, f, g, a), (s.z, s.cost, s.gradient, s.matrix))
    steps = s.steps + 1
    return _State(z, f, g, a, damping, steps, s.history.at[steps].set(f), ended)
