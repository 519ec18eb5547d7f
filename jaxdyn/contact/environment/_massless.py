"""A massless environment, whose surface relaxes after the robot has separated from it."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float, Scalar
from jaxdyn.contact.compliant import (
    ContactForces,
    RegularisedFriction,
    complete_forces,
    contact_wrenches,
    gap_motion,
    is_ahead,
)
from jaxdyn.contact.contract import AbstractGap
from jaxdyn.dynamics import AbstractSwitchingPart, Action, PartSwitch


class SurfaceState(NamedTuple):
    """State of the surface of a `MasslessEnvironment`."""

    #: w, displacement from equilibrium, positive outwards, m; equal to the gap in contact
    position: Scalar
    #: 1 in contact, 0 otherwise
    closed: Scalar


class MasslessEnvironment(AbstractSwitchingPart):
    """A surface on a spring and a damper without mass: `F = -(k s + b sdot)` in contact, s the gap to its equilibrium.

    The contact opens where F falls to zero, before s reaches zero. The displacement w of the free surface then relaxes
    by `b wdot + k w = 0`, and the contact closes where `s = w`. F is discontinuous there, because the damper acts on
    the velocity of the robot. The state of the part, a `SurfaceState`, has a discrete part; `simulate` requires
    `events=jaxdyn.simulation.switching_events(system)`.

    Initially the surface is in equilibrium, or in contact if the robot penetrates it with a positive force.

    Arguments: `gap` to the surface in equilibrium, `stiffness` k (N/m), `damping` b (N s/m), and `friction`.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.contact import Gap, MasslessEnvironment, Plane, Point
    from jaxdyn.simulation import switching_events
    from jaxdyn.spatial import point_mass

    b = jd.ModelBuilder()
    tool = b.add_link("tool", "world", jd.joints.Prismatic([0, 0, 1]), point_mass(2.0)).build()
    floor = MasslessEnvironment(Gap("tool", Point(), "world", Plane()), 4000.0, 30.0)
    system = jd.System(tool, (floor,))
    start, ts = jnp.array([0.1]), jnp.array([0.0, 0.3])
    drop = jd.simulate(system, start, jnp.zeros(1), ts, events=switching_events(system))
    assert drop.events.count == 2 and drop.parts[0].position[-1] < 0  # two events; the surface still relaxes
    ```
    """

    gap: AbstractGap
    #: k, N/m
    stiffness: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: b, N s/m
    damping: Float[Array, "*batch"] = eqx.field(converter=as_float)
    friction: RegularisedFriction | None = None

    def forces(self, model, t, q, v, state: SurfaceState) -> ContactForces:
        """Gap to the equilibrium, point and forces of the contact at time t (s) and a state."""
        return self._forces(model, t, q, v, state)[0]

    def initial(self, model, q, v):
        x = gap_motion(self.gap, model, jnp.zeros((), q.dtype), q, v)
        s, rate = x.touch.gap, x.rate
        is_closed = is_ahead(jnp.zeros_like(s), -s, -rate) & (self._law(s, rate) > 0)
        return SurfaceState(jnp.minimum(s, 0), is_closed.astype(q.dtype))

    def act(self, model, t, q, v, state):
        forces, x = self._forces(model, t, q, v, state)
        force = forces.normal_force * forces.normal + forces.friction_force
        rate = jnp.where(state.closed > 0.5, forces.rate, self._relaxation_rate(state.position))
        return Action(
            external=contact_wrenches(self.gap, x.configuration, forces.point, force),
            rate=SurfaceState(rate, jnp.zeros_like(rate)),
        )

    def switches(self):
        return (
            PartSwitch(_Distance(self), direction=-1, update=_Set(self, 1.0)),
            PartSwitch(_Force(self), direction=-1, update=_Set(self, 0.0)),
        )

    def _law(self, s, rate):
        return -(self.stiffness * s + self.damping * rate)

    def _relaxation_rate(self, w):
        """Velocity of the free surface; without a damper it is always in equilibrium."""
        is_damped = self.damping > 0
        return jnp.where(is_damped, -self.stiffness * w / jnp.where(is_damped, self.damping, 1), 0)

    def _forces(self, model, t, q, v, state):
        x, touch, rate = gap_motion(self.gap, model, t, q, v)
        normal_force = jnp.where(state.closed > 0.5, self._law(touch.gap, rate), 0)
        return complete_forces(self.gap, self.friction, x, touch, rate, normal_force), x


class _Distance(eqx.Module):
    """Distance of the robot from the free surface, constant in contact."""

    part: MasslessEnvironment

    def __call__(self, model, t, q, v, state):
        return jnp.where(state.closed > 0.5, 1, gap_motion(self.part.gap, model, t, q, v).touch.gap - state.position)


class _Force(eqx.Module):
    """The contact force, constant while the contact is open."""

    part: MasslessEnvironment

    def __call__(self, model, t, q, v, state):
        return jnp.where(state.closed > 0.5, self.part.forces(model, t, q, v, state).normal_force, 1)


class _Set(eqx.Module):
    """Closes or opens the contact, with the surface at the robot."""

    part: MasslessEnvironment
    closed: float = eqx.field(static=True)

    def __call__(self, model, t, q, v, state):
        s = gap_motion(self.part.gap, model, t, q, v).touch.gap
        is_lagging = (self.closed > 0) | (self.part.damping > 0)
        return SurfaceState(jnp.where(is_lagging, s, 0), jnp.full_like(state.closed, self.closed))
