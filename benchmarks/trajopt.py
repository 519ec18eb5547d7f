"""Optimal motions: optimum, iterations and time, beside CasADi with IPOPT on the same transcription.

Every problem is transcribed by Hermite-Simpson's rule, the states of the middles being variables, for both solvers from
the same guess, with exact second derivatives and the tolerance 1e-8. Times are the best of some runs, compilation
apart; CasADi's functions run in its virtual machine. Optima of the two are compared before a time is printed.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

PI, INF = np.pi, np.inf


class Case(NamedTuple):
    """A problem in terms that both solvers read; `field(x, u, lib)` returns a list, lib has sin and cos."""

    name: str
    field: Callable[..., list]
    cost: Callable[..., Any] | None
    start: tuple
    end: tuple
    force: tuple
    duration: float
    free: bool = False
    lower: tuple = ()
    upper: tuple = ()
    published: str = ""
    intervals: int = 40
    #: a state in the middle of the guess, or the line from start to end
    via: tuple = ()


def cart_pole(x, u, lib):
    m1, m2, l, g = 1.0, 0.3, 0.5, 9.81
    s, c = lib.sin(x[1]), lib.cos(x[1])
    d = m1 + m2 * s * s
    a = (l * m2 * s * x[3] ** 2 + u[0] + m2 * g * c * s) / d
    return [x[2], x[3], a, -(l * m2 * c * s * x[3] ** 2 + u[0] * c + (m1 + m2) * g * s) / (l * d)]


def robot_arm(x, u, lib):
    inertia = ((5.0 - x[0]) ** 3 + x[0] ** 3) / 3
    return [x[3], x[4], x[5], u[0] / 5.0, u[1] / (inertia * lib.sin(x[2]) ** 2), u[2] / inertia]


def two_link(x, u, lib):
    s, c = lib.sin(x[2]), lib.cos(x[2])
    d = 31 / 36 + 9 / 4 * s * s
    a = s * (9 / 4 * c * x[0] ** 2 + 2 * x[1] ** 2) + 4 / 3 * (u[0] - u[1]) - 3 / 2 * c * u[1]
    b = -(s * (7 / 2 * x[0] ** 2 + 9 / 4 * c * x[1] ** 2) - 7 / 3 * u[1] + 3 / 2 * c * (u[0] - u[1]))
    return [a / d, b / d, x[1] - x[0], x[0]]


def pendulum(x, u, lib):
    return [x[1], u[0] - 0.1 * x[1] - 9.81 * lib.sin(x[0])]


def acrobot(x, u, lib):
    """`jaxdyn.robots.acrobot()`, whose docstring has the equations."""
    g, l1, lc1, lc2, i1, i2 = 9.81, 1.0, 0.5, 1.0, 1 / 12, 1 / 3
    s, c = lib.sin(x[1]), lib.cos(x[1])
    m11, m12, m22 = lc1**2 + i1 + l1**2 + lc2**2 + 2 * l1 * lc2 * c + i2, lc2**2 + l1 * lc2 * c + i2, lc2**2 + i2
    g2 = lc2 * g * lib.sin(x[0] + x[1])
    r1 = l1 * lc2 * s * x[3] * (2 * x[2] + x[3]) - (lc1 + l1) * g * lib.sin(x[0]) - g2
    r2 = u[0] - l1 * lc2 * s * x[2] ** 2 - g2
    d = m11 * m22 - m12 * m12
    return [x[2], x[3], (m22 * r1 - m12 * r2) / d, (m11 * r2 - m12 * r1) / d]


def quadrotor(x, u, lib):
    """In a plane: 0.5 kg, 0.17 m from the middle to a rotor, 0.0023 kg m^2, thrusts u."""
    push = (u[0] + u[1]) / 0.5
    return [x[3], x[4], x[5], push * lib.sin(x[2]), push * lib.cos(x[2]) - 9.81, 0.17 * (u[0] - u[1]) / 0.0023]


def squares(x, u):
    return sum(u[k] ** 2 for k in range(u.shape[0]))


CASES = (
    Case(
        "cart-pole swing-up",
        cart_pole,
        squares,
        (0,) * 4,
        (1, PI, 0, 0),
        (-20, 20),
        2.0,
        published="58.8077",
        intervals=160,
    ),
    Case("pendulum swing-up", pendulum, squares, (0, 0), (PI, 0), (-4, 4), 3.0),
    Case("acrobot swing-up", acrobot, squares, (0,) * 4, (PI, 0, 0, 0), (-20, 20), 4.0, intervals=80),
    Case("quadrotor turned over", quadrotor, squares, (0, 0, PI, 0, 0, 0), (0,) * 6, (0, 5), 1.5, intervals=60),
    Case(
        "COPS robot arm",
        robot_arm,
        None,
        (4.5, 0, PI / 4, 0, 0, 0),
        (4.5, 2 * PI / 3, PI / 4, 0, 0, 0),
        (-1, 1),
        1.0,
        True,
        (0, -PI, 0, -INF, -INF, -INF),
        (5, PI, PI, INF, INF, INF),
        "9.1409",
        120,
    ),
    Case(
        "two-link arm",
        two_link,
        None,
        (0, 0, 0.5, 0),
        (0, 0, 0.5, 0.522),
        (-1, 1),
        3.0,
        True,
        published="2.9823",
        intervals=200,
    ),
)
CONTROLS = {robot_arm: 3, two_link: 2, quadrotor: 2}


def problem_of(case: Case):
    """The case for jaxdyn."""
    import jax.numpy as jnp

    from jaxdyn.trajopt import Bounds, Problem, VectorField

    n, nu = len(case.start), CONTROLS.get(case.field, 1)
    field = lambda t, x, u, p: jnp.stack([jnp.asarray(y) for y in case.field(x, u, jnp)])
    dynamics = VectorField(field, tuple(f"x{k}" for k in range(n)), tuple(f"u{k}" for k in range(nu)))
    low, high = (np.array(b, float) if b else None for b in (case.lower, case.upper))
    start, end = (np.array(x, float) for x in (case.start, case.end))
    running = None if case.cost is None else lambda t, x, u: case.cost(x, u)
    final = (lambda t, x: t) if case.free else None
    bounds = Bounds(low, high, float(case.force[0]), float(case.force[1]))
    options = {"running": running, "final": final, "bounds": bounds, "free_duration": case.free}
    return Problem(dynamics, case.duration, start=start, end=end, **options)


def ours(case: Case, problem, intervals: int, repetitions: int) -> dict:
    """jaxdyn's row."""
    from jaxdyn.trajopt import solve

    first = solve(problem, intervals=intervals)
    seconds = min(solve(problem, intervals=intervals).run_seconds for _ in range(repetitions))
    return {
        "solver": "jaxdyn",
        "optimum": float(first.cost),
        "iterations": int(first.iterations),
        "status": int(first.status),
        "seconds": seconds,
        "compile s": first.compile_seconds,
    }


def theirs(case: Case, intervals: int, repetitions: int) -> dict:
    """The row of CasADi with IPOPT (MUMPS), for the same transcription and guess."""
    import casadi as ca

    start = time.perf_counter()
    n, nu, N = len(case.start), CONTROLS.get(case.field, 1), intervals
    x, u, xm, um = (ca.MX.sym(*a) for a in (("x", n, N + 1), ("u", nu, N + 1), ("y", n, N), ("w", nu, N)))
    T = ca.MX.sym("T")
    sx, su = ca.SX.sym("x", n), ca.SX.sym("u", nu)
    f = ca.Function("f", [sx, su], [ca.vertcat(*case.field(sx, su, ca))])
    cost = 0 if case.cost is None else case.cost(sx, su)
    running = ca.Function("l", [sx, su], [cost])
    h = T / N
    fx, fm, lx, lm = f(x, u), f(xm, um), running(x, u), running(xm, um)
    f0, f1 = fx[:, :-1], fx[:, 1:]
    g = [xm - (x[:, :-1] + x[:, 1:]) / 2 - h / 8 * (f0 - f1), x[:, 1:] - x[:, :-1] - h / 6 * (f0 + 4 * fm + f1)]
    total = T if case.free else h / 6 * ca.sum2(lx[:, :-1] + 4 * lm + lx[:, 1:])
    z = ca.veccat(x, u, xm, um, T)
    nlp = {"x": z, "f": total, "g": ca.veccat(*g)}
    options = {"ipopt.print_level": 0, "print_time": False, "ipopt.tol": 1e-8, "ipopt.sb": "yes"}
    solver = ca.nlpsol("s", "ipopt", nlp, options)
    low, high = (np.array(b or (s * INF,) * n, float) for b, s in ((case.lower, -1), (case.upper, 1)))
    wide = lambda row, count: np.tile(np.reshape(row, (-1, 1)), (1, count))
    lo, up = wide(low, N + 1), wide(high, N + 1)
    lo[:, 0] = up[:, 0] = case.start
    lo[:, -1] = up[:, -1] = case.end
    force = [wide(np.full(nu, b), N + 1) for b in case.force]
    span = (case.duration / 100, case.duration * 100) if case.free else (case.duration,) * 2
    flat = lambda *parts: np.concatenate([np.ravel(p, order="F") for p in parts])
    lbx, ubx = (
        flat(a, b, wide(c, N), b[:, :-1], np.array([d]))
        for a, b, c, d in zip((lo, up), force, (low, high), span, strict=True)
    )
    s = np.linspace(0, 1, 2 * N + 1)
    line = np.array(case.start)[:, None] + s * (np.array(case.end) - np.array(case.start))[:, None]
    guess = flat(line[:, ::2], np.zeros((nu, N + 1)), line[:, 1::2], np.zeros((nu, N)), np.array([case.duration]))
    built = time.perf_counter() - start
    call = lambda: solver(x0=guess, lbx=lbx, ubx=ubx, lbg=0, ubg=0)
    out, times = call(), []
    for _ in range(repetitions):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    stats = solver.stats()
    return {
        "solver": "CasADi + IPOPT",
        "optimum": float(out["f"]),
        "iterations": int(stats["iter_count"]),
        "status": 0 if stats["success"] else 1,
        "seconds": min(times),
        "compile s": built,
    }


def batch_row(case: Case, problem, intervals: int, size: int) -> dict:
    """Many guesses at once: seconds for all, against one."""
    import jax
    import jax.numpy as jnp

    from jaxdyn.trajopt import Guess, solve

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

    (_, status, iterations), together = timed(jax.jit(jax.vmap(one)), push)
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
    written = lambda y: (
        f"{y:.8g}" if isinstance(y, float) and abs(y) > 1 else f"{y:.3g}" if isinstance(y, float) else str(y)
    )
    head = "| " + " | ".join(rows[0]) + " |"
    lines = ["| " + " | ".join(map(written, row.values())) + " |" for row in rows]
    return "\n".join([head, "|" + "---|" * len(rows[0]), *lines])


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="20 intervals, a batch of 8, two problems")
    parser.add_argument("--out", metavar="FILE", help="write the tables as markdown")
    parser.add_argument("--json", metavar="FILE", help="write the rows")
    args = parser.parse_args(argv)
    os.environ |= {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    cases = (CASES[0], CASES[-1]) if args.quick else CASES
    rows = []
    for case in cases:
        intervals, problem = 20 if args.quick else case.intervals, problem_of(case)
        pair = [ours(case, problem, intervals, 1 if args.quick else 5), theirs(case, intervals, 1 if args.quick else 5)]
        costs = [r["optimum"] for r in pair]
        same = abs(costs[0] - costs[1]) <= 1e-6 * abs(costs[1])
        for row in pair:
            note = "" if same else "another local optimum or not solved"
            rows.append(
                {"problem": case.name, "intervals": intervals, **row, "published": case.published, "note": note}
            )
            print(rows[-1], flush=True)
    batch = batch_row(cases[0], problem_of(cases[0]), 20 if args.quick else 40, 8 if args.quick else 256)
    text = f"{table(rows)}\n\n{table([batch])}\n"
    print("\n" + text)
    if args.out:
        Path(args.out).write_text(text, encoding="utf-8")
    if args.json:
        Path(args.json).write_text(json.dumps({"solves": rows, "batch": batch}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
