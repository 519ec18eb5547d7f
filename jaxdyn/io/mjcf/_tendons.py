"""Equality constraints of fixed tendons as couplings of joints.

The length of a fixed tendon is `L = sum a_j q_j`. With the lengths `L0` in the reference configuration, an equality
constrains `L1 - L10 = sum c_k (L2 - L20)^k`, or `L1 - L10 = c_0` without a second tendon (`mj_instantiateEqual`).
"""

from typing import NoReturn

import numpy as np

from jaxdyn._errors import FileFormatError
from jaxdyn.io.mjcf._compiled import CompiledModel


def shift_polynomial(coefficients, reference: float) -> np.ndarray:
    """Coefficients in x of the polynomial `sum c_k (x - reference)^k`, by Horner's scheme."""
    shifted = np.zeros(len(coefficients))
    for coefficient in np.asarray(coefficients)[::-1]:
        shifted = np.r_[coefficient, shifted[:-1]] - reference * shifted
    return shifted


def add_tendon_coupling(source: CompiledModel, equality: int, name: str):
    """Adds the coupling of an equality of tendons; refuses constraints that couple more than two joints."""
    m = source.m
    first, second = int(m.eq_obj1id[equality]), int(m.eq_obj2id[equality])
    polynomial = np.array(m.eq_data[equality, :5])
    if second < 0:
        polynomial[1:] = 0
    lengths = [{} if tendon < 0 else _joint_weights(source, tendon, name) for tendon in (first, second)]
    joint, other, coefficients = _solve_for_joint(lengths[0], lengths[1], polynomial) or _refuse(source, name)
    reference = [0.0 if j is None else float(m.qpos0[m.jnt_qposadr[j]]) for j in (joint, other)]
    shifted = shift_polynomial(coefficients, reference[1])
    shifted[0] += reference[0]
    if other is None:
        source.builder.add_coupling(name, source.joints[joint], None, shifted[:1])
    else:
        source.builder.add_coupling(name, source.joints[joint], source.joints[other], shifted)
    source.coupled_tendons |= {tendon for tendon in (first, second) if tendon >= 0}
    source.note(f"equality {name!r}", "constrains the lengths of fixed tendons: read as a coupling of their joints")


def _joint_weights(source: CompiledModel, tendon: int, name: str) -> dict[int, float]:
    """The factors a_j of a fixed tendon by joint."""
    m, wraps = source.m, source.mujoco.mjtWrap
    rows = range(int(m.tendon_adr[tendon]), int(m.tendon_adr[tendon]) + int(m.tendon_num[tendon]))
    out: dict[int, float] = {}
    for row in rows:
        if wraps(m.wrap_type[row]) != wraps.mjWRAP_JOINT:
            _refuse(source, name)
        joint = int(m.wrap_objid[row])
        out[joint] = out.get(joint, 0.0) + float(m.wrap_prm[row])
    return {joint: weight for joint, weight in out.items() if weight}


def _solve_for_joint(first: dict[int, float], second: dict[int, float], polynomial: np.ndarray):
    """`(joint, other, c)` with `x_joint = sum c_k x_other^k`, x relative to the reference; None if there is none.

    `other` is None if one joint alone is constrained.
    """
    if not polynomial[2:].any():  # linear: sum w_j x_j = c_0
        weights = {j: first.get(j, 0.0) - polynomial[1] * second.get(j, 0.0) for j in (*first, *second)}
        weights = {j: w for j, w in weights.items() if w}
        if len(weights) not in (1, 2):
            return None
        (joint, weight), *rest = weights.items()
        other, slope = (rest[0][0], -rest[0][1]) if rest else (None, 0.0)
        return joint, other, np.array([polynomial[0], slope, 0.0, 0.0, 0.0]) / weight
    if len(first) == len(second) == 1 and first.keys() != second.keys():
        (joint, weight), (other, factor) = *first.items(), *second.items()
        return joint, other, polynomial * factor ** np.arange(5) / weight
    return None


def _refuse(source: CompiledModel, name: str) -> NoReturn:
    raise FileFormatError(
        f"{source.origin}: equality {name!r} constrains tendons in a way that is not a coupling of two joints (spatial "
        'tendons, or more than two joints); describe it by an equality of joints, or set active="false"'
    )
