"""How fast model-predictive control and differential dynamic programming are, after compilation.

    python benchmarks/control.py [--quick] [--out table.md]

Each row of the first table is a controller called as `simulate` calls it at a sample: from a new state, warm-started by
the plan before. The second table has cold solves, one and a batch.
"""

import argparse
import time
from pathlib import Path

import jax
import jax.numpy as jnp

import jaxdyn as jd
from jaxdyn import trajopt as to

jax.config.update("jax_enable_x64", True)


def swing_cost(t, x, u):
    return 10 * (1 + jnp.cos(x[0])) + 0.1 * x[1] ** 2 + 0.01 * u @ u


def cart_cost(t, x, u):
    return 10 * (1 + jnp.cos(x[1])) + x[0] ** 2 + 0.1 * x[2:] @ x[2:] + 0.01 * u @ u


def arm_cost(t, x, u):
    return 10 * jnp.sum((x[:7] - 0.5) ** 2) + 0.1 * x[7:] @ x[7:] + 1e-4 * u @ u


def effort(t, x, u):
    return u @ u


def limited(limit):
    return to.Bounds(lower_control=-limit, upper_control=limit)


def controllers(quick):
    pendulum, cart, arm = jd.robots.pendulum(), jd.robots.cart_pole(), jd.robots.panda()
    yield (
        "pendulum",
        pendulum,
        to.Problem(pendulum, 1.5, start=jnp.zeros(2), running=swing_cost, bounds=limited(4.0)),
        30,
    )
    yield "cart-pole", cart, to.Problem(cart, 1.0, start=jnp.zeros(4), running=cart_cost, bounds=limited(20.0)), 40
    if not quick:
        yield (
            "Panda, 7 joints",
            arm,
            to.Problem(arm, 0.5, start=jnp.zeros(14), running=arm_cost, bounds=limited(80.0)),
            25,
        )


def rate(model, problem, intervals, samples):
    """Milliseconds a sample, mean and worst, and iterations a sample, along a closed loop."""
    law = to.ModelPredictive(problem, intervals=intervals, iterations=5)
    state = law.initial(model, jd.neutral(model), jnp.zeros(model.nv))
    q, v = jd.neutral(model) + 0.05, jnp.zeros(model.nv)
    sample = jax.jit(lambda t, q, v, s: law.sample(model, t, q, v, s))

    @jax.jit
    def move(q, v, s):
        a = jd.forward_dynamics(model, q, v, law.act(model, 0.0, q, v, s).effort)
        v = v + law.period * a
        return jd.integrate(model, q, law.period * v), v

    jax.block_until_ready(sample(jnp.zeros(()), q, v, state))
    seconds, iterations = [], []
    for k in range(samples):
        start = time.perf_counter()
        state = jax.block_until_ready(sample(k * law.period, q, v, state))
        seconds.append(time.perf_counter() - start)
        iterations.append(float(state.iterations))
        q, v = move(q, v, state)
    return 1e3 * sum(seconds) / samples, 1e3 * max(seconds), sum(iterations) / samples


def solves(quick):
    """Cart-pole swing-up of Kelly 2017: one cold solve, and a batch over masses of the pole."""

    def problem(mass):
        model = jd.robots.cart_pole(masses=(1.0, mass))
        ends = {"start": jnp.zeros(4), "end": jnp.array([1.0, jnp.pi, 0.0, 0.0])}
        return to.Problem(to.Robot(model), 2.0, running=effort, bounds=limited(20.0), **ends)

    n = 50
    one = to.ilqr(problem(0.3), intervals=n)
    one = to.ilqr(problem(0.3), intervals=n)
    size = 4 if quick else 256
    many = jax.jit(jax.vmap(lambda m: to.ilqr(problem(m), intervals=n)))
    masses = jnp.linspace(0.25, 0.35, size)
    jax.block_until_ready(many(masses).cost)
    start = time.perf_counter()
    found = jax.block_until_ready(many(masses))
    seconds = time.perf_counter() - start
    solved = int((found.status == to.SolveStatus.SOLVED).sum())
    yield (
        f"one, {n} intervals",
        one.run_seconds,
        int(one.iterations),
        f"{float(one.cost):.4f}, {to.SolveStatus(int(one.status)).name}",
    )
    yield f"{size} at once", seconds, int(found.iterations.max()), f"{solved} solved"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    lines = ["| controller | intervals | ms a sample | worst, ms | iterations a sample |", "|---|---|---|---|---|"]
    for name, model, problem, intervals in controllers(args.quick):
        mean, worst, count = rate(model, problem, intervals, 20 if args.quick else 200)
        lines.append(f"| {name} | {intervals} | {mean:.2f} | {worst:.2f} | {count:.1f} |")
    lines += ["", "| cart-pole swing-up, cold | s | iterations | optimum |", "|---|---|---|---|"]
    lines += [f"| {name} | {seconds:.3f} | {count} | {cost} |" for name, seconds, count, cost in solves(args.quick)]
    table = "\n".join(lines)
    print(table)
    if args.out:
        args.out.write_text(table + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
