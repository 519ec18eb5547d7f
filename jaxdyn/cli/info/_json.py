"""The description of a model for other programs."""

import json
from typing import Any

import numpy as np

from jaxdyn.model import Model


def describe_json(model: Model) -> str:
    """Links, joints, frames and report of a model in JSON; a number that is not finite is null."""
    t = model.topology
    followers = dict(t.mimics)
    joints = [_joint(model, k, followers) for k in range(len(t.joint_names))]
    links = [_link(model, k) for k in range(model.num_links)]
    frames = [
        {"name": name, "link": t.link_names[link], "translation": _list(model.frames.translation[k])}
        for k, (name, link) in enumerate(zip(t.frame_names, t.frame_links, strict=True))
    ]
    robot = {
        "name": model.name,
        "nq": model.nq,
        "nv": model.nv,
        "mass": float(np.sum(np.asarray(model.links.mass))),
        "gravity": _list(model.gravity),
        "links": links,
        "joints": joints,
        "frames": frames,
        "closures": len(model.closures),
        "report": [str(note) for note in model.report],
    }
    return json.dumps(robot, indent=2, allow_nan=False)


def _link(model: Model, k: int) -> dict[str, Any]:
    name = model.topology.link_names[k]
    view = model.link(name)
    inertia = [_list(row) for row in np.asarray(view.inertia)]
    return {"name": name, "parent": view.parent, "mass": float(view.mass), "com": _list(view.com), "inertia": inertia}


def _joint(model: Model, k: int, followers: dict[int, int]) -> dict[str, Any]:
    names = model.topology.joint_names
    view, limits, properties = model.joint(names[k]), model.limits, model.properties
    source = followers.get(k)
    own = source is None  # a mimic has the coordinates of its source
    return {
        "name": names[k],
        "link": model.topology.link_names[k],
        "type": type(view.joint).__name__,
        "mimics": None if source is None else names[source],
        "q": list(range(view.q.start, view.q.stop)) if own else [],
        "v": list(range(view.v.start, view.v.stop)) if own else [],
        "lower": _list(limits.lower[view.q]) if own else [],
        "upper": _list(limits.upper[view.q]) if own else [],
        "velocity": _list(limits.velocity[view.v]) if own else [],
        "effort": _list(limits.effort[view.v]) if own else [],
        "damping": _list(properties.damping[view.v]) if own else [],
        "friction": _list(properties.friction[view.v]) if own else [],
        "armature": _list(properties.armature[view.v]) if own else [],
    }


def _list(x: Any) -> list[float | None]:
    return [float(y) if np.isfinite(y) else None for y in np.asarray(x, float).ravel()]
