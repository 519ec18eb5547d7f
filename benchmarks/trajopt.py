"""Optimal motions: optimum, iterations and time, beside CasADi with IPOPT on the same transcription.

Every problem is transcribed by Hermite-Simpson's rule, the states of the middles being variables, for both solvers from
the same guess, with exact second derivatives and the tolerance 1e-8. Times are the best of some runs, compilation
apart; CasADi's functions run in its virtual machine. A note says where the two optima differ.

    python benchmarks/trajopt.py --out trajopt.md

prints the problems in a plane on several meshes, the robots, other methods on the cart-pole, and a batch of starts. The
process keeps to one core.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks._processes import ONE_THREAD
from benchmarks._timing import pin_to_core
from benchmarks._trajopt_casadi import theirs
from benchmarks._trajopt_cases import CART_POLE, CASES, TWO_LINK, Case


def problem_of(case: Case):
    """The case for jaxdyn."""
    import jax.numpy as jnp

    from jaxdyn.trajopt import Bounds, Guess, Problem, VectorField

    n, nu = len(case.start), case.nu
    field = lambda t, x, u, p: jnp.stack([jnp.asarray(y) for y in case.field(x, u, jnp)])
    dynamics = VectorField(field, tuple(f"x{k}" for k in range(n)), tuple(f"u{k}" for k in range(nu)))
    low, high = (np.array(b, float) if b else None for b in (case.lower, case.upper))
    ends = {"start": np.array(case.start, float), "end": np.array(case.end, float)}
    if case.end_control:
        ends["end_control"] = np.array(case.end_control, float)
    running = None if case.cost is None else lambda t, x, u: case.cost(x, u)
    final = (lambda t, x: t) if case.free else None
    bounds = Bounds(low, high, float(case.force[0]), float(case.force[1]))
    guess = Guess(*(jnp.asarray(y) for y in case.guess()))
    options: dict[str, Any] = {"running": running, "final": final, "bounds": bounds, "guess": guess}
    return Problem(dynamics, case.duration, free_duration=case.free, **ends, **options)


def ours(problem, intervals: int, repetitions: int) -> dict:
    """jaxdyn's row."""
    from jaxdyn.trajopt import SolveStatus, solve

    first = solve(problem, intervals=intervals)
    seconds = min(float(solve(problem, intervals=intervals).run_seconds or 0) for _ in range(repetitions))
    return {
        "solver": "jaxdyn",
        "optimum": float(first.cost),
        "iterations": int(first.iterations),
        "status": SolveStatus(int(first.status)).name,
        "seconds": seconds,
        "compile s": first.compile_seconds,
    }


def pair(case: Case, intervals: int, repetitions: int) -> list[dict]:
    """The rows of both solvers for one mesh."""
    rows = [ours(problem_of(case), intervals, repetitions), theirs(case, intervals, repetitions)]
    a, b = (r["optimum"] for r in rows)
    note = "" if abs(a - b) <= 1e-6 * abs(b) else "the optima differ"
    about = {"problem": case.name, "intervals": intervals}
    return [{**about, **row, "published": case.published, "note": note} for row in rows]


def side_by_side(rows: list[dict]) -> list[dict]:
    """One row for both solvers, out of those of `pair`."""
    out = []
    for one, other in zip(rows[::2], rows[1::2], strict=True):
        out.append({key: one[key] for key in ("problem", "intervals", "published")})
        for key in ("optimum", "iterations", "seconds"):
            out[-1] |= {key: one[key], f"IPOPT's {key}": other[key]}
        out[-1] |= {key: one[key] for key in ("status", "compile s", "note")}
    return out


def method_rows(case: Case, intervals: int, repetitions: int) -> list[dict]:
    """One problem by other transcriptions, whose programs IPOPT takes too, and by differential dynamic programming."""
    from jaxdyn.trajopt import MultipleShooting, SolveStatus, Trapezoidal, ilqr, ipopt, solve

    problem, rows = problem_of(case), []
    of = lambda method, **options: lambda: method(problem, intervals=intervals, **options)
    methods: dict[str, Any] = {
        "solve, Trapezoidal": (of(solve, transcription=Trapezoidal()), of(ipopt, transcription=Trapezoidal())),
        "solve, MultipleShooting": (
            of(solve, transcription=MultipleShooting()),
            of(ipopt, transcription=MultipleShooting()),
        ),
        "ilqr, second_order": (of(ilqr, second_order=True), of(ipopt, transcription=MultipleShooting())),
    }
    for name, (call, check) in methods.items():
        first = call()
        seconds = min(float(call().run_seconds or 0) for _ in range(repetitions))
        rows.append(
            {
                "problem": case.name,
                "method": name,
                "intervals": intervals,
                "optimum": float(first.cost),
                "IPOPT's optimum": float(check().cost),
                "iterations": int(first.iterations),
                "status": SolveStatus(int(first.status)).name,
                "seconds": seconds,
                "compile s": first.compile_seconds,
            }
        )
        print(rows[-1], flush=True)
    return rows


def add_core(parser: argparse.ArgumentParser):
    """The option that chooses a core."""
    parser.add_argument("--core", type=int, default=-1, help="keep to this core, by default the last one")
    parser.add_argument("--no-pin", action="store_true", help="leave the choice of cores to the system")


def on_one_core(args):
    """Keeps to one core and one thread; to be called before jax is imported."""
    flags = f"{ONE_THREAD} {os.environ.get('XLA_FLAGS', '')}".strip()
    os.environ |= {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    core = None if args.no_pin else pin_to_core(args.core)
    print("on all cores" if core is None else f"on core {core}", flush=True)


def batch_row(case: Case, intervals: int, size: int) -> dict:
    """Many guesses in one call, one after another in the same code: seconds for all, against one."""
    import jax
    import jax.numpy as jnp

    from jaxdyn.trajopt import Guess, solve

    problem = problem_of(case)
    ends = jnp.stack([problem.start.value, problem.end.value])
    push = jax.random.normal(jax.random.key(0), (size, problem.nx)) * 0.3

    def one(push):
        middle = ends.mean(0) + push
        guess = Guess(jnp.array([0.0, 0.5, 1.0]), jnp.stack([ends[0], middle, ends[1]]), jnp.zeros((3, problem.nu)))
        found = solve(problem.with_guess(guess), intervals=intervals)
        return found.cost, found.status, found.iterations

    def timed(f, x):
        jax.block_until_ready(f(x))
        start = time.perf_counter()
        out = jax.block_until_ready(f(x))
        return out, time.perf_counter() - start

    (_, status, iterations), together = timed(jax.jit(lambda x: jax.lax.map(one, x)), push)
    _, alone = timed(jax.jit(one), push[0])
    return {
        "problem": case.name,
        "starts": size,
        "solved": int((status == 0).sum()),
        "most iterations": int(iterations.max()),
        "seconds": together,
        "one alone": alone,
        "ratio": together / alone,
    }


def table(rows: list[dict]) -> str:
    """Rows as markdown."""

    def written(y):
        if not isinstance(y, float):
            return str(y)
        return f"{y:.8g}" if abs(y) > 1 else f"{y:.3g}"

    head = "| " + " | ".join(rows[0]) + " |"
    lines = ["| " + " | ".join(map(written, row.values())) + " |" for row in rows]
    return "\n".join([head, "|" + "---|" * len(rows[0]), *lines])


def all_rows(quick: bool, repetitions: int) -> list[dict]:
    """Both solvers on every problem and mesh."""
    rows = []
    for case in (CART_POLE, TWO_LINK) if quick else CASES:
        for intervals in (20,) if quick else case.intervals:
            for row in pair(case, intervals, repetitions):
                rows.append(row)
                print(row, flush=True)
    return rows


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="20 intervals, a batch of 8, two problems")
    parser.add_argument("--without-robots", action="store_true", help="only problems with equations written by hand")
    add_core(parser)
    parser.add_argument("--out", metavar="FILE", help="write the tables as markdown")
    parser.add_argument("--json", metavar="FILE", help="write the rows")
    args = parser.parse_args(argv)
    on_one_core(args)
    repetitions = 1 if args.quick else 5
    rows = all_rows(args.quick, repetitions)
    if not args.without_robots:
        from benchmarks import _trajopt_robots

        rows += _trajopt_robots.rows(args.quick, repetitions)
    methods = method_rows(CART_POLE, 20 if args.quick else 80, repetitions)
    batch = batch_row(CART_POLE, 20 if args.quick else 40, 8 if args.quick else 256)
    text = f"{table(side_by_side(rows))}\n\n{table(methods)}\n\n{table([batch])}\n"
    print("\n" + text)
    if args.out:
        Path(args.out).write_text(text, encoding="utf-8")
    if args.json:
        Path(args.json).write_text(
            json.dumps({"solves": rows, "methods": methods, "batch": batch}, indent=1), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
