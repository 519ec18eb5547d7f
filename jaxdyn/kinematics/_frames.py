"""Motion of one frame: pose, velocity, acceleration, Jacobian and its rate."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError, check_shape
from jaxdyn._numerics import kernel
from jaxdyn._types import Array, Config, Float, Vec6, Velocity
from jaxdyn.kinematics._configuration import integrate
from jaxdyn.kinematics._forward import body_poses, placed_links
from jaxdyn.kinematics._reference import LOCAL, AbstractReference
from jaxdyn.kinematics._state import body_states
from jaxdyn.model import Model, Topology
from jaxdyn.model import _recursion as rc
from jaxdyn.model._bodies import Bodies, bodies, to_dofs
from jaxdyn.model._mimic import full_configuration, own_columns
from jaxdyn.spatial import Pose

Jacobian = Float[Array, "6 nv"]


class Place(NamedTuple):
    """A frame as a pose in one of the moving bodies, or in the world (body -1)."""

    body: int
    pose: Pose


def locate(model: Model, name: str) -> Place:
    """Where a link or frame called `name` is attached."""
    t = model.topology
    here = Pose.identity(model.dtype)
    if name in model.link_names:
        link = model.link_index(name)
    elif name in model.frame_names:
        row = model.frame_index(name)
        link = t.frame_links[row]
        here = Pose.from_quaternion(model.frames.rotation[row], model.frames.translation[row])
    else:
        raise ModelError(
            f"no link or frame is called {name!r}; links are {', '.join(model.link_names) or 'none'}; "
            f"frames are {', '.join(model.frame_names) or 'none'}"
        )
    if t.groups[link] < 0:
        rotation, translation = placed_links(model)
        here = Pose(rotation[link], translation[link]) @ here
    return Place(t.body_of_link[link], here)


@kernel
def _express(reference: AbstractReference, rotation, translation, motion):
    w, v = reference.express(rotation, translation, (tuple(motion[:3]), tuple(motion[3:])))
    return jnp.stack(jnp.broadcast_arrays(*w, *v))


@kernel
def _jacobian(static: tuple[Topology, int, AbstractReference], b: Bodies, frame_r, frame_p, q):
    """Pose of a frame, and `J_k = X S_k` for all joints that carry it, 0 for others: `(6, full_nv)`."""
    t, body, reference = static
    lanes = rc.lanes_of(q, b.rotation, b.translation, frame_r, frame_p)
    r, p, (sw, sv) = rc.poses(t, b, q, lanes, travelling=False)
    rd, pd = tuple(tuple(to_dofs(t, x) for x in row) for row in r), tuple(to_dofs(t, x) for x in p)
    columns = rc.to_world(rd, pd, (sw, sv) if rc.translates(t) else (sw, None))
    pick = lambda x: x[body]
    own = tuple(tuple(frame_r[i, j] for j in range(3)) for i in range(3)), tuple(frame_p[i] for i in range(3))
    pose = rc.chain((tuple(tuple(map(pick, row)) for row in r), tuple(map(pick, p))), own)
    w, v = reference.express(*pose, columns)
    moves = np.array(t.body_ancestors[t.dof_body, body])[:, None]
    matrix = jnp.stack([jnp.where(moves, x, 0) for x in (*w, *v)])
    return jnp.stack([jnp.stack(row) for row in pose[0]]), jnp.stack(pose[1]), matrix


def frame_evaluator(model: Model, name: str, reference: AbstractReference) -> Callable[[Any], tuple[Pose, Any]]:
    """A function of q that gives pose and Jacobian of a frame, what does not depend on q done beforehand."""
    place = locate(model, name)
    if place.body < 0:
        return lambda q: (place.pose, jnp.zeros((6, model.nv), jnp.result_type(q, model.dtype)))
    static, b = (model.topology, place.body, reference), bodies(model)

    def evaluate(q):
        full = full_configuration(model, q)
        r, p, j = _jacobian(static, b, place.pose.rotation, place.pose.translation, full)
        return Pose(r, p), own_columns(model, j)

    return evaluate


def _at(rotation, translation, place: Place) -> Pose:
    return Pose(rotation[place.body], translation[place.body]) @ place.pose


def frame_pose(model: Model, q: Config, name: str) -> Pose:
    """Pose of the link or frame called `name` in the world, `T_0f = T_0b T_bf`; translation in m."""
    q = check_shape("q", q, (model.nq,))
    place = locate(model, name)
    if place.body < 0:
        return place.pose
    rotation, translation = body_poses(model, q)
    return _at(rotation, translation, place)


def frame_velocity(model: Model, q: Config, v: Velocity, name: str, *, reference: AbstractReference = LOCAL) -> Vec6:
    """Spatial velocity of the link or frame called `name`, `J v`: angular (rad/s), then linear (m/s).

    `reference` is `LOCAL` (frame's axes and origin), `WORLD` (world's axes and origin) or `WORLD_ALIGNED`
    (world's axes, frame's origin). Featherstone 2008, section 2.2.
    """
    q, v = check_shape("q", q, (model.nq,)), check_shape("v", v, (model.nv,))
    place = locate(model, name)
    if place.body < 0:
        return jnp.zeros(6, jnp.result_type(v, model.dtype))
    s = body_states(model, q, v)
    pose = _at(s.rotation, s.translation, place)
    return _express(reference, pose.rotation, pose.translation, s.velocity[place.body])


def frame_acceleration(
    model: Model, q: Config, v: Velocity, a: Velocity, name: str, *, reference: AbstractReference = LOCAL
) -> Vec6:
    """Spatial acceleration of the link or frame called `name`, gravity not included.

    The rate of the spatial velocity about a point fixed in space, `J a + (dJ/dt)_world v` given in
    `reference`: angular (rad/s^2), then linear (m/s^2), which is *not* the acceleration of the frame's
    origin (that is `frame_classical_acceleration`). Featherstone 2008, section 2.11.
    """
    return _accelerations(model, q, v, a, name, reference)[1]


def frame_classical_acceleration(
    model: Model, q: Config, v: Velocity, a: Velocity, name: str, *, reference: AbstractReference = LOCAL
) -> Vec6:
    """Angular acceleration of a frame, and the acceleration of the material point at its origin.

    `(wdot, vdot_spatial + w x v)`, in the axes of `reference`; with `WORLD` the point is the one that
    passes through the world's origin. Gravity is not included: an accelerometer reads this minus gravity.
    rad/s^2 and m/s^2. Featherstone 2008, equation 2.48.
    """
    velocity, acceleration = _accelerations(model, q, v, a, name, reference)
    return acceleration.at[3:].add(jnp.cross(velocity[:3], velocity[3:]))


def _accelerations(model: Model, q, v, a, name: str, reference: AbstractReference):
    q = check_shape("q", q, (model.nq,))
    v, a = check_shape("v", v, (model.nv,)), check_shape("a", a, (model.nv,))
    place = locate(model, name)
    if place.body < 0:
        zero = jnp.zeros(6, jnp.result_type(v, a, model.dtype))
        return zero, zero
    s = body_states(model, q, v, a)
    pose = _at(s.rotation, s.translation, place)
    given = lambda x: _express(reference, pose.rotation, pose.translation, x[place.body])
    return given(s.velocity), given(s.acceleration)


def jacobian(model: Model, q: Config, name: str, *, reference: AbstractReference = LOCAL) -> Jacobian:
    """Jacobian J of the link or frame called `name`: `J v` is its spatial velocity in `reference`.

    `(6, nv)`, angular rows first; the column of a joint is its motion subspace carried to the frame, or
    zero if the joint does not carry the frame. Lynch and Park 2017, section 5.1.
    """
    q = check_shape("q", q, (model.nq,))
    return frame_evaluator(model, name, reference)(q)[1]


def jacobian_derivative(
    model: Model, q: Config, v: Velocity, name: str, *, reference: AbstractReference = LOCAL
) -> Jacobian:
    """Rate of the Jacobian of a frame along v, `dJ/dt = (dJ/dq) qdot`, `(6, nv)`.

    `J a + dJ/dt v` is the rate of what `frame_velocity` returns. In `LOCAL` and `WORLD` that is the
    spatial acceleration too; in `WORLD_ALIGNED` it is the classical one.
    """
    q, v = check_shape("q", q, (model.nq,)), check_shape("v", v, (model.nv,))
    along = lambda dv: jacobian(model, integrate(model, q, dv), name, reference=reference)
    return jax.jvp(along, (jnp.zeros_like(v),), (v,))[1]
