"""Motion of a robot in sustained contact with a dynamic environment."""

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn.constraints.contract import Configuration
from jaxdyn.contact.compliant import contact_wrenches, gap_coordinate, gap_motion
from jaxdyn.contact.contract import AbstractGap
from jaxdyn.contact.environment._dynamics import Environment, environment_dynamics, plastic_impulse
from jaxdyn.dynamics import AbstractMotion, Action, mass_matrix
from jaxdyn.model import Model


class EnvironmentMotion(AbstractMotion):
    """The motion of a robot in contact with a dynamic environment, whose surface moves with it.

    The equations are those of `environment_dynamics`. The contact is permanent: its force may become negative. To end
    the simulation where the contact opens, pass a terminal `Event` for the zero of `contact_force`.

    Arguments: `gap` to the undeformed surface, and the `environment`.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.contact import Environment, EnvironmentMotion, Gap, Plane, Point
    from jaxdyn.spatial import point_mass

    b = jd.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    tool = b.add_link("tool", "world", jd.joints.Prismatic([0, 0, 1]), point_mass(1.5)).build()
    floor = Gap("tool", Point(), "world", Plane())
    system = jd.System(tool, motion=EnvironmentMotion(floor, Environment(0.5, 200.0)))
    path = jd.simulate(system, jnp.zeros(1), -jnp.ones(1), jnp.array([0.0, 0.05]))
    assert jnp.allclose(path.q[-1], -jnp.sin(0.5) / 10)  # w = sqrt(200 / 2) = 10 rad/s
    ```
    """

    gap: AbstractGap
    environment: Environment
    projects: bool = eqx.field(static=True, default=False, init=False)
    adds_constraints: bool = eqx.field(static=True, default=False, init=False)

    def contact_force(self, model: Model, t, q, v, effort, external=None):
        """The force on the robot along the normal, N, under efforts `(nv,)` and wrenches `(links, 6)` or None."""
        return environment_dynamics(model, self.gap, self.environment, q, v, effort, external, t=t).force

    def check(self, model):
        return None  # the gap checks the names of its links where it is evaluated

    def acceleration(self, model, t, q, v, effort, external):
        return environment_dynamics(model, self.gap, self.environment, q, v, effort, external, t=t).a

    def residual(self, model, t, q, v, a, effort, external):
        return a - self.acceleration(model, t, q, v, effort, external)

    @property
    def has_affine_residual(self) -> bool:
        return False

    def velocity(self, model, t, q, v):
        return v

    def project(self, model, t, q, v):
        return q, v

    def exerted(self, model, t, q, v, effort, external):
        motion = gap_motion(self.gap, model, t, q, v)
        x: Configuration = motion.state.configuration
        force = self.contact_force(model, t, q, v, effort, external) * motion.touch.normal
        return Action(external=contact_wrenches(self.gap, x, motion.touch.point, force))

    def jump(self, model, t, q, impulse):
        s = gap_coordinate(self.gap, model, t, q, jnp.zeros_like(impulse))
        free = cho_solve(cho_factor(mass_matrix(model, q)), impulse)
        response, reaction = plastic_impulse(model, self.environment, q, s, s.jacobian @ free)
        return free + response * reaction

    def violates_constraints(self, model, t, q, v):
        return jnp.zeros((), bool)
