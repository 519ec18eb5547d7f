"""Units of columns, as factors to SI."""

import math

from jaxdyn._errors import ModelError
from jaxdyn.identification._read_table import listed

_TURN, _LENGTH = (
    {"rad": 1.0, "mrad": 1e-3, "deg": math.pi / 180, "°": math.pi / 180},
    {"m": 1.0, "mm": 1e-3, "cm": 1e-2},
)
_TURN |= {"rev": 2 * math.pi, "turn": 2 * math.pi}
_TIME = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "min": 60.0}


def _per(units: dict[str, float], power: str) -> dict[str, float]:
    return {f"{name}/s{power}": factor for name, factor in units.items()}


_TURN_RATE = _per(_TURN, "") | {"rpm": 2 * math.pi / 60, "Hz": 2 * math.pi}
#: factors by the SI unit that they lead to
FACTORS: dict[str, dict[str, float]] = {
    "s": _TIME,
    "rad": _TURN,
    "m": _LENGTH,
    "rad/s": _TURN_RATE,
    "m/s": _per(_LENGTH, ""),
    "rad/s^2": _per(_TURN, "^2") | _per(_TURN, "2"),
    "m/s^2": _per(_LENGTH, "^2") | _per(_LENGTH, "2"),
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
#: readings that are efforts only after a gain, N m (or N) for each A, V or 1
READINGS = {"A": 1.0, "mA": 1e-3, "V": 1.0, "mV": 1e-3, "%": 1e-2, "1": 1.0}


def factor_to(unit: str | None, target: str, where: str, has_gain: bool) -> float:
    """The factor from `unit` to the SI unit `target`; None stands for the target itself."""
    if unit is None or unit == target:
        return 1.0
    if unit in FACTORS.get(target, {}):
        return FACTORS[target][unit]
    if target in ("N m", "N") and unit in READINGS:
        if not has_gain:
            raise ModelError(
                f"{where}: is in {unit!r}, and no gain says what that is as an effort; give gain, in {target} for 1 "
                f"{unit.lstrip('m')}, for instance the torque constant of the motor (gear is a number of its own)"
            )
        return READINGS[unit]
    known = [*FACTORS.get(target, {}), *(READINGS if target in ("N m", "N") else ())]
    raise ModelError(
        f"{where}: has the unit {unit!r}, which does not lead to {target!r}; expected one of {listed(known, 24)}"
    )
