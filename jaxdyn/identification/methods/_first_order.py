"""First-order descent over unconstrained coordinates by optimisers of optax."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxdyn._types import Array
from jaxdyn.identification.methods._contract import CHUNK, AbstractMethod
from jaxdyn.identification.methods._status import FitStatus
from jaxdyn.identification.methods._unconstrained import Cost, predicted_reduction, solve_unconstrained
from jaxdyn.identification.residuals import AbstractLoss, effort_problem


class FirstOrder(AbstractMethod):
    """First-order descent by an optimiser of optax, over the unconstrained coordinates of `LevenbergMarquardt`.

    A step costs one reverse-mode pass through the residuals, without their Jacobian. Second-order methods are faster
    wherever they apply; use this method with an optimiser of your own, or with very many parameters. The descent ends
    when a tenth of the steps reduced the cost by less than `rtol`.

    Arguments:

    * `optimiser`: a `GradientTransformation`, such as `optax.adam(0.05)`.
    * `max_steps`: limit of the steps of a pass.
    * `rtol`: relative reduction of the cost, over a tenth of the steps, at which the descent ends.
    * `least_gain`: the fit has converged if a Gauss-Newton step would reduce the cost by less than this part of it.
    * `reweight`: passes with the inverse standard deviation of each joint's residual as its weight.
    * `loss`: a robust loss, `Huber()` or `Cauchy()`, or None.
    * `chunk`: number of samples whose derivatives are in memory at once.

    ```python
    import numpy as np
    import optax
    import jaxdyn as jd
    from jaxdyn.identification import FirstOrder, Log, fit

    t = np.linspace(0, 4, 100)[:, None]
    q, v, a = np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)
    log = Log(t[:, 0], q, v, a, effort=a + 9.81 * np.sin(q) + 0.3 * v)  # m = 1 kg, l = 1 m, damping 0.3
    start = jd.robots.pendulum(damping=0.1)
    result = fit(start, log, ["joints[*].damping"], FirstOrder(optax.adam(0.1), reweight=0))
    assert abs(result.value("joints[rod_joint].damping") - 0.3) < 1e-2
    ```
    """

    optimiser: optax.GradientTransformation = eqx.field(static=True)
    max_steps: int = eqx.field(static=True, default=2000)
    rtol: float = 1e-7
    least_gain: float = 1e-5
    reweight: int = eqx.field(static=True, default=1)
    loss: AbstractLoss | None = None
    chunk: int = eqx.field(static=True, default=CHUNK)

    def problem(self, parameters, logs):
        return effort_problem(parameters, logs, self.chunk)

    def solve(self, problem, prior, weights, tell):
        return solve_unconstrained(problem, prior, weights, tell, self._minimise, self.reweight, self.loss)

    def _minimise(self, cost: Cost, z: Array) -> tuple[Array, FitStatus, int, list[float]]:
        rtol = jnp.asarray(self.rtol, z.dtype)
        z, costs, done, f, reduction = _descend(cost, z, self.optimiser, self.max_steps, rtol)
        costs = np.asarray(costs)
        history = [float(y) for y in costs[np.isfinite(costs)]]
        if not (history and np.isfinite(float(f)) and np.isfinite(float(reduction))):
            return z, FitStatus.NOT_FINITE, len(history), history or [float("nan")]
        status = FitStatus.STALLED if bool(done) else FitStatus.MAX_STEPS
        near = float(reduction) <= self.least_gain * abs(float(f)) + 1e-12 * abs(history[0])
        return z, FitStatus.CONVERGED if near else status, len(history), [*history, float(f)]


@eqx.filter_jit
def _descend(
    cost: Cost, z: Array, optimiser: optax.GradientTransformation, max_steps: int, rtol: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """The best z, the costs, whether they ceased to fall, the cost at the best z, and the predicted reduction there.

    Costs cease to fall if the least one changed by less than rtol over the last tenth of the steps.
    """
    window = max(max_steps // 10, 10)
    a = cost.quadratic_model(z)[2]
    scale = 1 / jnp.sqrt(jnp.diagonal(a) + 1e-9 * jnp.max(jnp.diagonal(a)))

    def step(carry):
        y, inner, best, least, costs, k, last_least, done = carry
        f, g = cost.value_and_gradient(z + scale * y)
        better = f < least
        best, least = jnp.where(better, y, best), jnp.where(better, f, least)
        update, inner = optimiser.update(scale * g, inner, y)
        check = (k % window) == window - 1
        done = check & (last_least - least <= rtol * jnp.abs(last_least))
        last_least = jnp.where(check, least, last_least)
        return optax.apply_updates(y, update), inner, best, least, costs.at[k].set(f), k + 1, last_least, done

    y = jnp.zeros_like(z)
    high = jnp.asarray(jnp.inf, z.dtype)
    costs = jnp.full(max_steps, jnp.nan, z.dtype)
    start = (y, optimiser.init(y), y, high, costs, 0, jnp.asarray(jnp.finfo(z.dtype).max), jnp.asarray(False))
    end = jax.lax.while_loop(lambda c: (c[5] < max_steps) & ~c[7], step, start)
    best = z + scale * end[2]
    f, g, a = cost.quadratic_model(best)
    return best, end[4], end[7], f, predicted_reduction(g, a)
