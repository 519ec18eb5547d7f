"""Dynamics of a robot in contact with a dynamic environment, and the impact on it."""

from typing import NamedTuple

import equinox as eqx
from jax.scipy.linalg import cho_factor, cho_solve
from jax.typing import ArrayLike

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float, Scalar
from jaxdyn.contact.compliant import GapCoordinate, gap_coordinate
from jaxdyn.contact.contract import AbstractGap
from jaxdyn.dynamics import bias_forces, mass_matrix
from jaxdyn.model import Model
from jaxdyn.recursion import check_state


class Environment(eqx.Module):
    """Mass, spring and damper of a surface along its normal: `F = -(m sddot + b sdot + k s)` on the robot.

    s is the displacement of the surface from its equilibrium, positive outwards, which is the gap of a robot in
    contact; the weight of the environment is part of the equilibrium.
    """

    #: m, kg
    mass: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: k, N/m
    stiffness: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: b, N s/m
    damping: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0)

    def force(self, position: Scalar, velocity: Scalar, acceleration: Scalar) -> Scalar:
        """The force on the robot, N, at s, sdot and sddot."""
        return -(self.mass * acceleration + self.damping * velocity + self.stiffness * position)


class EnvironmentDynamics(NamedTuple):
    """Result of `environment_dynamics`."""

    #: accelerations of the robot
    a: Float[Array, " nv"]
    #: force of the surface on the robot along the normal, N; the contact opens where it falls to zero
    force: Scalar


class EnvironmentImpact(NamedTuple):
    """Result of `environment_impact`."""

    #: velocities of the robot after the impact; the surface has the rate of the gap
    v: Float[Array, " nv"]
    #: impulse on the robot along the normal, N s
    impulse: Scalar


def environment_dynamics(
    model: Model,
    gap: AbstractGap,
    environment: Environment,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    external: Float[Array, "links 6"] | None = None,
    *,
    t: ArrayLike = 0.0,
) -> EnvironmentDynamics:
    """Accelerations of a robot in contact with a dynamic environment, and the contact force.

        H a + h = tau + J^T F,    F = -(m sddot + b sdot + k s),    sddot = J a + A

    or, with F eliminated, `(H + m J^T J) a + h + J^T (m A + b sdot + k s) = tau`. The surface moves with the robot as
    long as `F > 0` (Vukobratovic and Potkonjak 2002, equations 20.92 to 20.94, where h has the wrong sign).

    Arguments:

    * `model`, `q`, `v`: the robot and its state
    * `gap`: the gap s to the undeformed surface, negative where the surface yields
    * `environment`: mass, stiffness and damping of the surface
    * `tau`: efforts `(nv,)`, with the `passive_forces` if they act
    * `external`: wrenches on the links, `(links, 6)`, in addition to the contact
    * `t`: time, s

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.contact import Environment, Gap, Plane, Point, environment_dynamics

    arm = jd.robots.double_pendulum()
    wall = Gap("tip", Point(), ("world", (0.6, 0.0, 0.0)), Plane([-1.0, 0.0, 0.0]))
    q, v, tau = jnp.array([-0.9, 1.1]), jnp.array([-1.4, 1.0]), jnp.array([3.0, -2.0])
    a, force = environment_dynamics(arm, wall, Environment(0.5, 4000.0, 30.0), q, v, tau)
    ```
    """
    q, v, tau = check_state(model, q=q, v=v, tau=tau)
    s = gap_coordinate(gap, model, t, q, v)
    factor = cho_factor(mass_matrix(model, q))
    free = cho_solve(factor, tau - bias_forces(model, q, v, external))
    response = cho_solve(factor, s.jacobian)
    load = environment.force(s.value, s.rate, s.jacobian @ free + s.bias)
    force = load / (1 + environment.mass * s.jacobian @ response)
    return EnvironmentDynamics(free + response * force, force)


def environment_impact(
    model: Model,
    gap: AbstractGap,
    environment: Environment,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    *,
    t: ArrayLike = 0.0,
    surface_velocity: ArrayLike = 0.0,
) -> EnvironmentImpact:
    """The plastic impact of a robot on the mass of a dynamic environment.

    After it, robot and surface have the same velocity along the normal. With `c = sdot - surface_velocity`,

        (H + m J^T J) dv = -m J^T c,    P = -m c / (1 + m J H^-1 J^T)

    Equations 20.95 to 20.97 of Vukobratovic and Potkonjak 2002 use one velocity for both bodies, which has only the
    trivial solution; here the surface has a separate velocity before the impact.

    Arguments as for `environment_dynamics`; `surface_velocity`: of the surface before the impact, outwards, m/s.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.contact import Environment, Gap, Plane, Point, environment_impact

    arm = jd.robots.double_pendulum()
    wall = Gap("tip", Point(), ("world", (0.6, 0.0, 0.0)), Plane([-1.0, 0.0, 0.0]))
    after, impulse = environment_impact(
        arm, wall, Environment(0.5, 4000.0, 30.0), jnp.array([-0.9, 1.1]), jnp.array([-1.5, 0.4])
    )
    assert impulse > 0
    ```
    """
    q, v = check_state(model, q=q, v=v)
    s = gap_coordinate(gap, model, t, q, v)
    response, impulse = plastic_impulse(model, environment, q, s, s.rate - surface_velocity)
    return EnvironmentImpact(v + response * impulse, impulse)


def plastic_impulse(model: Model, environment: Environment, q, s: GapCoordinate, closing_rate):
    """`H^-1 J^T` and the impulse along the normal that gives the mass the rate of the gap."""
    response = cho_solve(cho_factor(mass_matrix(model, q)), s.jacobian)
    return response, -environment.mass * closing_rate / (1 + environment.mass * s.jacobian @ response)
