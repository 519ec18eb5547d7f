"""`Model`: a robot as a pytree."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.joints import AbstractJoint, Fixed
from jaxdyn.model.structure._descriptions import Actuator, Closure, Coupling, Info, Note, Shape
from jaxdyn.recursion import Topology


class Links(eqx.Module):
    """Inertial parameters, one row per link."""

    #: kg
    mass: Float[Array, "*batch links"]
    #: centre of mass in the link frame, m
    com: Float[Array, "*batch links 3"]
    #: rotational inertia about the centre of mass, in link axes, kg m^2
    inertia: Float[Array, "*batch links 3 3"]


class Placements(eqx.Module):
    """Poses of frames in their parent links, one row per frame."""

    #: quaternion, scalar first, of any length but zero
    rotation: Float[Array, "*batch frames 4"]
    #: m
    translation: Float[Array, "*batch frames 3"]


class JointProperties(eqx.Module):
    """Rotors, friction and springs of the joints, one entry per velocity coordinate (see `passive_forces`)."""

    #: rotor inertia reflected to the joint, kg m^2 or kg; part of the mass matrix
    armature: Float[Array, "*batch nv"]
    #: viscous friction, N m s/rad or N s/m
    damping: Float[Array, "*batch nv"]
    #: Coulomb friction, N m or N
    friction: Float[Array, "*batch nv"]
    #: velocity over which the Coulomb friction changes sign, rad/s or m/s
    friction_velocity: Float[Array, "*batch nv"]
    #: spring towards `rest`, N m/rad or N/m
    stiffness: Float[Array, "*batch nv"]
    #: configuration in which the springs are at rest
    rest: Float[Array, "*batch nq"]


class Limits(eqx.Module):
    """Limits of the coordinates, infinite if there is none."""

    #: rad or m
    lower: Float[Array, "*batch nq"]
    #: rad or m
    upper: Float[Array, "*batch nq"]
    #: largest speed, rad/s or m/s
    velocity: Float[Array, "*batch nv"]
    #: largest effort, N m or N
    effort: Float[Array, "*batch nv"]


class Mimic(eqx.Module):
    """Mimic joints, `q = ratio * q_source + offset`, one entry per mimic joint."""

    ratio: Float[Array, "*batch mimics"]
    offset: Float[Array, "*batch mimics"]


class JointView(NamedTuple):
    """A joint by name: its type and its coordinates, `q[view.q]` and `v[view.v]`."""

    name: str
    index: int
    joint: AbstractJoint
    q: slice
    v: slice


class LinkView(NamedTuple):
    """A link by name: its parent and its inertial parameters (kg, m, kg m^2)."""

    name: str
    index: int
    parent: str
    mass: Float[Array, ""]
    com: Float[Array, "3"]
    inertia: Float[Array, "3 3"]


class Model(eqx.Module):
    """A robot as a pytree: static structure in `topology`, and a leaf for every physical number.

    Build a model with `ModelBuilder`, from a file (`load_urdf`, `load_mjcf`), from a textbook description
    (`from_denavit_hartenberg`, `from_screws`) or from `jaxdyn.robots`. Joint i connects link i to its parent, link
    `topology.parents[i]`; row i of `placements` is the pose of its joint frame there. `joints` has one stacked joint
    per type. Derived quantities are never stored, so a leaf may be replaced (`equinox.tree_at`), batched (`jax.vmap`)
    or differentiated, and every result follows.

    Leaves, SI units:

    * `links`: `mass` `(links,)`, `com` `(links, 3)`, `inertia` `(links, 3, 3)`.
    * `placements`: `rotation` `(links, 4)` (quaternions, scalar first), `translation` `(links, 3)`.
    * `properties`: `armature`, `damping`, `friction`, `friction_velocity`, `stiffness` `(nv,)`, `rest` `(nq,)`.
    * `limits`: `lower`, `upper` `(nq,)`, `velocity`, `effort` `(nv,)`.
    * `mimic`: `ratio`, `offset`; `frames`: poses of named frames; `gravity` `(3,)`.

    Example:

    ```python
    import equinox as eqx
    import jax.numpy as jnp
    from jaxdyn import Model, gravity_forces, robots

    model: Model = robots.double_pendulum()
    q = jnp.array([0.3, 0.1])
    heavier = eqx.tree_at(lambda m: m.links.mass, model, 2 * model.links.mass)
    assert jnp.allclose(gravity_forces(heavier, q), 2 * gravity_forces(model, q))
    ```
    """

    links: Links
    placements: Placements
    joints: tuple[AbstractJoint, ...]
    properties: JointProperties
    limits: Limits
    mimic: Mimic
    frames: Placements
    #: acceleration of free fall in world axes, m/s^2
    gravity: Float[Array, "*batch 3"]
    topology: Topology = eqx.field(static=True)
    closures: tuple[Closure | Coupling, ...] = ()
    actuators: tuple[Actuator, ...] = ()
    info: Info = eqx.field(static=True, default=Info())

    @property
    def nq(self) -> int:
        """Number of configuration coordinates."""
        return self.topology.nq

    @property
    def nv(self) -> int:
        """Number of velocity coordinates: degrees of freedom of the tree."""
        return self.topology.nv

    @property
    def num_links(self) -> int:
        """Number of links."""
        return len(self.topology.link_names)

    @property
    def link_names(self) -> tuple[str, ...]:
        """Names of the links, in depth-first order."""
        return self.topology.link_names

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints; joint i connects link i to its parent."""
        return self.topology.joint_names

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Names of the frames that are not links."""
        return self.topology.frame_names

    @property
    def name(self) -> str:
        """Name of the robot, empty if it has none."""
        return self.info.name

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Solids for visualisation."""
        return self.info.shapes

    @property
    def report(self) -> tuple[Note, ...]:
        """Notes on assumptions, changes and omissions made when the model was read or edited."""
        return self.info.notes

    def joint(self, name: str) -> JointView:
        """The joint called `name`: its type with its parameters, and its slices of q and v."""
        index = self._find(name, self.joint_names, "joint")
        q, v = self.topology.joint_slices(index)
        group = self.topology.groups[index]
        if group < 0:
            return JointView(name, index, Fixed(), q, v)
        member = self.topology.groups[:index].count(group)
        return JointView(name, index, jax.tree.map(lambda x: x[member], self.joints[group]), q, v)

    def link(self, name: str) -> LinkView:
        """The parent and the inertial parameters of the link called `name`."""
        i = self.link_index(name)
        parent = self.topology.parents[i]
        return LinkView(
            name,
            i,
            self.link_names[parent] if parent >= 0 else "world",
            self.links.mass[i],
            self.links.com[i],
            self.links.inertia[i],
        )

    def link_index(self, name: str) -> int:
        """Row of a link in `links`, and of its joint in `placements`."""
        return self._find(name, self.link_names, "link")

    def frame_index(self, name: str) -> int:
        """Row of a named frame in `frames`."""
        return self._find(name, self.frame_names, "frame")

    def _find(self, name: str, names: tuple[str, ...], what: str) -> int:
        try:
            return names.index(name)
        except ValueError:
            raise ModelError(f"no {what} is called {name!r}; this model has {_list_names(names)}") from None

    @property
    def dtype(self) -> Any:
        """Precision of the leaves."""
        return jnp.result_type(self.links.mass)

    def astype(self, dtype) -> "Model":
        """Returns the model in another precision."""
        return jax.tree.map(lambda x: x.astype(dtype), self)


def _list_names(names: tuple[str, ...]) -> str:
    shown = ", ".join(repr(n) for n in names[:12])
    return f"{shown} and {len(names) - 12} more" if len(names) > 12 else (shown or "none")
