"""Closed forms of a spatial chain with ball joints in z-y-x angles: theorems 6 to 12 and algorithm 1 of Celentano.

L. Celentano, "An Innovative Method for Robots Modeling and Simulation", in "New Approaches in Automation and
Robotics", I-Tech 2008, section 4. The coordinates alpha are the *absolute* z-y-x angles of the links, three a link.

The source uses the symbol R_h in two senses: in equations 37, 38, 41 to 43 and 60 it is the derivative of the rotation
matrix with respect to the h-th angle; in 35, 37, 48, 52, 57 and 58, where it is multiplied by single coordinates xi_h,
it is the derivative of the h-th column of the rotation matrix with respect to the three angles. Its I_hk is the second
moment of mass `integral of xi_h xi_k dm` (equation 39), not the moment of inertia. Misprints: equation 62 has the sign
of the force, not of the gradient, as (60) with (44) shows; in the algorithm below it indices of gamma run to 3 i, not
i.
"""

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn._types import Array, Float
from jaxdyn.formulations._formulation import AbstractFormulation, combine_terms, external_efforts
from jaxdyn.formulations._momentum_equation import AbstractGradient, ExactGradient
from jaxdyn.formulations._spatial_links import (
    AbstractSpatialLinks,
    find_unsupported_ball_chain,
    rotation_slopes,
    spatial_links,
)
from jaxdyn.joints import SphericalZYX
from jaxdyn.model import Model
from jaxdyn.recursion import bodies


def spatial_link_inertia(links: AbstractSpatialLinks, angles: Float[Array, "n 3"]) -> Float[Array, "n 6 6"]:
    """I_i of theorem 6, `T_i = (x_O', alpha') I_i (x_O', alpha') / 2` (34, 35); theorem 8 for `PrincipalLinks`."""
    slopes = rotation_slopes(angles)
    mass = links.mass[:, None, None]
    linear = mass * jnp.broadcast_to(jnp.eye(3, dtype=slopes.dtype), (links.mass.shape[0], 3, 3))
    mixed = mass * links.center_velocity(slopes)
    lower = jnp.concatenate([jnp.swapaxes(mixed, 1, 2), links.turning(slopes)], axis=2)
    return jnp.concatenate([jnp.concatenate([linear, mixed], axis=2), lower], axis=1)


def angular_mass_matrix(links: AbstractSpatialLinks, angles: Float[Array, "n 3"]) -> Float[Array, "m m"]:
    """A of theorem 9, `(3 n, 3 n)`, with `T = alpha' . A alpha' / 2`, all links assembled at once (51, 52 and 64).

    Block (j, k) with `j < k` is `V_j^T (M V_k + I_12k)`, M being the mass of the links that follow k; blocks on the
    diagonal are `I_22 + M V_k^T V_k`. For `PrincipalLinks` the blocks are those of theorem 10 (57, 58).
    """
    return _assemble_mass_matrix(links, rotation_slopes(angles))


def _assemble_mass_matrix(links, slopes):
    n = links.mass.shape[0]
    after = links.after()[:, None, None]
    arm = links.arm_velocity(slopes)
    moments = after * arm + links.mass[:, None, None] * links.center_velocity(slopes)
    above = jnp.einsum("jih,kig->jhkg", arm, moments) * jnp.triu(jnp.ones((n, n), arm.dtype), 1)[:, None, :, None]
    above = above.reshape(3 * n, 3 * n)
    own = links.turning(slopes) + after * jnp.swapaxes(arm, 1, 2) @ arm
    blocks = (own[:, :, None, :] * jnp.eye(n, dtype=arm.dtype)[:, None, :, None]).reshape(3 * n, 3 * n)
    return above + above.T + blocks


def gravity_gradient(links: AbstractSpatialLinks, angles: Float[Array, "n 3"]) -> Float[Array, " m"]:
    """`dU/dalpha`, `(3 n,)`, N m, for any direction of gravity (theorem 11, equation 60).

    For `PrincipalLinks` it is theorem 12 (62).
    """
    return links.weight(rotation_slopes(angles)).reshape(-1)


def spatial_momentum_rates(
    links: AbstractSpatialLinks,
    angles: Float[Array, "n 3"],
    p: Float[Array, " m"],
    u: Float[Array, " m"],
    gradient: AbstractGradient | None = None,
) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """The integration step of theorem 1 in absolute angles: `(alpha, p, u) -> (alpha', p')`, `p = A alpha'`.

    `p' = dT/dalpha - dU/dalpha + u`; `gradient` computes the first term, by default exactly and with the products of A.
    u are efforts along the absolute angles. Armatures are not included. The source compares the cost of this function
    with the articulated-body algorithm in table 1.
    """
    alpha = angles.reshape(-1)
    slopes = lambda x: rotation_slopes(x.reshape(-1, 3))

    def mass(x):
        shared = slopes(x)
        return _assemble_mass_matrix(links, shared), shared

    a, pull, shared = jax.vjp(mass, alpha, has_aux=True)
    rate = cho_solve(cho_factor(a), p)
    if gradient is None:
        (inertial,) = pull(rate[:, None] * rate / 2)
    else:
        inertial = gradient(lambda x: rate @ mass(x)[0] @ rate / 2, alpha)
    return rate, inertial - links.weight(shared).reshape(-1) + u


def absolute_angles(model: Model, q: Float[Array, " nq"]) -> Float[Array, " m"]:
    """Absolute z-y-x angles of the moving links, three per link, from the relative angles q of the joints.

    They are singular at an absolute pitch of `pi/2`, which is not a singularity of q. Where the cosine of the pitch is
    below the cube root of the precision (6e-6 in float64), the angles of all links are NaN, since yaw and roll would
    be rounding errors.
    """
    own = jax.vmap(lambda x: SphericalZYX().transform(x)[0])(q.reshape(-1, 3))
    r = jax.lax.associative_scan(jnp.matmul, bodies(model).rotation @ own)
    cosine = r[:, 0, 0] ** 2 + r[:, 1, 0] ** 2
    defined = jnp.all(cosine > float(jnp.finfo(r.dtype).eps) ** (2 / 3))
    r = jnp.where(defined, r, jnp.eye(3, dtype=r.dtype))
    pitch = jnp.arctan2(-r[:, 2, 0], jnp.sqrt(r[:, 0, 0] ** 2 + r[:, 1, 0] ** 2))
    yaw, roll = jnp.arctan2(r[:, 1, 0], r[:, 0, 0]), jnp.arctan2(r[:, 2, 1], r[:, 2, 2])
    return jnp.where(defined, jnp.stack([yaw, pitch, roll], axis=1).reshape(-1), jnp.nan)


class SphericalChain(AbstractFormulation):
    """Serial chains of ball joints in z-y-x angles, by the absolute angles of the source (theorems 1 and 6 to 12).

    `d/dt (A alpha') = dT/dalpha - dU/dalpha + u` is transformed to the relative angles q of the joints by
    `alpha' = J v`: `M = J^T A J`, `h = J^T (A dJ/dt v + dA/dt alpha' - dT/dalpha + dU/dalpha)`. `gradient` computes
    `dT/dalpha`, by default `ExactGradient()`. In addition to the singularities of q, all results are NaN where the
    absolute pitch of a link is `pi/2` (`absolute_angles`), and `simulate` ends with `NOT_FINITE`.
    """

    gradient: AbstractGradient = ExactGradient()

    def covers(self, model):
        return find_unsupported_ball_chain(model)

    def mass_matrix(self, model, q):
        (q,) = self.checked(model, q)
        angles = lambda q: absolute_angles(model, q)
        j = jax.jacfwd(angles)(q)
        mass = angular_mass_matrix(spatial_links(model), angles(q).reshape(-1, 3))
        return j.T @ mass @ j + jnp.diag(model.properties.armature)

    def bias(self, model, q, v):
        q, v = self.checked(model, q, v)
        links = spatial_links(model)
        angles = lambda q: absolute_angles(model, q)
        rates = lambda q: jax.jvp(angles, (q,), (v,))
        (alpha, rate), (_, curvature) = jax.jvp(rates, (q,), (v,))
        mass = lambda x: angular_mass_matrix(links, x.reshape(-1, 3))
        a, a_rate = jax.jvp(mass, (alpha,), (rate,))
        kinetic = lambda x: rate @ mass(x) @ rate / 2
        force = a @ curvature + a_rate @ rate - self.gradient(kinetic, alpha)
        force = force + gravity_gradient(links, alpha.reshape(-1, 3))
        return jax.jacfwd(angles)(q).T @ force

    def inverse_dynamics(self, model, q, v, a, external=None):
        q, v, a = self.checked(model, q, v, a)
        load = external_efforts(model, q, external)
        return combine_terms(self.mass_matrix(model, q), self.bias(model, q, v), a, load)
