"""Tables of efforts, or of inputs of actuators, from files as parts of a system."""

import csv
import io
import zipfile
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import FileFormatError
from jaxdyn.actuators import DescribedActuators, JointEfforts
from jaxdyn.io.files import LARGEST, read_bytes, read_members, read_npy
from jaxdyn.model import Model
from jaxdyn.simulation import Inputs, SampledInputs, cubic_signal, effort_names, held_inputs, linear_signal

MAX_BYTES = 1_000_000_000


class Control(NamedTuple):
    """Actuators and their inputs over time."""

    actuators: JointEfforts | DescribedActuators
    inputs: Inputs | SampledInputs
    #: names of the columns, of joints or of actuators
    names: list[str]

    @property
    def commands_actuators(self) -> bool:
        """Whether the columns are inputs of the actuators in the file of the robot, not efforts of its joints."""
        return isinstance(self.actuators, DescribedActuators)


def read_control(path: Path, model: Model, interpolation: str) -> Control:
    """The table of efforts or of inputs of actuators in a file; quantities without a column are zero.

    Columns are named after joints (efforts) or after actuators (their inputs), not both. Where a joint and an actuator
    have the same name, `actuator.NAME` is the actuator.
    """
    columns = _columns(path)
    names = [name for name, _ in effort_names(model)]
    if any(name.startswith("effort.") for name in columns):  # a file of `to_csv` has columns of q and v as well
        kept = {name.removeprefix("effort."): x for name, x in columns.items() if name.startswith("effort.")}
        columns = {name: x for name, x in columns.items() if name == "t"} | kept
    actuators = [actuator.name for actuator in model.actuators]
    given = [name.removeprefix("actuator.") for name in columns if name != "t"]
    is_input = bool(given) and any(name not in names for name in columns if name != "t")
    is_input = is_input and all(name in actuators for name in given)
    names = actuators if is_input else names
    columns = {name.removeprefix("actuator.") if is_input else name: x for name, x in columns.items()}
    unknown = sorted(columns.keys() - {"t", *names})
    if unknown or "t" not in columns or len(columns) < 2:
        others = f", or of the actuators {', '.join(map(repr, actuators))}" if actuators else ""
        raise FileFormatError(
            f"{path}: has columns {', '.join(map(repr, columns)) or 'none'}; expected 't' and some of "
            f"{', '.join(map(repr, names))}{others}"
        )
    t = columns.pop("t")
    rows = np.zeros((len(t), len(names)))
    for name, x in columns.items():
        rows[:, names.index(name)] = x
    is_physical = (np.abs(t) <= LARGEST).all() and (np.abs(rows) <= LARGEST).all()  # false for nan
    if len(t) < 2 or not is_physical or np.any(np.diff(t) <= 0):
        raise FileFormatError(
            f"{path}: expected at least two rows of finite numbers of at most {LARGEST:g}, with times that increase"
        )
    source = DescribedActuators(model) if is_input else JointEfforts(model)
    return Control(source, _interpolate(path, t, rows, interpolation), list(columns))


def _interpolate(path: Path, t: np.ndarray, rows: np.ndarray, interpolation: str) -> Inputs | SampledInputs:
    if interpolation == "hold":
        period = (t[-1] - t[0]) / (len(t) - 1)
        if abs(t[0]) > 1e-9 or np.abs(np.diff(t) - period).max() > 1e-6 * period:
            raise FileFormatError(f"{path}: --interpolation hold expects equally spaced times that start at 0")
        return held_inputs(jnp.asarray(rows), period)
    make = {"linear": linear_signal, "cubic": cubic_signal}[interpolation]
    return Inputs(make(jnp.asarray(t), jnp.asarray(rows)).path)


def _columns(path: Path) -> dict[str, np.ndarray]:
    """The columns of a file by name."""
    kind = path.suffix.lower()
    if kind not in (".csv", ".npz"):
        raise FileFormatError(f"{path}: a table of efforts ends in .csv or .npz")
    content = read_bytes(path, MAX_BYTES)
    try:
        columns = _csv(content) if kind == ".csv" else _npz(content)
    except (ValueError, csv.Error) as error:
        raise FileFormatError(f"{path}: is not a table of numbers ({error}); run jaxdyn simulate --help") from None
    if len({x.shape for x in columns.values()}) > 1 or any(x.ndim != 1 for x in columns.values()):
        raise FileFormatError(f"{path}: expected columns of one length, found {[x.shape for x in columns.values()]}")
    return columns


def _csv(content: bytes) -> dict[str, np.ndarray]:
    """Columns of a CSV text: lines that begin with # are comments, the first other line names the columns."""
    lines = [line for line in io.StringIO(content.decode("utf-8-sig")) if line.strip() and not line.startswith("#")]
    names, *rows = ([cell.strip() for cell in row] for row in csv.reader(lines)) if lines else ([],)
    if len(set(names)) != len(names):
        raise ValueError("two columns have the same name")
    for number, row in enumerate(rows, 1):
        if len(row) != len(names):
            raise ValueError(f"row {number} has {len(row)} entries for {len(names)} columns")
    table = np.array(rows, float).reshape(len(rows), len(names))
    return dict(zip(names, table.T, strict=True))


def _npz(content: bytes) -> dict[str, np.ndarray]:
    members = read_members(content, MAX_BYTES, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    columns = {name.removesuffix(".npy"): read_npy(data) for name, data in members.items()}
    columns.pop("about", None)
    for name, x in columns.items():
        if x.dtype.kind not in "biuf" or x.dtype.itemsize > 8:
            raise ValueError(f"the column {name!r} has the type {x.dtype}")
    return {name: x.astype(float) for name, x in columns.items()}
