"""The one linear solve of constrained motion, factorised once and used for all of it.

    M x - A^T lambda = f,    A x = c

with `M = L L^T`, `W = L^-1 A^T` and its pseudo-inverse `W^+`:

    x = L^-T (y0 - (W^+)^T r),   lambda = -W^+ (W^+)^T r,   y0 = L^-1 f,   r = W^T y0 - c.

Accelerations, impulses and projections onto the constraint are such x. Rows of A may depend on each other or
vanish: x is then still the one of least `|x - M^-1 f|_M`, and lambda the shortest of those that give it.
"""

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from jaxdyn._numerics import default_tolerance, pseudo_inverse
from jaxdyn._types import Array, Float


class KKT(eqx.Module):
    """Factors of `M` and `A`; see the module's text."""

    jacobian: Float[Array, "rows nv"]
    #: L, lower triangular
    factor: Float[Array, "nv nv"]
    #: `W^+`
    inverse: Float[Array, "rows nv"]
    #: number of independent rows
    rank: Array

    @classmethod
    def of(cls, mass, jacobian, tolerance=None) -> "KKT":
        """Factorises `M` (positive definite) and `A`."""
        factor = jnp.linalg.cholesky(mass)
        w = solve_triangular(factor, jacobian.T, lower=True)
        tolerance = default_tolerance(w.dtype) if tolerance is None else tolerance
        inverse, rank = pseudo_inverse(w, jnp.asarray(tolerance, w.dtype))
        return cls(jacobian, factor, inverse, rank)

    def solve(self, force, target):
        """`(x, lambda)` for the right-hand sides f and c."""
        y = solve_triangular(self.factor, force, lower=True)
        excess = self._rows().T @ y - target
        half = self.inverse.T @ excess
        x = solve_triangular(self.factor, y - half, lower=True, trans=1)
        return x, -self.inverse @ half

    def project(self, x, target):
        """The point of `A x = c` nearest to x in the metric of M, and the impulse that leads there."""
        half = self.inverse.T @ (self.jacobian @ x - target)
        return x - solve_triangular(self.factor, half, lower=True, trans=1), -self.inverse @ half

    def least(self, target):
        """The shortest x, in the metric of M, with `A x = c`."""
        return solve_triangular(self.factor, self.inverse.T @ target, lower=True, trans=1)

    def allowed(self, force):
        """`P f`, what of a generalised force is not taken up by the constraint: `P = 1 - A^T (A M^-1 A^T)^+ A M^-1`."""
        return self.factor @ self.admitted(force)

    def admitted(self, force):
        """`(1 - W W^+) L^-1 f`, whose square is `f^T N f` with the inverse inertia N of the constrained robot."""
        y = solve_triangular(self.factor, force, lower=True)
        return y - self._rows() @ (self.inverse @ y)

    def _rows(self):
        return solve_triangular(self.factor, self.jacobian.T, lower=True)
