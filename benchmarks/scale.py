"""How compilation, evaluation and the memory of gradients grow with the length of a serial chain.

python benchmarks/scale.py [--links 10 100 1000] [--json FILE] [--core N]
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks._timing import Effort, measure, pin_to_core


def functions():
    """The works, and the gradient of the sum of each in state and model; none of them is quadratic."""
    import jax

    import jaxdyn as jd

    rnea = lambda model, q, v, x: jd.rnea(model, q, v, x)
    forward = lambda model, q, v, x: jd.forward_dynamics(model, q, v, x)
    gradient = lambda f: jax.grad(lambda *args: f(*args).sum(), argnums=(0, 1, 2, 3))
    return {
        "inverse dynamics": rnea,
        "its gradient": gradient(rnea),
        "forward dynamics": forward,
        "its gradient ": gradient(forward),
    }


def chain_row(work: str, function, n: int, effort: Effort) -> dict:
    """One figure of each kind for one work on a chain of n links, float64."""
    import jax
    import numpy as np

    from jaxdyn.robots import chain

    model = chain(n)
    rng = np.random.default_rng(0)
    args = (model, *(rng.standard_normal(n) for _ in range(3)))
    args = jax.device_put(args)
    start = time.process_time()
    compiled = jax.jit(function).lower(*args).compile()
    compile_s = time.process_time() - start  # on one core, the clock of an idle machine
    memory = compiled.memory_analysis()
    best, _ = measure(lambda: jax.block_until_ready(compiled(*args)), 1, effort)
    finite = all(bool(np.isfinite(x).all()) for x in jax.tree.leaves(compiled(*args)))
    return {
        "work": work.strip(),
        "links": n,
        "compile_s": compile_s,
        "us": best,
        "us_per_link": best / n,
        "temporary_bytes": memory.temp_size_in_bytes,
        "bytes_per_link": memory.temp_size_in_bytes / n,
        "finite": finite,
    }


def rows(links, effort: Effort) -> list[dict]:
    """All works at all lengths."""
    return [chain_row(work, f, n, effort) for work, f in functions().items() for n in links]


def table(rows: list[dict]) -> str:
    out = [f"{'work':18}{'links':>7}{'compile s':>11}{'us':>11}{'us/link':>9}{'temporary kB':>14}{'B/link':>9}"]
    for r in rows:
        remark = "" if r["finite"] else "  NOT FINITE"
        out.append(
            f"{r['work']:18}{r['links']:7}{r['compile_s']:11.2f}{r['us']:11.1f}{r['us_per_link']:9.3f}"
            f"{r['temporary_bytes'] / 1e3:14.1f}{r['bytes_per_link']:9.0f}{remark}"
        )
    return "\n".join(out)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--links", nargs="+", type=int, default=[10, 30, 100, 300, 1000])
    parser.add_argument("--json", metavar="FILE", help="write the rows to a file as well")
    parser.add_argument("--core", type=int, default=-1, help="core to run on (default: the last one)")
    args = parser.parse_args(argv)
    core = pin_to_core(args.core)
    os.environ |= {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu"}
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    found = rows(args.links, Effort(0.3, 5))
    print(f"one call, float64, core {core}; temporary memory as XLA reports it\n")
    print(table(found))
    if args.json:
        Path(args.json).write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
