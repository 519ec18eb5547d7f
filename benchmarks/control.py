"""How fast model-predictive control and differential dynamic programming are, after compilation.

    python benchmarks/control.py [--quick] [--out table.md]

Each row of the first table is a controller in closed loop, called as `simulate` calls it at a sample: from a new
state, at a new time, warm-started by the plan before. Its last column is the largest error in the second half: of the
angle of the pole (rad), of the joints (rad), of the position of the quadrotor (m). The second table has cold solves,
one and a batch.
"""

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

import jaxdyn as jd
from jaxdyn import trajopt as to

jax.config.update("jax_enable_x64", True)


class Case(NamedTuple):
    """A controller, the robot it drives, where that starts, and the error (a number) of a state at a time."""

    name: str
    law: Any
    model: Any
    start: Any
    error: Any


def balance_cost(t, x, u):
    return 10 * x[0] ** 2 + 20 * (x[1] - jnp.pi) ** 2 + 0.1 * x[2:] @ x[2:] + 1e-3 * u @ u


def effort(t, x, u):
    return u @ u


def limited(limit):
    return to.Bounds(lower_control=-limit, upper_control=limit)


MIDDLE = jnp.array([0.0, -0.3, 0.0, -1.8, 0.0, 1.6, 0.0])


def waving(t):
    """Angles of the arm that are to be followed, and their rates."""
    rates = 1.0 + 0.2 * jnp.arange(7)
    return MIDDLE + 0.3 * jnp.sin(rates * t), 0.3 * rates * jnp.cos(rates * t)


def waving_cost(t, x, u):
    q, v = waving(t)
    return 100 * jnp.sum((x[:7] - q) ** 2) + jnp.sum((x[7:] - v) ** 2) + 1e-5 * u @ u


def eight(t):
    """The path of the quadrotor."""
    return jnp.stack([jnp.sin(t), jnp.sin(2 * t) / 2, 1.0 + 0.2 * jnp.sin(t)])


def eight_cost(t, x, u):
    e = x[:3] - eight(t)
    return 100 * e @ e + x[3:6] @ x[3:6] + 0.1 * x[6:] @ x[6:] + 0.1 * jnp.sum((u - 2.45) ** 2)


class Quadrotor(to.AbstractDynamics):
    """A rigid body under four thrusts along its z axis (N), with angles about z, y and x in `q`."""

    state_names: tuple[str, ...] = eqx.field(static=True)
    control_names: tuple[str, ...] = eqx.field(static=True)
    model: Any
    #: wrench of unit thrusts in the axes of the body, `(6, 4)`
    mixer: Any

    def efforts(self, t, x, u):
        return jd.jacobian(self.model, x[:6], "body", reference=jd.LOCAL).T @ (self.mixer @ u)

    def rate(self, t, x, u):
        return jnp.concatenate([x[6:], jd.forward_dynamics(self.model, x[:6], x[6:], self.efforts(t, x, u))])


def quadrotor():
    """1 kg, arms of 0.2 m; thrusts push along z and turn about z by 1 cm times their size."""
    axes = (1, 0, 0), (0, 1, 0), (0, 0, 1)
    builder, parent = jd.ModelBuilder(), "world"
    for name, axis in zip("xyz", axes, strict=True):
        builder = builder.add_link(name, parent, jd.joints.Prismatic(axis), jd.spatial.point_mass(0.0))
        parent = name
    body = jd.spatial.box((0.3, 0.3, 0.1), mass=1.0)
    model = builder.add_link("body", parent, jd.joints.SphericalZYX(), body).build()
    mixer = [[0, 0.2, 0, -0.2], [-0.2, 0, 0.2, 0], [0.01, -0.01, 0.01, -0.01], [0] * 4, [0] * 4, [1] * 4]
    names = tuple(f"x{k}" for k in range(12)), tuple(f"thrust{k}" for k in range(4))
    return Quadrotor(*names, model, jnp.array(mixer, float))


def controllers(quick):
    cart, arm, flyer = jd.robots.cart_pole(), jd.robots.panda(), quadrotor()
    start = jnp.array([0.0, jnp.pi + 0.2, 0.0, 0.0])
    problem = to.Problem(cart, 1.0, start=start, running=balance_cost, bounds=limited(20.0))
    pole = lambda t, x: jnp.abs(x[1] - jnp.pi)
    yield Case("cart-pole, balance", to.ModelPredictive(problem, intervals=40), cart, start, pole)
    if not quick:
        law = to.ModelPredictive(problem, intervals=40, solver=to.WarmInteriorPoint())
        yield Case("cart-pole, balance, interior point", law, cart, start, pole)
    start = jnp.concatenate(waving(0.0))
    problem = to.Problem(arm, 0.4, start=start, running=waving_cost, bounds=to.Bounds.of(to.Robot(arm)))
    joints = lambda t, x: jnp.max(jnp.abs(x[:7] - waving(t)[0]))
    law = to.ModelPredictive(problem, intervals=20, delay=0.02)
    yield Case("Panda, 7 joints, tracking, delay of a sample", law, arm, start, joints)
    start = jnp.zeros(12).at[2].set(1.0)
    bounds = to.Bounds(lower_control=0.0, upper_control=6.0)
    problem = to.Problem(flyer, 1.0, start=start, running=eight_cost, bounds=bounds)
    place = lambda t, x: jnp.linalg.norm(x[:3] - eight(t))
    law = to.ModelPredictive(problem, intervals=20, efforts=flyer.efforts)
    yield Case("quadrotor, tracking", law, flyer.model, start, place)


def rate(case, samples):
    """A row: milliseconds a sample, mean and worst, iterations a sample, and the error, along a closed loop."""
    law, model, x = case.law, case.model, case.start
    state = law.initial(model, x[: model.nq], x[model.nq :])
    sample = jax.jit(lambda t, x, s: law.sample(model, t, x[: model.nq], x[model.nq :], s))
    dynamics = law.problem.dynamics

    @jax.jit
    def move(t, x, acting):
        h = law.period / 4
        rate = lambda t, x: dynamics.rate(t, x, acting.u[0])
        x = jax.lax.fori_loop(0, 4, lambda k, x: to.rk4(rate, t + k * h, x, h), x)
        return x, case.error(t + law.period, x)

    jax.block_until_ready(sample(jnp.zeros(()), x, state))
    seconds, iterations, errors = [], [], []
    for k in range(samples):
        t = k * law.period
        start = time.perf_counter()
        new = jax.block_until_ready(sample(t, x, state))
        seconds.append(time.perf_counter() - start)
        iterations.append(float(new.iterations))
        x, error = move(t, x, state if law.predicts else new)
        state = new
        errors += [float(error)] if 2 * k >= samples else []
    mean, worst = 1e3 * sum(seconds) / samples, 1e3 * max(seconds)
    count, span = sum(iterations) / samples, 1e3 * float(law.period)
    return (
        f"| {case.name} | {law.intervals} | {span:.0f} | {mean:.2f} | {worst:.2f} | {count:.1f} | {max(errors):.1e} |"
    )


def solves(quick):
    """Cart-pole swing-up of Kelly 2017: one cold solve, and a batch over masses of the pole."""

    def problem(mass):
        model = jd.robots.cart_pole(masses=(1.0, mass))
        end = jnp.array([1.0, jnp.pi, 0.0, 0.0])
        return to.Problem(to.Robot(model), 2.0, start=jnp.zeros(4), end=end, running=effort, bounds=limited(20.0))

    n = 50
    ways = {"without second derivatives": False} if quick else {"without second derivatives": False, "with": True}
    for name, second in ways.items():
        for _ in range(2):
            one = to.ilqr(problem(0.3), intervals=n, second_order=second)
        end = f"{float(one.cost):.4f}, {to.SolveStatus(int(one.status)).name}"
        yield f"{n} intervals, {name}", one.run_seconds, int(one.iterations), end
    size = 4 if quick else 256
    many = jax.jit(jax.vmap(lambda m: to.ilqr(problem(m), intervals=n)))
    masses = jnp.linspace(0.25, 0.35, size)
    jax.block_until_ready(many(masses).cost)
    start = time.perf_counter()
    found = jax.block_until_ready(many(masses))
    seconds = time.perf_counter() - start
    solved = int((found.status == to.SolveStatus.SOLVED).sum())
    yield f"{size} at once", seconds, int(found.iterations.max()), f"{solved} solved"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    head = "| controller | intervals | sample time, ms | ms a sample | worst, ms | iterations a sample | error |"
    lines = [head, "|---|---|---|---|---|---|---|"]
    lines += [rate(case, 40 if args.quick else 200) for case in controllers(args.quick)]
    lines += ["", "| cart-pole swing-up, cold | s | iterations | optimum |", "|---|---|---|---|"]
    lines += [f"| {name} | {seconds:.3f} | {count} | {cost} |" for name, seconds, count, cost in solves(args.quick)]
    table = "\n".join(lines)
    print(table)
    if args.out:
        args.out.write_text(table + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
