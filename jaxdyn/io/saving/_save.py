"""Saving and loading of pytrees: a zip archive with the structure as JSON and each array as npy.

Nothing in a file is executed. A file names classes and functions that are public in jaxdyn or listed by the caller;
instances receive their fields without a call of the class.
"""

import io
import json
import os
import zipfile
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

import numpy as np

from jaxdyn._errors import FileFormatError
from jaxdyn.io.files import read_bytes, read_members, read_npy, write_bytes
from jaxdyn.io.saving._names import Names
from jaxdyn.io.saving._trees import Decoder, Encoder

FORMAT, VERSION = "jaxdyn tree", 1
_STRUCTURE = "structure.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)
MAX_BYTES = 1_000_000_000
_XML_REMEDY = (
    "it looks like XML: read URDF with jaxdyn.load_urdf and MJCF with jaxdyn.load_mjcf; on the command line, use the "
    "suffix .urdf or .xml"
)


def save(path: str | os.PathLike[str], tree: Any, *, allow: Iterable[Any] = ()):
    """Writes a model, or any other pytree of the library, to a file that `load` reads.

    Arguments:

    * `path`: the file, written completely or not at all.
    * `tree`: arrays, numbers, strings, None, tuples, lists, dictionaries and instances of jaxdyn's classes, nested to
      any depth below 100. Arrays keep their type and every bit.
    * `allow`: classes and functions from outside jaxdyn that the tree contains, such as a joint of your own.

    Raises `ModelError` for other content, and for traced arrays; `FileAccessError` if the file cannot be written.

    ```python
    from pathlib import Path
    from tempfile import TemporaryDirectory

    import jaxdyn as jd

    with TemporaryDirectory() as folder:
        path = Path(folder) / "arm.model"
        jd.save(path, {"arm": jd.robots.panda(), "note": "after the fit"})
        assert jd.load(path)["arm"].nv == 7
    ```
    """
    encoder = Encoder(Names(allow))
    structure = {"format": FORMAT, "version": VERSION, "jaxdyn": version("jaxdyn"), "tree": encoder.encode(tree)}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(_STRUCTURE, _EPOCH), json.dumps(structure, allow_nan=False))
        for k, array in enumerate(encoder.arrays):
            content = io.BytesIO()
            np.lib.format.write_array(content, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{k}.npy", _EPOCH), content.getvalue())
    write_bytes(path, buffer.getvalue())


def load(path: str | os.PathLike[str], *, allow: Iterable[Any] = (), max_bytes: int = MAX_BYTES) -> Any:
    """Reads the pytree that `save` wrote.

    Arguments:

    * `path`: the file.
    * `allow`: the classes and functions from outside jaxdyn that the file may name.
    * `max_bytes`: maximal size of the file.

    Returns the tree, with JAX arrays where it had them. Without `jax_enable_x64`, arrays of 64 bits become arrays of 32
    bits. Raises `FileFormatError` for a file that is damaged, too large, of a newer format, or names classes or
    functions that are neither jaxdyn's nor allowed; `FileAccessError` for a file that cannot be read.

    ```python
    from pathlib import Path
    from tempfile import TemporaryDirectory

    import jaxdyn as jd

    with TemporaryDirectory() as folder:
        path = Path(folder) / "pendulum.model"
        jd.save(path, jd.robots.pendulum())
        model = jd.load(path)
    assert model.nv == 1
    ```
    """
    source = os.fspath(path)
    content = read_bytes(path, max_bytes)
    try:
        members = read_members(content, max_bytes)
    except ValueError as error:
        remedy = _XML_REMEDY if content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") else "give a file that it wrote"
        raise FileFormatError(f"{source}: is not a file that jaxdyn.save wrote ({error}); {remedy}") from None
    tree = _read_structure(members.pop(_STRUCTURE, None), source)
    arrays = [_read_array(members, k, source) for k in range(len(members))]
    return Decoder(Names(allow), arrays, source).decode(tree)


def _read_structure(text: bytes | None, source: str) -> Any:
    if text is None:
        raise FileFormatError(f"{source}: has no {_STRUCTURE}; give a file that jaxdyn.save wrote")
    try:
        head = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{source}, {_STRUCTURE}: cannot be read ({error}); save the tree again") from None
    if not isinstance(head, dict) or head.get("format") != FORMAT or "tree" not in head:
        raise FileFormatError(
            f"{source}, {_STRUCTURE}: is not of the format {FORMAT!r}; give a file that jaxdyn.save wrote"
        )
    if head.get("version") != VERSION:
        raise FileFormatError(
            f"{source}: has version {head.get('version')!r} of the format, and this jaxdyn reads version {VERSION}; "
            "load it with the jaxdyn that wrote it, or update jaxdyn"
        )
    return head["tree"]


def _refuse_constant(name: str):
    raise ValueError(f"the number {name}")


def _read_array(members: dict[str, bytes], k: int, source: str) -> np.ndarray:
    """An array of numbers of the file."""
    name = f"{k}.npy"
    if name not in members:
        raise FileFormatError(f"{source}: has no member {name!r}; save the tree again")
    try:
        array = read_npy(members[name])
        if array.dtype.kind not in "biufc":
            raise ValueError(f"an array of {array.dtype}")
    except ValueError as error:
        raise FileFormatError(f"{source}, member {name!r}: cannot be read ({error}); save the tree again") from None
    return array
