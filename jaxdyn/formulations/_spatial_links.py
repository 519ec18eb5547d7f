"""The links of a spatial chain of ball joints, in arbitrary axes and in principal axes.

After section 4 of L. Celentano, "An Innovative Method for Robots Modeling and Simulation", in "New Approaches in
Automation and Robotics", I-Tech 2008; its notation and misprints are described in `_spatial_chain`.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import core

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.formulations._axes import symmetric_matrices
from jaxdyn.formulations._formulation import find_branching_link, find_unsupported_joint
from jaxdyn.joints import SphericalZYX
from jaxdyn.model import Model
from jaxdyn.recursion import bodies

Blocks = Float[Array, "n 3 3"]
Slopes = Float[Array, "n 3 3 3"]


class AbstractSpatialLinks(eqx.Module):
    """Contract of the links of a chain of ball joints, each with the links fixed to it, about its rotation centre.

    `slopes` are the derivatives of the rotation matrices that `rotation_slopes` returns.
    """

    mass: eqx.AbstractVar[Float[Array, " n"]]

    @abc.abstractmethod
    def arm_velocity(self, slopes: Slopes) -> Blocks:
        """`V_j`: velocity of the next rotation centre for unit rates of the three angles (52)."""

    @abc.abstractmethod
    def center_velocity(self, slopes: Slopes) -> Blocks:
        """Velocity of the centre of mass for unit rates of the three angles, `I_12 / m`."""

    @abc.abstractmethod
    def turning(self, slopes: Slopes) -> Blocks:
        """`I_22` (52), kg m^2."""

    @abc.abstractmethod
    def weight(self, slopes: Slopes) -> Float[Array, "n 3"]:
        """`dU/dalpha` of the whole chain, N m."""

    def after(self) -> Float[Array, " n"]:
        """Mass of the links after each link, kg."""
        return jnp.cumsum(self.mass[::-1])[::-1] - self.mass


class SpatialLinks(AbstractSpatialLinks):
    """Links of any shape in arbitrary axes (theorems 6, 9 and 11)."""

    mass: Float[Array, " n"]
    #: second moments of mass `integral of xi xi^T dm`, kg m^2
    second: Blocks
    #: xi_O', the next rotation centre, m; zero for the last
    arm: Float[Array, "n 3"]
    #: xi_G, m
    center: Float[Array, "n 3"]
    #: m/s^2
    gravity: Float[Array, "3"]

    def arm_velocity(self, slopes):
        return _velocities(slopes, self.arm)

    def center_velocity(self, slopes):
        return _velocities(slopes, self.center)

    def turning(self, slopes):
        # `trace(R_a second R_b^T)` equals the sum of the six products (47) and takes fewer operations
        half = jnp.einsum("nhij,njk->nhik", slopes, self.second)
        return jnp.einsum("nhik,ngik->nhg", half, slopes)

    def weight(self, slopes):
        moments = self.after()[:, None] * self.arm + self.mass[:, None] * self.center
        return -jnp.einsum("nih,i->nh", _velocities(slopes, moments), self.gravity)


class PrincipalLinks(AbstractSpatialLinks):
    """Links in their principal axes, with centre of mass and next rotation centre on the first (theorems 8, 10, 12).

    Gravity is along the negative third axis of the world.
    """

    mass: Float[Array, " n"]
    #: I_hh, second moments of mass along the axes, `integral of xi_h^2 dm`, kg m^2
    second: Float[Array, "n 3"]
    #: xi_O'1, m; zero for the last
    arm: Float[Array, " n"]
    #: xi_G1, m
    center: Float[Array, " n"]
    #: m/s^2
    gravity: Float[Array, ""]

    def arm_velocity(self, slopes):
        """`V_j = R_1j xi_O'1j` (58)."""
        return _along_first(slopes, self.arm)

    def center_velocity(self, slopes):
        """`R_1i xi_G1i` (57)."""
        return _along_first(slopes, self.center)

    def turning(self, slopes):
        """`sum over h of R_h^T R_h I_hh` (57), three of the products (47)."""
        return jnp.einsum("nhik,ngik->nhg", slopes * self.second[:, None, None, :], slopes)

    def weight(self, slopes):
        """Nonzero for the second angles only, `-g c_2 (...)` (62, with its sign)."""
        moments = self.gravity * (self.after() * self.arm + self.mass * self.center)
        return jnp.zeros_like(self.second).at[:, 1].set(moments * slopes[:, 1, 2, 0])


def _velocities(slopes, point):
    """Column h is `R_h xi`."""
    return jnp.einsum("nhij,nj->nih", slopes, point)


def _along_first(slopes, distance):
    return jnp.swapaxes(slopes[..., 0], 1, 2) * distance[:, None, None]


def rotation_slopes(angles: Float[Array, "n 3"]) -> Slopes:
    """`R_h = d Rot / d angle_h` of `Rot = Rz Ry Rx` (theorem 7, equations 41 to 44), indices `[link, h, row, column]`.

    Algorithm 1, steps 1 and 2: sines and cosines, their products, and sums of these; all R_h share the products.
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


def slope_products(slopes: Slopes) -> Float[Array, "n 6 3 3"]:
    """Products `R_1^T R_1, R_1^T R_2, R_1^T R_3, R_2^T R_2, R_2^T R_3, R_3^T R_3` of derivatives of columns (47).

    Step 3 of algorithm 1: the block I_22 is their sum weighted by the second moments `I_hk`, where products with
    `h < k` are added together with their transposes. Rows and columns of a product are angles.
    """
    h, k = np.triu_indices(3)
    return jnp.einsum("naip,nbip->npab", slopes[..., h], slopes[..., k])


def find_unsupported_ball_chain(model: Model) -> str | None:
    """The reason, for `covers`, if a model is no serial chain of ball joints in z-y-x angles; otherwise None."""
    reason = find_unsupported_joint(model, SphericalZYX) or find_branching_link(model)
    return reason or (None if model.nv else "no joint moves")


def spatial_links(model: Model) -> SpatialLinks:
    """The links of a serial chain of `SphericalZYX` joints; another model raises `ModelError` and names a joint."""
    reason = find_unsupported_ball_chain(model)
    if reason is not None:
        raise ModelError(f"the model is no chain of ball joints: {reason}")
    b = bodies(model)
    xx, yy, zz = (b.inertia[:, k] for k in (0, 3, 5))
    half_trace = (xx + yy + zz)[:, None, None] / 2
    central = half_trace * jnp.eye(3, dtype=b.inertia.dtype) - symmetric_matrices(b.inertia)
    second = central + b.mass[:, None, None] * b.com[:, :, None] * b.com[:, None, :]
    arm = jnp.concatenate([b.translation[1:], jnp.zeros_like(b.translation[:1])])
    return SpatialLinks(b.mass, second, arm, b.com, model.gravity)


def principal_links(model: Model) -> PrincipalLinks:
    """The links of a chain of ball joints, for the faster forms of theorems 8, 10 and 12.

    Raises `ModelError` if the axes of a link are not principal, if its centres are not on the first axis, or if gravity
    is not vertical. The checks need known numbers: call it outside of `jit`.
    """
    links = spatial_links(model)
    if any(isinstance(x, core.Tracer) for x in jax.tree.leaves(links)):
        raise ModelError("principal_links checks numbers, which are not known in a trace; call it outside of jit")
    _, second, arm, center, gravity = (np.asarray(x) for x in jax.tree.leaves(links))
    small = 1e4 * np.finfo(second.dtype).eps
    checks = (
        ("products of inertia", second - second * np.eye(3), np.abs(second).max((1, 2))),
        ("a centre of mass off its first axis", center[:, 1:], np.abs(center).max(1)),
        ("the next joint off its first axis", arm[:, 1:], np.abs(arm).max(1)),
    )
    for fault, rest, size in checks:
        off = np.abs(rest).reshape(len(size), -1).max(1) > small * size
        if off.any():
            name = model.link_names[model.topology.bodies[int(np.argmax(off))]]
            raise ModelError(
                f"link {name!r} has {fault}; rotate its axes, or use spatial_links, which accepts any axes"
            )
    if np.abs(gravity[:2]).max() > small * np.abs(gravity).max():
        raise ModelError(f"gravity is {gravity}, expected (0, 0, -g); rotate the world, or use spatial_links")
    second_moments = jnp.diagonal(links.second, axis1=1, axis2=2)
    return PrincipalLinks(links.mass, second_moments, links.arm[:, 0], links.center[:, 0], -links.gravity[2])
