"""Times rollouts and their gradients in jaxdyn, mujoco.rollout and MuJoCo MJX on one core.

    python benchmarks/rollouts.py [--quick] [--json FILE] [--core N]

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
from benchmarks._rollouts import GRADIENT, GRADIENT_BATCH, LONG, ROBOTS, ROLLOUT, STEP, STEPS  # noqa: E402
from benchmarks._timing import Row, pin_to_core  # noqa: E402

ENGINES = ("mujoco", "jaxdyn", "mjx")


def sections(args) -> list[tuple[str, str, list[int]]]:
    """`(engine, precision, batches)` of every process to run. MuJoCo uses double precision."""
    out = []
    for engine in args.engines:
        for dtype in args.dtypes:
            if dtype != "float64" and (engine == "mujoco" or (args.quick and engine == "mjx")):
                continue
            small = args.quick and (engine == "mjx" or dtype == "float32")
            out.append((engine, dtype, args.batches[-1:] if small else args.batches))
    return out


def section(args):
    """Runs inside such a process: writes the rows one by one, so that a failure keeps the earlier rows."""
    from benchmarks import _rollouts

    engine, dtype = args.section
    gradients = not args.quick or dtype == "float64"
    effort = choose_effort(args)
    write_rows(_rollouts.rows(engine, dtype, args.robots, args.batches, effort, gradients=gradients), args.json)


def header(core: int | None) -> str:
    import importlib.metadata as metadata

    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("jax", "mujoco", "mujoco-mjx"))
    where = f"pinned to core {core}" if core is not None else "not pinned: times vary"
    return (
        f"{where}, Python {platform.python_version()}, {versions}\n"
        f"XLA_FLAGS={ONE_THREAD}, for MJX also {KINDER['mjx']}\n"
        f"Semi-implicit Euler, steps of {1e3 * STEP:g} ms, no contacts: {STEPS} steps a rollout, {LONG} of a single "
        f"one.\nGradients: {LONG} steps, batch {GRADIENT_BATCH}, reverse mode with checkpoints, with respect to "
        "the initial state.\n"
        "compile: tracing and compilation, s; us: best time per step and sample; steps/s: its inverse, on one core;\n"
        "deviation: from mujoco.rollout, relative.\n"
    )


def table(rows: list[Row]) -> str:
    """The printed table, one block per robot and precision, with the ratio to MuJoCo in C."""
    out = []
    against = {(r.robot, r.batch): r.best_us for r in rows if r.engine == "mujoco.rollout"}
    for robot, dtype in dict.fromkeys((r.robot, r.dtype) for r in rows):
        out.append(f"\n{robot}, {dtype}")
        out.append(
            f"{'work':9}{'batch':>6}  {'engine':25}{'compile':>8}{'us':>10}{'median':>10}{'steps/s':>12}"
            f"{'x MuJoCo':>10}{'deviation':>11}"
        )
        chosen = [r for r in rows if (r.robot, r.dtype) == (robot, dtype)]
        for r in sorted(chosen, key=lambda r: ((ROLLOUT, GRADIENT).index(r.work), r.batch)):
            reference = against.get((robot, r.batch)) if r.work == ROLLOUT else None
            ratio = f"{r.best_us / reference:10.2f}" if reference else f"{'':10}"
            compile_s = f"{r.compile_s:8.2f}" if r.compile_s else f"{'':8}"
            times = f"{r.best_us:10.3f}{r.median_us:10.3f}{1e6 / r.best_us:12,.0f}{ratio}{r.error:11.1e}"
            out.append(f"{r.work:9}{r.batch:6}  {r.engine:25}{r.note or compile_s + times}")
    return "\n".join(out)


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few minutes, less accurate")
    parser.add_argument("--json", metavar="FILE", help="write the rows to a file as well")
    parser.add_argument("--core", type=int, default=-1, help="core to run on (default: the last one)")
    parser.add_argument("--cpu-time", action="store_true", help="processor time, for a shared core")
    parser.add_argument("--no-pin", action="store_true", help="do not pin to a core")
    parser.add_argument("--robots", nargs="+", default=list(ROBOTS), choices=ROBOTS)
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
    print(header(core), flush=True)
    rows, start = [], time.perf_counter()
    for engine, dtype, batches in sections(args):
        began = time.perf_counter()
        rows += run_section(__file__, engine, dtype, batches, args, KEEP_MEMORY)
        print(f"{engine} {dtype}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    print(table(rows))
    print(f"\n{time.perf_counter() - start:.0f} s in all")
    if args.json:
        Path(args.json).write_text(json.dumps([dataclasses.asdict(r) for r in rows], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
