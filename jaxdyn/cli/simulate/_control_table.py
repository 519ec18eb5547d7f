"""Tables of efforts from files as parts of a system."""

import csv
import io
import zipfile
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import FileFormatError
from jaxdyn.dynamics import AbstractPart
from jaxdyn.io.files import LARGEST, read_bytes, read_members, read_npy
from jaxdyn.model import Model
from jaxdyn.simulation import HeldSignal, cubic_signal, effort_names, linear_signal

MAX_BYTES = 1_000_000_000


def read_control(path: Path, model: Model, interpolation: str) -> tuple[AbstractPart | HeldSignal, list[str]]:
    """The efforts in a file as a part of a system, and the names of the driven efforts; the other efforts are zero."""
    columns = _columns(path)
    names = [name for name, _ in effort_names(model)]
    if any(name.startswith("effort.") for name in columns):  # a file of `to_csv` has columns of q and v as well
        kept = {name.removeprefix("effort."): x for name, x in columns.items() if name.startswith("effort.")}
        columns = {name: x for name, x in columns.items() if name == "t"} | kept
    unknown = sorted(columns.keys() - {"t", *names})
    if unknown or "t" not in columns or len(columns) < 2:
        raise FileFormatError(
            f"{path}: has columns {', '.join(map(repr, columns)) or 'none'}; expected 't' and some of "
            f"{', '.join(map(repr, names))}"
        )
    t = columns.pop("t")
    efforts = np.zeros((len(t), model.nv))
    for name, x in columns.items():
        efforts[:, names.index(name)] = x
    is_physical = (np.abs(t) <= LARGEST).all() and (np.abs(efforts) <= LARGEST).all()  # false for nan
    if len(t) < 2 or not is_physical or np.any(np.diff(t) <= 0):
        raise FileFormatError(
            f"{path}: expected at least two rows of finite numbers of at most {LARGEST:g}, with times that increase"
        )
    return _signal(path, t, efforts, interpolation), list(columns)


def _signal(path: Path, t: np.ndarray, efforts: np.ndarray, interpolation: str) -> AbstractPart | HeldSignal:
    if interpolation == "hold":
        period = (t[-1] - t[0]) / (len(t) - 1)
        if abs(t[0]) > 1e-9 or np.abs(np.diff(t) - period).max() > 1e-6 * period:
            raise FileFormatError(f"{path}: --interpolation hold expects equally spaced times that start at 0")
        return HeldSignal(efforts=jnp.asarray(efforts), period=period)
    make = {"linear": linear_signal, "cubic": cubic_signal}[interpolation]
    return make(jnp.asarray(t), jnp.asarray(efforts))


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
