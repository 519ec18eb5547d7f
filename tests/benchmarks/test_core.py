"""The benchmark itself: its rows on tiny batches, its table, and its exports."""

import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import _problems, _sections, core, scale
from benchmarks._timing import Effort, Row

TINY = Effort(0.0, 1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["panda", "humanoid"])
def test_rows_of_jaxdyn_agree_with_pinocchio(name):
    p = _problems.problem(name, 3)
    rows = list(_sections.jaxdyn_rows(p, "float64", (1, 3), TINY))
    assert {(r.work, r.batch) for r in rows} == {(w, n) for w in _problems.WORKS for n in (1, 3)}
    assert all(r.error < 1e-5 and r.best_us > 0 for r in rows)
    text = core.table([*rows, Row(name, _problems.RNEA, "float64", 3, core.CPP[0], 0.0, 1.0, 1.0, 0.0)])
    assert all(work in text for work in _problems.WORKS)


@pytest.mark.exhaustive
def test_memory_and_time_of_a_chain_are_reported():
    rows = scale.rows((2, 8), TINY)
    assert all(r["finite"] and r["us"] > 0 and r["temporary_bytes"] >= 0 for r in rows)
    assert "us/link" in scale.table(rows)


def test_conventions_of_mujoco_and_back():
    p = _problems.problem("humanoid", 4)
    _, _, a, tau = _problems.to_mujoco(p)
    np.testing.assert_allclose(_problems.accelerations_from_mujoco(p, a), p.a, atol=1e-12)
    np.testing.assert_allclose(_problems.forces_from_mujoco(p, tau), p.tau, atol=1e-12)


@pytest.mark.slow
def test_exported_urdf_is_the_same_robot():
    pin = pytest.importorskip("pinocchio")
    from benchmarks._export import to_urdf
    from jaxdyn.dynamics import rnea

    p = _problems.problem("panda", 1)
    model = pin.buildModelFromXML(to_urdf(p.model))
    expected = pin.rnea(model, model.createData(), p.q[0], p.v[0], p.a[0])
    got = rnea(p.model, *(jnp.asarray(x[0]) for x in (p.q, p.v, p.a)))
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)
