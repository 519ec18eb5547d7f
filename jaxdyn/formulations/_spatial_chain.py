"""Closed forms of a spatial chain with ball joints in z-y-x angles: theorems 6 to 12 and algorithm 1 of Celentano.

L. Celentano, "An Innovative Method for Robots Modeling and Simulation", in "New Approaches in Automation and
Robotics", I-Tech 2008, section 4. The coordinates alpha are the *absolute* z-y-x angles of the links, three a link.

Where the source writes one symbol R_h there are two: in equations 37, 38 and 41 to 43 and 60 it is the slope of the
rotation matrix in the h-th angle; in 35, 37, 48, 52, 57 and 58, where it is multiplied by single coordinates xi_h, it
has to be the slope of the h-th column of the rotation matrix in the three angles. Its I_hk is the second moment of
mass `integral of xi_h xi_k dm` (equation 39), not the moment of inertia. Misprints: equation 62 has the sign of the
force, not of the gradient, as (60) with (44) shows; in the algorithm below it indices of gamma run to 3 i, not i.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.formulations._formulation import (
    AbstractFormulation,
    combined,
    external_efforts,
    joints_beyond,
    not_serial,
)
from jaxdyn.formulations._momentum_form import AbstractGradient, ExactGradient
from jaxdyn.joints import SphericalZYX
from jaxdyn.model import Model
from jaxdyn.model._bodies import bodies


class SpatialLinks(eqx.Module):
    """The links of a chain of ball joints, each with what is fixed to it, in its axes about its own rotation centre."""

    mass: Float[Array, " n"]
    #: second moments of mass `integral of xi xi^T dm`, kg m^2
    second: Float[Array, "n 3 3"]
    #: xi_O', the next rotation centre, m; zero for the last
    arm: Float[Array, "n 3"]
    #: xi_G, m
    center: Float[Array, "n 3"]
    #: m/s^2
    gravity: Float[Array, "3"]


def spatial_links(model: Model) -> SpatialLinks:
    """The links of a serial chain of `SphericalZYX` joints; another model is refused by the name of its joint."""
    reason = SphericalChain().covers(model)
    if reason is not None:
        raise ModelError(f"these are no links of a chain of ball joints: {reason}")
    b = bodies(model)
    xx, xy, xz, yy, yz, zz = (b.inertia[:, k] for k in range(6))
    inertia = jnp.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=1).reshape(-1, 3, 3)
    half_trace = (xx + yy + zz)[:, None, None] / 2
    central = half_trace * jnp.eye(3, dtype=inertia.dtype) - inertia
    second = central + b.mass[:, None, None] * b.com[:, :, None] * b.com[:, None, :]
    arm = jnp.concatenate([b.translation[1:], jnp.zeros_like(b.translation[:1])])
    return SpatialLinks(b.mass, second, arm, b.com, model.gravity)


def rotation_slopes(angles: Float[Array, "n 3"]) -> Float[Array, "n 3 3 3"]:
    """`R_h = d Rot / d angle_h` of `Rot = Rz Ry Rx` (theorem 7, equations 41 to 44), indices `[link, h, row, column]`.

    Algorithm 1: sines and cosines, then their products, then sums; the products are shared by all of R_h.
    """
    (s1, s2, s3), (c1, c2, c3) = jnp.sin(angles).T, jnp.cos(angles).T
    zero = jnp.zeros_like(s1)
    s1s2, c1s2, s1c2, c1c2 = s1 * s2, c1 * s2, s1 * c2, c1 * c2
    first = (
        (-s1c2, -s1s2 * s3 - c1 * c3, -s1s2 * c3 + c1 * s3),
        (c1c2, c1s2 * s3 - s1 * c3, c1s2 * c3 + s1 * s3),
        (zero, zero, zero),
    )
    second = (
        (-c1s2, c1c2 * s3, c1c2 * c3),
        (-s1s2, s1c2 * s3, s1c2 * c3),
        (-c2, -s2 * s3, -s2 * c3),
    )
    third = (
        (zero, c1s2 * c3 + s1 * s3, -c1s2 * s3 + s1 * c3),
        (zero, s1s2 * c3 - c1 * s3, -s1s2 * s3 - c1 * c3),
        (zero, c2 * c3, -c2 * s3),
    )
    stacked = [jnp.stack([jnp.stack(row, axis=1) for row in m], axis=1) for m in (first, second, third)]
    return jnp.stack(stacked, axis=1)


def spatial_link_inertia(links: SpatialLinks, angles: Float[Array, "n 3"]) -> Float[Array, "n 6 6"]:
    """I_i of theorem 6, `T_i = (x_O', alpha') I_i (x_O', alpha') / 2` (equations 34 and 35, of which 48 is a case)."""
    slopes = rotation_slopes(angles)
    n = links.mass.shape[0]
    linear = links.mass[:, None, None] * jnp.broadcast_to(jnp.eye(3, dtype=slopes.dtype), (n, 3, 3))
    mixed = links.mass[:, None, None] * _velocity_map(slopes, links.center)
    top = jnp.concatenate([linear, mixed], axis=2)
    return jnp.concatenate([top, jnp.concatenate([jnp.swapaxes(mixed, 1, 2), _turning(slopes, links)], axis=2)], axis=1)


def _velocity_map(slopes, point):
    """V, the velocity of a point of each link for unit rates of its angles: column h is `R_h xi`."""
    return jnp.einsum("nhij,nj->nih", slopes, point)


def _turning(slopes, links):
    """`I_22 = sum over a, b of R_a^T R_b I_ab` with slopes of columns (equation 52)."""
    half = jnp.einsum("nhij,njk->nhik", slopes, links.second)
    return jnp.einsum("nhik,ngik->nhg", half, slopes)


def angular_mass_matrix(links: SpatialLinks, angles: Float[Array, "n 3"]) -> Float[Array, "m m"]:
    """A of theorem 9, `(3 n, 3 n)`, with `T = alpha' . A alpha' / 2`, all links assembled at once (51, 52 and 64).

    Block (j, k) with `j < k` is `V_j^T (M V_k + I_12k)`, M being the mass of the links that follow k; blocks on the
    diagonal are `I_22 + M V_k^T V_k`. Theorem 10 is the case of principal axes and centres on the first of them.
    """
    n = links.mass.shape[0]
    slopes = rotation_slopes(angles)
    after = (jnp.cumsum(links.mass[::-1])[::-1] - links.mass)[:, None, None]
    arm = _velocity_map(slopes, links.arm)
    carried = after * arm + links.mass[:, None, None] * _velocity_map(slopes, links.center)
    above = jnp.einsum("jih,kig->jhkg", arm, carried) * jnp.triu(jnp.ones((n, n), arm.dtype), 1)[:, None, :, None]
    above = above.reshape(3 * n, 3 * n)
    own = _turning(slopes, links) + after * jnp.swapaxes(arm, 1, 2) @ arm
    blocks = (own[:, :, None, :] * jnp.eye(n, dtype=arm.dtype)[:, None, :, None]).reshape(3 * n, 3 * n)
    return above + above.T + blocks


def gravity_gradient(links: SpatialLinks, angles: Float[Array, "n 3"]) -> Float[Array, " m"]:
    """`dU/dalpha`, `(3 n,)`, N m, for any direction of gravity (theorem 11, equation 60; theorem 12 is a case)."""
    slopes = rotation_slopes(angles)
    after = (jnp.cumsum(links.mass[::-1])[::-1] - links.mass)[:, None]
    carried = after * links.arm + links.mass[:, None] * links.center
    return -jnp.einsum("nhij,nj,i->nh", slopes, carried, links.gravity).reshape(-1)


def spatial_momentum_rates(
    links: SpatialLinks,
    angles: Float[Array, "n 3"],
    p: Float[Array, " m"],
    u: Float[Array, " m"],
    gradient: AbstractGradient | None = None,
) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """The integration step of theorem 1 in absolute angles: `(alpha, p, u) -> (alpha', p')`, `p = A alpha'`.

    `p' = dT/dalpha - dU/dalpha + u`, `gradient` of the kinetic energy by default `ExactGradient()`; u are efforts along
    the absolute angles. Without armatures. Its cost is what the source compares with articulated bodies in table 1.
    """
    mass = lambda x: angular_mass_matrix(links, x.reshape(-1, 3))
    alpha = angles.reshape(-1)
    rate = cho_solve(cho_factor(mass(alpha)), p)
    inertial = (gradient or ExactGradient())(lambda x: rate @ mass(x) @ rate / 2, alpha)
    return rate, inertial - gravity_gradient(links, angles) + u


def absolute_angles(model: Model, q: Float[Array, " nq"]) -> Float[Array, " m"]:
    """Absolute z-y-x angles of the moving links, three a link, out of the joints' relative ones.

    Their own singularity, an absolute pitch of `pi/2`, is not that of q.
    """
    own = jax.vmap(lambda x: SphericalZYX().transform(x)[0])(q.reshape(-1, 3))
    r = jax.lax.associative_scan(jnp.matmul, bodies(model).rotation @ own)
    pitch = jnp.arctan2(-r[:, 2, 0], jnp.sqrt(r[:, 0, 0] ** 2 + r[:, 1, 0] ** 2))
    yaw, roll = jnp.arctan2(r[:, 1, 0], r[:, 0, 0]), jnp.arctan2(r[:, 2, 1], r[:, 2, 2])
    return jnp.stack([yaw, pitch, roll], axis=1).reshape(-1)


class SphericalChain(AbstractFormulation):
    """Serial chains of ball joints in z-y-x angles, in the absolute angles of the source (theorems 1 and 6 to 12).

    `d/dt (A alpha') = dT/dalpha - dU/dalpha + u` is taken to the joints' own angles q by `alpha' = J v`: `M = J^T A J`,
    `h = J^T (A dJ/dt v + dA/dt alpha' - dT/dalpha + dU/dalpha)`. The source leaves `dT/dalpha` to analysis or numbers;
    `gradient` says which, by default `ExactGradient()`. Singular, beside the joints' own angles, where a link's
    absolute pitch is `pi/2`.
    """

    gradient: AbstractGradient = ExactGradient()

    def covers(self, model):
        reason = joints_beyond(model, SphericalZYX) or not_serial(model)
        return reason or (None if model.nv else "no joint moves")

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
        (alpha, rate), (_, bent) = jax.jvp(rates, (q,), (v,))
        mass = lambda x: angular_mass_matrix(links, x.reshape(-1, 3))
        a, a_rate = jax.jvp(mass, (alpha,), (rate,))
        kinetic = lambda x: rate @ mass(x) @ rate / 2
        force = a @ bent + a_rate @ rate - self.gradient(kinetic, alpha)
        force = force + gravity_gradient(links, alpha.reshape(-1, 3))
        return jax.jacfwd(angles)(q).T @ force

    def inverse_dynamics(self, model, q, v, a, external=None):
        q, v, a = self.checked(model, q, v, a)
        load = external_efforts(model, q, external)
        return combined(self.mass_matrix(model, q), self.bias(model, q, v), a, load)
