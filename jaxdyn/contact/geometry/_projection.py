"""Distance of a point from an implicit surface, by projection.

The nearest point x of `phi = 0` to p and the multiplier l solve

    x + l grad phi(x) = p,   phi(x) = 0,   and the distance is l |grad phi(x)|.

A fixed number of safeguarded Newton steps without derivatives finds the solution; two further steps carry derivatives,
as in `_search`.
"""

import jax
import jax.numpy as jnp
from jax import lax

from jaxdyn.contact.geometry._direction import length_and_direction
from jaxdyn.contact.geometry._search import stop_derivatives

STEPS = 12


def project(phi, p):
    """Signed distance of `p` from the surface and the unit normal at the nearest point."""
    x, multiplier, is_regular = lax.stop_gradient(_iterate(stop_derivatives(phi), lax.stop_gradient(p)))
    x, multiplier = jnp.where(is_regular, x, p), jnp.where(is_regular, multiplier, 0)
    for _ in range(2):
        dx, dl = _newton_step(phi, p, x, multiplier, is_regular)
        x, multiplier = x + dx, multiplier + dl
    value, gradient = jax.value_and_grad(phi)(x)
    slope, n = length_and_direction(gradient, axis=2)
    is_flat = jnp.abs(slope) < jnp.finfo(p.dtype).tiny ** 0.125
    first_order = value / jnp.where(is_flat, 1, slope)
    return jnp.where(is_regular, multiplier * slope, first_order), n


def _newton_step(phi, p, x, multiplier, is_regular):
    """The Newton step of (x, l); zero where the matrix is not regular."""
    matrix, residual = _system(phi, p, x, multiplier)
    step = -jnp.linalg.solve(jnp.where(is_regular, matrix, jnp.eye(4, dtype=p.dtype)), residual)
    step = jnp.where(is_regular, step, 0)
    return step[:3], step[3]


def _system(phi, p, x, multiplier):
    """Matrix and residual of the equations of (x, l)."""
    gradient, hessian = jax.grad(phi)(x), jax.hessian(phi)(x)
    rows = jnp.concatenate([jnp.eye(3, dtype=p.dtype) + multiplier * hessian, gradient[None]])
    matrix = jnp.concatenate([rows, jnp.append(gradient, 0)[:, None]], axis=1)
    return matrix, jnp.append(x + multiplier * gradient - p, phi(x))


def _iterate(phi, p):
    """The nearest point, its multiplier, and whether it is the nearest of its neighbourhood."""

    def step(_, state):
        x, multiplier = state
        matrix, residual = _system(phi, p, x, multiplier)
        change = jnp.linalg.solve(matrix, residual)
        newton = x - change[:3], multiplier - change[3]
        plane = _project_onto_tangent_plane(phi, p, x)
        is_better = _error(phi, p, *newton) < _error(phi, p, x, multiplier)  # false where Newton's step is not finite
        return tuple(jnp.where(is_better, a, b) for a, b in zip(newton, plane, strict=True))

    x, multiplier = lax.fori_loop(0, STEPS, step, _project_onto_tangent_plane(phi, p, p))
    return x, multiplier, _is_nearest(phi, p, x, multiplier)


def _project_onto_tangent_plane(phi, p, x):
    """Projection of `p` onto the surface linearised at `x`, and its multiplier."""
    value, gradient = jax.value_and_grad(phi)(x)
    square = gradient @ gradient
    multiplier = (value + gradient @ (p - x)) / jnp.where(square == 0, 1, square)
    return p - multiplier * gradient, multiplier


def _error(phi, p, x, multiplier):
    """Square of the distance in the equations of (x, l), m^2."""
    value, gradient = jax.value_and_grad(phi)(x)
    across = x + multiplier * gradient - p
    square = gradient @ gradient
    return across @ across + value**2 / jnp.where(square == 0, 1, square)


def _is_nearest(phi, p, x, multiplier):
    """Whether the equations of (x, l) hold, on the side of `p`, before the centres of curvature."""
    matrix, _ = _system(phi, p, x, multiplier)
    gradient = matrix[3, :3]
    square = gradient @ gradient
    n = gradient / jnp.sqrt(jnp.where(square == 0, 1, square))
    # 1 + distance times curvature, for both principal curvatures: their sum and their product
    total = jnp.trace(matrix[:3, :3]) - n @ matrix[:3, :3] @ n
    product = -jnp.linalg.det(matrix) / jnp.where(square == 0, 1, square)
    eps = jnp.finfo(p.dtype).eps
    is_solution = _error(phi, p, x, multiplier) <= eps * (p @ p + multiplier**2 * square)
    is_before_centres = (product > jnp.sqrt(eps)) & (total > 0) & (square > 0)
    return is_solution & is_before_centres & (multiplier * phi(p) >= 0)
