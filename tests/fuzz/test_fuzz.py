"""Every target keeps the contract of README.md on its seeds, its regressions and mutations of them."""

import faulthandler
from collections.abc import Iterator

import pytest

from jaxdyn import JaxdynError
from tests.fuzz.isolation import ENDLESS
from tests.fuzz.registry import find_targets
from tests.fuzz.running import Tally, run_inputs
from tests.fuzz.target import Target, as_file

TARGETS = find_targets()
CHUNKS = 24
#: inputs of one chunk of a target; all chunks of all targets run 100,000 inputs or more
CHUNK = -(-100_000 // (CHUNKS * len(TARGETS)))


def fuzz(target: Target, start: int, stop: int) -> Tally:
    """Runs inputs of a target in this process, which ends with a traceback if one of them does not end."""

    def inputs() -> Iterator[tuple[int, bytes]]:
        for index in range(start, stop):
            content = target.input(index, seed=0)
            faulthandler.dump_traceback_later(3 * ENDLESS, exit=True)
            yield index, content

    try:
        return run_inputs(target, inputs(), Tally())
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_accepted(name):
    for content in TARGETS[name].seeds():
        TARGETS[name].run(content)


@pytest.mark.slow  # without type checks at run time, which count towards the time of an input
@pytest.mark.parametrize("name", TARGETS)
def test_regressions_and_mutations(name):
    target = TARGETS[name]
    assert fuzz(target, 0, len(target.corpus) + 200).failures == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("name", TARGETS)
def test_many_mutations(name, chunk):
    tally = fuzz(TARGETS[name], chunk * CHUNK, (chunk + 1) * CHUNK)
    assert tally.inputs == CHUNK and tally.failures == []


def test_failures_are_found(monkeypatch):
    def run(content: bytes):
        if content == b"foreign":
            raise KeyError("x")
        if content == b"refused":
            raise JaxdynError("x")
        return bytearray(b"1") * 100_000_000 if content == b"large" else None

    target = Target("t", lambda: [b"foreign", b"refused", b"fine", b"large"], run)
    tally = fuzz(target, 0, 4)
    assert (tally.inputs, tally.foreign, tally.refused, tally.accepted, tally.large) == (4, 1, 1, 2, 1)
    assert [failure.index for failure in tally.failures] == [0, 3]
    monkeypatch.setattr("tests.fuzz.running.MAX_SECONDS", 0.0)
    tally = fuzz(target, 2, 3)
    assert tally.slow == 1 and "takes" in tally.failures[0].problem


def test_inputs_depend_on_seed_and_index_only():
    target = Target("t", lambda: [bytes(range(200))], len)
    again = Target("t", lambda: [bytes(range(200))], len)
    assert [target.input(k, 3) for k in range(50)] == [again.input(k, 3) for k in range(50)]
    assert len({target.input(k, 3) for k in range(50)}) > 40
    assert as_file(".x", lambda path: (path.suffix, path.read_bytes()))(b"1") == (".x", b"1")
