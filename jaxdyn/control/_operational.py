"""Laws that follow a motion of one frame, in world axes about the frame's origin.

Errors are `e = (log(R_d R^T), p_d - p)` and `edot` the difference of the velocities; `rows` `(m, 6)` says which
combinations of the six are the task, `POSE` or `POSITION` for instance. The rest of a redundant arm is held by a
spring and a damper, `posture_kp (posture - q) - posture_kd v`, in the null space that moves no row. At singular poses,
and with fewer joints than rows, efforts are bounded by `damping`, relative to `J M^-1 J^T`.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._types import Array, Float
from jaxdyn.control._reference import as_float, as_reference, product
from jaxdyn.control._task import POSE, pose_error, posture_effort, task, unit, wanted
from jaxdyn.dynamics import passive_forces
from jaxdyn.model import Model

Gain = Float[Array, "..."]


def _optional(x):
    return None if x is None else as_reference(x)


class OperationalSpace(eqx.Module):
    """`tau = J^T Lambda (a_d + Kd edot + Kp e - Jdot v) + h + N^T tau_posture`: `eddot + Kd edot + Kp e = 0`.

    `target` is a `Pose` or a function `t -> Pose` of the frame called `frame`. Gains in 1/s^2 and 1/s: numbers, one a
    row, or matrices. If `passive`, what joints do by themselves is compensated. Khatib 1987.
    """

    model: Model
    frame: str = eqx.field(static=True)
    target: Any = eqx.field(converter=as_reference)
    kp: Gain = eqx.field(converter=as_float)
    kd: Gain = eqx.field(converter=as_float)
    rows: Float[Array, "m 6"] = eqx.field(converter=as_float, default_factory=lambda: POSE)
    posture: Any = eqx.field(converter=_optional, default=None)
    posture_kp: Gain = eqx.field(converter=as_float, default=0.0)
    posture_kd: Gain = eqx.field(converter=as_float, default=0.0)
    damping: Gain = eqx.field(converter=as_float, default=0.0)
    passive: bool = eqx.field(static=True, default=True)

    def __call__(self, t, q, v) -> Float[Array, " nv"]:
        x = task(self.model, q, v, self.frame, self.rows, self.damping)
        want = wanted(self.target, t)
        e = self.rows @ pose_error(x.pose, want.pose)
        rate = self.rows @ (want.velocity - x.velocity)
        a = self.rows @ want.acceleration + product(self.kd, rate) + product(self.kp, e)
        rest = posture_effort(self.model, self.posture, self.posture_kp, self.posture_kd, q, v)
        tau = x.efforts(a, rest)
        return tau - passive_forces(self.model, q, v) if self.passive else tau


class Impedance(eqx.Module):
    """The frame yields like a mass on a spring and a damper: `Lambda_d eddot + D edot + K e = -F`.

    F is the wrench of the surroundings on the frame, (moment, force) in world axes. With `inertia` None the mass is the
    arm's own, `Lambda(q)`, and no force is measured: `tau = J^T (Lambda (a_d - Jdot v) + D edot + K e) + h`. With an
    `inertia` `(m, m)` the arm feels like that, for which `measured(t, q, v)` has to give `rows @ F`, zero if left out:
    `tau = J^T (Lambda (a_d + Lambda_d^-1 (D edot + K e + F) - Jdot v) - F) + h`. Other arguments are those of
    `OperationalSpace`. Hogan 1985.
    """

    model: Model
    frame: str = eqx.field(static=True)
    target: Any = eqx.field(converter=as_reference)
    #: N m/rad and N/m
    stiffness: Gain = eqx.field(converter=as_float)
    #: N m s/rad and N s/m
    damper: Gain = eqx.field(converter=as_float)
    rows: Float[Array, "m 6"] = eqx.field(converter=as_float, default_factory=lambda: POSE)
    inertia: Any = eqx.field(converter=_optional, default=None)
    measured: Callable[..., Any] | None = eqx.field(converter=_optional, default=None)
    posture: Any = eqx.field(converter=_optional, default=None)
    posture_kp: Gain = eqx.field(converter=as_float, default=0.0)
    posture_kd: Gain = eqx.field(converter=as_float, default=0.0)
    damping: Gain = eqx.field(converter=as_float, default=0.0)
    passive: bool = eqx.field(static=True, default=True)

    def __call__(self, t, q, v) -> Float[Array, " nv"]:
        x = task(self.model, q, v, self.frame, self.rows, self.damping)
        want = wanted(self.target, t)
        e = self.rows @ pose_error(x.pose, want.pose)
        rate = self.rows @ (want.velocity - x.velocity)
        pull = product(self.damper, rate) + product(self.stiffness, e)
        a = self.rows @ want.acceleration
        if self.inertia is None:
            away = x.jacobian.T @ pull
        else:
            felt = jnp.zeros_like(pull) if self.measured is None else self.measured(t, q, v)
            a = a + jnp.linalg.solve(self.inertia, pull + felt)
            away = -x.jacobian.T @ felt
        rest = posture_effort(self.model, self.posture, self.posture_kp, self.posture_kd, q, v)
        tau = x.efforts(a, rest) + away
        return tau - passive_forces(self.model, q, v) if self.passive else tau


class HybridPositionForce(eqx.Module):
    """A frame moves along a surface `surface(p) = 0` as wanted, and presses on it with a wanted force.

    The surface takes the origin of the frame and is positive on the side of the robot. With its unit normal n, tangent
    motion is `P (a_d + Kd edot + Kp e)`, `P = 1 - n n^T`; along the normal the acceleration is the one that keeps to
    the curved surface, `grad . pddot = -pdot^T H pdot - normal_damping grad . pdot`, and `-J^T n f` is added. On a
    rigid surface without friction (`constraints.on_surface`) motion and force are then as wanted, exactly.

    * `target`: a `Pose`, or a function `t -> Pose`. If `orient`, the frame's orientation follows it too.
    * `force`: N, or a function of time, positive when pressing. With `measured(t, q, v)` (N) the force is corrected by
      `force_gain (f_d - measured)`.

    The remaining arguments are those of `OperationalSpace`. Raibert and Craig 1981; Khatib 1987, section IV.
    """

    model: Model
    frame: str = eqx.field(static=True)
    target: Any = eqx.field(converter=as_reference)
    surface: Callable[..., Any] = eqx.field(converter=as_reference)
    force: Any = eqx.field(converter=as_reference)
    kp: Gain = eqx.field(converter=as_float)
    kd: Gain = eqx.field(converter=as_float)
    normal_damping: Gain = eqx.field(converter=as_float, default=0.0)
    measured: Callable[..., Any] | None = eqx.field(converter=_optional, default=None)
    force_gain: Gain = eqx.field(converter=as_float, default=0.0)
    posture: Any = eqx.field(converter=_optional, default=None)
    posture_kp: Gain = eqx.field(converter=as_float, default=0.0)
    posture_kd: Gain = eqx.field(converter=as_float, default=0.0)
    damping: Gain = eqx.field(converter=as_float, default=0.0)
    orient: bool = eqx.field(static=True, default=False)
    passive: bool = eqx.field(static=True, default=True)

    def __call__(self, t, q, v) -> Float[Array, " nv"]:
        rows = POSE if self.orient else POSE[3:]
        x = task(self.model, q, v, self.frame, rows, self.damping)
        want = wanted(self.target, t)
        rate = want.velocity - x.velocity
        a = want.acceleration + product(self.kd, rate) + product(self.kp, pose_error(x.pose, want.pose))
        normal, linear = self._kept(x, a[3:])
        rest = posture_effort(self.model, self.posture, self.posture_kp, self.posture_kd, q, v)
        tau = x.efforts(jnp.concatenate([a[:3], linear]) if self.orient else linear, rest)
        tau = tau - x.full[3:].T @ normal * self._pressed(t, q, v)
        return tau - passive_forces(self.model, q, v) if self.passive else tau

    def _kept(self, x, a):
        """The unit normal, and the acceleration nearest to `a` that stays on the surface."""
        p, rate = x.pose.translation, x.velocity[3:]
        gradient = jax.grad(self.surface)
        slope, bend = jax.jvp(gradient, (p,), (rate,))
        normal, size = unit(slope)
        along = -(rate @ bend + self.normal_damping * (slope @ rate)) / jnp.where(size > 0, size, 1)
        return normal, a + normal * (along - normal @ a)

    def _pressed(self, t, q, v):
        force = self.force(t) if callable(self.force) else self.force
        if self.measured is None:
            return force
        return force + self.force_gain * (force - self.measured(t, q, v))
