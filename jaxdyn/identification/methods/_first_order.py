"""First-order descent over unconstrained coordinates by optimisers of optax, over all samples or mini-batches."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxdyn._errors import check_count
from jaxdyn._types import Array
from jaxdyn.identification.methods._contract import CHUNK, AbstractMethod
from jaxdyn.identification.methods._status import FitStatus
from jaxdyn.identification.methods._unconstrained import Cost, solve_unconstrained
from jaxdyn.identification.residuals import AbstractLoss, effort_problem

#: chunks of samples that determine the scales of the coordinates
_SCALING_CHUNKS = 4


class FirstOrder(AbstractMethod):
    """First-order descent by an optimiser of optax, over the unconstrained coordinates of `LevenbergMarquardt`.

    A step costs one reverse-mode pass through the residuals of all samples, or of a mini-batch. The coordinates are
    scaled by the diagonal of the Gauss-Newton matrix; the descent never forms the matrix. Second-order methods are
    faster wherever they apply; use this method with an optimiser of your own, with very many samples or parameters.

    Without mini-batches the descent returns the point with the least cost, and ends when a tenth of the steps reduced
    the cost by less than `rtol`. With mini-batches it takes `max_steps` steps and returns the last point, since the
    cost of a batch is noisy: let the learning rate decay by a schedule of optax. The history then has the cost at
    the start and the mean cost of each epoch.

    Arguments:

    * `optimiser`: a `GradientTransformation`, such as `optax.adam(0.05)`. A step of one along a coordinate changes the
      weighted residual by about one.
    * `max_steps`: limit of the steps of a pass.
    * `rtol`: relative reduction of the cost, over a tenth of the steps, at which the descent ends.
    * `least_gain`: the fit has converged if Gauss-Newton steps along each coordinate alone predict a reduction of the
      cost by less than this part of it.
    * `reweight`: passes with the inverse standard deviation of each joint's residual as its weight.
    * `loss`: a robust loss, `Huber()` or `Cauchy()`, or None.
    * `chunk`: number of samples whose derivatives are in memory at once.
    * `batch_size`: number of samples of a mini-batch, drawn without replacement in each epoch, or None for all samples.
      Samples of `OutputError` are windows.
    * `seed`: of the order of the samples in each epoch.

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
    batch_size: int | None = eqx.field(static=True, default=None)
    seed: int = eqx.field(static=True, default=0)

    def __check_init__(self):
        if self.batch_size is not None:
            check_count("batch_size", self.batch_size)

    def problem(self, parameters, logs):
        return effort_problem(parameters, logs, self.chunk)

    def solve(self, problem, prior, weights, tell):
        return solve_unconstrained(problem, prior, weights, tell, self._minimise, self.reweight, self.loss)

    def _minimise(self, cost: Cost, z: Array) -> tuple[Array, FitStatus, int, list[float]]:
        sampled = _draw_samples(cost)
        scale = _scales(_curvatures(sampled, z))
        if self.batch_size is None:
            z, costs, done = _descend(cost, z, scale, self.optimiser, self.max_steps, jnp.asarray(self.rtol, z.dtype))
            steps = int(np.isfinite(costs).sum())
        else:
            first = _value_and_gradient(cost, z)[0]
            z, costs, steps = self._descend_batches(cost, z, scale)
            costs, done = jnp.concatenate([first[None], costs]), False
        f, g = _value_and_gradient(cost, z)
        # the reduction that Gauss-Newton steps along each coordinate alone predict
        reduction = float(jnp.sum((_scales(_curvatures(sampled, z)) * g) ** 2)) / 2
        history = [float(y) for y in np.asarray(costs) if np.isfinite(y)]
        if not (history and np.isfinite(float(f)) and np.isfinite(reduction)):
            return z, FitStatus.NOT_FINITE, steps, history or [float("nan")]
        status = FitStatus.STALLED if bool(done) else FitStatus.MAX_STEPS
        near = reduction <= self.least_gain * abs(float(f)) + 1e-12 * abs(history[0])
        return z, FitStatus.CONVERGED if near else status, steps, [*history, float(f)]

    def _descend_batches(self, cost: Cost, z: Array, scale: Array) -> tuple[Array, Array, int]:
        """The last z, the mean cost of each epoch, and the number of steps."""
        rows = np.flatnonzero(np.asarray(cost.problem.present))
        size = min(self.batch_size or rows.size, rows.size)
        batches = min(rows.size // size, self.max_steps)
        epochs = self.max_steps // batches
        keys = jax.random.split(jax.random.key(self.seed), epochs)
        z, costs = descend_batches(cost, z, scale, self.optimiser, jnp.asarray(rows), (batches, size), keys)
        return z, costs, epochs * batches


def _draw_samples(cost: Cost) -> Cost:
    """The same cost over some chunks of samples, drawn at random, in place of all samples."""
    problem = cost.problem
    drawn = problem.draw_chunks(_SCALING_CHUNKS)
    share = np.sum(problem.present) / max(np.sum(drawn.present), 1)
    drawn = drawn.with_samples(drawn.samples, drawn.present * share)
    return eqx.tree_at(lambda c: c.problem, cost, drawn)


@eqx.filter_jit
def _curvatures(cost: Cost, z: Array) -> Array:
    return cost.curvatures(z)


@eqx.filter_jit
def _value_and_gradient(cost: Cost, z: Array) -> tuple[Array, Array]:
    return cost.value_and_gradient(z)


def _scales(curvatures: Array) -> Array:
    """Steps of each coordinate whose effects on the residual are of equal size."""
    return 1 / jnp.sqrt(curvatures + 1e-9 * jnp.max(curvatures))


@eqx.filter_jit
def _descend(
    cost: Cost, z: Array, scale: Array, optimiser: optax.GradientTransformation, max_steps: int, rtol: Array
) -> tuple[Array, Array, Array]:
    """The best z, the costs, and whether they ceased to fall.

    Costs cease to fall if the least one changed by less than rtol over the last tenth of the steps.
    """
    window = max(max_steps // 10, 10)

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
    return z + scale * end[2], end[4], end[7]


@eqx.filter_jit
def descend_batches(
    cost: Cost,
    z: Array,
    scale: Array,
    optimiser: optax.GradientTransformation,
    rows: Array,
    shape: tuple[int, int],
    keys: Array,
) -> tuple[Array, Array]:
    """The last z, and the mean cost of each epoch, of a descent over mini-batches.

    `rows` are the positions of the samples in the chunks, `shape` is (batches, samples of a batch) of an epoch, and
    `keys` are the keys of the epochs.
    """
    problem = cost.problem
    batches, size = shape

    def batch_cost(chosen) -> Cost:
        take = lambda x: x.reshape(-1, *x.shape[2:])[chosen][None]
        present = jnp.full((1, size), rows.size / size, problem.present.dtype)  # the batch stands for all samples
        batch = problem.with_samples(jax.tree.map(take, problem.samples), present)
        return Cost(batch, None, cost.chart, cost.prior, cost.start, cost.weights, cost.loss)

    def step(carry, chosen):
        y, inner = carry
        f, g = batch_cost(chosen).value_and_gradient(z + scale * y)
        update, inner = optimiser.update(scale * g, inner, y)
        return (jnp.asarray(optax.apply_updates(y, update)), inner), f

    def epoch(carry, key):
        order = jax.random.permutation(key, rows)[: batches * size].reshape(batches, size)
        carry, costs = jax.lax.scan(step, carry, order)
        return carry, jnp.mean(costs)

    y = jnp.zeros_like(z)
    (y, _), costs = jax.lax.scan(epoch, (y, optimiser.init(y)), keys)
    return z + scale * jnp.asarray(y), costs
