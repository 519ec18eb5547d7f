"""Convergence of flexible links with the number of sublinks, on the reference problems of the field.

    python benchmarks/flexible.py [--motions] [--largest 16]

prints relative errors, the order of convergence, and the number of sublinks for errors of 1 % and 0.1 %, which follows
from the two finest solutions. `--motions` adds the spin-ups, flying spaghetti and the slider-crank, which take minutes.
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import diffrax
import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import _flexible_cases as cases
from benchmarks import _flexible_motions as motions


class Convergence(NamedTuple):
    """Relative errors of one quantity for several numbers of sublinks."""

    quantity: str
    sublinks: tuple[int, ...]
    errors: tuple[float, ...]

    @property
    def order(self) -> float:
        """Order of convergence, from the two finest solutions."""
        (a, b), (e, f) = self.sublinks[-2:], self.errors[-2:]
        return math.log(abs(e / f)) / math.log(b / a)

    def sublinks_for(self, tolerance: float) -> int:
        """Number of sublinks for a relative error."""
        return max(1, math.ceil(self.sublinks[-1] * (abs(self.errors[-1]) / tolerance) ** (1 / self.order)))


def converge(names: tuple[str, ...], solve: Callable, exact, numbers: tuple[int, ...]) -> Iterator[Convergence]:
    """The convergence of each entry of `solve(n)` to the exact values."""
    found = np.array([np.ravel(solve(n)) for n in numbers])
    for k, name in enumerate(names):
        yield Convergence(name, numbers, tuple(found[:, k] / np.ravel(exact)[k] - 1))


def static_rows(numbers: tuple[int, ...]) -> Iterator[Convergence]:
    """Frequencies and static deflections."""
    modes = tuple(f"cantilever, mode {k}" for k in (1, 2, 3))
    yield from converge(modes, cases.cantilever_frequencies, cases.CANTILEVER, numbers)
    for load, exact in cases.ELASTICA.items():
        names = tuple(f"elastica, P L^2 / E I = {load:g}, {x}" for x in ("shortening", "deflection", "angle"))
        yield from converge(names, lambda n, p=load: cases.elastica(n, p), exact, numbers)
    arc = tuple(f"moment for 0.6 turns, {x}" for x in "xy")
    yield from converge(arc, lambda n: cases.roll_up(n, 0.6), cases.roll_up_exact(0.6), numbers)
    for speed in (3.0, 12.0):
        names = tuple(f"flap at eta = {speed:g}, mode {k}" for k in (1, 2, 3))
        yield from converge(names, lambda n, w=speed: cases.rotating_frequencies(n, w)[1], cases.FLAP[speed], numbers)
    bend = tuple(f"bend of 45 degrees, {x}" for x in "xyz")
    small = tuple(n for n in numbers if n <= 16)
    yield from converge(bend, cases.bend, cases.BEND, small)


def motion_rows(numbers: tuple[int, ...]) -> Iterator[Convergence]:
    """The least deflection and those at 5, 7.5 and 10 s of the spin-ups."""
    for case, (_, exact) in cases.SPIN_UPS.items():
        names = tuple(f"{case}, {x}" for x in ("least", "5 s", "7.5 s", "10 s"))
        step = lambda n: 1.5e-3 * min(1.0, (8 / n) ** 2)
        solve = lambda n, c=case: cases.spin_up(n, c, step(n), solver=diffrax.Tsit5())  # noqa: B023
        yield from converge(names, solve, exact, numbers)


def print_rows(rows):
    """Prints each row as soon as it is known."""
    for row in rows:
        errors = "  ".join(f"{n:>3}: {100 * e:8.4f} %" for n, e in zip(row.sublinks, row.errors, strict=True))
        needed = "   ".join(f"{100 * x:g} %: {row.sublinks_for(x):3}" for x in (1e-2, 1e-3))
        print(f"{row.quantity:44}{errors}   order {row.order:4.2f}   {needed}", flush=True)


def main():
    jax.config.update("jax_enable_x64", True)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=16, help="largest number of sublinks, a power of two")
    parser.add_argument("--motions", action="store_true", help="also motions, which take minutes")
    args = parser.parse_args()
    numbers = tuple(2**k for k in range(2, args.largest.bit_length()))
    print_rows(static_rows(numbers))
    if not args.motions:
        return
    print_rows(motion_rows(numbers))
    flight = motions.spaghetti(8, 5.0)
    change = np.abs(flight.momentum - [20.0, 0.0, 0.0]).max(), np.ptp(flight.angular), np.ptp(flight.energy)
    print(f"flying spaghetti: deviation of momentum {change[0]:.1e} N s", end=", ")
    print(f"of angular momentum {change[1]:.1e} N m s, of energy {change[2]:.1e} J")
    for n in numbers:
        _, deflection, _ = motions.slider_crank(n, dt=2e-5 * min(1.0, (8 / n) ** 2))
        print(
            f"slider-crank, {n:2} sublinks: largest deflection {100 * np.abs(deflection).max() / 0.3:.4f} % of the rod"
        )


if __name__ == "__main__":
    main()
