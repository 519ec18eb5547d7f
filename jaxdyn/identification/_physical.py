"""Least squares over bodies: the sum of a quadratic and of a divergence from a prior, solved by an interior point."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn.identification._parameters import Parameters, inside, pseudo_inertia_basis


class GeometricPrior(eqx.Module):
    """Belief in the numbers before the fit, with a distance between bodies that no choice of units or axes changes.

    It adds to half the weighted sum of squares, with the pseudo-inertias P of links and P_0 before the fit,

        strength sum_links (tr(P_0^-1 P) - log det(P_0^-1 P) - 4) + spread/2 sum ((x - x_0) / scale)^2

    the first the log-det divergence of Lee, Wensing and Park (2020, IEEE T-RO 36(1), equation 21), near P_0 half
    the square of relative changes: a belief that a link is known to a part s is a strength of `1 / s^2`. The second is
    for all other parameters, by their magnitudes before the fit.
    """

    strength: float = 1e-6
    spread: float = 1e-9

    def cost(self, parameters: Parameters, x0: Any, x: Any) -> Any:
        """The prior's share of the cost, differentiable in x."""
        ten = parameters.inertial
        total = jnp.zeros((), x.dtype)
        if len(ten):
            total = self.strength * jnp.sum(divergence(x[ten], x0[ten]))
        scaled = (x - x0) / prior_width(parameters, x0)
        return total + self.spread / 2 * jnp.sum(jnp.where(others(parameters), scaled, 0) ** 2)


def divergence(ten, prior):
    """`tr(P_0^-1 P) - log det(P_0^-1 P) - 4` for rows of inertial parameters."""
    basis = jnp.asarray(pseudo_inertia_basis(), ten.dtype)
    p, p0 = (jnp.einsum("lk,kab->lab", x, basis) for x in (ten, prior))
    ratio = jnp.linalg.solve(p0, p)
    return jnp.trace(ratio, axis1=1, axis2=2) - jnp.linalg.slogdet(ratio)[1] - 4


def others(parameters: Parameters) -> np.ndarray:
    """Which parameters are not inertial ones."""
    others = np.ones(len(parameters.names), bool)
    others[parameters.inertial.reshape(-1)] = False
    return others


def prior_width(parameters: Parameters, x0):
    """The magnitudes by which deviations from the prior are measured."""
    return jnp.where(x0 != 0, jnp.maximum(jnp.abs(x0), 1e-3 * parameters.scale), parameters.scale)


class _Barrier:
    """The divergence with all its derivatives, and the like of it for lower bounds."""

    def __init__(self, parameters: Parameters, x0: np.ndarray):
        self.ten = parameters.inertial
        self.low = parameters.lower
        self.bounded = np.isfinite(self.low)
        self.others = others(parameters)
        self.x0 = x0
        self.basis = pseudo_inertia_basis()
        self.width = np.asarray(prior_width(parameters, x0))
        self.slack0 = np.where(self.bounded, x0 - np.where(self.bounded, self.low, 0), 1.0)
        p0 = self._p(x0)
        self.linear = np.einsum("lab,kab->lk", np.linalg.inv(p0), self.basis)
        self.constant = np.linalg.slogdet(p0)[1] - 4

    def _p(self, x):
        return np.einsum("lk,kab->lab", x[self.ten], self.basis)

    def _slack(self, x):
        return np.where(self.bounded, x - np.where(self.bounded, self.low, 0), 1.0) / self.slack0

    def allows(self, x) -> bool:
        """Whether all bodies and bounds are kept, with something to spare for rounding."""
        p = self._p(x)
        trace = np.trace(p, axis1=1, axis2=2)
        return bool((np.linalg.eigvalsh(p)[:, 0] > 1e-15 * np.abs(trace)).all() and (self._slack(x) > 0).all())

    def value(self, x, bodies, bounds, spread) -> float:
        s = self._slack(x)
        d = np.sum(self.linear * x[self.ten], 1) - np.linalg.slogdet(self._p(x))[1] + self.constant
        prior = np.sum(np.where(self.others, (x - self.x0) / self.width, 0) ** 2) / 2
        return float(bodies * d.sum() + bounds * np.sum(np.where(self.bounded, s - np.log(s) - 1, 0)) + spread * prior)

    def derivatives(self, x, bodies, bounds, spread):
        n = x.size
        g, h = np.zeros(n), np.zeros((n, n))
        inverse = np.linalg.inv(self._p(x))
        turned = np.einsum("lab,kbc->lkac", inverse, self.basis)
        first = self.linear - np.einsum("lkaa->lk", turned)
        second = np.einsum("lkab,ljba->lkj", turned, turned)
        for rows, a, b in zip(self.ten, first, second, strict=True):
            g[rows] += bodies * a
            h[np.ix_(rows, rows)] += bodies * b
        s = self._slack(x)
        diagonal = np.where(self.bounded, bounds / s**2 / self.slack0**2, 0)
        g += np.where(self.bounded, bounds * (1 - 1 / s) / self.slack0, 0)
        weight = np.where(self.others, spread / self.width**2, 0)
        g += weight * (x - self.x0)
        h[np.diag_indices(n)] += diagonal + weight
        return g, h


def solve_bodies(parameters: Parameters, hessian, gradient, at, x0, prior: GeometricPrior) -> tuple[np.ndarray, int]:
    """The minimiser of `g.d + d.H d/2 + prior`, `d = x - at`, over bodies and within bounds, and Newton's steps.

    The problem is convex. It is followed from the prior, its minimiser while the prior's strength is great, down to the
    given strength, by damped Newton steps; the barrier is self-concordant, so few are needed (Boyd and
    Vandenberghe 2004, section 9.6 and 11.3).
    """
    hessian, gradient = np.asarray(hessian, float), np.asarray(gradient, float)
    x0 = inside(parameters, x0)
    at = np.asarray(at, float)
    barrier = _Barrier(parameters, x0)
    x, steps = x0.copy(), 0
    start = gradient + hessian @ (x - at)
    spread = max(prior.spread, 1e-12)
    scale = np.sqrt(np.diag(hessian) + 1e-300)
    high = max(float(np.abs(start * (np.abs(x) + 1e-3 * parameters.scale)).max()), prior.strength, 1e-9)
    final = 1e-10 * max(float(np.max((start / scale) ** 2)), 1e-12)
    weight = high
    while True:
        strength = (prior.strength + weight, weight, spread + weight)
        x, made = _newton(barrier, hessian, gradient, at, x, strength)
        steps += made
        if weight <= final:
            return x, steps
        weight = max(weight * 0.1, final)


def _newton(barrier: _Barrier, hessian, gradient, at, x, strength) -> tuple[np.ndarray, int]:
    def value(y):
        d = y - at
        return gradient @ d + d @ hessian @ d / 2 + barrier.value(y, *strength)

    now = value(x)
    for k in range(60):
        g, h = barrier.derivatives(x, *strength)
        g, h = g + gradient + hessian @ (x - at), h + hessian
        s = 1 / np.sqrt(np.diag(h))
        step = -s * np.linalg.solve(h * s[:, None] * s + 1e-14 * np.eye(x.size), s * g)
        decrement = -float(g @ step)
        if decrement <= 1e-9 * min(strength[:2]) + 1e-15 * abs(now):
            return x, k
        length = 1.0
        while not barrier.allows(x + length * step):
            length *= 0.5
            if length < 1e-12:
                return x, k
        while (then := value(x + length * step)) > now - 0.1 * length * decrement + 1e-13 * abs(now):
            length *= 0.5
            if length < 1e-10:
                return x, k
        x, now = x + length * step, then
    return x, 60
