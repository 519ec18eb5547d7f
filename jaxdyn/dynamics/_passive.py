"""What joints do by themselves."""

from jaxdyn._numerics import smooth_sign
from jaxdyn._types import Array, Float
from jaxdyn.dynamics._inverse import checked_state
from jaxdyn.kinematics import difference
from jaxdyn.model import Model


def passive_forces(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """Efforts of damping, Coulomb friction and springs: `-b v - f tanh(v / v_s) - k (q - q_rest)`.

    `v_s` is the leaf `properties.friction_velocity`; the spring's deflection is taken on the joint's manifold.
    """
    q, v = checked_state(model, q, v)
    p = model.properties
    friction = p.friction * smooth_sign(v, p.friction_velocity)
    return -p.damping * v - friction - p.stiffness * difference(model, p.rest, q)
