"""Logs as npz files: damaged archives, headers of npy and compressed content."""

import io
import random
import struct
import zipfile
import zlib
from collections.abc import Sequence

import numpy as np

from jaxdyn.identification import read_tables
from tests.fuzz.mutators import any_of, mutate_bytes, mutate_text
from tests.fuzz.target import MAX_BYTES, MAX_MEMORY, Target, as_file, stored_regressions

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_DESCRIPTIONS = (
    "<f8",
    ">f4",
    "|u1",
    "|b1",
    "<c16",
    "<U3",
    "|O",
    "<f16",
    "<f3",
    "<M8[ns]",
    "f8,f8",
    "<U999999999",
    "|V0",
)
_SHAPES = ("(3,)", "()", "(1000000000000,)", "(-3,)", "(0, 10000000000000000000000)", "(True,)", "(3", "[3]", "(1,)*9")


def _seeds() -> list[bytes]:
    t = np.arange(6) * 0.1
    about = np.array('{"units": {"t": "s"}}')
    content = []
    for save, arrays in (
        (np.savez, {"t": t, "q": np.outer(t, [1, 2]), "about": about, "gain": 3.0}),
        (np.savez_compressed, {"t": t, "valid": t > 0.2, "n": np.arange(6, dtype=">i2")}),
    ):
        file = io.BytesIO()
        save(file, **arrays)
        content.append(file.getvalue())
    return content


def npy(header: str, data: bytes, version: int = 1) -> bytes:
    """A file of npy with any header."""
    text = header.encode("utf-8", "replace")
    size = struct.pack("<H" if version == 1 else "<I", min(len(text), 65535))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + data


def mutate_npy(content: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Changes the header of an array."""
    header = content[10 : 10 + int.from_bytes(content[8:10], "little")].decode("latin-1")
    match rng.randrange(5):
        case 0:
            header = header.replace("<f8", rng.choice(_DESCRIPTIONS))
        case 1:
            header = header.replace("(6,)", rng.choice(_SHAPES))
        case 2:
            header = rng.choice(("{" * 9000, "(" * 300, "{'descr':" * 20, "", "'''", "\\\n\t x", "1 if", "{}", "ÿ"))
        case 3:
            header = mutate_text(header.encode(), rng, ()).decode("latin-1")[:60_000]
        case _:
            return mutate_bytes(content, rng, seeds)
    return npy(header, content[10 + len(header) :], rng.choice((1, 1, 1, 2, 3, 9)))


def _mutate_archive(content: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Changes a member before the archive is packed again with correct checksums."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    file = io.BytesIO()
    chosen = rng.choice([*members, None])
    with zipfile.ZipFile(file, "w", rng.choice(_METHODS)) as archive:
        for name, data in members.items():
            archive.writestr(rng.choice((name, name, name + "x")) if name == chosen else name, _member(data, rng))
            if name == chosen:
                archive.writestr(f"{rng.randrange(9)}.npy", mutate_npy(data, rng, seeds))
    return file.getvalue()


def _member(data: bytes, rng: random.Random) -> bytes:
    return mutate_npy(data, rng, ()) if rng.random() < 0.3 else data


def _expansion(declared: int | None) -> bytes:
    """A compressed array of 40 MB, with any declared size."""
    size = 5_000_000
    data = npy(f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({size},), }}", bytes(8 * size))
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(data) + packer.flush()
    fields = (0, 8, 0, 33, zlib.crc32(data), len(packed), len(data) if declared is None else declared, 5)
    local = struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 20, *fields, 0) + b"t.npy" + packed
    central = struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\1\2", 20, 20, *fields, 0, 0, 0, 0, 0, 0) + b"t.npy"
    return local + central + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 1, 1, len(central), len(local), 0)


def _regressions() -> dict[str, bytes]:
    stored = stored_regressions("npz")()
    return {**stored, "expansion": _expansion(None), "hidden expansion": _expansion(100)}


TARGETS = [
    Target(
        "npz",
        _seeds,
        as_file(".npz", lambda path: read_tables(path, max_bytes=MAX_BYTES)),
        any_of(mutate_bytes, _mutate_archive),
        _regressions,
        MAX_MEMORY // 2,
    )
]
