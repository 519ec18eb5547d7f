"""A compliant contact as a part of a system."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._types import Array, Config, Float, Scalar
from jaxdyn.constraints.contract import KinematicState
from jaxdyn.contact.compliant._friction import RegularisedFriction
from jaxdyn.contact.compliant._kinematics import contact_wrenches, gap_motion
from jaxdyn.contact.compliant._laws import AbstractNormalLaw
from jaxdyn.contact.contract import AbstractGap, Touch, slip_velocity
from jaxdyn.dynamics import AbstractSwitchingPart, Action, Switch
from jaxdyn.model import Model


class ContactForces(NamedTuple):
    """A compliant contact at one state; world axes."""

    #: distance of the bodies, m; the penetration is its negative
    gap: Scalar
    #: rate of the gap, m/s
    rate: Scalar
    #: point of contact, m
    point: Float[Array, "3"]
    #: unit normal from the second body to the first
    normal: Float[Array, "3"]
    #: force on the first body along the normal, N
    normal_force: Scalar
    #: force on the first body across the normal, N
    friction_force: Float[Array, "3"]
    #: velocity of the first body relative to the second across the normal, m/s
    slip: Float[Array, "3"]


class CompliantContact(AbstractSwitchingPart):
    """A contact of two bodies, or of a body and the world, whose normal force is a function of the penetration.

    With the penetration `d = -gap`, the force `F(d, ddot)` of the law acts at the point of contact along the normal
    on the first body, and its opposite on the second, while `d > 0`; friction acts across the normal. The part has no
    state.

    The force of a law with damping jumps at touch-down, and the stiffness of a linear spring does. Simulate with
    `events=jaxdyn.simulation.switching_events(system)`, so that steps end where the contact closes and opens: results
    have full accuracy, and derivatives have the terms of the saltation matrix. A law whose force rises smoothly from
    zero, such as `Hertz` or `HuntCrossley` with an exponent above 1, needs no events for right derivatives.

    Arguments:

    * `gap`: see `AbstractGap`.
    * `law`: `LinearSpring`, `HuntCrossley`, `Hertz` or another `AbstractNormalLaw`.
    * `friction`: `RegularisedFriction`, or None.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.contact import CompliantContact, HuntCrossley, PointOnPlane, RegularisedFriction

    arm = jd.robots.double_pendulum()
    floor = PointOnPlane("tip", ("world", (0.0, 0.0, -1.5)))  # the plane z = -1.5 m
    contact = CompliantContact(floor, HuntCrossley(1e5, 0.5), RegularisedFriction(0.3))
    system = jd.System(arm, (contact,))
    path = jd.simulate(system, jnp.array([0.5, 1.0]), jnp.zeros(2), jnp.array([0.0, 0.1]))
    assert contact.forces(arm, 0.0, path.q[-1], path.v[-1]).gap > -0.01
    ```
    """

    gap: AbstractGap
    law: AbstractNormalLaw
    friction: RegularisedFriction | None = None

    def forces(self, model: Model, t, q: Config, v: Float[Array, " nv"]) -> ContactForces:
        """Gap, point and forces of the contact at time t (s) and a state."""
        return self._forces(model, t, q, v)[0]

    def potential_energy(self, model: Model, q: Config, t=0.0) -> Scalar:
        """The elastic energy of the contact, J."""
        gap = gap_motion(self.gap, model, t, q, jnp.zeros(model.nv, q.dtype)).touch.gap
        return jnp.where(gap < 0, self.law.energy(jnp.where(gap < 0, -gap, 0)), 0)

    def initial(self, model, q, v):
        return None

    def act(self, model, t, q, v, state):
        forces, x = self._forces(model, t, q, v)
        force = forces.normal_force * forces.normal + forces.friction_force
        return Action(external=contact_wrenches(self.gap, x.configuration, forces.point, force))

    def switches(self):
        gap = Switch(_Gap(self.gap))
        return (gap, Switch(_LawForce(self), direction=-1)) if self.law.cuts_tension else (gap,)

    def _forces(self, model, t, q, v) -> tuple[ContactForces, KinematicState]:
        x, touch, rate = gap_motion(self.gap, model, t, q, v)
        normal_force = _normal_force(self.law, t, -touch.gap, -rate)
        return complete_forces(self.gap, self.friction, x, touch, rate, normal_force), x


def complete_forces(
    gap: AbstractGap, friction: RegularisedFriction | None, x: KinematicState, touch: Touch, rate, normal_force
) -> ContactForces:
    """The forces of a contact with a given normal force, with friction where there is a law."""
    slip = slip_velocity(gap, x, touch)
    across = jnp.zeros_like(slip) if friction is None else friction.force(jnp.maximum(normal_force, 0), slip)
    return ContactForces(*touch[:1], rate, *touch[1:], normal_force, across, slip)


def _normal_force(law: AbstractNormalLaw, t, d, rate):
    """The force of a law, zero out of contact, on the right side of its jumps at the end of a step."""
    is_active = is_ahead(t, d, rate)
    d, rate = jnp.where(is_active, d, 0), jnp.where(is_active, rate, 0)
    force = law.force(d, rate)
    if law.cuts_tension:
        # the instant F = 0 is located up to rounding, and the contact is open from there on
        least = jnp.finfo(force.dtype).eps ** 0.6 * law.force(d, jnp.zeros_like(rate))
        is_active = is_active & ((rate > 0) | (force > least))
    return jnp.where(is_active, force, 0)


def is_ahead(t, x, rate):
    """Whether x is positive a moment after t.

    Steps end where x is zero up to the accuracy of the time. The next step has to begin with the force after this
    instant, whatever the sign of the rounding: its first stage weighs in values and derivatives.
    """
    moment = 512 * jnp.finfo(x.dtype).eps * jnp.maximum(jnp.abs(t), 1)
    return x + moment * rate > 0


class _Gap(eqx.Module):
    """The gap as the condition of a switch."""

    gap: AbstractGap

    def __call__(self, model, t, q, v, state):
        return gap_motion(self.gap, model, t, q, v).touch.gap


class _LawForce(eqx.Module):
    """The force of the law in contact, continued by positive values on the other side of touch-down."""

    contact: CompliantContact

    def __call__(self, model, t, q, v, state):
        motion = gap_motion(self.contact.gap, model, t, q, v)
        d, rate = -motion.touch.gap, -motion.rate
        is_closed = d > 0
        return self.contact.law.force(jnp.where(is_closed, d, -d), jnp.where(is_closed, rate, jnp.abs(rate)))
