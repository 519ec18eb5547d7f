"""Inverse dynamics of robots with elastic transmissions, by differential flatness."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdyn._errors import ModelError, check_shape
from jaxdyn._types import Array, Float
from jaxdyn.actuators.elastic._stage import Stage
from jaxdyn.actuators.elastic._transmission_springs import TransmissionSprings
from jaxdyn.dynamics import passive_forces, rnea
from jaxdyn.joints import has_vector_rate
from jaxdyn.model import Model

Signal = Callable[[Array], Array]


class ElasticMotion(NamedTuple):
    """The motion of a robot with elastic transmissions, including the shafts, and the required efforts."""

    #: rad or m, of all coordinates
    q: Float[Array, " nv"]
    v: Float[Array, " nv"]
    a: Float[Array, " nv"]
    #: motor torques at the input shafts, efforts at joints without transmission, zero elsewhere, N m or N
    effort: Float[Array, " nv"]


def elastic_inverse_dynamics(
    model: Model,
    transmissions: TransmissionSprings | Sequence[TransmissionSprings],
    q: Float[Array, " nv"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    jerk: Float[Array, " nv"],
    snap: Float[Array, " nv"],
    *higher: Float[Array, " nv"],
    passive: bool = True,
) -> ElasticMotion:
    """Motor angles and torques for a motion of the joints, whose angles are flat outputs.

        tau = M(q) a + h(q, v),  theta_(k-1) = N_k (theta_k + x_k(T_k)),  T_(k-1) = J_k theta_(k-1)'' + T_k / N_k

    with `T_K = tau`. For one stage and a linear spring, `theta = N (q + tau / c)` and `u = J theta'' + tau / N`: the
    second derivative of tau along the motion needs the fourth derivative of q (De Luca and Book 2016, "Robots with
    flexible elements", section 11.2). Each further stage needs two more derivatives.

    Arguments:

    * `model`: the robot with the shafts, mounted (`part.mount(model)` for every part with inertia, motors included)
    * `transmissions`: the parts of the elastic joints, without damping, backlash, hysteresis and rotors as bodies
    * `q`, `v`, `a`, `jerk`, `snap`, `higher`: the motion and its time derivatives, `(nv,)`; the entries of shafts are
      ignored
    * `passive`: whether the effort overcomes the damping, friction and springs of the joints

    Returns an `ElasticMotion`. Raises `ModelError` for transmissions that are not flat, coordinates with `qdot != v`,
    and too few derivatives.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import Stage, add_elastic_transmission, elastic_inverse_dynamics

    arm = jd.robots.pendulum()
    robot, springs = add_elastic_transmission(arm, arm.joint_names[0], Stage(80.0, 5000.0, input_inertia=2.5e-4))
    q, v, a, jerk, snap = jnp.zeros((5, 2)).at[:, 0].set(jnp.array([0.3, 0.5, -1.0, 2.0, 3.0]))
    motion = elastic_inverse_dynamics(springs.mount(robot), springs, q, v, a, jerk, snap)
    ```
    """
    transmissions = (transmissions,) if isinstance(transmissions, TransmissionSprings) else tuple(transmissions)
    derivatives = [check_shape("a derivative of the motion", x, (model.nv,)) for x in (q, v, a, jerk, snap, *higher)]
    _check_flatness(model, transmissions, len(derivatives) - 1)
    names = [name for part in transmissions for name in part.shafts]
    shafts = jnp.array([model.joint(name).v.start for name in names], int)
    derivatives = [x.at[shafts].set(0.0) for x in derivatives]
    order = 2 * max((len(part.shafts) for part in transmissions), default=0)
    efforts = _taylor(_joint_effort(model, derivatives, passive), order, derivatives[0].dtype)
    state, effort = jnp.stack(derivatives[:3]), efforts[0].at[shafts].set(0.0)
    for part in transmissions:
        joint = model.joint(part.joint).v.start
        angle, torque = [x[joint] for x in derivatives], [x[joint] for x in efforts]
        effort = effort.at[joint].set(0.0)
        for name, stage in zip(reversed(part.shafts), reversed(part.equivalent), strict=True):
            index = model.joint(name).v.start
            angle, torque = _input_side(stage, model.properties.armature[index], angle, torque)
            state = state.at[:, index].set(jnp.stack(angle[:3]))
        effort = effort.at[model.joint(part.shafts[0]).v.start].set(torque[0])
    return ElasticMotion(state[0], state[1], state[2], effort)


def _check_flatness(model: Model, transmissions: tuple[TransmissionSprings, ...], order: int):
    if not all(has_vector_rate(joint) for joint in model.joints):
        raise ModelError(
            "elastic_inverse_dynamics: the robot has joints with qdot != v, such as Free or Spherical, whose time "
            "derivatives are not those of coordinates; lock them, or replace them by joints with one coordinate"
        )
    for part in transmissions:
        where = f"elastic_inverse_dynamics: the transmission of joint {part.joint!r}"
        needed = 2 + 2 * len(part.shafts)
        if order < needed:
            raise ModelError(
                f"{where} has {len(part.shafts)} shafts and needs derivatives of the motion up to order {needed}, but "
                f"they are given up to order {order}; pass the missing ones after snap"
            )
        flat = all(s.damping is None and s.backlash is None and s.hysteresis is None for s in part.stages)
        if not flat or part.has_rotor_body:
            raise ModelError(
                f"{where} has damping, backlash, hysteresis or a rotor as a body, with which the motor angle follows "
                "from a differential equation; leave these out of the model for inverse dynamics"
            )


def _joint_effort(model: Model, derivatives: list[Array], passive: bool) -> Signal:
    """Efforts at the joints over time, along the motion with the given derivatives at time zero."""
    motion = [_polynomial(derivatives[k:]) for k in range(3)]

    def effort(t):
        q, v, a = (x(t) for x in motion)
        tau = rnea(model, q, v, a)
        return tau - passive_forces(model, q, v) if passive else tau

    return effort


def _input_side(stage: Stage, inertia: Array, angle: list[Array], torque: list[Array]):
    """Angle and torque of the input shaft of a stage, with their derivatives, from those of its output."""
    signal = lambda t: stage.spring.deflection(_polynomial(torque)(t))
    deflection = _taylor(signal, len(torque) - 1, torque[0].dtype)
    shaft = [stage.ratio * (angle[k] + x) for k, x in enumerate(deflection)]
    return shaft, [inertia * shaft[k + 2] + torque[k] / stage.ratio for k in range(len(torque) - 2)]


def _polynomial(derivatives: list[Array]) -> Signal:
    """The function of time with the given derivatives at time zero."""
    return lambda t: sum((x * t**k / math.factorial(k) for k, x in enumerate(derivatives[1:], 1)), derivatives[0])


def _taylor(signal: Signal, order: int, dtype) -> list[Array]:
    """The signal and its derivatives at time zero."""

    def differentiate(values):
        def longer(t):
            known, rates = jax.jvp(values, (t,), (jnp.ones_like(t),))
            return (*known, rates[-1])

        return longer

    values = lambda t: (signal(t),)
    for _ in range(order):
        values = differentiate(values)
    return list(values(jnp.zeros((), dtype)))
