"""Transitions between phases with contact: touch-down and lift-off."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.contact.rigid import contact_layout
from jaxdyn.simulation import State
from jaxdyn.trajopt.contact._base import check_contact_names, contacts_at
from jaxdyn.trajopt.contact._robot import ContactRobot
from jaxdyn.trajopt.phases import Transition


class _Gaps(eqx.Module):
    dynamics: ContactRobot
    indices: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, t, x, u) -> Float[Array, " gaps"]:
        d = self.dynamics
        return contacts_at(d.robot, d.motion.contacts, t, x).gap[np.array(self.indices, int)]


class _NormalForces(eqx.Module):
    dynamics: ContactRobot
    indices: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, t, x, u) -> Float[Array, " forces"]:
        d = self.dynamics
        normal = contact_layout(d.motion.contacts).normal
        controls = [d.robot.nu + d.held.index(int(normal[i])) for i in self.indices]
        return u[np.array(controls, int)]


class _Impact(eqx.Module):
    """The state after the impacts of some contacts."""

    dynamics: ContactRobot
    touching: Float[Array, " contacts"]

    def __call__(self, x) -> Float[Array, " nx"]:
        robot = self.dynamics.robot
        state, model = robot.to_state(x), robot.system.mounted_model
        zero = jnp.zeros((), x.dtype)
        v, _ = self.dynamics.motion.collide(model, zero, state.q, state.v, self.touching)
        return robot.to_vector(State(state.q, v, state.parts))


def touch_down(before: ContactRobot, contacts: Sequence[str]) -> Transition:
    """The transition at which open contacts close: their gaps are zero, and their impact changes the velocity.

    Arguments:

    * `before`: the dynamics of the phase before.
    * `contacts`: names of the contacts that close. Contacts that are closed before take part in the impact.

    The impact obeys the laws of the contacts. Second derivatives of several impacts at once are approximate, which
    costs iterations and not accuracy of the optimum. Raises `ModelError` for unknown names.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.contact import Contact, ContactMotion, Gap, Newton, Plane, Point
    from jaxdyn.trajopt import ContactRobot, touch_down

    b = jd.ModelBuilder()
    ball = b.add_link("ball", "world", jd.joints.Prismatic((0, 0, 1)), jd.spatial.point_mass(2.0)).build()
    floor = Contact("floor", Gap("ball", Point(), "world", Plane()), restitution=Newton(0.8))
    flight = ContactRobot(jd.System(ball, motion=ContactMotion(floor)))
    after = touch_down(flight, ["floor"]).apply(jnp.array([0.0, -2.0]))
    assert jnp.allclose(after, jnp.array([0.0, 1.6]))
    ```
    """
    indices = _indices(before, contacts)
    touching = jnp.asarray(before.modes.closed).at[np.array(indices, int)].set(1)
    return Transition(_Impact(before, touching), _Gaps(before, indices))


def lift_off(before: ContactRobot, contacts: Sequence[str]) -> Transition:
    """The transition at which closed contacts open: their normal forces are zero, and the state is continuous.

    Arguments:

    * `before`: the dynamics of the phase before, in which the contacts are closed.
    * `contacts`: names of the contacts that open.

    Raises `ModelError` for unknown names, and for contacts that are open already.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.contact import Contact, ContactMotion, Gap, Plane, Point
    from jaxdyn.trajopt import ContactRobot, lift_off

    b = jd.ModelBuilder()
    ball = b.add_link("ball", "world", jd.joints.Prismatic((0, 0, 1)), jd.spatial.point_mass(2.0)).build()
    floor = Contact("floor", Gap("ball", Point(), "world", Plane()))
    stance = ContactRobot(jd.System(ball, motion=ContactMotion(floor)), closed=("floor",))
    normal_force = lift_off(stance, ["floor"]).condition(0.0, jnp.zeros(2), jnp.array([5.0, 14.62]))
    assert jnp.allclose(normal_force, 14.62)
    ```
    """
    indices = _indices(before, contacts)
    normal = contact_layout(before.motion.contacts).normal
    opened = [name for name, i in zip(contacts, indices, strict=True) if int(normal[i]) not in before.held]
    if opened:
        raise ModelError(f"the contacts {opened} are open in the phase before; lift_off takes closed ones")
    return Transition(None, _NormalForces(before, indices))


def _indices(dynamics: ContactRobot, names: Sequence[str]) -> tuple[int, ...]:
    check_contact_names(dynamics.motion, names)
    known = [c.name for c in dynamics.motion.contacts]
    return tuple(known.index(name) for name in names)
