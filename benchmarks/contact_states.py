"""Counts failures of rigid contact over random states of twelve mechanisms, in value and in derivative.

    python benchmarks/contact_states.py [--states 10000] [--mechanisms NAME ...] [--kinds]

A tenth of the states of each mechanism is of each kind: open, touch-down with slip, without slip, and without normal
speed, at rest, sliding, without slip, separating, with a contact force of zero, and touch-down of a contact beside a
closed one. About half of the states at a contact have two contacts at once. At each state the script computes the
switch of the motion (impact, complementarity problem), accelerations and contact forces after it, their derivative
along a random direction of state, efforts and all numbers of the mechanism, and the gradient in reverse mode.

A derivative is compared with one-sided differences of second order to both sides of the state. A side counts if the
modes after the switch are the same along it and the differences with two steps agree. On the boundary between two
modes the derivative is one-sided, in the modes chosen at the state, so one side at most counts; at a kink within one
set of modes, such as an impact without slip in the plane, it has to equal one of the two one-sided derivatives. Where
contacts touch without normal speed, a side counts if closing contacts approach on it and the others separate: these are
the motions to which the derivative belongs. No side counts for an impact in space that begins to slide from rest, whose
impulses are a cone over the slip before it. All states have zero gaps at the contacts of the event. Columns:

* `states`: evaluated; `compared`: with at least one side that counts.
* `NaN`: not finite in value, derivative or gradient. `sign`: a component of the derivative with the wrong sign on all
  sides that count. `value`: a component that differs by more than 1e-5 of the largest one. `reverse`: the gradient
  along the direction differs from the derivative.
* `INDETERMINATE`, `IMPACT_LIMIT`, `NOT_SOLVED`: failures that have a status.
* `energy`: impacts that increase the kinetic energy, with the law of restitution.
"""

import argparse
import functools as ft
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import _contact_states as states
from benchmarks._contact_mechanisms import MECHANISMS, Mechanism
from jaxdyn.dynamics import SwitchFailure

STEP = 1e-6
#: relative to the largest component of a derivative
TOLERANCE = 1e-5
CHUNK = 2000
COLUMNS = "states", "compared", "NaN", "sign", "value", "reverse"
FAILURES = SwitchFailure.INDETERMINATE, SwitchFailure.IMPACT_LIMIT, SwitchFailure.NOT_SOLVED


def random_directions(mechanism: Mechanism, x, rng):
    """Directions of all numbers of the states, those of the mechanism relative to their ranges."""
    widths = {name: high - low for name, (low, high) in mechanism.ranges.items()}
    normal = lambda a: rng.normal(size=a.shape)
    p = {name: widths[name] * normal(a) for name, a in x["p"].items()}
    return {"p": p, **{name: normal(x[name]) for name in ("dq", "v", "tau")}}


def evaluate_all(mechanism: Mechanism, x, discrete, directions, weights) -> dict[str, Any]:
    """Evaluations at the states and beside them, derivatives and gradients along the directions, as numpy arrays."""
    along = jax.jit(jax.vmap(lambda x, d, z: jax.jvp(lambda x: states.evaluate(mechanism, x, z), (x,), (d,))))
    value = lambda x, w, z: w @ states.evaluate(mechanism, x, z).value
    gradients = jax.jit(jax.vmap(jax.grad(value)))
    out: dict[str, Any] = {"sides": {}}
    for k in (0, 1, 2, -1, -2):
        y = jax.tree.map(lambda a, d, k=k: a + k * STEP * d, x, directions)
        out["sides"][k], tangent = in_chunks(along, y, directions, discrete)
        if k == 0:
            out["tangent"] = tangent.value
    gradient = in_chunks(gradients, x, np.broadcast_to(weights, (len(x["v"]), len(weights))), discrete)
    pairs = zip(jax.tree.leaves(gradient), jax.tree.leaves(directions), strict=True)
    out["reverse"] = sum((g * d).reshape(len(g), -1).sum(1) for g, d in pairs)
    return out


def in_chunks(f, *args):
    """`f` of the samples, `CHUNK` at a time, as numpy arrays."""
    count = len(jax.tree.leaves(args)[0])
    size = min(CHUNK, count)
    parts = []
    for start in range(0, count, size):
        rows = np.minimum(np.arange(start, start + size), count - 1)  # equal shapes are compiled once
        part = f(*jax.tree.map(lambda a, rows=rows: np.asarray(a)[rows], args))
        parts.append(jax.tree.map(lambda a, n=count - start: np.asarray(a)[:n], part))
    return jax.tree.map(lambda *a: np.concatenate(a), *parts)


def one_sided(sides, side: int):
    """Differences to one side, and the states at which they count."""
    here, near, far = (sides[k] for k in (0, side, 2 * side))
    change = lambda out: np.where(here.is_unique, out.value - here.value, 0)
    first, wide = side * change(near) / STEP, side * change(far) / (2 * STEP)
    size = 1 + np.max(np.abs(first), axis=1, keepdims=True)
    same = np.all((near.pattern == here.pattern) & (far.pattern == here.pattern), axis=1)
    for out in (here, near, far):
        same &= out.failure == SwitchFailure.NONE
    with np.errstate(invalid="ignore"):
        return 2 * first - wide, same & np.all(np.abs(first - wide) <= 1e-3 * size, axis=1)


def find_faults(result, weights) -> dict[str, np.ndarray]:
    """The states in each column of the table."""
    sides, tangent = result["sides"], result["tangent"]
    here = sides[0]
    wrong = {"sign": np.ones(len(tangent), bool), "value": np.ones(len(tangent), bool)}
    compared = np.zeros(len(tangent), bool)
    for side in (1, -1):
        differences, counts = one_sided(sides, side)
        limit = TOLERANCE * (1 + np.max(np.abs(differences), axis=1, keepdims=True))
        error = np.where(here.is_unique, np.abs(tangent - differences), 0)
        large = (np.abs(tangent) > 10 * limit) & (np.abs(differences) > 10 * limit)
        compared |= counts
        wrong["sign"] &= ~counts | np.any(large & (tangent * differences < 0), axis=1)
        wrong["value"] &= ~counts | np.any(error > limit, axis=1)
    finite = lambda a: np.isfinite(a).reshape(len(a), -1).all(axis=1)
    is_finite = finite(here.value) & finite(tangent) & finite(result["reverse"])
    forward = tangent @ weights
    other = np.abs(forward - result["reverse"]) > 1e-8 * (1 + np.max(np.abs(tangent), axis=1))
    before, after = here.energy.T
    solved = here.failure == SwitchFailure.NONE
    faults = {"states": np.ones_like(compared), "compared": compared, "NaN": ~is_finite}
    faults |= {name: compared & found for name, found in wrong.items()}
    faults |= {"reverse": is_finite & other}
    faults |= {failure.name: here.failure == failure for failure in FAILURES}
    return faults | {"energy": solved & (after > before + 1e-9 * (1 + before))}


def count_faults(mechanism: Mechanism, count: int, seed: int = 0):
    """The faults of `count` states of a mechanism, their kinds, the states, and the evaluations."""
    rng = np.random.default_rng(seed)
    x, discrete, kind = states.draw_states(mechanism, rng, count)
    directions = random_directions(mechanism, x, rng)
    size = jax.eval_shape(ft.partial(states.evaluate, mechanism), *jax.tree.map(lambda a: a[0], (x, discrete)))
    weights = rng.normal(size=size.value.shape)
    result = evaluate_all(mechanism, x, discrete, directions, weights)
    return find_faults(result, weights), kind, (x, discrete, directions), result


def row(name: str, law: str, faults) -> str:
    """A row of the table."""
    numbers = [int(found.sum()) for found in faults.values()]
    return f"| {name} | {' | '.join(f'{n:,}' for n in numbers[:-1])} | {numbers[-1]:,} ({law}) |"


def main():
    jax.config.update("jax_enable_x64", True)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=10_000, help="of each mechanism, a multiple of ten")
    parser.add_argument("--mechanisms", nargs="*", choices=[m.name for m in MECHANISMS], metavar="NAME")
    parser.add_argument("--kinds", action="store_true", help="a row for each kind of state")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    names = *COLUMNS, *(failure.name for failure in FAILURES), "energy"
    print(f"| mechanism | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    for mechanism in MECHANISMS:
        if args.mechanisms and mechanism.name not in args.mechanisms:
            continue
        faults, kind, *_ = count_faults(mechanism, args.states, args.seed)
        print(row(mechanism.name, mechanism.law, faults), flush=True)
        for k, name in enumerate(states.KINDS if args.kinds else ()):
            print(row(f"- {name}", mechanism.law, {key: found[kind == k] for key, found in faults.items()}), flush=True)


if __name__ == "__main__":
    main()
