"""Times the core algorithms side by side with Pinocchio, MuJoCo MJX and frax, on one core.

    python benchmarks/core.py [--quick] [--json FILE] [--core N]

See README.md for what is measured and how.
"""

import argparse
import dataclasses
import json
import platform
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._processes import KEEP_MEMORY, KINDER, ONE_THREAD, choose_effort, run_section, write_rows  # noqa: E402
from benchmarks._timing import Row, pin_to_core  # noqa: E402

ENGINES = ("pinocchio", "jaxdyn", "mjx", "frax")
CPP = ("Pinocchio (C++ loop)", "Pinocchio (less overhead)")


def sections(args) -> list[tuple[str, str, list[int]]]:
    """`(engine, precision, batches)` of every process to run."""
    out = []
    for engine in args.engines:
        for dtype in args.dtypes[:1] if engine == "pinocchio" else args.dtypes:
            batches = args.batches
            if args.quick and (engine == "mjx" or dtype == "float32"):
                batches = batches[-1:]
            if not (args.quick and engine in ("mjx", "frax") and dtype == "float32"):
                out.append((engine, dtype, batches))
    return out


def section(args):
    """Inside such a process: writes rows as they come, so that a failure keeps the earlier ones."""
    from benchmarks import _sections

    engine, dtype = args.section
    effort = choose_effort(args)
    write_rows(_sections.run(engine, dtype, args.robots, args.batches, effort, quick=args.quick), args.json)


def header(core: int | None, fresh: bool) -> str:
    import importlib.metadata as metadata

    versions = []
    for name in ("jax", "jaxlib", "pin", "mujoco", "mujoco-mjx", "frax"):
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            versions.append(f"{name} not installed")
    memory = "returned to the system" if fresh else "kept by the C library, " + " ".join(KEEP_MEMORY)
    where = f"pinned to core {core}" if core is not None else "not pinned: times vary"
    return (
        f"{_processor()}, {where}, Python {platform.python_version()}\n{', '.join(versions)}\n"
        f"Freed memory is {memory}\n"
        f"XLA_FLAGS={ONE_THREAD}, for MJX also {KINDER['mjx']},\nfor frax also {KINDER['frax']}\n"
        "Times in us an evaluation, best and median; compile: tracing and compiling in s. `x C++`: best time\n"
        "over Pinocchio's in float64 at the largest batch, from its own loop in C++ where it has one; the\n"
        "others are called from Python, less the time of the same call on a robot of one joint. Gradients\n"
        "are put beside its forward dynamics. Every value was compared with Pinocchio's.\n"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def references(rows: list[Row]) -> dict[tuple[str, str], float]:
    """Pinocchio's time an evaluation for each robot and work, without overhead of Python calls."""
    out = {(r.robot, r.work): r.best_us for r in rows if r.engine in CPP}
    gradient = "forward dynamics"  # gradients are measured against the value
    for robot in {r for r, _ in out}:
        for work in ("gradient in q, v, tau", "gradient in model leaves"):
            if (robot, gradient) in out:
                out[robot, work] = out[robot, gradient]
    return out


def table(rows: list[Row]) -> str:
    """The printed table, one block a robot and precision."""
    against = references(rows)
    works = list(dict.fromkeys(r.work for r in rows))
    out = []
    for robot, dtype in dict.fromkeys((r.robot, r.dtype) for r in rows):
        out.append(f"\n{robot}, {dtype}")
        out.append(f"{'work':29}{'batch':>6}  {'engine':26}{'compile':>8}{'best':>11}{'median':>11}{'x C++':>8}")
        chosen = [r for r in rows if (r.robot, r.dtype) == (robot, dtype)]
        for r in sorted(chosen, key=lambda r: (works.index(r.work), r.batch)):
            ratio = r.best_us / against[robot, r.work] if (robot, r.work) in against else float("nan")
            compile_s = f"{r.compile_s:8.2f}" if r.compile_s else f"{'':8}"
            times = f"{r.best_us:11.3f}{r.median_us:11.3f}{ratio:8.2f}"
            out.append(f"{r.work:29}{r.batch:6}  {r.engine:26}{r.note or compile_s + times}")
    return "\n".join(out)


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="below three minutes, less exact")
    parser.add_argument("--json", metavar="FILE", help="write the rows to a file as well")
    parser.add_argument("--core", type=int, default=-1, help="core to run on (default: the last one)")
    parser.add_argument("--cpu-time", action="store_true", help="processor time, where others share the core")
    parser.add_argument("--fresh-memory", action="store_true", help="let the C library return what is freed")
    parser.add_argument("--no-pin", action="store_true", help="do not pin to a core")
    parser.add_argument("--robots", nargs="+", default=["panda", "humanoid"])
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=ENGINES)
    parser.add_argument("--dtypes", nargs="+", default=["float64", "float32"])
    parser.add_argument("--batches", nargs="+", type=int, default=None)
    parser.add_argument("--section", nargs=2, metavar=("ENGINE", "DTYPE"), help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    args.batches = args.batches or ([1, 4096] if args.quick else [1, 256, 4096])
    return args


def main(argv=None):
    args = parse(argv)
    if args.section:
        section(args)
        return
    core = None if args.no_pin else pin_to_core(args.core)
    print(header(core, args.fresh_memory), flush=True)
    rows, start = [], time.perf_counter()
    for engine, dtype, batches in sections(args):
        began = time.perf_counter()
        rows += run_section(__file__, engine, dtype, batches, args, {} if args.fresh_memory else KEEP_MEMORY)
        print(f"{engine} {dtype}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    print(table(rows))
    print(f"\n{time.perf_counter() - start:.0f} s in all")
    if args.json:
        Path(args.json).write_text(json.dumps([dataclasses.asdict(r) for r in rows], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
