"""`read_tables`: log files in CSV, npz, Parquet, MAT and bag formats, chosen by the file extension."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from jaxdyn._errors import FileAccessError
from jaxdyn.identification.logs.recordings import read_mcap, read_ros1, read_sqlite
from jaxdyn.identification.logs.tables import LogError, Table, read_csv, read_mat, read_npz, read_parquet

#: readers by file extension; each takes a path and the maximum size in bytes
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
    """Reads a log file as tables of named columns; the file extension selects the format.

    CSV (`.csv`, `.tsv`, `.txt`, `.csv.gz`), NumPy `.npz`, `.parquet` and `.mat` files contain one table each. Bags
    (`.mcap`, `.db3` of rosbag2, `.bag` of ROS 1) contain one table per topic. A folder is read as a rosbag2. No file
    content is executed and no pickle is loaded.

    Arguments:

    * `path`: the log file, or the folder of a rosbag2.
    * `max_bytes`: maximum size of the file, and of its decompressed content.

    Returns a list of `Table`s with `columns` by name, each `(n,)`. Raises `LogError` if the content is invalid and
    `FileAccessError` if the file cannot be read.

    ```python
    import tempfile
    from pathlib import Path
    from jaxdyn.identification import read_tables

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.csv")
        path.write_text("t,q.elbow,effort.elbow\\n0.0,0.1,2.0\\n0.01,0.2,2.1\\n")
        (table,) = read_tables(path)
    assert table.num_rows == 2
    assert list(table.columns) == ["t", "q.elbow", "effort.elbow"]
    ```
    """
    path = Path(path)
    parts = _bag_parts(path)
    if parts is not None:
        return [table for part in parts for table in read_tables(part, max_bytes=max_bytes)]
    name = path.name.lower()
    for ending in sorted(READERS, key=len, reverse=True):
        if name.endswith(ending):
            return _read_file(READERS[ending], path, max_bytes)
    raise LogError(f"{path}: has the extension {path.suffix!r}, expected one of {', '.join(READERS)}")


def _bag_parts(path: Path) -> Sequence[Path] | None:
    """The files of a folder that is a rosbag2; None for a file."""
    try:
        if not path.is_dir():
            return None
        parts = sorted(p for p in path.iterdir() if p.suffix in (".db3", ".mcap"))
    except (OSError, ValueError) as error:
        raise FileAccessError(f"{path}: cannot be read ({error}); check the path") from None
    if not parts:
        raise LogError(f"{path}: is a folder without .db3 or .mcap files; give a log file or the folder of a rosbag2")
    return parts


def _read_file(read: Callable[[Path, int], list[Table]], path: Path, max_bytes: int) -> list[Table]:
    try:
        return read(path, max_bytes)
    except MemoryError:
        raise LogError(f"{path}: needs more memory than the system has; split the log into files") from None
