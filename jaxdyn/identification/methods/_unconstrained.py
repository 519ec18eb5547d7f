"""The cost of a fit as a function of unconstrained coordinates, in which all links are bodies and all bounds kept."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._types import Array, Float
from jaxdyn.identification.methods._contract import Estimate, Weights
from jaxdyn.identification.methods._evaluation import Evaluator
from jaxdyn.identification.methods._prior import GeometricPrior, is_not_inertial, prior_scale
from jaxdyn.identification.methods._reweighting import solve_reweighted
from jaxdyn.identification.methods._status import FitStatus
from jaxdyn.identification.parameters import (
    Chart,
    Parameters,
    check_bodies,
    feasible_point,
    log_cholesky_factor,
    make_chart,
    pseudo_inertia,
)
from jaxdyn.identification.residuals import AbstractLoss, LeastSquaresProblem, NormalEquations


class Cost(eqx.Module):
    """`|W r|^2 / 2 + prior` as a function of the unconstrained coordinates z."""

    problem: LeastSquaresProblem
    #: the normal equations of a linear residual, or None
    known: NormalEquations | None
    chart: Chart
    prior: GeometricPrior
    start: Float[Array, " n"]
    weights: Float[Array, " channels"]
    loss: AbstractLoss | None

    def quadratic_model(self, z: Float[Array, " n"]) -> tuple[Array, Array, Array]:
        """Cost, gradient and Gauss-Newton matrix with respect to z."""
        x = self.chart.x(z)
        sums = self.problem.normal_equations(x, self.weights, self.loss) if self.known is None else self.known.at(x)
        h, g, _ = sums.weighted(self.weights)
        j = jax.jacfwd(self.chart.x)(z)
        prior, gradient, curvature = self._prior_model(z, x, j)
        return sums.cost(self.weights) + prior, j.T @ g + gradient, j.T @ h @ j + curvature

    def value_and_gradient(self, z: Float[Array, " n"]) -> tuple[Array, Array]:
        """Cost and gradient with respect to z, without a Jacobian of the residuals."""
        if self.problem.forward:  # derivatives of simulations are by forward mode
            return self.quadratic_model(z)[:2]
        x, pull = jax.vjp(self.chart.x, z)
        if self.known is None:
            value, g = self.problem.value_and_gradient(x, self.weights, self.loss)
        else:
            sums = self.known.at(x)
            value, g = sums.cost(self.weights), sums.weighted(self.weights)[1]
        prior = lambda x: self.prior.cost(self.problem.parameters, self.start, x)
        prior_value, prior_gradient = jax.value_and_grad(prior)(x)
        return value + prior_value, pull(g + prior_gradient)[0]

    def curvatures(self, z: Float[Array, " n"]) -> Array:
        """The diagonal of the Gauss-Newton matrix with respect to z, without the matrix."""
        data = self.problem.column_squares(self.chart.x, z, self.weights, self.loss)
        return data + self._prior_curvatures(z)

    def _prior_curvatures(self, z: Array) -> Array:
        """The diagonal of the curvature of `_prior_model`: links are independent, all other coordinates as well."""
        parameters, strength = self.problem.parameters, self.prior.strength
        scale = prior_scale(parameters, self.start)
        slope = jax.jvp(self.chart.x, (z,), (jnp.ones_like(z),))[1]
        total = jnp.where(is_not_inertial(parameters), self.prior.spread * (slope / scale) ** 2, 0)
        ten = parameters.inertial
        if not len(ten):
            return total
        factors = jnp.linalg.cholesky(pseudo_inertia(self.start[ten]))
        relative = lambda factor, y: jnp.linalg.solve(factor, log_cholesky_factor(y))
        dr = jax.vmap(jax.jacfwd(relative, argnums=1))(factors, z[ten])
        own = 2 * strength * jnp.sum(dr**2, axis=(1, 2)).at[:, :4].add(1)
        return total.at[ten].add(own)

    def _prior_model(self, z: Array, x: Array, j: Array) -> tuple[Array, Array, Array]:
        """Value, gradient and curvature of the prior in z, in which `log det P` is linear.

        `strength (|L_0^-1 U|^2 - 2 sum d) + ...`, with `P_0 = L_0 L_0^T`, `P = U U^T` and d the logarithms of the
        diagonal of U.
        """
        parameters, strength = self.problem.parameters, self.prior.strength
        scale = prior_scale(parameters, self.start)
        weight = jnp.where(is_not_inertial(parameters), self.prior.spread / scale**2, 0)
        change = x - self.start
        value, gradient = jnp.sum(weight * change**2) / 2, j.T @ (weight * change)
        curvature = j.T @ (weight[:, None] * j)
        ten = parameters.inertial
        if not len(ten):
            return value, gradient, curvature
        diagonals = ten[:, :4]
        factors = jnp.linalg.cholesky(pseudo_inertia(self.start[ten]))
        log_det = 2 * jnp.sum(jnp.log(jnp.diagonal(factors, axis1=1, axis2=2)))
        relative = lambda y: jnp.linalg.solve(factors, jax.vmap(log_cholesky_factor)(y[ten])).reshape(-1)
        r, dr = relative(z), jax.jacfwd(relative)(z)
        value = value + strength * (r @ r - 2 * jnp.sum(z[diagonals]) + log_det - 4 * len(ten))
        gradient = gradient + 2 * strength * (dr.T @ r).at[diagonals].add(-1)
        log_curvature = jnp.zeros_like(z).at[diagonals].set(2 * strength)
        return value, gradient, curvature + 2 * strength * dr.T @ dr + jnp.diag(log_curvature)


def predicted_reduction(gradient: Array, matrix: Array) -> Array:
    """The reduction that the quadratic model predicts for `dz = -(A + |g| 1)^-1 g`, whatever the actual damping was.

    Near a minimum dz is the Gauss-Newton step. At an active bound, where the Gauss-Newton step in z grows without
    limit, its norm is at most one (Fan and Yuan 2005, Computing 74(1)).
    """
    size = jnp.sqrt(gradient @ gradient)
    damped = matrix + size * jnp.eye(gradient.shape[0], dtype=gradient.dtype)
    scale = 1 / jnp.sqrt(jnp.diagonal(damped) + jnp.finfo(gradient.dtype).tiny)
    ridge = 8 * jnp.finfo(gradient.dtype).eps * jnp.eye(gradient.shape[0], dtype=gradient.dtype)
    dz = -scale * jnp.linalg.solve(damped * scale[:, None] * scale + ridge, scale * gradient)
    return -(gradient @ dz) - dz @ matrix @ dz / 2


def solve_unconstrained(
    problem: LeastSquaresProblem,
    prior: GeometricPrior,
    weights: Weights,
    tell: Callable[[str], None],
    minimise: Callable[[Cost, Array], tuple[Array, FitStatus, int, list[float]]],
    passes: int,
    loss: AbstractLoss | None,
) -> Estimate:
    """The estimate by a minimisation `(cost, z) -> (z, status, steps, costs)`, with reweighted channels."""
    parameters: Parameters = problem.parameters
    check_bodies(parameters, inertial_bounds=False)
    dtype = parameters.read().dtype
    start = feasible_point(parameters, np.asarray(parameters.read(), float))
    evaluator = Evaluator(problem, start, tell)
    chart = make_chart(parameters, start)

    def minimise_over_x(sums, x, weights, loss) -> tuple[np.ndarray, FitStatus, int, list[float]]:
        known = None
        if evaluator.is_linear and loss is None:
            known = jax.tree.map(lambda y: jnp.asarray(y, dtype), evaluator.first)
        cost = Cost(problem, known, chart, prior, jnp.asarray(start, dtype), jnp.asarray(weights, dtype), loss)
        z, status, steps, history = minimise(cost, chart.z(jnp.asarray(x, dtype)))
        return np.asarray(chart.x(z), float), status, steps, history

    return solve_reweighted(evaluator, minimise_over_x, start, weights, passes, loss)
