"""Kinematics by matrix exponentials: Jacobian, velocities and accelerations in the base and in the moving frame.

After equations 1 to 13 of I. Negrean, A. Duca, K. Kacso, S. Mura-Cozma and C. Schonstein, "New formulations on serial
robots dynamics", COMEC 2009, whose algorithm "MEK" this is. A joint is a screw `(Delta k, v)` in the base frame with
the robot at zero: `Delta = 1` for a turn about the unit vector k, with `v = p x k`, and 0 for a slide along `v = k`.
The frame at the end has the position `p_n` at zero. Six-vectors have their angular half first here, last there.

What is misprinted or shorthand there: `exp{sum [k_j x] q_j Delta_j}` stands for the product of the exponentials in the
order of the joints; in (3) `p_n` belongs inside the last brace, next to the sum, as the matrices (5) to (10) have it,
and m runs from i; the last term of (4) has `k k^T` for `(k x)(k x)`; the first sum of (12) has J for its rate.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError, check_shape
from jaxdyn._numerics import sincos
from jaxdyn._types import Array, Config, Float, Vec6, Velocity
from jaxdyn.formulations._axes import SCREWS, axis_bodies, not_of_kinds, skew
from jaxdyn.kinematics._forward import body_poses
from jaxdyn.kinematics._frames import locate
from jaxdyn.model import Model
from jaxdyn.spatial import Pose


def screw_exponential(screw: Vec6, q: Any) -> Pose:
    """`exp([S] q)` of a screw `S = (w, v)` whose w is a unit vector or zero: the motion by the angle or length q.

        R = 1 + sin q [w] + (1 - cos q) [w]^2,   b = (q 1 + (1 - cos q) [w] + (q - sin q) [w]^2) v

    b is the column of equation 4 (Lynch and Park 2017, equation 3.88). q in rad where w is a unit vector, else in m.
    """
    s, c = sincos(jnp.asarray(q))
    w, v = skew(screw[:3]), screw[3:]
    rotation = jnp.eye(3, dtype=screw.dtype) + s * w + (1 - c) * (w @ w)
    return Pose(rotation, q * v + (1 - c) * (w @ v) + (q - s) * (w @ (w @ v)))


def space_screws(model: Model) -> Float[Array, "nv 6"]:
    """The screw `(Delta k, v)` of each joint in the base frame, angular half first, with the robot at `q = 0`.

    `S_j = Ad(T_0j(0)) A_j`, from the axis `A_j` in the link's own frame; k is dimensionless, v in m/rad or (for slides)
    dimensionless. For models of revolute, continuous, prismatic and helical joints.
    """
    return _at_zero(model)[0]


def exponential_pose(model: Model, q: Config, name: str) -> Pose:
    """Pose of a link or frame in the base frame, `exp([S_1] q_1) ... exp([S_n] q_n) T(0)`.

    The product is over the joints that carry it. For models of revolute, continuous, prismatic and helical joints;
    translation in m.
    """
    _, rotation, positions, _ = _moved(model, check_shape("q", q, (model.nq,)), name)
    return Pose(rotation, positions[0])


def exponential_jacobian(model: Model, q: Config, name: str) -> Float[Array, "6 nv"]:
    """Jacobian in the base frame, in exponential form (1 to 10), of the link or frame called `name`.

        J_i = (R_i Delta_i k_i,  R_i (v_i + Delta_i k_i x p_i)),   R_i = exp([k_1] q_1) ... exp([k_(i-1)] q_(i-1))

    `R_i` is `ME{V_i1}` (5), what it is multiplied by are `ME{V_i2}` (6), `ME{V_i3}` (7) and the columns `v_i`, `b_k`,
    `p_n`, matrices that `exponential_factors` gives: `p_i` is where the joints i to n alone would put the origin of the
    frame, `p_i = exp([k_i] q_i) p_(i+1) + b_i`, which is the sum in (3) by Horner's rule. Rows: angular velocity and
    velocity of the frame's origin, in base axes.

    For models of revolute, continuous, prismatic and helical joints.
    """
    q = check_shape("q", q, (model.nq,))
    path, _, _, columns = _moved(model, q, name)
    return _in_place(model, path, columns)


def moving_jacobian(model: Model, q: Config, name: str) -> Float[Array, "6 nv"]:
    """The same Jacobian projected on the moving frame, `(R^T J_w, R^T J_v)`: the `(n)J` of the source."""
    q = check_shape("q", q, (model.nq,))
    path, rotation, _, columns = _moved(model, q, name)
    return _in_place(model, path, _along(rotation, columns.T).T)


def exponential_jacobian_rate(model: Model, q: Config, v: Velocity, name: str) -> Float[Array, "6 nv"]:
    """Rate of the Jacobian in the base frame, from that of each exponential (11, 12).

        dJ_w,i/dt = w_i x J_w,i,   dJ_v,i/dt = w_i x J_v,i + J_w,i x u_i

    with `w_i = sum of J_w,m v_m over m < i`, the angular velocity of what carries joint i, since `ME{V_i1}` turns with
    it, and `u_i = sum of J_v,m v_m over m >= i`, the velocity that the joints i to n give to the frame's origin.
    """
    q, v = check_shape("q", q, (model.nq,)), check_shape("v", v, (model.nv,))
    path, _, _, columns = _moved(model, q, name)
    return _in_place(model, path, _rate(columns, v[path]))


def moving_jacobian_rate(model: Model, q: Config, v: Velocity, name: str) -> Float[Array, "6 nv"]:
    """The rate of the Jacobian in the base frame, projected on the moving one: the rate of `(n)J` in (13).

    With it `moving_jacobian a + moving_jacobian_rate v` is the absolute acceleration along the moving axes. It is not
    the rate of `moving_jacobian`, which turns with the frame: that is `R^T dJ/dt - [w] R^T J` in each half.
    """
    q, v = check_shape("q", q, (model.nq,)), check_shape("v", v, (model.nv,))
    path, rotation, _, columns = _moved(model, q, name)
    return _in_place(model, path, _along(rotation, _rate(columns, v[path]).T).T)


class FrameMotion(eqx.Module):
    """Absolute velocity and acceleration of a frame, `(angular, linear)` of its origin, in two sets of axes (13).

    The acceleration is that of the material point at the origin, as `frame_classical_acceleration` gives it.
    rad/s, m/s, rad/s^2, m/s^2.
    """

    base_velocity: Vec6
    base_acceleration: Vec6
    #: the same vectors along the axes of the frame itself
    moving_velocity: Vec6
    moving_acceleration: Vec6


def exponential_motion(model: Model, q: Config, v: Velocity, a: Velocity, name: str) -> FrameMotion:
    """Velocity `J v` and acceleration `J a + dJ/dt v` of a link or frame (11 to 13), in base and in moving axes.

    For models of revolute, continuous, prismatic and helical joints.
    """
    q = check_shape("q", q, (model.nq,))
    v, a = check_shape("v", v, (model.nv,)), check_shape("a", a, (model.nv,))
    path, rotation, _, columns = _moved(model, q, name)
    velocity = columns @ v[path]
    acceleration = columns @ a[path] + _rate(columns, v[path]) @ v[path]
    return FrameMotion(velocity, acceleration, _along(rotation, velocity), _along(rotation, acceleration))


def _at_zero(model: Model):
    """Screws of all joints in the base frame, and the poses of the bodies, at `q = 0`."""
    reason = not_of_kinds(model, *SCREWS)
    if reason is not None:
        raise ModelError(f"matrix exponentials are of screws alone: {reason}. Use jaxdyn.jacobian and its companions")
    poses = Pose(*body_poses(model, jnp.zeros(model.nq, model.dtype)))
    return (poses.adjoint() @ axis_bodies(model).screw[..., None])[..., 0], poses


def carrying(model: Model, name: str):
    """The joints that carry a frame, their screws, and its pose, at `q = 0`."""
    (screws, poses), (body, pose) = _at_zero(model), locate(model, name)
    path = np.flatnonzero(model.topology.body_ancestors[:, body]) if body >= 0 else np.zeros(0, int)
    at_zero = pose if body < 0 else Pose(poses.rotation[body], poses.translation[body]) @ pose
    return path, screws[path], at_zero


def _moved(model: Model, q, name: str):
    """The joints that carry a frame; its rotation; `p_1 ... p_n` and `p_n` at zero; the columns `J_i`."""
    path, screws, at_zero = carrying(model, name)
    q = q[path]
    steps = jax.vmap(screw_exponential)(screws, q)
    last, before = jax.lax.scan(lambda r, step: (r @ step, r), jnp.eye(3, dtype=steps.rotation.dtype), steps.rotation)
    inward = lambda p, step: (step.apply(p),) * 2
    _, points = jax.lax.scan(inward, at_zero.translation.astype(last.dtype), steps, reverse=True)
    turn = screws[:, :3]
    spin = jnp.einsum("kij,kj->ik", before, turn)
    speed = jnp.einsum("kij,kj->ik", before, screws[:, 3:] + jnp.cross(turn, points))
    positions = jnp.concatenate([points, at_zero.translation[None]])
    return path, last @ at_zero.rotation, positions, jnp.concatenate([spin, speed])


def _rate(columns, v):
    spins, speeds = columns[:3].T * v[:, None], columns[3:].T * v[:, None]
    before = (jnp.cumsum(spins, axis=0) - spins).T
    beyond = jnp.cumsum(speeds[::-1], axis=0)[::-1].T
    cross = lambda x, y: jnp.cross(x, y, axis=0)
    spin = cross(before, columns[:3])
    return jnp.concatenate([spin, cross(before, columns[3:]) + cross(columns[:3], beyond)])


def _along(rotation, six):
    """`(R^T w, R^T v)`, along the last axis."""
    return jnp.concatenate([six[..., :3] @ rotation, six[..., 3:] @ rotation], axis=-1)


def _in_place(model: Model, path, columns):
    return jnp.zeros((6, model.nv), columns.dtype).at[:, path].set(columns)
