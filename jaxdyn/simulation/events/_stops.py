"""Joint limits as events."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import core
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn.dynamics import AbstractMotion
from jaxdyn.model import Model
from jaxdyn.recursion import check_model
from jaxdyn.simulation.events._events import AbstractReset, Event
from jaxdyn.simulation.system import System, described_motion


class Coordinate(eqx.Module):
    """`sign * (q_i - bound)`: the condition that one coordinate reaches a bound."""

    index: int = eqx.field(static=True)
    bound: ArrayLike
    sign: float = eqx.field(static=True, default=1.0)

    def __call__(self, model, t, q, v):
        return self.sign * (q[self.index] - self.bound)


class JointLimit(eqx.Module):
    """The distance of a coordinate from its limit, `q_i - lower_i` or `upper_i - q_i`; 1 where the limit is infinite.

    A condition for `Event`. The limit is read from the simulated model, so results have derivatives with respect to it.

    Arguments:

    * `index`: of the coordinate in q.
    * `upper`: whether the upper limit is meant, by default the lower one.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.simulation import JointLimit

    arm = jd.robots.panda()
    q = jd.neutral(arm)
    room = JointLimit(0, upper=True)(arm, 0.0, q, jnp.zeros(arm.nv))
    assert jnp.allclose(room, arm.limits.upper[0] - q[0])
    ```
    """

    index: int = eqx.field(static=True)
    upper: bool = eqx.field(static=True, default=False)

    def __call__(self, model, t, q, v):
        bound = (model.limits.upper if self.upper else model.limits.lower)[self.index]
        is_finite = jnp.isfinite(bound)
        distance = q[self.index] - jnp.where(is_finite, bound, 0)
        return jnp.where(is_finite, -distance if self.upper else distance, 1)


class Rebound(AbstractReset):
    """A reset map that reverses the velocity of one coordinate, times the restitution, by an impulse along it.

    `v+ = v - (1 + e) v_i N e_i / N_ii` with the inverse inertia N of the robot under its constraints, `M^-1` for a
    tree: the impulse also changes the velocities of the other joints.

    Arguments:

    * `index`: of the coordinate in v.
    * `restitution`: e, from 0 (plastic: the joint rests at its stop until it is pushed on) to 1 (no loss of energy).
    * `motion`: the motion whose constraints take part in the impulse, by default along the closures of the model.

    Raises `ModelError` for a negative restitution.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.simulation import Rebound

    arm = jd.robots.double_pendulum()
    q, v = jnp.array([0.4, -0.9]), jnp.array([1.0, -2.0])
    _, after = Rebound(1, 1.0)(arm, 0.0, q, v)
    assert jnp.allclose(after[1], 2.0)
    assert jnp.allclose(jd.kinetic_energy(arm, q, after), jd.kinetic_energy(arm, q, v))
    ```
    """

    index: int = eqx.field(static=True)
    restitution: ArrayLike
    motion: AbstractMotion | None = None

    def __check_init__(self):
        e = self.restitution
        if eqx.is_array_like(e) and not isinstance(e, core.Tracer) and np.any(np.asarray(e) < 0):
            raise ModelError(f"the restitution of a Rebound is {e}; expected 0 (plastic) to 1 (no loss of energy)")

    def check(self, motion):
        if self.motion is None and motion.adds_constraints:
            raise ModelError(
                f"a Rebound has no motion, and the {type(motion).__name__} of its system has constraints that take "
                "part in the impulse; give Rebound(..., motion=system.motion), or pass the system to joint_stops"
            )

    def __call__(self, model, t, q, v):
        motion = described_motion(model) if self.motion is None else self.motion
        jump = motion.jump(model, t, q, jnp.zeros_like(v).at[self.index].set(1))
        own = jump[self.index]
        is_movable = own != 0  # a joint that constraints block has no velocity either
        ratio = jnp.where(is_movable, jump / jnp.where(is_movable, own, 1), 0)
        return q, v - (1 + self.restitution) * v[self.index] * ratio


def joint_stops(system: Model | System, restitution: ArrayLike = 0.5) -> tuple[Event, ...]:
    """Events at all finite limits of joints with one coordinate, where the joints rebound (`Rebound`).

    Arguments:

    * `system`: the model, or the system if its motion adds constraints to those of the model.
    * `restitution`: from 0 (plastic) to 1 (no loss of energy).

    Returns the events for `simulate(..., events=)`, in the order of the joints, the lower limit first. Limits are read
    from the simulated model. Where they are traced values, in a function under `jax.jit` or `jax.grad` of the model,
    both sides of each joint have an event, which never happens at an infinite limit.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.joints import Prismatic
    from jaxdyn.simulation import joint_stops
    from jaxdyn.spatial import point_mass

    b = jd.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    b.add_link("puck", "world", Prismatic([1, 0, 0]), point_mass(1.0), lower=-1.0, upper=2.0)
    puck = b.build()
    ts = jnp.array([0.0, 3.0])
    slide = jd.simulate(puck, jnp.zeros(1), jnp.ones(1), ts, events=joint_stops(puck, 0.5))
    assert jnp.allclose(slide.events.time[0], 2.0) and jnp.allclose(slide.q[-1], 1.5)
    ```
    """
    model, motion = (system.model, system.motion) if isinstance(system, System) else (system, None)
    check_model(model)
    stops: list[Event] = []
    for name in model.joint_names:
        view = model.joint(name)
        if view.joint.nq != 1 or view.joint.nv != 1:
            continue
        q, v = view.q.start, view.v.start
        for limit, upper in ((model.limits.lower, False), (model.limits.upper, True)):
            if isinstance(limit, core.Tracer) or np.isfinite(np.asarray(limit)[..., q]).any():
                rebound = Rebound(v, restitution, motion)
                stops.append(Event(JointLimit(q, upper), rebound, direction=-1, barrier=True))
    return tuple(stops)
