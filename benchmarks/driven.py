"""Times a driven Panda, seven motors with gears, inductance and heat, beside the same robot under given efforts.

python benchmarks/driven.py [--core N] [--steps N]

Times to trace and compile and to run one rollout of `simulate` in fixed steps, compiled in a new process, pinned to one
core, the best of several runs.
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

KINDS = ("bare", "driven", "driven, gear losses", "driven, batch of 4,096", "bare, batch of 4,096")
RUNS = 7


def make_system(kind: str):
    """The system, and its effort and inputs."""
    import jax.numpy as jnp

    import jaxdyn as jd
    from jaxdyn.actuators import DcMotor, ThermalModel

    robot = jd.robots.panda()
    effort = jd.gravity_forces(robot, jd.neutral(robot))
    if kind.startswith("bare"):
        return jd.System(robot), {"effort": effort}
    losses = {"efficiency": 0.8, "reverse_efficiency": 0.6} if "losses" in kind else {}
    motors = tuple(
        DcMotor(
            name,
            constant=0.05,
            resistance=0.8,
            inductance=1e-3,
            gear=100.0,
            rotor_inertia=2e-5,
            viscous=1e-5,
            thermal=ThermalModel(20.0, 1.5, 200.0, 3.0),
            **losses,
        )
        for name in robot.joint_names
        if robot.joint(name).v.stop - robot.joint(name).v.start == 1
    )
    return jd.System(robot, motors), {"inputs": jnp.full(robot.nv, 1.0)}


def section(kind: str, steps: int) -> dict[str, float]:
    """Times of one kind, s."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    import jaxdyn as jd

    system, options = make_system(kind)
    q, v, ts = jd.neutral(system.model), jnp.zeros(system.model.nv), jnp.array([0.0, steps * 1e-3])
    batch = 4096 if "4,096" in kind else 0

    def rollout(system, q, v):
        return jd.simulate(system, q, v, ts, dt=1e-3, **options).q

    def batched(system, q, v):
        arrays, static = eqx.partition(system, eqx.is_inexact_array)
        wide = jax.tree.map(lambda x: x * jnp.linspace(0.95, 1.05, batch).reshape(-1, *[1] * x.ndim), arrays)
        return jax.vmap(lambda a, q, v: rollout(eqx.combine(a, static), q, v), (0, None, None))(wide, q, v)

    call = eqx.filter_jit(batched if batch else rollout)
    start = time.perf_counter()
    compiled = call.lower(system, q, v).compile()
    compiling = time.perf_counter() - start
    best = min(_time(compiled, system, q, v) for _ in range(2 if batch else RUNS))
    assert bool(jnp.isfinite(compiled(system, q, v)).all())
    return {"compile": compiling, "run": best / steps / max(batch, 1)}


def _time(call, *args) -> float:
    start = time.perf_counter()
    call(*args).block_until_ready()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--section", choices=KINDS)
    args = parser.parse_args()
    if args.section:
        steps = 20 if "4,096" in args.section else args.steps
        print(json.dumps(section(args.section, steps)))
        return
    pin_to_core(args.core)
    env = dict(os.environ, JAX_PLATFORMS="cpu", JAX_ENABLE_X64="1", XLA_FLAGS=ONE_THREAD, **KEEP_MEMORY)
    env.pop("JAX_COMPILATION_CACHE_DIR", None)
    print("| Panda | trace and compile, s | a step, us |\n|---|---|---|")
    for kind in KINDS:
        command = [sys.executable, __file__, "--section", kind, "--steps", str(args.steps)]
        found = json.loads(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)
        print(f"| {kind} | {found['compile']:.2f} | {1e6 * found['run']:.3g} |", flush=True)


if __name__ == "__main__":
    main()
