"""The motion of a robot with rigid contacts: an event-driven motion with modes."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float
from jaxdyn.constraints import ConstrainedMotion
from jaxdyn.constraints.contract import AbstractConstraint
from jaxdyn.constraints.evaluation import (
    KKT,
    acceleration_bias,
    constraint_residuals,
    constraint_wrenches,
    holonomic_rows,
    linearise_constraints,
    optional_constraints,
)
from jaxdyn.constraints.types import described_constraints
from jaxdyn.contact.rigid._contact import Contact, as_contacts
from jaxdyn.contact.rigid._forces import (
    forces_in_modes,
    friction_cones,
    held_rows,
    normal_gains,
    reference_directions,
    slip_directions,
    zero_speed,
)
from jaxdyn.contact.rigid._impacts import AbstractImpactSequence, AllAtOnce, Encounter, Impact
from jaxdyn.contact.rigid._layout import Layout, contact_layout, gather_groups
from jaxdyn.contact.rigid._modes import ContactModes, open_modes
from jaxdyn.contact.rigid._paradox import has_no_forces, impact_without_collision
from jaxdyn.contact.rigid._rows import (
    ContactDynamics,
    ContactRows,
    contact_dynamics,
    contact_gaps,
    contact_kinematics,
    factorise_bilateral,
    reflect_inertia,
)
from jaxdyn.contact.rigid._switch import (
    PhaseStart,
    choose_modes,
    closing_impulses,
    find_candidates,
    incipient_slips,
    settling_impulses,
    unit_rows,
    world_forces,
    world_slip,
)
from jaxdyn.dynamics import (
    AbstractModalMotion,
    Action,
    FreeMotion,
    Switch,
    SwitchFailure,
    equations_of_motion,
)
from jaxdyn.kinematics import integrate


class ContactState(eqx.Module):
    """Gaps, rates and forces of contacts, in the order of the contacts and of their friction groups."""

    #: m
    gap: Float[Array, "*batch contacts"]
    #: rate of the gap, m/s
    normal_velocity: Float[Array, "*batch contacts"]
    #: N
    normal_force: Float[Array, "*batch contacts"]
    #: slip velocity, or relative angular velocity, of each group in the world, m/s or rad/s
    slip: Float[Array, "*batch groups 3"]
    #: friction force, or torque, of each group on the first body in the world, N or N m
    friction: Float[Array, "*batch groups 3"]


class ContactMotion(AbstractModalMotion):
    """The motion of a `System` with rigid contacts: `System(model, parts, motion=ContactMotion(contacts))`.

    The motion is smooth while the active set is constant. `simulate` locates the events at which it changes: touch-down
    with an impact, sticking, sliding, reversal of a slip, and lift-off. Contact forces are Lagrange multipliers, so
    bodies neither penetrate nor creep.

    Arguments:

    * `contacts`: one `Contact` or several.
    * `constraints`: of the mechanism, by default the closures of the model.
    * `impacts`: the order of impacts at the same instant, `AllAtOnce()` or `OneAfterAnother()`.
    * `rest_speed`: rebound velocity below which an impact is plastic, m/s, so that a bouncing body comes to rest.
    * `tolerance`: rank tolerance of the constraints, as in `ConstrainedMotion`.
    * `impact_without_collision`: whether a sliding contact for which no force exists (Painleve's paradox) stops or
      leaves by an impulse; by default the simulation ends with status `INDETERMINATE`.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.contact import Contact, ContactMotion, Gap, Newton, Plane, Sphere

    b = jd.ModelBuilder()
    b.add_link("ball", "world", jd.joints.Prismatic((0, 0, 1)), jd.spatial.sphere(0.1, mass=1.0))
    ball = b.build()
    floor = Contact("floor", Gap("ball", Sphere(0.1), "world", Plane()), restitution=Newton(0.9))
    system = jd.System(ball, motion=ContactMotion(floor))
    run = jd.simulate(system, jnp.array([1.1]), jnp.zeros(1), jnp.array([0.0, 2.0]))
    assert abs(run.q[-1, 0] - 0.113684) < 1e-4  # m, after three impacts
    ```
    """

    projects: bool = eqx.field(static=True, default=True, init=False)
    adds_constraints: bool = eqx.field(static=True, default=True, init=False)
    contacts: tuple[Contact, ...] = eqx.field(converter=as_contacts)
    constraints: tuple[AbstractConstraint, ...] | None = eqx.field(converter=optional_constraints, default=None)
    impacts: AbstractImpactSequence = AllAtOnce()
    rest_speed: Float[Array, ""] = eqx.field(converter=as_float, default=1e-3)
    tolerance: ArrayLike | None = None
    impact_without_collision: bool = eqx.field(static=True, default=False)
    #: the fixed modes of a smooth motion, set by `in_modes`; None for the motion with its events
    modes: ContactModes | None = None

    @property
    def has_affine_residual(self) -> bool:
        return False

    @property
    def layout(self) -> Layout:
        """The order of contacts, friction groups and rows."""
        return contact_layout(self.contacts)

    @property
    def num_guards(self) -> int:
        return 2 * self.layout.num_contacts + self.layout.num_groups

    @property
    def num_impulses(self) -> int:
        return self.layout.num_rows

    def check(self, model):
        self.impacts.check(self.contacts)
        if not self.contacts:
            raise ModelError("a ContactMotion has no contacts; give at least one, or omit the motion")

    def in_modes(self, modes):
        return dataclasses.replace(self, modes=modes)

    def initial_modes(self, model, t, q, v):
        return open_modes(self.layout.num_contacts, self.layout.num_groups, q.dtype)

    # The smooth motion in the modes

    def acceleration(self, model, t, q, v, effort, external):
        modes = self._own_modes()
        free = lambda: self._base(model).acceleration(model, t, q, v, effort, external)
        return jax.lax.cond(jnp.any(modes.closed > 0), lambda: self._closed(model, t, q, v, effort, external)[0], free)

    def residual(self, model, t, q, v, a, effort, external):
        return a - self.acceleration(model, t, q, v, effort, external)

    def velocity(self, model, t, q, v):
        return v

    def exerted(self, model, t, q, v, effort, external):
        _, forces, dynamics = self._closed(model, t, q, v, effort, external)
        constraints, x = self._constraints_of(model), dynamics.at.kinematics
        mass, bias = equations_of_motion(model, x.bodies, external)
        kkt = factorise_bilateral(model, constraints, x, mass, self.tolerance)
        load = effort - bias + dynamics.at.jacobian.T @ forces
        multipliers = kkt.solve(load, -acceleration_bias(model, constraints, x))[1]
        rows = (*constraints, ContactRows(contacts=self.contacts))
        wrenches, efforts = constraint_wrenches(model, rows, x, jnp.concatenate([multipliers, forces]))
        return Action(efforts, wrenches)

    def jump(self, model, t, q, impulse):
        x = contact_kinematics(model, self.contacts, t, q, jnp.zeros_like(impulse))
        rows = linearise_constraints(model, self._constraints_of(model), x.kinematics)[0]
        held = held_rows(self.layout, self._own_modes())[:, None] * x.jacobian
        mass = equations_of_motion(model, x.kinematics.bodies)[0]
        kkt = KKT.factorise(mass, jnp.concatenate([rows, held]), self.tolerance)
        return kkt.solve(impulse, jnp.zeros(len(rows) + len(held), q.dtype))[0]

    def project(self, model, t, q, v):
        modes = self._own_modes()
        closed = lambda: self._project(model, t, q, v, modes)
        return jax.lax.cond(jnp.any(modes.closed > 0), closed, lambda: self._base(model).project(model, t, q, v))

    def violates_constraints(self, model, t, q, v):
        gaps = contact_gaps(model, self.contacts, t, q, v)
        overlaps = jnp.min(gaps) < -(jnp.finfo(q.dtype).eps ** (1 / 3))
        return overlaps | self._base(model).violates_constraints(model, t, q, v)

    def contact_state(self, model, t, q, v, effort, external) -> ContactState:
        """Gaps, rates and forces of all contacts in the modes of the motion, under efforts and wrenches."""
        _, forces, dynamics = self._closed(model, t, q, v, effort, external)
        rows = self.layout.normal
        friction = world_forces(dynamics.at, gather_groups(self.layout, forces))
        slip = world_slip(dynamics.at, gather_groups(self.layout, dynamics.at.rate))
        return ContactState(dynamics.at.gap, dynamics.at.rate[rows], forces[rows], slip, friction)

    def collide(self, model, t, q, v, touching: Float[Array, " contacts"]) -> tuple[Array, Array]:
        """Velocity after the impacts of the contacts marked 1 in `touching`, whatever the gaps, and the impulses."""
        impact, v, _ = self._collide(model, q, v, contact_kinematics(model, self.contacts, t, q, v), touching)
        return v, impact.impulses

    # Events

    def may_switch(self, model, ts, qs, vs):
        gaps = jax.vmap(lambda t, q: contact_gaps(model, self.contacts, t, q, jnp.zeros_like(vs[0])))(ts, qs)
        low, high = jnp.min(gaps, axis=0), jnp.max(gaps, axis=0)
        is_far = jnp.all(low > 4 * (high - low))  # the gaps change little on this step, compared with their size
        modes = self._own_modes()
        return ~is_far | jnp.any(modes.closed > 0) | jnp.any(modes.margin > 0)

    def guards(self, model, t, q, v, forces):
        modes = self._own_modes()
        gaps = contact_gaps(model, self.contacts, t, q, v) + modes.margin

        def closed():
            layout, cones = self.layout, friction_cones(self.contacts, q.dtype)
            effort, external = forces(self, v)
            dynamics = self._dynamics(model, t, q, v, effort, external)
            directions = self._directions(dynamics)
            force = forces_in_modes(layout, cones, modes, directions, dynamics.delassus, dynamics.bias)
            gain = normal_gains(layout, cones, modes, directions, dynamics.delassus)
            normal = force[layout.normal]
            friction = gather_groups(layout, force)
            within = (cones.sticking * normal[layout.contact]) ** 2 - jnp.sum(friction**2, axis=1)
            reference = reference_directions(layout, dynamics.at.basis, modes.direction)
            slip = jnp.sum(gather_groups(layout, dynamics.at.rate) * reference, axis=1)
            is_closed = modes.closed > 0
            group = jnp.where(cones.are_points, 1, jnp.where(modes.sliding > 0, slip, within))
            return jnp.concatenate(
                [jnp.where(is_closed, normal, gaps), jnp.where(is_closed[layout.contact], group, 1), gain]
            )

        def free():
            return jnp.concatenate([gaps, jnp.ones(self.num_guards - len(gaps), q.dtype)])

        return jax.lax.cond(jnp.any(modes.closed > 0), closed, free)

    def switch(self, model, t, q, v, fired, forces):
        modes, layout = self._own_modes(), self.layout
        n, g = layout.num_contacts, layout.num_groups
        at = contact_kinematics(model, self.contacts, t, q, v)
        opened, rested, jammed = fired[:n], fired[n : n + g], fired[n + g :]
        touching = self._touching(at, modes, opened)
        begin = lambda *start: self._begin_phase(model, t, q, touching, rested, forces, *start)
        out = begin(v, at, opened * modes.closed)
        paradox = jnp.where(jnp.any(jammed > 0), jnp.argmax(jammed), out.choice.paradox)
        if self.impact_without_collision:
            meets = (paradox >= 0) & has_no_forces(layout, out.choice.problem, paradox)
            out = jax.lax.cond(meets, lambda: self._shock(begin, at, out, paradox), lambda: out)
            paradox = jnp.where(meets, out.choice.paradox, paradox)
        kinds = SwitchFailure
        failure = jnp.where(out.choice.is_solved & out.impact.is_solved, kinds.NONE, kinds.NOT_SOLVED)
        failure = jnp.where(out.impact.is_ended, failure, kinds.IMPACT_LIMIT)
        failure = jnp.where(paradox >= 0, kinds.INDETERMINATE, failure)
        culprit = jnp.where(paradox >= 0, paradox, jnp.argmax(touching))
        number = lambda x: jnp.asarray(x, q.dtype)
        return Switch(out.v, out.choice.modes, out.impact.impulses, number(failure), number(culprit))

    def update_modes(self, model, t, q, v):
        modes = self._own_modes()
        is_followed = jnp.any(modes.sliding > 0) | jnp.any(modes.margin > 0)
        return jax.lax.cond(is_followed, lambda: self._follow(model, t, q, v, modes), lambda: modes)

    # Helpers

    def _follow(self, model, t, q, v, modes: ContactModes) -> ContactModes:
        """The modes with the present directions of slip, without margins that are no longer needed."""
        layout = self.layout
        at = contact_kinematics(model, self.contacts, t, q, v)
        slip = world_slip(at, gather_groups(layout, at.rate))
        moves = (modes.sliding > 0) & (jnp.sum(slip**2, axis=1) > zero_speed(at.rate) ** 2)
        direction = jnp.where(moves[:, None], unit_rows(slip), modes.direction)
        margin = jnp.where(at.gap > modes.margin, 0, modes.margin)
        return jax.lax.stop_gradient(ContactModes(modes.closed, modes.sliding, direction, margin))

    def _own_modes(self) -> ContactModes:
        if self.modes is None:
            raise ModelError("a ContactMotion without modes has no acceleration; simulate it, or use in_modes(modes)")
        return self.modes

    def _constraints_of(self, model) -> tuple[AbstractConstraint, ...]:
        return described_constraints(model) if self.constraints is None else self.constraints

    def _base(self, model):
        """The motion without contacts."""
        constraints = self._constraints_of(model)
        motion: Any = ConstrainedMotion
        return motion(constraints, tolerance=self.tolerance) if constraints else FreeMotion()

    def _dynamics(self, model, t, q, v, effort, external) -> ContactDynamics:
        constraints = self._constraints_of(model)
        return contact_dynamics(model, self.contacts, constraints, t, q, v, effort, external, self.tolerance)

    def _directions(self, dynamics: ContactDynamics):
        return slip_directions(self.layout, dynamics.at.rate, dynamics.at.basis, self._own_modes().direction)

    def _closed(self, model, t, q, v, effort, external):
        """Accelerations and contact forces with closed contacts."""
        dynamics = self._dynamics(model, t, q, v, effort, external)
        forces = forces_in_modes(
            self.layout,
            friction_cones(self.contacts, q.dtype),
            self._own_modes(),
            self._directions(dynamics),
            dynamics.delassus,
            dynamics.bias,
        )
        return dynamics.free + dynamics.spread @ forces, forces, dynamics

    def _begin_phase(self, model, t, q, touching, rested, forces, v, at, released) -> PhaseStart:
        """The impacts of touching contacts, and the modes after them."""
        layout, cones, before = self.layout, friction_cones(self.contacts, q.dtype), self._own_modes()
        impact, v, rate = self._collide(model, q, v, at, touching)
        candidates = find_candidates(layout, at, rate, touching, rested * before.sliding, self.rest_speed)
        trial = self.in_modes(ContactModes(candidates.closed, candidates.sliding, candidates.direction, before.margin))
        dynamics = trial._dynamics(model, t, q, v, *forces(trial, v))
        yields = rested * jnp.all(impact.impulses == 0)  # an impact changes the forces
        incipient = incipient_slips(layout, cones, before, self._directions(dynamics), dynamics, yields)
        slips, margin = trial._directions(dynamics), _margin(q.dtype)
        choice = choose_modes(layout, cones, candidates, slips, dynamics, released, incipient, margin)
        held = closing_impulses(layout, choice.modes.closed, dynamics)
        rate = dynamics.at.rate + dynamics.delassus @ held
        directions = self.in_modes(choice.modes)._directions(dynamics)
        p = held + settling_impulses(self.contacts, directions, choice.modes, dynamics.delassus, rate)
        rate = dynamics.at.rate + dynamics.delassus @ p
        impact = impact._replace(impulses=impact.impulses + p)
        return PhaseStart(v + dynamics.spread @ p, rate, impact, dynamics, choice)

    def _shock(self, begin, at, out: PhaseStart, i) -> PhaseStart:
        """The phase after an impact without collision at contact i."""
        delassus = out.dynamics.delassus
        p = impact_without_collision(self.contacts, self.layout, delassus, out.rate, i)
        at = at._replace(rate=out.rate + delassus @ p)
        later = begin(out.v + out.dynamics.spread @ p, at, jnp.zeros_like(at.gap))
        impulses = out.impact.impulses + p + later.impact.impulses
        return later._replace(impact=later.impact._replace(impulses=impulses))

    def _project(self, model, t, q, v, modes: ContactModes):
        """Projection of the state onto the constraints, zero gaps of closed contacts and zero active rates."""
        constraints, layout = self._constraints_of(model), self.layout
        holonomic = jnp.asarray(holonomic_rows(model, constraints), q.dtype)
        held = held_rows(layout, modes)
        is_normal = jnp.zeros(layout.num_rows, q.dtype).at[layout.normal].set(1)

        def correct(state, _):
            q, v = state
            at = contact_kinematics(model, self.contacts, t, q, jnp.zeros_like(v))
            bilateral, drift = linearise_constraints(model, constraints, at.kinematics)
            mass = equations_of_motion(model, at.kinematics.bodies)[0]
            rows = jnp.concatenate([bilateral, held[:, None] * at.jacobian])
            stays = jnp.concatenate([holonomic, held * is_normal])
            gap = jnp.zeros(layout.num_rows, q.dtype).at[layout.normal].set(at.gap)
            residual = jnp.concatenate([constraint_residuals(model, constraints, at.kinematics), held * gap])
            back = KKT.factorise(mass, rows * stays[:, None], self.tolerance)
            q = integrate(model, q, -back.minimum_norm(residual * stays))
            target = jnp.concatenate([drift, -held * at.rate])
            return (q, KKT.factorise(mass, rows, self.tolerance).project(v, target)[0]), None

        return jax.lax.scan(correct, (q, v), None, length=2)[0]

    def _touching(self, at, modes: ContactModes, opened):
        """1 for closed contacts, for touch-downs of this event, and for open contacts that remain at zero gap."""
        near = at.gap <= _margin(at.gap.dtype)
        approaching = at.rate[self.layout.normal] <= zero_speed(at.rate)
        met = jnp.where(modes.closed > 0, 0, opened)
        return jnp.clip(modes.closed + met + (near & approaching), 0, 1)

    def _collide(self, model, q, v, at, touching) -> tuple[Impact, Array, Array]:
        """Impulses of the impacts, and velocity and rates after them."""
        encounter_rate = at.rate
        approaches = jnp.min(jnp.where(touching > 0, at.rate[self.layout.normal], 0)) < -zero_speed(at.rate)

        def collide():
            mass = equations_of_motion(model, at.kinematics.bodies)[0]
            kkt = factorise_bilateral(model, self._constraints_of(model), at.kinematics, mass, self.tolerance)
            spread, delassus = reflect_inertia(kkt, at.jacobian)
            encounter = Encounter(self.contacts, delassus, at.rate, touching, self.rest_speed)
            impact = self.impacts.resolve(encounter)
            return impact, v + spread @ impact.impulses, encounter_rate + delassus @ impact.impulses

        def keep():
            yes = jnp.asarray(True)
            return Impact(jnp.zeros_like(at.rate), yes, yes), v, encounter_rate

        return jax.lax.cond(approaches, collide, keep)


def _margin(dtype) -> float:
    """Gap below which a distance is rounding error, m."""
    return float(jnp.finfo(dtype).eps) ** 0.6
