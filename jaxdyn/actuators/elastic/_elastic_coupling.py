"""Compliant couplings between two joints."""

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Config, Float, Scalar
from jaxdyn.actuators.elastic._springs import AbstractSpring, as_spring, number_or_spring
from jaxdyn.dynamics import AbstractPart, Action
from jaxdyn.model import Model


class ElasticCoupling(AbstractPart):
    """A spring and a damper between two joints: `model.closures` of class `Coupling` with compliance.

    With the deflection `x = q_joint - sum of c_k q_source^k` the coupling exerts `-T(x) - d xdot` on the joint and
    `(T(x) + d xdot) d(sum)/dq_source` on the source, for instance in tendon drives, belts between two joints, and
    coupled fingers.

    Arguments: the names `joint` and `source` of two joints with one coordinate (others raise `ModelError`),
    `coefficients` c_0, c_1, ..., the `stiffness`, a number or a spring (N m/rad or N/m), and the `damping` d.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import ElasticCoupling

    arm = jd.robots.double_pendulum()
    belt = ElasticCoupling(arm.joint_names[1], arm.joint_names[0], [0.0, -1.0], stiffness=200.0, damping=0.5)
    result = jd.modes(arm, jnp.zeros(2), energies=(belt.potential_energy,))
    ```
    """

    joint: str = eqx.field(static=True)
    source: str = eqx.field(static=True)
    coefficients: Float[Array, "*batch n"] = eqx.field(converter=as_float)
    stiffness: Float[Array, "*batch"] | AbstractSpring = eqx.field(converter=number_or_spring)
    damping: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0)

    def deflection(self, model: Model, q: Config) -> Scalar:
        """`q_joint - sum of c_k q_source^k`, rad or m."""
        return q[self._index(model, self.joint)] - jnp.polyval(
            self.coefficients[::-1], q[self._index(model, self.source)]
        )

    def potential_energy(self, model: Model, q: Config) -> Scalar:
        """Energy stored in the spring, J."""
        return as_spring(self.stiffness).energy(self.deflection(model, q))

    def initial(self, model, q, v):
        return None

    def act(self, model, t, q, v, state):
        joint, source = (model.joint(name).v.start for name in (self.joint, self.source))
        slope = jax.grad(lambda x: jnp.polyval(self.coefficients[::-1], x))(q[self._index(model, self.source)])
        rate = v[joint] - slope * v[source]
        torque = as_spring(self.stiffness).torque(self.deflection(model, q)) + self.damping * rate
        return Action(jnp.zeros_like(v).at[joint].add(-torque).at[source].add(slope * torque))

    def _index(self, model: Model, name: str) -> int:
        view = model.joint(name)
        if (view.joint.nq, view.joint.nv) != (1, 1):
            raise ModelError(
                f"ElasticCoupling: joint {name!r} has {view.joint.nv} velocity coordinates; a coupling connects joints "
                "with one"
            )
        return view.q.start
