"""The rows of all contacts at a state: gaps, rates, Jacobian, and the dynamics in terms of contact forces.

With the rows `c = A v - b` of all contacts (normal velocities, slips, relative angular velocities) and forces `lambda`
along them,

    M a + h = tau + B^T nu + A^T lambda,    B a = target,    cdot = G lambda + w

where B are the constraints of the mechanism, `G = A N A^T` the Delassus matrix with the inverse inertia N of the
constrained robot, and w the rate of c without contact forces.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from jaxdyn._types import Array, Float
from jaxdyn.constraints.contract import AbstractConstraint, AbstractNonholonomic, Configuration, KinematicState
from jaxdyn.constraints.evaluation import (
    KKT,
    ConstraintKinematics,
    acceleration_bias,
    constraint_kinematics,
    linearise_constraints,
)
from jaxdyn.contact.rigid._contact import Contact
from jaxdyn.contact.rigid._layout import map_contacts
from jaxdyn.dynamics import bias_forces, mass_matrix
from jaxdyn.model import Model

Constraints = tuple[AbstractConstraint, ...]


class ContactRows(AbstractNonholonomic):
    """The rows of all contacts as one nonholonomic constraint."""

    contacts: tuple[Contact, ...]
    name: str = eqx.field(static=True, default="contacts")

    def rate(self, x: KinematicState):
        return jnp.concatenate(map_contacts(lambda contact: contact.rates(x), self.contacts))


class ContactKinematics(NamedTuple):
    """Gaps, rates and Jacobian of all contacts at a state."""

    kinematics: ConstraintKinematics
    gap: Float[Array, " contacts"]
    #: c, in the order of the layout
    rate: Float[Array, " rows"]
    jacobian: Float[Array, "rows nv"]
    #: for each group its basis `(dimension, 3)`
    basis: tuple[Array, ...]


def contact_kinematics(model: Model, contacts: tuple[Contact, ...], t, q, v) -> ContactKinematics:
    """Evaluates all contacts at a state."""
    x = constraint_kinematics(model, t, q, v)
    gap, basis = _geometry(model, contacts, x)
    jacobian, drift = linearise_constraints(model, (ContactRows(contacts),), x)
    return ContactKinematics(x, gap, jacobian @ v - drift, jacobian, basis)


def contact_gaps(model: Model, contacts: tuple[Contact, ...], t, q, v) -> Float[Array, " contacts"]:
    """The gaps alone."""
    return _geometry(model, contacts, constraint_kinematics(model, t, q, v))[0]


def _geometry(model: Model, contacts: tuple[Contact, ...], x: ConstraintKinematics):
    configuration = Configuration(model, *x.expansion.value)

    def measure(contact: Contact):
        touch = contact.gap.measure(configuration)
        return touch.gap, tuple(group.basis for group in contact.groups(configuration, touch))

    values = map_contacts(measure, contacts)
    gaps = jnp.stack([jnp.asarray(gap, x.v.dtype) for gap, _ in values])
    return gaps, tuple(basis for _, groups in values for basis in groups)


class ContactDynamics(NamedTuple):
    """Accelerations as an affine function of contact forces: `a = free + spread lambda`, `cdot = G lambda + w`."""

    at: ContactKinematics
    #: accelerations without contact forces
    free: Float[Array, " nv"]
    #: N A^T
    spread: Float[Array, "nv rows"]
    #: G
    delassus: Float[Array, "rows rows"]
    #: w
    bias: Float[Array, " rows"]


def contact_dynamics(
    model: Model, contacts: tuple[Contact, ...], constraints: Constraints, t, q, v, effort, external, tolerance=None
) -> ContactDynamics:
    """The dynamics at a state under efforts and wrenches, in terms of contact forces."""
    at = contact_kinematics(model, contacts, t, q, v)
    kkt = factorise_bilateral(model, constraints, at.kinematics, q, tolerance)
    target = -acceleration_bias(model, constraints, at.kinematics) if constraints else jnp.zeros(0, q.dtype)
    free = kkt.solve(effort - bias_forces(model, q, v, external), target)[0]
    spread, delassus = reflect_inertia(kkt, at.jacobian)
    bias = at.jacobian @ free + acceleration_bias(model, (ContactRows(contacts),), at.kinematics)
    return ContactDynamics(at, free, spread, delassus, bias)


def factorise_bilateral(model: Model, constraints: Constraints, x: ConstraintKinematics, q, tolerance) -> KKT:
    """The KKT matrix of the constraints of the mechanism."""
    if not constraints:
        return KKT.factorise(mass_matrix(model, q), jnp.zeros((0, model.nv), q.dtype))
    return KKT.factorise(mass_matrix(model, q), linearise_constraints(model, constraints, x)[0], tolerance)


def reflect_inertia(kkt: KKT, jacobian):
    """`N A^T` and `G = A N A^T`."""
    free = kkt.free_component(jacobian.T)
    return solve_triangular(kkt.factor, free, lower=True, trans=1), free.T @ free
