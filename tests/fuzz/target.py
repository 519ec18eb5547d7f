"""Fuzz targets: what to run, on which inputs, within which bounds."""

import random
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.fuzz.mutators import mutate_bytes

Mutator = Callable[[bytes, random.Random, Sequence[bytes]], bytes]
#: maximal size that file readers are given for a file and its expansion, bytes
MAX_BYTES = 1_000_000
#: growth of memory that is allowed by default, bytes: parsed content takes some multiple of `MAX_BYTES`
MAX_MEMORY = 64_000_000
#: maximal size of the inputs that mutations start from, bytes
_MAX_BASE = 50_000


def _no_regressions() -> Mapping[str, bytes]:
    return {}


@dataclass(frozen=True)
class Target:
    """A function that reads bytes, with valid examples and a mutator."""

    name: str
    #: valid inputs, made in memory
    seeds: Callable[[], Sequence[bytes]]
    #: reads one input; returns anything or raises a `JaxdynError`
    run: Callable[[bytes], object]
    #: changes an input
    mutate: Mutator = mutate_bytes
    #: inputs that once failed, by name
    regressions: Callable[[], Mapping[str, bytes]] = _no_regressions
    #: maximal growth of memory during one input, bytes
    max_memory: int = MAX_MEMORY

    @cached_property
    def corpus(self) -> tuple[bytes, ...]:
        """The seeds, and the regressions in the order of their names, which mutations may start from too."""
        return (*self._seeds, *(content for _, content in sorted(self.regressions().items())))

    @cached_property
    def _seeds(self) -> tuple[bytes, ...]:
        return tuple(self.seeds())

    @cached_property
    def _small(self) -> tuple[bytes, ...]:
        return tuple(content for content in self.corpus if len(content) <= _MAX_BASE) or self.corpus

    def input(self, index: int, seed: int) -> bytes:
        """Input `index`: the corpus itself first, then mutations of its members."""
        if index < len(self.corpus):
            return self.corpus[index]
        rng = random.Random(f"{seed} {self.name} {index}")
        content = rng.choice(self._small if rng.random() < 0.3 else self._seeds)
        for _ in range(rng.choice((1, 1, 1, 2, 2, 4, 8))):
            content = self.mutate_safely(content, rng)
        return content

    def mutate_safely(self, content: bytes, rng: random.Random) -> bytes:
        """Mutates an input that may be damaged already, in ways that the parsers of a mutator do not expect."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self.mutate(content, rng, self.corpus)
        except Exception:
            return mutate_bytes(content, rng, self.corpus)


def as_file(suffix: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    """The function of bytes that writes them to a temporary file with a suffix and reads it by `read(path)`."""

    def run(content: bytes) -> object:
        with tempfile.TemporaryDirectory(prefix="jaxdyn-fuzz-") as folder:
            path = Path(folder, f"input{suffix}")
            path.write_bytes(content)
            return read(path)

    return run


def stored_regressions(name: str) -> Callable[[], Mapping[str, bytes]]:
    """The function that reads the files `data/NAME_*`, which are inputs that once failed."""
    folder = Path(__file__).with_name("data")
    return lambda: {path.name: path.read_bytes() for path in sorted(folder.glob(f"{name}_*"))}
