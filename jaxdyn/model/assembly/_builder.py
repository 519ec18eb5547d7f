"""Assembly of a model by name."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn._numerics import namespace
from jaxdyn.joints import AbstractJoint, Fixed
from jaxdyn.model.assembly._arguments import BOUND, FINITE, NON_NEGATIVE, check_numbers, check_placement
from jaxdyn.model.assembly._arrays import cast, float_array, stack_rows
from jaxdyn.model.assembly._checks import (
    check_descriptions,
    check_frames,
    check_link,
    inertia_notes,
    massless_joint_notes,
)
from jaxdyn.model.assembly._entries import LinkEntry, MasslessInertia
from jaxdyn.model.assembly._joint_properties import DEFAULTS, joint_property, rest_configuration
from jaxdyn.model.assembly._numbering import group_joints, make_topology, mimic_pairs, order_depth_first
from jaxdyn.model.assembly._placement import as_pose_pair, placement
from jaxdyn.model.structure import (
    Actuator,
    Closure,
    Coupling,
    Info,
    JointProperties,
    Limits,
    Links,
    Mimic,
    Model,
    Note,
    Placements,
    Shape,
)
from jaxdyn.spatial import Inertia

CLOSURE_KINDS = ("point", "weld", "revolute", "cylindrical", "prismatic", "planar", "distance")
_PROPERTIES = ("armature", "damping", "friction", "friction_velocity", "stiffness")


@dataclass
class ModelBuilder:
    """Builds a `Model` link by link: `add_link` and the other `add_*` methods, then `build()`.

    Arguments:

    * `gravity`: acceleration of free fall in world axes, `(3,)`, m/s^2.
    * `name`: name of the robot.
    * `strict`: refuse inertias that no rigid body has, negative armatures, friction and efforts, and crossed limits.
    * `allow_unphysical_inertia`: keep inertias that no rigid body has, as some publications give, each with a note in
      `Model.report`.

    Every `add_*` method returns the builder. Any number may be a traced value: a model that is built inside a
    differentiated function carries the derivative with respect to, say, the length from which its inertia is computed.
    Example:

    ```python
    import jax
    import jax.numpy as jnp
    from jaxdyn import ModelBuilder, mass_matrix
    from jaxdyn.joints import Revolute
    from jaxdyn.spatial import cylinder, rod

    def build(length):
        b = ModelBuilder(name="leg")
        b.add_link("upper", "world", Revolute([0, 1, 0]), cylinder(0.05, length, density=2700.0))
        b.add_link("lower", "upper", Revolute([0, 1, 0]), rod(0.4, mass=1.0), translation=[0, 0, -length])
        return b.build()

    inertia = lambda length: mass_matrix(build(length), jnp.zeros(2))[0, 0]
    slope = jax.grad(inertia)(0.5)
    ```
    """

    gravity: ArrayLike | Sequence[Any] = (0.0, 0.0, -9.81)
    name: str = ""
    strict: bool = True
    allow_unphysical_inertia: bool = False
    _links: list[LinkEntry] = field(default_factory=list, init=False)
    _frames: list[tuple[str, str, Any, Any]] = field(default_factory=list, init=False)
    _mimics: list[tuple[str, str, Any, Any]] = field(default_factory=list, init=False)
    _closures: list[Closure | Coupling] = field(default_factory=list, init=False)
    _actuators: list[Actuator] = field(default_factory=list, init=False)
    _shapes: list[Shape] = field(default_factory=list, init=False)
    _notes: list[Note] = field(default_factory=list, init=False)

    def add_link(
        self,
        name: str,
        parent: str = "world",
        joint: AbstractJoint | None = None,
        inertia: Inertia | None = None,
        *,
        joint_name: str | None = None,
        translation=(0.0, 0.0, 0.0),
        rotation=None,
        quaternion=None,
        rpy=None,
        **properties,
    ) -> "ModelBuilder":
        """Adds a link, connected to `parent` by `joint`.

        Arguments:

        * `name`: name of the link.
        * `parent`: name of a link, added before or after this one, or "world".
        * `joint`: a joint of `jaxdyn.joints`; None connects the link rigidly.
        * `inertia`: `jaxdyn.spatial.Inertia` in the link frame; None for a massless link.
        * `joint_name`: name of the joint, `<name>_joint` by default.
        * `translation`: origin of the joint frame in the parent link, `(3,)`, m.
        * `rotation` `(3, 3)`, `quaternion` `(4,)` (scalar first) or `rpy` `(3,)` (rad, as in URDF): axes of the joint
          frame in the parent link; give at most one.
        * `properties` of the joint, each a number or an array with one number per coordinate: `armature` (rotor
          inertia, kg m^2 or kg), `damping` (N m s/rad or N s/m), `friction` (Coulomb, N m or N), `friction_velocity`
          (rad/s or m/s), `stiffness` (N m/rad or N/m), `rest`, `lower`, `upper` (rad or m), `velocity` (rad/s or m/s),
          `effort` (N m or N). By default no friction, springs or limits.

        Returns the builder. Raises `ModelError`, which names the link or joint and the argument, for an unknown
        property, an argument of a wrong shape or kind, and concrete numbers that are out of range. Example:

        ```python
        from jaxdyn import ModelBuilder
        from jaxdyn.joints import Prismatic, Revolute
        from jaxdyn.spatial import box, rod

        b = ModelBuilder()
        b.add_link("cart", "world", Prismatic([1, 0, 0]), box([0.3, 0.2, 0.1], mass=2.0), lower=-1.0, upper=1.0)
        b.add_link("pole", "cart", Revolute([0, 1, 0]), rod(0.5, mass=0.3), translation=[0, 0, 0.05], damping=0.01)
        model = b.build()
        assert model.joint_names == ("cart_joint", "pole_joint")
        ```
        """
        unknown = set(properties) - set(DEFAULTS) - {"rest"}
        if unknown:
            raise ModelError(
                f"link {name!r}: unknown joint property {sorted(unknown)}; "
                f"expected some of {sorted([*DEFAULTS, 'rest'])}"
            )
        joint = Fixed() if joint is None else joint
        joint_name = f"{name}_joint" if joint_name is None else joint_name
        check_placement(
            f"joint {joint_name!r}", translation=translation, rotation=rotation, quaternion=quaternion, rpy=rpy
        )
        quat, at = placement(translation, rotation=rotation, quaternion=quaternion, rpy=rpy)
        link = LinkEntry(name, parent, joint_name, joint, inertia, quat, at, properties)
        check_link(link, self.strict)
        self._links.append(link)
        return self

    def add_frame(
        self, name: str, link: str, *, translation=(0.0, 0.0, 0.0), rotation=None, quaternion=None, rpy=None
    ) -> "ModelBuilder":
        """Adds a named frame (a tool, a sensor, a foot), fixed to a link at the given pose."""
        check_placement(f"frame {name!r}", translation=translation, rotation=rotation, quaternion=quaternion, rpy=rpy)
        quat, at = placement(translation, rotation=rotation, quaternion=quaternion, rpy=rpy)
        self._frames.append((name, link, quat, at))
        return self

    def add_mimic(self, joint: str, source: str, *, ratio: ArrayLike = 1.0, offset: ArrayLike = 0.0) -> "ModelBuilder":
        """Makes `joint` mimic `source`, `q = ratio * q_source + offset`; it loses its independent coordinate."""
        for what, value in (("ratio", ratio), ("offset", offset)):
            check_numbers(f"mimic of {joint!r}", what, value, FINITE, ())
        self._mimics.append((joint, source, ratio, offset))
        return self

    def add_closure(
        self,
        name: str,
        kind: str,
        first: tuple[str, Any],
        second: tuple[str, Any],
        *,
        length: ArrayLike = 0.0,
    ) -> "ModelBuilder":
        """Adds a loop closure between two frames, for `jaxdyn.constraints`; the tree dynamics ignores closures.

        Arguments:

        * `kind`: "point", "weld", "revolute", "cylindrical", "prismatic", "planar" or "distance" (see `Closure`).
        * `first`, `second`: `(link, pose)`, where a pose is a translation or a pair (quaternion, translation).
        * `length`: distance of the origins of a "distance" closure, m.
        """
        if kind not in CLOSURE_KINDS:
            raise ModelError(
                f"closure {name!r} has the unknown kind {kind!r}; expected one of {', '.join(CLOSURE_KINDS)}"
            )
        poses = [as_pose_pair(pose) for _, pose in (first, second)]
        for quaternion, translation in poses:
            check_placement(f"closure {name!r}", translation=translation, quaternion=quaternion)
        check_numbers(f"closure {name!r}", "length", length, NON_NEGATIVE, ())
        quats, ats = (jnp.stack([jnp.asarray(p[k], float) for p in poses]) for k in range(2))
        self._closures.append(Closure(name, kind, (first[0], second[0]), quats, ats, jnp.asarray(length, float)))
        return self

    def add_coupling(self, name: str, joint: str, source: str | None, coefficients) -> "ModelBuilder":
        """Adds the constraint `q_joint = sum_k c_k q_source^k` (`q_joint = c_0` without `source`)."""
        check_numbers(f"coupling {name!r}", "coefficients", coefficients, FINITE, (None,), ())
        self._closures.append(Coupling(name, joint, source, jnp.atleast_1d(jnp.asarray(coefficients, float))))
        return self

    def add_actuator(
        self, name: str, joint: str, *, gear: ArrayLike | Sequence[Any] = 1.0, range=(-np.inf, np.inf)
    ) -> "ModelBuilder":
        """Adds an actuator: effort `gear * u` on the velocities of a joint, with the control u within `range`."""
        check_numbers(f"actuator {name!r}", "gear", gear, FINITE, (None,), ())
        check_numbers(f"actuator {name!r}", "range", range, BOUND, (2,))
        self._actuators.append(Actuator(name, joint, float_array(gear, 1), float_array(range, 1)))
        return self

    def add_shape(self, shape: Shape) -> "ModelBuilder":
        """Adds a solid for visualisation."""
        where = f"shape {shape.name!r}"
        check_placement(where, translation=shape.translation, quaternion=shape.quaternion)
        check_numbers(where, "size", shape.size, FINITE, (None,))
        self._shapes.append(shape)
        return self

    def add_note(self, where: str, what: str) -> "ModelBuilder":
        """Adds a line to `Model.report`: an assumption, a change or an omission."""
        self._notes.append(Note(where, what))
        return self

    def build(self, dtype=None) -> Model:
        """Checks the description and returns the `Model`, with links numbered depth first.

        `dtype` is the precision of all numbers, JAX's default float if None. Raises `ModelError`, which names the link
        or joint, for an unknown parent, a cycle, a name that is used twice, an inertia that no rigid body has, a number
        that is not finite, an axis of length zero, or a property of a wrong shape.
        """
        dtype = jnp.result_type(float) if dtype is None else dtype
        links = order_depth_first(self._links)
        unphysical = inertia_notes(links, self._notes, strict=self.strict, allowed=self.allow_unphysical_inertia)
        groups, members, sizes = group_joints(links)
        mimics = mimic_pairs(self._mimics, links)
        check_frames(self._frames, links)
        check_descriptions(self._closures, self._actuators, self._shapes, links)
        check_numbers(f"robot {self.name!r}" if self.name else "robot", "gravity", self.gravity, FINITE, (3,))
        topology = make_topology(links, self._frames, groups, sizes, mimics)
        own = [links[topology.bodies[k]] for k in topology.independent]
        rows = lambda values, width: stack_rows(values, width, dtype)
        inertias = [link.inertia or MasslessInertia() for link in links]
        return Model(
            links=Links(
                rows([i.mass for i in inertias], ()),
                rows([i.com for i in inertias], (3,)),
                rows([i.inertia for i in inertias], (3, 3)),
            ),
            placements=Placements(
                rows([link.rotation for link in links], (4,)),
                rows([link.translation for link in links], (3,)),
            ),
            joints=tuple(jax.tree.map(lambda *x: stack_rows(x, (), dtype), *group) for group in members),
            properties=JointProperties(
                **{k: joint_property(own, k, "nv", dtype) for k in _PROPERTIES}, rest=rest_configuration(own, dtype)
            ),
            limits=Limits(
                **{k: joint_property(own, k, "nq", dtype) for k in ("lower", "upper")},
                **{k: joint_property(own, k, "nv", dtype) for k in ("velocity", "effort")},
            ),
            mimic=Mimic(rows([m[2] for m in mimics], ()), rows([m[3] for m in mimics], ())),
            frames=Placements(rows([f[2] for f in self._frames], (4,)), rows([f[3] for f in self._frames], (3,))),
            gravity=jnp.asarray(namespace(self.gravity).asarray(self.gravity, dtype), dtype),
            topology=topology,
            closures=cast(self._closures, dtype),
            actuators=cast(self._actuators, dtype),
            info=Info(
                self.name,
                tuple(self._shapes),
                (*self._notes, *unphysical, *massless_joint_notes(links, self._mimics, self._notes)),
            ),
        )
