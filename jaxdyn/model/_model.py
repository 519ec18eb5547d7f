"""The robot as a pytree."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.joints import AbstractJoint, Fixed
from jaxdyn.model._descriptions import Actuator, Closure, Coupling, Info, Note, Shape
from jaxdyn.model._topology import Topology


class Links(eqx.Module):
    """Inertial parameters, one row a link."""

    #: kg
    mass: Float[Array, "*batch links"]
    #: centre of mass in the link frame, m
    com: Float[Array, "*batch links 3"]
    #: rotational inertia about the centre of mass, in link axes, kg m^2
    inertia: Float[Array, "*batch links 3 3"]


class Placements(eqx.Module):
    """Poses of frames in their parent links, one row a frame."""

    #: quaternion, scalar first, of any length but zero
    rotation: Float[Array, "*batch frames 4"]
    #: m
    translation: Float[Array, "*batch frames 3"]


class JointProperties(eqx.Module):
    """What joints add by themselves, one entry a velocity coordinate (`passive_forces`)."""

    #: rotor inertia seen at the joint, kg m^2 or kg; part of the mass matrix
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
    """Ranges, infinite where there is none."""

    lower: Float[Array, "*batch nq"]
    upper: Float[Array, "*batch nq"]
    velocity: Float[Array, "*batch nv"]
    effort: Float[Array, "*batch nv"]


class Mimic(eqx.Module):
    """Geared coordinates, `q = ratio * q_source + offset`, one entry a mimicking joint."""

    ratio: Float[Array, "*batch mimics"]
    offset: Float[Array, "*batch mimics"]


class JointView(NamedTuple):
    """Where a joint's coordinates are: `q[view.q]`, `v[view.v]`."""

    name: str
    index: int
    joint: AbstractJoint
    q: slice
    v: slice


class LinkView(NamedTuple):
    """One link's numbers."""

    name: str
    index: int
    parent: str
    mass: Float[Array, ""]
    com: Float[Array, "3"]
    inertia: Float[Array, "3 3"]


class Model(eqx.Module):
    """A robot: structure in `topology`, and a leaf for every physical number.

    Joint i carries link i and hangs on link `topology.parents[i]`; its frame is placed there by row i of
    `placements`. `joints` holds one stacked joint a type. Nothing derived is stored: all functions
    compute what they need from the leaves, so a leaf can be replaced (`equinox.tree_at`), batched
    (`jax.vmap`) or differentiated, and every result follows.
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
        """Number of velocity coordinates: degrees of freedom."""
        return self.topology.nv

    @property
    def num_links(self) -> int:
        """Number of links."""
        return len(self.topology.link_names)

    @property
    def link_names(self) -> tuple[str, ...]:
        """Names of the links, depth first."""
        return self.topology.link_names

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints, each in the place of the link that it carries."""
        return self.topology.joint_names

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Names of the extra frames."""
        return self.topology.frame_names

    @property
    def name(self) -> str:
        """Name of the robot, empty if it was given none."""
        return self.info.name

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Solids to look at."""
        return self.info.shapes

    @property
    def report(self) -> tuple[Note, ...]:
        """What was assumed, changed or left out when the model was read from a description."""
        return self.info.notes

    def joint(self, name: str) -> JointView:
        """The joint called `name`: its type with its own parameters, and its slices of q and v."""
        index = self._find(name, self.joint_names, "joint")
        q, v = self.topology.joint_slices(index)
        group = self.topology.groups[index]
        if group < 0:
            return JointView(name, index, Fixed(), q, v)
        member = self.topology.groups[:index].count(group)
        return JointView(name, index, jax.tree.map(lambda x: x[member], self.joints[group]), q, v)

    def link(self, name: str) -> LinkView:
        """The numbers of the link called `name`."""
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
            raise ModelError(f"no {what} is called {name!r}; this model has {_listing(names)}") from None

    @property
    def dtype(self) -> Any:
        """Precision of the model's numbers."""
        return jnp.result_type(self.links.mass)

    def astype(self, dtype) -> "Model":
        """The model in another precision."""
        return jax.tree.map(lambda x: x.astype(dtype), self)


def _listing(names: tuple[str, ...]) -> str:
    shown = ", ".join(repr(n) for n in names[:12])
    return f"{shown} and {len(names) - 12} more" if len(names) > 12 else (shown or "none")
