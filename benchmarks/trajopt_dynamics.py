"""The interior-point method on one cart-pole said in two ways, and on a robot under a constraint: compile and run time.

The swing-up of Kelly (SIAM Review 59(4), 2017) with its equations written by hand and as a `Robot`; a double pendulum
whose tip slides on a wall. No compiled code is taken from a cache. Times are wall-clock; run it on an idle machine.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks._trajopt_cases import CART_POLE
from benchmarks.trajopt import add_core, on_one_core, problem_of, table


def squares(t, x, u):
    return u @ u


def wall(p):
    return p[0] - 0.6


def problems() -> dict:
    """The three problems by name."""
    import jax.numpy as jnp

    import jaxdyn as jd
    import jaxdyn.constraints as jc
    from jaxdyn.trajopt import Bounds, ConstrainedRobot, Problem, Robot, partial

    end, bounds = jnp.array([1.0, np.pi, 0, 0]), Bounds(lower_control=-20.0, upper_control=20.0)
    swing = lambda d: Problem(d, 2.0, start=jnp.zeros(4), end=end, running=squares, bounds=bounds)
    model = jd.robots.double_pendulum()
    surface = jc.OnSurface("wall", jc.End("lower", (0.0, 0.0, -1.0)), wall)
    placed = lambda q: jc.assemble(model, surface, jnp.array(q)).checked().q
    start = jnp.concatenate([placed([-0.2, 1.2]), jnp.zeros(2)])
    target = partial([float(placed([0.1, 0.9])[0]), 0.0], [0, 2])
    slide = Problem(ConstrainedRobot(model, surface), 1.0, start=start, end=target, running=squares)
    return {
        "equations by hand": problem_of(CART_POLE),
        "Robot": swing(Robot(jd.robots.cart_pole())),
        "ConstrainedRobot": slide,
    }


def solve_row(name: str, problem, intervals: int, repetitions: int) -> dict:
    """Compile time, and the best time of some solves."""
    from jaxdyn.trajopt import solve

    first = solve(problem, intervals=intervals)
    seconds = min(solve(problem, intervals=intervals).run_seconds for _ in range(repetitions))
    return {
        "problem": name,
        "intervals": intervals,
        "optimum": f"{float(first.cost):.6g}",
        "iterations": int(first.iterations),
        "status": int(first.status),
        "compile s": f"{first.compile_seconds:.3g}",
        "run ms": f"{1e3 * seconds:.3g}",
    }


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="20 intervals, without the constrained robot")
    add_core(parser)
    parser.add_argument("--out", metavar="FILE", help="write the tables as markdown")
    args = parser.parse_args(argv)
    on_one_core(args)
    os.environ.pop("JAX_COMPILATION_CACHE_DIR", None)
    rows = []
    every = problems()
    for name, problem in every.items():
        constrained = name == "ConstrainedRobot"
        if not (args.quick and constrained):
            intervals = 20 if args.quick or constrained else 160
            rows.append(solve_row(name, problem, intervals, 1 if args.quick else 5))
            print(rows[-1], flush=True)
    text = f"{table(rows)}\n"
    print("\n" + text)
    if args.out:
        Path(args.out).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
