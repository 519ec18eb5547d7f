"""The command `python -m tests.fuzz`."""

import argparse
import sys
from pathlib import Path

from tests.fuzz.guided import has_atheris, run_guided
from tests.fuzz.isolation import run_isolated
from tests.fuzz.registry import find_targets
from tests.fuzz.running import Tally, digest, run_inputs

_HEADINGS = (
    *("target", "inputs", "refused", "accepted", "foreign", "over 1 s", "lost", "large", "slowest, s", "memory, MB"),
    "memory / size",
)


def main() -> int:
    """Runs the command; returns the exit status."""
    arguments = _parse_arguments()
    targets = find_targets()
    unknown = [name for name in arguments.targets if name not in targets]
    if unknown:
        print(f"there is no target {', '.join(unknown)}; expected some of {', '.join(targets)}", file=sys.stderr)
        return 2
    names = arguments.targets or list(targets)
    if arguments.guided:
        return _run_guided(names, arguments)
    total = Tally()
    print(_format_row(_HEADINGS))
    for name in names:
        tally = (_replay if arguments.replay else _fuzz)(name, arguments)
        print(_format_row(_cells(name, tally)), flush=True)
        total.add(tally)
    print(_format_row(_cells("all", total)))
    for failure in total.failures[: arguments.show]:
        print(failure)
    if len(total.failures) > arguments.show:
        print(f"and {len(total.failures) - arguments.show} more failures; --show {len(total.failures)} prints all")
    if arguments.keep and not arguments.replay:
        _keep(total, arguments)
    return 1 if total.failures else 0


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Runs mutated files through the readers.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"default: all of {', '.join(find_targets())}")
    parser.add_argument("--count", type=int, default=1000, help="inputs for each target (default 1000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the mutations (default 0)")
    parser.add_argument("--show", type=int, default=20, help="failures to print (default 20)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="save failing inputs in this folder")
    parser.add_argument("--guided", type=int, metavar="SECONDS", help="coverage-guided, for a time; needs atheris")
    parser.add_argument("--replay", nargs="+", type=Path, metavar="FILE", help="run these files instead of mutations")
    return parser.parse_args()


def _run_guided(names: list[str], arguments: argparse.Namespace) -> int:
    if not has_atheris():
        print("--guided needs the package atheris (Linux, macOS): pip install atheris", file=sys.stderr)
        return 2
    folder = (arguments.keep or Path("fuzz-findings")).resolve()
    failing = [name for name in names if run_guided(name, arguments.guided, arguments.seed, folder)]
    print(f"failures in {', '.join(failing)}; inputs in {folder}" if failing else f"no failures in {', '.join(names)}")
    return 1 if failing else 0


def _fuzz(name: str, arguments: argparse.Namespace) -> Tally:
    return run_isolated(name, arguments.count, arguments.seed)


def _replay(name: str, arguments: argparse.Namespace) -> Tally:
    return run_inputs(find_targets()[name], enumerate(file.read_bytes() for file in arguments.replay), Tally())


def _keep(total: Tally, arguments: argparse.Namespace):
    arguments.keep.mkdir(parents=True, exist_ok=True)
    for failure in total.failures:
        content = find_targets()[failure.target].input(failure.index, arguments.seed)
        Path(arguments.keep, f"{failure.target}-{digest(content)}").write_bytes(content)
    print(f"saved {len(total.failures)} inputs in {arguments.keep}")


def _cells(name: str, tally: Tally) -> list[str]:
    counts = (tally.inputs, tally.refused, tally.accepted, tally.foreign, tally.slow, tally.lost, tally.large)
    measures = (f"{tally.slowest:.3f}", f"{tally.memory / 1e6:.1f}", f"{tally.ratio:.0f}")
    return [name, *map(str, counts), *measures]


def _format_row(cells) -> str:
    first, *others = cells
    widths = (max(9, len(heading)) for heading in _HEADINGS[1:])
    return f"{first:<12}" + "".join(f"{cell:>{width + 2}}" for cell, width in zip(others, widths, strict=True))


if __name__ == "__main__":
    sys.exit(main())
