"""Three constrained systems: a robot that grips a load, a robot on a surface, and two robots that share a load.

McClamroch, "Singular systems of differential equations as dynamic models for constrained robot systems",
University of Michigan, 1986. Each function returns a model and its constraints. The load is a separate body, and the
contact force of the document is a multiplier.
"""

from collections.abc import Callable, Sequence

import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError, check_shape
from jaxdyn._types import Array, Float
from jaxdyn.constraints.contract import AbstractConstraint
from jaxdyn.constraints.types import End, OnSurface, PointClosure, WeldClosure
from jaxdyn.joints import Free, Prismatic
from jaxdyn.kinematics import LOCAL, WORLD_ALIGNED, frame_pose, frame_velocity
from jaxdyn.model import Model, ModelBuilder, merge
from jaxdyn.spatial import Inertia, Pose, point_mass

Constrained = tuple[Model, tuple[AbstractConstraint, ...]]


def frame_end(model: Model, name: str) -> End:
    """The `End` of a constraint for the link or frame with this name."""
    if name in model.frame_names:
        row = model.frame_index(name)
        link = model.link_names[model.topology.frame_links[row]]
        return End(link, model.frames.translation[row], model.frames.rotation[row])
    if name not in model.link_names:
        raise ModelError(
            f"no link or frame is called {name!r}; links are {', '.join(model.link_names) or 'none'}; "
            f"frames are {', '.join(model.frame_names) or 'none'}"
        )
    return End(name, (0.0, 0.0, 0.0))


def gripping_load(model: Model, frame: str, load: Inertia | ArrayLike) -> Constrained:
    """A robot whose `frame` holds a load: `M a + G = T + J^T f`, `m pddot = -f - m g`, `p = H(q)`.

    Arguments:

    * `frame`: name of the link or frame that holds the load.
    * `load`: mass of a point (kg), or `Inertia` of a rigid body in axes of the frame.

    Returns the model of robot and load, with the link "load" last, and the constraint "grip". A point load has three
    prismatic joints, so that its coordinates are p, and the multiplier is the document's f: the force on the robot in
    world axes. A rigid load has a free joint, and the multiplier is the moment and force on the robot in axes of the
    load. Accelerations and multipliers are unique. `carried_state` returns states that satisfy the constraint. Raises
    `ModelError` if there is no such frame.

    McClamroch 1986, equations 5 and 29 to 31. The document states the initial conditions (32) for a surface; for a grip
    they are `p = H(q)` and `pdot = J qdot`.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    import jaxdyn.constraints as jc

    arm = jd.robots.pendulum()
    model, grip = jc.gripping_load(arm, arm.link_names[-1], 2.0)  # a load of 2 kg
    q, v = jc.carried_state(model, grip, jnp.array([0.3]), jnp.array([0.1]))
    d = jc.constrained_dynamics(model, grip, q, v, jnp.zeros(model.nv))
    force = d.multiplier("grip")  # N, on the robot, world axes
    ```
    """
    both = merge(model, _load_model(model, load))
    return both, (_grip("grip", load, frame_end(model, frame), Pose.identity(model.dtype)),)


def on_surface(
    model: Model, frame: str, phi: Callable[[Array], Array], base: str | End | tuple = "world"
) -> Constrained:
    """A robot whose `frame` touches a surface without friction: `M a + G = T + J^T D^T pi`, `phi(H(q)) = 0`.

    Arguments: `frame`, name of the link or frame whose origin touches the surface; `phi`, function from p `(3,)`, m, in
    axes of `base` to a scalar; `base`, the link that carries the surface.

    Returns the model and the constraint "surface". Its multiplier is pi, and the force on the robot `pi dphi/dp`. The
    contact is bilateral: where the gradient points out of the wall, a negative pi means that the surface pulls.

    McClamroch 1986, equations 11 and 33 to 35. Equation 33 is corrected to
    `D J M^-1 J^T D^T pi = D {J M^-1 (G - T) - Jdot qdot} - Ddot J qdot`.
    """
    return model, (OnSurface("surface", frame_end(model, frame), phi, base),)


def common_load(
    first: Model,
    second: Model,
    frames: tuple[str, str],
    load: Inertia | ArrayLike,
    *,
    grips: tuple[Pose, Pose] | None = None,
    prefix: str = "second_",
    **placement,
) -> Constrained:
    """Two robots that hold one load: `M_i a_i + G_i = T_i + J_i^T f_i`, `m pddot = -f_1 - f_2 - m g`, `p = H_i(q_i)`.

    Arguments:

    * `frames`: names of the frames of the two robots that hold the load.
    * `load`: as in `gripping_load`.
    * `grips`: poses of these frames in the load, by default the identity.
    * `prefix`: prepended to all names of the second robot.
    * `placement`: pose of the second robot's base, as in `merge`.

    Returns the model of both robots and the load, and the constraints "first_grip" and "second_grip", whose multipliers
    are f_1 and f_2. The coordinates are those of the first robot, the second robot and the load, in this order.

    McClamroch 1986, equations 19 and 36 to 39. The row of the load in (19) lacks the sign of m g, and D_i in (39)
    denotes J_i.
    """
    both = merge(first, second, prefix=prefix, **placement)
    whole = merge(both, _load_model(first, load))
    poses = (Pose.identity(first.dtype),) * 2 if grips is None else grips
    names = (frames[0], prefix + frames[1])
    return whole, tuple(
        _grip(f"{which}_grip", load, frame_end(both, name), pose)
        for which, name, pose in zip(("first", "second"), names, poses, strict=True)
    )


def carried_state(
    model: Model,
    constraints: Sequence[PointClosure | WeldClosure],
    q: Float[Array, " robot_nq"],
    v: Float[Array, " robot_nv"],
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """State of robots and load, `p = H(q)`, `pdot = J v`, from the state of the robots.

    If two robots hold the load, its state follows from the first one; use `assemble` to satisfy both grips.
    """
    grip = constraints[0]
    point = isinstance(grip, PointClosure)
    nq, nv = (model.nq - 3, model.nv - 3) if point else (model.nq - 7, model.nv - 6)
    q, v = check_shape("q", q, (nq,)), check_shape("v", v, (nv,))
    rest = jnp.zeros(3, q.dtype) if point else jnp.array([1.0, 0, 0, 0, 0, 0, 0], q.dtype)
    full_q, full_v = jnp.concatenate([q, rest]), jnp.concatenate([v, jnp.zeros(model.nv - nv, v.dtype)])
    hand = grip.second
    grip_pose = Pose.from_quaternion(hand.rotation, hand.translation)
    if not point:
        grip_pose = grip_pose @ Pose.from_quaternion(grip.first.rotation, grip.first.translation).inverse()
    link = frame_pose(model, full_q, hand.link)
    pose = link @ grip_pose
    aligned = frame_velocity(model, full_q, full_v, hand.link, reference=WORLD_ALIGNED)
    linear = aligned[3:] + jnp.cross(aligned[:3], pose.translation - link.translation)
    if point:
        return jnp.concatenate([q, pose.translation]), jnp.concatenate([v, linear])
    angular = grip_pose.rotation.T @ frame_velocity(model, full_q, full_v, hand.link, reference=LOCAL)[:3]
    own_q = jnp.concatenate([pose.quaternion(), pose.translation])
    return jnp.concatenate([q, own_q]), jnp.concatenate([v, angular, pose.rotation.T @ linear])


def _load_model(model: Model, load: Inertia | ArrayLike) -> Model:
    b = ModelBuilder(model.gravity, strict=False)
    if isinstance(load, Inertia):
        return b.add_link("load", "world", Free(), load).build(model.dtype)
    b.add_link("load_x", "world", Prismatic((1, 0, 0)))
    b.add_link("load_y", "load_x", Prismatic((0, 1, 0)))
    return b.add_link("load", "load_y", Prismatic((0, 0, 1)), point_mass(load)).build(model.dtype)


def _grip(name: str, load: Inertia | ArrayLike, hand: End, pose: Pose) -> AbstractConstraint:
    """The closure of load and hand. The load comes first, so that the multiplier acts on the robot in load axes."""
    end = End("load", pose.translation, pose.quaternion())
    return WeldClosure(name, end, hand) if isinstance(load, Inertia) else PointClosure(name, end, hand)
