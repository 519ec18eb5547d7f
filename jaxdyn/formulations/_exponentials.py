"""Kinematics by matrix exponentials: Jacobian, velocities and accelerations in the base and in the moving frame.

After equations 1 to 13 of I. Negrean, A. Duca, K. Kacso, S. Mura-Cozma and C. Schonstein, "New formulations on serial
robots dynamics", COMEC 2009 (algorithm "MEK"). A joint is a screw `(Delta k, v)` in the base frame with the robot at
zero: `Delta = 1` for a rotation about the unit vector k, with `v = p x k`, and 0 for a translation along `v = k`. The
end frame has the position `p_n` at q = 0. Six-vectors have their angular half first here, last in the source.

Misprints and shorthand of the source: `exp{sum [k_j x] q_j Delta_j}` stands for the product of the exponentials in the
order of the joints; in (3) `p_n` belongs inside the last brace, next to the sum, as the matrices (5) to (10) have it,
and m runs from i; the last term of (4) has `k k^T` for `(k x)(k x)`; the first sum of (12) has J for its rate.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn._numerics import sincos
from jaxdyn._types import Array, Config, Float, Vec6, Velocity
from jaxdyn.formulations._axes import SCREWS, axis_bodies, find_unsupported_or_fixed
from jaxdyn.model import Model, place_frame
from jaxdyn.recursion import body_poses, check_state
from jaxdyn.spatial import Pose, skew


def screw_exponential(screw: Vec6, q: ArrayLike) -> Pose:
    """`exp([S] q)` of a screw `S = (w, v)` with w a unit vector or zero: the displacement by the angle or length q.

        R = 1 + sin q [w] + (1 - cos q) [w]^2,   b = (q 1 + (1 - cos q) [w] + (q - sin q) [w]^2) v

    b is the column of equation 4 (Lynch and Park 2017, equation 3.88). q is in rad if w is a unit vector, otherwise in
    m.
    """
    s, c = sincos(jnp.asarray(q))
    w, v = skew(screw[:3]), screw[3:]
    rotation = jnp.eye(3, dtype=screw.dtype) + s * w + (1 - c) * (w @ w)
    return Pose(rotation, q * v + (1 - c) * (w @ v) + (q - s) * (w @ (w @ v)))


def space_screws(model: Model) -> Float[Array, "nv 6"]:
    """The screw `(Delta k, v)` of each joint in the base frame, angular half first, with the robot at `q = 0`.

    `S_j = Ad(T_0j(0)) A_j`, with the axis `A_j` in the link frame; k is dimensionless, v is in m/rad, or dimensionless
    for prismatic joints. For models of revolute, continuous, prismatic and helical joints.
    """
    return _at_zero(model)[0]


def exponential_pose(model: Model, q: Config, name: str) -> Pose:
    """Pose of a link or frame in the base frame, `exp([S_1] q_1) ... exp([S_n] q_n) T(0)`.

    The product is over the joints that carry the link or frame. For models of revolute, continuous, prismatic and
    helical joints; translation in m.
    """
    (q,) = check_state(model, q=q)
    _, rotation, positions, _ = _frame_and_columns(model, q, name)
    return Pose(rotation, positions[0])


def exponential_jacobian(model: Model, q: Config, name: str) -> Float[Array, "6 nv"]:
    """Jacobian in the base frame, in exponential form (1 to 10), of the link or frame called `name`.

        J_i = (R_i Delta_i k_i,  R_i (v_i + Delta_i k_i x p_i)),   R_i = exp([k_1] q_1) ... exp([k_(i-1)] q_(i-1))

    `R_i` is `ME{V_i1}` (5); the other factors are `ME{V_i2}` (6), `ME{V_i3}` (7) and the columns `v_i`, `b_k`, `p_n`,
    which `exponential_factors` returns. `p_i` is the position of the frame's origin if only the joints i to n are
    displaced, `p_i = exp([k_i] q_i) p_(i+1) + b_i`, which evaluates the sum in (3) by Horner's rule. Rows: angular
    velocity and velocity of the frame's origin, in base axes.

    For models of revolute, continuous, prismatic and helical joints.
    """
    (q,) = check_state(model, q=q)
    path, _, _, columns = _frame_and_columns(model, q, name)
    return _scatter_columns(model, path, columns)


def moving_jacobian(model: Model, q: Config, name: str) -> Float[Array, "6 nv"]:
    """`exponential_jacobian` in axes of the moving frame, `(R^T J_w, R^T J_v)`: `(n)J` of the source."""
    (q,) = check_state(model, q=q)
    path, rotation, _, columns = _frame_and_columns(model, q, name)
    return _scatter_columns(model, path, _rotate_six(rotation, columns.T).T)


def exponential_jacobian_rate(model: Model, q: Config, v: Velocity, name: str) -> Float[Array, "6 nv"]:
    """Rate of the Jacobian in the base frame, from the rate of each exponential (11, 12).

        dJ_w,i/dt = w_i x J_w,i,   dJ_v,i/dt = w_i x J_v,i + J_w,i x u_i

    with `w_i = sum of J_w,m v_m over m < i`, the angular velocity of the link that carries joint i, with which
    `ME{V_i1}` rotates, and `u_i = sum of J_v,m v_m over m >= i`, the velocity of the frame's origin due to the joints i
    to n.
    """
    q, v = check_state(model, q=q, v=v)
    path, _, _, columns = _frame_and_columns(model, q, name)
    return _scatter_columns(model, path, _rate(columns, v[path]))


def moving_jacobian_rate(model: Model, q: Config, v: Velocity, name: str) -> Float[Array, "6 nv"]:
    """The rate of the Jacobian in the base frame, in axes of the moving frame: the rate of `(n)J` in (13).

    `moving_jacobian a + moving_jacobian_rate v` is the absolute acceleration in axes of the moving frame. The rate of
    the components of `moving_jacobian` is different, since its axes rotate: `R^T dJ/dt - [w] R^T J` in each half.
    """
    q, v = check_state(model, q=q, v=v)
    path, rotation, _, columns = _frame_and_columns(model, q, name)
    return _scatter_columns(model, path, _rotate_six(rotation, _rate(columns, v[path]).T).T)


class FrameMotion(eqx.Module):
    """Absolute velocity and acceleration of a frame, `(angular, linear)` of its origin, in two sets of axes (13).

    The acceleration is that of the material point at the origin, as returned by `frame_classical_acceleration`. Units
    are rad/s, m/s, rad/s^2 and m/s^2.
    """

    base_velocity: Vec6
    base_acceleration: Vec6
    #: the same vectors in axes of the frame
    moving_velocity: Vec6
    moving_acceleration: Vec6


def exponential_motion(model: Model, q: Config, v: Velocity, a: Velocity, name: str) -> FrameMotion:
    """Velocity `J v` and acceleration `J a + dJ/dt v` of a link or frame (11 to 13), in base and in moving axes.

    For models of revolute, continuous, prismatic and helical joints.
    """
    q, v, a = check_state(model, q=q, v=v, a=a)
    path, rotation, _, columns = _frame_and_columns(model, q, name)
    velocity = columns @ v[path]
    acceleration = columns @ a[path] + _rate(columns, v[path]) @ v[path]
    return FrameMotion(velocity, acceleration, _rotate_six(rotation, velocity), _rotate_six(rotation, acceleration))


def _at_zero(model: Model):
    """Screws of all joints in the base frame, and the poses of the bodies, at `q = 0`."""
    reason = find_unsupported_or_fixed(model, *SCREWS)
    if reason is not None:
        raise ModelError(
            f"matrix exponentials need joints with one screw axis: {reason}. Use jaxdyn.jacobian, "
            "jaxdyn.frame_velocity or jaxdyn.frame_pose"
        )
    poses = Pose(*body_poses(model, jnp.zeros(model.nq, model.dtype)))
    return (poses.adjoint() @ axis_bodies(model).screw[..., None])[..., 0], poses


def supporting_joints(model: Model, name: str):
    """The joints that carry a frame, their screws at `q = 0`, and the pose of the frame at `q = 0`."""
    (screws, poses), (body, pose) = _at_zero(model), place_frame(model, name)
    path = np.flatnonzero(model.topology.body_ancestors[:, body]) if body >= 0 else np.zeros(0, int)
    at_zero = pose if body < 0 else Pose(poses.rotation[body], poses.translation[body]) @ pose
    return path, screws[path], at_zero


def _frame_and_columns(model: Model, q, name: str):
    """The joints that carry a frame, its rotation, `p_1 ... p_n` and `p_n` at q = 0, and the columns `J_i`."""
    path, screws, at_zero = supporting_joints(model, name)
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
    """Rates of the columns of the Jacobian (12)."""
    spins, speeds = columns[:3].T * v[:, None], columns[3:].T * v[:, None]
    before = (jnp.cumsum(spins, axis=0) - spins).T
    beyond = jnp.cumsum(speeds[::-1], axis=0)[::-1].T
    cross = lambda x, y: jnp.cross(x, y, axis=0)
    spin = cross(before, columns[:3])
    return jnp.concatenate([spin, cross(before, columns[3:]) + cross(columns[:3], beyond)])


def _rotate_six(rotation, six):
    """`(R^T w, R^T v)`, along the last axis."""
    return jnp.concatenate([six[..., :3] @ rotation, six[..., 3:] @ rotation], axis=-1)


def _scatter_columns(model: Model, path, columns):
    """`(6, nv)` with the columns of the joints on the path, zero elsewhere."""
    return jnp.zeros((6, model.nv), columns.dtype).at[:, path].set(columns)
