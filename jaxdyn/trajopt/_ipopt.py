"""The same nonlinear programs solved by IPOPT, as a check that owes nothing to the method of this package.

IPOPT sees values, first and second derivatives of a `Program`, sparse by interval; it needs the package `ipyopt`.
"""

import dataclasses
import time
from types import ModuleType
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxdyn._errors import JaxdynError, ModelError
from jaxdyn._types import Array, Float
from jaxdyn.trajopt._interior_point_program import Program, Ranged, Weights
from jaxdyn.trajopt._interior_point_solve import program_of, solution_of
from jaxdyn.trajopt._problem import Problem
from jaxdyn.trajopt._result import Solution, SolveStatus
from jaxdyn.trajopt._transcription import AbstractTranscription

#: IPOPT's return codes; all others are a stall
_STATUS = {
    0: SolveStatus.SOLVED,
    2: SolveStatus.INFEASIBLE,
    -1: SolveStatus.MAX_ITERATIONS,
    -2: SolveStatus.INFEASIBLE,
    -13: SolveStatus.NOT_FINITE,
}


def ipopt(
    problem: Problem,
    *,
    transcription: AbstractTranscription | None = None,
    intervals: int = 40,
    mesh: Float[Array, " nodes"] | None = None,
    tolerance: float = 1e-8,
    max_iterations: int = 300,
    options: dict[str, Any] | None = None,
    throw: bool = False,
) -> Solution:
    """The optimum of a problem by IPOPT, on the transcription and from the guess of `solve`.

    `options` are IPOPT's own, such as `{"linear_solver": "mumps", "print_level": 5}`. For concrete values: the result
    has no derivatives, and `jax.vmap` does not work. Needs `pip install "jaxdyn[ipopt]"`; Waechter and Biegler 2006.
    """
    if any(isinstance(x, Tracer) for x in jax.tree.leaves(problem)):
        raise ModelError("ipopt runs outside of JAX and takes concrete numbers; inside of transformations use solve")
    library, program = _library(), program_of(problem, transcription, intervals, mesh)
    begun = time.perf_counter()
    sparse = _Sparse.of(program)
    start = np.concatenate([np.ravel(x) for x in program.guess()]).astype(float)
    called = _Called(program, sparse)
    called.slopes(start)
    called.curvature(start, np.zeros(sparse.limits[0].size), 1.0, np.zeros(len(sparse.curvature[0])))
    compiled = time.perf_counter()
    shown: list[tuple[Any, ...]] = []
    nlp = library.Problem(
        start.size,
        *called.ranges,
        sparse.limits[0].size,
        *sparse.limits,
        sparse.jacobian,
        sparse.curvature,
        *(called.cost, called.gradient, called.constraints, called.jacobian, called.curvature),
        intermediate_callback=lambda *row: shown.append(row) or True,
        ipopt_options={"print_level": 0, "sb": "yes", "tol": tolerance, "max_iter": max_iterations, **(options or {})},
    )
    w, cost, code = nlp.solve(np.where(np.isfinite(start), start, 0.0))
    ended = time.perf_counter()
    s, m = sparse.split(jnp.asarray(w))
    status = _STATUS.get(int(code), SolveStatus.STALLED)
    last = shown[-1] if shown else (0, 0, 0.0, 0.0, np.inf)
    told = (jnp.asarray(cost), jnp.asarray(status, jnp.int32), jnp.asarray(last[1], jnp.int32), jnp.asarray(last[4]))
    found = solution_of(program, s, m, _values(program, s, m), told, None)
    found = dataclasses.replace(found, compile_seconds=compiled - begun, run_seconds=ended - compiled)
    return found.checked() if throw else found


def _library() -> ModuleType:
    try:
        import ipyopt  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise JaxdynError('IPOPT needs the package ipyopt: pip install "jaxdyn[ipopt]"') from error
    return ipyopt


_values = eqx.filter_jit(Program.values)


@eqx.filter_jit
def _first(program: Program, s, m):
    return program.slopes(s, m, program.seen(s, m))


@eqx.filter_jit
def _second(program: Program, s, m, weights: Weights, scale):
    seen = program.seen(s, m)
    blocks = program.blocks(s, m, seen, program.slopes(s, m, seen)[1], weights, scale)
    return blocks.H, blocks.H0, blocks.HN


class _Sparse(NamedTuple):
    """Sizes, limits of all constraints, and where the entries of their derivatives are.

    Variables are all states, then all inner ones; constraints are equations of the intervals, the start and the end,
    then rows of the intervals and the end.
    """

    nodes: int
    ns: int
    nm: int
    #: equations and rows of an interval, of the start, the end, and rows of the end
    sizes: tuple[int, int, int, int, int]
    limits: tuple[np.ndarray, np.ndarray]
    #: rows and columns
    jacobian: tuple[np.ndarray, np.ndarray]
    curvature: tuple[np.ndarray, np.ndarray]
    #: which entries of the blocks are in the lower triangle
    lower: np.ndarray

    @classmethod
    def of(cls, program: Program) -> "_Sparse":
        s, m = program.guess()
        values = jax.eval_shape(lambda: program.values(s, m))
        (nodes, ns), (n, nm) = s.shape, m.shape
        nc, nr = values.c.shape[1], values.ranged.rows.shape[1]
        n0, nN, ne = (x.shape[0] for x in (values.b0, values.bN, values.ranged.end))
        first = np.arange(n)[:, None] * ns + np.arange(ns)
        columns = np.concatenate([first, nodes * ns + np.arange(n * nm).reshape(n, nm), first + ns], axis=1)
        blocks = [(nc, columns), (n0, first[:1]), (nN, first[-1:] + ns), (nr, columns), (ne, first[-1:] + ns)]
        rows, cols, at = [], [], 0
        for count, own in blocks:
            row = at + np.arange(len(own) * count).reshape(len(own), count)
            rows.append(np.broadcast_to(row[:, :, None], (*row.shape, own.shape[1])).ravel())
            cols.append(np.broadcast_to(own[:, None], (*row.shape, own.shape[1])).ravel())
            at += row.size
        square = [columns, first[:1], first[-1:] + ns]
        both = [
            [np.broadcast_to(x, (*c.shape, c.shape[1])).ravel() for x in (c[:, :, None], c[:, None])] for c in square
        ]
        i, j = (np.concatenate(x) for x in zip(*both, strict=True))
        low, high = program.limits()
        zero = np.zeros(n * nc + n0 + nN)
        low, high = (np.concatenate([zero, np.ravel(x.rows), np.ravel(x.end)]) for x in (low, high))
        jacobian = np.concatenate(rows), np.concatenate(cols)
        return cls(nodes, ns, nm, (nc, n0, nN, nr, ne), (low, high), jacobian, (i[i >= j], j[i >= j]), i >= j)

    def split(self, w):
        """The variables s and m, as views."""
        s, m = w[: self.nodes * self.ns], w[self.nodes * self.ns :]
        return s.reshape(self.nodes, self.ns), m.reshape(self.nodes - 1, self.nm)

    def weights(self, y) -> Weights:
        """Multipliers of the constraints as those of a Lagrangian."""
        n, (nc, n0, nN, nr, _) = self.nodes - 1, self.sizes
        c, b0, bN, rows, end = np.split(y, np.cumsum([n * nc, n0, nN, n * nr]))
        none = np.zeros((n + 1, self.ns)), np.zeros((n, self.nm))
        return Weights(c.reshape(n, nc), b0, bN, Ranged(*none, rows.reshape(n, nr), end))


class _Called:
    """The functions that IPOPT calls, each of which fills an array that it is given."""

    def __init__(self, program: Program, sparse: _Sparse):
        self.program, self.sparse = program, sparse
        low, high = program.limits()
        flat = lambda r: np.concatenate([np.ravel(r.s), np.ravel(r.m)]).astype(float)
        self.ranges = flat(low), flat(high)
        self._at: tuple[bytes, Any] = (b"", None)

    def slopes(self, w):
        """Values and slopes at a point, kept for the next call at the same one."""
        key = w.tobytes()
        if self._at[0] != key:
            self._at = key, jax.device_get(_first(self.program, *self.sparse.split(jnp.array(w))))
        return self._at[1]

    def cost(self, w):
        return float(self.slopes(w)[0].cost)

    def gradient(self, w, out):
        d, ns = self.slopes(w)[1], self.sparse.ns
        s, m = self.sparse.split(out)
        s[:-1], m[:] = d.cost[:, :ns], d.cost[:, ns : d.cost.shape[1] - ns]
        s[-1] = d.cost_end
        s[1:] += d.cost[:, d.cost.shape[1] - ns :]
        return out

    def constraints(self, w, out):
        v = self.slopes(w)[0]
        out[:] = np.concatenate([np.ravel(x) for x in (v.c, v.b0, v.bN, v.ranged.rows, v.ranged.end)])
        return out

    def jacobian(self, w, out):
        d = self.slopes(w)[1]
        out[:] = np.concatenate([np.ravel(x) for x in (d.c, d.b0, d.bN, d.rows, d.end)])
        return out

    def curvature(self, w, multipliers, factor, out):
        weights = jax.tree.map(jnp.array, self.sparse.weights(multipliers))
        blocks = _second(self.program, *self.sparse.split(jnp.array(w)), weights, jnp.asarray(factor, w.dtype))
        out[:] = np.concatenate([np.ravel(x) for x in blocks])[self.sparse.lower]
        return out
