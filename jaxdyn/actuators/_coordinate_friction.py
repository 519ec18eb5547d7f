"""Friction with the equations of rotors on the coordinates of a robot."""

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._types import Array, Float
from jaxdyn.actuators.contract import velocity_index
from jaxdyn.actuators.motors import AbstractRotorFriction
from jaxdyn.dynamics import AbstractPart, Action
from jaxdyn.model import Model


class CoordinateFriction(AbstractPart):
    """Stribeck or LuGre friction of joints, with the equations of the friction of rotors.

    Arguments:

    * `friction`: a `StribeckFriction` or `LuGreFriction` for joint velocities. Its fields are numbers, or arrays with
      one entry for each coordinate; with the units of the joint, N m and rad/s, or N and m/s.
    * `joints`: names of joints with one velocity coordinate; None for all velocity coordinates of the robot.

    The part has the state of the friction, with one entry for each coordinate. Unlike `JointFriction`, LuGre friction
    models stiction.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import CoordinateFriction, LuGreFriction

    model = jd.robots.pendulum()
    bristles = LuGreFriction(coulomb=1.0, static=1.5, stiffness=1e4, damping=100.0, stribeck_velocity=0.05)
    system, ts = jd.System(model, (CoordinateFriction(bristles),)), jnp.linspace(0.0, 0.1, 3)
    run = jd.simulate(system, jnp.array([0.1]), jnp.zeros(1), ts)
    assert abs(run.q[-1, 0] - 0.1) < 1e-3  # the friction holds a torque of 0.98 N m
    ```
    """

    friction: AbstractRotorFriction
    joints: tuple[str, ...] | None = eqx.field(static=True, default=None)

    def initial(self, model, q, v):
        size = model.nv if self.joints is None else len(self.joints)
        return jax.tree.map(lambda x: jnp.broadcast_to(x, (size,)), self.friction.initial(v.dtype))

    def act(self, model, t, q, v, state):
        index = self._index(model)
        torque, rate = self.friction.torque(v[index], state)
        return Action(jnp.zeros_like(v).at[index].set(-torque), rate=rate)

    def energy(self, state) -> Float[Array, ""]:
        """Energy that the friction stores, J."""
        return jnp.sum(self.friction.energy(state))

    def _index(self, model: Model) -> Array:
        if self.joints is None:
            return jnp.arange(model.nv)
        return jnp.asarray([velocity_index(model, "CoordinateFriction", joint) for joint in self.joints])
