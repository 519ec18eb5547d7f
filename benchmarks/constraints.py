"""Constrained motion: error against time on four published problems, and cost against the number of loops.

python benchmarks/constraints.py [--quick] [--json FILE] [--core N] [--loops 1 2 5 10 20]

Four tables: work and precision, for each way to stay on the constraint; one acceleration and one projection; rollouts
of a fixed step; and how far four mechanisms leave their constraints in 100 s. Processor time of one core. Most of it is
spent on compiling, some 5 minutes with --quick.
"""

import argparse
import itertools
import json
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks._timing import Effort, measure_jax, pin_to_core

TOLERANCES = (1e-4, 1e-6, 1e-8, 1e-10)


def pendulum():
    """A01: a point on a rod, from rest, 10 s."""
    import jax.numpy as jnp

    import jaxdyn as jd
    import jaxdyn.constraints as jc

    b = jd.ModelBuilder(gravity=(0, -9.81, 0))
    b.add_link("x", "world", jd.joints.Prismatic((1, 0, 0)))
    b.add_link("point", "x", jd.joints.Prismatic((0, 1, 0)), jd.spatial.point_mass(1.0))
    rod = (jc.Distance("rod", "world", "point", 1.0),)
    seen = lambda model, q: q
    return (
        b.build(),
        rod,
        jnp.array([-1.0, 0.0]),
        jnp.zeros(2),
        10.0,
        (),
        seen,
        (-0.275087462576117, -0.961419205099125),
    )


def squares(n=2):
    """A02: the N-four-bar mechanism, its first corner after 10 s."""
    import jax.numpy as jnp

    import jaxdyn as jd
    import jaxdyn.constraints as jc

    model = jd.robots.n_four_bar(n)
    v = jnp.asarray([-1.0 if name.startswith("bar") else 1.0 for name in model.joint_names])
    seen = lambda model, q: jd.frame_pose(model, q, "B0").translation[:2]
    loops = jc.described_constraints(model)
    return model, loops, jnp.zeros(model.nq), v, 10.0, (), seen, (0.3284581115408154, 0.944518538178601)


def squeezer():
    """A03: Andrews' squeezing mechanism, all angles after 30 ms."""
    import jax.numpy as jnp

    from jaxdyn.simulation import Feedback
    from tests.constraints import _squeezer as andrews

    model, loops, q = andrews.squeezer()
    seen = lambda model, q: q[andrews.ORDER]
    want = (
        15.81077119629904, -15.75637105984298, 0.04082224013073101, -0.5347301163226948, 0.5244099658805304,
        0.5347301163226948, 1.048080741042263,
    )  # fmt: skip
    return model, loops, q, jnp.zeros(7), 0.03, (Feedback(andrews.drive),), seen, want


def bricard():
    """A04: Bricard's mechanism, its third joint after 1 s."""
    import jax.numpy as jnp

    import jaxdyn as jd
    import jaxdyn.constraints as jc

    model = jd.robots.bricard()
    seen = lambda model, q: jd.frame_pose(model, q, "P3").translation
    loop = jc.described_constraints(model)
    return model, loop, jnp.zeros(5), jnp.zeros(5), 1.0, (), seen, (0.274481319, -0.886707939, -0.462330003)


PROBLEMS = {"A01 pendulum": pendulum, "A02 two squares": squares, "A03 squeezer": squeezer, "A04 Bricard": bricard}


def remedies():
    """Ways to stay on the constraint, the default first; rates in 1/s about as fast as the problems."""
    import jaxdyn.constraints as jc

    return {
        "projection": jc.Projection(),
        "Baumgarte": jc.Baumgarte(20.0),
        "GGL": jc.GearGuptaLeimkuhler(20.0),
    }


#: the squeezer moves in milliseconds: what dies out at 20 / s has not by then
FASTER = {"A03 squeezer": 100.0}


def precision_rows(
    name: str, remedy: str = "projection", tolerances=TOLERANCES, repetitions: int = 3, cuts=(None,)
) -> list[dict]:
    """One problem with one remedy at several tolerances: error, what the constraint is off by, steps and seconds.

    Compiled once. `off` is at the end; after a projection that is rounding. `cuts` are those of the rank, None the
    motion's own.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    import jaxdyn as jd
    import jaxdyn.constraints as jc
    from jaxdyn._numerics import default_tolerance
    from jaxdyn.constraints import evaluation as ev
    from jaxdyn.simulation import System

    model, constraints, q, v, end, parts, seen, want = PROBLEMS[name]()
    stabilised = jax.tree.map(lambda rate: rate * FASTER.get(name, 1.0), remedies()[remedy])
    ts = jnp.array([0.0, end])

    def run(cut, tol):
        """The rank tolerance as a number, the default included, to avoid recompilation."""
        motion = jc.ConstrainedMotion(constraints, stabilised, cut or default_tolerance(q.dtype))
        return jax.block_until_ready(jd.simulate(System(model, parts, motion), q, v, ts, rtol=tol, atol=tol))

    @jax.jit
    def off(q):
        return jnp.abs(
            ev.constraint_residuals(model, constraints, ev.constraint_kinematics(model, end, q, jnp.zeros_like(v)))
        ).max()

    start = time.process_time()
    run(None, 1e-2)
    compile_s = time.process_time() - start
    out = []
    for cut, tol in itertools.product(cuts, tolerances):
        path = run(cut, tol)
        times = []
        for _ in range(repetitions):
            start = time.process_time()
            run(cut, tol)
            times.append(time.process_time() - start)
        error = float(np.abs(np.asarray(seen(model, path.q[-1])) - np.asarray(want)).max())
        steps = int(path.num_steps)
        out.append(
            {"problem": name, "remedy": remedy, "cut": cut or "-", "tolerance": tol, "error": error}
            | {"off": float(off(path.q[-1])), "steps": steps, "seconds": min(times)}
            | {"us_per_step": 1e6 * min(times) / steps, "compile_s": compile_s}
        )
    return out


def loop_rows(loops, effort: Effort, batches=(1, 256)) -> list[dict]:
    """Cost of one constrained acceleration and of one projection on n squares in a row, us an evaluation."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    import jaxdyn.constraints as jc

    def works(model):
        motion = jc.ConstrainedMotion(jc.described_constraints(model))
        return {
            "acceleration": lambda model, q, v: motion.acceleration(model, 0.0, q, v, jnp.zeros_like(v), None),
            "projection": lambda model, q, v: motion.project(model, 0.0, q, v),
        }

    out = []
    for n in loops:
        model, _, q, v, *_ = squares(n)
        for work, f in works(model).items():
            for size in sorted(batches, reverse=True):
                many = size > 1
                stacked = [jnp.asarray(np.tile(x, (size, 1))) if many else x for x in (q, v)]
                call = jax.vmap(f, in_axes=(None, 0, 0)) if many else f
                _, compile_s, best, _ = measure_jax(call, (model, *stacked), size, effort)
                out.append(
                    {"work": work, "loops": n, "nv": model.nv, "rows": 3 * n, "batch": size, "us": best}
                    | {"us_per_loop": best / n, "compile_s": compile_s}
                )
    return out


def rollout_rows(loops, effort: Effort, batches=(1, 64), steps: int = 50, chosen=None) -> list[dict]:
    """Cost of a step of n squares in a row, in rollouts of a fixed step, for each remedy, us a step and sample."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    import jaxdyn as jd
    import jaxdyn.constraints as jc
    from jaxdyn.simulation import System

    out = []
    for n in loops:
        model, loop, q, v, *_ = squares(n)
        ts = jnp.array([0.0, 1e-3 * steps])
        for name in remedies() if chosen is None else chosen:
            motion = jc.ConstrainedMotion(loop, remedies()[name])
            run = lambda q, v, m=motion, ts=ts, model=model: jd.simulate(System(model, (), m), q, v, ts, dt=1e-3).q
            for size in sorted(batches, reverse=True):
                states = [jnp.asarray(np.tile(x, (size, 1))) if size > 1 else x for x in (q, v)]
                call = jax.vmap(run) if size > 1 else run
                _, compile_s, best, _ = measure_jax(call, tuple(states), size * steps, effort)
                out.append(
                    {"remedy": name, "loops": n, "batch": size, "us_per_step": best, "us_per_loop": best / n}
                    | {"compile_s": compile_s}
                )
    return out


def drift_rows(seconds: int) -> list[dict]:
    """Residual and rate of closed mechanisms at the ends of steps, and the change of energy, with every default.

    Runs in a separate process, compiled without optimisations: nothing is timed here.
    """
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0".strip()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, _in_haste, (flags,)) as other:
        return other.submit(_drifts, seconds).result()


def _in_haste(flags: str):
    os.environ["XLA_FLAGS"] = flags  # before jax is imported


def _drifts(seconds: int) -> list[dict]:
    import jax

    from tests.constraints._drift import LINKAGES, simulate_drift

    jax.config.update("jax_enable_x64", True)
    return [simulate_drift((name,), seconds) for name in LINKAGES]


def table(rows: list[dict]) -> str:
    """Rows of one kind, aligned."""
    text = [[_written(x) for x in row.values()] for row in rows]
    head = list(rows[0])
    wide = [max(len(line[k]) for line in [head, *text]) for k in range(len(head))]
    return "\n".join("  ".join(x.rjust(w) for x, w in zip(line, wide, strict=True)) for line in [head, *text])


def _written(x) -> str:
    return f"{x:.3g}" if isinstance(x, float) else str(x)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick",
        action="store_true",
        help="two tolerances, the default remedy, every other number of loops, rollouts of one",
    )
    parser.add_argument("--loops", nargs="+", type=int, default=[1, 2, 5, 10, 20])
    parser.add_argument("--json", metavar="FILE", help="write the rows to a file as well")
    parser.add_argument("--core", type=int, default=-1, help="core to run on (default: the last one)")
    args = parser.parse_args(argv)
    core = pin_to_core(args.core)
    os.environ |= {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu"}
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    tolerances = TOLERANCES[1::2] if args.quick else TOLERANCES
    loops = args.loops[::2] if args.quick else args.loops
    print(f"float64, core {core}, processor time; default solver\n")
    effort = Effort(0.1 if args.quick else 0.5, 5, time.process_time)
    chosen = ("projection",) if args.quick else tuple(remedies())
    # redundant in every pose: with the small cut of the rank, stages off the constraint make steps fail
    cuts = lambda name, remedy: (None, 1e-3) if name == "A04 Bricard" and remedy == "projection" else (None,)
    rows = {"precision": [], "loops": [], "rollouts": [], "drift": []}
    for name, remedy in itertools.product(PROBLEMS, chosen):
        rows["precision"] += precision_rows(name, remedy, tolerances, cuts=cuts(name, remedy))
    print(table(rows["precision"]), "\n", flush=True)
    rows["loops"] = loop_rows(loops, effort)
    print(table(rows["loops"]), "\n", flush=True)
    rows["rollouts"] = rollout_rows(loops[:1] if args.quick else loops[:3], effort, chosen=chosen)
    print(table(rows["rollouts"]), "\n", flush=True)
    rows["drift"] = drift_rows(100)
    print(table(rows["drift"]))
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
