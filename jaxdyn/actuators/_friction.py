"""Joint friction that depends on direction, velocity (Stribeck) and load."""

import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ShapeError
from jaxdyn._numerics import smooth_sign
from jaxdyn._types import Array, Float
from jaxdyn.dynamics import AbstractPart, Action, gravity_forces
from jaxdyn.model import Model


class JointFriction(AbstractPart):
    """Joint friction in addition to the damping and Coulomb friction of `model.properties`; one number per coordinate.

    With `s = tanh(v / width)`, `u = (1 + s) / 2` and `d = (1 - s) / 2`, the effort is minus

        coulomb_forward u - coulomb_backward d + (viscous_forward u + viscous_backward d) v
        + (stribeck exp(-(v / stribeck_velocity)^2) + load_coefficient |g(q)|) s

    where g(q) is the gravity force (`gravity_forces`), the part of the transmitted load that does not depend on
    the acceleration; |g| is smoothed over `load_width`. The effort is linear in all parameters but `width`,
    `load_width` and `stribeck_velocity` (Armstrong-Helouvry, Dupont and Canudas de Wit 1994, equation 6).
    """

    #: Coulomb friction at positive and at negative velocity, N m or N
    coulomb_forward: Float[Array, "*batch nv"]
    coulomb_backward: Float[Array, "*batch nv"]
    #: viscous friction at positive and at negative velocity, N m s/rad or N s/m
    viscous_forward: Float[Array, "*batch nv"]
    viscous_backward: Float[Array, "*batch nv"]
    #: static friction minus Coulomb friction, N m or N
    stribeck: Float[Array, "*batch nv"]
    #: velocity over which this difference decays, rad/s or m/s
    stribeck_velocity: Float[Array, "*batch nv"]
    #: friction per gravity force, dimensionless
    load_coefficient: Float[Array, "*batch nv"]
    #: gravity force below which its magnitude is smoothed, N m or N
    load_width: Float[Array, "*batch nv"]
    #: velocity over which friction changes sign, rad/s or m/s
    width: Float[Array, "*batch nv"]

    def effort(self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """Friction effort, `(nv,)`, N m or N, at configuration q and velocity v."""
        s = smooth_sign(v, self.width)
        forward, backward = (1 + s) / 2, (1 - s) / 2
        gravity = gravity_forces(model, q)
        load = jnp.sqrt(gravity * gravity + self.load_width**2) - self.load_width
        symmetric = self.stribeck * jnp.exp(-((v / self.stribeck_velocity) ** 2)) + self.load_coefficient * load
        viscous = (self.viscous_forward * forward + self.viscous_backward * backward) * v
        return -(self.coulomb_forward * forward - self.coulomb_backward * backward + viscous + symmetric * s)

    def initial(self, model, q, v):
        return None

    def act(self, model, t, q, v, state):
        return Action(self.effort(model, q, v))


def joint_friction(
    model: Model,
    *,
    coulomb: ArrayLike = 0.0,
    viscous: ArrayLike = 0.0,
    stribeck: ArrayLike = 0.0,
    stribeck_velocity: ArrayLike = 0.1,
    load_coefficient: ArrayLike = 0.0,
    load_width: ArrayLike = 0.01,
    width: ArrayLike = 0.01,
) -> JointFriction:
    """`JointFriction` for all velocity coordinates of a model, equal in both directions.

    Arguments, each a number or `(nv,)`:

    * `coulomb`: Coulomb friction, N m or N
    * `viscous`: viscous friction, N m s/rad or N s/m
    * `stribeck`, `stribeck_velocity`: excess of static friction, N m or N, and the velocity over which it decays
    * `load_coefficient`, `load_width`: friction per gravity force, and the force below which its magnitude is smoothed
    * `width`: velocity over which friction changes sign, rad/s or m/s

    Returns the part, for `System(model, parts=(...,))`. Raises `ShapeError` for an array of another shape.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import joint_friction

    model = jd.robots.double_pendulum()
    friction = joint_friction(model, coulomb=0.5, viscous=jnp.array([0.1, 0.2]))
    effort = friction.effort(model, jnp.array([0.1, 0.2]), jnp.array([1.0, -1.0]))
    ```
    """
    expand = lambda name, x: per_coordinate(model, name, x)
    coulomb, viscous = expand("coulomb", coulomb), expand("viscous", viscous)
    return JointFriction(
        coulomb,
        coulomb,
        viscous,
        viscous,
        expand("stribeck", stribeck),
        expand("stribeck_velocity", stribeck_velocity),
        expand("load_coefficient", load_coefficient),
        expand("load_width", load_width),
        expand("width", width),
    )


def per_coordinate(model: Model, name: str, x: ArrayLike) -> Float[Array, " nv"]:
    """Broadcasts a number, or one number per velocity coordinate, to `(nv,)`."""
    x = jnp.asarray(x, model.dtype)
    if x.shape not in ((), (model.nv,)):
        raise ShapeError(
            f"{name} has shape {x.shape}; expected a number or {(model.nv,)}, one number per velocity coordinate"
        )
    return jnp.broadcast_to(x, (model.nv,))
