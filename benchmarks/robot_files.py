"""A table of real robots from files, each checked against Pinocchio or MuJoCo.

    python benchmarks/robot_files.py --out docs/robot_files.md

`--only PART` takes the files whose names contain PART.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import jax

from benchmarks._agreement import Agreement, mjcf_agreement, mjcf_files, pinocchio_reads, urdf_agreement, urdf_files
from jaxdyn import JaxdynError

COMPARED = ("mass matrix", "bias", "gravity")
HEAD = """# Robots from files

Real robots are read from their files and compared with other engines in a random state. The tables show the deviations
of the mass matrix, the bias forces (Coriolis, centrifugal and gravity) and the gravity forces: the largest difference
divided by the largest entry (or by 1e-9, where forces cancel). Poses of all links and, for MJCF, forces of springs and
dampers are compared too.
Computations are in float64. Load times are the best of three after a first load, which includes compilation; notes
counts the lines of `model.report`.

{versions}. This page is generated:

```bash
python benchmarks/robot_files.py --out docs/robot_files.md
```
"""
URDF_HEAD = """
## URDF

All {count} files of the package `example-robot-data` are read with a fixed and with a floating base. `nq` and
`nv` refer to the fixed base; deviations are the larger of the two. If no joint moves with a fixed base, only
the floating base is compared. In files marked with *, a joint mimics a later one, which Pinocchio's own support of
mimicking joints refuses; there the values of its model with independent joints are projected, `G^T M G` and `G^T h`.
"""
MJCF_HEAD = """
## MJCF

All {count} files that come with the packages `mujoco` and `mujoco-mjx`. MuJoCo's coordinates are mapped to those of
jaxdyn; its mass matrix includes armature. Files without moving joints have no entries.
"""


def _row(*cells) -> str:
    return f"| {' | '.join(map(str, cells))} |\n"


def _header(*extra: str) -> str:
    titles = ("file", "links", "nq", "nv", "mass, kg", "M", "bias", "gravity", *extra, "load, ms", "notes")
    return _row(*titles) + _row("---", *["---:"] * (len(titles) - 1))


def _cells(name: str, first: Agreement, deviations: dict[str, float], others: str) -> str:
    shown = [deviations.get(key) for key in COMPARED]
    rest = [x for key, x in deviations.items() if key not in COMPARED]
    shown.append(max(rest) if rest else None)
    numbers = ["" if x is None else f"{x:.0e}" for x in shown]
    return _row(
        f"`{name}`{others}", first.links, first.nq, first.nv, f"{first.mass:.3f}", *numbers,
        f"{first.load_ms:.0f}", first.notes,
    )  # fmt: skip


def _attempt(name: str, path: Path, compare: Callable[[], str]) -> tuple[str, bool]:
    """A row of the table and True, or the reason for its absence and False."""
    try:
        return compare(), True
    except (JaxdynError, ValueError) as error:
        reason = str(error).replace(str(path), name).removeprefix(f"{name}: ").removeprefix(f"{name}, ")
        return f"- `{name}`: {reason}\n", False
    finally:
        jax.clear_caches()  # no two robots share a program
        print(name, file=sys.stderr, flush=True)


def _urdf(name: str, path: Path) -> str:
    try:
        both = [urdf_agreement(path, floating) for floating in (False, True)]
    except JaxdynError as error:
        raise ValueError(f"{error} (Pinocchio {'reads it' if pinocchio_reads(path) else 'refuses it too'})") from error
    larger = {k: max(a.deviations.get(k, 0.0) for a in both) for k in both[1].deviations}
    return _cells(name, both[0], larger, " *" if any(a.projected for a in both) else "")


def _mjcf(name: str, path: Path) -> str:
    found = mjcf_agreement(path)
    return _cells(name, found, found.deviations, "")


def _section(head: str, files: dict[str, Path], compare, last: str, refused: str) -> Iterator[str]:
    rows = [_attempt(name, path, lambda n=name, p=path: compare(n, p)) for name, path in files.items()]
    yield head.format(count=len(files)) + "\n" + _header(last)
    yield from (text for text, fine in rows if fine)
    lost = [text for text, fine in rows if not fine]
    if lost:
        yield f"\n{refused}\n\n"
        yield from lost


def page(only: str = "") -> str:
    """The whole page as Markdown."""
    pick = lambda files: {name: path for name, path in files.items() if only in name}
    packages = ("jax", "pin", "example-robot-data", "mujoco")
    versions = "With " + ", ".join(f"{p} {metadata.version(p)}" for p in packages)
    urdf = _section(URDF_HEAD, pick(urdf_files()), _urdf, "poses", "Not read:")
    mjcf = _section(
        MJCF_HEAD, pick(mjcf_files()), _mjcf, "poses, passive", "Not read, by MuJoCo's own compiler or by jaxdyn:"
    )
    head = HEAD.format(versions=versions)
    return "".join((head, *urdf, *mjcf))


def main():
    """Writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="file to write; by default the page is printed")
    parser.add_argument("--only", default="", help="part of the names of the files to take")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    text = page(arguments.only)
    if arguments.out is None:
        print(text)
    else:
        arguments.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
