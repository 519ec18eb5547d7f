"""Reading URDF."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jaxdyn._errors import FileAccessError, FileFormatError, ModelError
from jaxdyn.io._paths import read_bytes, resolve_mesh
from jaxdyn.io._urdf_drives import add_drives
from jaxdyn.io._urdf_joints import add_joint, kind_of, mimics_of, new_name
from jaxdyn.io._urdf_links import add_shapes, inertia_of, materials_of
from jaxdyn.io._urdf_notes import note_massless, note_unread
from jaxdyn.io._xml import Bounds, Element, fail, parse_xml, required
from jaxdyn.joints import Fixed, Free
from jaxdyn.model import Model, ModelBuilder
from jaxdyn.spatial import Inertia

ROOT_JOINT = "root_joint"
_BOUNDS = Bounds()


def load_urdf(
    path: str | os.PathLike[str],
    *,
    floating_base: bool = False,
    package_dirs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    allow_absolute: bool = False,
    dtype: Any = None,
    bounds: Bounds = _BOUNDS,
) -> Model:
    """The robot in a URDF file; `model.report` lists what was assumed and what was left out.

    Links, joints and their frames are those of the file; `q` and `v` follow the joints depth first, in the
    order of the file. The root link is held by a joint called `root_joint`, which is fixed to the world or,
    with `floating_base`, free: `q[:7]` is then its quaternion (scalar first) and position, `v[:6]` its
    angular and linear velocity in its own axes. A root link called `world` is the world itself. Links behind
    fixed joints stay links.

    Meshes are not read, and shapes keep their names for them. With `package_dirs` given, the names are
    replaced by the files that they stand for (`resolve_mesh`), absolute ones only with `allow_absolute`.
    `dtype` is the precision of the numbers. What the format does not allow, and what is larger than
    `bounds`, raises `FileFormatError`.

    The format: ROS, "URDF XML specification"; where it is silent, urdfdom and Pinocchio are followed.
    """
    text = read_bytes(path, bounds.max_bytes)
    return _parse(text, os.fspath(path), Path(path).parent, floating_base, package_dirs, allow_absolute, dtype, bounds)


def parse_urdf(
    text: str | bytes,
    *,
    floating_base: bool = False,
    package_dirs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    base: str | os.PathLike[str] | None = None,
    allow_absolute: bool = False,
    dtype: Any = None,
    bounds: Bounds = _BOUNDS,
    source: str = "URDF text",
) -> Model:
    """As `load_urdf`, from the text itself.

    `base` is the folder to which relative names of meshes refer, `source` what messages call the text.
    """
    return _parse(text, source, base, floating_base, package_dirs, allow_absolute, dtype, bounds)


def _parse(text, source, base, floating_base, package_dirs, allow_absolute, dtype, bounds) -> Model:
    robot = parse_xml(text, source, bounds)
    builder = ModelBuilder(name=robot.attributes.get("name", ""), strict=False)
    try:
        _check_root(robot, bounds)
        _fill(robot, builder, floating_base, _finder(base, package_dirs, allow_absolute, builder))
        return builder.build(dtype)
    except FileFormatError:
        raise
    except ModelError as error:
        raise FileFormatError(f"{source}: {error}") from None


def _finder(base, package_dirs, allow_absolute: bool, builder: ModelBuilder) -> Callable[[str, str], str]:
    """Where meshes are: names as they are, or the files that they stand for."""
    if not package_dirs and not allow_absolute:
        return lambda mesh, where: mesh

    def find(mesh: str, where: str) -> str:
        try:
            return str(resolve_mesh(mesh, base=base, package_dirs=package_dirs, allow_absolute=allow_absolute))
        except FileAccessError as error:
            builder.add_note(where, f"{error}: name kept")
            return mesh

    return find


class _Tree(NamedTuple):
    """Elements of a file by name, and what hangs on what."""

    links: dict[str, Element]
    joints: dict[str, Element]
    children: dict[str, list[tuple[Element, str]]]
    carriers: dict[str, str]
    roots: list[str]


def _fill(robot: Element, builder: ModelBuilder, floating_base: bool, find: Callable[[str, str], str]):
    tree = _tree(robot)
    note_unread(robot, builder)
    mimics = mimics_of(list(tree.joints.values()), builder)
    names, taken = _names(tree, floating_base, builder)
    inertias = {name: inertia_of(link, builder) for name, link in tree.links.items()}
    order = _depth_first(tree)
    if floating_base:
        _note_second_base(tree, builder)
    note_massless(order, tree.children, tree.links, inertias, builder)
    for root in tree.roots:
        _add_root(root, names, inertias[root], builder, floating_base, taken, single=len(tree.roots) == 1)
    for parent, hanging in tree.children.items():
        for joint, child in hanging:
            follows = joint.attributes["name"] in mimics
            add_joint(joint, names[parent], names[child], inertias[child], builder, follows=follows, taken=taken)
    for joint in (tree.carriers[link] for link in order if tree.carriers.get(link) in mimics):
        source, ratio, offset = mimics[joint]
        builder.add_mimic(joint, source, ratio=ratio, offset=offset)
    moving = {n for n, j in tree.joints.items() if kind_of(j) in ("revolute", "continuous", "prismatic")}
    add_drives(robot, moving - mimics.keys(), builder)
    materials = materials_of(robot)
    for name, link in tree.links.items():
        add_shapes(link, names[name], materials, find, builder)


def _note_second_base(tree: _Tree, builder: ModelBuilder):
    """A file may have a free base of its own; another below it moves what has no mass."""
    for root in tree.roots:
        for joint, _ in tree.children.get(root, []):
            if kind_of(joint) == "floating" and tree.links[root].first("inertial") is None:
                builder.add_note(
                    f"joint {joint.attributes['name']}",
                    f"is free, and so is the root {root!r}, which has no mass: the mass matrix is singular; "
                    "load the file with floating_base=False",
                )


def _check_root(robot: Element, bounds: Bounds):
    if robot.tag != "robot":
        remedy = "read MJCF with jaxdyn.load_mjcf" if robot.tag == "mujoco" else "give a URDF file"
        fail(robot, f"the outermost element of a URDF is <robot>; {remedy}")
    if any(x.tag.startswith("xacro:") for x in robot.children):
        fail(robot, "holds xacro macros; expand them first, with `xacro file.urdf.xacro > file.urdf`")
    drives = sum(len(group.all("transmission")) for group in (robot, *robot.all("ros2_control")))
    for what, count in (("links", len(robot.all("link"))), ("transmissions", drives)):
        if count > bounds.max_links:
            fail(robot, f"has more than {bounds.max_links} {what}; if you trust it, raise bounds=Bounds(max_links=...)")


def _named(robot: Element, tag: str) -> dict[str, Element]:
    out: dict[str, Element] = {}
    for element in robot.all(tag):
        name = required(element, "name")
        element.attributes["name"] = name
        if name in out:
            fail(element, f"a {tag} of this name is on line {out[name].line} already; names must differ")
        out[name] = element
    return out


def _end(joint: Element, tag: str, links: dict[str, Element]) -> str:
    element = joint.first(tag)
    if element is None:
        fail(joint, f"has no <{tag}>; name a link")
    name = required(element, "link")
    if name not in links:
        fail(element, f"there is no link called {name!r}; name one of this file")
    return name


def _tree(robot: Element) -> _Tree:
    links, joints = _named(robot, "link"), _named(robot, "joint")
    if not links:
        fail(robot, "has no links; a robot has at least one")
    carrier: dict[str, Element] = {}
    children: dict[str, list[tuple[Element, str]]] = {}
    for joint in joints.values():
        kind_of(joint)
        parent, child = _end(joint, "parent", links), _end(joint, "child", links)
        if child in carrier:
            other = carrier[child].attributes["name"]
            fail(joint, f"carries the link {child!r}, which {other!r} carries already; a link has one parent")
        carrier[child] = joint
        children.setdefault(parent, []).append((joint, child))
    roots = [name for name in links if name not in carrier]
    if not roots:
        fail(robot, "has no root: the links carry each other in a circle; leave one without a parent")
    return _Tree(links, joints, children, {name: x.attributes["name"] for name, x in carrier.items()}, roots)


def _depth_first(tree: _Tree) -> list[str]:
    """Links in the order in which the model numbers them; those in a circle are not reached."""
    order, stack = [], list(reversed(tree.roots))
    while stack:
        order.append(stack.pop())
        stack += [child for _, child in reversed(tree.children.get(order[-1], []))]
    return order


def _names(tree: _Tree, floating_base: bool, builder: ModelBuilder) -> tuple[dict[str, str], dict[str, int]]:
    """What the model calls the links, and all names in use; `world` is kept for what does not move."""
    taken = dict.fromkeys((*tree.links, *tree.joints, "world"), 0)
    names = {name: name for name in tree.links}
    if "world" in names and ("world" not in tree.roots or floating_base):
        names["world"] = new_name("world_link", taken)
        builder.add_note("link world", f"moves, while 'world' is what does not: called {names['world']}")
    return names, taken


def _add_root(
    root: str, names: dict[str, str], inertia: Inertia | None, builder: ModelBuilder, floating, taken, *, single: bool
):
    if names[root] == "world":
        if inertia is not None:
            builder.add_note("link world", "is the world and does not move: its mass is left out")
        return
    joint = new_name(ROOT_JOINT if single else f"{root}_{ROOT_JOINT}", taken)
    if not single:
        how = "free" if floating else "fixed to the world, as in MuJoCo"
        builder.add_note(f"link {root}", f"is one of several roots: {how} (urdfdom refuses the file)")
    builder.add_link(names[root], "world", Free() if floating else Fixed(), inertia, joint_name=joint)
