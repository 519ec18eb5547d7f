"""The rows of all contacts at a state: gaps, rates, Jacobian, and the dynamics in terms of contact forces.

With the contact velocities `c = A v - b` of all contacts (normal velocities, slip velocities, relative angular
velocities) and the contact forces `lambda` along them,

    M a + h = tau + B^T nu + A^T lambda,    B a = target,    cdot = G lambda + w

where B is the constraint Jacobian of the mechanism, `G = A N A^T` the Delassus matrix with the inverse inertia N of the
constrained robot, and w the rate of c without contact forces.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from jaxdyn._types import Array, Float
from jaxdyn.constraints.contract import (
    AbstractConstraint,
    AbstractNonholonomic,
    Configuration,
    KinematicState,
    carrying_link,
)
from jaxdyn.constraints.evaluation import (
    KKT,
    ConstraintKinematics,
    acceleration_bias,
    constraint_kinematics,
    linearise_constraints,
    moving_coordinates,
)
from jaxdyn.contact.rigid._contact import Contact
from jaxdyn.contact.rigid._layout import map_contacts
from jaxdyn.dynamics import equations_of_motion
from jaxdyn.kinematics import forward_kinematics
from jaxdyn.model import Model
from jaxdyn.recursion import reduce_columns

Constraints = tuple[AbstractConstraint, ...]


class ContactRows(AbstractNonholonomic):
    """All contacts as one nonholonomic constraint, whose multipliers are the contact forces."""

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
    #: the rate of c for a = 0
    rate_bias: Float[Array, " rows"]
    #: for each group its basis `(dimension, 3)`
    basis: tuple[Array, ...]


@eqx.filter_jit
def contact_kinematics(model: Model, contacts: tuple[Contact, ...], t, q, v) -> ContactKinematics:
    """Evaluates all contacts at a state.

    Each row is `c = e . (v_1 - v_2)(P)`, the velocity of the first body relative to the second at the point of contact
    P along the direction e of the row, or `c = e . (w_1 - w_2)`. With `v(P) = v_0 + w x P` about the world's origin,

        c' = e' . v(P) + e . (v_0' + w' x P + w x P')

    where P' and e' are derivatives of the gap's measure along the motion.
    """
    x = constraint_kinematics(model, t, q, v)
    point, tangent, _ = x.expansion
    (gap, rows, basis), (_, moving, _) = jax.jvp(
        lambda *y: _geometry(contacts, Configuration(model, *y)), point, tangent
    )
    (e, p), (de, dp) = rows, moving
    carries = np.concatenate([moving_coordinates(model), np.zeros((1, x.bodies.subspace.shape[0]))])
    first, second, angular = _row_bodies(model, contacts)
    is_angular = jnp.asarray(angular[:, None])
    relative = lambda twists: (lambda z: z[first] - z[second])(jnp.concatenate([twists, jnp.zeros((1, 6), q.dtype)]))
    (w, v0), (dw, a0) = ((z[:, :3], z[:, 3:]) for z in (relative(x.twist), relative(x.twist_rate)))
    velocity = jnp.where(is_angular, w, v0 + jnp.cross(w, p))
    change = jnp.where(is_angular, dw, a0 + jnp.cross(dw, p) + jnp.cross(w, dp))
    wrench = jnp.where(is_angular, jnp.concatenate([e, 0 * e], 1), jnp.concatenate([jnp.cross(p, e), e], 1))
    jacobian = reduce_columns(
        model, jnp.asarray(carries[first] - carries[second], q.dtype) * (wrench @ x.bodies.subspace.T)
    )
    return ContactKinematics(x, gap, jnp.sum(e * velocity, 1), jacobian, jnp.sum(de * velocity + e * change, 1), basis)


@eqx.filter_jit
def contact_gaps(model: Model, contacts: tuple[Contact, ...], t, q, v) -> Float[Array, " contacts"]:
    """The gaps of all contacts."""
    poses = forward_kinematics(model, q)
    configuration = Configuration(model, jnp.asarray(t, q.dtype), q, poses.rotation, poses.translation)
    return _geometry(contacts, configuration)[0]


def _geometry(contacts: tuple[Contact, ...], x: Configuration):
    """Gaps, directions and points of all rows, and bases of all groups."""

    def measure(contact: Contact):
        touch = contact.gap.measure(x)
        basis = tuple(group.basis for group in contact.groups(x, touch))
        directions = jnp.concatenate([touch.normal[None], *basis])
        return touch.gap, directions, jnp.broadcast_to(touch.point, directions.shape), basis

    gap, directions, points, basis = zip(*map_contacts(measure, contacts), strict=True)
    as_number = lambda z: jnp.asarray(z, x.q.dtype)
    rows = as_number(jnp.concatenate(directions)), as_number(jnp.concatenate(points))
    return as_number(jnp.stack(gap)), rows, tuple(as_number(e) for own in basis for e in own)


def _row_bodies(model: Model, contacts: tuple[Contact, ...]):
    """For each row the links of the first and of the second body, -1 for the world, and whether it is angular."""
    first, second, angular = [], [], []
    for contact in contacts:
        kinds = [
            False,
            *(kind for size, kind in zip(contact.dimensions, contact.angular, strict=True) for _ in range(size)),
        ]
        links = [
            -1 if end.link == "world" else carrying_link(model, end.link)
            for end in (contact.gap.first, contact.gap.second)
        ]
        first += [links[0]] * len(kinds)
        second += [links[1]] * len(kinds)
        angular += kinds
    return np.array(first, int), np.array(second, int), np.array(angular, bool)


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


@eqx.filter_jit
def contact_dynamics(
    model: Model, contacts: tuple[Contact, ...], constraints: Constraints, t, q, v, effort, external, tolerance=None
) -> ContactDynamics:
    """The dynamics at a state under efforts and wrenches, in terms of contact forces."""
    at = contact_kinematics(model, contacts, t, q, v)
    mass, bias = equations_of_motion(model, at.kinematics.bodies, external)
    kkt = factorise_bilateral(model, constraints, at.kinematics, mass, tolerance)
    target = -acceleration_bias(model, constraints, at.kinematics) if constraints else jnp.zeros(0, q.dtype)
    free = kkt.solve(effort - bias, target)[0]
    spread, delassus = reflect_inertia(kkt, at.jacobian)
    return ContactDynamics(at, free, spread, delassus, at.jacobian @ free + at.rate_bias)


def factorise_bilateral(model: Model, constraints: Constraints, x: ConstraintKinematics, mass, tolerance) -> KKT:
    """The KKT matrix of the constraints of the mechanism."""
    if not constraints:
        return KKT.factorise(mass, jnp.zeros((0, model.nv), mass.dtype))
    return KKT.factorise(mass, linearise_constraints(model, constraints, x)[0], tolerance)


def reflect_inertia(kkt: KKT, jacobian):
    """`N A^T` and `G = A N A^T`."""
    free = kkt.free_component(jacobian.T)
    return solve_triangular(kkt.factor, free, lower=True, trans=1), free.T @ free
