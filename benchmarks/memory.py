"""Memory of a rollout's gradient against its horizon, for the adjoints of diffrax.

    python benchmarks/memory.py [--quick] [--steps 100 1000 10000 100000] [--robot panda] [--json FILE]

The gradient of the last configuration with respect to the initial state and the model, steps of 1 ms of Tsit5, float64.
The figure is the memory that XLA reserves for temporaries (`memory_analysis` of the compiled program), so it does not
depend on the load of the machine. The process needs some 300 MB more for Python and JAX.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import diffrax
import jax
import jax.numpy as jnp

import jaxdyn as jd

STEP = 1e-3  # s
#: adjoints by name, and whether their derivatives are taken in forward mode
ADJOINTS: dict[str, tuple[diffrax.AbstractAdjoint, bool]] = {
    "RecursiveCheckpointAdjoint()": (diffrax.RecursiveCheckpointAdjoint(), False),
    "RecursiveCheckpointAdjoint(checkpoints=10)": (diffrax.RecursiveCheckpointAdjoint(checkpoints=10), False),
    "DirectAdjoint()": (diffrax.DirectAdjoint(), False),
    "ForwardMode()": (diffrax.ForwardMode(), True),
}
#: optimised machine code needs the same buffers
QUICK = {"xla_backend_optimization_level": 0}


def temporaries(model: Any, steps: int, adjoint: diffrax.AbstractAdjoint, forward: bool) -> int:
    """Bytes of temporaries of the compiled derivative of a rollout with this number of steps."""
    ts = jnp.array([0.0, steps * STEP])

    def last(model, q):
        v = jnp.zeros(model.nv)
        return jd.simulate(model, q, v, ts, dt=STEP, adjoint=adjoint, max_steps=steps + 1).q[-1]

    if forward:
        derivative = lambda model, q: jax.jvp(lambda q: last(model, q), (q,), (jnp.ones_like(q),))[1]
    else:
        derivative = jax.grad(lambda model, q: last(model, q).sum(), argnums=(0, 1))
    q = jnp.linspace(-0.5, 0.5, model.nq)
    compiled = jax.jit(derivative, compiler_options=QUICK).lower(model, q).compile()
    return compiled.memory_analysis().temp_size_in_bytes


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a pendulum and two horizons, some minutes")
    parser.add_argument("--steps", nargs="+", type=int)
    parser.add_argument("--robot")
    parser.add_argument("--adjoints", nargs="+", default=list(ADJOINTS), choices=list(ADJOINTS))
    parser.add_argument("--json", metavar="FILE", help="write the rows to a file as well")
    args = parser.parse_args(argv)
    args.steps = args.steps or ([100, 10_000] if args.quick else [100, 1_000, 10_000, 100_000])
    args.robot = args.robot or ("pendulum" if args.quick else "panda")
    jax.config.update("jax_enable_x64", True)
    model = getattr(jd.robots, args.robot)()
    print(f"{args.robot}, float64, jax {jax.__version__}, diffrax {diffrax.__version__}; MB of temporaries\n")
    print(f"{'adjoint':44}" + "".join(f"{n:>10,}" for n in args.steps), flush=True)
    rows = []
    for name in args.adjoints:
        print(f"{name:44}", end="", flush=True)
        for steps in args.steps:
            size = temporaries(model, steps, *ADJOINTS[name])
            rows.append({"adjoint": name, "steps": steps, "bytes": size})
            print(f"{size / 1e6:10.2f}", end="", flush=True)
        print(flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
