"""Actuators and equality constraints of a compiled MuJoCo model, as descriptions."""

import numpy as np

from jaxdyn.io._mjcf_compiled import Compiled, Placing, distinct
from jaxdyn.io._mjcf_scene import site_placing

_WHOLE_LINE = (-np.inf, np.inf)


def add_actuators(source: Compiled):
    """Actuators on joints become `Actuator`; others are noted.

    With MuJoCo's `force = gain(ctrl) + bias`, a motor (constant gain, no bias) is driven by its control; for
    all others the drive's `u` is the actuator's force, and the report says how MuJoCo computes it.
    """
    m = source.m
    given = source.named(source.mujoco.mjtObj.mjOBJ_ACTUATOR, len(m.actuator_trntype), "actuator")
    for actuator, name in enumerate(distinct(given, set())):
        where = f"actuator {name!r}"
        gear = _joint_gear(source, actuator)
        if isinstance(gear, str):
            source.note(where, f"{gear}; it is not kept")
            continue
        joint = source.joints[int(m.actuator_trnid[actuator, 0])]
        motor = _motor_gain(source, actuator)
        if motor is not None:
            source.builder.add_actuator(name, joint, gear=motor * gear, range=_motor_range(source, actuator, motor))
            continue
        source.note(where, f"u is its force on the joint before the gear; in MuJoCo {_law(source, actuator)}")
        limited = m.actuator_forcelimited[actuator]
        reach = tuple(m.actuator_forcerange[actuator]) if limited else _WHOLE_LINE
        source.builder.add_actuator(name, joint, gear=gear, range=reach)


def _joint_gear(source: Compiled, actuator: int) -> np.ndarray | str:
    """Gear in our coordinates of the joint that it drives, or why there is none."""
    m, kinds, ways = source.m, source.mujoco.mjtJoint, source.mujoco.mjtTrn
    way, gear = ways(m.actuator_trntype[actuator]), source.gear(actuator)
    if way not in (ways.mjTRN_JOINT, ways.mjTRN_JOINTINPARENT):
        return f"acts through a {way.name[6:].lower()}, not on a joint"
    joint = int(m.actuator_trnid[actuator, 0])
    kind = kinds(m.jnt_type[joint])
    if kind in (kinds.mjJNT_HINGE, kinds.mjJNT_SLIDE):
        return gear[:1]
    if way == ways.mjTRN_JOINTINPARENT:
        return "acts along the parent's axes, which turn in the coordinates of the joint"
    if kind == kinds.mjJNT_BALL:
        return gear[:3]
    if gear[:3].any():
        return "pushes a free joint along the world's axes, which turn in the coordinates of the joint"
    return gear[3:] if joint in source.split else np.r_[gear[3:], np.zeros(3)]


def _motor_gain(source: Compiled, actuator: int) -> float | None:
    """The constant gain of an actuator that does nothing but multiply its control."""
    m, mujoco = source.m, source.mujoco
    plain = (
        mujoco.mjtGain(m.actuator_gaintype[actuator]) == mujoco.mjtGain.mjGAIN_FIXED
        and mujoco.mjtBias(m.actuator_biastype[actuator]) == mujoco.mjtBias.mjBIAS_NONE
        and mujoco.mjtDyn(m.actuator_dyntype[actuator]) == mujoco.mjtDyn.mjDYN_NONE
        and source.array("actuator_plugin", "actuator_trntype")[actuator] < 0
    )
    return float(m.actuator_gainprm[actuator, 0]) if plain else None


def _motor_range(source: Compiled, actuator: int, gain: float) -> tuple[float, float]:
    """Controls within their own range and within that of the force."""
    m = source.m
    low, high = _control_range(source, actuator)
    if m.actuator_forcelimited[actuator] and gain:
        ends = sorted(float(x) / gain for x in m.actuator_forcerange[actuator])
        low, high = max(low, ends[0]), min(high, ends[1])
    return low, high


def _control_range(source: Compiled, actuator: int) -> tuple[float, float]:
    m = source.m
    row = int(m.actuator_ctrladr[actuator]) if hasattr(m, "actuator_ctrladr") else actuator
    if not m.actuator_ctrllimited[row] or source.disabled("CLAMPCTRL"):
        return _WHOLE_LINE
    return float(m.actuator_ctrlrange[row, 0]), float(m.actuator_ctrlrange[row, 1])


def _law(source: Compiled, actuator: int) -> str:
    """How MuJoCo computes an actuator's force, in words."""
    m, mujoco = source.m, source.mujoco
    if source.array("actuator_plugin", "actuator_trntype")[actuator] >= 0:
        return "a plugin computes it, which is not kept"
    gain, bias = mujoco.mjtGain(m.actuator_gaintype[actuator]), mujoco.mjtBias(m.actuator_biastype[actuator])
    dynamics = mujoco.mjtDyn(m.actuator_dyntype[actuator])
    affine = gain in (mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtGain.mjGAIN_AFFINE) and bias in (
        mujoco.mjtBias.mjBIAS_NONE,
        mujoco.mjtBias.mjBIAS_AFFINE,
    )
    if not affine:
        return f"it follows the law {gain.name[7:].lower()}, which is not kept"
    word = "ctrl" if dynamics == mujoco.mjtDyn.mjDYN_NONE else f"act ({dynamics.name[6:].lower()} of ctrl)"
    slope = m.actuator_gainprm[actuator, :3] * ([1, 0, 0] if gain == mujoco.mjtGain.mjGAIN_FIXED else [1, 1, 1])
    offset = m.actuator_biasprm[actuator, :3] * (bias == mujoco.mjtBias.mjBIAS_AFFINE)
    factor = _sum(slope, ("", " length", " velocity"))
    factor = f"({factor})" if np.count_nonzero(slope) > 1 else factor
    law = f"{factor} {word} + {_sum(offset, ('', ' length', ' velocity'))}" if offset.any() else f"{factor} {word}"
    low, high = _control_range(source, actuator)
    within = f", ctrl within [{low:g}, {high:g}]" if np.isfinite([low, high]).any() else ""
    return f"u = {law.replace('+ -', '- ')}{within}, with length and velocity behind the gear"


def _sum(numbers, words) -> str:
    terms = [f"{x:g}{word}" for x, word in zip(numbers, words, strict=True) if x]
    return " + ".join(terms) or "0"


# --- equality constraints --------------------------------------------------------------------------


def add_equalities(source: Compiled):
    """Connects, welds and couplings of joints become `Closure` and `Coupling`; others are noted."""
    m, kinds = source.m, source.mujoco.mjtEq
    given = source.named(source.mujoco.mjtObj.mjOBJ_EQUALITY, m.neq, "equality")
    for equality, name in enumerate(distinct(given, set())):
        where, kind = f"equality {name!r}", kinds(m.eq_type[equality])
        if not m.eq_active0[equality] or source.disabled("EQUALITY", "CONSTRAINT"):
            source.note(where, "is switched off; it is not kept")
        elif kind == kinds.mjEQ_JOINT:
            _add_coupling(source, equality, name)
        elif kind in (kinds.mjEQ_CONNECT, kinds.mjEQ_WELD):
            _add_closure(source, equality, name, "weld" if kind == kinds.mjEQ_WELD else "point")
        else:
            source.note(where, f"ties {kind.name[5:].lower()}s, which have no counterpart; it is not kept")


def _add_closure(source: Compiled, equality: int, name: str, kind: str):
    """The two frames that MuJoCo makes coincide: two sites, or `eq_data` in two bodies (`mj_instantiateEqual`)."""
    m = source.m
    ends = [int(m.eq_obj1id[equality]), int(m.eq_obj2id[equality])]
    if m.eq_objtype[equality] == int(source.mujoco.mjtObj.mjOBJ_SITE):
        frames = [site_placing(m, site) for site in ends]
        ends = [int(m.site_bodyid[site]) for site in ends]
    else:
        data = np.array(m.eq_data[equality])
        frames = (
            [Placing(data[6:10], data[3:6]), Placing(translation=data[:3])]
            if kind == "weld"
            else [Placing(translation=data[:3]), Placing(translation=data[3:6])]
        )
    first, second = (
        (source.links[body], (frame.quaternion, frame.translation)) for body, frame in zip(ends, frames, strict=True)
    )
    source.builder.add_closure(name, kind, first, second)


def _add_coupling(source: Compiled, equality: int, name: str):
    """`q1 - r1 = sum c_k (q2 - r2)^k`, written as a polynomial in q2; r are the values of qpos0."""
    m = source.m
    ends = int(m.eq_obj1id[equality]), int(m.eq_obj2id[equality])
    reference = [float(m.qpos0[m.jnt_qposadr[j]]) if j >= 0 else 0.0 for j in ends]
    if ends[1] < 0:
        constant = np.array([m.eq_data[equality, 0] + reference[0]])
        source.builder.add_coupling(name, source.joints[ends[0]], None, constant)
        return
    shifted = np.zeros(5)
    for coefficient in m.eq_data[equality, 4::-1]:  # Horner's scheme in (q2 - r2)
        shifted = np.r_[coefficient, shifted[:-1]] - reference[1] * shifted
    shifted[0] += reference[0]
    source.builder.add_coupling(name, source.joints[ends[0]], source.joints[ends[1]], shifted)
