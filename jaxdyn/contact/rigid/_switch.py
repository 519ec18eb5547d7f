"""The modes of a motion with contacts after an event.

After the impacts, touching contacts with zero normal velocity may remain closed. A complementarity problem in the
contact forces and accelerations determines which of them do, and which of their friction groups stick. The direction of
friction in groups with a slip velocity is known.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdyn._numerics import pseudo_inverse, safe_norm
from jaxdyn._types import Array, Float
from jaxdyn.contact.rigid._complementarity import ContactProblem, solve_complementarity
from jaxdyn.contact.rigid._contact import Contact
from jaxdyn.contact.rigid._forces import Cones, forces_in_modes, friction_cones, normal_gains, zero_speed
from jaxdyn.contact.rigid._impacts import Impact
from jaxdyn.contact.rigid._layout import Layout, contact_layout, gather_groups
from jaxdyn.contact.rigid._modes import ContactModes
from jaxdyn.contact.rigid._rows import ContactDynamics, ContactKinematics


class Candidates(NamedTuple):
    """Contacts that may remain closed, and their friction groups with a slip velocity and its direction."""

    closed: Float[Array, " contacts"]
    sliding: Float[Array, " groups"]
    direction: Float[Array, "groups 3"]


def find_candidates(layout: Layout, at: ContactKinematics, rate, touching, at_rest, rest_speed) -> Candidates:
    """The candidates after the impacts; `at_rest` marks groups whose slip has just become zero.

    If there are several contacts, a separation slower than `rest_speed` counts as closed.
    """
    small = zero_speed(rate)
    slow = jnp.maximum(rest_speed, small) if layout.num_contacts > 1 else small
    closed = touching * (rate[layout.normal] <= slow)
    slip = world_slip(at, gather_groups(layout, rate))
    speed = safe_norm(slip, axis=1)
    limit = jnp.where(at_rest > 0, jnp.finfo(rate.dtype).eps ** 0.3 * (1 + jnp.max(jnp.abs(rate))), small)
    sliding = closed[layout.contact] * (speed > limit)
    return Candidates(closed, sliding, unit_rows(slip) * sliding[:, None])


def world_slip(at: ContactKinematics, rows) -> Float[Array, "groups 3"]:
    """Slips in the world from their components `(groups, 3)` along the rows: `c_i = e_i . u`, with orthogonal e_i."""
    square = [jnp.sum(e**2, axis=1, keepdims=True) for e in at.basis]  # 1, less for rows of anisotropic friction
    return world_forces(at, rows, [e / jnp.where(s > 0, s, 1) for e, s in zip(at.basis, square, strict=True)])


def world_forces(at: ContactKinematics, rows, basis=None) -> Float[Array, "groups 3"]:
    """Forces in the world from their components `(groups, 3)` along the rows: `sum_i lambda_i e_i`."""
    out = [e.T @ rows[k, : len(e)] for k, e in enumerate(at.basis if basis is None else basis)]
    return jnp.stack(out) if out else jnp.zeros((0, 3), rows.dtype)


def unit_rows(x):
    """Rows of unit length; zero where they vanish."""
    length = safe_norm(x, axis=1)[:, None]
    return x / jnp.where(length > 0, length, 1)


class ModeChoice(NamedTuple):
    """Modes, whether they satisfy all conditions, and the contact with Painleve's paradox, or -1."""

    modes: ContactModes
    is_solved: Array
    paradox: Array
    #: the complementarity problem of forces and accelerations
    problem: ContactProblem


class PhaseStart(NamedTuple):
    """The start of a phase: velocity and rates after its impacts, and the modes with the dynamics that decide them."""

    v: Float[Array, " nv"]
    rate: Float[Array, " rows"]
    impact: Impact
    dynamics: ContactDynamics
    choice: ModeChoice


def incipient_slips(
    layout: Layout, cones: Cones, modes: ContactModes, directions, dynamics: ContactDynamics, yields
) -> Float[Array, "groups 3"]:
    """Unit vectors against the friction of the groups in `yields`, whose friction has reached its cone; others zero."""
    forces = forces_in_modes(layout, cones, modes, directions, dynamics.delassus, dynamics.bias)
    sticks = modes.closed[layout.contact] * (1 - modes.sliding)
    return -unit_rows(world_slip(dynamics.at, gather_groups(layout, forces))) * (sticks * yields)[:, None]


def choose_modes(
    layout: Layout,
    cones: Cones,
    candidates: Candidates,
    directions,
    dynamics: ContactDynamics,
    released,
    incipient,
    margin,
) -> ModeChoice:
    """The modes after the event, from the complementarity problem of forces and accelerations.

    `directions` are the directions of slip along the rows. Contacts marked in `released`, whose force has just become
    zero, open unless the solution has a positive force. Groups with a direction in `incipient` start to slide: along
    the acceleration of their slip, or in this direction while it is zero, as at equal coefficients. Contacts that open
    with zero velocity get the `margin`.
    """
    yields = jnp.any(incipient != 0, axis=1) & (candidates.sliding == 0)
    mu = jnp.where((candidates.sliding > 0) | yields, cones.sliding, cones.sticking)
    problem = ContactProblem(
        dynamics.delassus,
        dynamics.bias,
        candidates.closed,
        jnp.zeros_like(candidates.closed),
        mu,
        candidates.sliding,
        directions,
    )
    solution = solve_complementarity(layout, problem)
    small = zero_speed(dynamics.bias)
    normal = solution.forces[layout.normal]
    pushes = normal > jnp.finfo(normal.dtype).eps ** 0.6 * (1 + jnp.max(jnp.abs(normal)))
    closed = candidates.closed * ((solution.rates[layout.normal] <= small) & (pushes | (released == 0)))
    start = gather_groups(layout, solution.rates)
    accelerates = safe_norm(start, axis=1) > small
    slips = (accelerates | yields | cones.are_points) & (closed[layout.contact] > 0)
    begin = jnp.where(accelerates[:, None], unit_rows(world_slip(dynamics.at, start)), incipient)
    sliding = jnp.where(candidates.sliding > 0, closed[layout.contact], slips.astype(closed.dtype))
    direction = jnp.where(candidates.sliding[:, None] > 0, candidates.direction, begin) * sliding[:, None]
    modes = ContactModes(closed, sliding, direction, margin * (candidates.closed - closed))
    gain = normal_gains(layout, cones, _candidate_modes(candidates), directions, dynamics.delassus)
    paradox = jnp.where(jnp.min(gain) <= 0, jnp.argmin(gain), -1)
    return ModeChoice(jax.tree.map(jnp.asarray, modes), solution.is_solved, paradox, problem)


def closing_impulses(layout: Layout, closed, dynamics: ContactDynamics) -> Float[Array, " rows"]:
    """Normal impulses that bring the `closed` contacts to zero normal velocity, where one separates slowly.

    An impact at one contact often opens its neighbours, which gravity closes again: a sequence of ever smaller impacts.
    Here it ends, by the projection of the velocity onto the closed contacts, which loses energy.
    """
    rate, rows = dynamics.at.rate, layout.normal
    normal = closed * rate[rows]
    if layout.num_contacts == 1:
        return jnp.zeros_like(rate)
    gains = closed[:, None] * dynamics.delassus[rows[:, None], rows] * closed
    inverse, _ = pseudo_inverse(gains, jnp.asarray(jnp.finfo(rate.dtype).eps ** 0.7, rate.dtype))
    held = jnp.zeros_like(rate).at[rows].set(-inverse @ normal)
    return jnp.where(jnp.max(normal) > zero_speed(rate), held, 0)


def settling_impulses(
    contacts: tuple[Contact, ...], directions, modes: ContactModes, delassus, rate
) -> Float[Array, " rows"]:
    """The impulses of a plastic impact that bring the held rows of new modes to rest.

    They are zero up to rounding, but not their derivatives where a contact closes that does not approach: the velocity
    has those of the motions that approach. As in a single impact, rolling and spinning friction have no impulses.
    """
    layout, cones = contact_layout(contacts), friction_cones(contacts, directions.dtype)
    angular = jnp.array([kind for contact in contacts for kind in contact.angular], directions.dtype)
    cones = cones._replace(sliding=cones.sliding * (1 - angular))
    modes = ContactModes(modes.closed, jnp.maximum(modes.sliding, angular), modes.direction, modes.margin)
    return forces_in_modes(layout, cones, modes, directions, delassus, rate)


def _candidate_modes(candidates: Candidates) -> ContactModes:
    return ContactModes(candidates.closed, candidates.sliding, candidates.direction, jnp.zeros_like(candidates.closed))
