"""The dynamics of a robot while given contacts are closed, with the contact forces among the controls."""

from collections.abc import Mapping, Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.contact import ContactModes, ContactMotion
from jaxdyn.contact.rigid import ContactKinematics, contact_layout, force_map, friction_cones, slip_directions
from jaxdyn.simulation import System
from jaxdyn.trajopt.contact._base import check_contact_names, contacts_at, move, residual, split_contacts
from jaxdyn.trajopt.problem import (
    AbstractConstrainedDynamics,
    AbstractImplicit,
    AbstractLimitedDynamics,
    Constrained,
    DynamicsLimits,
    PathConstraint,
    Robot,
)


class ContactRobot(AbstractConstrainedDynamics, AbstractLimitedDynamics, AbstractImplicit):
    """A robot with rigid contacts, of which given ones are closed and stick or slide: a phase of a motion in contact.

    The state is that of the `Robot` without contacts. The controls are its controls, followed by the contact forces:
    for each closed contact its normal force, and its friction forces unless it slides.

        M a + h = efforts + A^T S lambda,    c = A v,    cdot = 0 for the rows of these forces

    where S adds the friction `-mu F_n d` of sliding contacts. The forces are controls that the equations determine, so
    costs can weigh them and bounds limit them. `limits_of_modes` is the path constraint that keeps gaps and normal
    forces from becoming negative, friction in its cone, and slips in their direction.

    The contacts of a phase keep their gaps and rates but do not restore them: the state at its start has to meet the
    closed contacts, as it does after `touch_down`.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.contact import Contact, ContactMotion, Gap, Plane, Point
    from jaxdyn.trajopt import ContactRobot

    b = jd.ModelBuilder()
    b.add_link("x", "world", jd.joints.Prismatic((1, 0, 0)))
    puck = b.add_link("puck", "x", jd.joints.Prismatic((0, 0, 1)), jd.spatial.point_mass(2.0)).build()
    floor = Contact("floor", Gap("puck", Point(), "world", Plane()), friction=0.5, plane=(0, 1, 0))
    system = jd.System(puck, motion=ContactMotion(floor))
    sliding = ContactRobot(system, closed=("floor",), sliding={"floor": (1, 0, 0)})
    assert sliding.control_names == ("x_joint", "puck_joint", "floor.normal")
    weight = jnp.array([0.0, 0.0, 2.0 * 9.81])
    rate = sliding.rate(0.0, jnp.array([0.0, 0.0, 3.0, 0.0]), weight)
    assert jnp.allclose(rate[2:], jnp.array([-0.5 * 9.81, 0.0]), atol=1e-4)
    ```
    """

    robot: Robot
    motion: ContactMotion
    modes: ContactModes
    #: the rows of the forces among the controls
    held: tuple[int, ...] = eqx.field(static=True)
    state_names: tuple[str, ...] = eqx.field(static=True)
    control_names: tuple[str, ...] = eqx.field(static=True)
    num_forces: int = eqx.field(static=True)
    num_invariants: int = eqx.field(static=True)

    def __init__(
        self,
        system: System,
        closed: Sequence[str] = (),
        sliding: Mapping[str, ArrayLike | Sequence[float | int]] | None = None,
        actuated: tuple[str, ...] | None = None,
    ):
        """Arguments:

        * `system`: with a `ContactMotion`.
        * `closed`: names of the contacts that are closed; the others are open.
        * `sliding`: for each closed contact that slides the direction of its slip, `(3,)`, world; the others stick.
        * `actuated`: as for `Robot`.

        Raises `ModelError` without a `ContactMotion`, and for unknown names.
        """
        self.robot, self.motion = split_contacts(system, actuated, "a ContactRobot")
        directions = {} if sliding is None else dict(sliding)
        check_contact_names(self.motion, (*closed, *directions))
        open_ones = sorted(set(directions) - set(closed))
        if open_ones:
            raise ModelError(f"the contacts {open_ones} slide but are not closed; add them to `closed`")
        self.modes = _modes(self.motion, tuple(closed), directions, system.model.dtype)
        layout, names = contact_layout(self.motion.contacts), row_names(self.motion)
        slides = [c.name in directions for c in self.motion.contacts]
        is_slip = [g >= 0 and g == int(np.argmax(layout.contact == c)) for g, c in _rows(self.motion)]
        self.held = tuple(
            row
            for row, (_, c) in enumerate(_rows(self.motion))
            if self.motion.contacts[c].name in closed and not (slides[c] and is_slip[row])
        )
        self.state_names = self.robot.state_names
        self.control_names = (*self.robot.control_names, *(names[row] for row in self.held))
        self.num_forces, self.num_invariants = len(self.held), 0

    def limits_of_modes(self, tolerance: ArrayLike = 1e-6) -> PathConstraint:
        """The conditions under which the modes persist, as a path constraint with the lower bound `-tolerance`.

        Rows are the gaps of open contacts, normal forces of closed ones, `mu F_n - F_t` and `mu F_n + F_t` where the
        friction of a sticking contact has one direction, `(mu F_n)^2 - |F_t|^2` where it has two, and the slips `d .
        c_t` of sliding contacts. Some of them are zero at the ends of a phase, where a bound of zero would leave the
        method no interior; hence the tolerance.
        """
        return PathConstraint("limits of the modes of contact", _Margins(self), lower=-jnp.asarray(tolerance))

    def contact_forces(self, t, x, u) -> Float[Array, " rows"]:
        """Forces along the rows of all contacts: for each contact its normal, then its directions of friction."""
        return self._forces(self._contacts(t, x), u)

    def rate(self, t, x, u):
        return self.constrained(t, x, u).rate

    def constrained(self, t, x, u):
        at, generalised = self._contact_efforts(t, x, u)
        motion = move(self.robot, t, x, u[: self.robot.nu], generalised)
        return self._outcome(at, motion.rate, motion.acceleration)

    @property
    def has_cheap_residual(self) -> bool:
        return self.robot.has_cheap_residual

    @property
    def is_affine(self) -> bool:
        return self.robot.is_affine

    def unknowns(self, t, x, u):
        return move(self.robot, t, x, u[: self.robot.nu], self._contact_efforts(t, x, u)[1]).acceleration

    def implicit(self, t, x, u, y):
        at, generalised = self._contact_efforts(t, x, u)
        rate, rest = residual(self.robot, t, x, u[: self.robot.nu], generalised, y)
        return self._outcome(at, rate, y), rest

    def limits(self):
        """DynamicsLimits of the robot; contact forces have none."""
        own = self.robot.limits()
        none = jnp.full(self.num_forces, jnp.inf, own.lower_control.dtype)
        lower, upper = jnp.concatenate([own.lower_control, -none]), jnp.concatenate([own.upper_control, none])
        return DynamicsLimits(own.lower_state, own.upper_state, lower, upper)

    def _contacts(self, t, x) -> ContactKinematics:
        return contacts_at(self.robot, self.motion.contacts, t, x)

    def _contact_efforts(self, t, x, u) -> tuple[ContactKinematics | None, Float[Array, " nv"]]:
        """Contacts and their generalised forces; without closed contacts there is nothing to compute."""
        if not self.held:
            return None, jnp.zeros(self.robot.model.nv, x.dtype)
        at = self._contacts(t, x)
        return at, at.jacobian.T @ self._forces(at, u)

    def _forces(self, at: ContactKinematics, u) -> Float[Array, " rows"]:
        layout = contact_layout(self.motion.contacts)
        cones = friction_cones(self.motion.contacts, u.dtype)
        directions = slip_directions(layout, at.rate, at.basis, self.modes.direction)
        y = jnp.zeros(layout.num_rows, u.dtype).at[np.array(self.held, int)].set(u[self.robot.nu :])
        return force_map(layout, cones, self.modes, directions) @ y

    def _outcome(self, at: ContactKinematics | None, rate, a) -> Constrained:
        none = jnp.zeros(0, rate.dtype)
        change = none if at is None else (at.jacobian @ a + at.rate_bias)[np.array(self.held, int)]
        return Constrained(rate, change, none, jnp.zeros((rate.shape[0], 0), rate.dtype))


def _rows(motion: ContactMotion) -> list[tuple[int, int]]:
    """Group and contact of each row; the group of a normal is -1."""
    layout = contact_layout(motion.contacts)
    return list(zip(layout.group_of_row.tolist(), layout.contact_of_row.tolist(), strict=True))


def row_names(motion: ContactMotion) -> list[str]:
    """Names of the forces along all rows, such as "floor.normal" and "floor.friction.0"."""
    names, count = [], 0
    for group, contact in _rows(motion):
        count = 0 if group < 0 else count + 1
        kind = "normal" if group < 0 else f"friction.{count - 1}"
        names.append(f"{motion.contacts[contact].name}.{kind}")
    return names


def _modes(
    motion: ContactMotion, closed: tuple[str, ...], directions: dict[str, ArrayLike | Sequence[float | int]], dtype
) -> ContactModes:
    """The modes in which some contacts are closed, and some of these slide along given directions."""
    slides, along = [], []
    for contact in motion.contacts:
        for k in range(len(contact.dimensions)):  # the first group is the slip, the others roll and spin
            moves = k == 0 and contact.name in directions
            slides.append(float(moves))
            direction = jnp.asarray(directions[contact.name], dtype) if moves else jnp.zeros(3, dtype)
            along.append(direction / jnp.linalg.norm(direction) if moves else direction)
    number = lambda x: jnp.asarray(np.array(x, float), dtype)
    rows = jnp.stack(along) if along else jnp.zeros((0, 3), dtype)
    is_closed = number([c.name in closed for c in motion.contacts])
    return ContactModes(is_closed, number(slides), rows, jnp.zeros_like(is_closed))


class _Margins(eqx.Module):
    """The distances of a phase to the ends of its modes."""

    dynamics: ContactRobot

    def __call__(self, t, x, u) -> Float[Array, " rows"]:
        d = self.dynamics
        contacts, layout = d.motion.contacts, contact_layout(d.motion.contacts)
        at = contacts_at(d.robot, contacts, t, x)
        force, cones = d._forces(at, u), friction_cones(contacts, x.dtype)
        directions = slip_directions(layout, at.rate, at.basis, d.modes.direction)
        rows = [force[row] if row in d.held else at.gap[i] for i, row in enumerate(layout.normal)]
        for group, owner in enumerate(layout.contact):
            own = layout.rows[group][layout.rows[group] < layout.num_rows]
            if layout.normal[owner] not in d.held:
                continue
            if own[0] not in d.held:
                rows.append(directions[own] @ at.rate[own])
                continue
            cone, friction = cones.sticking[group] * force[layout.normal[owner]], force[own]
            rows += [cone - friction[0], cone + friction[0]] if len(own) == 1 else [cone**2 - friction @ friction]
        return jnp.stack(rows) if rows else jnp.zeros(0, x.dtype)
