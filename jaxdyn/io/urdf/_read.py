"""Reading of URDF files."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jaxdyn._errors import FileAccessError, FileFormatError, ModelError
from jaxdyn.io.files import Element, ParsingLimits, fail, parse_xml, read_bytes, require_attribute, resolve_mesh
from jaxdyn.io.urdf._joints import add_joint, joint_type, make_unique_name, read_mimics
from jaxdyn.io.urdf._links import add_shapes, read_inertia, read_materials
from jaxdyn.io.urdf._notes import note_massless, note_unread
from jaxdyn.io.urdf._transmissions import add_drives
from jaxdyn.joints import Fixed, Free
from jaxdyn.model import Model, ModelBuilder
from jaxdyn.spatial import Inertia

ROOT_JOINT = "root_joint"
_LIMITS = ParsingLimits()


def load_urdf(
    path: str | os.PathLike[str],
    *,
    floating_base: bool = False,
    package_dirs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    allow_absolute: bool = False,
    dtype: Any = None,
    bounds: ParsingLimits = _LIMITS,
) -> Model:
    """Reads the robot in a URDF file.

    Links, joints and their frames are those of the file; `q` and `v` follow the joints depth first, in the
    order of the file. The joint of the root link is called `root_joint`. It is fixed to the world or, with
    `floating_base`, free: `q[:7]` is then the quaternion (scalar first) and the position (m) of the root, `v[:6]` its
    angular (rad/s) and linear velocity (m/s) in its own axes. A root link called `world` is the world itself. Links
    behind fixed joints stay links.

    Arguments:

    * `path`: the file.
    * `floating_base`: attach the root by a free joint instead of a fixed one.
    * `package_dirs`: folders of meshes. If given, the names of meshes are resolved to files by `resolve_mesh`;
      otherwise shapes keep the names of the file. Meshes are never opened.
    * `allow_absolute`: resolve absolute paths of meshes too.
    * `dtype`: precision of the numbers, by default JAX's default precision.
    * `bounds`: limits on the size of the file.

    Returns the model; `model.report` lists what was assumed and what was ignored. Raises `FileFormatError` for a file
    that violates the format or exceeds `bounds`, and `FileAccessError` for a file that cannot be read.

    The format: ROS, "URDF XML specification"; where it is silent, urdfdom and Pinocchio are followed.

    ```python
    from pathlib import Path
    from tempfile import TemporaryDirectory

    import jaxdyn as jd

    with TemporaryDirectory() as folder:
        path = Path(folder) / "pendulum.urdf"
        jd.write_urdf(jd.robots.pendulum(), path)
        model = jd.load_urdf(path)
    assert model.nv == 1
    assert str(model.report[0]) == "links: no <inertial>, hence no mass, in tip"
    ```
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
    bounds: ParsingLimits = _LIMITS,
    source: str = "URDF text",
) -> Model:
    """Reads the robot in a URDF text, as `load_urdf` reads a file.

    Arguments:

    * `text`: the XML text; bytes are decoded as its declaration says.
    * `base`: folder to which relative names of meshes refer.
    * `source`: name of the text in messages.
    * the other arguments: see `load_urdf`.

    Returns the model; raises `FileFormatError` for a text that violates the format or exceeds `bounds`.

    ```python
    import jaxdyn as jd

    text = '''
    <robot name="slider">
      <link name="rail"/>
      <link name="cart">
        <inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
      </link>
      <joint name="slide" type="prismatic">
        <parent link="rail"/><child link="cart"/><axis xyz="1 0 0"/>
        <limit lower="-1" upper="1" effort="10" velocity="2"/>
      </joint>
    </robot>
    '''
    model = jd.parse_urdf(text)
    assert model.nv == 1 and model.joint_names == ("root_joint", "slide")
    ```
    """
    return _parse(text, source, base, floating_base, package_dirs, allow_absolute, dtype, bounds)


def _parse(text, source, base, floating_base, package_dirs, allow_absolute, dtype, bounds) -> Model:
    robot = parse_xml(text, source, bounds)
    builder = ModelBuilder(name=robot.attributes.get("name", ""), strict=False)
    try:
        _check_root(robot, bounds)
        _add_robot(robot, builder, floating_base, _mesh_finder(base, package_dirs, allow_absolute, builder))
        return builder.build(dtype)
    except FileFormatError:
        raise
    except ModelError as error:
        raise FileFormatError(f"{source}: {error}") from None


def _mesh_finder(base, package_dirs, allow_absolute: bool, builder: ModelBuilder) -> Callable[[Element, str], str]:
    """A function that resolves the name in `<mesh>` to its file, or keeps the name if no folders are given."""
    if not package_dirs and not allow_absolute:
        return lambda element, where: require_attribute(element, "filename")

    def find(element: Element, where: str) -> str:
        mesh = require_attribute(element, "filename")
        try:
            return str(resolve_mesh(mesh, base=base, package_dirs=package_dirs, allow_absolute=allow_absolute))
        except FileAccessError as error:
            builder.add_note(where, f"{error}: name kept")
            return mesh
        except FileFormatError as error:
            fail(element, str(error))

    return find


class _Tree(NamedTuple):
    """Elements of a file by name, and the tree of links; `parent_joints` maps a link to the joint above it."""

    links: dict[str, Element]
    joints: dict[str, Element]
    children: dict[str, list[tuple[Element, str]]]
    parent_joints: dict[str, str]
    roots: list[str]


def _add_robot(robot: Element, builder: ModelBuilder, floating_base: bool, find: Callable[[Element, str], str]):
    tree = _read_tree(robot)
    note_unread(robot, builder)
    mimics = read_mimics(list(tree.joints.values()), builder)
    names, taken = _model_names(tree, floating_base, builder)
    inertias = {name: read_inertia(link, builder) for name, link in tree.links.items()}
    order = _depth_first(tree)
    if floating_base:
        _note_second_base(tree, builder)
    note_massless(order, tree.children, tree.links, inertias, builder)
    for root in tree.roots:
        _add_root(root, names, inertias[root], builder, floating_base, taken, single=len(tree.roots) == 1)
    for parent, pairs in tree.children.items():
        for joint, child in pairs:
            is_mimic = joint.attributes["name"] in mimics
            add_joint(joint, names[parent], names[child], inertias[child], builder, is_mimic=is_mimic, taken=taken)
    for joint in (tree.parent_joints[link] for link in order if tree.parent_joints.get(link) in mimics):
        source, ratio, offset = mimics[joint]
        builder.add_mimic(joint, source, ratio=ratio, offset=offset)
    moving = {n for n, j in tree.joints.items() if joint_type(j) in ("revolute", "continuous", "prismatic")}
    add_drives(robot, moving - mimics.keys(), builder)
    materials = read_materials(robot)
    for name, link in tree.links.items():
        add_shapes(link, names[name], materials, find, builder)


def _note_second_base(tree: _Tree, builder: ModelBuilder):
    """Notes a floating joint below a massless floating root, which makes the mass matrix singular."""
    for root in tree.roots:
        for joint, _ in tree.children.get(root, []):
            if joint_type(joint) == "floating" and tree.links[root].first("inertial") is None:
                builder.add_note(
                    f"joint {joint.attributes['name']}",
                    f"is floating, and so is the massless root {root!r}: the mass matrix is singular; "
                    "load the file with floating_base=False",
                )


def _check_root(robot: Element, bounds: ParsingLimits):
    if robot.tag != "robot":
        remedy = "read MJCF with jaxdyn.load_mjcf" if robot.tag == "mujoco" else "give a URDF file"
        fail(robot, f"the root element of a URDF is <robot>; {remedy}")
    if any(x.tag.startswith("xacro:") for x in robot.children):
        fail(robot, "contains xacro macros; expand them first with `xacro file.urdf.xacro > file.urdf`")
    drives = sum(len(group.all("transmission")) for group in (robot, *robot.all("ros2_control")))
    for what, count in (("links", len(robot.all("link"))), ("transmissions", drives)):
        if count > bounds.max_links:
            fail(
                robot,
                f"has more than {bounds.max_links} {what}; if you trust it, raise bounds=ParsingLimits(max_links=...)",
            )


def _elements_by_name(robot: Element, tag: str) -> dict[str, Element]:
    """The children of a tag by their names, which must be unique."""
    out: dict[str, Element] = {}
    for element in robot.all(tag):
        name = require_attribute(element, "name")
        element.attributes["name"] = name
        if name in out:
            fail(element, f"the {tag} on line {out[name].line} has the same name; names must be unique")
        out[name] = element
    return out


def _connected_link(joint: Element, tag: str, links: dict[str, Element]) -> str:
    element = joint.first(tag)
    if element is None:
        fail(joint, f"has no <{tag}>; name a link")
    name = require_attribute(element, "link")
    if name not in links:
        fail(element, f"there is no link {name!r}; name a link of this file")
    return name


def _read_tree(robot: Element) -> _Tree:
    links, joints = _elements_by_name(robot, "link"), _elements_by_name(robot, "joint")
    if not links:
        fail(robot, "has no links; a robot has at least one")
    parent_joint: dict[str, Element] = {}
    children: dict[str, list[tuple[Element, str]]] = {}
    for joint in joints.values():
        joint_type(joint)
        parent, child = _connected_link(joint, "parent", links), _connected_link(joint, "child", links)
        if child in parent_joint:
            other = parent_joint[child].attributes["name"]
            fail(joint, f"has the child {child!r}, as {other!r} has; a link has one parent")
        parent_joint[child] = joint
        children.setdefault(parent, []).append((joint, child))
    roots = [name for name in links if name not in parent_joint]
    if not roots:
        fail(robot, "has no root: its links form a cycle; leave one of them without a parent")
    return _Tree(links, joints, children, {name: x.attributes["name"] for name, x in parent_joint.items()}, roots)


def _depth_first(tree: _Tree) -> list[str]:
    """Links in the order of the model; links of a cycle are not reached."""
    order, stack = [], list(reversed(tree.roots))
    while stack:
        order.append(stack.pop())
        stack += [child for _, child in reversed(tree.children.get(order[-1], []))]
    return order


def _model_names(tree: _Tree, floating_base: bool, builder: ModelBuilder) -> tuple[dict[str, str], dict[str, int]]:
    """Names of the links in the model, and all names in use; `world` is reserved for the fixed world."""
    taken = dict.fromkeys((*tree.links, *tree.joints, "world"), 0)
    names = {name: name for name in tree.links}
    if "world" in names and ("world" not in tree.roots or floating_base):
        names["world"] = make_unique_name("world_link", taken)
        builder.add_note("link world", f"moves, but 'world' names the fixed world: called {names['world']}")
    return names, taken


def _add_root(
    root: str, names: dict[str, str], inertia: Inertia | None, builder: ModelBuilder, floating, taken, *, single: bool
):
    if names[root] == "world":
        if inertia is not None:
            builder.add_note("link world", "is the world and does not move: its mass is ignored")
        return
    joint = make_unique_name(ROOT_JOINT if single else f"{root}_{ROOT_JOINT}", taken)
    if not single:
        how = "floating" if floating else "fixed to the world, as in MuJoCo"
        builder.add_note(f"link {root}", f"is one of several roots: {how} (urdfdom refuses the file)")
    builder.add_link(names[root], "world", Free() if floating else Fixed(), inertia, joint_name=joint)
