"""Actuators without states: the actuators that a model describes, and ideal efforts with limits."""

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.dynamics import AbstractActuator, Action
from jaxdyn.model import Model


class DescribedActuators(AbstractActuator):
    """The actuators that a model describes, as read from MJCF or from the transmissions of URDF.

        effort = clip(sum of gear clip(u, range), -limits.effort, limits.effort)

    There is one input u for each entry of `model.actuators`, in their order. Gears, ranges and limits are leaves of the
    model. The second clip bounds the effort of all actuators on a coordinate, as `actuatorfrcrange` of MJCF and
    `<limit effort>` of URDF do. Derivatives with respect to a saturated input are zero; `is_saturated` reports it.

    Arguments:

    * `model`: the robot; one without actuators raises `ModelError`.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import DescribedActuators
    from jaxdyn.model import to_builder

    builder = to_builder(jd.robots.pendulum())
    model = builder.add_actuator("motor", "rod_joint", gear=10.0, range=(-1.0, 1.0)).build()
    system = jd.System(model, (DescribedActuators(model),))
    path = jd.simulate(system, jnp.zeros(1), jnp.zeros(1), jnp.linspace(0.0, 0.1, 3), inputs=jnp.array([3.0]))
    assert jnp.allclose(path.action.effort, 10.0)  # N m
    ```
    """

    num_inputs: int = eqx.field(static=True)
    uses_acceleration: bool = eqx.field(static=True)

    def __init__(self, model: Model):
        if not model.actuators:
            raise ModelError(
                "the model describes no actuators; add them with ModelBuilder.add_actuator, or command efforts of the "
                "joints by JointEfforts(model)"
            )
        self.num_inputs = len(model.actuators)
        self.uses_acceleration = False

    def initial(self, model, q, v):
        return None

    def mount(self, model):
        return model

    def act(self, model, t, q, v, a, state, inputs):
        return Action(_clip_efforts(model, self._unlimited(model, self._clip_inputs(model, inputs))))

    def is_saturated(self, model: Model, inputs: Float[Array, " inputs"]) -> Array:
        """Whether each input `(inputs,)` is outside of its range, or its joint at the limit of its effort."""
        within = self._clip_inputs(model, inputs)
        effort = self._unlimited(model, within)
        at_limit = jnp.abs(effort) > model.limits.effort
        joints = [jnp.any(at_limit[model.joint(actuator.joint).v]) for actuator in model.actuators]
        return (within != inputs) | jnp.stack(joints)

    def _clip_inputs(self, model: Model, inputs):
        bounds = jnp.stack([actuator.range for actuator in model.actuators])
        return jnp.clip(inputs, bounds[:, 0], bounds[:, 1])

    def _unlimited(self, model: Model, inputs):
        effort = jnp.zeros(model.nv, inputs.dtype)
        for actuator, u in zip(model.actuators, inputs, strict=True):
            effort = effort.at[model.joint(actuator.joint).v].add(actuator.gear * u)
        return effort


class JointEfforts(AbstractActuator):
    """Ideal efforts on all velocity coordinates, within `model.limits.effort`.

    There is one input for each velocity coordinate, N m or N.

    Arguments:

    * `model`: the robot.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import JointEfforts

    panda = jd.robots.panda()
    system = jd.System(panda, (JointEfforts(panda),))
    state = system.initial(jd.neutral(panda), jnp.zeros(panda.nv))
    action = system.action(0.0, state, inputs=jnp.full(panda.nv, 1e3))
    assert action.effort[0] == panda.limits.effort[0]
    ```
    """

    num_inputs: int = eqx.field(static=True)
    uses_acceleration: bool = eqx.field(static=True)

    def __init__(self, model: Model):
        self.num_inputs = model.nv
        self.uses_acceleration = False

    def initial(self, model, q, v):
        return None

    def mount(self, model):
        return model

    def act(self, model, t, q, v, a, state, inputs):
        return Action(_clip_efforts(model, inputs))

    def is_saturated(self, model: Model, inputs: Float[Array, " nv"]) -> Array:
        """Whether each effort `(nv,)` exceeds its limit."""
        return jnp.abs(inputs) > model.limits.effort


def _clip_efforts(model: Model, effort):
    return jnp.clip(effort, -model.limits.effort, model.limits.effort)
