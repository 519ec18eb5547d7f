"""Saving and loading trees of the library: a zip archive with the structure as JSON and each array as npy.

Nothing in a file is executed. Classes and functions are named by where they are public in jaxdyn, or in a list
that the caller gives; instances are filled with their fields, without a call of what the file names.
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
from jaxdyn.io._names import Names
from jaxdyn.io._paths import read_bytes, write_bytes
from jaxdyn.io._trees import Decoder, Encoder

FORMAT, VERSION = "jaxdyn tree", 1
_STRUCTURE = "structure.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)
MAX_BYTES = 1_000_000_000
_INSTEAD = (
    "it looks like XML: read URDF with jaxdyn.load_urdf and MJCF with jaxdyn.load_mjcf, and let files for the command "
    "line end in .urdf or .xml"
)


def save(path: str | os.PathLike[str], tree: Any, *, allow: Iterable[Any] = ()):
    """Writes a model, or any other tree of the library, to a file that `load` reads.

    A tree is made of arrays, numbers, strings, None, tuples, lists, dictionaries, and of jaxdyn's own classes.
    `allow` lists classes and functions from elsewhere that it may hold, a joint of your own for one; what is
    neither is refused by name. Arrays keep type and every bit. The file is written whole or not at all.
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
    """The tree that `save` wrote, with JAX arrays where it had them.

    `allow` lists the classes and functions from outside jaxdyn that the file may name. What is damaged, larger
    than `max_bytes`, written by a newer format or naming anything else raises `FileFormatError`.
    Without `jax_enable_x64`, arrays of 64 bits become arrays of 32.
    """
    source = os.fspath(path)
    content = read_bytes(path, max_bytes)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(info.compress_size for info in archive.infolist()) > len(content):
                raise FileFormatError(f"{source}: claims more than it holds; jaxdyn.save does not write such")
            members = {info.filename: _member(archive, info, source) for info in archive.infolist()}
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, RuntimeError) as error:
        if isinstance(error, FileFormatError):
            raise
        remedy = _INSTEAD if content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") else "give one that is"
        raise FileFormatError(f"{source}: is not a file that jaxdyn.save wrote ({error}); {remedy}") from None
    tree = _structure(members.pop(_STRUCTURE, None), source)
    arrays = [_array(members, k, source) for k in range(len(members))]
    return Decoder(Names(allow), arrays, source).decode(tree)


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, source: str) -> bytes:
    """A member that takes no more memory than it has bytes in the file."""
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        raise FileFormatError(f"{source}, member {info.filename!r}: is compressed; jaxdyn.save does not write such")
    return archive.read(info)


def _structure(text: bytes | None, source: str) -> Any:
    if text is None:
        raise FileFormatError(f"{source}: has no {_STRUCTURE}; give a file that jaxdyn.save wrote")
    try:
        head = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{source}, {_STRUCTURE}: cannot be read ({error}); save the tree anew") from None
    if not isinstance(head, dict) or head.get("format") != FORMAT or "tree" not in head:
        raise FileFormatError(f"{source}, {_STRUCTURE}: is not of the format {FORMAT!r}; give a saved tree")
    if head.get("version") != VERSION:
        raise FileFormatError(
            f"{source}: has version {head.get('version')!r} of the format, and this jaxdyn reads {VERSION}; "
            "load it with the jaxdyn that wrote it, or update this one"
        )
    return head["tree"]


def _no_constant(name: str):
    raise ValueError(f"the number {name}")


def _array(members: dict[str, bytes], k: int, source: str) -> np.ndarray:
    """An array whose shape agrees with the bytes that are there, checked before any memory is taken."""
    name = f"{k}.npy"
    if name not in members:
        raise FileFormatError(f"{source}: has no member {name!r}; save the tree anew")
    file = io.BytesIO(members[name])
    try:
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError("another version of npy than 1.0")
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        count = 1
        for n in shape:
            count *= n
        if dtype.hasobject or dtype.kind not in "biufc":
            raise ValueError(f"an array of {dtype}")
        if min(shape, default=0) < 0 or count * dtype.itemsize != len(members[name]) - file.tell():
            raise ValueError(f"a shape {shape} that does not fit its bytes")
        file.seek(0)
        return np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, TypeError, KeyError, EOFError, SyntaxError, MemoryError, OverflowError) as error:
        raise FileFormatError(f"{source}, member {name!r}: cannot be read ({error}); save the tree anew") from None
