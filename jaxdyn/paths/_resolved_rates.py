"""Joint rates for a motion of a frame, through the inverse of the Jacobian or one of its pseudo-inverses.

`v = J^# V`, `a = J^# (dV/dt - dJ/dt v)`: the kinematical control functions of Negrean et al. 2009, equations 13 to
16. The inverse is an argument. At a singular pose the rates are those of damped least squares, and the status is
`SINGULAR`.
"""

from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ShapeError, check_shape
from jaxdyn._numerics import as_function
from jaxdyn._status import Status
from jaxdyn._types import Array, Float, Int, Scalar
from jaxdyn.kinematics import (
    WORLD_ALIGNED,
    desired_frame_motion,
    frame_pose,
    integrate,
    jacobian,
    jacobian_derivative,
    pose_error,
)
from jaxdyn.model import Model
from jaxdyn.recursion import check_state
from jaxdyn.spatial import Pose


class RateStatus(Status):
    """Status of the inversion of a Jacobian."""

    REGULAR = 0, "the rates produce the motion of the frame"
    SINGULAR = 1, "the Jacobian is singular to the tolerance; rates are those of damped least squares"
    NOT_FINITE = 2, "the configuration, the model or the motion of the frame has entries that are not finite"


class ResolvedRates(eqx.Module):
    """Result of `resolved_rates`."""

    v: Float[Array, " nv"]
    a: Float[Array, " nv"]
    #: `sqrt(det(J J^T))` or, with fewer joints than rows, `sqrt(det(J^T J))` (Yoshikawa 1985)
    manipulability: Float[Array, ""]
    #: smallest singular value of J relative to the largest
    conditioning: Float[Array, ""]
    #: a `RateStatus`
    status: Int[Array, ""]


def square_inverse(j):
    """`J^-1`, equation 14: as many joints as rows."""
    if j.shape[0] != j.shape[1]:
        raise ShapeError(
            f"the Jacobian is {j.shape[0]} x {j.shape[1]}, which has no inverse; use right_inverse for more joints "
            "than rows, left_inverse for fewer, or choose rows"
        )
    return jnp.linalg.inv(j)


def left_inverse(j):
    """`(J^T J)^-1 J^T`, the first of equations 15: least-squares rates of an arm with fewer joints than rows."""
    return jnp.linalg.solve(j.T @ j, j.T)


def right_inverse(j):
    """`J^T (J J^T)^-1`, the second of equations 15: rates of least norm of a redundant arm."""
    return jnp.linalg.solve(j @ j.T, j).T


def resolved_rates(
    model: Model,
    q: Float[Array, " nq"],
    name: str,
    velocity: Float[Array, " m"],
    acceleration: Float[Array, " m"] | None = None,
    *,
    rows: Float[Array, "m 6"] | None = None,
    inverse: Callable[[Float[Array, "m nv"]], Float[Array, "nv m"]] = right_inverse,
    tolerance: ArrayLike = 1e-6,
    damping: ArrayLike = 1e-2,
) -> ResolvedRates:
    """Joint velocities and accelerations for a given velocity and acceleration of a frame (resolved rates).

    `velocity` and `acceleration` are the m rows `rows @ (angular, linear)` in world axes about the frame's origin, by
    default all six. `inverse` is `square_inverse`, `left_inverse`, `right_inverse` or a function of your own. Where the
    smallest singular value of J is below `tolerance` of the largest, the conditions (16) fail: status `SINGULAR`, and
    the rates are `J^T (J J^T + (damping s)^2)^-1`, s the largest singular value.
    """
    (q,) = check_state(model, q=q)
    rows = jnp.eye(6, dtype=q.dtype) if rows is None else rows
    j = rows @ jacobian(model, q, name, reference=WORLD_ALIGNED)
    velocity = check_shape("velocity", velocity, (j.shape[0],))
    values = jnp.linalg.svd(j, compute_uv=False)
    largest = jnp.max(values)
    conditioning = jnp.min(values) / jnp.where(largest > 0, largest, 1)
    regular = conditioning > tolerance
    # an orthonormal matrix in place of a singular one keeps the inverse and its derivatives finite
    sound = jnp.where(regular, j, jnp.eye(*j.shape, dtype=j.dtype))
    floor = (damping * jnp.where(largest > 0, largest, 1)) ** 2 * jnp.eye(j.shape[0], dtype=j.dtype)
    damped = jnp.linalg.solve(j @ j.T + floor, j).T
    back = jnp.where(regular, inverse(sound), damped)
    v = back @ velocity
    drift = rows @ (jacobian_derivative(model, q, v, name, reference=WORLD_ALIGNED) @ v)
    a = back @ ((0 if acceleration is None else acceleration) - drift)
    status = jnp.where(regular, RateStatus.REGULAR, RateStatus.SINGULAR)
    finite = jnp.all(jnp.isfinite(j)) & jnp.all(jnp.isfinite(v)) & jnp.all(jnp.isfinite(a))
    status = jnp.where(finite, status, RateStatus.NOT_FINITE).astype(jnp.int32)
    return ResolvedRates(v, a, jnp.prod(values), conditioning, status)


class FrameTrajectory(eqx.Module):
    """Result of `follow_frame`: a joint motion, one row for each time."""

    times: Float[Array, " rows"]
    q: Float[Array, "rows nq"]
    v: Float[Array, "rows nv"]
    a: Float[Array, "rows nv"]
    #: error of the frame, (rad, m) in world axes, in the chosen rows
    error: Float[Array, "rows m"]
    manipulability: Float[Array, " rows"]
    #: a `RateStatus` for each row
    status: Int[Array, " rows"]


def follow_frame(
    model: Model,
    name: str,
    path: Callable[[Scalar], Pose],
    q0: Float[Array, " nq"],
    times: Float[Array, " rows"],
    *,
    rows: Float[Array, "m 6"] | None = None,
    inverse: Callable[[Float[Array, "m nv"]], Float[Array, "nv m"]] = right_inverse,
    gain: ArrayLike = 10.0,
    tolerance: ArrayLike = 1e-6,
    damping: ArrayLike = 1e-2,
) -> FrameTrajectory:
    """Joint motion for a frame that moves along `path(t) -> Pose`, integrated from q0.

    `qdot = J^# (V + gain e)` by a Runge-Kutta step of fourth order between `times` (s); the gain (1/s) reduces the
    error e of the start and of the integration. Accelerations are those of the same motion,
    `a = J^# (dV/dt + gain de/dt - dJ/dt v)`. Other arguments are those of `resolved_rates`.
    """
    (q0,) = check_state(model, q0=q0)
    chosen = jnp.eye(6, dtype=q0.dtype) if rows is None else jnp.asarray(rows)
    gain, tolerance, damping = (jnp.asarray(x, q0.dtype) for x in (gain, tolerance, damping))
    options = {"inverse": as_function(inverse), "tolerance": tolerance, "damping": damping}
    return _follow(model, name, as_function(path), q0, jnp.asarray(times), chosen, gain, options)


@eqx.filter_jit  # a loop outside of a compiled function is compiled at every call
def _follow(model: Model, name: str, path, q0, times, chosen, gain, options) -> FrameTrajectory:
    solve = partial(resolved_rates, rows=chosen, **options)

    def pose_deviation(t, q):
        return pose_error(frame_pose(model, q, name), desired_frame_motion(path, t).pose)

    def rates(t, q):
        return solve(model, q, name, chosen @ (desired_frame_motion(path, t).velocity + gain * pose_deviation(t, q))).v

    def motion(t, q):
        desired, v = desired_frame_motion(path, t), rates(t, q)
        e, rate = jax.jvp(lambda s: pose_deviation(t + s, integrate(model, q, s * v)), (0 * t,), (jnp.ones_like(t),))
        at = chosen @ (desired.velocity + gain * e), chosen @ (desired.acceleration + gain * rate)
        return solve(model, q, name, *at), chosen @ e

    def step(q, row):
        t, h = row
        found, e = motion(t, q)
        slope = lambda t, dv: rates(t, integrate(model, q, dv))
        k2 = slope(t + h / 2, h / 2 * found.v)
        k3 = slope(t + h / 2, h / 2 * k2)
        k4 = slope(t + h, h * k3)
        new = integrate(model, q, h / 6 * (found.v + 2 * k2 + 2 * k3 + k4))
        return new, (q, found.v, found.a, e, found.manipulability, found.status)

    steps = jnp.concatenate([jnp.diff(times), jnp.zeros(1, times.dtype)])
    _, found = jax.lax.scan(step, q0, (times, steps))
    return FrameTrajectory(times, *found)
