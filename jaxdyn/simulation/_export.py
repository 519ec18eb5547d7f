"""Trajectories as columns: numpy, CSV, npz and Parquet."""

import io
import json
import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from jaxdyn._errors import JaxdynError, ShapeError
from jaxdyn.io._paths import write_bytes
from jaxdyn.joints import (
    Continuous,
    Cylindrical,
    Free,
    Helical,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    SphericalZYX,
    Universal,
)
from jaxdyn.model import Model
from jaxdyn.simulation._trajectory import SimulationStatus, Trajectory

_TURN, _LENGTH = ("rad", "rad/s"), ("m", "m/s")
_W3 = (("wx", "rad/s"), ("wy", "rad/s"), ("wz", "rad/s"))
_QUATERNION = tuple((name, "1") for name in "wxyz")
#: names and units of the components of q and of v
_COMPONENTS = {
    Free: (
        (*((f"q{x}", "1") for x in "wxyz"), ("x", "m"), ("y", "m"), ("z", "m")),
        (*_W3, ("vx", "m/s"), ("vy", "m/s"), ("vz", "m/s")),
    ),
    Spherical: (_QUATERNION, _W3),
    Planar: ((("x", "m"), ("y", "m"), ("angle", "rad")), (("vx", "m/s"), ("vy", "m/s"), ("w", "rad/s"))),
    SphericalZYX: tuple(tuple((name, unit) for name in "zyx") for unit in _TURN),
    Cylindrical: tuple((("angle", a), ("slide", b)) for a, b in zip(_TURN, _LENGTH, strict=True)),
    Universal: tuple((("1", unit), ("2", unit)) for unit in _TURN),
    Prismatic: tuple((("", unit),) for unit in _LENGTH),
    **{kind: tuple((("", unit),) for unit in _TURN) for kind in (Revolute, Continuous, Helical)},
}
_EFFORT = {"rad/s": "N m", "m/s": "N", "": ""}


def coordinate_names(model: Model) -> tuple[tuple[str, str], ...]:
    """Name and unit of each entry of q: the joint's name, and that of the component if the joint has several."""
    return _named(model, 0)


def velocity_names(model: Model) -> tuple[tuple[str, str], ...]:
    """Name and unit of each entry of v, as `coordinate_names`."""
    return _named(model, 1)


def effort_names(model: Model) -> tuple[tuple[str, str], ...]:
    """Name and unit of each generalised force: the names of v, with N m or N."""
    return tuple((name, _EFFORT[unit]) for name, unit in velocity_names(model))


def _named(model: Model, which: int) -> tuple[tuple[str, str], ...]:
    topology = model.topology
    followers = {follower for follower, _ in topology.mimics}
    names: dict[int, tuple[str, str]] = {}
    for i in topology.bodies:
        if i in followers:
            continue
        where, joint = topology.joint_slices(i)[which], topology.joint_names[i]
        count = where.stop - where.start
        plain = tuple((str(k) if count > 1 else "", "") for k in range(count))
        parts = _COMPONENTS.get(type(model.joints[topology.groups[i]]), (plain, plain))[which]
        for k, (part, unit) in enumerate(parts):
            names[where.start + k] = (f"{joint}.{part}" if part else joint, unit)
    return tuple(names[k] for k in sorted(names))


def to_numpy(trajectory: Trajectory, *, extra: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
    """Columns of a trajectory: `t`, then `q.<joint>` and `v.<joint>`, each `(times,)`, or `(batch, times)`.

    Components of joints with several coordinates have names: `q.root.qw` to `q.root.z` and `v.root.wx` to
    `v.root.vz` of a free joint, `q.ball.w` of a quaternion. `extra` holds further columns of that shape, such as
    `{"energy": trajectory.energy}`, or whole rows of efforts `(times, nv)`, which are named by the joints.
    """
    model = trajectory.system.model
    t = np.asarray(trajectory.t)
    columns = {"t": t}
    for letter, names, x in (("q", coordinate_names(model), trajectory.q), ("v", velocity_names(model), trajectory.v)):
        columns |= {f"{letter}.{name}": np.asarray(x)[..., k] for k, (name, _) in enumerate(names)}
    for name, value in (extra or {}).items():
        value = np.asarray(value)
        if value.shape == t.shape:
            columns[name] = value
        elif value.shape == (*t.shape, model.nv):
            columns |= {f"{name}.{joint}": value[..., k] for k, (joint, _) in enumerate(velocity_names(model))}
        else:
            raise ShapeError(f"extra {name!r} has shape {value.shape}, expected {t.shape} or {(*t.shape, model.nv)}")
    return columns


def _units(trajectory: Trajectory, extra: Mapping[str, Any] | None, given: Mapping[str, str] | None) -> dict[str, str]:
    """The unit of each column, as far as known."""
    model = trajectory.system.model
    units = {"t": "s"} | {f"q.{name}": unit for name, unit in coordinate_names(model)}
    units |= {f"v.{name}": unit for name, unit in velocity_names(model)}
    for name in extra or {}:
        units |= {f"{name}.{joint}": unit for joint, unit in effort_names(model)} if name == "effort" else {}
    return units | dict(given or {})


def _heading(trajectory: Trajectory, extra, units) -> str:
    status = np.atleast_1d(np.asarray(trajectory.status))
    kinds = sorted({SimulationStatus(int(x)).name for x in status.ravel()})
    return json.dumps({"format": "jaxdyn trajectory", "status": kinds, "units": _units(trajectory, extra, units)})


def _table(trajectory: Trajectory, extra) -> dict[str, np.ndarray]:
    """Columns of one axis; a batch is written sample after sample, with its number as the first column."""
    columns = to_numpy(trajectory, extra=extra)
    shape = columns["t"].shape
    if len(shape) == 1:
        return columns
    if len(shape) != 2:
        raise ShapeError(f"a table is made of one trajectory or of one batch of them, not of shape {shape[:-1]}")
    sample = np.repeat(np.arange(shape[0]), shape[1])
    return {"sample": sample} | {name: x.reshape(-1) for name, x in columns.items()}


def to_csv(
    trajectory: Trajectory,
    path: str | os.PathLike[str],
    *,
    extra: Mapping[str, Any] | None = None,
    units: Mapping[str, str] | None = None,
):
    """Writes the columns of `to_numpy` as text that keeps every digit, whole or not at all.

    The first line begins with `#` and holds units and status as JSON; the second names the columns. `units` are those
    of `extra`. A batch has a first column `sample`.
    """
    columns = _table(trajectory, extra)
    text = io.StringIO()
    text.write(f"# {_heading(trajectory, extra, units)}\n{','.join(map(_quoted, columns))}\n")
    formats = ["%d" if x.dtype.kind in "iub" else f"%.{_digits(x)}g" for x in columns.values()]
    rows = np.empty(len(next(iter(columns.values()))), [(str(k), x.dtype) for k, x in enumerate(columns.values())])
    for k, x in enumerate(columns.values()):
        rows[str(k)] = x
    np.savetxt(text, rows, fmt=formats, delimiter=",")
    write_bytes(path, text.getvalue().encode())


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if set(name) & set(',"\n#') else name


def _digits(x: np.ndarray) -> int:
    return 9 if x.dtype == np.float32 else 17


def to_npz(
    trajectory: Trajectory,
    path: str | os.PathLike[str],
    *,
    extra: Mapping[str, Any] | None = None,
    units: Mapping[str, str] | None = None,
):
    """Writes the columns of `to_numpy`, any batch axes included, for `numpy.load`, whole or not at all.

    The entry `about` is a JSON text with units and status.
    """
    content = io.BytesIO()
    columns: dict[str, Any] = to_numpy(trajectory, extra=extra)
    np.savez(content, **columns, about=np.array(_heading(trajectory, extra, units)))
    write_bytes(path, content.getvalue())


def to_parquet(
    trajectory: Trajectory,
    path: str | os.PathLike[str],
    *,
    extra: Mapping[str, Any] | None = None,
    units: Mapping[str, str] | None = None,
):
    """Writes the columns of `to_numpy` as a Parquet file, whole or not at all; needs the extra `logs` (pyarrow).

    Each column has its unit in the metadata of its field, and the schema those of `to_csv`'s first line under
    `jaxdyn`. A batch has a first column `sample`.
    """
    arrow, parquet = _arrow()
    columns = _table(trajectory, extra)
    known = _units(trajectory, extra, units)
    fields = [
        arrow.field(name, arrow.from_numpy_dtype(x.dtype), metadata={"unit": known.get(name, "")})
        for name, x in columns.items()
    ]
    about = {"jaxdyn": _heading(trajectory, extra, units)}
    table = arrow.table([arrow.array(x) for x in columns.values()], schema=arrow.schema(fields, metadata=about))
    content = io.BytesIO()
    parquet.write_table(table, content)
    write_bytes(path, content.getvalue())


def _arrow() -> tuple[ModuleType, ModuleType]:
    try:
        import pyarrow  # pyright: ignore[reportMissingImports]
        import pyarrow.parquet  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise JaxdynError('Parquet files need the package pyarrow: pip install "jaxdyn[logs]"') from error
    return pyarrow, pyarrow.parquet
