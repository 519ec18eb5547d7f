"""Closed forms of a planar chain with revolute joints: theorems 2 to 5 of Celentano.

L. Celentano, "An Innovative Method for Robots Modeling and Simulation", in "New Approaches in Automation and
Robotics", I-Tech 2008, section 3. Absolute angles alpha are those of the links in the plane, relative ones beta
those of the joints, `alpha = U beta`.

Lengths and directions of the source are vectors here: `d_h` from the axis of link h to the next, of length L_h, and
`g_h` from the axis to the centre of mass, of length L_Gh, both rotated by alpha_h. So `L_h L_k cos(alpha_k - alpha_h)`
is `d_h . d_k`, and the sine is a cross product; g_h and d_h need not be parallel as they are in the source.

Misprints of the source: in equation 30 it is `A(U beta)`, not of `U^-1 beta`; the second term of equation 32 lacks the
factor rho_i^2; the sum of equation 33 begins at `m = k`, since joint k does not carry the links before it, and its sign
is that of a y axis that points down.
"""

from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import core
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.formulations._axes import axis_bodies
from jaxdyn.formulations._formulation import (
    AbstractFormulation,
    combine_terms,
    external_efforts,
    find_branching_link,
    find_unsupported_joint,
)
from jaxdyn.joints import Continuous, Revolute
from jaxdyn.model import Model

PARALLEL = 1e-6


class PlanarLinks(eqx.Module):
    """The links of a planar chain in its plane, each with the links that are fixed to it."""

    mass: Float[Array, " n"]
    #: J, moment of inertia about the link's own axis, kg m^2
    inertia: Float[Array, " n"]
    #: d at alpha = 0, from the link's axis to the next one, m; zero for the last
    arm: Float[Array, "n 2"]
    #: g at alpha = 0, from the link's axis to its centre of mass, m
    center: Float[Array, "n 2"]
    #: gravity in the plane, m/s^2
    gravity: Float[Array, "2"]
    #: 1 for a joint axis along the normal of the plane, -1 for the opposite direction
    sign: Float[Array, " n"]


def planar_links(model: Model) -> PlanarLinks:
    """The links of a chain with parallel axes, in its plane, with `alpha = 0` at q = 0.

    The normal of the plane is the axis of the first joint. A model that is no planar chain raises `ModelError` with the
    name of a joint; if its numbers are traced, the error is raised when the program runs.
    """
    reason = PlanarChain().covers(model)
    if reason is not None:
        raise ModelError(f"these are no planar links: {reason}")
    b = axis_bodies(model)
    turn = jax.lax.associative_scan(jnp.matmul, b.rotation)  # axes at q = 0
    axes = jnp.einsum("nij,nj->ni", turn, b.screw[:, :3])
    axes = _parallel(model, axes)
    normal = axes[0]
    plane = _plane(normal)
    before = jnp.concatenate([jnp.eye(3, dtype=turn.dtype)[None], turn[:-1]])
    step = jnp.einsum("nij,nj->ni", before, b.translation)
    center = jnp.einsum("nij,nj->ni", turn, b.com) @ plane
    local = b.screw[:, :3]
    about = jnp.einsum("ni,nij,nj->n", local, b.inertia, local)
    return PlanarLinks(
        mass=b.mass,
        inertia=about + b.mass * jnp.sum(center * center, axis=1),
        arm=jnp.concatenate([step[1:], jnp.zeros_like(step[:1])]) @ plane,
        center=center,
        gravity=model.gravity @ plane,
        sign=axes @ normal,
    )


def _parallel(model: Model, axes):
    """The axes; if they are traced, with an error at run time that names the first joint that is not parallel."""
    if not _is_traced(model):
        return axes
    off = jnp.linalg.norm(jnp.cross(axes[1:], axes[0]), axis=1) > _tolerance(axes.dtype)
    names = [model.joint_names[link] for link in model.topology.bodies[1:]]
    if not names:
        return axes
    messages = [f"these are no planar links: {_nonparallel_message(name)}" for name in names]
    return eqx.branched_error_if(axes, jnp.any(off), jnp.argmax(off), messages)


def _tolerance(dtype):
    """Sine of the largest angle between axes that count as parallel, above the rounding of chains of rotations."""
    return max(PARALLEL, 500 * float(jnp.finfo(dtype).eps))


def _nonparallel_message(joint: str) -> str:
    return f"the axis of joint {joint!r} is not parallel to the axis of the first joint"


def _is_traced(model: Model) -> bool:
    return any(isinstance(x, core.Tracer) for x in (model.placements.rotation, *jax.tree.leaves(model.joints)))


def _plane(normal):
    """Two columns that form a right-handed frame with the normal, smooth functions of it.

    The first is orthogonal to the coordinate axis with the largest angle to the normal.
    """
    helper = jnp.eye(3, dtype=normal.dtype)[jnp.argmin(jnp.abs(normal))]
    first = jnp.cross(helper, normal)
    first = first / jnp.linalg.norm(first)
    return jnp.stack([first, jnp.cross(normal, first)], axis=1)


def planar_link_inertia(links: PlanarLinks, alpha: Float[Array, " n"]) -> Float[Array, "n 3 3"]:
    """The matrices I_i of theorem 2, with `T_i = (x' y' alpha') I_i (x' y' alpha') / 2` (equations 10 and 11)."""
    g = links.mass[:, None] * rotate_vectors(alpha, links.center)
    zero = jnp.zeros_like(links.mass)
    rows = ((links.mass, zero, -g[:, 1]), (zero, links.mass, g[:, 0]), (-g[:, 1], g[:, 0], links.inertia))
    return jnp.stack([jnp.stack(row, axis=1) for row in rows], axis=1)


def absolute_mass_matrix(links: PlanarLinks, alpha: Float[Array, " n"]) -> Float[Array, "n n"]:
    """A of theorem 3, with `T = alpha' . A alpha' / 2`, all links assembled at once (equations 17 and 26).

    `A_hk = sum over i of M_i L_h L_k cos(alpha_k - alpha_h)`, where link `i = k` contributes with its centre of mass.
    """
    return _products(links, alpha)[0]


def planar_link_mass_matrices(links: PlanarLinks, alpha: Float[Array, " n"]) -> Float[Array, "n n n"]:
    """The matrices A_i of theorem 3, `T_i = alpha' . A_i alpha' / 2`, with zeros beyond row and column i (17, 18).

    `a_i,hh = M_i L_h^2` and J_i for `h = i`; `a_i,hk = M_i L_h L_k cos(alpha_k - alpha_h)` with `L_Gi` for `L_k` where
    `k = i`. Their sum is the `absolute_mass_matrix` (26), which is computed without them.
    """
    n = links.mass.shape[0]
    before, own = jnp.tril(jnp.ones((n, n), alpha.dtype), -1), jnp.eye(n, dtype=alpha.dtype)
    # row i: the arms of the links before i, then the centre of mass of link i
    reach = before[:, :, None] * rotate_vectors(alpha, links.arm) + own[:, :, None] * rotate_vectors(
        alpha, links.center
    )
    outer = links.mass[:, None, None] * (reach @ jnp.swapaxes(reach, 1, 2))
    corner = own[:, :, None] * own[:, None, :]
    return outer * (1 - corner) + links.inertia[:, None, None] * corner


def _mass_after(links):
    """Mass of the links that follow each."""
    return jnp.cumsum(links.mass[::-1])[::-1] - links.mass


def _static_moments(links):
    """`sum over i of M_i L_k` as vectors at alpha = 0: static moments of the masses that each link carries."""
    return _mass_after(links)[:, None] * links.arm + links.mass[:, None] * links.center


def _products(links: PlanarLinks, alpha):
    """`A`, and the corresponding products with the sine, `S_hk = sum of M_i L_h L_k sin(alpha_k - alpha_h)`."""
    arm, moments = rotate_vectors(alpha, links.arm), rotate_vectors(alpha, _static_moments(links))
    cos = jnp.triu(arm @ moments.T, 1)
    sin = jnp.triu(arm[:, :1] * moments[:, 1] - arm[:, 1:] * moments[:, 0], 1)
    own = links.inertia + _mass_after(links) * jnp.sum(links.arm * links.arm, axis=1)
    return cos + cos.T + jnp.diag(own), sin - sin.T


def rotate_vectors(alpha, x):
    """Rotates the vector of each link by its angle."""
    c, s = jnp.cos(alpha), jnp.sin(alpha)
    return jnp.stack([c * x[:, 0] - s * x[:, 1], s * x[:, 0] + c * x[:, 1]], axis=1)


def summation_matrix(beta):
    """U with `alpha = U beta`: absolute angles are sums of relative angles (equation 28)."""
    return jnp.tril(jnp.ones((beta.shape[0],) * 2, beta.dtype))


def relative_mass_matrix(links: PlanarLinks, beta: Float[Array, " n"]) -> Float[Array, "n n"]:
    """B of the relative angles, `B = U^T A(U beta) U` (equation 30)."""
    u = summation_matrix(beta)
    return u.T @ absolute_mass_matrix(links, u @ beta) @ u


def kinetic_gradient(links: PlanarLinks, beta: Float[Array, " n"], rate: Float[Array, " n"]) -> Float[Array, " n"]:
    """`c = dT/dbeta` at fixed rates (theorem 4, equation 31).

    `c_l = -sum over h < l <= k of alpha'_h S_hk alpha'_k`: the pairs of links whose angle depends on beta_l.
    """
    u = summation_matrix(beta)
    alpha_rate = u @ rate
    _, sine = _products(links, u @ beta)
    pairs = alpha_rate[:, None] * sine * alpha_rate
    varying = pairs @ u  # [h, l]: sum over k >= l
    return -jnp.sum(jnp.triu(varying, 1), axis=0)


def absolute_kinetic_gradient(
    links: PlanarLinks, alpha: Float[Array, " n"], rate: Float[Array, " n"]
) -> Float[Array, " n"]:
    """`c = dT/dalpha` at fixed rates (theorem 4 in absolute angles): `c_h = alpha'_h sum over k of S_hk alpha'_k`."""
    return rate * (_products(links, alpha)[1] @ rate)


def gravity_torques(links: PlanarLinks, beta: Float[Array, " n"]) -> Float[Array, " n"]:
    """Torques that the weights exert on the joints, `-dU/dbeta` (theorem 5, equation 33), N m."""
    u = summation_matrix(beta)
    return u.T @ _weight(links, rotate_vectors(u @ beta, _static_moments(links)))


def _weight(links, moments):
    """Moments of the weights about the axes, `-dU/dalpha`."""
    return moments[:, 0] * links.gravity[1] - moments[:, 1] * links.gravity[0]


def planar_momentum_rates(
    links: PlanarLinks, alpha: Float[Array, " n"], p: Float[Array, " n"], u: Float[Array, " n"]
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """The integration step of theorem 1 in absolute angles: `(alpha, p, u) -> (alpha', p')`, `p = A alpha'`.

    `p' = c + gamma + u`, where c is the `absolute_kinetic_gradient`, from the same products as A; u are torques on the
    links (`U^-T tau` for joint torques tau). Armatures are not included. The source compares the cost of this function
    with the articulated-body algorithm in figure 9.
    """
    mass, sine = _products(links, alpha)
    rate = cho_solve(cho_factor(mass), p)
    return rate, rate * (sine @ rate) + _weight(links, rotate_vectors(alpha, _static_moments(links))) + u


class PlanarChain(AbstractFormulation):
    """Serial chains of revolute joints with parallel axes, in closed form without recursion (theorems 1 to 5).

    `d/dt (B beta') = c + gamma + u`, with `beta = q` up to the signs of the axes, and `dA/dt` from the sines of
    theorem 4. `covers` checks the directions of the axes if their numbers are known; if they are traced, the error is
    raised when the program runs.
    """

    def covers(self, model):
        reason = find_unsupported_joint(model, Revolute, Continuous) or find_branching_link(model)
        return reason or ("no joint moves" if not model.nv else _find_nonparallel_axis(model))

    def mass_matrix(self, model, q):
        (q,) = self.checked(model, q)
        links = planar_links(model)
        mass = relative_mass_matrix(links, links.sign * q)
        return links.sign[:, None] * mass * links.sign + jnp.diag(model.properties.armature)

    def bias(self, model, q, v):
        q, v = self.checked(model, q, v)
        links = planar_links(model)
        beta, rate, u = links.sign * q, links.sign * v, summation_matrix(q)
        alpha_rate = u @ rate
        _, sine = _products(links, u @ beta)
        # dA/dt = -S_hk (alpha'_k - alpha'_h)
        bias = -(sine * (alpha_rate - alpha_rate[:, None])) @ alpha_rate
        forces = kinetic_gradient(links, beta, rate) + gravity_torques(links, beta)
        return links.sign * (u.T @ bias - forces)

    def inverse_dynamics(self, model, q, v, a, external=None):
        q, v, a = self.checked(model, q, v, a)
        load = external_efforts(model, q, external)
        return combine_terms(self.mass_matrix(model, q), self.bias(model, q, v), a, load)


def _find_nonparallel_axis(model: Model) -> str | None:
    """The reason, for `covers`, if the axis of a joint is not parallel to the first; None if the numbers are traced."""
    if _is_traced(model):
        return None
    quaternions, joints = np.asarray(model.placements.rotation), cast("tuple[Any, ...]", model.joints)
    t, turns, first, seen = model.topology, [], None, dict.fromkeys(range(len(model.joints)), 0)
    for joint, (parent, group) in enumerate(zip(t.parents, t.groups, strict=True)):
        before = turns[parent] if parent >= 0 else np.eye(3)
        turns.append(before @ _matrix(quaternions[joint]))
        if group < 0:
            continue
        axis = turns[joint] @ np.asarray(joints[group].axis)[seen[group]]
        seen[group] += 1
        axis = axis / np.linalg.norm(axis)
        first = axis if first is None else first
        if np.linalg.norm(np.cross(first, axis)) > _tolerance(axis.dtype):
            return _nonparallel_message(model.joint_names[joint])
    return None


def _matrix(quaternion) -> np.ndarray:
    w, *u = quaternion / np.linalg.norm(quaternion)
    cross = np.cross(u, np.eye(3)).T
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross
