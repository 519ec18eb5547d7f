"""A case by Hermite-Simpson's rule in CasADi, solved by IPOPT with MUMPS."""

import time

import numpy as np

from benchmarks._trajopt_cases import INF, Case


def transcribed(case: Case, intervals: int):
    """The nonlinear program and its bounds; variables `(x, u, middle x, middle u, T)`, each node by node."""
    import casadi as ca

    n, nu, N = len(case.start), case.nu, intervals
    x, u, xm, um = (ca.MX.sym(*a) for a in (("x", n, N + 1), ("u", nu, N + 1), ("y", n, N), ("w", nu, N)))
    T, sx, su = ca.MX.sym("T"), ca.SX.sym("x", n), ca.SX.sym("u", nu)
    f = ca.Function("f", [sx, su], [ca.vertcat(*case.field(sx, su, ca))])
    running = ca.Function("l", [sx, su], [0 if case.cost is None else case.cost(sx, su)])
    h = T / N
    fx, fm, lx, lm = f(x, u), f(xm, um), running(x, u), running(xm, um)
    f0, f1 = fx[:, :-1], fx[:, 1:]
    g = [xm - (x[:, :-1] + x[:, 1:]) / 2 - h / 8 * (f0 - f1), x[:, 1:] - x[:, :-1] - h / 6 * (f0 + 4 * fm + f1)]
    cost = T if case.free else h / 6 * ca.sum2(lx[:, :-1] + 4 * lm + lx[:, 1:])
    return {"x": ca.veccat(x, u, xm, um, T), "f": cost, "g": ca.veccat(*g)}, bounds(case, intervals)


def bounds(case: Case, N: int):
    """Least and greatest values of all variables."""
    n, nu = len(case.start), case.nu
    low, high = (np.array(b or (s * INF,) * n, float) for b, s in ((case.lower, -1), (case.upper, 1)))
    wide = lambda row, count: np.tile(np.reshape(row, (-1, 1)), (1, count))
    lo, up = wide(low, N + 1), wide(high, N + 1)
    lo[:, 0] = up[:, 0] = case.start
    lo[:, -1] = up[:, -1] = case.end
    inner = [wide(np.full(nu, b), N) for b in case.force]
    force = [wide(np.full(nu, b, float), N + 1) for b in case.force]
    if case.end_control:
        for b in force:
            b[:, -1] = case.end_control
    span = (case.duration / 100, case.duration * 100) if case.free else (case.duration,) * 2
    sides = zip((lo, up), force, (low, high), inner, span, strict=True)
    return [_flat(a, b, wide(c, N), d, np.array([e])) for a, b, c, d, e in sides]


def start(case: Case, N: int, guess=None):
    """Values of all variables on the lines of the guess."""
    points, x, u = case.guess() if guess is None else guess
    at = np.linspace(0, 1, 2 * N + 1)
    x, u = (np.array([np.interp(at, points, column) for column in y.T]) for y in (x, u))
    return _flat(x[:, ::2], u[:, ::2], x[:, 1::2], u[:, 1::2], np.array([case.duration]))


def _flat(*parts):
    return np.concatenate([np.ravel(p, order="F") for p in parts])


def theirs(case: Case, intervals: int, repetitions: int, guess=None) -> dict:
    """The row of CasADi with IPOPT, for the same transcription and guess."""
    import casadi as ca

    begun = time.perf_counter()
    nlp, (low, high) = transcribed(case, intervals)
    options = {"ipopt.print_level": 0, "print_time": False, "ipopt.tol": 1e-8, "ipopt.sb": "yes"}
    solver = ca.nlpsol("s", "ipopt", nlp, {**options, "ipopt.max_iter": 300})
    built = time.perf_counter() - begun
    call = lambda: solver(x0=start(case, intervals, guess), lbx=low, ubx=high, lbg=0, ubg=0)
    out, times = call(), []
    for _ in range(repetitions):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    stats = solver.stats()
    return {
        "solver": "CasADi + IPOPT",
        "optimum": float(out["f"]),
        "iterations": int(stats["iter_count"]),
        "status": stats["return_status"],
        "seconds": min(times) if times else INF,
        "compile s": built,
    }
