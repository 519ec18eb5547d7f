"""Operations and time of the momentum form with closed forms against articulated bodies, for 1 to n links.

    python benchmarks/formulations.py --out FILE.md [--quick] [--core N]

The comparison of figure 9 (planar chains) and table 1 (chains of ball joints in z-y-x angles) of L. Celentano, "An
Innovative Method for Robots Modeling and Simulation", I-Tech 2008: one evaluation of the right-hand side.
"""

import argparse
import itertools
import math
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks._timing import Effort, measure_jax, pin_to_core

#: flops that the source counted in MATLAB, of its method and of articulated bodies (table 1)
TABLE_1 = {1: (362, 1269), 2: (2459, 7168), 3: (8400, 13758), 4: (21451, 20804), 5: (45868, 28252)}
BATCHES = (1, 256)
HEAD = """# Momentum form against articulated bodies

Written by `python benchmarks/formulations.py --out FILE`. One evaluation of the right-hand side of the equation of
motion in float64: the closed forms of Celentano in absolute angles, `(alpha, p, u) -> (alpha', p')`, with a Cholesky
solve and the exact gradient of the kinetic energy; and `jaxdyn.aba`, `(q, v, tau) -> a`.

* flops counted: additions, multiplications, divisions, roots, sines and comparisons in the program as it is traced,
  each one flop, loops with all their passes, linear algebra by its leading terms. This is what a count in MATLAB was.
  Of articulated bodies the recursion alone, without the merging of fixed links before it.
* flops XLA: `cost_analysis()` of the compiled program. It counts the body of a loop once, whatever its passes, and
  nothing of Cholesky's factors, which a library computes.
* us: time of an evaluation, best of many, one at a time and in a batch of {batch}.
"""


def chain(kind: str, n: int):
    """A chain of n equal rods, hinged about y or on ball joints, with its state."""
    import jax.numpy as jnp
    import numpy as np

    import jaxdyn as jd

    builder = jd.ModelBuilder()
    joint = jd.joints.Revolute([0, 1, 0]) if kind == "planar" else jd.joints.SphericalZYX()
    rod = jd.spatial.box((0.4, 0.05, 0.04), mass=1.0).moved((0.2, 0, 0))
    for i in range(n):
        parent, at = (f"l{i - 1}", (0.4, 0, 0)) if i else ("world", (0, 0, 0))
        builder.add_link(f"l{i}", parent, joint, rod, translation=at)
    model = builder.build()
    rng = np.random.default_rng(n)
    q, v, tau = (jnp.asarray(rng.uniform(-0.5, 0.5, model.nv)) for _ in range(3))
    return model, q, v, tau


def methods(kind: str, n: int):
    """The two methods as functions with their arguments, the model first; checked against each other."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    import jaxdyn as jd
    from jaxdyn import formulations as jf

    model, q, v, tau = chain(kind, n)
    if kind == "planar":
        links = jf.planar_links(model)
        absolute = lambda x: jnp.cumsum(links.sign * x)
        mass = lambda x: jf.absolute_mass_matrix(links, x)
        step = jf.planar_momentum_rates
    else:
        links = jf.spatial_links(model)
        absolute = lambda x: jf.absolute_angles(model, x)
        mass = lambda x: jf.angular_mass_matrix(links, x.reshape(-1, 3))
        step = lambda links, x, p, u: jf.spatial_momentum_rates(links, x.reshape(-1, 3), p, u)
    a = jd.aba(model, q, v, tau)
    momentum = lambda q, v: mass(absolute(q)) @ jax.jvp(absolute, (q,), (v,))[1]
    p, rate = jax.jvp(momentum, (q, v), (v, a))  # p' that articulated bodies give
    turn = jax.jacfwd(absolute)(q)
    u = jnp.linalg.solve(turn.T, tau)
    velocity, force = step(links, absolute(q), p, u)
    for got, wanted in ((velocity, turn @ v), (force, rate)):
        np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-8 * float(jnp.abs(wanted).max()))
    return (step, (links, absolute(q), p, u)), (jd.aba, (model, q, v, tau))


# Counting


def counted(function, args, *, largest_kernel=False) -> int:
    """Flops of a function as traced; of its largest kernel alone if asked for."""
    import jax

    total, kernels = flops(jax.make_jaxpr(function)(*args).jaxpr)
    return max(kernels) if largest_kernel else total


def flops(jaxpr) -> tuple[int, list[int]]:
    """Flops of a traced program with all passes of its loops, and those of its kernels."""
    total, kernels = 0, []
    for equation in jaxpr.eqns:
        if equation.primitive.name == "lanes":
            count = _kernel_flops(equation)
            kernels.append(count)
            total += count
            continue
        inner = [flops(x) for x in _inner(equation.params)]
        total += _passes(equation) * sum(x for x, _ in inner) if inner else _own_flops(equation)
        kernels += [x for _, found in inner for x in found]
    return total, kernels


def _kernel_flops(equation) -> int:
    """A kernel traced for one sample, which is one lane."""
    import jax

    if any(equation.params["batched"]):
        raise ValueError("count one sample, not a batch")
    shapes = [jax.ShapeDtypeStruct((*x.aval.shape, 1), x.aval.dtype) for x in equation.invars]
    return flops(jax.make_jaxpr(equation.params["fun"])(*shapes).jaxpr)[0]


def _inner(params):
    """Programs inside an operation: one of several branches is taken, so the first stands for all."""
    for value in params.values():
        value = value[0] if isinstance(value, tuple) and value and hasattr(value[0], "jaxpr") else value
        if hasattr(value, "jaxpr"):
            yield value.jaxpr
        elif hasattr(value, "eqns"):
            yield value


def _passes(equation) -> int:
    return equation.params["length"] if equation.primitive.name == "scan" else 1


ELEMENTWISE = frozenset(
    """add add_any sub mul div neg max min abs sign floor round rem sqrt rsqrt cbrt exp log sin cos tan asin acos atan
    atan2 tanh pow integer_pow square gt lt ge le eq ne select_n and or not cumsum""".split()
)


def _own_flops(equation) -> int:
    """Flops of one operation; moving data is free."""
    name, size = equation.primitive.name, math.prod(equation.outvars[0].aval.shape)
    n = equation.outvars[0].aval.shape[-1] if equation.outvars[0].aval.shape else 1
    if name in ELEMENTWISE:
        return size
    if name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        depth = math.prod(equation.invars[0].aval.shape[k] for k in contracted)
        return (2 * depth - 1) * size
    if name.startswith("reduce_"):
        return math.prod(equation.invars[0].aval.shape)
    if name == "cholesky":
        return n**3 // 3
    if name == "triangular_solve":
        return math.prod(equation.invars[0].aval.shape) * (size // equation.invars[0].aval.shape[-1])
    return 0


# Rows


def row(kind: str, n: int, effort: Effort) -> dict:
    """Flops and times of both methods for n links."""
    import jax
    import jax.numpy as jnp

    ours, bodies = methods(kind, n)
    out = {"links": n}
    for name, (function, args) in (("closed", ours), ("aba", bodies)):
        out[f"{name} flops counted"] = counted(function, args, largest_kernel=name == "aba")
        cost = jax.jit(function).lower(*args).compile().cost_analysis()
        out[f"{name} flops XLA"] = int((cost or {}).get("flops", 0))
        for size in BATCHES:
            many = [jnp.tile(x, (size, 1)) if size > 1 else x for x in args[1:]]
            call = jax.vmap(function, (None, *(0 for _ in many))) if size > 1 else function
            out[f"{name} us, {size}"] = measure_jax(call, (args[0], *many), size, effort)[2]
    return out


def table(rows: list[dict]) -> str:
    """Rows as a table of markdown."""
    written = lambda x: f"{x:.3g}" if isinstance(x, float) else str(x)
    lines = [rows[0].keys(), ["---:"] * len(rows[0]), *([written(x) for x in r.values()] for r in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def verdict(rows: list[dict]) -> str:
    """Up to how many links each figure of the closed form is below that of articulated bodies."""
    parts = []
    for figure in [key.removeprefix("aba ") for key in rows[0] if key.startswith("aba ")]:
        held = [r["links"] for r in itertools.takewhile(lambda r, f=figure: r[f"closed {f}"] < r[f"aba {f}"], rows)]
        parts.append(f"{figure}: " + (f"up to {held[-1]} of {rows[-1]['links']} links" if held else "for none"))
    return "Closed form below articulated bodies, counted from one link on: " + "; ".join(parts) + "."


def page(planar, spatial, effort: Effort) -> str:
    """Both tables, with the source's own figures."""
    text = [HEAD.format(batch=BATCHES[1])]
    for title, kind, links in (
        ("Planar chains (figure 9)", "planar", planar),
        ("Ball joints (table 1)", "ball", spatial),
    ):
        rows = [row(kind, n, effort) for n in links]
        if kind == "ball":
            source = [TABLE_1.get(n, ("", "")) for n in links]
            rows = [r | {"closed, source": x, "aba, source": y} for r, (x, y) in zip(rows, source, strict=True)]
        text.append(f"## {title}\n\n{table(rows)}\n\n{verdict(rows)}\n")
    return "\n".join(text)


def main(argv=None):
    """Prints the page, and writes it where `--out` says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few links, little repetition")
    parser.add_argument("--out", type=Path, help="file to write the page to")
    parser.add_argument("--core", type=int, default=-1, help="core to run on (default: the last one)")
    args = parser.parse_args(argv)
    pin_to_core(args.core)
    os.environ |= {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "false"}
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    planar, spatial = ((1, 3), (1, 2)) if args.quick else ((*range(1, 11), 15, 20), range(1, 9))
    text = page(
        planar, spatial, Effort(0.05, 5, time.process_time) if args.quick else Effort(1.0, 20, time.process_time)
    )
    print(text)
    if args.out:
        args.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
