"""What of a compiled MuJoCo model has no counterpart: refused if it takes part in the rigid dynamics, else noted."""

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from jaxdyn._errors import FileFormatError
from jaxdyn.io._mjcf_compiled import Compiled
from jaxdyn.io._xml import Bounds

_NUMBERS = (
    *("body_pos", "body_quat", "body_ipos", "body_iquat", "body_mass", "body_inertia", "qpos0", "qpos_spring"),
    *("jnt_pos", "jnt_axis", "jnt_stiffness", "jnt_range", "jnt_actfrcrange", "dof_armature", "dof_damping"),
    *("dof_frictionloss", "site_pos", "site_quat", "geom_pos", "geom_quat", "geom_size", "geom_rgba", "mat_rgba"),
    *("mesh_pos", "mesh_quat", "mesh_scale", "eq_data", "actuator_gear", "actuator_gainprm", "actuator_biasprm"),
    *("actuator_ctrlrange", "actuator_forcerange"),
)
_FLAGS = ("GRAVITY", "SPRING", "DAMPER", "PASSIVE", "FRICTIONLOSS", "LIMIT", "EQUALITY", "CONSTRAINT")


def check_numbers(mujoco: ModuleType, m: Any, origin: str, bounds: Bounds):
    """Raises for numbers that are none, and for more bodies than are allowed."""
    if m.nbody - 1 > bounds.max_links:
        raise FileFormatError(
            f"{origin}: has {m.nbody - 1} bodies, more than {bounds.max_links}; if you trust it, raise "
            "bounds=Bounds(max_links=...)"
        )
    if not np.isfinite(m.opt.gravity).all():
        raise FileFormatError(f"{origin}: gravity is {m.opt.gravity}; give three finite numbers")
    for name in _NUMBERS:
        rows = np.asarray(getattr(m, name))
        if not np.isfinite(rows).all():
            row = int(np.argwhere(~np.isfinite(rows))[0][0])
            raise FileFormatError(
                f"{origin}: {name}[{row}]{_name_of(mujoco, m, name, row)} is {rows[row]}; give finite numbers"
            )


def _name_of(mujoco: ModuleType, m: Any, field: str, row: int) -> str:
    """The name that the file gives to a row of a field of MuJoCo's model, if it has one."""
    stem = field.partition("_")[0]
    kinds = {"jnt": "JOINT", "eq": "EQUALITY", "mat": "MATERIAL", "dof": "JOINT"}
    kind = getattr(mujoco.mjtObj, f"mjOBJ_{kinds.get(stem, stem.upper())}", None)
    at = int(m.dof_jntid[row]) if stem == "dof" else row
    name = mujoco.mj_id2name(m, kind, at) if kind is not None else None
    return f" of {name!r}" if name else ""


def refuse_unsupported(source: Compiled):
    """Raises for what would change the rigid dynamics."""
    m = source.m
    for name, armature in zip(_tendons(source), _tendon_armature(source), strict=True):
        if armature:
            raise FileFormatError(
                f"{source.origin}: tendon {name!r} has armature {armature:g} kg, an inertia that couples the joints "
                "it passes; remove it, or give the joints an armature of their own"
            )
    soft = [i for i in range(m.nflex) if not m.flex_rigid[i]]
    if soft:
        names = source.named(source.mujoco.mjtObj.mjOBJ_FLEX, m.nflex, "flex")
        raise FileFormatError(
            f"{source.origin}: flex {names[soft[0]]!r} is a deformable body, whose points would fall apart as rigid "
            "ones; remove it from the file"
        )


def _tendons(source: Compiled) -> list[str]:
    return source.named(source.mujoco.mjtObj.mjOBJ_TENDON, source.m.ntendon, "tendon")


def _tendon_armature(source: Compiled) -> np.ndarray:
    """Of the tendons themselves, and of the actuators on them (MuJoCo 4)."""
    m = source.m
    out = np.array(source.array("tendon_armature", "tendon_type"), float)
    if hasattr(m, "actuator_armature"):
        on_tendons = m.actuator_trntype == int(source.mujoco.mjtTrn.mjTRN_TENDON)
        for actuator in np.flatnonzero(on_tendons & (m.actuator_armature > 0)):
            out[m.actuator_trnid[actuator, 0]] += source.gear(int(actuator))[0] ** 2 * m.actuator_armature[actuator]
    return out


def report(source: Compiled, warnings: Sequence[str]):
    """Notes on everything that is left out or read in a way of its own."""
    for text in dict.fromkeys(" ".join(w.split()) for w in warnings):
        source.note("MuJoCo's compiler", text)
    for part in (_switches, _options, _joints, _bodies, _others, _keyframes):
        for where, what in part(source):
            source.note(where, what)


def _switches(source: Compiled) -> Iterator[tuple[str, str]]:
    off = [flag.lower() for flag in _FLAGS if source.disabled(flag)]
    if off:
        yield "option", f"the file switches off {', '.join(off)}; so it is zero, unlimited or left out here"


def _options(source: Compiled) -> Iterator[tuple[str, str]]:
    m = source.m
    if m.opt.density or m.opt.viscosity:
        yield (
            "option",
            f"forces of a medium (density {m.opt.density:g} kg/m^3, viscosity {m.opt.viscosity:g} Pa s) are left out",
        )
    if source.disabled("ACTUATION"):
        yield "option", "the file switches off actuation; its actuators are kept"
    if m.opt.disableactuator:
        yield "option", "actuator groups are switched off in the file; their actuators are kept"
    if (m.geom_contype.any() and m.geom_conaffinity.any()) or m.npair:
        lists = f", with {m.npair} pairs and {m.nexclude} exclusions" if m.npair + m.nexclude else ""
        yield "contact", f"MuJoCo's soft contact is left out{lists}; geoms are kept as shapes"
    if m.neq or m.jnt_limited.any() or m.dof_frictionloss.any():
        yield (
            "constraints",
            "solref, solimp and margin, which soften limits, friction and equalities in MuJoCo, are left out",
        )


def _joints(source: Compiled) -> Iterator[tuple[str, str]]:
    m, kinds = source.m, source.mujoco.mjtJoint
    names = lambda rows: ", ".join(repr(source.joints[int(j)]) for j in np.unique(rows))
    scalar = (m.jnt_type == int(kinds.mjJNT_HINGE)) | (m.jnt_type == int(kinds.mjJNT_SLIDE))
    first = np.abs(m.qpos0[m.jnt_qposadr]) * scalar
    lower, upper = m.jnt_actfrcrange.T
    rows = {
        "q is measured from the pose of the file by its ref, as qpos is, so that it is not zero there": first > 0,
        "the limit on the angle of a ball joint is left out": (m.jnt_limited != 0) & ~scalar,
        "the effort limit is the larger of the two sides": (m.jnt_actfrclimited != 0) & (lower != -upper),
        "the force against gravity goes through the actuators in MuJoCo; it is left out": m.jnt_actgravcomp != 0,
        "the higher coefficients of a nonlinear spring are left out": _any(source, "jnt_stiffnesspoly", "jnt_type"),
        "the yielding of its spring is left out": source.array("jnt_springyield", "jnt_type") > 0,
    }
    for what, flags in rows.items():
        if flags.any():
            yield f"joint {names(np.flatnonzero(flags))}", what
    poly = _any(source, "dof_dampingpoly", "dof_damping")
    if poly.any():
        yield (
            f"joint {names(m.dof_jntid[poly])}",
            "damping grows with speed; only its linear coefficient is kept",
        )
    drives = _any(source, "actuator_dampingpoly", "actuator_trntype")
    on_joints = drives & (m.actuator_trntype == int(source.mujoco.mjtTrn.mjTRN_JOINT))
    if on_joints.any():
        yield (
            f"joint {names(m.actuator_trnid[on_joints, 0])}",
            "an actuator's damping grows with speed; only its linear coefficient is kept",
        )
    free = [source.joints[j] for j in range(m.njnt) if m.jnt_type[j] == int(kinds.mjJNT_FREE) and j not in source.split]
    if free:
        yield (
            f"joint {', '.join(map(repr, free))}",
            "q is [w x y z, position] and v is [angular, linear] in body axes, where MuJoCo has the position first "
            "and the linear velocity in world axes",
        )


def _any(source: Compiled, name: str, like: str) -> np.ndarray:
    values = source.array(name, like)
    return (values != 0).reshape(len(values), np.prod(values.shape[1:], dtype=int)).any(axis=1)


def _bodies(source: Compiled) -> Iterator[tuple[str, str]]:
    m = source.m
    listed = lambda rows: ", ".join(repr(source.links[int(b)]) for b in rows)
    floating = np.flatnonzero(m.body_gravcomp)
    if len(floating):
        yield f"body {listed(floating)}", "its force against gravity (gravcomp) is left out"
    plugged = np.flatnonzero(m.body_plugin >= 0)
    if len(plugged):
        yield f"body {listed(plugged)}", "the forces of its plugin are left out"
    wet = np.flatnonzero(m.geom_fluid[:, 0] > 0)
    if len(wet):
        yield f"body {listed(np.unique(m.geom_bodyid[wet]))}", "the fluid forces on its geoms are left out"


def _others(source: Compiled) -> Iterator[tuple[str, str]]:
    m = source.m
    for i, name in enumerate(_tendons(source)):
        parts = ("stiffness", "damping", "frictionloss", "limited")
        has = [part for part in parts if np.any(getattr(m, f"tendon_{part}")[i])]
        yield f"tendon {name!r}", f"is left out{', with its ' + ', '.join(has) if has else ''}"
    counts = {
        "flex": (m.nflex, "rigid flexes, which only touch,"),
        "skin": (m.nskin, "skins"),
        "sensor": (m.nsensor, "sensors"),
        "camera": (m.ncam, "cameras"),
        "light": (m.nlight, "lights"),
        "custom": (m.nnumeric + m.ntext + m.ntuple, "numbers, texts and tuples of the user"),
        "userdata": (m.nuserdata, "numbers for callbacks"),
    }
    for where, (count, what) in counts.items():
        if count:
            yield where, f"{what} are left out ({count})"


def _keyframes(source: Compiled) -> Iterator[tuple[str, str]]:
    m = source.m
    names = source.named(source.mujoco.mjtObj.mjOBJ_KEY, m.nkey, "key")
    if names:
        yield "keyframe", f"{', '.join(map(repr, names))}: states are not part of a model; read them with mujoco"
