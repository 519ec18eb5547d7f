"""A robot whose contact forces the optimiser chooses, and the complementarity conditions that make them contact forces.

For each contact with gap g, normal force F_n, slips c_k and friction forces `F_k = f_k^+ - f_k^-`,

    0 <= g    perpendicular to  F_n >= 0
    0 <= w + c_k                perpendicular to  f_k^+ >= 0
    0 <= w - c_k                perpendicular to  f_k^- >= 0
    0 <= mu F_n - sum f_k^+ + f_k^-    perpendicular to  w >= 0

where w is the largest slip of a sliding contact (Stewart and Trinkle 1996; Posa, Cantu and Tedrake 2014). Friction with
two directions has the pyramid of these four forces as its cone.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.contact import ContactMotion
from jaxdyn.contact.rigid import contact_layout, friction_cones
from jaxdyn.simulation import System
from jaxdyn.trajopt.contact._base import contacts_at, move, residual, split_contacts
from jaxdyn.trajopt.problem import AbstractImplicit, AbstractLimitedDynamics, DynamicsLimits, Robot


class _Places(NamedTuple):
    """The forces of one contact among the controls, and its rows."""

    #: normal force
    normal: int
    #: friction forces along each row and against it
    along: tuple[int, ...]
    against: tuple[int, ...]
    #: largest slip, None without friction
    slip: int | None
    #: row of the normal, and rows of friction
    row: int
    rows: tuple[int, ...]


class ComplementarityRobot(AbstractLimitedDynamics, AbstractImplicit):
    """A robot with rigid contacts that the optimiser closes and opens: contact forces are controls.

        M a + h = efforts + A^T F

    The controls are those of the `Robot` without contacts, followed for each contact by its normal force, and with
    friction by the friction forces along and against each of its directions and the largest slip.
    `solve_through_contact` adds the complementarity conditions that make them contact forces. Impacts are plastic,
    whatever the law of restitution, and friction has its kinetic coefficient.

    Arguments:

    * `system`: with a `ContactMotion`.
    * `actuated`: as for `Robot`.

    Raises `ModelError` without a `ContactMotion`, and for contacts with friction against rolling or spinning.

    ```python
    import jaxdyn as jd
    from jaxdyn.contact import Contact, ContactMotion, Gap, Plane, Point
    from jaxdyn.trajopt import ComplementarityRobot

    b = jd.ModelBuilder()
    b.add_link("x", "world", jd.joints.Prismatic((1, 0, 0)))
    puck = b.add_link("puck", "x", jd.joints.Prismatic((0, 0, 1)), jd.spatial.point_mass(2.0)).build()
    floor = Contact("floor", Gap("puck", Point(), "world", Plane()), friction=0.5, plane=(0, 1, 0))
    robot = ComplementarityRobot(jd.System(puck, motion=ContactMotion(floor)), actuated=("x_joint",))
    assert robot.control_names == ("x_joint", "floor.normal", "floor.along.0", "floor.against.0", "floor.slip")
    ```
    """

    robot: Robot
    motion: ContactMotion
    state_names: tuple[str, ...] = eqx.field(static=True)
    control_names: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, system: System, actuated: tuple[str, ...] | None = None):
        self.robot, self.motion = split_contacts(system, actuated, "a ComplementarityRobot")
        rolls = [c.name for c in self.motion.contacts if len(c.dimensions) > 1]
        if rolls:
            raise ModelError(
                f"the contacts {rolls} have friction against rolling or spinning, for which there are no "
                "complementarity conditions; give Coulomb(mu) alone"
            )
        names = list(self.robot.control_names)
        for contact in self.motion.contacts:
            kinds = ["normal"]
            if contact.dimensions:
                count = range(contact.dimensions[0])
                kinds += [*(f"along.{k}" for k in count), *(f"against.{k}" for k in count), "slip"]
            names += [f"{contact.name}.{kind}" for kind in kinds]
        self.state_names, self.control_names = self.robot.state_names, tuple(names)

    def contact_forces(self, u) -> Float[Array, " rows"]:
        """Forces along the rows of all contacts: for each contact its normal, then its directions of friction."""
        forces = jnp.zeros(contact_layout(self.motion.contacts).num_rows, u.dtype)
        for p in self._places():
            forces = forces.at[p.row].set(u[p.normal])
            forces = forces.at[np.array(p.rows, int)].set(u[np.array(p.along, int)] - u[np.array(p.against, int)])
        return forces

    def complementarity(self, t, x, u) -> tuple[Float[Array, " pairs"], Float[Array, " pairs"]]:
        """Pairs of quantities that are not negative and of which one is zero: `(g, w + c, w - c, ...)` and forces."""
        at = contacts_at(self.robot, self.motion.contacts, t, x)
        cones, group = friction_cones(self.motion.contacts, x.dtype).sliding, 0
        first, second = [], []
        for i, p in enumerate(self._places()):
            first.append(at.gap[i])
            second.append(u[p.normal])
            if p.slip is None:
                continue
            for row, along, against in zip(p.rows, p.along, p.against, strict=True):
                first += [u[p.slip] + at.rate[row], u[p.slip] - at.rate[row]]
                second += [u[along], u[against]]
            first.append(cones[group] * u[p.normal] - sum(u[k] for k in (*p.along, *p.against)))
            second.append(u[p.slip])
            group += 1
        return jnp.stack(first), jnp.stack(second)

    def rate(self, t, x, u):
        return move(self.robot, t, x, u[: self.robot.nu], self._generalised(t, x, u)).rate

    @property
    def has_cheap_residual(self) -> bool:
        return self.robot.has_cheap_residual

    @property
    def is_affine(self) -> bool:
        return self.robot.is_affine

    def unknowns(self, t, x, u):
        return move(self.robot, t, x, u[: self.robot.nu], self._generalised(t, x, u)).acceleration

    def implicit(self, t, x, u, y):
        return residual(self.robot, t, x, u[: self.robot.nu], self._generalised(t, x, u), y)

    def limits(self):
        """DynamicsLimits of the robot; forces and slips of contacts are not negative."""
        own = self.robot.limits()
        none = jnp.zeros(self.nu - self.robot.nu, own.lower_control.dtype)
        return DynamicsLimits(
            own.lower_state,
            own.upper_state,
            jnp.concatenate([own.lower_control, none]),
            jnp.concatenate([own.upper_control, none + jnp.inf]),
        )

    def _generalised(self, t, x, u) -> Float[Array, " nv"]:
        return contacts_at(self.robot, self.motion.contacts, t, x).jacobian.T @ self.contact_forces(u)

    def _places(self) -> list[_Places]:
        places, first = [], self.robot.nu
        layout = contact_layout(self.motion.contacts)
        for i, contact in enumerate(self.motion.contacts):
            n, row = sum(contact.dimensions), int(layout.normal[i])
            along, against = range(first + 1, first + 1 + n), range(first + 1 + n, first + 1 + 2 * n)
            slip = first + 1 + 2 * n if n else None
            rows = tuple(range(row + 1, row + 1 + n))
            places.append(_Places(first, tuple(along), tuple(against), slip, row, rows))
            first += 1 + (2 * n + 1 if n else 0)
        return places
