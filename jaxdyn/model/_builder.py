"""Assembling a model by name."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.joints import AbstractJoint, AbstractVectorJoint, Continuous, Fixed, Planar, has_vector_rate
from jaxdyn.model._arrays import array, cast, namespace, stacked
from jaxdyn.model._checks import (
    check_descriptions,
    check_finite,
    check_frames,
    check_link,
    is_concrete,
    unique,
    weightless_joints,
)
from jaxdyn.model._descriptions import Actuator, Closure, Coupling, Info, Note, Shape
from jaxdyn.model._model import JointProperties, Limits, Links, Mimic, Model, Placements
from jaxdyn.model._topology import Topology
from jaxdyn.spatial import Inertia, matrix_to_quaternion

_VELOCITY = ("armature", "damping", "friction", "friction_velocity", "stiffness", "velocity", "effort")
CLOSURE_KINDS = ("point", "weld", "revolute", "cylindrical", "prismatic", "planar", "distance")
_NEUTRAL_ZERO = (AbstractVectorJoint.neutral, Continuous.neutral, Planar.neutral)
_DEFAULTS = {
    "armature": 0.0,
    "damping": 0.0,
    "friction": 0.0,
    "friction_velocity": 0.01,
    "stiffness": 0.0,
    "velocity": np.inf,
    "effort": np.inf,
    "lower": -np.inf,
    "upper": np.inf,
}


def placement(translation=(0.0, 0.0, 0.0), *, rotation=None, quaternion=None, rpy=None):
    """A pose as `(quaternion, translation)`, from at most one way of giving its rotation."""
    given = [x for x in (rotation, quaternion, rpy) if x is not None]
    if len(given) > 1:
        raise ModelError("give at most one of rotation (a matrix), quaternion and rpy")
    if rpy is not None:
        quaternion = _rpy_quaternion(rpy)
    if rotation is not None:
        quaternion = matrix_to_quaternion(jnp.asarray(rotation, float))
    if quaternion is None:
        quaternion = np.array([1.0, 0, 0, 0])
    return quaternion, translation


def _rpy_quaternion(rpy):
    """`q_yaw q_pitch q_roll`, scalar first."""
    xp = np if is_concrete(rpy) else jnp
    half = xp.asarray(rpy, float) / 2
    with np.errstate(invalid="ignore"):  # what is not finite is reported by name later
        (cr, cp, cy), (sr, sp, sy) = xp.cos(half), xp.sin(half)
    return xp.stack(
        [
            cy * cp * cr + sy * sp * sr,
            cy * cp * sr - sy * sp * cr,
            cy * sp * cr + sy * cp * sr,
            sy * cp * cr - cy * sp * sr,
        ]
    )


class _Nothing(NamedTuple):
    """The inertia of a massless link."""

    mass: Any = np.zeros(())
    com: Any = np.zeros(3)
    inertia: Any = np.zeros((3, 3))


_NOTHING = _Nothing()


@dataclass
class _Link:
    name: str
    parent: str
    joint_name: str
    joint: AbstractJoint
    inertia: Inertia | None
    rotation: Any
    translation: Any
    extras: dict[str, Any]


@dataclass
class ModelBuilder:
    """Builds a `Model` link by link.

        b = ModelBuilder()
        b.add_link("upper", "world", Revolute([0, 1, 0]), cylinder(0.05, l1, density=2700.0))
        b.add_link("lower", "upper", Revolute([0, 1, 0]), rod(l2, mass=1.0), translation=(0, 0, -l1))
        model = b.build()

    Any number may be a traced value: built inside a differentiated function, a model carries the
    derivative in the dimension that its inertia was computed from.
    """

    gravity: Any = (0.0, 0.0, -9.81)
    name: str = ""
    #: whether an inertia that no body can have is refused
    strict: bool = True
    _links: list[_Link] = field(default_factory=list, init=False)
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
        """Adds a link that `joint` (fixed by default) carries, its frame placed in the parent link.

        `properties` are those of the joint, a number or one a coordinate: armature, damping, friction,
        friction_velocity, stiffness, rest, lower, upper, velocity, effort.
        """
        unknown = set(properties) - set(_DEFAULTS) - {"rest"}
        if unknown:
            raise ModelError(
                f"link {name!r}: unknown joint property {sorted(unknown)}; there are {sorted([*_DEFAULTS, 'rest'])}"
            )
        quat, at = placement(translation, rotation=rotation, quaternion=quaternion, rpy=rpy)
        joint = Fixed() if joint is None else joint
        joint_name = f"{name}_joint" if joint_name is None else joint_name
        self._links.append(_Link(name, parent, joint_name, joint, inertia, quat, at, properties))
        return self

    def add_frame(
        self, name: str, link: str, *, translation=(0.0, 0.0, 0.0), rotation=None, quaternion=None, rpy=None
    ) -> "ModelBuilder":
        """Adds a named frame fixed to a link: a tool, a sensor, a foot."""
        quat, at = placement(translation, rotation=rotation, quaternion=quaternion, rpy=rpy)
        self._frames.append((name, link, quat, at))
        return self

    def add_mimic(self, joint: str, source: str, *, ratio: Any = 1.0, offset: Any = 0.0) -> "ModelBuilder":
        """Gears `joint` to `source`: `q = ratio * q_source + offset`; it loses its own coordinate."""
        self._mimics.append((joint, source, ratio, offset))
        return self

    def add_closure(
        self,
        name: str,
        kind: str,
        first: tuple[str, Any],
        second: tuple[str, Any],
        *,
        length: Any = 0.0,
    ) -> "ModelBuilder":
        """Describes a loop: a frame `(link, pose)` tied to another by what `kind` leaves free (see `Closure`).

        A pose is a translation, or a pair (quaternion, translation). The tree dynamics ignores closures.
        """
        if kind not in CLOSURE_KINDS:
            raise ModelError(f"closure {name!r}: there is no kind {kind!r}; there are {', '.join(CLOSURE_KINDS)}")
        poses = [_frame_pose(pose) for _, pose in (first, second)]
        quats, ats = (jnp.stack([jnp.asarray(p[k], float) for p in poses]) for k in range(2))
        self._closures.append(Closure(name, kind, (first[0], second[0]), quats, ats, jnp.asarray(length, float)))
        return self

    def add_coupling(self, name: str, joint: str, source: str | None, coefficients) -> "ModelBuilder":
        """Describes `q_joint = polynomial(q_source)`, coefficients from the constant upwards."""
        self._closures.append(Coupling(name, joint, source, jnp.atleast_1d(jnp.asarray(coefficients, float))))
        return self

    def add_actuator(self, name: str, joint: str, *, gear: Any = 1.0, range=(-np.inf, np.inf)) -> "ModelBuilder":
        """Describes a drive: effort `gear * u` on a joint, `u` within `range`."""
        self._actuators.append(Actuator(name, joint, array(gear, 1), array(range, 1)))
        return self

    def add_shape(self, shape: Shape) -> "ModelBuilder":
        """Adds a solid to look at."""
        self._shapes.append(shape)
        return self

    def add_note(self, where: str, what: str) -> "ModelBuilder":
        """Adds a line to the model's report: something assumed, changed or left out."""
        self._notes.append(Note(where, what))
        return self

    def build(self, dtype=None) -> Model:
        """Checks everything and returns the model; links are numbered depth first."""
        dtype = jnp.result_type(float) if dtype is None else dtype
        links = _ordered(self._links)
        for link in links:
            check_link(link, self.strict)
        groups, members, sizes = _grouped(links)
        mimics = _mimic_pairs(self._mimics, links, members)
        check_frames(self._frames, links)
        check_descriptions(self, links)
        check_finite("gravity", self.gravity)
        topology = _topology(links, self._frames, groups, sizes, mimics)
        own = [links[topology.bodies[k]] for k in topology.independent]
        rows = lambda values, width: stacked(values, width, dtype)
        inertias = [link.inertia or _NOTHING for link in links]
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
            joints=tuple(jax.tree.map(lambda *x: stacked(x, (), dtype), *group) for group in members),
            properties=JointProperties(
                **{k: _coordinates(own, k, "nv", dtype) for k in _VELOCITY[:5]}, rest=_rest(own, dtype)
            ),
            limits=Limits(
                **{k: _coordinates(own, k, "nq", dtype) for k in ("lower", "upper")},
                **{k: _coordinates(own, k, "nv", dtype) for k in ("velocity", "effort")},
            ),
            mimic=Mimic(rows([m[2] for m in mimics], ()), rows([m[3] for m in mimics], ())),
            frames=Placements(rows([f[2] for f in self._frames], (4,)), rows([f[3] for f in self._frames], (3,))),
            gravity=jnp.asarray(namespace(self.gravity).asarray(self.gravity, dtype), dtype),
            topology=topology,
            closures=cast(self._closures, dtype),
            actuators=cast(self._actuators, dtype),
            info=Info(
                self.name, tuple(self._shapes), (*self._notes, *weightless_joints(links, self._mimics, self._notes))
            ),
        )


def _frame_pose(pose):
    if isinstance(pose, tuple) and len(pose) == 2:
        return pose
    return np.array([1.0, 0, 0, 0]), pose


def _topology(links: list[_Link], frames, groups, sizes, mimics) -> Topology:
    number = {link.name: i for i, link in enumerate(links)}
    return Topology(
        link_names=tuple(link.name for link in links),
        joint_names=tuple(link.joint_name for link in links),
        frame_names=tuple(f[0] for f in frames),
        parents=tuple(number.get(link.parent, -1) for link in links),
        groups=tuple(groups),
        group_sizes=tuple(sizes),
        frame_links=tuple(_frame_link(f, number) for f in frames),
        mimics=tuple(pair[:2] for pair in mimics),
    )


def _ordered(links: list[_Link]) -> list[_Link]:
    """Depth first, children in the order in which they were added."""
    unique([link.name for link in links], "link")
    unique([link.joint_name for link in links], "joint")
    names = {link.name for link in links}
    parents = names | {"world"}
    if "world" in names:
        raise ModelError("'world' is the name of what does not move; give the link another name")
    children: dict[str, list[_Link]] = {}
    for link in links:
        if link.parent not in parents:
            raise ModelError(
                f"link {link.name!r} hangs on {link.parent!r}, which was never added; "
                f"there are 'world' and {sorted(names)}"
            )
        children.setdefault(link.parent, []).append(link)
    out: list[_Link] = []
    stack = list(reversed(children.get("world", [])))
    while stack:
        link = stack.pop()
        out.append(link)
        stack.extend(reversed(children.get(link.name, [])))
    if len(out) < len(links):
        lost = sorted(names - {link.name for link in out})
        raise ModelError(f"links {lost} form a cycle: none of them hangs on 'world'")
    return out


def _grouped(links: list[_Link]):
    """Joints of one type and shape side by side, so that one call evaluates them all."""
    keys: list[Any] = []
    groups: list[int] = []
    members: list[list[AbstractJoint]] = []
    sizes: list[tuple[int, int, bool]] = []
    for link in links:
        joint = link.joint
        if joint.nv == 0:
            groups.append(-1)
            continue
        leaves, tree = jax.tree.flatten(joint)
        key = (tree, tuple(jnp.shape(x) for x in leaves))
        if key not in keys:
            keys.append(key)
            members.append([])
            sizes.append((joint.nq, joint.nv, joint.translates))
        groups.append(keys.index(key))
        members[groups[-1]].append(joint)
    return groups, members, sizes


def _mimic_pairs(mimics, links: list[_Link], members):
    number = {link.joint_name: i for i, link in enumerate(links)}
    pairs = []
    followers = {m[0] for m in mimics}
    for joint, source, ratio, offset in mimics:
        for name in (joint, source):
            if name not in number:
                raise ModelError(f"mimic of {joint!r}: there is no joint called {name!r}")
            if links[number[name]].joint.nv != 1 or links[number[name]].joint.nq != 1:
                raise ModelError(f"mimic of {joint!r}: {name!r} does not have exactly one coordinate")
            if not has_vector_rate(links[number[name]].joint):
                raise ModelError(
                    f"mimic of {joint!r}: the velocity of {name!r} is not the rate of its coordinate, as gears need; "
                    "derive its joint from AbstractVectorJoint"
                )
        if joint == source or source in followers:
            raise ModelError(f"mimic of {joint!r}: its source {source!r} must have a coordinate of its own")
        given = sorted(links[number[joint]].extras)
        if given:
            raise ModelError(
                f"joint {joint!r} mimics {source!r} and has no coordinate of its own, but {', '.join(given)} "
                f"was given for it; give it to {source!r}, reflected through the ratio"
            )
        for what, value in (("ratio", ratio), ("offset", offset)):
            check_finite(f"mimic of {joint!r}: {what}", value)
        pairs.append((number[joint], number[source], ratio, offset))
    unique([m[0] for m in mimics], "mimicking joint")
    return pairs


def _frame_link(frame, number) -> int:
    name, link, _, _ = frame
    if link not in number:
        raise ModelError(f"frame {name!r} is fixed to {link!r}, which is not a link of this model")
    return number[link]


def _coordinates(links: list[_Link], key: str, size: str, dtype):
    defaults = [np.full(getattr(link.joint, size), _DEFAULTS[key]) for link in links]
    return _joined(links, key, defaults, dtype)


def _rest(links: list[_Link], dtype):
    return _joined(links, "rest", [_neutral(link.joint, dtype) for link in links], dtype)


def _neutral(joint: AbstractJoint, dtype):
    if type(joint).neutral in _NEUTRAL_ZERO:
        return np.zeros(joint.nq, dtype)  # without a JAX operation a joint
    with jax.ensure_compile_time_eval():  # zeros made inside a traced function are known all the same
        x = joint.neutral(dtype)
    return np.asarray(x) if is_concrete(x) else x


def _joined(links: list[_Link], key: str, defaults, dtype):
    """Values of one property of all joints, in a row."""
    values = [link.extras.get(key, default) for link, default in zip(links, defaults, strict=True)]
    xp = namespace(values)
    parts = []
    for link, value, default in zip(links, values, defaults, strict=True):
        value = xp.asarray(value, dtype)
        if value.shape not in ((), default.shape):
            raise ModelError(
                f"joint {link.joint_name!r}: {key} has shape {value.shape}, expected {default.shape} or a number"
            )
        parts.append(xp.broadcast_to(value, default.shape))
    return jnp.asarray(xp.concatenate(parts) if parts else np.zeros(0, dtype), dtype)
