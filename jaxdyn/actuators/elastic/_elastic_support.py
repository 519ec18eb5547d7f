"""Elastic supports of robots, and objects on springs."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError, ShapeError, check_shape, describe
from jaxdyn._numerics import as_float, is_concrete, optional_float
from jaxdyn._types import Array, Config, Float, Scalar
from jaxdyn.dynamics import AbstractPart, Action, gravity_forces
from jaxdyn.joints import AbstractJoint, Free
from jaxdyn.model import Model, ModelBuilder, attach, to_builder
from jaxdyn.spatial import Inertia, Pose


class ElasticSupport(AbstractPart):
    """Spring and damper of six axes on a free joint, made by `on_elastic_support`.

    With the displacement `xi = log(T_rest^-1 T)` of the joint, rotation first, the spring stores
    `V = xi^T K xi / 2 - w_0^T xi` and exerts the wrench `-dV/dxi`, in child axes; near the rest pose it is
    `w_0 - K xi`. The damper exerts `-D v`. Without `equilibrium` the preload w_0 is zero and the spring is unloaded at
    rest. With `equilibrium`, a configuration of the whole robot, w_0 carries the weight of the robot there, so that
    the rest pose is the equilibrium.
    """

    #: name of the free joint
    joint: str = eqx.field(static=True)
    #: K, `(6,)` for a diagonal or `(6, 6)`, N m/rad and N/m, in the axes of the rest pose
    stiffness: Float[Array, "..."] = eqx.field(converter=as_float)
    #: D, `(6,)` or `(6, 6)`, N m s/rad and N s/m, in child axes
    damping: Float[Array, "..."] = eqx.field(converter=as_float)
    #: configuration of the free joint at rest
    rest: Float[Array, "*batch 7"] = eqx.field(converter=as_float)
    #: configuration of the robot with whose weight the rest pose is the equilibrium
    equilibrium: Float[Array, "*batch nq"] | None = eqx.field(converter=optional_float, default=None)

    def preload(self, model: Model) -> Float[Array, "6"]:
        """The wrench w_0 of the spring at the rest pose, (moment, force) in child axes."""
        if self.equilibrium is None:
            return jnp.zeros(6, self.rest.dtype)
        view = model.joint(self.joint)
        q = check_shape("equilibrium", self.equilibrium, (model.nq,))
        return gravity_forces(model, q.at[view.q].set(self.rest))[view.v]

    def potential_energy(self, model: Model, q: Config) -> Scalar:
        """Energy stored in the spring, J, zero at the rest pose."""
        xi = Free().difference(self.rest, q[model.joint(self.joint).q])
        return xi @ _apply(self.stiffness, xi) / 2 - self.preload(model) @ xi

    def initial(self, model, q, v):
        return None

    def act(self, model, t, q, v, state):
        view = model.joint(self.joint)
        moved = lambda d: q.at[view.q].set(Free().integrate(q[view.q], d))
        slope = jax.grad(lambda d: self.potential_energy(model, moved(d)))(jnp.zeros(6, q.dtype))
        return Action(jnp.zeros_like(v).at[view.v].set(-slope - _apply(self.damping, v[view.v])))


def _apply(matrix, x):
    return matrix @ x if jnp.ndim(matrix) == 2 else matrix * x


def on_elastic_support(
    model: Model,
    stiffness: ArrayLike,
    *,
    base: Inertia,
    damping: ArrayLike = 0.0,
    rest: Pose | None = None,
    equilibrium: ArrayLike | None = None,
    name: str = "support",
) -> tuple[Model, ElasticSupport]:
    """The robot on a base that is elastically supported, and the part with the springs of the support.

    A base link with the given inertia moves on the springs and dampers of the part; all links that were fixed to the
    world are now fixed to this base. The coordinates of the base come first: `q = [quaternion, position, ...]`.

    Arguments:

    * `model`: the robot
    * `stiffness`: K of the support, `(6,)` or a symmetric `(6, 6)`, rotation first, N m/rad and N/m, about the
      origin of the base in the axes of the rest pose
    * `base`: inertia of the base link, in its axes
    * `damping`: D, a number, `(6,)` or `(6, 6)`
    * `rest`: pose of the base at rest in the world, by default the identity. The robot's former world is the base.
    * `equilibrium`: None if the springs are unloaded at rest, so that the base sags; or a configuration of the robot
      `(nq,)` with which the rest pose is the equilibrium
    * `name`: name of the base link; its joint is `<name>_joint`

    Returns `(model, part)`. Raises `ShapeError` for arrays of another shape and `ModelError` for a stiffness that is
    not symmetric.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import on_elastic_support
    from jaxdyn.spatial import box

    arm = jd.robots.double_pendulum()
    stiffness = jnp.array([1e4, 1e4, 1e4, 5e4, 5e4, 5e4])
    robot, support = on_elastic_support(arm, stiffness, base=box([0.4, 0.4, 0.2], mass=20.0), damping=50.0)
    result = jd.modes(robot, jd.neutral(robot), energies=(support.potential_energy,))
    ```
    """
    dtype, joint = model.dtype, f"{name}_joint"
    pose = Pose.identity(dtype) if rest is None else rest
    at_rest = jnp.concatenate([pose.quaternion(), pose.translation]).astype(dtype)
    numbers = _check_matrix("stiffness", stiffness, dtype), _check_matrix("damping", damping, dtype)
    if equilibrium is not None:
        equilibrium = jnp.concatenate([at_rest, check_shape("equilibrium", jnp.asarray(equilibrium), (model.nq,))])
    builder = ModelBuilder(gravity=model.gravity, name=model.name)
    builder.add_link(name, "world", Free(), base, joint_name=joint)
    return attach(builder.build(dtype), model, name), ElasticSupport(joint, *numbers, at_rest, equilibrium)


def _check_matrix(name: str, x: ArrayLike, dtype):
    """A matrix of the six axes as `(6,)` or `(6, 6)`."""
    x = jnp.asarray(x, dtype)
    if x.shape == () and name == "damping":
        x = jnp.broadcast_to(x, (6,))
    if x.shape not in ((6,), (6, 6)):
        raise ShapeError(f"{name} of an elastic support has shape {x.shape}, expected (6,) or (6, 6), rotation first")
    if x.ndim == 2 and is_concrete(x) and not np.allclose(x, x.T, rtol=1e-6, atol=1e-6 * np.abs(x).max()):
        raise ModelError(f"{name} of an elastic support is not symmetric; give (K + K^T) / 2 of a reciprocal support")
    return x


def add_elastic_object(
    model: Model,
    name: str,
    inertia: Inertia,
    joints: Sequence[AbstractJoint],
    *,
    stiffness: ArrayLike | Sequence[float],
    damping: ArrayLike | Sequence[float] = 0.0,
    parent: str = "world",
    translation: ArrayLike | Sequence[float] = (0.0, 0.0, 0.0),
    quaternion: ArrayLike | Sequence[float] = (1.0, 0.0, 0.0, 0.0),
) -> Model:
    """The model with an object on springs, for instance a workpiece on a compliant fixture.

    The object is connected to `parent` by the given joints in series, each with a damper and a spring towards its zero
    position. Constraints and contacts treat the object as any other link.

    Arguments:

    * `model`: the robot
    * `name`, `inertia`: of the link of the object
    * `joints`: joints with one coordinate from the parent to the object, such as `Prismatic([0, 0, 1])`. Joint k is
      called `<name>_joint<k>`, counted from 1, and `<name>_joint` if it is the only one.
    * `stiffness`, `damping`: one number for each joint, or one for all, N/m and N s/m or N m/rad and N m s/rad
    * `parent`: a link, or "world"
    * `translation`, `quaternion`: pose of the object at rest in the parent

    The springs are `properties.stiffness` of the joints, so that no part is needed.

    ```python
    import jaxdyn as jd
    from jaxdyn.actuators import add_elastic_object
    from jaxdyn.joints import Prismatic
    from jaxdyn.spatial import box

    plate, axes = box([0.4, 0.4, 0.02], mass=4.0), [Prismatic([0, 0, 1])]
    model = add_elastic_object(jd.robots.pendulum(), "plate", plate, axes, stiffness=2e4, damping=30.0)
    ```
    """
    joints = tuple(joints)
    if not joints or any(not isinstance(j, AbstractJoint) or (j.nq, j.nv) != (1, 1) for j in joints):
        given = ", ".join(describe(j) for j in joints) or "none"
        raise ModelError(
            f"add_elastic_object: the joints of {name!r} are {given}; expected one or more joints with one coordinate, "
            "such as Prismatic or Revolute: give one joint for each sprung axis"
        )
    expand = lambda what, x: _one_per_joint(f"{what} of {name!r}", x, len(joints))
    stiffness, damping = expand("stiffness", stiffness), expand("damping", damping)
    builder = to_builder(model)
    for k, joint in enumerate(joints, 1):
        is_last = k == len(joints)
        builder.add_link(
            name if is_last else f"{name}_carrier{k}",
            parent if k == 1 else f"{name}_carrier{k - 1}",
            joint,
            inertia if is_last else None,
            joint_name=f"{name}_joint{k}" if len(joints) > 1 else f"{name}_joint",
            translation=translation if k == 1 else (0.0, 0.0, 0.0),
            quaternion=quaternion if k == 1 else (1.0, 0.0, 0.0, 0.0),
            stiffness=stiffness[k - 1],
            damping=damping[k - 1],
        )
    return builder.build(model.dtype)


def _one_per_joint(name: str, x: ArrayLike | Sequence[float], count: int):
    x = jnp.asarray(x, float)
    if x.shape not in ((), (count,)):
        raise ShapeError(f"{name} has shape {x.shape}, expected a number or ({count},), one for each joint")
    return jnp.broadcast_to(x, (count,))
