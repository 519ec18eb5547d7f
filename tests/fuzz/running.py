"""Running of inputs, with the outcome, time and memory of each."""

import gc
import hashlib
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from jaxdyn import JaxdynError
from tests.fuzz.target import Target

#: maximal time of one input, s
MAX_SECONDS = 1.0
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Failure(NamedTuple):
    """An input that breaks the contract."""

    target: str
    index: int
    problem: str

    def __str__(self) -> str:
        return f"{self.target}, input {self.index}: {self.problem}"


@dataclass
class Tally:
    """Outcomes of the inputs of one target."""

    inputs: int = 0
    refused: int = 0
    accepted: int = 0
    foreign: int = 0
    slow: int = 0
    #: crashes of the interpreter, and inputs that did not end
    lost: int = 0
    large: int = 0
    #: slowest input, s
    slowest: float = 0.0
    #: largest growth of memory during one input, bytes
    memory: int = 0
    #: largest ratio of growth to the size of the input, over inputs with a growth above 1 MB
    ratio: float = 0.0
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: "Tally"):
        """Adds the outcomes of further inputs."""
        for name in ("inputs", "refused", "accepted", "foreign", "slow", "lost", "large"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("slowest", "memory", "ratio"):
            setattr(self, name, max(getattr(self, name), getattr(other, name)))
        self.failures += other.failures


class _Memory:
    """Peak of the resident memory since the last call of `reset`; 0 on systems without /proc."""

    def __init__(self):
        try:
            _CLEAR.write_text("5")
            self.is_known = True
        except OSError:
            self.is_known = False

    def reset(self) -> int:
        if not self.is_known:
            return 0
        _CLEAR.write_text("5")
        return self._read("VmRSS")

    def peak(self) -> int:
        return self._read("VmHWM") if self.is_known else 0

    def _read(self, name: str) -> int:
        text = _STATUS.read_text()
        return 1024 * int(text[text.index(name) :].split(None, 2)[1])


def run_inputs(target: Target, inputs: Iterable[tuple[int, bytes]], tally: Tally) -> Tally:
    """Runs numbered inputs of a target in this process and adds their outcomes to `tally`."""
    memory = _Memory()
    for index, content in inputs:
        before = memory.reset()
        start = time.perf_counter()
        problem = _run(target, content, tally)
        seconds = time.perf_counter() - start
        growth = max(0, memory.peak() - before)
        if seconds > MAX_SECONDS and problem is None and _seconds(target, content) > MAX_SECONDS:
            tally.slow += 1
            problem = f"takes {seconds:.1f} s, expected less than {MAX_SECONDS:g} s"
        elif growth > target.max_memory and problem is None:
            tally.large += 1
            problem = f"memory grows by {growth / 1e6:.0f} MB, expected at most {target.max_memory / 1e6:.0f} MB"
        tally.inputs += 1
        tally.slowest, tally.memory = max(tally.slowest, seconds), max(tally.memory, growth)
        if growth > 1_000_000:
            tally.ratio = max(tally.ratio, growth / max(len(content), 1))
        if problem is not None:
            tally.failures.append(Failure(target.name, index, problem))
    return tally


def _run(target: Target, content: bytes, tally: Tally) -> str | None:
    """The problem of one input, or None if it is accepted or refused as it should be."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            target.run(content)
        tally.accepted += 1
    except JaxdynError:
        tally.refused += 1
    except Exception as error:
        tally.foreign += 1
        return f"raises {type(error).__module__}.{type(error).__qualname__}: {str(error)[:200]}"
    return None


def _seconds(target: Target, content: bytes) -> float:
    """Processor time of a second run, which neither a busy machine nor a first import makes slow."""
    gc.collect()
    start = time.process_time()
    _run(target, content, Tally())
    return time.process_time() - start


def digest(content: bytes) -> str:
    """A short name for an input."""
    return hashlib.sha256(content).hexdigest()[:8]
