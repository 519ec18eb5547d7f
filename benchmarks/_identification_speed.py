"""Time and memory of fits against the number of samples, on synthetic logs of a seven-joint arm.

    python -m benchmarks._identification_speed [--out FILE.md] [--quick]

The arm is the bundled Panda with friction and rotors along Fourier series of four harmonics, with white noise of
0.05 N m on its efforts. The initial model has masses 20 % too great and a wrong friction velocity. `first` is the wall
time of a fit in a new process with compilation, `again` that of the same fit repeated, both in s, and `CPU` the
processor time of `again`, s. Peak memory is measured in a separate process for each row; `log` is the size of the log.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn.identification import Linear, Log, Physical, fit

LINEAR = ("links[*].inertial", "joints[*].damping", "joints[*].friction", "joints[*].armature")
#: name, selection, method; the third is nonlinear in the friction velocity
CASES = (
    ("linear, weighted", LINEAR, Linear),
    ("physical", LINEAR, Physical),
    ("physical, nonlinear", (*LINEAR, "joints[*].friction_velocity"), Physical),
)
HEAD = ("fit", "samples", "parameters", "steps", "relative error", "bodies", "first, s", "again, s", "CPU, s")
MEMORY_HEAD = ("fit", "samples", "chunk", "log, MB", "peak, MB", "peak over the smallest log's, MB")


def generate_log(samples: int) -> tuple[jd.Model, Log]:
    """An initial model and a log of the true arm."""
    model = jd.robots.panda()
    some = jnp.full(7, 0.3)
    fields = lambda m: (m.properties.damping, m.properties.friction, m.properties.armature)
    model = eqx.tree_at(fields, model, (some, some, 0.1 * some))
    model = eqx.tree_at(lambda m: m.properties.friction_velocity, model, jnp.full(7, 0.05))
    rng = np.random.default_rng(0)
    t = np.arange(samples) * 1e-3
    phase, size, w = rng.uniform(0, 6, (7, 4)), rng.normal(0, 0.35, (7, 4)), 2 * np.pi * 0.2 * np.arange(1, 5)
    q, v, a = (np.zeros((samples, 7)) for _ in range(3))
    for k in range(4):  # one harmonic at a time, to limit the memory
        angle = w[k] * t[:, None] + phase[:, k]
        q += size[:, k] * np.sin(angle)
        v += size[:, k] * w[k] * np.cos(angle)
        a -= size[:, k] * w[k] ** 2 * np.sin(angle)
    one = lambda x: jd.rnea(model, *x) - jd.passive_forces(model, *x[:2])
    effort = np.asarray(jax.jit(lambda *x: jax.lax.map(one, x, batch_size=1024))(q, v, a))
    log = Log(t, q, v, a, effort + rng.normal(0, 0.05, q.shape), "generated")
    start = eqx.tree_at(lambda m: m.links.mass, model, 1.2 * model.links.mass)
    return eqx.tree_at(lambda m: m.properties.friction_velocity, start, jnp.full(7, 0.08)), log


def time_fit(case: int, samples: int) -> dict:
    """Runs one case twice in this process."""
    label, selection, method = CASES[case]
    start, log = generate_log(samples)
    spent = []
    for _ in range(2):
        begin, busy = time.perf_counter(), time.process_time()
        result = fit(start, [log], selection, method(reweight=1))
        spent.append((time.perf_counter() - begin, time.process_time() - busy))
    bodies = sum(c.physical for c in result.physical)
    return {
        "label": label,
        "samples": samples,
        "parameters": len(result.parameters),
        "steps": result.steps,
        "status": result.status.name,
        "error": result.relative_error,
        "bodies": f"{bodies} of {len(result.physical)}",
        "first": spent[0][0],
        "again": spent[1][0],
        "cpu": spent[1][1],
    }


def peak_memory(case: int, samples: int, chunk: int) -> dict:
    """Runs one case once in this process; returns the peak memory of the process."""
    label, selection, method = CASES[case]
    start, log = generate_log(samples)
    fit(start, [log], selection, method(reweight=0, chunk=chunk, **({"max_steps": 1} if case else {})))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = sum(x.nbytes for x in jax.tree.leaves(log)) / 2**20
    return {"label": label, "samples": samples, "chunk": chunk, "log": size, "peak": most}


def _call_in_process(*call) -> dict:
    """Calls a function of this module in a new process; returns its result."""
    run = [sys.executable, "-m", "benchmarks._identification_speed", "--call", json.dumps(call)]
    done = subprocess.run(run, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{call} ended with {done.returncode}: {done.stderr[-800:]}")
    return json.loads(done.stdout.splitlines()[-1])


def speed(samples: int) -> list[tuple[str, ...]]:
    """Rows for the table of `benchmarks.identification`: case, method, error, status, bodies, seconds."""
    rows = []
    for case in range(len(CASES)):
        x = _call_in_process("time_fit", case, samples)
        title = f"{samples} samples, {x['parameters']} parameters"
        rows.append((title, x["label"], f"{x['error']:.5f}", x["status"], x["bodies"], f"{x['again']:.1f}"))
    return rows


def tables(quick: bool) -> str:
    """The tables of time and memory in Markdown."""
    samples = (2_000,) if quick else (10_000, 100_000)
    keys = ("label", "samples", "parameters", "steps", "error", "bodies", "first", "again", "cpu")
    rows: list[tuple[str, ...]] = [HEAD]
    for many in samples:
        for case in range(len(CASES)):
            x = _call_in_process("time_fit", case, many)
            print(x, file=sys.stderr, flush=True)
            rows.append(tuple(_text(x[key]) for key in keys))
    memory: list[tuple[str, ...]] = [MEMORY_HEAD]
    for case, chunk in ((0, 2048), (0, 256), (2, 2048)):
        least = None
        for many in (1_000, 4_000) if quick else (25_000, 100_000, 400_000):
            x = _call_in_process("peak_memory", case, many, chunk)
            print(x, file=sys.stderr, flush=True)
            least = x["peak"] if least is None else least
            memory.append(
                (x["label"], str(many), str(chunk), f"{x['log']:.0f}", f"{x['peak']:.0f}", f"{x['peak'] - least:.0f}")
            )
    return _markdown(rows) + "\n" + _markdown(memory)


def _text(x) -> str:
    return f"{x:.3g}" if isinstance(x, float) else str(x)


def _markdown(rows) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines.insert(1, "|" + " --- |" * len(rows[0]))
    return "\n".join(lines) + "\n"


def main():
    """Prints both tables, and writes them to the file `--out`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, metavar="FILE.md")
    parser.add_argument("--quick", action="store_true", help="few samples, as a smoke test")
    parser.add_argument("--call", help=argparse.SUPPRESS)
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    if options.call:
        name, *arguments = json.loads(options.call)
        print(json.dumps({"time_fit": time_fit, "peak_memory": peak_memory}[name](*arguments)))
        return
    text = tables(options.quick)
    print(text)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
