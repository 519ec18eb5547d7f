"""Actuators and equality constraints of a compiled MuJoCo model, as `Actuator`, `Closure` and `Coupling`."""

from collections.abc import Iterable

import numpy as np

from jaxdyn.io.mjcf._compiled import CompiledModel, NumpyPose, make_distinct
from jaxdyn.io.mjcf._scene import site_pose
from jaxdyn.io.mjcf._tendons import add_tendon_coupling, shift_polynomial

_UNBOUNDED = (-np.inf, np.inf)


def add_actuators(source: CompiledModel):
    """Adds actuators on joints; the report names the others.

    MuJoCo's law is `force = gain(ctrl) + bias`. The input `u` of a motor (constant gain, no bias) is the control; for
    all others, `u` is the force of the actuator, and the report describes how MuJoCo computes it.
    """
    m = source.m
    given = source.element_names(source.mujoco.mjtObj.mjOBJ_ACTUATOR, len(m.actuator_trntype), "actuator")
    for actuator, name in enumerate(make_distinct(given, set())):
        where = f"actuator {name!r}"
        gear = _joint_gear(source, actuator)
        if isinstance(gear, str):
            source.note(where, f"{gear}; ignored")
            continue
        joint = source.joints[int(m.actuator_trnid[actuator, 0])]
        motor = _motor_gain(source, actuator)
        if motor is not None:
            source.builder.add_actuator(name, joint, gear=motor * gear, range=_motor_range(source, actuator, motor))
            continue
        source.note(where, f"u is the force before the gear; in MuJoCo {_describe_force_law(source, actuator)}")
        limited = m.actuator_forcelimited[actuator]
        reach = tuple(m.actuator_forcerange[actuator]) if limited else _UNBOUNDED
        source.builder.add_actuator(name, joint, gear=gear, range=reach)


def _joint_gear(source: CompiledModel, actuator: int) -> np.ndarray | str:
    """The gear in jaxdyn's coordinates of the driven joint, or the reason why there is none."""
    m, kinds, transmissions = source.m, source.mujoco.mjtJoint, source.mujoco.mjtTrn
    transmission, gear = transmissions(m.actuator_trntype[actuator]), source.gear(actuator)
    if transmission not in (transmissions.mjTRN_JOINT, transmissions.mjTRN_JOINTINPARENT):
        return f"acts through a {transmission.name[6:].lower()}, not on a joint"
    joint = int(m.actuator_trnid[actuator, 0])
    kind = kinds(m.jnt_type[joint])
    if kind in (kinds.mjJNT_HINGE, kinds.mjJNT_SLIDE):
        return gear[:1]
    if transmission == transmissions.mjTRN_JOINTINPARENT:
        return "acts along the axes of the parent, which rotate relative to the coordinates of the joint"
    if kind == kinds.mjJNT_BALL:
        return gear[:3]
    if gear[:3].any():
        return "acts on a free joint along world axes, which rotate relative to the coordinates of the joint"
    return gear[3:] if joint in source.split else np.r_[gear[3:], np.zeros(3)]


def _motor_gain(source: CompiledModel, actuator: int) -> float | None:
    """The constant gain of an actuator whose force is `gain * ctrl`, or None."""
    m, mujoco = source.m, source.mujoco
    is_motor = (
        mujoco.mjtGain(m.actuator_gaintype[actuator]) == mujoco.mjtGain.mjGAIN_FIXED
        and mujoco.mjtBias(m.actuator_biastype[actuator]) == mujoco.mjtBias.mjBIAS_NONE
        and mujoco.mjtDyn(m.actuator_dyntype[actuator]) == mujoco.mjtDyn.mjDYN_NONE
        and source.field_or_zeros("actuator_plugin", "actuator_trntype")[actuator] < 0
    )
    return float(m.actuator_gainprm[actuator, 0]) if is_motor else None


def _motor_range(source: CompiledModel, actuator: int, gain: float) -> tuple[float, float]:
    """The range of the control, intersected with the range of the force."""
    m = source.m
    low, high = _control_range(source, actuator)
    if m.actuator_forcelimited[actuator] and gain:
        ends = sorted(float(x) / gain for x in m.actuator_forcerange[actuator])
        low, high = max(low, ends[0]), min(high, ends[1])
    return low, high


def _control_range(source: CompiledModel, actuator: int) -> tuple[float, float]:
    m = source.m
    row = int(m.actuator_ctrladr[actuator]) if hasattr(m, "actuator_ctrladr") else actuator
    if not m.actuator_ctrllimited[row] or source.is_disabled("CLAMPCTRL"):
        return _UNBOUNDED
    return float(m.actuator_ctrlrange[row, 0]), float(m.actuator_ctrlrange[row, 1])


def _describe_force_law(source: CompiledModel, actuator: int) -> str:
    """A description of the law by which MuJoCo computes the force of an actuator."""
    m, mujoco = source.m, source.mujoco
    if source.field_or_zeros("actuator_plugin", "actuator_trntype")[actuator] >= 0:
        return "a plugin computes it, which is ignored"
    gain, bias = mujoco.mjtGain(m.actuator_gaintype[actuator]), mujoco.mjtBias(m.actuator_biastype[actuator])
    dynamics = mujoco.mjtDyn(m.actuator_dyntype[actuator])
    is_affine = gain in (mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtGain.mjGAIN_AFFINE) and bias in (
        mujoco.mjtBias.mjBIAS_NONE,
        mujoco.mjtBias.mjBIAS_AFFINE,
    )
    if not is_affine:
        return f"it follows the law {gain.name[7:].lower()}, which is ignored"
    variable = "ctrl" if dynamics == mujoco.mjtDyn.mjDYN_NONE else f"act ({dynamics.name[6:].lower()} of ctrl)"
    slope = m.actuator_gainprm[actuator, :3] * ([1, 0, 0] if gain == mujoco.mjtGain.mjGAIN_FIXED else [1, 1, 1])
    offset = m.actuator_biasprm[actuator, :3] * (bias == mujoco.mjtBias.mjBIAS_AFFINE)
    factor = _format_sum(slope, ("", " length", " velocity"))
    factor = f"({factor})" if np.count_nonzero(slope) > 1 else factor
    law = (
        f"{factor} {variable} + {_format_sum(offset, ('', ' length', ' velocity'))}"
        if offset.any()
        else f"{factor} {variable}"
    )
    low, high = _control_range(source, actuator)
    within = f", ctrl within [{low:g}, {high:g}]" if np.isfinite([low, high]).any() else ""
    return f"u = {law.replace('+ -', '- ')}{within}, with length and velocity after the gear"


def _format_sum(coefficients: Iterable[float], variables: Iterable[str]) -> str:
    terms = [f"{x:g}{variable}" for x, variable in zip(coefficients, variables, strict=True) if x]
    return " + ".join(terms) or "0"


# --- equality constraints --------------------------------------------------------------------------


def add_equalities(source: CompiledModel):
    """Adds connects and welds as `Closure`, equalities of joints as `Coupling`; the report names the others."""
    m, kinds = source.m, source.mujoco.mjtEq
    given = source.element_names(source.mujoco.mjtObj.mjOBJ_EQUALITY, m.neq, "equality")
    for equality, name in enumerate(make_distinct(given, set())):
        where, kind = f"equality {name!r}", kinds(m.eq_type[equality])
        if not m.eq_active0[equality] or source.is_disabled("EQUALITY", "CONSTRAINT"):
            source.note(where, "is disabled; ignored")
        elif kind == kinds.mjEQ_JOINT:
            _add_coupling(source, equality, name)
        elif kind in (kinds.mjEQ_CONNECT, kinds.mjEQ_WELD):
            _add_closure(source, equality, name, "weld" if kind == kinds.mjEQ_WELD else "point")
        elif kind == kinds.mjEQ_TENDON:
            add_tendon_coupling(source, equality, name)
        else:
            source.note(where, f"ties {kind.name[5:].lower()}s, which is not supported; ignored")


def _add_closure(source: CompiledModel, equality: int, name: str, kind: str):
    """Adds the closure of two frames: two sites, or frames of `eq_data` in two bodies (`mj_instantiateEqual`)."""
    m = source.m
    ends = [int(m.eq_obj1id[equality]), int(m.eq_obj2id[equality])]
    if m.eq_objtype[equality] == int(source.mujoco.mjtObj.mjOBJ_SITE):
        frames = [site_pose(m, site) for site in ends]
        ends = [int(m.site_bodyid[site]) for site in ends]
    else:
        data = np.array(m.eq_data[equality])
        frames = (
            [NumpyPose(data[6:10], data[3:6]), NumpyPose(translation=data[:3])]
            if kind == "weld"
            else [NumpyPose(translation=data[:3]), NumpyPose(translation=data[3:6])]
        )
    first, second = (
        (source.links[body], (frame.quaternion, frame.translation)) for body, frame in zip(ends, frames, strict=True)
    )
    source.builder.add_closure(name, kind, first, second)


def _add_coupling(source: CompiledModel, equality: int, name: str):
    """Adds `q1 - r1 = sum c_k (q2 - r2)^k` as a polynomial in q2, where r are the values of qpos0."""
    m = source.m
    ends = int(m.eq_obj1id[equality]), int(m.eq_obj2id[equality])
    reference = [float(m.qpos0[m.jnt_qposadr[j]]) if j >= 0 else 0.0 for j in ends]
    if ends[1] < 0:
        constant = np.array([m.eq_data[equality, 0] + reference[0]])
        source.builder.add_coupling(name, source.joints[ends[0]], None, constant)
        return
    shifted = shift_polynomial(m.eq_data[equality, :5], reference[1])
    shifted[0] += reference[0]
    source.builder.add_coupling(name, source.joints[ends[0]], source.joints[ends[1]], shifted)
