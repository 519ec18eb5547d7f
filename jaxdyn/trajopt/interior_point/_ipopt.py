"""Solution of the same nonlinear programs by IPOPT, as an independent check of `solve`.

IPOPT receives values, first and second derivatives of a `Program`, sparse by interval. It needs the package `ipyopt`.
"""

import dataclasses
import time
from types import ModuleType
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxdyn._errors import JaxdynError, ModelError
from jaxdyn._types import Array, Float, PyTree
from jaxdyn.trajopt.interior_point._lagrangian import Bounded, Multipliers
from jaxdyn.trajopt.interior_point._program import Program
from jaxdyn.trajopt.interior_point._solve import program_of, solution_of
from jaxdyn.trajopt.problem import Problem, Solution, SolveStatus
from jaxdyn.trajopt.transcription import AbstractTranscription

#: IPOPT's return codes; all others mean STALLED
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
    options: dict[str, str | int | float] | None = None,
    throw: bool = False,
) -> Solution:
    """Solves an optimal control problem by IPOPT, with the transcription and from the guess of `solve`.

    Arguments:

    * `problem`: the `Problem`, with concrete numbers: the result has no derivatives, and `jax.vmap` does not work.
    * `transcription`, `intervals`, `mesh`: as for `solve`.
    * `tolerance`: IPOPT's `tol`, on the scaled optimality conditions.
    * `max_iterations`: limit on the number of iterations.
    * `options`: further options of IPOPT, such as `{"linear_solver": "mumps", "print_level": 5}`.
    * `throw`: raise `ConvergenceError` if the problem is not solved.

    Returns a `Solution`. Raises `ModelError` inside of JAX transformations, and `JaxdynError` if the package ipyopt is
    missing (`pip install "jaxdyn[ipopt]"`). Reference: Waechter and Biegler, Mathematical Programming 106, 2006.

    ```python
    import importlib.util

    import jax.numpy as jnp

    from jaxdyn.trajopt import Problem, VectorField, ipopt

    field = VectorField(lambda t, x, u, p: jnp.stack([x[1], u[0]]), ("position", "velocity"), ("force",))
    problem = Problem(field, 1.0, start=jnp.zeros(2), end=jnp.array([1.0, 0.0]), running=lambda t, x, u: u @ u)
    if importlib.util.find_spec("ipyopt"):
        solution = ipopt(problem, intervals=2)
        assert abs(solution.cost - 12) < 1e-3
    ```
    """
    if any(isinstance(x, Tracer) for x in jax.tree.leaves(problem)):
        raise ModelError("ipopt was called inside of a JAX transformation, but needs concrete numbers; use solve there")
    library, program = _library(), program_of(problem, transcription, intervals, mesh)
    started = time.perf_counter()
    sparse = _SparseProgram.of(program)
    start = np.concatenate([np.ravel(x) for x in program.guess()]).astype(float)
    callbacks = _Callbacks(program, sparse)
    callbacks.derivatives(start)
    callbacks.hessian(start, np.zeros(sparse.limits[0].size), 1.0, np.zeros(len(sparse.hessian[0])))
    compiled = time.perf_counter()
    log: list[tuple[float, ...]] = []
    nlp = library.Problem(
        start.size,
        *callbacks.bounds,
        sparse.limits[0].size,
        *sparse.limits,
        sparse.jacobian,
        sparse.hessian,
        *(callbacks.cost, callbacks.gradient, callbacks.constraints, callbacks.jacobian, callbacks.hessian),
        intermediate_callback=lambda *row: log.append(row) or True,
        ipopt_options={"print_level": 0, "sb": "yes", "tol": tolerance, "max_iter": max_iterations, **(options or {})},
    )
    w, cost, code = nlp.solve(np.where(np.isfinite(start), start, 0.0))
    ended = time.perf_counter()
    s, m = sparse.split(jnp.asarray(w))
    status = _STATUS.get(int(code), SolveStatus.STALLED)
    last = log[-1] if log else (0, 0, 0.0, 0.0, np.inf)
    result = (jnp.asarray(cost), jnp.asarray(status, jnp.int32), jnp.asarray(last[1], jnp.int32), jnp.asarray(last[4]))
    found = solution_of(program, s, m, _values(program, s, m), result, None)
    found = dataclasses.replace(found, compile_seconds=compiled - started, run_seconds=ended - compiled)
    return found.checked() if throw else found


def _library() -> ModuleType:
    try:
        import ipyopt  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise JaxdynError('IPOPT needs the package ipyopt: pip install "jaxdyn[ipopt]"') from error
    return ipyopt


_values = eqx.filter_jit(Program.values)


@eqx.filter_jit
def _first_derivatives(program: Program, s, m):
    return program.first_derivatives(s, m, program.linearise(s, m))


@eqx.filter_jit
def _hessian_blocks(program: Program, s, m, multipliers: Multipliers, scale):
    linearisations = program.linearise(s, m)
    d = program.first_derivatives(s, m, linearisations)[1]
    blocks = program.kkt_blocks(s, m, linearisations, d, multipliers, scale)
    return blocks.H, blocks.H0, blocks.HN


class _SparseProgram(NamedTuple):
    """Sizes, bounds of all constraints, and sparsity of the derivatives.

    Variables are all states, then all interval variables; constraints are equations of the intervals, the start and the
    end, then rows of the intervals and the end.
    """

    nodes: int
    ns: int
    nm: int
    #: equations and rows of an interval, of the start, the end, and rows of the end
    sizes: tuple[int, int, int, int, int]
    limits: tuple[np.ndarray, np.ndarray]
    #: rows and columns of the nonzero entries
    jacobian: tuple[np.ndarray, np.ndarray]
    hessian: tuple[np.ndarray, np.ndarray]
    #: whether an entry of the blocks is in the lower triangle
    lower: np.ndarray

    @classmethod
    def of(cls, program: Program) -> "_SparseProgram":
        s, m = program.guess()
        values = jax.eval_shape(lambda: program.values(s, m))
        (nodes, ns), (n, nm) = s.shape, m.shape
        nc, nr = values.c.shape[1], values.bounded.rows.shape[1]
        n0, nN, ne = (x.shape[0] for x in (values.b0, values.bN, values.bounded.end))
        first = np.arange(n)[:, None] * ns + np.arange(ns)
        columns = np.concatenate([first, nodes * ns + np.arange(n * nm).reshape(n, nm), first + ns], axis=1)
        blocks = [(nc, columns), (n0, first[:1]), (nN, first[-1:] + ns), (nr, columns), (ne, first[-1:] + ns)]
        rows, cols, at = [], [], 0
        for count, index in blocks:
            row = at + np.arange(len(index) * count).reshape(len(index), count)
            rows.append(np.broadcast_to(row[:, :, None], (*row.shape, index.shape[1])).ravel())
            cols.append(np.broadcast_to(index[:, None], (*row.shape, index.shape[1])).ravel())
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

    def multipliers(self, y) -> Multipliers:
        """IPOPT's vector of constraint multipliers as `Multipliers`."""
        n, (nc, n0, nN, nr, _) = self.nodes - 1, self.sizes
        c, b0, bN, rows, end = jnp.split(jnp.array(y), np.cumsum([n * nc, n0, nN, n * nr]))
        none = jnp.zeros((n + 1, self.ns)), jnp.zeros((n, self.nm))
        return Multipliers(c.reshape(n, nc), b0, bN, Bounded(*none, rows.reshape(n, nr), end))


class _Callbacks:
    """The functions that IPOPT calls; each fills an output array."""

    def __init__(self, program: Program, sparse: _SparseProgram):
        self.program, self.sparse = program, sparse
        low, high = program.limits()
        flat = lambda r: np.concatenate([np.ravel(r.s), np.ravel(r.m)]).astype(float)
        self.bounds = flat(low), flat(high)
        self._at: tuple[bytes, PyTree] = (b"", None)

    def derivatives(self, w):
        """Values and first derivatives at a point, cached for the next call at the same point."""
        key = w.tobytes()
        if self._at[0] != key:
            self._at = key, jax.device_get(_first_derivatives(self.program, *self.sparse.split(jnp.array(w))))
        return self._at[1]

    def cost(self, w):
        return float(self.derivatives(w)[0].cost)

    def gradient(self, w, out):
        d, ns = self.derivatives(w)[1], self.sparse.ns
        s, m = self.sparse.split(out)
        s[:-1], m[:] = d.cost[:, :ns], d.cost[:, ns : d.cost.shape[1] - ns]
        s[-1] = d.cost_end
        s[1:] += d.cost[:, d.cost.shape[1] - ns :]
        return out

    def constraints(self, w, out):
        v = self.derivatives(w)[0]
        out[:] = np.concatenate([np.ravel(x) for x in (v.c, v.b0, v.bN, v.bounded.rows, v.bounded.end)])
        return out

    def jacobian(self, w, out):
        d = self.derivatives(w)[1]
        out[:] = np.concatenate([np.ravel(x) for x in (d.c, d.b0, d.bN, d.rows, d.end)])
        return out

    def hessian(self, w, multipliers, factor, out):
        multipliers = self.sparse.multipliers(multipliers)
        blocks = _hessian_blocks(
            self.program, *self.sparse.split(jnp.array(w)), multipliers, jnp.asarray(factor, float)
        )
        out[:] = np.concatenate([np.ravel(x) for x in blocks])[self.sparse.lower]
        return out
