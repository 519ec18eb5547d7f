"""Springs of an elastic transmission between a motor shaft and a joint."""

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._types import Array, Config, Float, Scalar, Velocity
from jaxdyn.actuators.elastic._stage import Stage, equivalent_stages, total_ratio
from jaxdyn.dynamics import AbstractActuator, Action
from jaxdyn.model import Model


class TransmissionSprings(AbstractActuator):
    """Springs, dampers and shaft inertias of an elastic transmission, made by `add_elastic_transmission`.

    With the shaft angles `theta_0` (motor) to `theta_K = q` and the torques `T_k = c_k x_k + d_k xdot_k` of the
    deflections `x_k = theta_(k-1) / N_k - theta_k`, the part exerts `-T_k / N_k` on shaft k - 1 and `T_k` on shaft k.
    Only the torque T_K of the last stage acts on the links.

    The inertias of the shafts belong to the part as well: `mount(model)` is the model whose armatures include them, as
    functions of the leaves of the stages, and a `System` moves the mounted model. The state is the state of the
    hysteresis; a transmission without hysteresis has none. The part has no inputs: a motor on the input shaft has them.
    """

    #: name of the joint
    joint: str = eqx.field(static=True)
    #: names of the joints of the shafts, the input shaft first
    shafts: tuple[str, ...] = eqx.field(static=True)
    #: from the motor to the joint
    stages: tuple[Stage, ...]
    #: whether the rotor is a body that couples with the motion of its link
    has_rotor_body: bool = eqx.field(static=True, default=False)
    num_inputs: int = eqx.field(static=True, default=0, init=False)
    uses_acceleration: bool = eqx.field(static=True, default=False, init=False)

    @property
    def equivalent(self) -> tuple[Stage, ...]:
        """One stage for each shaft: stages in series are merged."""
        return equivalent_stages(self.stages)

    @property
    def ratio(self) -> Scalar:
        """Turns of the input shaft per turn of the joint."""
        return total_ratio(self.stages)

    def mount(self, model: Model) -> Model:
        """The model with the inertias of the shafts, `armature + I' + I'' / N^2`."""
        armature = model.properties.armature
        for name, stage in zip(self.shafts, self.equivalent, strict=True):
            armature = armature.at[model.joint(name).v.start].add(stage.shaft_inertia)
        return eqx.tree_at(lambda m: m.properties.armature, model, armature)

    def deflections(self, model: Model, q: Config, v: Velocity) -> tuple[tuple[Scalar, Scalar], ...]:
        """Deflection `theta_(k-1) / N_k - theta_k` of each equivalent stage and its rate, at its output."""
        views = [model.joint(name) for name in (*self.shafts, self.joint)]
        angles = [(q[view.q.start], v[view.v.start]) for view in views]
        return tuple(
            (angles[k][0] / stage.ratio - angles[k + 1][0], angles[k][1] / stage.ratio - angles[k + 1][1])
            for k, stage in enumerate(self.equivalent)
        )

    def torques(self, model: Model, q: Config, v: Velocity, state=None) -> Float[Array, " shafts"]:
        """Output torques T_k of the equivalent stages; the last is the torque on the joint, N m or N."""
        parts = zip(self.equivalent, self.deflections(model, q, v), self._states(state), strict=True)
        return jnp.stack([stage.torque(x, rate, z) for stage, (x, rate), z in parts])

    def potential_energy(self, model: Model, q: Config, state=None) -> Scalar:
        """Energy stored in the springs and in the hysteresis, J."""
        deflections = self.deflections(model, q, jnp.zeros(model.nv, q.dtype))
        parts = zip(self.equivalent, deflections, self._states(state), strict=True)
        return sum((stage.energy(x, z) for stage, (x, _), z in parts), jnp.zeros((), q.dtype))

    def shaft_angles(self, angle: Scalar, torque: Scalar) -> Float[Array, " shafts"]:
        """Angles of the shafts, rad, that hold the joint at an angle under a torque: `theta = N (q + tau / c)`."""
        angles = []
        for stage in reversed(self.equivalent):
            angle, torque = stage.ratio * (angle + stage.spring.deflection(torque)), torque / stage.ratio
            angles.append(angle)
        return jnp.stack(angles[::-1])

    def initial(self, model, q, v):
        states = tuple(None if s.hysteresis is None else jnp.zeros((), q.dtype) for s in self.equivalent)
        return None if all(z is None for z in states) else states

    def act(self, model, t, q, v, a, state, inputs):
        effort = jnp.zeros_like(v)
        names = (*self.shafts, self.joint)
        for k, torque in enumerate(self.torques(model, q, v, state)):
            effort = effort.at[model.joint(names[k]).v.start].add(-torque / self.equivalent[k].ratio)
            effort = effort.at[model.joint(names[k + 1]).v.start].add(torque)
        return Action(effort, rate=self._rates(model, q, v, state))

    def _rates(self, model, q, v, state):
        if state is None:
            return None
        parts = zip(self.equivalent, self.deflections(model, q, v), state, strict=True)
        return tuple(None if z is None else stage.hysteresis_rate(x, rate, z) for stage, (x, rate), z in parts)

    def _states(self, state):
        return (None,) * len(self.shafts) if state is None else state
