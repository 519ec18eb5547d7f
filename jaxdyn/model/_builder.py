"""Assembling a model by name."""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import core

from jaxdyn._errors import ModelError
from jaxdyn.joints import AbstractJoint, Fixed
from jaxdyn.model._model import JointProperties, Limits, Links, Mimic, Model, Placements
from jaxdyn.model._topology import Topology
from jaxdyn.spatial import Inertia, inertia_defect, matrix_to_quaternion, rpy_to_matrix

_VELOCITY = ("armature", "damping", "friction", "friction_velocity", "stiffness", "velocity", "effort")
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
        rotation = rpy_to_matrix(jnp.asarray(rpy, float))
    if rotation is not None:
        quaternion = matrix_to_quaternion(jnp.asarray(rotation, float))
    if quaternion is None:
        quaternion = np.array([1.0, 0, 0, 0])
    return quaternion, translation


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
    _links: list[_Link] = field(default_factory=list, init=False)
    _frames: list[tuple[str, str, Any, Any]] = field(default_factory=list, init=False)
    _mimics: list[tuple[str, str, Any, Any]] = field(default_factory=list, init=False)

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

    def build(self, dtype=None) -> Model:
        """Checks everything and returns the model; links are numbered depth first."""
        dtype = jnp.result_type(float) if dtype is None else dtype
        links = _ordered(self._links)
        for link in links:
            _check(link)
        number = {link.name: i for i, link in enumerate(links)}
        groups, members, sizes = _grouped(links)
        mimics = _mimic_pairs(self._mimics, links, members)
        _unique([f[0] for f in self._frames], "frame")
        topology = Topology(
            link_names=tuple(link.name for link in links),
            joint_names=tuple(link.joint_name for link in links),
            frame_names=tuple(f[0] for f in self._frames),
            parents=tuple(number.get(link.parent, -1) for link in links),
            groups=tuple(groups),
            group_sizes=tuple(sizes),
            frame_links=tuple(_frame_link(f, number) for f in self._frames),
            mimics=tuple(pair[:2] for pair in mimics),
        )
        own = [links[topology.bodies[k]] for k in topology.independent]
        cast = lambda rows, width: _stacked(rows, width, dtype)
        inertias = [link.inertia or _nothing() for link in links]
        return Model(
            links=Links(
                cast([i.mass for i in inertias], ()),
                cast([i.com for i in inertias], (3,)),
                cast([i.inertia for i in inertias], (3, 3)),
            ),
            placements=Placements(
                cast([link.rotation for link in links], (4,)),
                cast([link.translation for link in links], (3,)),
            ),
            joints=tuple(
                jax.tree.map(lambda *x: jnp.stack([jnp.asarray(y, dtype) for y in x]), *group) for group in members
            ),
            properties=JointProperties(
                **{k: _coordinates(own, k, "nv", dtype) for k in _VELOCITY[:5]}, rest=_rest(own, dtype)
            ),
            limits=Limits(
                **{k: _coordinates(own, k, "nq", dtype) for k in ("lower", "upper")},
                **{k: _coordinates(own, k, "nv", dtype) for k in ("velocity", "effort")},
            ),
            mimic=Mimic(cast([m[2] for m in mimics], ()), cast([m[3] for m in mimics], ())),
            frames=Placements(cast([f[2] for f in self._frames], (4,)), cast([f[3] for f in self._frames], (3,))),
            gravity=jnp.asarray(self.gravity, dtype),
            topology=topology,
        )


def _nothing() -> Inertia:
    return Inertia(0.0, np.zeros(3), np.zeros((3, 3)))


def _stacked(rows, width, dtype):
    if not rows:
        return jnp.zeros((0, *width), dtype)
    return jnp.stack([jnp.asarray(x, dtype) for x in rows])


def _unique(names, what: str):
    seen = set()
    for name in names:
        if name in seen:
            raise ModelError(f"two {what}s are called {name!r}; names of {what}s must differ")
        seen.add(name)


def _ordered(links: list[_Link]) -> list[_Link]:
    """Depth first, children in the order in which they were added."""
    _unique([link.name for link in links], "link")
    _unique([link.joint_name for link in links], "joint")
    names = {link.name for link in links}
    if "world" in names:
        raise ModelError("'world' is the name of what does not move; give the link another name")
    children: dict[str, list[_Link]] = {}
    for link in links:
        if link.parent not in names | {"world"}:
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


def _is_concrete(x) -> bool:
    return not any(isinstance(leaf, core.Tracer) for leaf in jax.tree.leaves(x))


def _finite(x) -> bool:
    return bool(np.isfinite(np.asarray(x, float)).all())


def _check(link: _Link):
    """Numbers that are known now must make sense; traced ones are the caller's."""
    body = link.inertia
    if body is not None and _is_concrete(body):
        defect = inertia_defect(body.mass, body.inertia)
        if defect:
            raise ModelError(f"link {link.name!r} {defect}")
        if not _finite(body.com):
            raise ModelError(f"link {link.name!r} has a centre of mass that is not finite")
    for what, value in (("translation", link.translation), ("rotation", link.rotation)):
        if _is_concrete(value) and not _finite(value):
            raise ModelError(f"joint {link.joint_name!r} has a {what} that is not finite: {np.asarray(value)}")
    if _is_concrete(link.rotation) and np.linalg.norm(np.asarray(link.rotation, float)) < 1e-12:
        raise ModelError(f"joint {link.joint_name!r} has a quaternion of length zero")
    for path, leaf in jax.tree_util.tree_flatten_with_path(link.joint)[0]:
        if not _is_concrete(leaf):
            continue
        name = jax.tree_util.keystr(path)
        if not _finite(leaf):
            raise ModelError(f"joint {link.joint_name!r}: parameter {name} is not finite")
        if "axis" in name and np.linalg.norm(np.asarray(leaf, float)) < 1e-12:
            raise ModelError(f"joint {link.joint_name!r} has a zero axis ({name}); give it a direction")
    for key, value in link.extras.items():
        if _is_concrete(value) and np.isnan(np.asarray(value, float)).any():
            raise ModelError(f"joint {link.joint_name!r}: {key} is not a number")


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
        if joint == source or source in followers:
            raise ModelError(f"mimic of {joint!r}: its source {source!r} must have a coordinate of its own")
        pairs.append((number[joint], number[source], ratio, offset))
    _unique([m[0] for m in mimics], "mimicking joint")
    return pairs


def _frame_link(frame, number) -> int:
    name, link, _, _ = frame
    if link not in number:
        raise ModelError(f"frame {name!r} is fixed to {link!r}, which is not a link of this model")
    return number[link]


def _coordinates(links: list[_Link], key: str, size: str, dtype):
    parts = []
    for link in links:
        n = getattr(link.joint, size)
        value = jnp.asarray(link.extras.get(key, _DEFAULTS[key]), dtype)
        if value.shape not in ((), (n,)):
            raise ModelError(f"joint {link.joint_name!r}: {key} has shape {value.shape}, expected {(n,)} or a number")
        parts.append(jnp.broadcast_to(value, (n,)))
    return jnp.concatenate(parts) if parts else jnp.zeros(0, dtype)


def _rest(links: list[_Link], dtype):
    parts = []
    for link in links:
        neutral = link.joint.neutral(dtype)
        value = jnp.asarray(link.extras.get("rest", neutral), dtype)
        if value.shape not in ((), neutral.shape):
            raise ModelError(f"joint {link.joint_name!r}: rest has shape {value.shape}, expected {neutral.shape}")
        parts.append(jnp.broadcast_to(value, neutral.shape))
    return jnp.concatenate(parts) if parts else jnp.zeros(0, dtype)
