"""Lagrange's equations by automatic differentiation; the joints are the only code shared with the package."""

import functools as ft

import jax
import jax.numpy as jnp

from jaxdyn.model import Model


def _rotation(quaternion):
    w, x, y, z = quaternion / jnp.linalg.norm(quaternion)
    u = jnp.stack([x, y, z])
    cross = jnp.cross(u, jnp.eye(3)).T
    return jnp.eye(3) + 2 * w * cross + 2 * cross @ cross


def _joint_coordinates(m: Model, q, i: int):
    """Coordinates of joint i, from its source if it mimics another joint."""
    view = m.joint(m.joint_names[i])
    for k, (joint, _) in enumerate(m.topology.mimics):
        if joint == i:
            return m.mimic.ratio[k] * q[view.q] + m.mimic.offset[k]
    return q[view.q]


def poses(m: Model, q):
    """World poses of all links, link by link."""
    out = []
    for i, parent in enumerate(m.topology.parents):
        r, p = _rotation(m.placements.rotation[i]), m.placements.translation[i]
        turn, move = m.joint(m.joint_names[i]).joint.transform(_joint_coordinates(m, q, i))
        r, p = r @ turn, p + r @ move
        if parent >= 0:
            above, at = out[parent]
            r, p = above @ r, at + above @ p
        out.append((r, p))
    return jnp.stack([r for r, _ in out]), jnp.stack([p for _, p in out])


def _chart(m: Model, q, x):
    """`integrate(q, x)`, joint by joint."""
    for name in set(m.joint_names) - {m.joint_names[i] for i, _ in m.topology.mimics}:
        view = m.joint(name)
        if view.joint.nv:
            q = q.at[view.q].set(view.joint.integrate(q[view.q], x[view.v]))
    return q


def energies(m: Model, q, x, xdot):
    """Kinetic and potential energy, with velocities as derivatives of the poses."""
    f = lambda x: poses(m, _chart(m, q, x))
    (r, p), (dr, dp) = jax.jvp(f, (x,), (xdot,))
    spin = jnp.swapaxes(r, 1, 2) @ dr
    w = jnp.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=1)
    speed = dp + jnp.einsum("nij,nj->ni", dr, m.links.com)
    at = p + jnp.einsum("nij,nj->ni", r, m.links.com)
    kinetic = 0.5 * (m.links.mass @ (speed**2).sum(1) + jnp.einsum("ni,nij,nj->", w, m.links.inertia, w))
    kinetic = kinetic + 0.5 * m.properties.armature @ xdot**2
    return kinetic, -m.links.mass @ (at @ m.gravity)


@ft.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
def efforts(m: Model, q, v, a):
    """`d/dt dL/dx' - dL/dx` at x = 0.

    x are exponential coordinates about q, in which `v = x'` and `a = x''` at x = 0: the velocity is
    `v = x' - [x, x'] / 2 + ...`, whose rate has no term `[x', x']`.
    """

    def lagrangian(x, xdot):
        kinetic, potential = energies(m, q, x, xdot)
        return kinetic - potential

    x = jnp.zeros_like(v)
    _, rate = jax.jvp(jax.grad(lagrangian, 1), (x, v), (v, a))
    return rate - jax.grad(lagrangian)(x, v)
