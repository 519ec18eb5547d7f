"""Distance of a point from an implicit surface, by projection.

The nearest point x of `phi = 0` to p and the multiplier l solve

    x + l grad phi(x) = p,   phi(x) = 0,   and the distance is l |grad phi(x)|.

A fixed number of safeguarded Newton steps, which are not differentiated, finds the solution. Further steps with a
constant matrix carry the derivatives, as in `_search`.
"""

import jax
import jax.numpy as jnp
from jax import lax

from jaxdyn.contact.geometry._direction import length_and_direction
from jaxdyn.contact.geometry._search import ORDER, stop_derivatives

STEPS = 12


def project(phi, p):
    """Signed distance of `p` from the surface and the unit normal at the nearest point."""
    x, multiplier, inverse, is_regular = lax.stop_gradient(_iterate(stop_derivatives(phi), lax.stop_gradient(p)))
    for _ in range(ORDER):
        step = -inverse @ _residual(phi, p, x, multiplier)
        x, multiplier = x + step[:3], multiplier + step[3]
    value, gradient = jax.value_and_grad(phi)(x)
    slope, n = length_and_direction(gradient, axis=2)
    is_flat = jnp.abs(slope) < jnp.finfo(p.dtype).tiny ** 0.125
    first_order = value / jnp.where(is_flat, 1, slope)
    return jnp.where(is_regular, multiplier * slope, first_order), n


def _residual(phi, p, x, multiplier):
    value, gradient = jax.value_and_grad(phi)(x)
    return jnp.append(x + multiplier * gradient - p, value)


def _matrix(phi, x, multiplier):
    """Derivative of the residual with respect to (x, l)."""
    gradient = jax.grad(phi)(x)
    rows = jnp.concatenate([jnp.eye(3, dtype=x.dtype) + multiplier * jax.hessian(phi)(x), gradient[None]])
    return jnp.concatenate([rows, jnp.append(gradient, 0)[:, None]], axis=1)


def _iterate(phi, p):
    """The nearest point and its multiplier, the inverse matrix there, and whether the point is a local minimum.

    If it is not, the point is `p`, and multiplier and inverse matrix are zero.
    """

    def step(_, state):
        x, multiplier = state
        change = jnp.linalg.solve(_matrix(phi, x, multiplier), _residual(phi, p, x, multiplier))
        newton = x - change[:3], multiplier - change[3]
        plane = _project_onto_tangent_plane(phi, p, x)
        is_better = _error(phi, p, *newton) < _error(phi, p, x, multiplier)  # false where Newton's step is not finite
        return tuple(jnp.where(is_better, a, b) for a, b in zip(newton, plane, strict=True))

    x, multiplier = lax.fori_loop(0, STEPS, step, _project_onto_tangent_plane(phi, p, p))
    matrix = _matrix(phi, x, multiplier)
    is_nearest = _is_nearest(phi, p, x, multiplier, matrix)
    inverse = jnp.linalg.inv(jnp.where(is_nearest, matrix, jnp.eye(4, dtype=p.dtype)))
    choose = lambda a, b: jnp.where(is_nearest, a, b)
    return choose(x, p), choose(multiplier, 0), choose(inverse, 0), is_nearest


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


def _is_nearest(phi, p, x, multiplier, matrix):
    """Whether the equations of (x, l) hold, on the side of `p`, before the centres of curvature."""
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
