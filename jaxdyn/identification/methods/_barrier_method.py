"""Least squares over physically consistent bodies and bounds, by a barrier method with Newton steps."""

from typing import NamedTuple

import numpy as np

from jaxdyn.identification.methods._prior import GeometricPrior, is_not_inertial, prior_scale
from jaxdyn.identification.parameters import Parameters, feasible_point, pseudo_inertia_basis

#: weight of the barrier of bounds relative to that of bodies, so small that unobservable directions stay at the prior
_BOUNDS_WEIGHT = 1e-4
#: the ten parameters whose pseudo-inertia is the identity
_IDENTITY = np.array([1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 2.0, 0.0, 2.0])


def _relative_coordinates(parameters: Parameters, x0: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """T, `T^-1` and `y_0 = T^-1 x_0` of coordinates y relative to the initial bodies, `x = T y`.

    For each link `P = L_0 Q L_0^T`, Q being the pseudo-inertia of y and `P_0 = L_0 L_0^T`; Q is the identity at y_0.
    In these coordinates a thin rod is as well conditioned as a ball.
    """
    basis = pseudo_inertia_basis()
    coefficients = np.linalg.pinv(basis.reshape(10, 16).T)
    congruence = lambda l: coefficients @ np.einsum("ab,kbc,dc->adk", l, basis, l).reshape(16, 10)
    transform, inverse, y0 = np.eye(x0.size), np.eye(x0.size), x0.copy()
    for rows in parameters.inertial:
        factor = np.linalg.cholesky(np.einsum("k,kab->ab", x0[rows], basis))
        transform[np.ix_(rows, rows)] = congruence(factor)
        inverse[np.ix_(rows, rows)] = congruence(np.linalg.inv(factor))
        y0[rows] = _IDENTITY
    return transform, inverse, y0


class _Barrier:
    """Log-det divergence, barrier of bounds and quadratic prior, with derivatives, in relative coordinates y."""

    def __init__(self, parameters: Parameters, x0: np.ndarray, transform: np.ndarray, y0: np.ndarray):
        self.ten = parameters.inertial
        self.is_not_inertial = is_not_inertial(parameters)
        self.y0 = y0
        self.basis = pseudo_inertia_basis()
        self.scale = np.asarray(prior_scale(parameters, x0))
        self.linear = np.trace(self.basis, axis1=1, axis2=2)
        # slacks `sign (x - bound)` of all bounds, relative to their values at x_0
        sides = [(1.0, parameters.lower), (-1.0, parameters.upper)]
        rows = [
            (sign * transform[k], sign * bound[k]) for sign, bound in sides for k in np.flatnonzero(np.isfinite(bound))
        ]
        normal = np.array([row for row, _ in rows]).reshape(-1, x0.size)
        bound = np.array([b for _, b in rows])
        first = normal @ y0 - bound
        self.normal, self.bound = normal / first[:, None], bound / first

    def _pseudo_inertias(self, y: np.ndarray) -> np.ndarray:
        return np.einsum("lk,kab->lab", y[self.ten], self.basis)

    def _slacks(self, y: np.ndarray) -> np.ndarray:
        return self.normal @ y - self.bound

    def is_feasible(self, y: np.ndarray) -> bool:
        """Whether y is strictly inside all bounds and all links are bodies, with a margin for rounding errors."""
        p = self._pseudo_inertias(y)
        trace = np.trace(p, axis1=1, axis2=2)
        return bool((np.linalg.eigvalsh(p)[:, 0] > 1e-15 * np.abs(trace)).all() and (self._slacks(y) > 0).all())

    def value(self, y: np.ndarray, bodies: float, bounds: float, spread: float) -> float:
        """The sum of the three terms with their weights."""
        s = self._slacks(y)
        d = np.sum(self.linear * y[self.ten], 1) - np.linalg.slogdet(self._pseudo_inertias(y))[1] - 4
        prior = np.sum(np.where(self.is_not_inertial, (y - self.y0) / self.scale, 0) ** 2) / 2
        return float(bodies * d.sum() + bounds * np.sum(s - np.log(s) - 1) + spread * prior)

    def derivatives(self, y: np.ndarray, bodies: float, bounds: float, spread: float) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian of `value`."""
        n = y.size
        g, h = np.zeros(n), np.zeros((n, n))
        relative = np.einsum("lab,kbc->lkac", np.linalg.inv(self._pseudo_inertias(y)), self.basis)
        first = self.linear - np.einsum("lkaa->lk", relative)
        second = np.einsum("lkab,ljba->lkj", relative, relative)
        for rows, a, b in zip(self.ten, first, second, strict=True):
            g[rows] += bodies * a
            h[np.ix_(rows, rows)] += bodies * b
        s = self._slacks(y)
        g += bounds * self.normal.T @ (1 - 1 / s)
        h += bounds * (self.normal.T / s**2) @ self.normal
        weight = np.where(self.is_not_inertial, spread / self.scale**2, 0)
        g += weight * (y - self.y0)
        h[np.diag_indices(n)] += weight
        return g, h


class ConvexMinimum(NamedTuple):
    """The result of `minimise_over_bodies`."""

    x: np.ndarray
    #: number of Newton steps
    steps: int
    #: whether the Newton decrement at the end is below the weight of the barrier or rounding errors
    is_converged: bool


def minimise_over_bodies(
    parameters: Parameters,
    hessian: np.ndarray,
    gradient: np.ndarray,
    at: np.ndarray,
    x0: np.ndarray,
    prior: GeometricPrior,
    accuracy: float = np.inf,
) -> ConvexMinimum:
    """Minimises the convex function `g.d + d.H d/2 + prior`, `d = x - at`, over bodies and within bounds.

    The central path is followed from the prior, which is the minimiser for a great strength, down to the given
    strength, by damped Newton steps. The barrier is self-concordant, so few steps are needed (Boyd and Vandenberghe
    2004, sections 9.6 and 11.3). The barrier raises the minimum by at most `accuracy`, and by at most 1e-10 of the
    reduction that is possible from the prior.
    """
    x0 = feasible_point(parameters, x0)
    transform, inverse, y0 = _relative_coordinates(parameters, x0)
    hessian = transform.T @ np.asarray(hessian, float) @ transform
    gradient = transform.T @ np.asarray(gradient, float)
    at = inverse @ np.asarray(at, float)
    barrier = _Barrier(parameters, x0, transform, y0)
    y, steps = y0.copy(), 0
    start = gradient + hessian @ (y - at)
    spread = max(prior.spread, 1e-12)
    size = np.max((start / np.sqrt(np.diag(hessian) + 1e-300)) ** 2)
    default = 1e-10 * max(float(size), 1e-12)
    final = max(min(default, accuracy / (4 * len(y))), 1e-5 * default)
    weight = max(float(np.abs(start * (np.abs(y) + 1e-3 * parameters.scale)).max()), prior.strength, 1e-9)
    while True:
        strength = (prior.strength + weight, _BOUNDS_WEIGHT * weight, spread + weight)
        y, count, decrement = _minimise_by_newton(barrier, hessian, gradient, at, y, strength)
        steps += count
        if weight <= final:
            return ConvexMinimum(transform @ y, steps, bool(decrement <= max(default, 1e-6 * prior.strength)))
        weight = max(weight * 0.1, final)


def _minimise_by_newton(
    barrier: _Barrier,
    hessian: np.ndarray,
    gradient: np.ndarray,
    at: np.ndarray,
    x: np.ndarray,
    strength: tuple[float, float, float],
) -> tuple[np.ndarray, int, float]:
    """Damped Newton steps with a backtracking line search: the minimiser, their number, and the last decrement."""
    decrement = np.inf

    def objective(y):
        d = y - at
        return gradient @ d + d @ hessian @ d / 2 + barrier.value(y, *strength)

    value = objective(x)
    for k in range(60):
        g, h = barrier.derivatives(x, *strength)
        g, h = g + gradient + hessian @ (x - at), h + hessian
        s = 1 / np.sqrt(np.diag(h))
        step = -s * np.linalg.solve(h * s[:, None] * s + 1e-14 * np.eye(x.size), s * g)
        decrement = -float(g @ step)
        if decrement <= 1e-9 * min(strength[:2]) + 1e-15 * abs(value):
            return x, k, decrement
        length = 1.0
        while not barrier.is_feasible(x + length * step):
            length *= 0.5
            if length < 1e-12:
                return x, k, decrement
        while (new := objective(x + length * step)) > value - 0.1 * length * decrement + 1e-13 * abs(value):
            length *= 0.5
            if length < 1e-10:
                return x, k, decrement
        x, value = x + length * step, new
    return x, 60, decrement
