"""Random URDF texts: valid robots with random structure and numbers, and oddities with their documented consequence."""

import random
from collections.abc import Callable
from typing import NamedTuple
from xml.etree import ElementTree as ET

KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
ALONG_AXIS = KINDS[:3]
NUMBERS = ("0", "-0", "1", "-1", "0.1", "-2.5", "1e-3", "-1.5E+0", "3.", ".5", "1e-12", "12.3456789", "+0.25")


class Oddity(NamedTuple):
    """A change of a robot, and what the two readers then do: `same`, or the reason for a difference."""

    apply: Callable[[ET.Element, random.Random], bool]
    #: "same", "both refuse", "jaxdyn refuses", "Pinocchio refuses", or what differs, such as "limits differ"
    outcome: str
    reason: str = ""


def _number(rng: random.Random) -> str:
    return rng.choice(NUMBERS) if rng.random() < 0.3 else repr(rng.uniform(-2, 2))


def _positive(rng: random.Random) -> str:
    return repr(10 ** rng.uniform(-4, 3))


def _vector(rng: random.Random) -> str:
    return rng.choice((" ", " ", "  ")).join(_number(rng) for _ in range(3))


def _axis(rng: random.Random) -> str:
    if rng.random() < 0.5:
        return rng.choice(("1 0 0", "0 1 0", "0 0 1", "-1 0 0", "0 0 -1", "0 2 0"))
    return " ".join(repr(rng.choice((-1, 1)) * rng.uniform(0.1, 1)) for _ in range(3))


def _origin(parent: ET.Element, rng: random.Random):
    if rng.random() < 0.8:
        given = {"xyz": _vector(rng), "rpy": _vector(rng)}
        ET.SubElement(parent, "origin", {k: v for k, v in given.items() if rng.random() < 0.8})


def _inertial(link: ET.Element, rng: random.Random):
    inertial = ET.SubElement(link, "inertial")
    _origin(inertial, rng)
    ET.SubElement(inertial, "mass", value=_positive(rng))
    six = {k: repr(rng.uniform(-0.1, 0.1)) for k in ("ixy", "ixz", "iyz")}
    six |= {k: repr(rng.uniform(0.5, 0.9)) for k in ("ixx", "iyy", "izz")}
    ET.SubElement(inertial, "inertia", six)


def random_robot(rng: random.Random) -> ET.Element:
    """A tree of 1 to 8 links."""
    robot = ET.Element("robot", name="r")
    count = rng.randrange(1, 9)
    for k in range(count):
        link = ET.SubElement(robot, "link", name=f"link{k}")
        if rng.random() < 0.85:
            _inertial(link, rng)
    for k in range(1, count):
        kind = rng.choices(KINDS, (5, 3, 3, 3, 1, 1))[0]
        joint = ET.SubElement(robot, "joint", name=f"joint{k}", type=kind)
        _origin(joint, rng)
        ET.SubElement(joint, "parent", link=f"link{rng.randrange(k)}")
        ET.SubElement(joint, "child", link=f"link{k}")
        if kind in ALONG_AXIS:
            _add_motion(joint, kind, rng)
        if kind == "planar":
            ET.SubElement(joint, "axis", xyz="0 0 1")
    _add_mimics(robot, rng)
    children = list(robot)
    rng.shuffle(children)
    robot[:] = children
    return robot


def _add_motion(joint: ET.Element, kind: str, rng: random.Random):
    if rng.random() < 0.9:
        ET.SubElement(joint, "axis", xyz=_axis(rng))
    if kind != "continuous" or rng.random() < 0.5:
        lower, upper = sorted(rng.uniform(-3, 3) for _ in range(2))
        given = {"lower": repr(lower), "upper": repr(upper)} if rng.random() < 0.9 else {"upper": repr(abs(upper))}
        ET.SubElement(joint, "limit", given | {"effort": _positive(rng), "velocity": _positive(rng)})
    if rng.random() < 0.4:
        given = {"damping": _positive(rng), "friction": _positive(rng)}
        given = {k: v for k, v in given.items() if rng.random() < 0.8}
        ET.SubElement(joint, "dynamics", given or {"damping": "0.5"})


def _add_mimics(robot: ET.Element, rng: random.Random):
    """Some joints mimic another one, in the tree above, below or beside them; in chains, without cycles."""
    joints = [joint for joint in robot.findall("joint") if joint.get("type") in ALONG_AXIS]
    rng.shuffle(joints)
    sources, has_chains = joints[:1], rng.random() < 0.3
    for joint in joints[1:]:
        follows = rng.random() < 0.4
        if follows:
            given = {"multiplier": _number(rng), "offset": _number(rng)}
            given = {key: value for key, value in given.items() if rng.random() < 0.8}
            ET.SubElement(joint, "mimic", given, joint=rng.choice(sources).get("name", ""))
        if has_chains or not follows:
            sources.append(joint)


def _on(path: str, change: Callable[[ET.Element, random.Random], bool | None]):
    """The oddity that changes one of the elements at a path; False if there is none."""

    def apply(robot: ET.Element, rng: random.Random) -> bool:
        found = robot.findall(path)
        return bool(found) and change(rng.choice(found), rng) is not False

    return apply


def _without(path: str, tag: str):
    def change(element: ET.Element, rng: random.Random) -> bool:
        inner = element.find(tag)
        if inner is not None:
            element.remove(inner)
        return inner is not None

    return _on(path, change)


def _set(path: str, key: str, *values: str):
    return _on(path, lambda element, rng: element.set(key, rng.choice(values)))


def _unset(path: str, *keys: str):
    return _on(path, lambda element, rng: bool(element.attrib.pop(rng.choice(keys), None)))


def _rename(robot: ET.Element, rng: random.Random) -> bool:
    """Names with blanks inside, points, slashes and other alphabets."""
    old = rng.choice(robot.findall("link")).get("name", "")
    new = rng.choice(("a b", "arm/0.x", "Gelenk-ä", "关节", "1", "LINK"))
    for element in robot.iter():
        for key in ("name", "link"):
            if element.tag in ("link", "parent", "child") and element.get(key) == old:
                element.set(key, new)
    return True


def _append(path: str, text: str):
    return _on(path, lambda element, rng: element.append(ET.fromstring(text)))


def _without_lower(limit: ET.Element, rng: random.Random):
    """The lower limit is then zero."""
    limit.attrib.pop("lower", None)
    limit.set("upper", _positive(rng))


def _empty_dynamics(joint: ET.Element, rng: random.Random):
    for element in joint.findall("dynamics"):
        joint.remove(element)
    ET.SubElement(joint, "dynamics")


def _mimic_other_kind(robot: ET.Element, rng: random.Random) -> bool:
    """A mimic of a joint that has no single coordinate."""
    mimics, others = robot.findall("joint/mimic"), [j for j in robot.findall("joint") if j.get("type") in KINDS[3:]]
    if mimics and others:
        rng.choice(mimics).set("joint", rng.choice(others).get("name", ""))
    return bool(mimics and others)


def _mimic_of_itself(joint: ET.Element, rng: random.Random) -> bool:
    mimic = joint.find("mimic")
    if mimic is not None:
        mimic.set("joint", joint.get("name", ""))
    return mimic is not None


_URDFDOM = "urdfdom takes the element for absent"
_LIMITED = "joint[@type='revolute']"
ODDITIES: dict[str, Oddity] = {
    "no inertia": Oddity(_without("link/inertial", "inertia"), "same"),
    "no mass": Oddity(_without("link/inertial", "mass"), "same"),
    "inertia without a moment": Oddity(_unset("link/inertial/inertia", "ixx", "iyy", "izz"), "same"),
    "inertia without a product": Oddity(_unset("link/inertial/inertia", "ixy", "ixz", "iyz"), "same"),
    "empty inertial": Oddity(_on("link", lambda x, rng: x[:] and x[0].clear()), "same"),
    "zero mass": Oddity(_set("link/inertial/mass", "value", "0", "0.0", "-0"), "same"),
    "unphysical inertia": Oddity(_set("link/inertial/inertia", "ixx", "5", "0"), "same"),
    "second inertial": Oddity(
        _append(
            "link", "<inertial><mass value='9'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/></inertial>"
        ),
        "same",
    ),
    "shape": Oddity(_append("link", "<visual><geometry><sphere radius='0.1'/></geometry></visual>"), "same"),
    "unknown element": Oddity(_append("link", "<gazebo reference='x'><mu>0.1</mu></gazebo>"), "same"),
    "unknown attribute": Oddity(_set("joint", "comment", "left", "1"), "same"),
    "transmission": Oddity(lambda robot, rng: robot.append(ET.Element("transmission", name="t")) is None, "same"),
    "other names": Oddity(_rename, "same"),
    "rpy of a half turn": Oddity(
        _set("joint/origin", "rpy", "3.141592653589793 0 0", "0 1.5707963267948966 0", "0 0 -3.14159"), "same"
    ),
    "blanks around vectors": Oddity(_set("joint/origin", "xyz", " 1  2 3 ", "1 2 3  "), "same"),
    "no axis": Oddity(_without(_LIMITED, "axis"), "same"),
    "planar without axis": Oddity(
        _without("joint[@type='planar']", "axis"),
        "placement and inertia differ",
        "the plane is normal to x, the default of URDF; Pinocchio takes z",
    ),
    "axis of another length": Oddity(_set(f"{_LIMITED}/axis", "xyz", "0 0 5", "1e-3 0 0", "3 4 0"), "same"),
    "no lower limit": Oddity(_on(f"{_LIMITED}/limit", _without_lower), "same"),
    "limits crossed": Oddity(
        _set(f"{_LIMITED}/limit", "lower", "100"), "limits differ", "crossed limits are noted and dropped"
    ),
    "no limit": Oddity(_without(_LIMITED, "limit"), "Pinocchio refuses", "no range, as MuJoCo assumes"),
    "no effort": Oddity(_unset(f"{_LIMITED}/limit", "effort", "velocity"), "Pinocchio refuses", "no limit assumed"),
    "empty dynamics": Oddity(
        _on("joint[@type='revolute']", _empty_dynamics), "Pinocchio refuses", "neither number is required"
    ),
    "no child": Oddity(_without("joint", "child"), "both refuse"),
    "unknown parent": Oddity(_set("joint/parent", "link", "nobody"), "both refuse"),
    "unknown type": Oddity(_set("joint", "type", "ball", "Revolute"), "both refuse"),
    "same name": Oddity(_append(".", "<link name='link0'/>"), "both refuse"),
    "second root": Oddity(_append(".", "<link name='root2'/>"), "Pinocchio refuses", "several roots, as in MuJoCo"),
    "blanks around a number": Oddity(
        _set("link/inertial/mass", "value", " 2 ", "2 ", "\t2"), "inertia differs", f"{_URDFDOM}; XML trims in jaxdyn"
    ),
    "mass with unit": Oddity(_set("link/inertial/mass", "value", "2 kg", "2kg", "1,5"), "jaxdyn refuses", _URDFDOM),
    "mass not a number": Oddity(_set("link/inertial/mass", "value", "nan", "inf", "", "x"), "jaxdyn refuses", _URDFDOM),
    "negative mass": Oddity(_set("link/inertial/mass", "value", "-2"), "jaxdyn refuses", "no body has it"),
    "zero axis": Oddity(_set(f"{_LIMITED}/axis", "xyz", "0 0 0"), "jaxdyn refuses", "the direction is unknown"),
    "vector of two": Oddity(_set("link/inertial/origin", "xyz", "1 2", "1 2 3 4"), "jaxdyn refuses", _URDFDOM),
    "mimic of nobody": Oddity(_set("joint/mimic", "joint", "nobody"), "same"),
    "mimic of a joint of another kind": Oddity(_mimic_other_kind, "same"),
    "mimicking joint of another kind": Oddity(
        _on("joint[@type='fixed']", lambda joint, rng: ET.SubElement(joint, "mimic", joint="joint1") is not None),
        "same",
    ),
    "mimic of itself": Oddity(_on("joint[mimic]", _mimic_of_itself), "jaxdyn refuses", "a cycle"),
    "mimic without a source": Oddity(_unset("joint/mimic", "joint"), "both refuse"),
    "multiplier not a number": Oddity(_set("joint/mimic", "multiplier", "x", "1 m", "", "nan", "inf"), "both refuse"),
    "negative effort": Oddity(_set(f"{_LIMITED}/limit", "effort", "-1"), "both refuse"),
}


def random_case(seed: int) -> tuple[str, str | None]:
    """A text, and the name of its oddity if it has one."""
    rng = random.Random(seed)
    robot = random_robot(rng)
    oddity = rng.choice(list(ODDITIES)) if rng.random() < 0.6 else None
    if oddity is not None and not ODDITIES[oddity].apply(robot, rng):
        oddity = None
    text = ET.tostring(robot, encoding="unicode")
    if rng.random() < 0.3:
        text = text.replace("><", rng.choice((">\n<", "><!-- note -->\n<", "> \t<")))
    return text, oddity
