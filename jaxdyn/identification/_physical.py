"""Least squares over bodies: the sum of a quadratic and of a divergence from a prior, solved by an interior point."""

from typing import Any, NamedTuple

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


#: weight of the barrier at bounds beside that of the prior: so little that what no log shows stays at the prior
_AT_BOUNDS = 1e-4
#: the ten numbers whose pseudo-inertia is the identity
_UNIT = np.array([1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 2.0, 0.0, 2.0])


def _relative(parameters: Parameters, x0: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`x = T y` with `P = L_0 Q L_0^T` for each link, Q being the pseudo-inertia of y and `P_0 = L_0 L_0^T`: T, `T^-1`,
    and y at x_0, where Q is the identity. However thin a body, numbers are then of one size.
    """
    basis = pseudo_inertia_basis()
    read = np.linalg.pinv(basis.reshape(10, 16).T)
    turned = lambda l: read @ np.einsum("ab,kbc,dc->adk", l, basis, l).reshape(16, 10)
    there, back, y0 = np.eye(x0.size), np.eye(x0.size), x0.copy()
    for rows in parameters.inertial:
        factor = np.linalg.cholesky(np.einsum("k,kab->ab", x0[rows], basis))
        there[np.ix_(rows, rows)], back[np.ix_(rows, rows)] = turned(factor), turned(np.linalg.inv(factor))
        y0[rows] = _UNIT
    return there, back, y0


class _Barrier:
    """The divergence with all its derivatives, and the like of it for bounds, in the numbers y of `_relative`."""

    def __init__(self, parameters: Parameters, x0: np.ndarray, there: np.ndarray, y0: np.ndarray):
        self.ten = parameters.inertial
        self.others = others(parameters)
        self.x0 = y0
        self.basis = pseudo_inertia_basis()
        self.width = np.asarray(prior_width(parameters, x0))
        self.linear = np.trace(self.basis, axis1=1, axis2=2)
        # slacks: `sign (x - bound)` of all that is bounded, over its value at x_0
        sides = [(1.0, parameters.lower), (-1.0, parameters.upper)]
        rows = [(sign * there[k], sign * bound[k]) for sign, bound in sides for k in np.flatnonzero(np.isfinite(bound))]
        normal = np.array([row for row, _ in rows]).reshape(-1, x0.size)
        bound = np.array([b for _, b in rows])
        first = normal @ y0 - bound
        self.normal, self.bound = normal / first[:, None], bound / first

    def _p(self, x):
        return np.einsum("lk,kab->lab", x[self.ten], self.basis)

    def _slack(self, x):
        return self.normal @ x - self.bound

    def allows(self, x) -> bool:
        """Whether all bodies and bounds are kept, with something to spare for rounding."""
        p = self._p(x)
        trace = np.trace(p, axis1=1, axis2=2)
        return bool((np.linalg.eigvalsh(p)[:, 0] > 1e-15 * np.abs(trace)).all() and (self._slack(x) > 0).all())

    def value(self, x, bodies, bounds, spread) -> float:
        s = self._slack(x)
        d = np.sum(self.linear * x[self.ten], 1) - np.linalg.slogdet(self._p(x))[1] - 4
        prior = np.sum(np.where(self.others, (x - self.x0) / self.width, 0) ** 2) / 2
        return float(bodies * d.sum() + bounds * np.sum(s - np.log(s) - 1) + spread * prior)

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
        g += bounds * self.normal.T @ (1 - 1 / s)
        h += bounds * (self.normal.T / s**2) @ self.normal
        weight = np.where(self.others, spread / self.width**2, 0)
        g += weight * (x - self.x0)
        h[np.diag_indices(n)] += weight
        return g, h


class Minimum(NamedTuple):
    """Where the convex problem ended."""

    x: np.ndarray
    #: Newton's steps
    steps: int
    #: whether the last Newton step could lower the objective by no more than the barrier's weight or by rounding
    reached: bool


def solve_bodies(
    parameters: Parameters, hessian, gradient, at, x0, prior: GeometricPrior, accuracy: float = np.inf
) -> Minimum:
    """The minimiser of `g.d + d.H d/2 + prior`, `d = x - at`, over bodies and within bounds.

    The problem is convex. It is followed from the prior, its minimiser while the prior's strength is great, down to the
    given strength, by damped Newton steps; the barrier is self-concordant, so few are needed (Boyd and
    Vandenberghe 2004, section 9.6 and 11.3). The barrier raises the minimum by no more than `accuracy`, and by 1e-10 of
    what there was to gain from the prior.
    """
    x0 = inside(parameters, x0)
    there, back, y0 = _relative(parameters, x0)
    hessian, gradient = there.T @ np.asarray(hessian, float) @ there, there.T @ np.asarray(gradient, float)
    at = back @ np.asarray(at, float)
    barrier = _Barrier(parameters, x0, there, y0)
    y, steps = y0.copy(), 0
    start = gradient + hessian @ (y - at)
    spread = max(prior.spread, 1e-12)
    size = np.max((start / np.sqrt(np.diag(hessian) + 1e-300)) ** 2)
    usual = 1e-10 * max(float(size), 1e-12)
    final = max(min(usual, accuracy / (4 * len(y))), 1e-5 * usual)
    weight = max(float(np.abs(start * (np.abs(y) + 1e-3 * parameters.scale)).max()), prior.strength, 1e-9)
    while True:
        strength = (prior.strength + weight, _AT_BOUNDS * weight, spread + weight)
        y, made, decrement = _newton(barrier, hessian, gradient, at, y, strength)
        steps += made
        if weight <= final:
            return Minimum(there @ y, steps, bool(decrement <= max(usual, 1e-6 * prior.strength)))
        weight = max(weight * 0.1, final)


def _newton(barrier: _Barrier, hessian, gradient, at, x, strength) -> tuple[np.ndarray, int, float]:
    """Damped Newton steps; also their number, and twice what a last one was expected to gain."""
    decrement = np.inf

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
            return x, k, decrement
        length = 1.0
        while not barrier.allows(x + length * step):
            length *= 0.5
            if length < 1e-12:
                return x, k, decrement
        while (then := value(x + length * step)) > now - 0.1 * length * decrement + 1e-13 * abs(now):
            length *= 0.5
            if length < 1e-10:
                return x, k, decrement
        x, now = x + length * step, then
    return x, 60, decrement
