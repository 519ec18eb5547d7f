"""A compliant contact as a part of a system."""

import enum
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._types import Array, Config, Float, Scalar
from jaxdyn.constraints.contract import KinematicState
from jaxdyn.contact.compliant._friction import RegularisedFriction
from jaxdyn.contact.compliant._kinematics import contact_wrenches, gap_motion
from jaxdyn.contact.compliant._laws import AbstractNormalLaw
from jaxdyn.contact.contract import AbstractGap, Touch, slip_velocity
from jaxdyn.dynamics import AbstractSwitchingPart, Action, PartSwitch
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


class ContactMode(enum.IntEnum):
    """Discrete state of a `CompliantContact` whose force jumps."""

    #: the bodies are apart
    OPEN = 0
    #: the force of the law acts
    CLOSED = 1
    #: penetration without force: the surface recovers more slowly than the bodies separate
    UNLOADED = 2


class CompliantContact(AbstractSwitchingPart):
    """A contact of two bodies, or of a body and the world, whose normal force is a function of the penetration.

    With the penetration `d = -gap`, the force `F(d, ddot)` of the law acts at the point of contact along the normal
    on the first body, and its opposite on the second, while `d > 0`; friction acts across the normal.

    The force of a damped `KelvinVoigt` is discontinuous at touch-down. The contact therefore has a discrete state, a
    `ContactMode`, which changes at events: `simulate` requires `events=jaxdyn.simulation.switching_events(system)`.
    Touch-down and separation are then located, and derivatives include the saltation matrix. With `located=False` the
    contact has no state and needs no events, but derivatives lack the saltation terms. A contact whose force rises
    continuously from zero, as with `HuntCrossley` or `Hertz`, has no state; its events are optional, end steps at
    touch-down and separation, and record them.

    Arguments:

    * `gap`: see `AbstractGap`.
    * `law`: `KelvinVoigt`, `HuntCrossley`, `Hertz` or another `AbstractNormalLaw`.
    * `friction`: `RegularisedFriction`, or None.
    * `located`: whether a contact whose force jumps has a discrete state.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.contact import CompliantContact, Gap, HuntCrossley, Plane, Point, RegularisedFriction

    arm = jd.robots.double_pendulum()
    floor = Gap("tip", Point(), ("world", (0.0, 0.0, -1.5)), Plane())
    contact = CompliantContact(floor, HuntCrossley(1e5, 0.5), RegularisedFriction(0.3))
    system = jd.System(arm, (contact,))
    path = jd.simulate(system, jnp.array([0.5, 1.0]), jnp.zeros(2), jnp.array([0.0, 0.1]))
    assert contact.forces(arm, 0.1, path.q[-1], path.v[-1]).gap > -0.01
    ```
    """

    gap: AbstractGap
    law: AbstractNormalLaw
    friction: RegularisedFriction | None = None
    located: bool = eqx.field(static=True, default=True)

    def forces(self, model: Model, t, q: Config, v: Float[Array, " nv"], mode: Scalar | None = None) -> ContactForces:
        """Gap, point and forces of the contact at time t (s), a state and a `ContactMode` (by default from the gap)."""
        return self._forces(model, t, q, v, mode)[0]

    def potential_energy(self, model: Model, q: Config, t=0.0) -> Scalar:
        """The elastic energy of the contact, J."""
        gap = gap_motion(self.gap, model, t, q, jnp.zeros(model.nv, q.dtype)).touch.gap
        return jnp.where(gap < 0, self.law.energy(jnp.where(gap < 0, -gap, 0)), 0)

    def initial(self, model, q, v):
        if not self._has_mode:
            return None
        motion = gap_motion(self.gap, model, jnp.zeros((), q.dtype), q, v)
        d, rate = -motion.touch.gap, -motion.rate
        # at rest on the surface the contact is closed: it may be loaded at once
        is_inside = (d > 0) | ((d == 0) & (rate >= 0))
        is_pressed = (self.law.force(d, rate) >= 0) | (not self.law.cuts_tension)
        mode = jnp.where(is_pressed, ContactMode.CLOSED, ContactMode.UNLOADED)
        return jnp.where(is_inside, mode, ContactMode.OPEN).astype(q.dtype)

    def act(self, model, t, q, v, state):
        forces, x = self._forces(model, t, q, v, state)
        force = forces.normal_force * forces.normal + forces.friction_force
        wrenches = contact_wrenches(self.gap, x.configuration, forces.point, force)
        return Action(external=wrenches, rate=None if state is None else jnp.zeros_like(state))

    def switches(self):
        if not self._has_mode:
            return (PartSwitch(_Gap(self)),)
        passage = PartSwitch(_Passage(self), direction=-1, update=_NextMode(self))
        return (passage, PartSwitch(_Load(self), direction=-1, update=_close)) if self.law.cuts_tension else (passage,)

    @property
    def _has_mode(self) -> bool:
        return self.law.jumps and self.located

    def _forces(self, model, t, q, v, mode) -> tuple[ContactForces, KinematicState]:
        x, touch, rate = gap_motion(self.gap, model, t, q, v)
        d, ddot = -touch.gap, -rate
        is_closed = d > 0 if mode is None else mode == ContactMode.CLOSED
        d, ddot = jnp.where(is_closed, d, 0), jnp.where(is_closed, ddot, 0)
        force = self.law.force(d, ddot)
        if self.law.cuts_tension:
            # the force stays smooth on a step beyond the separation, which is repeated up to it
            is_pulling = (force < 0) & ((d <= 0) | (mode is None))
            force = jnp.where(is_pulling, 0, force)
        normal_force = jnp.where(is_closed, force, 0)
        return complete_forces(self.gap, self.friction, x, touch, rate, normal_force), x


def complete_forces(
    gap: AbstractGap, friction: RegularisedFriction | None, x: KinematicState, touch: Touch, rate, normal_force
) -> ContactForces:
    """The forces of a contact with a given normal force, and with friction if it has a law of friction."""
    slip = slip_velocity(gap, x, touch)
    across = jnp.zeros_like(slip) if friction is None else friction.force(jnp.maximum(normal_force, 0), slip)
    return ContactForces(*touch[:1], rate, *touch[1:], normal_force, across, slip)


class _Gap(eqx.Module):
    """The gap as the condition of a switch."""

    contact: CompliantContact

    def __call__(self, model, t, q, v, state):
        return gap_motion(self.contact.gap, model, t, q, v).touch.gap


class _Passage(eqx.Module):
    """Falls to zero where an open contact closes, a closed contact is unloaded, and an unloaded contact opens."""

    contact: CompliantContact

    def __call__(self, model, t, q, v, mode):
        motion = gap_motion(self.contact.gap, model, t, q, v)
        gap = motion.touch.gap
        load = self.contact.law.force(-gap, -motion.rate) if self.contact.law.cuts_tension else -gap
        return jnp.where(mode == ContactMode.OPEN, gap, jnp.where(mode == ContactMode.CLOSED, load, -gap))


class _NextMode(eqx.Module):
    """The mode after a passage."""

    contact: CompliantContact

    def __call__(self, model, t, q, v, mode):
        motion = gap_motion(self.contact.gap, model, t, q, v)
        is_inside = self.contact.law.cuts_tension & is_ahead(t, -motion.touch.gap, -motion.rate)
        left = jnp.where((mode == ContactMode.CLOSED) & is_inside, ContactMode.UNLOADED, ContactMode.OPEN)
        return jnp.where(mode == ContactMode.OPEN, ContactMode.CLOSED, left).astype(mode.dtype)


class _Load(eqx.Module):
    """Falls to zero where the law exerts a force again within the surface; one in other modes."""

    contact: CompliantContact

    def __call__(self, model, t, q, v, mode):
        motion = gap_motion(self.contact.gap, model, t, q, v)
        force = self.contact.law.force(-motion.touch.gap, -motion.rate)
        return jnp.where(mode == ContactMode.UNLOADED, -force, 1)


def _close(model, t, q, v, mode):
    return jnp.full_like(mode, ContactMode.CLOSED)


def is_ahead(t, x, rate):
    """Whether x is positive just after t, for an x that is zero within the accuracy of event times."""
    moment = 512 * jnp.finfo(x.dtype).eps * jnp.maximum(jnp.abs(t), 1)
    return x + moment * rate > 0
