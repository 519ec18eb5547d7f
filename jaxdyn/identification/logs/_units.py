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
    "V": {"V": 1.0, "mV": 1e-3, "kV": 1e3},
    "A": {"A": 1.0, "mA": 1e-3, "kA": 1e3},
    "degC": {"degC": 1.0, "°C": 1.0, "K": 1.0, "degF": 5 / 9, "°F": 5 / 9},
    "Pa": {"Pa": 1.0, "kPa": 1e3, "MPa": 1e6, "bar": 1e5, "mbar": 1e2, "psi": 6894.757293168361},
}
FACTORS["N m"] |= {"kgf cm": 9.80665e-2, "kgf m": 9.80665, "lbf ft": 1.3558179483314004, "lbf in": 0.1129848290276167}
#: zero points of units, added after the factor
ZERO_POINTS = {"degC": {"K": -273.15, "degF": -160 / 9, "°F": -160 / 9}}
#: units of readings of efforts and of sensors of actuators that need a gain, such as N m, A or degC per A, V or 1
READINGS = {"A": 1.0, "mA": 1e-3, "V": 1.0, "mV": 1e-3, "%": 1e-2, "1": 1.0}


#: quantities that sensors give as readings
_READ = ("N m", "N", "V", "A", "degC", "Pa")


def conversion_factor(unit: str | None, target: str, where: str, has_gain: bool) -> float:
    """The conversion factor from `unit` to the SI unit `target`; None stands for `target`."""
    if unit is None or unit == target:
        return 1.0
    if unit in FACTORS.get(target, {}):
        return FACTORS[target][unit]
    if unit in READINGS and target in _READ:
        if not has_gain:
            is_effort = target in ("N m", "N")
            hint = ", for instance the torque constant of the motor (set the gear ratio by gear)" if is_effort else ""
            raise ModelError(
                f"{where}: the unit {unit!r} is not {'an effort' if is_effort else f'a unit of {target}'} and needs a "
                f"gain; set gain in {target} per {unit.lstrip('m')}{hint}"
            )
        return READINGS[unit]
    known = [*FACTORS.get(target, {}), *(READINGS if target in _READ else ())]
    raise ModelError(
        f"{where}: has the unit {unit!r}, which is not convertible to {target or 'a number without a unit'!r}; "
        f"expected {f'one of {format_names(known, 24)}' if known else 'no unit'}"
    )


def zero_point(unit: str, target: str) -> float:
    """The zero of `unit` on the scale of the SI unit `target`, as for K and degC."""
    return ZERO_POINTS.get(target, {}).get(unit, 0.0)
