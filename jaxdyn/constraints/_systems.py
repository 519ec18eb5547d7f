"""Three ready systems of a robot and its surroundings: it grips a load, touches a surface, or shares a load.

McClamroch, "Singular systems of differential equations as dynamic models for constrained robot systems",
University of Michigan, 1986. Each is a model and its constraints; the load is a body of its own, and what the
document calls the contact force is a multiplier.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from jaxdyn._errors import ModelError, check_shape
from jaxdyn._types import Array, Float
from jaxdyn.constraints._closures import PointClosure, WeldClosure
from jaxdyn.constraints._contract import AbstractConstraint
from jaxdyn.constraints._coordinates import OnSurface
from jaxdyn.constraints._ends import End
from jaxdyn.joints import Free, Prismatic
from jaxdyn.kinematics import LOCAL, WORLD_ALIGNED, frame_pose, frame_velocity
from jaxdyn.model import Model, ModelBuilder, merge
from jaxdyn.spatial import Inertia, Pose, point_mass

Constrained = tuple[Model, tuple[AbstractConstraint, ...]]


def frame_end(model: Model, name: str) -> End:
    """The link or frame called `name`, as an end that a constraint takes."""
    if name in model.frame_names:
        row = model.frame_index(name)
        link = model.link_names[model.topology.frame_links[row]]
        return End(link, model.frames.translation[row], model.frames.rotation[row])
    if name not in model.link_names:
        raise ModelError(f"no link or frame is called {name!r}; frames are {', '.join(model.frame_names) or 'none'}")
    return End(name, (0.0, 0.0, 0.0))


def gripping_load(model: Model, frame: str, load: Any) -> Constrained:
    """A robot whose `frame` holds a load: `M a + G = T + J^T f`, `m pddot = -f - m g`, `p = H(q)`.

    `load` is the mass of a point (kg) or the `Inertia` of a rigid body in axes of the frame. The link "load" comes
    last. A point has three slides, so that its coordinates are p, and the multiplier "grip" is the document's f, the
    force on the robot in world axes; a rigid body has a free joint, and "grip" is the moment and force on the robot in
    axes of the load. Both are at once unique. `carried_state` gives states that meet the constraint.

    McClamroch 1986, equations 5 and 29 to 31. The document writes the conditions on the start (32) as those of a
    surface; they are `p = H(q)` and `pdot = J qdot`.
    """
    both = merge(model, _load(model, load))
    return both, (_grip("grip", load, frame_end(model, frame), Pose.identity(model.dtype)),)


def on_surface(model: Model, frame: str, phi: Callable[[Any], Any], base: Any = "world") -> Constrained:
    """A robot whose `frame` touches a surface without friction: `M a + G = T + J^T D^T pi`, `phi(H(q)) = 0`.

    The multiplier "surface" is pi, and the force on the robot `pi dphi/dp`. Contact holds in both directions; where
    the gradient points out of the wall, a negative pi says that the surface pulls.

    McClamroch 1986, equations 11 and 33 to 35, of which (33) has to read
    `D J M^-1 J^T D^T pi = D {J M^-1 (G - T) - Jdot qdot} - Ddot J qdot`.
    """
    return model, (OnSurface("surface", frame_end(model, frame), phi, base),)


def common_load(
    first: Model,
    second: Model,
    frames: tuple[str, str],
    load: Any,
    *,
    grips: tuple[Pose, Pose] | None = None,
    prefix: str = "second_",
    **placed,
) -> Constrained:
    """Two robots that hold one load: `M_i a_i + G_i = T_i + J_i^T f_i`, `m pddot = -f_1 - f_2 - m g`, `p = H_i(q_i)`.

    `load` as in `gripping_load`. `grips` are the poses of the robots' frames in the load, by default its own frame.
    The second robot stands at `placed` (as in `merge`), and all its names get the `prefix`. Multipliers "first_grip"
    and "second_grip" are f_1 and f_2; of the coordinates, those of the first robot come first and the load's last.

    McClamroch 1986, equations 19 and 36 to 39, of which the load's row in (19) lacks the sign of m g, and D_i in (39)
    stands for J_i.
    """
    both = merge(first, second, prefix=prefix, **placed)
    whole = merge(both, _load(first, load))
    held = (Pose.identity(first.dtype),) * 2 if grips is None else grips
    names = (frames[0], prefix + frames[1])
    return whole, tuple(
        _grip(f"{which}_grip", load, frame_end(both, name), pose)
        for which, name, pose in zip(("first", "second"), names, held, strict=True)
    )


def carried_state(
    model: Model, constraints: Any, q: Float[Array, " robot_nq"], v: Float[Array, " robot_nv"]
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """States of robots and load together, `p = H(q)`, `pdot = J v`, from those of the robots alone.

    Where two robots hold it, the load follows the first; whether they agree is the caller's concern (`assemble`).
    """
    grip = constraints[0]
    point = isinstance(grip, PointClosure)
    nq, nv = (model.nq - 3, model.nv - 3) if point else (model.nq - 7, model.nv - 6)
    q, v = check_shape("q", q, (nq,)), check_shape("v", v, (nv,))
    rest = jnp.zeros(3, q.dtype) if point else jnp.array([1.0, 0, 0, 0, 0, 0, 0], q.dtype)
    full_q, full_v = jnp.concatenate([q, rest]), jnp.concatenate([v, jnp.zeros(model.nv - nv, v.dtype)])
    hand = grip.second
    held = Pose.from_quaternion(hand.rotation, hand.translation)
    if not point:
        held = held @ Pose.from_quaternion(grip.first.rotation, grip.first.translation).inverse()
    link = frame_pose(model, full_q, hand.link)
    pose = link @ held
    aligned = frame_velocity(model, full_q, full_v, hand.link, reference=WORLD_ALIGNED)
    linear = aligned[3:] + jnp.cross(aligned[:3], pose.translation - link.translation)
    if point:
        return jnp.concatenate([q, pose.translation]), jnp.concatenate([v, linear])
    angular = held.rotation.T @ frame_velocity(model, full_q, full_v, hand.link, reference=LOCAL)[:3]
    own_q = jnp.concatenate([pose.quaternion(), pose.translation])
    return jnp.concatenate([q, own_q]), jnp.concatenate([v, angular, pose.rotation.T @ linear])


def _load(model: Model, load: Any) -> Model:
    b = ModelBuilder(model.gravity, strict=False)
    if isinstance(load, Inertia):
        return b.add_link("load", "world", Free(), load).build(model.dtype)
    b.add_link("load_x", "world", Prismatic((1, 0, 0)))
    b.add_link("load_y", "load_x", Prismatic((0, 1, 0)))
    return b.add_link("load", "load_y", Prismatic((0, 0, 1)), point_mass(load)).build(model.dtype)


def _grip(name: str, load: Any, hand: End, pose: Pose) -> AbstractConstraint:
    """The load comes first, so that the multiplier acts on the robot, in axes of the load."""
    held = End("load", pose.translation, pose.quaternion())
    return WeldClosure(name, held, hand) if isinstance(load, Inertia) else PointClosure(name, held, hand)
