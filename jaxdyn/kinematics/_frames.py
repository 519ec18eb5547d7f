"""Pose, velocity, acceleration and Jacobian of one frame."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._numerics import kernel
from jaxdyn._types import Array, Config, Float, Vec6, Velocity
from jaxdyn.kinematics._configuration import integrate
from jaxdyn.kinematics._reference import LOCAL, AbstractReference, check_reference
from jaxdyn.model import FramePlacement, Model, Topology, place_frame
from jaxdyn.recursion import (
    Bodies,
    TreeState,
    bodies,
    body_poses,
    body_states,
    check_state,
    compose_poses,
    full_configuration,
    reduce_columns,
)
from jaxdyn.spatial import Pose

Jacobian = Float[Array, "6 nv"]


@kernel
def _express(reference: AbstractReference, rotation, translation, motion):
    w, v = reference.express(rotation, translation, (tuple(motion[:3]), tuple(motion[3:])))
    return jnp.stack(jnp.broadcast_arrays(*w, *v))


@kernel
def _jacobian(static: tuple[Topology, int, AbstractReference], b: Bodies, frame_r, frame_p, q):
    """Pose of a frame, and its Jacobian `J_k = X S_k`, 0 for joints that do not carry it: `(6, full_nv)`."""
    t, body, reference = static
    tree = TreeState(t, b, q, None, None, frame_r, frame_p, travelling=False)
    r, p = tree.poses()
    columns = tree.world_subspace(r, p)
    of_body = lambda x: x[body]
    offset = tuple(tuple(frame_r[i, j] for j in range(3)) for i in range(3)), tuple(frame_p[i] for i in range(3))
    pose = compose_poses((tuple(tuple(map(of_body, row)) for row in r), tuple(map(of_body, p))), offset)
    w, v = reference.express(*pose, columns)
    moves = np.array(t.body_ancestors[t.dof_body, body])[:, None]
    matrix = jnp.stack([jnp.where(moves, x, 0) for x in (*w, *v)])
    return jnp.stack([jnp.stack(row) for row in pose[0]]), jnp.stack(pose[1]), matrix


def frame_evaluator(model: Model, name: str, reference: AbstractReference) -> Callable[[Config], tuple[Pose, Jacobian]]:
    """A function of q that returns pose and Jacobian of a frame; terms that do not depend on q are computed once."""
    check_reference(reference)
    place = place_frame(model, name)
    if place.body < 0:
        return lambda q: (place.pose, jnp.zeros((6, model.nv), jnp.result_type(q, model.dtype)))
    static, b = (model.topology, place.body, reference), bodies(model)

    def evaluate(q):
        full = full_configuration(model, q)
        r, p, j = _jacobian(static, b, place.pose.rotation, place.pose.translation, full)
        return Pose(r, p), reduce_columns(model, j)

    return evaluate


def _place_on_body(rotation, translation, place: FramePlacement) -> Pose:
    return Pose(rotation[place.body], translation[place.body]) @ place.pose


def frame_pose(model: Model, q: Config, name: str) -> Pose:
    """Pose of the link or frame called `name` in the world, `T_0f = T_0b T_bf`.

    Arguments:

    * `model`: the robot
    * `q`: configuration, `(nq,)`
    * `name`: a link or a frame; an unknown name raises `ModelError`

    Returns a `Pose` with `rotation` `(3, 3)` and `translation` `(3,)` in m.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd

    model = jd.robots.double_pendulum()
    pose = jd.frame_pose(model, jnp.array([0.1, 0.2]), model.link_names[-1])
    ```
    """
    (q,) = check_state(model, q=q)
    place = place_frame(model, name)
    if place.body < 0:
        return place.pose
    rotation, translation = body_poses(model, q)
    return _place_on_body(rotation, translation, place)


def frame_velocity(model: Model, q: Config, v: Velocity, name: str, *, reference: AbstractReference = LOCAL) -> Vec6:
    """Spatial velocity of the link or frame called `name`, `J v`: angular (rad/s), then linear (m/s).

    `reference` is `LOCAL` (axes and origin of the frame), `WORLD` (axes and origin of the world) or `WORLD_ALIGNED`
    (axes of the world, origin of the frame). Featherstone 2008, section 2.2.
    """
    q, v = check_state(model, q=q, v=v)
    check_reference(reference)
    place = place_frame(model, name)
    if place.body < 0:
        return jnp.zeros(6, jnp.result_type(v, model.dtype))
    s = body_states(model, q, v)
    pose = _place_on_body(s.rotation, s.translation, place)
    return _express(reference, pose.rotation, pose.translation, s.velocity[place.body])


def frame_acceleration(
    model: Model, q: Config, v: Velocity, a: Velocity, name: str, *, reference: AbstractReference = LOCAL
) -> Vec6:
    """Spatial acceleration of the link or frame called `name`, without gravity.

    This is the rate of the spatial velocity about a point fixed in space, `J a + (dJ/dt)_world v`, expressed in
    `reference`: angular (rad/s^2), then linear (m/s^2). The linear half is *not* the acceleration of the frame's
    origin, which is `frame_classical_acceleration`. Featherstone 2008, section 2.11.
    """
    return _accelerations(model, q, v, a, name, reference)[1]


def frame_classical_acceleration(
    model: Model, q: Config, v: Velocity, a: Velocity, name: str, *, reference: AbstractReference = LOCAL
) -> Vec6:
    """Angular acceleration of a frame, and the acceleration of the material point at its origin.

    `(wdot, vdot_spatial + w x v)`, in the axes of `reference`, in rad/s^2 and m/s^2; with `WORLD` the material point is
    the one at the world's origin. Gravity is not included: an accelerometer reads this acceleration minus gravity.
    Featherstone 2008, equation 2.48.
    """
    velocity, acceleration = _accelerations(model, q, v, a, name, reference)
    return acceleration.at[3:].add(jnp.cross(velocity[:3], velocity[3:]))


def _accelerations(model: Model, q, v, a, name: str, reference: AbstractReference):
    q, v, a = check_state(model, q=q, v=v, a=a)
    check_reference(reference)
    place = place_frame(model, name)
    if place.body < 0:
        zero = jnp.zeros(6, jnp.result_type(v, a, model.dtype))
        return zero, zero
    s = body_states(model, q, v, a)
    pose = _place_on_body(s.rotation, s.translation, place)
    express = lambda x: _express(reference, pose.rotation, pose.translation, x[place.body])
    return express(s.velocity), express(s.acceleration)


def jacobian(model: Model, q: Config, name: str, *, reference: AbstractReference = LOCAL) -> Jacobian:
    """Jacobian J of the link or frame called `name`: `J v` is its spatial velocity.

    Column k is the motion subspace of coordinate k expressed at the frame, or zero if that joint does not carry the
    frame (Lynch and Park 2017, section 5.1).

    Arguments:

    * `model`: the robot
    * `q`: configuration, `(nq,)`
    * `name`: a link or a frame; an unknown name raises `ModelError`
    * `reference`: `LOCAL`, `WORLD` or `WORLD_ALIGNED`, axes and origin of the velocity as for `frame_velocity`

    Returns J, `(6, nv)`, angular rows first.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd

    model = jd.robots.double_pendulum()
    J = jd.jacobian(model, jnp.array([0.1, 0.2]), model.link_names[-1], reference=jd.WORLD_ALIGNED)
    ```
    """
    (q,) = check_state(model, q=q)
    return frame_evaluator(model, name, reference)(q)[1]


def jacobian_derivative(
    model: Model, q: Config, v: Velocity, name: str, *, reference: AbstractReference = LOCAL
) -> Jacobian:
    """Rate of the Jacobian of a frame along v, `dJ/dt = (dJ/dq) qdot`, `(6, nv)`.

    `J a + dJ/dt v` is the rate of the components that `frame_velocity` returns. In `LOCAL` and `WORLD` it equals the
    spatial acceleration, in `WORLD_ALIGNED` the classical one.
    """
    q, v = check_state(model, q=q, v=v)
    perturbed = lambda dv: jacobian(model, integrate(model, q, dv), name, reference=reference)
    return jax.jvp(perturbed, (jnp.zeros_like(v),), (v,))[1]
