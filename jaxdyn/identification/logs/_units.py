"""Conversion of column units to SI units."""

import math

from jaxdyn._errors import ModelError, format_names

_ANGLE, _LENGTH = (
    {"rad": 1.0, "mrad": 1e-3, "deg": math.pi / 180, "°": math.pi / 180},
    {"m": 1.0, "mm": 1e-3, "cm": 1e-2},
)
_ANGLE |= {"rev": 2 * math.pi, "turn": 2 * math.pi}
_TIME = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "min": 60.0}


def _per_second(units: dict[str, float], power: str) -> dict[str, float]:
    return {f"{name}/s{power}": factor for name, factor in units.items()}


_ANGULAR_VELOCITY = _per_second(_ANGLE, "") | {"rpm": 2 * math.pi / 60, "Hz": 2 * math.pi}
#: conversion factors by SI unit
FACTORS: dict[str, dict[str, float]] = {
    "s": _TIME,
    "rad": _ANGLE,
    "m": _LENGTH,
    "rad/s": _ANGULAR_VELOCITY,
    "m/s": _per_second(_LENGTH, ""),
    "rad/s^2": _per_second(_ANGLE, "^2") | _per_second(_ANGLE, "2"),
    "m/s^2": _per_second(_LENGTH, "^2") | _per_second(_LENGTH, "2"),
    "N m": {
        "N m": 1.0,
        "Nm": 1.0,
        "N*m": 1.0,
        "mN m": 1e-3,
        "mNm": 1e-3,
        "kN m": 1e3,
        "kNm": 1e3,
        "N cm": 1e-2,
        "Ncm": 1e-2,
    },
    "N": {"N": 1.0, "mN": 1e-3, "kN": 1e3},
}
FACTORS["N m"] |= {"kgf cm": 9.80665e-2, "kgf m": 9.80665, "lbf ft": 1.3558179483314004, "lbf in": 0.1129848290276167}
#: units of effort readings that need a gain, N m (or N) per A, V or 1
READINGS = {"A": 1.0, "mA": 1e-3, "V": 1.0, "mV": 1e-3, "%": 1e-2, "1": 1.0}


def conversion_factor(unit: str | None, target: str, where: str, has_gain: bool) -> float:
    """The conversion factor from `unit` to the SI unit `target`; None stands for `target`."""
    if unit is None or unit == target:
        return 1.0
    if unit in FACTORS.get(target, {}):
        return FACTORS[target][unit]
    if target in ("N m", "N") and unit in READINGS:
        if not has_gain:
            raise ModelError(
                f"{where}: the unit {unit!r} is not an effort and needs a gain; set gain in {target} per "
                f"{unit.lstrip('m')}, for instance the torque constant of the motor (set the gear ratio by gear)"
            )
        return READINGS[unit]
    known = [*FACTORS.get(target, {}), *(READINGS if target in ("N m", "N") else ())]
    raise ModelError(
        f"{where}: has the unit {unit!r}, which is not convertible to {target!r}; expected one of "
        f"{format_names(known, 24)}"
    )
