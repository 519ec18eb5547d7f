"""The benchmarks of identification run, on generated logs in the files' formats."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from benchmarks import _identification_logs, identification
from jaxdyn.identification import Candidate, Linear, Log


def arm() -> jd.Model:
    """Two links with friction."""
    b = jd.ModelBuilder()
    for k, parent in enumerate(("world", "link1")):
        body = jd.spatial.box((0.1, 0.12, 0.4), mass=2.0 - k).moved([0.02, 0.01, -0.2])
        place = {"translation": [0, 0, -0.4 * k]}
        joint = jd.joints.Revolute([0, 1, 0])
        b.add_link(f"link{k + 1}", parent, joint, body, joint_name=f"joint{k + 1}", damping=0.2, friction=0.3, **place)
    return b.build()


def case() -> _identification_logs.Case:
    """12 s at 50 Hz, of which the middle is held out."""
    model, t = arm(), np.arange(600) / 50
    w = 2 * np.pi * np.array([0.31, 0.47])
    q, v, a = (0.9 * w**k * np.sin(np.outer(t, w) + k * np.pi / 2) for k in range(3))
    one = lambda q, v, a: jd.rnea(model, q, v, a) - jd.passive_forces(model, q, v)
    effort = np.asarray(jax.jit(jax.vmap(one))(*map(jnp.asarray, (q, v, a))))
    log = Log(t, q, v, a, effort + np.random.default_rng(0).normal(0, 0.02, q.shape), "made")
    held_out = (t > 4) & (t < 7)
    return _identification_logs.Case("made", model, log, log, [t < 3.9, t > 7.1], held_out, 5.0, 50.0, 2, None)


@pytest.mark.slow
def test_rows_of_the_table_hold_errors_bodies_and_seconds():
    made, table = case(), identification.Table()
    plain = Candidate(made.system(0.01), identification.SELECTION, Linear(reweight=0))
    table.fit(made, "ordinary least squares", plain, made.usual(), made.judged, 0.0)
    title, label, fitted, held_out, bodies, seconds = table.rows[-1]
    assert (title, label, bodies) == ("made", "ordinary least squares", "2 of 2") and float(seconds) > 0
    assert 0 < float(fitted) < 0.02 and 0 < float(held_out) < 0.02
    assert len(table.joints[0]) == 2 + made.model.nv
    assert identification.markdown(table.rows).count("\n") == 3


def test_rows_adjacent_to_held_out_data_are_not_fitted():
    t = np.arange(21_000) * 1e-3
    runs, held_out = _identification_logs.panda_rows(t)
    fitted = t[np.any(runs, axis=0)]
    gap = min(np.abs(fitted - border).min() for border in (t[held_out][0], t[held_out][-1]))
    assert gap >= _identification_logs.GUARD - 1e-9


@pytest.mark.slow
def test_errors_are_relative_to_the_measurement():
    made = case()
    measured = np.asarray(made.judged.effort)
    fitted, held_out, each = made.errors(0.9 * measured)
    np.testing.assert_allclose([fitted, held_out, *each], 0.1, rtol=1e-12)
