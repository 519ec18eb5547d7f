"""Task-space control laws: the motion of one frame, in world axes about the frame's origin.

The errors are `e = (log(R_d R^T), p_d - p)` and the velocity error `edot`. `rows` `(m, 6)` selects combinations of the
six as the task, `POSE` or `POSITION` for instance. In the null space of the task of a redundant arm acts the posture
effort `posture_kp (posture - q) - posture_kd v`. At singular poses, and with fewer joints than rows, `damping`,
relative to `J M^-1 J^T`, bounds the efforts.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Config, Float, Law, Scalar
from jaxdyn.control._reference import apply_gain, as_reference
from jaxdyn.control._task import POSE, evaluate_task, normalise, posture_effort
from jaxdyn.dynamics import passive_forces
from jaxdyn.kinematics import desired_frame_motion, pose_error
from jaxdyn.model import Model
from jaxdyn.spatial import Pose

Gain = Float[Array, "..."]
Target = Pose | Callable[[Scalar], Pose]


def _as_optional_reference(x):
    return None if x is None else as_reference(x)


class OperationalSpace(eqx.Module):
    """Operational-space control: `tau = J^T Lambda (a_d + Kd edot + Kp e - Jdot v) + h + N^T tau_posture`.

    With a perfect model the task error obeys `eddot + Kd edot + Kp e = 0`. Arguments:

    * `model`: the model for the dynamics of the law.
    * `frame`: name of a link or frame.
    * `target`: a `Pose`, or a function `t -> Pose`, in the world.
    * `kp`, `kd`: task gains, 1/s^2 and 1/s; scalars, `(m,)` or `(m, m)`.
    * `rows`: the task, `(m, 6)` rows of (angular, linear) in world axes; by default `POSE`.
    * `posture`, `posture_kp`, `posture_kd`: null-space configuration `(nq,)` and joint gains.
    * `damping`: damping of the task inertia, relative to `J M^-1 J^T`.
    * `passive`: whether the law compensates the passive forces of the joints.

    Called with `(t, q, v)`, returns efforts `(nv,)`. Khatib 1987.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.control import POSITION, OperationalSpace

    arm = jd.robots.double_pendulum()
    target = jd.spatial.Pose(jnp.eye(3), jnp.array([0.5, 0.0, -1.2]))
    law = OperationalSpace(arm, "tip", target, kp=25.0, kd=10.0, rows=POSITION[[0, 2]])
    tau = law(0.0, jnp.array([0.3, 0.5]), jnp.zeros(2))  # N m
    ```
    """

    model: Model
    frame: str = eqx.field(static=True)
    target: Target = eqx.field(converter=as_reference)
    kp: Gain = eqx.field(converter=as_float)
    kd: Gain = eqx.field(converter=as_float)
    rows: Float[Array, "m 6"] = eqx.field(converter=as_float, default_factory=lambda: POSE)
    posture: Config | None = eqx.field(converter=_as_optional_reference, default=None)
    posture_kp: Gain = eqx.field(converter=as_float, default=0.0)
    posture_kd: Gain = eqx.field(converter=as_float, default=0.0)
    damping: Gain = eqx.field(converter=as_float, default=0.0)
    passive: bool = eqx.field(static=True, default=True)

    def __call__(self, t, q, v) -> Float[Array, " nv"]:
        x = evaluate_task(self.model, q, v, self.frame, self.rows, self.damping)
        target = desired_frame_motion(self.target, t)
        e = self.rows @ pose_error(x.pose, target.pose)
        rate = self.rows @ (target.velocity - x.velocity)
        a = self.rows @ target.acceleration + apply_gain(self.kd, rate) + apply_gain(self.kp, e)
        null_space_effort = posture_effort(self.model, self.posture, self.posture_kp, self.posture_kd, q, v)
        tau = x.efforts(a, null_space_effort)
        return tau - passive_forces(self.model, q, v) if self.passive else tau


class Impedance(eqx.Module):
    """Impedance control: the frame moves as `Lambda_d eddot + D edot + K e = -F`.

    F is the wrench of the environment on the frame, (moment, force) in world axes. Arguments:

    * `stiffness`, `damper`: K and D; scalars, `(m,)` or `(m, m)`, in N m/rad, N/m and N m s/rad, N s/m.
    * `inertia`: None to keep the task inertia `Lambda(q)` of the robot, without force measurement:
      `tau = J^T (Lambda (a_d - Jdot v) + D edot + K e) + h`. Or the desired inertia Lambda_d `(m, m)`:
      `tau = J^T (Lambda (a_d + Lambda_d^-1 (D edot + K e + F) - Jdot v) - F) + h`.
    * `measured`: function `(t, q, v)` that returns the measured `rows @ F`, used with `inertia`; zero by default.
    * The remaining arguments are those of `OperationalSpace`.

    Called with `(t, q, v)`, returns efforts `(nv,)`. Hogan 1985.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.control import POSITION, Impedance

    arm = jd.robots.double_pendulum()
    target = jd.spatial.Pose(jnp.eye(3), jnp.array([0.5, 0.0, -1.2]))
    law = Impedance(arm, "tip", target, stiffness=300.0, damper=60.0, rows=POSITION[[0, 2]])
    tau = law(0.0, jnp.array([0.3, 0.5]), jnp.zeros(2))  # N m
    ```
    """

    model: Model
    frame: str = eqx.field(static=True)
    target: Target = eqx.field(converter=as_reference)
    #: N m/rad and N/m
    stiffness: Gain = eqx.field(converter=as_float)
    #: N m s/rad and N s/m
    damper: Gain = eqx.field(converter=as_float)
    rows: Float[Array, "m 6"] = eqx.field(converter=as_float, default_factory=lambda: POSE)
    inertia: Float[Array, "m m"] | None = eqx.field(converter=_as_optional_reference, default=None)
    measured: Law | None = eqx.field(converter=_as_optional_reference, default=None)
    posture: Config | None = eqx.field(converter=_as_optional_reference, default=None)
    posture_kp: Gain = eqx.field(converter=as_float, default=0.0)
    posture_kd: Gain = eqx.field(converter=as_float, default=0.0)
    damping: Gain = eqx.field(converter=as_float, default=0.0)
    passive: bool = eqx.field(static=True, default=True)

    def __call__(self, t, q, v) -> Float[Array, " nv"]:
        x = evaluate_task(self.model, q, v, self.frame, self.rows, self.damping)
        target = desired_frame_motion(self.target, t)
        e = self.rows @ pose_error(x.pose, target.pose)
        rate = self.rows @ (target.velocity - x.velocity)
        spring = apply_gain(self.damper, rate) + apply_gain(self.stiffness, e)
        a = self.rows @ target.acceleration
        if self.inertia is None:
            effort = x.jacobian.T @ spring
        else:
            wrench = jnp.zeros_like(spring) if self.measured is None else self.measured(t, q, v)
            a = a + jnp.linalg.solve(self.inertia, spring + wrench)
            effort = -x.jacobian.T @ wrench
        null_space_effort = posture_effort(self.model, self.posture, self.posture_kp, self.posture_kd, q, v)
        tau = x.efforts(a, null_space_effort) + effort
        return tau - passive_forces(self.model, q, v) if self.passive else tau


class HybridPositionForce(eqx.Module):
    """Hybrid position/force control on a surface: desired motion in the tangent plane, desired force along the normal.

    With the unit normal n of the surface, the tangential acceleration is `P (a_d + Kd edot + Kp e)`, `P = 1 - n n^T`.
    The normal acceleration follows the curvature, `grad . pddot = -pdot^T H pdot - normal_damping grad . pdot`, and the
    effort `-J^T n f` produces the force. On a rigid surface without friction (`constraints.on_surface`) the motion and
    the force are exact. Arguments:

    * `target`: a `Pose`, or a function `t -> Pose`. With `orient` the law controls the orientation too.
    * `surface`: function from the position p `(3,)` (m, world) of the frame's origin to a scalar, zero on the surface
      and positive on the side of the robot.
    * `force`: desired normal force, N, positive when the frame presses, or a function of time.
    * `measured`, `force_gain`: function `(t, q, v)` that returns the measured force (N), and the gain of the correction
      `force_gain (f_d - measured)`.
    * `normal_damping`: gain on the velocity along the normal, 1/s.
    * The remaining arguments are those of `OperationalSpace`.

    Called with `(t, q, v)`, returns efforts `(nv,)`. Raibert and Craig 1981; Khatib 1987, section IV.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.control import HybridPositionForce

    arm = jd.robots.double_pendulum()
    target = jd.spatial.Pose(jnp.eye(3), jnp.array([-0.5, 0.0, -1.2]))
    wall = lambda p: p[0] + 0.5  # the plane x = -0.5 m
    law = HybridPositionForce(arm, "tip", target, wall, force=5.0, kp=25.0, kd=10.0)
    tau = law(0.0, jnp.array([0.0, jnp.pi / 6]), jnp.zeros(2))  # N m
    ```
    """

    model: Model
    frame: str = eqx.field(static=True)
    target: Target = eqx.field(converter=as_reference)
    surface: Callable[[Array], Array] = eqx.field(converter=as_reference)
    force: Scalar | Callable[[Scalar], Scalar] = eqx.field(converter=as_reference)
    kp: Gain = eqx.field(converter=as_float)
    kd: Gain = eqx.field(converter=as_float)
    normal_damping: Gain = eqx.field(converter=as_float, default=0.0)
    measured: Law | None = eqx.field(converter=_as_optional_reference, default=None)
    force_gain: Gain = eqx.field(converter=as_float, default=0.0)
    posture: Config | None = eqx.field(converter=_as_optional_reference, default=None)
    posture_kp: Gain = eqx.field(converter=as_float, default=0.0)
    posture_kd: Gain = eqx.field(converter=as_float, default=0.0)
    damping: Gain = eqx.field(converter=as_float, default=0.0)
    orient: bool = eqx.field(static=True, default=False)
    passive: bool = eqx.field(static=True, default=True)

    def __call__(self, t, q, v) -> Float[Array, " nv"]:
        rows = POSE if self.orient else POSE[3:]
        x = evaluate_task(self.model, q, v, self.frame, rows, self.damping)
        target = desired_frame_motion(self.target, t)
        rate = target.velocity - x.velocity
        a = target.acceleration + apply_gain(self.kd, rate) + apply_gain(self.kp, pose_error(x.pose, target.pose))
        normal, linear = self._accelerate_along_surface(x, a[3:])
        null_space_effort = posture_effort(self.model, self.posture, self.posture_kp, self.posture_kd, q, v)
        tau = x.efforts(jnp.concatenate([a[:3], linear]) if self.orient else linear, null_space_effort)
        tau = tau - x.full[3:].T @ normal * self._contact_force(t, q, v)
        return tau - passive_forces(self.model, q, v) if self.passive else tau

    def _accelerate_along_surface(self, x, a):
        """The unit normal, and the acceleration nearest to `a` that follows the surface."""
        p, rate = x.pose.translation, x.velocity[3:]
        gradient = jax.grad(self.surface)
        slope, slope_rate = jax.jvp(gradient, (p,), (rate,))
        normal, size = normalise(slope)
        normal_acceleration = -(rate @ slope_rate + self.normal_damping * (slope @ rate)) / jnp.where(size > 0, size, 1)
        return normal, a + normal * (normal_acceleration - normal @ a)

    def _contact_force(self, t, q, v):
        force = self.force(t) if callable(self.force) else self.force
        if self.measured is None:
            return force
        return force + self.force_gain * (force - self.measured(t, q, v))
