"""Joint-space control laws, with the errors `e = q_d (-) q` and `edot = v_d - v`.

Each law is a module whose leaves are its gains and its model, which may differ from the model of the robot. A law is
called with `(t, q, v)` and returns efforts `(nv,)`; pass it to `simulate` as `effort`. A gain is a scalar, a vector
with one entry a joint, or a matrix.
"""

import equinox as eqx

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float
from jaxdyn.control._reference import Plan, Reference, apply_gain, as_reference, desired_motion, inverse_dynamics
from jaxdyn.dynamics import gravity_forces
from jaxdyn.kinematics import difference
from jaxdyn.model import Model

Gain = Float[Array, "..."]


def _tracking_errors(law, t, q, v):
    """The desired motion, e and edot."""
    target = desired_motion(law.model, law.reference, t)
    return target, difference(law.model, q, target.q), target.v - v


class GravityPD(eqx.Module):
    """PD control with gravity compensation: `tau = Kp e + Kd edot + g(q)`.

    Globally asymptotically stable at a constant reference for all positive gains (Takegaki and Arimoto 1981).

    Arguments:

    * `model`: the model for gravity compensation.
    * `reference`: configuration `(nq,)` or any other reference of `desired_motion`.
    * `kp`, `kd`: gains, N m/rad and N m s/rad (or N/m and N s/m); scalars, `(nv,)` or `(nv, nv)`.

    Called with `(t, q, v)`, returns efforts `(nv,)`.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.control import GravityPD

    arm = jd.robots.pendulum()
    law = GravityPD(arm, jnp.array([1.0]), kp=20.0, kd=4.0)
    tau = law(0.0, jnp.array([0.5]), jnp.zeros(1))  # N m
    assert abs(tau - jd.gravity_forces(arm, jnp.array([0.5])) - 10.0).max() < 1e-5
    ```
    """

    model: Model
    reference: Reference = eqx.field(converter=as_reference)
    #: N m/rad or N/m
    kp: Gain = eqx.field(converter=as_float)
    #: N m s/rad or N s/m
    kd: Gain = eqx.field(converter=as_float)

    def __call__(self, t, q, v) -> Float[Array, " nv"]:
        _, e, rate = _tracking_errors(self, t, q, v)
        return apply_gain(self.kp, e) + apply_gain(self.kd, rate) + gravity_forces(self.model, q)


class ComputedTorque(eqx.Module):
    """Computed-torque control: `tau = M(q) (a_d + Kd edot + Kp e) + h(q, v)`.

    With a perfect model the error obeys `eddot + Kd edot + Kp e = 0`. Arguments:

    * `model`: the model for inverse dynamics.
    * `reference`: a reference of `desired_motion`, such as `PathReference(position)`.
    * `kp`, `kd`: gains, 1/s^2 and 1/s; scalars, `(nv,)` or `(nv, nv)`.
    * `passive`: whether the law compensates the passive forces of the joints (damping, friction, springs).

    Called with `(t, q, v)`, returns efforts `(nv,)`. Luh, Walker and Paul 1980; Lynch and Park 2017, section 11.4.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.control import ComputedTorque, PathReference

    arm = jd.robots.pendulum(damping=0.1)
    law = ComputedTorque(arm, PathReference(lambda t: jnp.sin(t)[None]), kp=100.0, kd=20.0)
    tau = law(0.5, jnp.array([0.4]), jnp.array([0.9]))  # N m
    ```
    """

    model: Model
    reference: Reference = eqx.field(converter=as_reference)
    kp: Gain = eqx.field(converter=as_float)
    kd: Gain = eqx.field(converter=as_float)
    passive: bool = eqx.field(static=True, default=True)

    def __call__(self, t, q, v) -> Float[Array, " nv"]:
        target, e, rate = _tracking_errors(self, t, q, v)
        a = target.a + apply_gain(self.kd, rate) + apply_gain(self.kp, e)
        return inverse_dynamics(self.model, q, v, a, self.passive)


class ReferenceFeedforward(eqx.Module):
    """Feedforward of the reference motion: `tau = u*(q_d, v_d, a_d) + Kp e + Kd edot`.

    Scheme (a) of figure 20.10 of Vukobratovic and Potkonjak 2005, "Dynamics of robots". `u*` is the inverse dynamics of
    the reference, computed on line; `StoredFeedforward` reads it from a table computed off line. Gains in N m/rad
    and N m s/rad, or N/m and N s/m.
    """

    model: Model
    reference: Reference = eqx.field(converter=as_reference)
    kp: Gain = eqx.field(converter=as_float)
    kd: Gain = eqx.field(converter=as_float)
    passive: bool = eqx.field(static=True, default=True)

    def __call__(self, t, q, v) -> Float[Array, " nv"]:
        target, e, rate = _tracking_errors(self, t, q, v)
        return inverse_dynamics(self.model, *target, self.passive) + apply_gain(self.kp, e) + apply_gain(self.kd, rate)


class StateFeedforward(eqx.Module):
    """Feedforward at the measured state: `tau = u*(q, v, a_d) + Kp e + Kd edot`.

    Scheme (b) of figure 20.10 of Vukobratovic and Potkonjak 2005, "Dynamics of robots". With a perfect model the error
    obeys `M(q) eddot + Kd edot + Kp e = 0`; under computed torque M is replaced by the identity.
    """

    model: Model
    reference: Reference = eqx.field(converter=as_reference)
    kp: Gain = eqx.field(converter=as_float)
    kd: Gain = eqx.field(converter=as_float)
    passive: bool = eqx.field(static=True, default=True)

    def __call__(self, t, q, v) -> Float[Array, " nv"]:
        target, e, rate = _tracking_errors(self, t, q, v)
        nominal = inverse_dynamics(self.model, q, v, target.a, self.passive)
        return nominal + apply_gain(self.kp, e) + apply_gain(self.kd, rate)


class StoredFeedforward(eqx.Module):
    """Feedforward from a table: `tau = u*(t) + Kp e + Kd edot`, with motion and efforts from a `Plan`.

    Scheme (a) of figure 20.10 of Vukobratovic and Potkonjak 2005, "Dynamics of robots", off line: `nominal_plan`
    computes the plan, and no dynamics are evaluated while the robot moves. The model is used for differences of
    configurations only.
    """

    model: Model
    plan: Plan
    kp: Gain = eqx.field(converter=as_float)
    kd: Gain = eqx.field(converter=as_float)

    def __call__(self, t, q, v) -> Float[Array, " nv"]:
        target = self.plan.motion(self.model, t)
        e, rate = difference(self.model, q, target.q), target.v - v
        return self.plan.effort_at(t) + apply_gain(self.kp, e) + apply_gain(self.kd, rate)
