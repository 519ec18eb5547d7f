"""Joint friction with a direction, a Stribeck bump and a dependence on the load."""

from typing import Any

import jax.numpy as jnp

from jaxdyn._errors import ShapeError
from jaxdyn._numerics import smooth_sign
from jaxdyn._types import Array, Float
from jaxdyn.dynamics import AbstractPart, Action, gravity_forces
from jaxdyn.model import Model


class JointFriction(AbstractPart):
    """Friction of joints, beyond the damping and the Coulomb friction of `model.properties`; one number a coordinate.

    With `s = tanh(v / width)`, `u = (1 + s) / 2` and `d = (1 - s) / 2`, the effort is minus

        coulomb_forward u - coulomb_backward d + (viscous_forward u + viscous_backward d) v
        + (stribeck exp(-(v / stribeck_velocity)^2) + load_coefficient |g(q)|) s

    where g(q) is the effort that holds the robot against gravity (`gravity_forces`), the share of the transmitted load
    that does not depend on the acceleration; |g| is smoothed over `load_width`. The effort is linear in all but
    the three widths and velocities. Stribeck: Armstrong-Helouvry, Dupont and Canudas de Wit 1994, equation 6.
    """

    #: Coulomb friction at positive and at negative velocity, N m or N
    coulomb_forward: Float[Array, "*batch nv"]
    coulomb_backward: Float[Array, "*batch nv"]
    #: viscous friction at positive and at negative velocity, N m s/rad or N s/m
    viscous_forward: Float[Array, "*batch nv"]
    viscous_backward: Float[Array, "*batch nv"]
    #: what static friction has above Coulomb's, N m or N
    stribeck: Float[Array, "*batch nv"]
    #: velocity over which that is lost, rad/s or m/s
    stribeck_velocity: Float[Array, "*batch nv"]
    #: friction per effort of gravity, no unit
    load_coefficient: Float[Array, "*batch nv"]
    #: effort below which the load's magnitude is smoothed, N m or N
    load_width: Float[Array, "*batch nv"]
    #: velocity over which friction changes its sign, rad/s or m/s
    width: Float[Array, "*batch nv"]

    def effort(self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """The effort of friction at configuration q and velocity v, N m or N."""
        s = smooth_sign(v, self.width)
        up, down = (1 + s) / 2, (1 - s) / 2
        held = gravity_forces(model, q)
        load = jnp.sqrt(held * held + self.load_width**2) - self.load_width
        level = self.stribeck * jnp.exp(-((v / self.stribeck_velocity) ** 2)) + self.load_coefficient * load
        slip = (self.viscous_forward * up + self.viscous_backward * down) * v
        return -(self.coulomb_forward * up - self.coulomb_backward * down + slip + level * s)

    def initial(self, model, q, v):
        return None

    def act(self, model, t, q, v, state):
        return Action(self.effort(model, q, v))


def joint_friction(
    model: Model,
    *,
    coulomb: Any = 0.0,
    viscous: Any = 0.0,
    stribeck: Any = 0.0,
    stribeck_velocity: Any = 0.1,
    load_coefficient: Any = 0.0,
    load_width: Any = 0.01,
    width: Any = 0.01,
) -> JointFriction:
    """A `JointFriction` of this model's size, equal in both directions; an argument is a number or `(nv,)`."""
    each = lambda name, x: per_coordinate(model, name, x)
    coulomb, viscous = each("coulomb", coulomb), each("viscous", viscous)
    return JointFriction(
        coulomb,
        coulomb,
        viscous,
        viscous,
        each("stribeck", stribeck),
        each("stribeck_velocity", stribeck_velocity),
        each("load_coefficient", load_coefficient),
        each("load_width", load_width),
        each("width", width),
    )


def per_coordinate(model: Model, name: str, x: Any):
    """A number, or one for each velocity coordinate, as `(nv,)`."""
    x = jnp.asarray(x, model.dtype)
    if x.shape not in ((), (model.nv,)):
        raise ShapeError(
            f"{name} has shape {x.shape}; expected a number or {(model.nv,)}, one for each velocity coordinate"
        )
    return jnp.broadcast_to(x, (model.nv,))
