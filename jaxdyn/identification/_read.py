"""Tables of numbers from files: CSV, npz, Parquet, MAT, and bags of messages."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from jaxdyn.identification._read_arrays import read_mat, read_npz, read_parquet
from jaxdyn.identification._read_bags import read_mcap, read_ros1, read_sqlite
from jaxdyn.identification._read_csv import read_csv
from jaxdyn.identification._read_table import LogError, Table

#: readers by the ending of a file; each takes a path and the largest size in bytes
READERS: dict[str, Callable[[Path, int], list[Table]]] = {
    ".csv": read_csv,
    ".csv.gz": read_csv,
    ".tsv": read_csv,
    ".txt": read_csv,
    ".npz": read_npz,
    ".parquet": read_parquet,
    ".mat": read_mat,
    ".mcap": read_mcap,
    ".db3": read_sqlite,
    ".bag": read_ros1,
}
MAX_BYTES = 4_000_000_000


def read_tables(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> list[Table]:
    """The tables in a log file, whose ending says how it is read.

    CSV (`.csv`, `.tsv`, `.txt`, also `.csv.gz`), numpy's `.npz` (never pickles), `.parquet` and `.mat` hold one table
    each; `.mcap`, the `.db3` of rosbag2 and the `.bag` of ROS 1 one for each topic. A folder is read as a rosbag2 if it
    holds such files.
    """
    path = Path(path)
    if path.is_dir():
        return _folder(path, max_bytes)
    name = path.name.lower()
    for ending in sorted(READERS, key=len, reverse=True):
        if name.endswith(ending):
            return READERS[ending](path, max_bytes)
    raise LogError(f"{path}: ends in {path.suffix!r}, expected one of {', '.join(READERS)}")


def _folder(path: Path, max_bytes: int) -> list[Table]:
    parts: Sequence[Path] = sorted(p for p in path.iterdir() if p.suffix in (".db3", ".mcap"))
    if not parts:
        raise LogError(f"{path}: is a folder without .db3 or .mcap files; give a log file or the folder of a rosbag2")
    return [table for part in parts for table in read_tables(part, max_bytes=max_bytes)]
