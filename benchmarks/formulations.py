"""Operations and time of the momentum form with closed forms against articulated bodies, for 1 to n links.

    python benchmarks/formulations.py [--out FILE.md] [--docs docs/formulations.md] [--plot docs/img/momentum_form.png]
                                      [--no-time] [--quick] [--core N]

This is the comparison of figure 9 (planar chains) and table 1 (chains of ball joints in z-y-x angles) of L. Celentano,
"An Innovative Method for Robots Modeling and Simulation", I-Tech 2008: one evaluation of the right-hand side.
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
PLANAR, BALLS = (*range(1, 11), 15, 20, 30), tuple(range(1, 9))
BATCHES = (1, 256)
MARKS = ("<!-- written by benchmarks/formulations.py -->", "<!-- end of the text by benchmarks/formulations.py -->")
NOTES = """One evaluation of the right-hand side of the equations of motion in float64. "closed" are the closed forms of
Celentano in absolute angles, `(alpha, p, u) -> (alpha', p')`, with a Cholesky solve and the exact gradient of the
kinetic energy; "principal" are the forms of ball joints in principal axes (theorems 8, 10 and 12), also with the
two-point gradient; "aba" is `jaxdyn.aba`, `(q, v, tau) -> a`.

* counted: additions, multiplications, divisions, roots, sines and comparisons of the traced program, one flop each,
  with all iterations of loops, and linear algebra by its leading terms. The source counted in MATLAB in the same way.
  For `aba` the recursion is counted, without the merging of fixed links that precedes it.
* XLA: `cost_analysis()` of the compiled program, which counts the body of a loop once, whatever the number of
  iterations, and omits the Cholesky factorisation, which a library computes. The recursion of `aba` is a loop over the
  links, the closed forms have none, so that this count does not compare work.
"""
TIME_NOTE = f"* us, 1 and us, {BATCHES[1]}: time per evaluation, minimum of several, of one state and in a batch.\n"


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


def methods(kind: str, n: int) -> dict:
    """The methods by name, each as a function and its arguments (links or model first), checked against each other."""
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
        steps = {"closed": (jf.planar_momentum_rates, links)}
    else:
        links = jf.spatial_links(model)
        absolute = lambda x: jf.absolute_angles(model, x)
        mass = lambda x: jf.angular_mass_matrix(links, x.reshape(-1, 3))
        steps = _ball_steps(links, jf.principal_links(model))
    a = jd.aba(model, q, v, tau)
    momentum = lambda q, v: mass(absolute(q)) @ jax.jvp(absolute, (q,), (v,))[1]
    p, rate = jax.jvp(momentum, (q, v), (v, a))  # p' according to aba
    turn = jax.jacfwd(absolute)(q)
    u = jnp.linalg.solve(turn.T, tau)
    for name, (step, links) in steps.items():
        tolerance = 1e-3 if "two-point" in name else 1e-8
        velocity, force = step(links, absolute(q), p, u)
        for actual, expected in ((velocity, turn @ v), (force, rate)):
            np.testing.assert_allclose(
                actual, expected, rtol=tolerance, atol=tolerance * float(jnp.abs(expected).max())
            )
    closed_forms = {name: (step, (links, absolute(q), p, u)) for name, (step, links) in steps.items()}
    return closed_forms | {"aba": (jd.aba, (model, q, v, tau))}


def _ball_steps(links, principal) -> dict:
    """Integration steps of chains of ball joints, each with its links."""
    from jaxdyn import formulations as jf

    exact = lambda links, x, p, u: jf.spatial_momentum_rates(links, x.reshape(-1, 3), p, u)
    rough = lambda links, x, p, u: jf.spatial_momentum_rates(links, x.reshape(-1, 3), p, u, jf.TwoPointGradient(1e-4))
    return {"closed": (exact, links), "principal": (exact, principal), "principal, two-point": (rough, principal)}


def abstract_methods(kind: str, n: int) -> dict:
    """The result of `methods` with shapes in place of numbers: enough to count operations without compilation."""
    import jax
    import jax.numpy as jnp

    import jaxdyn as jd
    from jaxdyn import formulations as jf

    model = chain(kind, n)[0]
    shape = lambda *x: jax.ShapeDtypeStruct(x, jnp.result_type(float))
    state = shape(model.nv), shape(model.nv), shape(model.nv)
    if kind == "planar":
        steps = {"closed": (jf.planar_momentum_rates, jax.eval_shape(jf.planar_links, model))}
    else:
        numbers = shape(n), shape(n, 3), shape(n), shape(n), shape()
        principal = jax.eval_shape(jf.PrincipalLinks, *numbers)
        steps = _ball_steps(jax.eval_shape(jf.spatial_links, model), principal)
    closed_forms = {name: (step, (links, *state)) for name, (step, links) in steps.items()}
    return closed_forms | {"aba": (jd.aba, (model, *state))}


# Counting


def count_flops(function, args, *, largest_kernel=False) -> int:
    """Flops of a traced function, or of its largest kernel only."""
    import jax

    total, kernels = flops(jax.make_jaxpr(function)(*args).jaxpr)
    return max(kernels) if largest_kernel else total


def flops(jaxpr) -> tuple[int, list[int]]:
    """Flops of a traced program with all iterations of its loops, and the flops of each of its kernels."""
    total, kernels = 0, []
    for equation in jaxpr.eqns:
        if equation.primitive.name == "lanes":
            count = _kernel_flops(equation)
            kernels.append(count)
            total += count
            continue
        inner = [flops(x) for x in _inner(equation.params)]
        total += _iterations(equation) * sum(x for x, _ in inner) if inner else _own_flops(equation)
        kernels += [x for _, nested in inner for x in nested]
    return total, kernels


def _kernel_flops(equation) -> int:
    """Flops of a kernel traced for one sample, which is one lane."""
    import jax

    if any(equation.params["batched"]):
        raise ValueError("count one sample, not a batch")
    shapes = [jax.ShapeDtypeStruct((*x.aval.shape, 1), x.aval.dtype) for x in equation.invars]
    return flops(jax.make_jaxpr(equation.params["fun"])(*shapes).jaxpr)[0]


def _inner(params):
    """Programs inside an operation; of several branches, one of which is executed, the first."""
    for value in params.values():
        value = value[0] if isinstance(value, tuple) and value and hasattr(value[0], "jaxpr") else value
        if hasattr(value, "jaxpr"):
            yield value.jaxpr
        elif hasattr(value, "eqns"):
            yield value


def _iterations(equation) -> int:
    return equation.params["length"] if equation.primitive.name == "scan" else 1


ELEMENTWISE = frozenset(
    """add add_any sub mul div neg max min abs sign floor round rem sqrt rsqrt cbrt exp log sin cos tan asin acos atan
    atan2 tanh pow integer_pow square gt lt ge le eq ne select_n and or not cumsum is_finite""".split()
)
#: operations that copy, create or rename data
FREE = frozenset(
    """broadcast_in_dim reshape transpose squeeze expand_dims concatenate pad slice dynamic_slice dynamic_update_slice
    gather scatter rev iota convert_element_type copy copy_p split stack unstack tile stop_gradient
    optimization_barrier device_put full empty platform_index""".split()
)


def _own_flops(equation) -> int:
    """Flops of one operation; data movement counts zero."""
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
    if name in ("scatter-add", "scatter_add"):
        return math.prod(equation.invars[2].aval.shape)
    if name not in FREE:
        raise ValueError(f"operation {name!r} has no count; add it to ELEMENTWISE, to FREE, or give it a rule here")
    return 0


# Tables


def counts(kind: str, n: int) -> dict:
    """Flops of the traced methods for n links."""
    return {
        name: count_flops(f, args, largest_kernel=name == "aba")
        for name, (f, args) in abstract_methods(kind, n).items()
    }


def measure_row(kind: str, n: int, effort: Effort | None) -> dict:
    """Flops of all methods for n links and, with an effort, their times."""
    import jax
    import jax.numpy as jnp

    out, flops_counted = {"links": n}, counts(kind, n)
    for name, (function, args) in methods(kind, n).items():
        out[f"{name} counted"] = flops_counted[name]
        cost = jax.jit(function).lower(*args).compile().cost_analysis()
        out[f"{name} XLA"] = int((cost or {}).get("flops", 0))
        for size in BATCHES if effort is not None else ():
            many = [jnp.tile(x, (size, 1)) if size > 1 else x for x in args[1:]]
            call = jax.vmap(function, (None, *(0 for _ in many))) if size > 1 else function
            out[f"{name} us, {size}"] = measure_jax(call, (args[0], *many), size, effort)[2]
    return out


def format_table(rows: list[dict]) -> str:
    """Rows as a Markdown table."""
    cell = lambda x: f"{x:.3g}" if isinstance(x, float) else f"{x:,}" if isinstance(x, int) else str(x)
    lines = [rows[0].keys(), ["---:"] * len(rows[0]), *([cell(x) for x in r.values()] for r in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def crossover(rows: list[dict], name: str, figure: str) -> str:
    """The largest number of links up to which a closed form has a lower figure than articulated bodies, from one on."""
    below = [r["links"] for r in itertools.takewhile(lambda r: r[f"{name} {figure}"] < r[f"aba {figure}"], rows)]
    return f"up to {below[-1]} of {rows[-1]['links']} links" if below else "for none"


def verdicts(rows: list[dict]) -> str:
    """A table of crossovers: one line per closed form, one column per figure."""
    figures = [key.removeprefix("aba ") for key in rows[0] if key.startswith("aba ")]
    names = [key.removesuffix(" counted") for key in rows[0] if key.endswith(" counted") and not key.startswith("aba")]
    below = lambda name: {figure: crossover(rows, name, figure) for figure in figures}
    return format_table([{"below articulated bodies": name} | below(name) for name in names])


def format_sections(planar: list[dict], spatial: list[dict]) -> str:
    """All tables: counts, times, crossovers."""
    text = []
    for title, rows in (("Planar chains (figure 9)", planar), ("Ball joints (table 1)", spatial)):
        is_time = lambda key: " us, " in key
        text.append(f"### {title}\n")
        counted_rows = [{k: x for k, x in r.items() if not is_time(k)} for r in rows]
        if rows is spatial:
            source = [TABLE_1.get(r["links"], ("", "")) for r in rows]
            more = [{"source: its method": x, "source: articulated bodies": y} for x, y in source]
            counted_rows = [r | m for r, m in zip(counted_rows, more, strict=True)]
        text.append(format_table(counted_rows) + "\n")
        if any(map(is_time, rows[0])):
            text.append(format_table([{k: x for k, x in r.items() if k == "links" or is_time(k)} for r in rows]) + "\n")
        text.append(verdicts(rows) + "\n")
    return "\n".join(text)


def replace_section(page: str, text: str) -> str:
    """Replaces the text of a page between its two marks."""
    before, _, rest = page.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    if not (rest and after):
        raise ValueError(
            f"the page has no lines {MARKS[0]!r} and {MARKS[1]!r}; add them around the text to be replaced"
        )
    return f"{before}{MARKS[0]}\n\n{text}\n{MARKS[1]}{after}"


def plot(path: Path, planar: list[dict], spatial: list[dict]):
    """Figure 9 of the source, and the same for ball joints: counted operations over the number of links."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axis, title, rows in ((axes[0], "planar chain", planar), (axes[1], "chain of ball joints", spatial)):
        links = [r["links"] for r in rows]
        for key in (key for key in rows[0] if key.endswith(" counted")):
            name = key.removesuffix(" counted")
            label = {"aba": "articulated bodies", "closed": "closed form"}.get(name, f"closed form, {name}")
            axis.plot(links, [r[key] for r in rows], "k--" if name == "aba" else "o-", label=label, markersize=3)
        axis.set(title=title, xlabel="links", ylabel="operations", yscale="log")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    figure.savefig(path, dpi=110)


def main(argv=None):
    """Prints the tables, and writes them and the figure to the files of the options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few links, few repetitions")
    parser.add_argument(
        "--no-time", action="store_true", help="counts only, which do not depend on the load of the machine"
    )
    parser.add_argument("--out", type=Path, help="file to write a page to")
    parser.add_argument("--docs", type=Path, help="page of the documentation to write the tables into")
    parser.add_argument("--plot", type=Path, help="file for the figure of counted operations")
    parser.add_argument("--core", type=int, default=-1, help="core to run on (default: the last one)")
    args = parser.parse_args(argv)
    pin_to_core(args.core)
    os.environ |= {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "false"}
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    effort = Effort(0.05, 5, time.process_time) if args.quick else Effort(1.0, 20, time.process_time)
    effort = None if args.no_time else effort
    numbers = (("planar", (1, 3)), ("ball", (1, 2))) if args.quick else (("planar", PLANAR), ("ball", BALLS))
    planar, spatial = ([measure_row(kind, n, effort) for n in links] for kind, links in numbers)
    text = f"{NOTES}{'' if effort is None else TIME_NOTE}\n{format_sections(planar, spatial)}"
    print(text)
    if args.out:
        args.out.write_text(f"# Momentum form against articulated bodies\n\n{text}", encoding="utf-8")
    if args.docs:
        args.docs.write_text(replace_section(args.docs.read_text(encoding="utf-8"), text), encoding="utf-8")
    if args.plot:
        plot(args.plot, planar, spatial)


if __name__ == "__main__":
    main()
