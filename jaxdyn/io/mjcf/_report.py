"""Unsupported content of a compiled MuJoCo model: refused if it affects the rigid dynamics, otherwise noted."""

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from jaxdyn._errors import FileFormatError
from jaxdyn.io.files import ParsingLimits
from jaxdyn.io.mjcf._compiled import CompiledModel

_NUMBERS = (
    *("body_pos", "body_quat", "body_ipos", "body_iquat", "body_mass", "body_inertia", "qpos0", "qpos_spring"),
    *("jnt_pos", "jnt_axis", "jnt_stiffness", "jnt_range", "jnt_actfrcrange", "dof_armature", "dof_damping"),
    *("dof_frictionloss", "site_pos", "site_quat", "geom_pos", "geom_quat", "geom_size", "geom_rgba", "mat_rgba"),
    *("mesh_pos", "mesh_quat", "mesh_scale", "eq_data", "actuator_gear", "actuator_gainprm", "actuator_biasprm"),
    *("actuator_ctrlrange", "actuator_forcerange"),
)
_FLAGS = ("GRAVITY", "SPRING", "DAMPER", "PASSIVE", "FRICTIONLOSS", "LIMIT", "EQUALITY", "CONSTRAINT")


def check_numbers(mujoco: ModuleType, m: Any, origin: str, bounds: ParsingLimits):
    """Raises for NaN and infinite numbers, and for more bodies than `bounds` allows."""
    if m.nbody - 1 > bounds.max_links:
        raise FileFormatError(
            f"{origin}: has {m.nbody - 1} bodies, more than {bounds.max_links}; if you trust it, raise "
            "bounds=ParsingLimits(max_links=...)"
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
    """The name in the file of the element in a row of a field, as ` of 'name'`, or an empty text."""
    stem = field.partition("_")[0]
    kinds = {"jnt": "JOINT", "eq": "EQUALITY", "mat": "MATERIAL", "dof": "JOINT"}
    kind = getattr(mujoco.mjtObj, f"mjOBJ_{kinds.get(stem, stem.upper())}", None)
    index = int(m.dof_jntid[row]) if stem == "dof" else row
    name = mujoco.mj_id2name(m, kind, index) if kind is not None else None
    return f" of {name!r}" if name else ""


def refuse_unsupported(source: CompiledModel):
    """Raises for unsupported content that would change the rigid dynamics."""
    m = source.m
    for name, armature in zip(_tendons(source), _tendon_armature(source), strict=True):
        if armature:
            raise FileFormatError(
                f"{source.origin}: tendon {name!r} has armature {armature:g} kg, an inertia that couples its "
                "joints; remove it, or give the joints an armature of their own"
            )
    deformable = [i for i in range(m.nflex) if not m.flex_rigid[i]]
    if deformable:
        names = source.element_names(source.mujoco.mjtObj.mjOBJ_FLEX, m.nflex, "flex")
        raise FileFormatError(
            f"{source.origin}: flex {names[deformable[0]]!r} is a deformable body, which is not supported; "
            "remove it from the file"
        )


def _tendons(source: CompiledModel) -> list[str]:
    return source.element_names(source.mujoco.mjtObj.mjOBJ_TENDON, source.m.ntendon, "tendon")


def _tendon_armature(source: CompiledModel) -> np.ndarray:
    """Armature of each tendon and of the actuators on it (MuJoCo 4), kg."""
    m = source.m
    out = np.array(source.field_or_zeros("tendon_armature", "tendon_type"), float)
    if hasattr(m, "actuator_armature"):
        on_tendons = m.actuator_trntype == int(source.mujoco.mjtTrn.mjTRN_TENDON)
        for actuator in np.flatnonzero(on_tendons & (m.actuator_armature > 0)):
            out[m.actuator_trnid[actuator, 0]] += source.gear(int(actuator))[0] ** 2 * m.actuator_armature[actuator]
    return out


def note_omissions(source: CompiledModel, warnings: Sequence[str]):
    """Notes everything that is ignored or interpreted differently."""
    for text in dict.fromkeys(" ".join(w.split()) for w in warnings):
        source.note("MuJoCo's compiler", text)
    for part in (_switches, _options, _joints, _bodies, _others, _keyframes):
        for where, text in part(source):
            source.note(where, text)


def _switches(source: CompiledModel) -> Iterator[tuple[str, str]]:
    off = [flag.lower() for flag in _FLAGS if source.is_disabled(flag)]
    if off:
        yield "option", f"the file disables {', '.join(off)}: zero, unlimited or ignored here"


def _options(source: CompiledModel) -> Iterator[tuple[str, str]]:
    m = source.m
    if m.opt.density or m.opt.viscosity:
        yield (
            "option",
            f"forces of the medium (density {m.opt.density:g} kg/m^3, viscosity {m.opt.viscosity:g} Pa s) are ignored",
        )
    if source.is_disabled("ACTUATION"):
        yield "option", "the file disables actuation; its actuators are kept"
    if m.opt.disableactuator:
        yield "option", "the file disables groups of actuators; these are kept"
    if (m.geom_contype.any() and m.geom_conaffinity.any()) or m.npair:
        lists = f", with {m.npair} pairs and {m.nexclude} exclusions" if m.npair + m.nexclude else ""
        yield "contact", f"MuJoCo's soft contact is ignored{lists}; geoms are kept as shapes"
    if m.neq or m.jnt_limited.any() or m.dof_frictionloss.any():
        yield (
            "constraints",
            "solref, solimp and margin, which soften limits, friction and equalities in MuJoCo, are ignored",
        )


def _joints(source: CompiledModel) -> Iterator[tuple[str, str]]:
    m, kinds = source.m, source.mujoco.mjtJoint
    names = lambda rows: ", ".join(repr(source.joints[int(j)]) for j in np.unique(rows))
    is_scalar = (m.jnt_type == int(kinds.mjJNT_HINGE)) | (m.jnt_type == int(kinds.mjJNT_SLIDE))
    first = np.abs(m.qpos0[m.jnt_qposadr]) * is_scalar
    lower, upper = m.jnt_actfrcrange.T
    rows = {
        "q equals qpos, which is ref and not zero in the pose of the file": first > 0,
        "the limit on the angle of a ball joint is ignored": (m.jnt_limited != 0) & ~is_scalar,
        "the effort limit is the larger of the two sides": (m.jnt_actfrclimited != 0) & (lower != -upper),
        "gravity compensation by the actuators is ignored": m.jnt_actgravcomp != 0,
        "the higher coefficients of a nonlinear spring are ignored": _has_nonzero(
            source, "jnt_stiffnesspoly", "jnt_type"
        ),
        "the yielding of its spring is ignored": source.field_or_zeros("jnt_springyield", "jnt_type") > 0,
    }
    for text, flags in rows.items():
        if flags.any():
            yield f"joint {names(np.flatnonzero(flags))}", text
    poly = _has_nonzero(source, "dof_dampingpoly", "dof_damping")
    if poly.any():
        yield (
            f"joint {names(m.dof_jntid[poly])}",
            "damping is nonlinear; only its linear coefficient is kept",
        )
    drives = _has_nonzero(source, "actuator_dampingpoly", "actuator_trntype")
    on_joints = drives & (m.actuator_trntype == int(source.mujoco.mjtTrn.mjTRN_JOINT))
    if on_joints.any():
        yield (
            f"joint {names(m.actuator_trnid[on_joints, 0])}",
            "the damping of an actuator is nonlinear; only its linear coefficient is kept",
        )
    free = [source.joints[j] for j in range(m.njnt) if m.jnt_type[j] == int(kinds.mjJNT_FREE) and j not in source.split]
    if free:
        yield (
            f"joint {', '.join(map(repr, free))}",
            "q is [w x y z, position] and v is [angular, linear] in body axes, where MuJoCo has the position first "
            "and the linear velocity in world axes",
        )


def _has_nonzero(source: CompiledModel, name: str, like: str) -> np.ndarray:
    values = source.field_or_zeros(name, like)
    return (values != 0).reshape(len(values), np.prod(values.shape[1:], dtype=int)).any(axis=1)


def _bodies(source: CompiledModel) -> Iterator[tuple[str, str]]:
    m = source.m
    names = lambda rows: ", ".join(repr(source.links[int(b)]) for b in rows)
    compensated = np.flatnonzero(m.body_gravcomp)
    if len(compensated):
        yield f"body {names(compensated)}", "its gravity compensation (gravcomp) is ignored"
    with_plugin = np.flatnonzero(m.body_plugin >= 0)
    if len(with_plugin):
        yield f"body {names(with_plugin)}", "the forces of its plugin are ignored"
    with_fluid = np.flatnonzero(m.geom_fluid[:, 0] > 0)
    if len(with_fluid):
        yield f"body {names(np.unique(m.geom_bodyid[with_fluid]))}", "the fluid forces on its geoms are ignored"


def _others(source: CompiledModel) -> Iterator[tuple[str, str]]:
    m = source.m
    for i, name in enumerate(_tendons(source)):
        parts = ("stiffness", "damping", "frictionloss", "limited")
        has = [part for part in parts if np.any(getattr(m, f"tendon_{part}")[i])]
        if i not in source.coupled_tendons:
            yield f"tendon {name!r}", f"is ignored{', with its ' + ', '.join(has) if has else ''}"
        elif has:
            yield f"tendon {name!r}", f"its {', '.join(has)} is ignored"
    counts = {
        "flex": (m.nflex, "rigid flexes, which only make contact,"),
        "skin": (m.nskin, "skins"),
        "sensor": (m.nsensor, "sensors"),
        "camera": (m.ncam, "cameras"),
        "light": (m.nlight, "lights"),
        "custom": (m.nnumeric + m.ntext + m.ntuple, "user-defined numbers, texts and tuples"),
        "userdata": (m.nuserdata, "numbers for callbacks"),
    }
    for where, (count, content) in counts.items():
        if count:
            yield where, f"{content} are ignored ({count})"


def _keyframes(source: CompiledModel) -> Iterator[tuple[str, str]]:
    m = source.m
    names = source.element_names(source.mujoco.mjtObj.mjOBJ_KEY, m.nkey, "key")
    if names:
        yield "keyframe", f"{', '.join(map(repr, names))}: keyframes are not part of a model; read them with mujoco"
