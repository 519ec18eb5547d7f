"""Feedback that depends on whether a contact is closed."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_function
from jaxdyn._types import Law
from jaxdyn.contact.rigid._modes import ContactModes
from jaxdyn.contact.rigid._motion import ContactMotion
from jaxdyn.dynamics import AbstractModalPart, Action


class ContactFeedback(AbstractModalPart):
    """Feedback by one law while a contact is open and by another one while it is closed.

    A contact task has three phases: approach, touch-down with an impact, and constrained motion. With a law of position
    for the first one and a hybrid law of position and force for the last one, `simulate` passes through all of them in
    one call. The part knows the modes of the motion, as a controller with a contact sensor does, and switches with
    them.

    Arguments:

    * `motion`: the `ContactMotion` of the system.
    * `contact`: name of one of its contacts.
    * `free`, `closed`: laws `(t, q, v) -> (nv,)`, in N m or N, while the contact is open and while it is closed.

    At touch-down the contact stays closed if the law `closed` presses; at lift-off it opens, and the law `free` goes
    on. Raises `ModelError` for unknown names, and in a system without this motion.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.contact import Contact, ContactFeedback, ContactMotion, Gap, Plane, Point

    b = jd.ModelBuilder()
    probe = b.add_link("probe", "world", jd.joints.Prismatic((0, 0, 1)), jd.spatial.point_mass(1.0)).build()
    motion = ContactMotion(Contact("table", Gap("probe", Point(), "world", Plane())))


    def descend(t, q, v):
        return 9.81 - 50.0 * (v + 0.1)  # N, at 0.1 m/s


    def press(t, q, v):
        return jnp.array([9.81 - 5.0])  # N


    system = jd.System(probe, (ContactFeedback(motion, "table", descend, press),), motion)
    run = jd.simulate(system, jnp.array([0.05]), jnp.array([-0.1]), jnp.array([0.0, 1.0]))
    assert abs(run.contacts.normal_force[-1, 0] - 5.0) < 1e-3  # N
    ```
    """

    free: Law
    closed: Law
    index: int = eqx.field(static=True)
    #: modes of the motion, None outside of a simulation
    modes: ContactModes | None

    def __init__(self, motion: ContactMotion, contact: str, free: Law, closed: Law):
        names = [c.name for c in motion.contacts]
        if contact not in names:
            raise ModelError(f"there is no contact {contact!r}; expected one of {names}")
        self.free, self.closed = as_function(free), as_function(closed)
        self.index, self.modes = names.index(contact), None

    def initial(self, model, q, v):
        return None

    def in_modes(self, modes):
        part: Any = eqx.tree_at(lambda p: p.modes, self, modes, is_leaf=lambda x: x is None)
        return part

    def act(self, model, t, q, v, state):
        if self.modes is None:
            raise ModelError(
                "a ContactFeedback has no modes of contact; simulate its system with motion=ContactMotion(...)"
            )
        as_effort = lambda law: lambda: jnp.asarray(law(t, q, v), v.dtype)
        return Action(jax.lax.cond(self.modes.closed[self.index] > 0, as_effort(self.closed), as_effort(self.free)))
