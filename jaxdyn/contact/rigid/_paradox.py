"""Painleve's paradox of a sliding contact, and the impact without collision that resolves it.

The normal velocity of a sliding contact changes by `c_n' = k F_n + w` with `k = (G S)_nn`, the gain of its normal force
with friction. For k <= 0 the friction presses the contact into the surface harder than its normal force lifts it. With
w < 0 there is then no force that keeps the contact closed and none that opens it; with w >= 0 there are several.

Without a force the motion goes on with an impulse: the limit of an impact whose approach vanishes (Lecornu 1905; Genot
and Brogliato 1999). Along the normal impulse friction increases the approach until the slip has come to rest; then the
contact sticks, and the normal velocity rises to the end that the law of restitution sets.
"""

import jax.numpy as jnp

from jaxdyn._types import Array, Bool, Float
from jaxdyn.contact.rigid._complementarity import ContactProblem, solve_complementarity
from jaxdyn.contact.rigid._contact import Contact
from jaxdyn.contact.rigid._forces import zero_speed
from jaxdyn.contact.rigid._impacts import Encounter, single_impact
from jaxdyn.contact.rigid._layout import Layout


def has_no_forces(layout: Layout, problem: ContactProblem, i) -> Bool[Array, ""]:
    """Whether contact i, at which the paradox occurs, cannot open either: it approaches if the others go on alone."""
    others = problem._replace(takes_part=problem.takes_part.at[i].set(0))
    without = solve_complementarity(layout, others)
    return without.is_solved & (without.rates[layout.normal][i] < -zero_speed(problem.bias))


def impact_without_collision(contacts: tuple[Contact, ...], layout: Layout, delassus, rate, i) -> Float[Array, " rows"]:
    """The impulses of the impact at contact i, whose normal velocity is zero.

    An approach within rounding, whose rebound is rest, selects the compression also where the gain k is zero.
    """
    approach = zero_speed(jnp.zeros_like(rate)) / 8
    rate = rate.at[jnp.asarray(layout.normal)[i]].set(-approach)
    touching = jnp.zeros(layout.num_contacts, rate.dtype).at[i].set(1)
    return single_impact(Encounter(contacts, delassus, rate, touching, jnp.zeros_like(rate[0])), i)
