"""The interior-point method on one cart-pole said in two ways, and on a robot under a constraint: compile and run time.

The swing-up of Kelly (SIAM Review 59(4), 2017) with its equations written by hand and as a `Robot`; a double pendulum
whose tip slides on a wall; and many starts of the first, under `jax.vmap` and, by `jax.lax.map`, one after another. No
compiled code is taken from a cache. Times are wall-clock; run it on an idle machine.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))


def squares(t, x, u):
    return u @ u


def wall(p):
    return p[0] - 0.6


def cart(t, x, u, p):
    import jax.numpy as jnp

    m1, m2, l, g = p
    s, c = jnp.sin(x[1]), jnp.cos(x[1])
    d = m1 + m2 * s * s
    a = (l * m2 * s * x[3] ** 2 + u[0] + m2 * g * c * s) / d
    b = -(l * m2 * c * s * x[3] ** 2 + u[0] * c + (m1 + m2) * g * s) / (l * d)
    return jnp.stack([x[2], x[3], a, b])


def problems() -> dict:
    """The three problems by name."""
    import jax.numpy as jnp

    import jaxdyn as jd
    import jaxdyn.constraints as jc
    from jaxdyn.trajopt import Bounds, ConstrainedRobot, Problem, Robot, VectorField, partial

    field = VectorField(cart, ("x", "angle", "v", "w"), ("force",), jnp.array([1.0, 0.3, 0.5, 9.81]))
    end, bounds = jnp.array([1.0, np.pi, 0, 0]), Bounds(lower_control=-20.0, upper_control=20.0)
    swing = lambda d: Problem(d, 2.0, start=jnp.zeros(4), end=end, running=squares, bounds=bounds)
    model = jd.robots.double_pendulum()
    surface = jc.OnSurface("wall", jc.End("lower", (0.0, 0.0, -1.0)), wall)
    placed = lambda q: jc.assemble(model, surface, jnp.array(q)).checked().q
    start = jnp.concatenate([placed([-0.2, 1.2]), jnp.zeros(2)])
    target = partial([float(placed([0.1, 0.9])[0]), 0.0], [0, 2])
    slide = Problem(ConstrainedRobot(model, surface), 1.0, start=start, end=target, running=squares)
    return {
        "equations by hand": swing(field),
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


def batch_rows(problem, intervals: int, size: int) -> list[dict]:
    """Many starts, in lockstep and one after another, against one alone."""
    import jax
    import jax.numpy as jnp

    from jaxdyn.trajopt import Guess, solve

    ends = jnp.stack([problem.start.value, problem.end.value])
    pushes = jax.random.normal(jax.random.key(0), (size, problem.nx)) * 0.3

    def one(push):
        x = jnp.stack([ends[0], ends.mean(0) + push, ends[1]])
        guess = Guess(jnp.array([0.0, 0.5, 1.0]), x, jnp.zeros((3, problem.nu)))
        found = solve(problem.with_guess(guess), intervals=intervals)
        return found.status, found.iterations

    def timed(f, x):
        out, best = jax.block_until_ready(f(x)), np.inf
        for _ in range(3):
            start = time.perf_counter()
            jax.block_until_ready(f(x))
            best = min(best, time.perf_counter() - start)
        return out, best

    _, alone = timed(jax.jit(one), pushes[0])
    rows = []
    for name, f in (("jax.vmap", jax.vmap(one)), ("jax.lax.map", lambda x: jax.lax.map(one, x))):
        (status, iterations), seconds = timed(jax.jit(f), pushes)
        rows.append(
            {
                "by": name,
                "starts": size,
                "intervals": intervals,
                "solved": int((status == 0).sum()),
                "iterations, mean": f"{float(iterations.mean()):.3g}",
                "most": int(iterations.max()),
                "seconds": f"{seconds:.3g}",
                "one alone, ms": f"{1e3 * alone:.3g}",
                "ratio": f"{seconds / alone:.3g}",
            }
        )
    return rows


def table(rows: list[dict]) -> str:
    """Rows as markdown."""
    lines = ["| " + " | ".join(map(str, row.values())) + " |" for row in rows]
    return "\n".join(["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0]), *lines])


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="20 intervals, 8 starts, without the constrained robot")
    parser.add_argument("--out", metavar="FILE", help="write the tables as markdown")
    args = parser.parse_args(argv)
    os.environ |= {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    os.environ.pop("JAX_COMPILATION_CACHE_DIR", None)
    rows = []
    every = problems()
    for name, problem in every.items():
        constrained = name == "ConstrainedRobot"
        if not (args.quick and constrained):
            intervals = 20 if args.quick or constrained else 160
            rows.append(solve_row(name, problem, intervals, 1 if args.quick else 5))
            print(rows[-1], flush=True)
    sizes = (20, 8) if args.quick else (40, 256)
    text = f"{table(rows)}\n\n{table(batch_rows(every['equations by hand'], *sizes))}\n"
    print("\n" + text)
    if args.out:
        Path(args.out).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
