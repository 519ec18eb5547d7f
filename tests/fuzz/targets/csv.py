"""Logs as tables of text, plain and compressed by gzip."""

import gzip
import random
from collections.abc import Sequence

from jaxdyn.identification import read_tables
from tests.fuzz.mutators import any_of, mutate_bytes, mutate_text
from tests.fuzz.target import MAX_BYTES, Target, as_file

_TABLES = (
    '# {"format": "jaxdyn trajectory", "units": {"t": "s", "q.a": "rad"}}\nt,q.a,effort.a\n0,1.5,2\n0.1,-1e-3,nan\n',
    "t;q.a;effort.a;\n0;1,5;2;\n0.1;;3;\n",
    '"t",q.a,"a ""quoted"", name\nover lines"\n0,1,2\n1,2,3\n',
    "# t q.a effort.a\n0 1 2\n1 2 3\n2 3 x\n",
    "0\t1\t2\r\n1\t2\t3\r\n",
    "\ufefft,q\n1,2\n",
)


def _seeds() -> list[bytes]:
    return [text.encode() for text in _TABLES]


def _gzip_seeds() -> list[bytes]:
    return [gzip.compress(text.encode(), mtime=0) for text in _TABLES]


def _mutate_content(content: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Changes the text before compression, or appends a second member."""
    text = mutate_text(gzip.decompress(rng.choice(seeds[: len(_TABLES)])), rng, seeds)
    if rng.random() < 0.1:
        text *= rng.choice((100, 100_000)) if len(text) < 1000 else 1
    return gzip.compress(text, mtime=0)


def _read(path):
    return read_tables(path, max_bytes=MAX_BYTES)


TARGETS = [
    Target("csv", _seeds, as_file(".csv", _read), any_of(mutate_text, mutate_bytes)),
    Target("csv.gz", _gzip_seeds, as_file(".csv.gz", _read), any_of(_mutate_content, mutate_bytes)),
]
