"""Evaluation points of a transcription: batched evaluation, shared nodes, and the contract of explicit points."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn._errors import ModelError
from jaxdyn.trajopt import HermiteSimpson
from jaxdyn.trajopt.interior_point._evaluation import _gather, evaluate_all, weighted_hessians
from jaxdyn.trajopt.interior_point._program import Program
from jaxdyn.trajopt.transcription import END, START

from .problems import push

N = 3
NODES = np.arange(N + 1.0)


def _points(shared: bool):
    """Two nodes and one more point in each of N intervals; `NODES` at the nodes."""
    start, end = (START, END) if shared else ("first", "last")
    return {start: jnp.asarray(NODES[:-1]), end: jnp.asarray(NODES[1:]), "middle": jnp.asarray(NODES[:-1] + 0.5)}


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("start", [None, jnp.zeros(())])
def test_values_belong_to_their_points(shared, start):
    points = _points(shared)
    values, at_start = evaluate_all(lambda p: p**2, points, start)
    assert values.keys() == points.keys()
    for name, p in points.items():
        np.testing.assert_array_equal(values[name], p**2)
    assert (at_start is None) == (start is None)


def test_shared_nodes_are_evaluated_once():
    assert _gather(_points(True), jnp.zeros(())).shape == (N + 1 + N,)
    assert _gather(_points(False), jnp.zeros(())).shape == (3 * N + 1,)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("start", [None, jnp.zeros(())])
def test_weights_of_both_intervals_are_added_at_shared_nodes(shared, start):
    """The Hessian of `w p^2` is 2 w, whatever interval it is assigned to."""
    points, rng = _points(shared), np.random.default_rng(0)
    weights = {name: jnp.asarray(rng.normal(size=N)) for name in points}, None if start is None else jnp.asarray(7.0)
    hessians, at_start, at_end = weighted_hessians(lambda p, w: 2 * w, (points, start), weights)
    total = sum(h.sum() for h in hessians.values()) + sum(h for h in (at_start, at_end) if h is not None)
    expected = sum(2 * w.sum() for w in weights[0].values()) + (0 if start is None else 14)
    np.testing.assert_allclose(total, expected, rtol=1e-14)
    if shared:
        inner = 2 * (weights[0][START][1:] + weights[0][END][:-1])
        np.testing.assert_allclose(hessians[START][1:], inner, rtol=1e-14)
        assert at_start is None and at_end is not None


@pytest.mark.slow
def test_explicit_points_must_not_depend_on_values(monkeypatch):
    """The midpoint states of compressed Hermite-Simpson depend on the rates at the nodes."""
    program = Program(push(), HermiteSimpson(separated=False), jnp.linspace(0, 1, 3))
    monkeypatch.setattr(HermiteSimpson, "has_explicit_points", property(lambda self: True))
    with pytest.raises(ModelError, match="has_explicit_points asks for values"):
        program.points(*program.guess())
