"""Running of inputs in a child process: a crash of the interpreter or an endless loop fails one input."""

import dataclasses
import faulthandler
import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.registry import find_targets
from tests.fuzz.running import Failure, Tally, run_inputs

#: time after which an input counts as endless, s
ENDLESS = 20
_STEP = 100
_ROOT = Path(__file__).parents[2]


def run_isolated(name: str, count: int, seed: int) -> Tally:
    """Runs `count` inputs of a target in child processes."""
    total, ranges = Tally(), [(0, count)]
    while ranges:
        start, stop = ranges.pop(0)
        if start >= stop:
            continue
        done, current, code = _run_child(name, start, stop, seed, total)
        if done < stop:
            reason = f"does not end in {ENDLESS} s" if code == 1 else f"ends the interpreter (status {code})"
            total.add(Tally(inputs=1, lost=1, failures=[Failure(name, current, reason)]))
            ranges[:0] = [(done, current), (current + 1, stop)]
    return total


def _run_child(name: str, start: int, stop: int, seed: int, total: Tally) -> tuple[int, int, int]:
    """Index after the last reported input, index of the running input, and exit status."""
    with tempfile.TemporaryDirectory(prefix="jaxdyn-fuzz-") as folder:
        progress = Path(folder, "index")
        progress.write_text(str(start))
        arguments = [name, str(start), str(stop), str(seed), str(progress)]
        command = [sys.executable, "-m", "tests.fuzz.isolation", *arguments]
        child = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True)
        done = start
        for line in child.stdout.splitlines():
            done, tally = json.loads(line)
            failures = [Failure(*x) for x in tally.pop("failures")]
            total.add(Tally(**tally, failures=failures))
        current = int(progress.read_text())
        if done < stop and child.returncode == 1 and "Timeout" not in child.stderr:
            raise RuntimeError(f"the child process of target {name} fails: {child.stderr[-3000:]}")
        return done, current, child.returncode


def _serve(name: str, start: int, stop: int, seed: int, progress: Path):
    """The child process: runs inputs and prints a tally, as a line of JSON, after every `_STEP` of them."""
    target = find_targets()[name]
    with progress.open("r+b", buffering=0) as file:

        def inputs(first: int, last: int) -> Iterator[tuple[int, bytes]]:
            for index in range(first, last):
                file.seek(0)
                file.write(b"%-20d" % index)
                faulthandler.dump_traceback_later(ENDLESS, exit=True)
                yield index, target.input(index, seed)
                faulthandler.cancel_dump_traceback_later()

        run_inputs(target, inputs(start, start + 1), Tally())  # imports what the reader needs
        for first, last in itertools.pairwise([*range(start, stop, _STEP), stop]):
            tally = run_inputs(target, inputs(first, last), Tally())
            print(json.dumps([last, dataclasses.asdict(tally)]), flush=True)


if __name__ == "__main__":
    _serve(sys.argv[1], *map(int, sys.argv[2:5]), Path(sys.argv[5]))
