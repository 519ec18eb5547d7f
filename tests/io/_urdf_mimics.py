"""Joints of a random URDF that mimic others, beside Pinocchio's joints of the same file, mimicking and independent.

Pinocchio's mimic joints have a source that is independent, comes earlier in its order of joints and has as many
coordinates (two for continuous joints); it refuses other sources. The relations of jaxdyn are therefore compared with
the text, and with Pinocchio's where it has them. Its mass matrix is `G^T M G`, with M of the independent joints and G
of jaxdyn's relations.
"""

from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pinocchio as pin

import jaxdyn as jd

from ._random_urdf import ALONG_AXIS

TOLERANCE = 1e-9
Relations = dict[str, tuple[str, float, float]]


def relations_of(model: jd.Model) -> Relations:
    """Source, ratio and offset of each joint that mimics another one."""
    names, ratio, offset = model.joint_names, np.asarray(model.mimic.ratio), np.asarray(model.mimic.offset)
    return {
        names[a]: (names[b], float(r), float(o))
        for (a, b), r, o in zip(model.topology.mimics, ratio, offset, strict=True)
    }


def relations_in(text: str) -> Relations:
    """The same from the text: the coordinate of the independent joint is followed at 0 and at 1."""
    joints = {joint.get("name", ""): joint for joint in ET.fromstring(text).findall("joint")}
    mimics = {name: joint.find("mimic") for name, joint in joints.items() if joint.get("type") in ALONG_AXIS}

    def followed(name: str, x: float) -> tuple[str, float]:
        mimic = mimics[name]
        if mimic is None or mimic.get("joint") not in mimics:
            return name, x
        source, y = followed(mimic.get("joint", ""), x)
        return source, float(mimic.get("multiplier", "1")) * y + float(mimic.get("offset", "0"))

    ends = {name: (followed(name, 0.0), followed(name, 1.0)) for name in mimics}
    return {name: (a[0], b[1] - a[1], a[1]) for name, (a, b) in ends.items() if a[0] != name}


def are_equal(ours: Relations, other: Relations) -> bool:
    """True if two sets of relations agree to rounding."""
    return ours.keys() == other.keys() and all(
        ours[name][0] == other[name][0] and np.allclose(ours[name][1:], other[name][1:], rtol=TOLERANCE, atol=TOLERANCE)
        for name in ours
    )


def mimicking_model(text: str, independent: Any) -> Any | None:
    """Pinocchio's model with its mimic joints, or None if the text has relations that Pinocchio refuses."""
    try:
        return pin.buildModelFromXML(text, mimic=True)
    except ValueError:
        if _has_unsupported(text, independent):
            return None
        raise


def _has_unsupported(text: str, independent: Any) -> bool:
    joints = {joint.get("name", ""): joint for joint in ET.fromstring(text).findall("joint")}
    for joint in joints.values():
        mimic = joint.find("mimic")
        if mimic is None or joint.get("type") not in ALONG_AXIS:
            continue
        source = joints.get(mimic.get("joint", ""))
        if source is None or source.get("type") not in ALONG_AXIS or source.find("mimic") is not None:
            return True
        first, second = (independent.getJointId(x.get("name", "")) for x in (source, joint))
        if first > second or independent.joints[first].nq != independent.joints[second].nq:
            return True
    return False


def native_relations(mimicking: Any) -> Relations:
    """The relations of Pinocchio's mimic joints."""
    pairs = zip(mimicking.mimicking_joints, mimicking.mimicked_joints, strict=True)
    joints = {mimicking.names[a]: (mimicking.names[b], mimicking.joints[a].extract()) for a, b in pairs}
    return {name: (source, joint.scaling, joint.offset) for name, (source, joint) in joints.items()}


def has_reduced_mass_matrix(mimicking: Any, independent: Any, relations: Relations, seed: int) -> bool:
    """True if the mass matrix of the mimicking joints is `G^T M G` at a random configuration."""
    rng = np.random.default_rng(seed)
    names = list(independent.names)[1:]
    states = {name: rng.uniform(-1, 1, 4) for name in names}
    for name, (source, ratio, offset) in relations.items():
        states[name] = ratio * states[source][:1] + offset
    gear = np.zeros((independent.nv, mimicking.nv))
    for name in names:
        joint = independent.joints[independent.getJointId(name)]
        source, ratio, _ = relations.get(name, (name, 1.0, 0.0))
        driver = mimicking.joints[mimicking.getJointId(source)]
        rows, columns = (np.arange(joint.nv) + k for k in (joint.idx_v, driver.idx_v))
        gear[rows, columns] = ratio
    left = _mass_matrix(mimicking, {name: states[name] for name in names if name not in relations})
    right = gear.T @ _mass_matrix(independent, states) @ gear
    return bool(np.abs(left - right).max(initial=0) <= TOLERANCE * (1 + np.abs(right).max(initial=0)))


def _mass_matrix(model: Any, states: dict[str, np.ndarray]) -> np.ndarray:
    q = np.zeros(model.nq)
    for name, x in states.items():
        joint = model.joints[model.getJointId(name)]
        q[joint.idx_q : joint.idx_q + joint.nq] = _coordinates(joint.nq, x)
    # by inverse dynamics: `crba` of Pinocchio 4.1 leaves entries of mimic joints beside their source uninitialised
    data, still = model.createData(), np.zeros(model.nv)
    columns = [pin.rnea(model, data, q, still, a) for a in np.eye(model.nv)]
    return np.reshape(columns, (model.nv, model.nv)).T - pin.rnea(model, data, q, still, still)[:, None]


def _coordinates(nq: int, x: np.ndarray) -> np.ndarray:
    """Coordinates in Pinocchio: cosine and sine of continuous and planar joints, positions with quaternions."""
    if nq == 7:
        return np.r_[x[:3], x / np.linalg.norm(x)]
    if nq == 1:
        return x[:1]
    circle = np.array([np.cos(x[0]), np.sin(x[0])])
    return circle if nq == 2 else np.r_[x[1:3], circle]
