"""Force control of a robot in contact with a dynamic environment."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import as_float, as_function, optional_float
from jaxdyn._types import Array, Config, Float, Scalar
from jaxdyn.contact.compliant import GapCoordinate, gap_coordinate
from jaxdyn.contact.contract import AbstractGap
from jaxdyn.contact.environment._dynamics import Environment
from jaxdyn.dynamics import AbstractPart, Action, bias_forces, mass_matrix, passive_forces
from jaxdyn.kinematics import difference
from jaxdyn.model import Model


class PenetrationState(NamedTuple):
    """State of an `EnvironmentForceControl`: the desired motion of the surface along its normal."""

    #: s_d, m
    position: Scalar
    #: sdot_d, m/s
    velocity: Scalar


class EnvironmentForceControl(AbstractPart):
    """Computed-torque control of the force on a dynamic environment, through the corresponding penetration.

    The desired gap is the motion of the environment under the desired force, `m sddot_d + b sdot_d + k s_d = -F_d(t)`,
    which the law integrates. With `e = s - s_d`, the robot tracks it by

        tau = H a + h - J^T F,    J a + A = sddot_d - kd edot - kp e,    F = -(m sddot + b sdot + k s)

    For a perfect model `eddot + kd edot + kp e = 0`, and the force error `-(m eddot + b edot + k e)` decays with the
    same poles, which can be placed freely. Null-space motions, which leave the gap unchanged, track `posture`,
    dynamically decoupled from the contact.

    The initial state is the actual gap and its rate, so that the initial force error is zero for a perfect model; pass
    another initial state as `simulate(parts=)`.

    Arguments:

    * `model`: model of the robot in the law, without the environment
    * `gap`: to the surface in equilibrium
    * `environment`: model of the environment in the law
    * `desired`: the force F_d on the robot along the normal, N, a function of time
    * `kp`, `kd`: gains of the gap, 1/s^2 and 1/s
    * `posture`: desired configuration `(nq,)` of null-space motions, or None
    * `posture_kp`, `posture_kd`: their gains, 1/s^2 and 1/s
    * `measured`: function `(t, q, v)` that returns the measured force, which replaces the modelled force
    * `passive`: whether the law compensates the damping, friction and springs of the joints

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.contact import Environment, EnvironmentForceControl, EnvironmentMotion, Gap, Plane, Point

    arm, surface = jd.robots.double_pendulum(), Environment(0.5, 4000.0, 30.0)
    wall = Gap("tip", Point(), ("world", (0.6, 0.0, 0.0)), Plane([-1.0, 0.0, 0.0]))


    def desired(t):
        return 20.0 + 5.0 * jnp.sin(10.0 * t)


    law = EnvironmentForceControl(arm, wall, surface, desired, kp=400.0, kd=40.0)
    system = jd.System(arm, (law,), motion=EnvironmentMotion(wall, surface))
    path = jd.simulate(system, jnp.array([-0.9, 1.0843]), jnp.zeros(2), jnp.array([0.0, 0.05]))
    ```
    """

    model: Model
    gap: AbstractGap
    environment: Environment
    desired: Callable[[Scalar], Scalar] = eqx.field(converter=as_function)
    kp: Float[Array, "*batch"] = eqx.field(converter=as_float)
    kd: Float[Array, "*batch"] = eqx.field(converter=as_float)
    posture: Config | None = eqx.field(converter=optional_float, default=None)
    posture_kp: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0)
    posture_kd: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0)
    measured: Callable[..., Scalar] | None = eqx.field(converter=as_function, default=None)
    passive: bool = eqx.field(static=True, default=True)

    def initial(self, model, q, v):
        s = gap_coordinate(self.gap, self.model, jnp.zeros((), q.dtype), q, v)
        return PenetrationState(s.value, s.rate)

    def act(self, model, t, q, v, state):
        s = gap_coordinate(self.gap, self.model, t, q, v)
        x = self.environment
        desired = self.desired(t) + x.damping * state.velocity + x.stiffness * state.position
        acceleration = -desired / x.mass
        command = acceleration - self.kd * (s.rate - state.velocity) - self.kp * (s.value - state.position)
        a, mass = self._accelerations(q, v, s, command)
        force = x.force(s.value, s.rate, command) if self.measured is None else self.measured(t, q, v)
        tau = mass @ a + bias_forces(self.model, q, v) - s.jacobian * force
        tau = tau - passive_forces(self.model, q, v) if self.passive else tau
        return Action(tau, rate=PenetrationState(state.velocity, acceleration))

    def _accelerations(self, q, v, s: GapCoordinate, command) -> tuple[Array, Array]:
        """Accelerations `(nv,)` nearest to those of the posture that have the commanded gap acceleration, and `H`."""
        mass = mass_matrix(self.model, q)
        a = -self.posture_kd * v
        if self.posture is not None:
            a = a + self.posture_kp * difference(self.model, q, self.posture)
        response = jnp.linalg.solve(mass, s.jacobian)
        scale = s.jacobian @ response
        is_movable = scale > 0
        missing = jnp.where(is_movable, (command - s.bias - s.jacobian @ a) / jnp.where(is_movable, scale, 1), 0)
        return a + response * missing, mass
