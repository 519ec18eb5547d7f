"""Laws that follow a motion of the joints: with `e = q_d (-) q` and `edot = v_d - v`.

Each is a module whose leaves are its gains and its own model, which need not be that of the robot it drives. Called
with `(t, q, v)` it returns efforts `(nv,)`, so it can be given to `simulate` as `effort`. Gains are numbers, one a
joint, or matrices.
"""

from typing import Any

import equinox as eqx

from jaxdyn._types import Array, Float
from jaxdyn.control._reference import Plan, as_float, as_reference, desired, inverse_dynamics, product
from jaxdyn.dynamics import gravity_forces
from jaxdyn.kinematics import difference
from jaxdyn.model import Model

Gain = Float[Array, "..."]


def _errors(law, t, q, v):
    want = desired(law.model, law.reference, t)
    return want, difference(law.model, q, want.q), want.v - v


class GravityPD(eqx.Module):
    """`tau = Kp e + Kd edot + g(q)`: a spring and a damper in every joint, and the weight carried.

    Globally stable at a constant reference for all positive gains (Takegaki and Arimoto 1981).
    """

    model: Model
    reference: Any = eqx.field(converter=as_reference)
    #: N m/rad or N/m
    kp: Gain = eqx.field(converter=as_float)
    #: N m s/rad or N s/m
    kd: Gain = eqx.field(converter=as_float)

    def __call__(self, t, q, v) -> Float[Array, " nv"]:
        _, e, rate = _errors(self, t, q, v)
        return product(self.kp, e) + product(self.kd, rate) + gravity_forces(self.model, q)


class ComputedTorque(eqx.Module):
    """`tau = M(q) (a_d + Kd edot + Kp e) + h(q, v)`: with a perfect model `eddot + Kd edot + Kp e = 0`.

    If `passive`, what the joints do by themselves (damping, friction, springs) is compensated too. Gains in 1/s^2
    and 1/s. Luh, Walker and Paul 1980; Lynch and Park 2017, section 11.4.
    """

    model: Model
    reference: Any = eqx.field(converter=as_reference)
    kp: Gain = eqx.field(converter=as_float)
    kd: Gain = eqx.field(converter=as_float)
    passive: bool = eqx.field(static=True, default=True)

    def __call__(self, t, q, v) -> Float[Array, " nv"]:
        want, e, rate = _errors(self, t, q, v)
        a = want.a + product(self.kd, rate) + product(self.kp, e)
        return inverse_dynamics(self.model, q, v, a, self.passive)


class ReferenceFeedforward(eqx.Module):
    """`tau = u*(q_d, v_d, a_d) + Kp e + Kd edot`: the nominal control is that of the reference motion.

    Scheme (a) of figure 20.10 of Vukobratovic and Potkonjak 2005, "Dynamics of robots". `u*` is inverse dynamics of
    the reference, computed when needed; `StoredFeedforward` reads it from a table made beforehand. Gains in N m/rad
    and N m s/rad, or N/m and N s/m.
    """

    model: Model
    reference: Any = eqx.field(converter=as_reference)
    kp: Gain = eqx.field(converter=as_float)
    kd: Gain = eqx.field(converter=as_float)
    passive: bool = eqx.field(static=True, default=True)

    def __call__(self, t, q, v) -> Float[Array, " nv"]:
        want, e, rate = _errors(self, t, q, v)
        return inverse_dynamics(self.model, *want, self.passive) + product(self.kp, e) + product(self.kd, rate)


class StateFeedforward(eqx.Module):
    """`tau = u*(q, v, a_d) + Kp e + Kd edot`: the nominal control is found from the measured state, on line.

    Scheme (b) of figure 20.10 of Vukobratovic and Potkonjak 2005, "Dynamics of robots". With a perfect model
    `M(q) eddot + Kd edot + Kp e = 0`, where computed torque has the unit matrix for M.
    """

    model: Model
    reference: Any = eqx.field(converter=as_reference)
    kp: Gain = eqx.field(converter=as_float)
    kd: Gain = eqx.field(converter=as_float)
    passive: bool = eqx.field(static=True, default=True)

    def __call__(self, t, q, v) -> Float[Array, " nv"]:
        want, e, rate = _errors(self, t, q, v)
        nominal = inverse_dynamics(self.model, q, v, want.a, self.passive)
        return nominal + product(self.kp, e) + product(self.kd, rate)


class StoredFeedforward(eqx.Module):
    """`tau = u*(t) + Kp e + Kd edot` with motion and nominal control out of a table, as `nominal_plan` makes it.

    Scheme (a) of figure 20.10 of Vukobratovic and Potkonjak 2005, "Dynamics of robots", off line: no dynamics are
    computed while the robot moves. The model serves to take differences of configurations.
    """

    model: Model
    plan: Plan
    kp: Gain = eqx.field(converter=as_float)
    kd: Gain = eqx.field(converter=as_float)

    def __call__(self, t, q, v) -> Float[Array, " nv"]:
        want = self.plan.motion(self.model, t)
        e, rate = difference(self.model, q, want.q), want.v - v
        return self.plan.effort_at(t) + product(self.kp, e) + product(self.kd, rate)
