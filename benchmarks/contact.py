"""Times rigid contact: the cost of a step away from events, events each second, and what gradients cost.

python benchmarks/contact.py [--core N]

Times to trace and compile and to run one `simulate`, each kind in a new process, pinned to one core, the best of
several runs. scipy integrates the bouncing ball with events beside it.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._processes import KEEP_MEMORY, ONE_THREAD  # noqa: E402
from benchmarks._timing import pin_to_core  # noqa: E402

RUNS = 7
#: m/s^2
GRAVITY = 9.81


def free_panda():
    """A Panda in free fall, in steps of 1 ms."""
    return _panda(False)


def panda_above_a_floor():
    """The same with a contact that stays open."""
    return _panda(True)


def _panda(has_contact: bool):
    import jax.numpy as jnp

    import jaxdyn as jd
    from jaxdyn.contact import Contact, ContactMotion, Gap, Plane, Sphere

    model = jd.robots.panda()
    hand = Gap(model.link_names[-1], Sphere(0.05), ("world", (0, 0, -5.0)), Plane())
    system = jd.System(model, motion=ContactMotion(Contact("hand", hand, 0.5))) if has_contact else model
    ts = jnp.array([0.0, 0.5])
    return lambda x: jd.simulate(system, x, jnp.zeros(model.nv), ts, dt=1e-3), jd.neutral(model), 500


def bouncing_ball():
    """A ball that bounces 40 times."""
    import jax.numpy as jnp

    import jaxdyn as jd
    from jaxdyn.contact import Contact, ContactMotion, Gap, Newton, Plane, Point

    ball = jd.ModelBuilder()
    ball.add_link("ball", "world", jd.joints.Prismatic((0, 0, 1)), jd.spatial.point_mass(1.0))
    floor = Contact("floor", Gap("ball", Point(), "world", Plane()), restitution=Newton(0.98))
    system = jd.System(ball.build(), motion=ContactMotion(floor))
    ts = jnp.array([0.0, 25.0])
    return lambda x: jd.simulate(system, x, jnp.zeros(1), ts, max_events=64), jnp.ones(1), 1


def sliding_block():
    """A block that slides to rest in space."""
    import jax.numpy as jnp

    import jaxdyn as jd
    from jaxdyn.contact import Contact, ContactMotion, Gap, Plane, Point

    b = jd.ModelBuilder()
    b.add_link("x", "world", jd.joints.Prismatic((1, 0, 0)))
    b.add_link("y", "x", jd.joints.Prismatic((0, 1, 0)))
    b.add_link("z", "y", jd.joints.Prismatic((0, 0, 1)), jd.spatial.point_mass(1.0))
    floor = Contact("floor", Gap("z", Point(), "world", Plane()), friction=0.25)
    system = jd.System(b.build(), motion=ContactMotion(floor))
    ts = jnp.array([0.0, 3.0])
    return lambda v: jd.simulate(system, jnp.zeros(3), v, ts), jnp.array([4.0, 0.8, 0.0]), 1


KINDS = {f.__name__: f for f in (free_panda, panda_above_a_floor, bouncing_ball, sliding_block)}


def section(kind: str) -> dict[str, float]:
    """Times of one kind, s, and the number of its events."""
    import jax

    simulate, start, steps = KINDS[kind]()
    begin = time.perf_counter()
    compiled = jax.jit(simulate).lower(start).compile()
    compiling = time.perf_counter() - begin
    run = compiled(start)
    best = min(_time(compiled, start) for _ in range(RUNS))
    assert int(run.status) == 0
    events = 0 if run.phases is None else int(run.phases.count) - 1
    return {"compile": compiling, "run": best, "step": best / steps, "events": events}


def _time(call, x) -> float:
    start = time.perf_counter()
    call(x).q.block_until_ready()
    return time.perf_counter() - start


def scipy_ball() -> dict[str, float]:
    """The bouncing ball by `scipy.integrate.solve_ivp`, restarted at each impact."""
    import numpy as np
    from scipy.integrate import solve_ivp

    def hits(t, y):
        return y[0]

    hits.terminal, hits.direction = True, -1  # type: ignore[attr-defined]
    begin, t, y, events = time.perf_counter(), 0.0, np.array([1.0, 0.0]), 0
    while t < 25.0:
        s = solve_ivp(lambda t, y: [y[1], -GRAVITY], (t, 25.0), y, events=hits, rtol=1e-8, atol=1e-8)
        t, y = float(s.t[-1]), s.y[:, -1]
        if s.status == 1:
            y, events = np.array([1e-13, -0.98 * y[1]]), events + 1
    return {"run": time.perf_counter() - begin, "events": events}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--section", choices=list(KINDS))
    args = parser.parse_args()
    if args.section:
        print(json.dumps(section(args.section)))
        return
    pin_to_core(args.core)
    env = dict(os.environ, JAX_PLATFORMS="cpu", JAX_ENABLE_X64="1", XLA_FLAGS=ONE_THREAD, **KEEP_MEMORY)
    env.pop("JAX_COMPILATION_CACHE_DIR", None)
    print("| motion | trace and compile, s | run, ms | a step, us | events a second |\n|---|---|---|---|---|")
    for kind in KINDS:
        command = [sys.executable, __file__, "--section", kind]
        x = json.loads(subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout)
        step = f"{1e6 * x['step']:.3g}" if x["step"] < x["run"] else ""
        rate = f"{x['events'] / x['run']:.3g}" if x["events"] else ""
        name = kind.replace("_", " ")
        print(f"| {name} | {x['compile']:.2f} | {1e3 * x['run']:.3g} | {step} | {rate} |", flush=True)
    x = min((scipy_ball() for _ in range(3)), key=lambda x: x["run"])
    print(f"| bouncing ball, scipy | | {1e3 * x['run']:.3g} | | {x['events'] / x['run']:.3g} |")


if __name__ == "__main__":
    main()
