"""Passive joint efforts: damping, Coulomb friction and springs."""

from jaxdyn._numerics import smooth_sign
from jaxdyn._types import Array, Float
from jaxdyn.kinematics import difference
from jaxdyn.model import Model
from jaxdyn.recursion import check_state


def passive_forces(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """Efforts of damping, Coulomb friction and springs, `-b v - f tanh(v / v_s) - k (q - q_rest)`, `(nv,)`, N m or N.

    `v_s` is the leaf `properties.friction_velocity`; the deflection of a spring is `difference(q_rest, q)`.
    """
    q, v = check_state(model, q=q, v=v)
    p = model.properties
    friction = p.friction * smooth_sign(v, p.friction_velocity)
    return -p.damping * v - friction - p.stiffness * difference(model, p.rest, q)
