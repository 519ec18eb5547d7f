"""The Riccati factorisation agrees with the dense KKT matrix, in solution and inertia."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.trajopt.interior_point._kkt import Blocks, RightHandSide, factorise, solve_kkt
from jaxdyn.trajopt.transcription import Shape

N, NS, NM, NC, NB = 5, 4, 2, 4, 2
SHAPE = Shape(NS, NM, (0, 2, 3, 4))
REGULARISATION = 1e-3


def blocks_and_right(seed: int, convex: bool, ends: int = NB):
    rng = np.random.default_rng(seed)
    nz = 2 * NS + NM
    H = rng.normal(size=(N, nz, nz))
    H = 0.2 * H @ H.swapaxes(1, 2) if convex else H + H.swapaxes(1, 2)
    C, B0, BN = (rng.normal(size=s) for s in ((N, NC, nz), (NB, NS), (ends, NS)))
    blocks = Blocks(*map(jnp.asarray, (H, C, np.zeros((NS, NS)), B0, np.eye(NS), BN)))
    sizes = ((N, nz), (N, NC), NS, NB, NS, ends)
    return blocks, RightHandSide(*(jnp.asarray(rng.normal(size=s)) for s in sizes))


def dense(blocks: Blocks, right: RightHandSide):
    """The same system as one dense matrix."""
    n = (N + 1) * NS + N * NM
    W, g, rows, c = np.zeros((n, n)), np.zeros(n), [], []

    def equations(at, matrix, vector):
        row = np.zeros((len(vector), n))
        row[:, at] = matrix
        rows.append(row)
        c.append(vector)

    for k in range(N):
        at = np.arange(k * (NS + NM), k * (NS + NM) + 2 * NS + NM)
        W[np.ix_(at, at)] += blocks.H[k]
        g[at] += right.g[k]
        equations(at, blocks.C[k], right.c[k])
    first, last = np.arange(NS), np.arange(n - NS, n)
    W += REGULARISATION * np.eye(n)
    W[np.ix_(last, last)] += blocks.HN
    g[first] += right.g0
    g[last] += right.gN
    equations(first, blocks.B0, right.b0)
    equations(last, blocks.BN, right.bN)
    A, c = np.concatenate(rows), np.concatenate(c)
    return np.block([[W, A.T], [A, np.zeros((len(c), len(c)))]]), -np.concatenate([g, c])


@jax.jit
def run(blocks, right):
    f, is_minimum = factorise(SHAPE, blocks, REGULARISATION, 0.0)
    return solve_kkt(SHAPE, f, right), is_minimum


@pytest.mark.parametrize(("seed", "ends"), [(0, NB), (1, NB), pytest.param(2, 0, marks=pytest.mark.slow)])
def test_solution_equals_dense_kkt_solution(seed, ends):
    blocks, right = blocks_and_right(seed, True, ends)
    step, is_minimum = run(blocks, right)
    matrix, vector = dense(blocks, right)
    variables = [np.concatenate([step.s[k], step.m[k]]) for k in range(N)] + [step.s[N]]
    found = np.concatenate([*variables, np.ravel(step.multipliers), step.start, step.end])
    assert is_minimum
    np.testing.assert_allclose(found, np.linalg.solve(matrix, vector), rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_batched_solution_equals_single_solutions():
    systems = [blocks_and_right(seed, convex=True) for seed in range(4)]
    batch = jax.jit(jax.vmap(run))(*jax.tree.map(lambda *x: jnp.stack(x), *systems))
    for k, system in enumerate(systems):
        for one, many in zip(jax.tree.leaves(run(*system)), jax.tree.leaves(batch), strict=True):
            np.testing.assert_allclose(many[k], one, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_wrong_inertia_is_detected(seed):
    blocks, right = blocks_and_right(seed, convex=False)
    matrix, _ = dense(blocks, right)
    equations = N * NC + 2 * NB
    assert (np.linalg.eigvalsh(matrix) < 0).sum() > equations
    assert not run(blocks, right)[1]
