"""The linear solve of constrained motion, factorised once for all right-hand sides.

    M x - A^T lambda = f,    A x = c

with `M = L L^T`, `W = L^-1 A^T` and its pseudo-inverse `W^+`:

    x = L^-T (y0 - (W^+)^T r),   lambda = -W^+ (W^+)^T r,   y0 = L^-1 f,   r = W^T y0 - c.

Accelerations, impulses and projections onto the constraint are solutions x of this system. Where constraints are
redundant or rows of A vanish, x minimises `|x - M^-1 f|_M` among the least-squares solutions of `A x = c`, and lambda
is the multiplier of least norm.
"""

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from jaxdyn._numerics import default_tolerance, pseudo_inverse
from jaxdyn._types import Array, Float, Int


class KKT(eqx.Module):
    """Factorisation of the KKT system `M x - A^T lambda = f`, `A x = c`."""

    jacobian: Float[Array, "rows nv"]
    #: L, lower triangular
    factor: Float[Array, "nv nv"]
    #: `W^+`
    inverse: Float[Array, "rows nv"]
    #: number of independent rows
    rank: Int[Array, ""]

    @classmethod
    def factorise(cls, mass, jacobian, tolerance=None) -> "KKT":
        """Factorises `M` (positive definite) and `A`."""
        factor = jnp.linalg.cholesky(mass)
        if jacobian.shape[0] == 0:
            return cls(jacobian, factor, jacobian, jnp.zeros((), jnp.int32))
        w = solve_triangular(factor, jacobian.T, lower=True)
        tolerance = default_tolerance(w.dtype) if tolerance is None else tolerance
        inverse, rank = pseudo_inverse(w, jnp.asarray(tolerance, w.dtype))
        return cls(jacobian, factor, inverse, rank)

    def solve(self, force, target):
        """`(x, lambda)` for the right-hand sides f and c."""
        y = solve_triangular(self.factor, force, lower=True)
        excess = self._scaled_jacobian().T @ y - target
        half = self.inverse.T @ excess
        x = solve_triangular(self.factor, y - half, lower=True, trans=1)
        return x, -self.inverse @ half

    def project(self, x, target):
        """The point of `A x = c` nearest to x in the metric of M, and the multiplier (impulse) of that projection."""
        half = self.inverse.T @ (self.jacobian @ x - target)
        return x - solve_triangular(self.factor, half, lower=True, trans=1), -self.inverse @ half

    def minimum_norm(self, target):
        """The solution of `A x = c` of least norm in the metric of M."""
        return solve_triangular(self.factor, self.inverse.T @ target, lower=True, trans=1)

    def project_force(self, force):
        """`P f`, the part of a generalised force that accelerates the robot: `P = 1 - A^T (A M^-1 A^T)^+ A M^-1`."""
        return self.factor @ self.free_component(force)

    def free_component(self, force):
        """`y = (1 - W W^+) L^-1 f`, with `y^T y = f^T N f` for the inverse inertia N of the constrained robot."""
        y = solve_triangular(self.factor, force, lower=True)
        return y - self._scaled_jacobian() @ (self.inverse @ y)

    def _scaled_jacobian(self):
        """`W = L^-1 A^T`."""
        if self.jacobian.shape[0] == 0:  # LAPACK's batched solves do not take an empty matrix
            return self.jacobian.T
        return solve_triangular(self.factor, self.jacobian.T, lower=True)
