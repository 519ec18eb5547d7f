"""Trajectories as tables of columns: numpy, CSV, npz and Parquet."""

import io
import json
import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
from jax.typing import ArrayLike

from jaxdyn._errors import JaxdynError, ShapeError
from jaxdyn.io.files import write_bytes
from jaxdyn.simulation.trajectory._names import coordinate_names, effort_names, velocity_names
from jaxdyn.simulation.trajectory._status import SimulationStatus
from jaxdyn.simulation.trajectory._trajectory import Trajectory


def to_numpy(trajectory: Trajectory, *, extra: Mapping[str, ArrayLike] | None = None) -> dict[str, np.ndarray]:
    """The columns of a trajectory: `t`, then `q.<joint>` and `v.<joint>`, each `(times,)`, or `(batch, times)`.

    The names of joints with several coordinates include the component: `q.root.qw` to `q.root.z` and `v.root.wx` to
    `v.root.vz` for a free joint, `q.ball.w` for a quaternion. `extra` holds further columns of that shape, such as
    `{"energy": trajectory.energy}`, or rows of efforts `(times, nv)`, whose columns are named after the joints.
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


def _units(
    trajectory: Trajectory, extra: Mapping[str, ArrayLike] | None, given: Mapping[str, str] | None
) -> dict[str, str]:
    """The unit of each column whose unit is known."""
    model = trajectory.system.model
    units = {"t": "s"} | {f"q.{name}": unit for name, unit in coordinate_names(model)}
    units |= {f"v.{name}": unit for name, unit in velocity_names(model)}
    for name in extra or {}:
        units |= {f"{name}.{joint}": unit for joint, unit in effort_names(model)} if name == "effort" else {}
    return units | dict(given or {})


def _header(trajectory: Trajectory, extra, units) -> str:
    status = np.atleast_1d(np.asarray(trajectory.status))
    kinds = sorted({SimulationStatus(int(x)).name for x in status.ravel()})
    return json.dumps({"format": "jaxdyn trajectory", "status": kinds, "units": _units(trajectory, extra, units)})


def _table(trajectory: Trajectory, extra) -> dict[str, np.ndarray]:
    """Columns with one axis. The samples of a batch follow each other, with their index as the first column."""
    columns = to_numpy(trajectory, extra=extra)
    shape = columns["t"].shape
    if len(shape) == 1:
        return columns
    if len(shape) != 2:
        raise ShapeError(
            f"a table holds one trajectory or one batch of trajectories, not a batch of shape {shape[:-1]}"
        )
    sample = np.repeat(np.arange(shape[0]), shape[1])
    return {"sample": sample} | {name: x.reshape(-1) for name, x in columns.items()}


def to_csv(
    trajectory: Trajectory,
    path: str | os.PathLike[str],
    *,
    extra: Mapping[str, ArrayLike] | None = None,
    units: Mapping[str, str] | None = None,
):
    """Writes the columns of `to_numpy` as text with all digits. An interrupted write leaves the previous file.

    The first line begins with `#` and holds units and status as JSON; the second line names the columns.

    Arguments:

    * `trajectory`: one trajectory, or one batch, which has a first column `sample`.
    * `path`: of the file.
    * `extra`: further columns, see `to_numpy`.
    * `units`: units of the columns in `extra`.

    Raises `ShapeError` for columns of other shapes and nested batches, `FileAccessError` if the file cannot be written.

    ```python
    import tempfile
    from pathlib import Path

    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.simulation import to_csv

    pendulum, ts = jd.robots.pendulum(), jnp.linspace(0.0, 1.0, 5)
    path = jd.simulate(pendulum, jnp.array([1.0]), jnp.zeros(1), ts, dt=0.05)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "swing.csv"
        to_csv(path, file, extra={"energy": path.energy}, units={"energy": "J"})
        _, names, *rows = file.read_text().splitlines()
    (joint,) = pendulum.joint_names
    assert names == f"t,q.{joint},v.{joint},energy" and len(rows) == 5
    ```
    """
    columns = _table(trajectory, extra)
    text = io.StringIO()
    text.write(f"# {_header(trajectory, extra, units)}\n{','.join(map(_quote, columns))}\n")
    formats = ["%d" if x.dtype.kind in "iub" else f"%.{_digits(x)}g" for x in columns.values()]
    rows = np.empty(len(next(iter(columns.values()))), [(str(k), x.dtype) for k, x in enumerate(columns.values())])
    for k, x in enumerate(columns.values()):
        rows[str(k)] = x
    np.savetxt(text, rows, fmt=formats, delimiter=",")
    write_bytes(path, text.getvalue().encode())


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if set(name) & set(',"\n#') else name


def _digits(x: np.ndarray) -> int:
    return 9 if x.dtype == np.float32 else 17


def to_npz(
    trajectory: Trajectory,
    path: str | os.PathLike[str],
    *,
    extra: Mapping[str, ArrayLike] | None = None,
    units: Mapping[str, str] | None = None,
):
    """Writes the columns of `to_numpy`, with any batch axes, for `numpy.load`. An interrupted write leaves the previous
    file. The entry `about` is a JSON text with units and status; `units` are the units of the columns in `extra`.
    """
    content = io.BytesIO()
    columns: dict[str, Any] = to_numpy(trajectory, extra=extra)
    np.savez(content, **columns, about=np.array(_header(trajectory, extra, units)))
    write_bytes(path, content.getvalue())


def to_parquet(
    trajectory: Trajectory,
    path: str | os.PathLike[str],
    *,
    extra: Mapping[str, ArrayLike] | None = None,
    units: Mapping[str, str] | None = None,
):
    """Writes the columns of `to_numpy` as a Parquet file, which needs the extra `logs` (pyarrow).

    The metadata of each field holds its unit, and the metadata of the schema holds the first line of `to_csv` under
    `jaxdyn`. A batch has a first column `sample`. An interrupted write leaves the previous file.
    """
    arrow, parquet = _arrow()
    columns = _table(trajectory, extra)
    known = _units(trajectory, extra, units)
    fields = [
        arrow.field(name, arrow.from_numpy_dtype(x.dtype), metadata={"unit": known.get(name, "")})
        for name, x in columns.items()
    ]
    about = {"jaxdyn": _header(trajectory, extra, units)}
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
