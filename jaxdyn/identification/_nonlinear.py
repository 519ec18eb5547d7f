"""Nonlinear least squares and first-order descent over free numbers: bodies and bounds by transformation."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxdyn.identification._fit_problem import AbstractLoss, Problem
from jaxdyn.identification._methods import CHUNK, AbstractMethod, Data, effort_rows, reweighted
from jaxdyn.identification._parameters import (
    Chart,
    Parameters,
    chart,
    check_bodies,
    inside,
    pseudo_inertia,
    upper_factor,
)
from jaxdyn.identification._physical import GeometricPrior, others, prior_width
from jaxdyn.identification._result import FitStatus


class Cost(eqx.Module):
    """`|W r|^2 / 2 + prior` as a function of z, by normal equations: of all samples, or those of a linear residual."""

    problem: Problem
    #: the sums of a linear residual, or None
    known: Any
    chart: Chart
    prior: GeometricPrior
    start: Any
    weights: Any
    loss: AbstractLoss | None

    def at(self, z):
        """Cost, gradient and Gauss-Newton matrix in z."""
        x = self.chart.x(z)
        sums = self.problem.normal(x, self.weights, self.loss) if self.known is None else self.known.at(x)
        h, g, _ = sums.weighted(self.weights)
        j = jax.jacfwd(self.chart.x)(z)
        belief, slope, curvature = self._belief(z, x, j)
        return sums.cost(self.weights) + belief, j.T @ g + slope, j.T @ h @ j + curvature

    def slope(self, z):
        """Cost and gradient in z alone, without a Jacobian of the residuals."""
        if self.problem.forward:  # derivatives of simulations are by forward mode
            return self.at(z)[:2]
        x, pull = jax.vjp(self.chart.x, z)
        if self.known is None:
            value, g = self.problem.slope(x, self.weights, self.loss)
        else:
            sums = self.known.at(x)
            value, g = sums.cost(self.weights), sums.weighted(self.weights)[1]
        belief = lambda x: self.prior.cost(self.problem.parameters, self.start, x)
        more, down = jax.value_and_grad(belief)(x)
        return value + more, pull(g + down)[0]

    def _belief(self, z, x, j):
        """The prior in z, where `log det P` is linear: `strength (|L_0^-1 U|^2 - 2 sum d) + ...`, `P_0 = L_0 L_0^T`."""
        parameters, strength = self.problem.parameters, self.prior.strength
        width = prior_width(parameters, self.start)
        weight = jnp.where(others(parameters), self.prior.spread / width**2, 0)
        off = x - self.start
        value, slope = jnp.sum(weight * off**2) / 2, j.T @ (weight * off)
        curvature = j.T @ (weight[:, None] * j)
        ten = parameters.inertial
        if not len(ten):
            return value, slope, curvature
        diagonals = ten[:, :4]
        factors = jnp.linalg.cholesky(pseudo_inertia(self.start[ten]))
        logs = 2 * jnp.sum(jnp.log(jnp.diagonal(factors, axis1=1, axis2=2)))
        relative = lambda y: jnp.linalg.solve(factors, jax.vmap(upper_factor)(y[ten])).reshape(-1)
        r, dr = relative(z), jax.jacfwd(relative)(z)
        value = value + strength * (r @ r - 2 * jnp.sum(z[diagonals]) + logs - 4 * len(ten))
        slope = slope + 2 * strength * (dr.T @ r).at[diagonals].add(-1)
        log_curvature = jnp.zeros_like(z).at[diagonals].set(2 * strength)
        return value, slope, curvature + 2 * strength * dr.T @ dr + jnp.diag(log_curvature)


#: what may be left to gain where a step gained less than the tolerance, in tolerances
_ENOUGH = 1e3


class _State(NamedTuple):
    z: Any
    cost: Any
    gradient: Any
    matrix: Any
    damping: Any
    steps: Any
    history: Any
    #: 0 while running, then 1 + FitStatus
    ended: Any


@eqx.filter_jit
def levenberg_marquardt(cost: Any, z, rtol, max_steps: int) -> _State:
    """Steps `(A + mu diag A) dz = -g`, mu by the gain (Nielsen 1999), until nothing is to be gained: `promised`."""
    f, g, a = cost.at(z)
    history = jnp.full(max_steps + 1, jnp.nan, z.dtype).at[0].set(f)
    bad = jnp.where(jnp.isfinite(f), 0, 1 + FitStatus.NOT_FINITE)
    first = _State(z, f, g, a, jnp.asarray(1e-3, z.dtype), jnp.asarray(0), history, bad)
    return jax.lax.while_loop(
        lambda s: (s.ended == 0) & (s.steps < max_steps), lambda s: _step(cost, s, rtol, first.cost), first
    )


def promised(gradient, matrix):
    """What the quadratic model would gain by `dz = -(A + |g| 1)^-1 g`, whatever damping the steps had to take.

    Near a minimum that is the step of Gauss and Newton; where a bound is active it is none longer than one in z,
    while theirs grows without end (Fan and Yuan 2005, Computing 74(1)).
    """
    size = jnp.sqrt(gradient @ gradient)
    whole = matrix + size * jnp.eye(gradient.shape[0], dtype=gradient.dtype)
    scale = 1 / jnp.sqrt(jnp.diagonal(whole) + jnp.finfo(gradient.dtype).tiny)
    ridge = 8 * jnp.finfo(gradient.dtype).eps * jnp.eye(gradient.shape[0], dtype=gradient.dtype)
    dz = -scale * jnp.linalg.solve(whole * scale[:, None] * scale + ridge, scale * gradient)
    return -(gradient @ dz) - dz @ matrix @ dz / 2


def _step(cost: Any, s: _State, rtol, initial) -> _State:
    floor = 1e-9 * jnp.max(jnp.diagonal(s.matrix)) + jnp.finfo(s.z.dtype).tiny
    scale = 1 / jnp.sqrt(jnp.diagonal(s.matrix) + floor)
    system = s.matrix * scale[:, None] * scale + s.damping * jnp.eye(s.z.shape[0], dtype=s.z.dtype)
    dz = -scale * jnp.linalg.solve(system, scale * s.gradient)
    z = s.z + dz
    f, g, a = cost.at(z)
    expected = -(s.gradient @ dz) - dz @ s.matrix @ dz / 2
    gain = (s.cost - f) / jnp.where(expected == 0, 1, expected)
    better = jnp.isfinite(f) & (f <= s.cost)
    limit = rtol * jnp.abs(s.cost) + 64 * jnp.finfo(z.dtype).eps * jnp.abs(initial)
    left = promised(s.gradient, s.matrix)
    still = (better & (s.cost - f <= limit) & (gain > 0.1)) | (s.damping > 1e12)
    done = (left <= limit) | (still & (left <= _ENOUGH * limit))
    stuck = ~better & (s.damping > 1e12)
    ended = jnp.where(done, 1 + FitStatus.CONVERGED, jnp.where(stuck, 1 + FitStatus.STALLED, 0))
    shrink = jnp.maximum(1 / 3, 1 - (2 * gain - 1) ** 3)
    damping = jnp.where(better, jnp.clip(s.damping * shrink, 1e-15, None), s.damping * 4)
    pick = lambda new, old: jax.tree.map(lambda x, y: jnp.where(better, x, y), new, old)
    z, f, g, a = pick((z, f, g, a), (s.z, s.cost, s.gradient, s.matrix))
    steps = s.steps + 1
    return _State(z, f, g, a, damping, steps, s.history.at[steps].set(f), ended)


def _outcome(ended) -> FitStatus:
    return FitStatus(int(ended) - 1) if int(ended) else FitStatus.MAX_STEPS


class LevenbergMarquardt(AbstractMethod):
    """Damped Gauss-Newton steps with exact Jacobians, over free numbers in which all values are bodies and in bounds.

    Links go by the log-Cholesky factor of the pseudo-inertia, bounded numbers by softplus. Of a residual that is linear
    in the parameters the normal equations are summed once, so that a step costs nothing; of others they are
    summed anew in chunks. `starts` of them begin at random around the numbers before the fit, by `vmap`, with a
    standard deviation `spread` in free numbers, and the best is taken. Levenberg 1944, Marquardt 1963.
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
        return effort_rows(parameters, logs, self.chunk)

    def solve(self, problem, prior, weights, tell):
        def minimise(cost: Cost, z):
            zs = z[None] + self._offsets(z)
            if self.starts == 1:
                end = levenberg_marquardt(cost, zs[0], self.rtol, self.max_steps)
            else:
                ends = eqx.filter_vmap(lambda y: levenberg_marquardt(cost, y, self.rtol, self.max_steps))(zs)
                costs = np.asarray(ends.cost)
                best = int(np.argmin(np.where(np.isfinite(costs), costs, np.inf)))  # the first where none is finite
                end = jax.tree.map(lambda y: y[best], ends)
            steps = int(end.steps)
            return end.z, _outcome(end.ended), steps, [float(y) for y in np.asarray(end.history[: steps + 1])]

        return _solve_free(problem, prior, weights, tell, minimise, self.reweight, self.loss)

    def _offsets(self, z):
        noise = self.spread * jax.random.normal(jax.random.key(self.seed), (self.starts, z.shape[0]), z.dtype)
        return noise.at[0].set(0)


class FirstOrder(AbstractMethod):
    """Descent along the gradient by any optimiser of optax, over the free numbers of `LevenbergMarquardt`.

    A step costs one pull-back through the residuals, without their Jacobian. Slower than second-order steps wherever
    these work; of use with an optimiser of one's own and with very many parameters. It ends when a tenth of the
    steps gained less than `rtol` of the cost, and has converged if a step of Gauss and Newton from there would gain
    less than `least_gain` of it.
    """

    optimiser: optax.GradientTransformation = eqx.field(static=True)
    max_steps: int = eqx.field(static=True, default=2000)
    rtol: float = 1e-7
    least_gain: float = 1e-5
    reweight: int = eqx.field(static=True, default=1)
    loss: AbstractLoss | None = None
    chunk: int = eqx.field(static=True, default=CHUNK)

    def problem(self, parameters, logs):
        return effort_rows(parameters, logs, self.chunk)

    def solve(self, problem, prior, weights, tell):
        def minimise(cost: Cost, z):
            z, costs, done, f, left = _descend(cost, z, self.optimiser, self.max_steps, self.rtol)
            costs = np.asarray(costs)
            history = [float(y) for y in costs[np.isfinite(costs)]]
            if not (history and np.isfinite(float(f)) and np.isfinite(float(left))):
                return z, FitStatus.NOT_FINITE, len(history), history or [float("nan")]
            status = FitStatus.STALLED if bool(done) else FitStatus.MAX_STEPS
            near = float(left) <= self.least_gain * abs(float(f)) + 1e-12 * abs(history[0])
            return z, FitStatus.CONVERGED if near else status, len(history), [*history, float(f)]

        return _solve_free(problem, prior, weights, tell, minimise, self.reweight, self.loss)


@eqx.filter_jit
def _descend(cost: Cost, z, optimiser, max_steps: int, rtol):
    """The best z, the costs, whether the best changed by less than rtol over the last tenth of the steps, and at the
    best its cost and what a step of second order would gain.
    """
    window = max(max_steps // 10, 10)
    a = cost.at(z)[2]
    scale = 1 / jnp.sqrt(jnp.diagonal(a) + 1e-9 * jnp.max(jnp.diagonal(a)))

    def step(carry):
        y, inner, best, least, costs, k, marked, done = carry
        f, g = cost.slope(z + scale * y)
        better = f < least
        best, least = jnp.where(better, y, best), jnp.where(better, f, least)
        update, inner = optimiser.update(scale * g, inner, y)
        check = (k % window) == window - 1
        done = check & (marked - least <= rtol * jnp.abs(marked))
        marked = jnp.where(check, least, marked)
        return optax.apply_updates(y, update), inner, best, least, costs.at[k].set(f), k + 1, marked, done

    y = jnp.zeros_like(z)
    high = jnp.asarray(jnp.inf, z.dtype)
    costs = jnp.full(max_steps, jnp.nan, z.dtype)
    start = (y, optimiser.init(y), y, high, costs, 0, jnp.asarray(jnp.finfo(z.dtype).max), jnp.asarray(False))
    end = jax.lax.while_loop(lambda c: (c[5] < max_steps) & ~c[7], step, start)
    best = z + scale * end[2]
    f, g, a = cost.at(best)
    return best, end[4], end[7], f, promised(g, a)


def _solve_free(problem: Problem, prior, weights, tell, minimise: Callable[..., Any], passes: int, loss):
    """Passes of a minimisation over z, with the weights of the pass before."""
    parameters: Parameters = problem.parameters
    check_bodies(parameters, inertial_bounds=False)
    dtype = parameters.read().dtype
    start = inside(parameters, np.asarray(parameters.read(), float))
    data = Data(problem, start, tell)
    free = chart(parameters, start)

    def step(sums, x, now, robust) -> Any:
        known = None
        if data.linear and robust is None:
            known = jax.tree.map(lambda y: jnp.asarray(y, dtype), data.first)
        cost = Cost(problem, known, free, prior, jnp.asarray(start, dtype), jnp.asarray(now, dtype), robust)
        z, status, steps, history = minimise(cost, free.z(jnp.asarray(x, dtype)))
        return np.asarray(free.x(z), float), status, steps, history

    return reweighted(data, step, start, weights, passes, loss)
