"""Decoding of MCAP files (MCAP file format specification, version 0)."""

import zlib
from collections.abc import Iterator

from jaxdyn.identification.logs.recordings._bytes import ByteReader
from jaxdyn.identification.logs.recordings._compression import decompress
from jaxdyn.identification.logs.recordings._messages import Message
from jaxdyn.identification.logs.tables import Budget

_MAGIC = b"\x89MCAP0\r\n"
_SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _DATA_END = 3, 4, 5, 6, 15


class _Directory:
    """Schemas and channels by number."""

    def __init__(self):
        self.schemas: dict[int, str] = {0: ""}
        self.channels: dict[int, tuple[str, str, int]] = {}

    def handle(self, op: int, data: bytes) -> Message | None:
        """The message of a message record; stores schemas and channels."""
        reader = ByteReader(data)
        if op == _SCHEMA:
            number = reader.value("H")
            self.schemas[number] = reader.text()
        elif op == _CHANNEL:
            number, schema = reader.values("H", 2)
            self.channels[number] = (reader.text(), reader.text(), schema)
        elif op == _MESSAGE:
            number, _, time, _ = reader.value("H"), reader.value("I"), reader.value("Q"), reader.value("Q")
            if number not in self.channels:
                raise ValueError(f"a message refers to channel {number}, which has no record before it")
            topic, encoding, schema = self.channels[number]
            if schema not in self.schemas:
                raise ValueError(f"channel {topic[:80]!r} refers to schema {schema}, which has no record before it")
            return Message(topic, self.schemas[schema], encoding, time, data[reader.position :])
        return None


def iterate_mcap(content: bytes, max_bytes: int) -> Iterator[Message]:
    """All messages in the order of the file, whose chunks may decompress to `max_bytes` in all.

    Reads the data section from its beginning; the summary at the end, which repeats it, is ignored. Raises `ValueError`
    for damaged files.
    """
    if len(content) < 2 * len(_MAGIC) or not content.startswith(_MAGIC):
        raise ValueError(f"it begins with {content[:8]!r}, expected {_MAGIC!r}")
    if not content.endswith(_MAGIC):
        raise ValueError(f"it ends with {content[-8:]!r}, expected {_MAGIC!r}")
    directory, budget = _Directory(), Budget(max_bytes)
    for op, data in _iterate_records(ByteReader(content, len(_MAGIC), len(content) - len(_MAGIC))):
        if op == _DATA_END:
            return
        inner = _iterate_records(ByteReader(_unpack_chunk(data, budget))) if op == _CHUNK else [(op, data)]
        for record in inner:
            message = directory.handle(*record)
            if message is not None:
                yield message
    raise ValueError("its data section has no end")


def _iterate_records(reader: ByteReader) -> Iterator[tuple[int, bytes]]:
    """Type and content of each record."""
    while reader:
        yield reader.value("B"), reader.prefixed("Q")


def _unpack_chunk(data: bytes, budget: Budget) -> bytes:
    reader = ByteReader(data)
    _, _, size = reader.values("Q", 3)
    checksum, compression = reader.value("I"), reader.text()
    plain = decompress(compression, reader.prefixed("Q"), size, budget)
    if checksum and zlib.crc32(plain) != checksum:
        raise ValueError("a chunk does not match its checksum")
    return plain
