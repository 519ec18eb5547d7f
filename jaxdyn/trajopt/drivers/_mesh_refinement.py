"""Mesh refinement: estimates the discretisation error of each interval, and subdivides intervals with large errors."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdyn._errors import ConvergenceError, ModelError
from jaxdyn._types import Array, Float
from jaxdyn.trajopt.interior_point import TranscriptionDetails, solve
from jaxdyn.trajopt.problem import Problem, Solution, SolveStatus


def interval_errors(solution: Solution) -> Float[Array, "intervals nx"]:
    """Discretisation errors `(intervals, nx)` of a solution of `solve` by collocation, in units of the state.

    The integral of `|xdot - f(t, x, u)|` over each interval, by a rule of four points, where x is the cubic with the
    values and derivatives of the nodes and u the quadratic through the controls (Kelly 2017, section 5.4; Betts 2010,
    section 4.7).
    """
    if not isinstance(solution.details, TranscriptionDetails):
        raise ModelError("interval_errors estimates errors of collocation; give a solution of jaxdyn.trajopt.solve")
    _ = solution.details.program.transcription.order  # raises for transcriptions that simulate
    return _errors(solution.problem, solution.t, solution.x, solution.u, solution.details.middle)


@eqx.filter_jit
def _errors(problem: Problem, t, x, u, middle):
    rate = jax.vmap(problem.dynamics.rate)
    f = rate(t, x, u)
    h = (t[1:] - t[:-1])[:, None]
    points, weights = np.polynomial.legendre.leggauss(4)
    out = jnp.zeros_like(x[:-1])
    for p, w in zip((points + 1) / 2, weights / 2, strict=True):
        a, b = (1 + 2 * p) * (1 - p) ** 2, p * p * (3 - 2 * p)
        c, d = p * (1 - p) ** 2, p * p * (p - 1)
        at = a * x[:-1] + b * x[1:] + h * (c * f[:-1] + d * f[1:])
        slope = 6 * p * (1 - p) * (x[1:] - x[:-1]) / h
        slope = slope + (1 - 4 * p + 3 * p * p) * f[:-1] + (3 * p * p - 2 * p) * f[1:]
        control = (1 - p) * (1 - 2 * p) * u[:-1] + 4 * p * (1 - p) * middle + p * (2 * p - 1) * u[1:]
        out = out + w * h * jnp.abs(slope - rate(t[:-1] + p * h[:, 0], at, control))
    return out


def refined_mesh(mesh: ArrayLike, errors: ArrayLike, tolerance: float, order: int = 4, pieces: int = 4) -> np.ndarray:
    """The mesh with each interval whose error exceeds the tolerance subdivided into at most `pieces` equal intervals.

    An error of the given `order` would decrease to the tolerance with this number.
    """
    mesh, worst = np.asarray(mesh, float), np.asarray(errors, float).max(axis=1)
    needed = np.ceil((np.maximum(worst, 1e-300) / tolerance) ** (1 / order))
    counts = np.clip(needed, 1, pieces).astype(int)
    parts = [np.linspace(a, b, n, endpoint=False) for a, b, n in zip(mesh[:-1], mesh[1:], counts, strict=True)]
    return np.append(np.concatenate(parts), mesh[-1])


class Refinement(eqx.Module):
    """Result of `solve_refined`: a sequence of solutions, one for each round, the last on the finest mesh."""

    solutions: tuple[Solution, ...]
    #: largest error of an interval in each round
    errors: tuple[float, ...] = eqx.field(static=True)
    #: the requested error
    error: float = eqx.field(static=True)

    @property
    def met(self) -> bool:
        """True if the last round is solved and its error is at most the requested one."""
        return int(self.solutions[-1].status) == SolveStatus.SOLVED and self.errors[-1] <= self.error

    def checked(self) -> "Refinement":
        """Returns this refinement; raises `ConvergenceError` if the requested error was not reached."""
        self.solutions[-1].checked()
        if not self.met:
            raise ConvergenceError(
                f"after {len(self)} rounds the largest error of an interval is {self.errors[-1]:.3g}, above "
                f"{self.error:.3g}; raise rounds, or start with more intervals"
            )
        return self

    def __len__(self) -> int:
        return len(self.solutions)

    def __getitem__(self, k: int) -> Solution:
        return self.solutions[k]

    def __iter__(self):
        return iter(self.solutions)


def solve_refined(
    problem: Problem,
    *,
    error: float = 1e-6,
    rounds: int = 6,
    intervals: int = 20,
    mesh: ArrayLike | None = None,
    barrier: float = 1e-4,
    throw: bool = False,
    **options: Any,
) -> Refinement:
    """Solves a problem on successively refined meshes until all discretisation errors are small.

    Arguments:

    * `problem`: a `Problem`.
    * `error`: bound on the discretisation error of every interval, in units of the state.
    * `rounds`: number of meshes, at most. Each round compiles anew and starts from the preceding solution.
    * `intervals`, `mesh`: the first mesh, as for `solve`.
    * `barrier`: initial barrier parameter from the second round on.
    * `throw`: raise `ConvergenceError` if the error is not reached.
    * `options`: further arguments of `solve`.

    Returns a `Refinement`. A round that is not solved ends the refinement.
    """
    mesh = np.linspace(0, 1, intervals + 1) if mesh is None else np.asarray(mesh, float)
    found = [solve(problem, mesh=jnp.asarray(mesh), **options)]
    errors = [np.asarray(interval_errors(found[0]))]
    while len(found) < rounds and int(found[-1].status) == SolveStatus.SOLVED and errors[-1].max() > error:
        details = found[-1].details
        mesh = refined_mesh(mesh, errors[-1], error, details.program.transcription.order)
        found.append(solve(problem.with_guess(found[-1].guess), mesh=jnp.asarray(mesh), barrier=barrier, **options))
        errors.append(np.asarray(interval_errors(found[-1])))
    refinement = Refinement(tuple(found), tuple(float(e.max()) for e in errors), error)
    return refinement.checked() if throw else refinement
