"""Loads along trajectories, and their worst cases."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn._errors import ShapeError
from jaxdyn.beams import Beam, Rectangle
from jaxdyn.loads import deflections_along, internal_loads_along, worst_case
from tests.loads._cases import ALUMINIUM, deflections_at, thin_rod


@pytest.fixture(scope="module")
def fall():
    """A rod that falls from rest."""
    model, beams = thin_rod(2.0, 1.5)
    ts = jnp.linspace(0.0, 0.4, 5)
    return jd.simulate(model, jnp.array([0.6]), jnp.zeros(1), ts, dt=0.02).checked(), beams


def test_worst_case_of_a_falling_rod(fall):
    """At the start the bending moment is `m g l sin(q) / 27` at a third of the length; it decreases during the fall."""
    run, beams = fall
    loads = internal_loads_along(run, beams, sections=31)
    worst = worst_case(loads.bending, loads, run.t)
    np.testing.assert_allclose([worst.value, worst.time, worst.s], [0.615460296, 0.0, 0.5], rtol=1e-9)
    assert worst.link == "rod"
    assert repr(worst) == "WorstCase(0.61546 at t = 0 s, link 'rod', s = 0.5 m)"
    np.testing.assert_allclose(loads.bending.max((1, 2)), 2 * 9.81 * 1.5 * np.sin(run.q[:, 0]) / 27, rtol=1e-9)
    still = worst_case(loads.bending[0], jax.tree.map(lambda x: x[0], loads))
    assert repr(still) == "WorstCase(0.61546, link 'rod', s = 0.5 m)"
    assert "links" in repr(jax.eval_shape(lambda: worst_case(loads.bending, loads, run.t)))
    with pytest.raises(ShapeError, match="for sections of shape"):
        worst_case(loads.bending[0], loads, run.t)
    with pytest.raises(ShapeError, match="times of shape"):
        worst_case(loads.bending, loads, run.t[:2])


def test_deflections_along_a_trajectory(fall):
    run, beams = fall
    rows = deflections_along(run, beams, sections=9)
    a, external = run.acceleration, run.external
    assert external.shape == (5, 1, 6)
    for k in (0, 4):
        alone = deflections_at(run.system.model, beams, run.q[k], run.v[k], a[k], external[k])
        for x, y in zip(jax.tree.leaves(rows), jax.tree.leaves(alone), strict=True):
            np.testing.assert_allclose(x[k], y, rtol=1e-9, atol=1e-15)
    with pytest.raises(ShapeError, match="loads are those of one trajectory"):
        deflections_along(jax.tree.map(lambda x: x[None], run), beams)


@pytest.mark.exhaustive
def test_loads_of_a_closed_loop():
    """The pin of a four-bar linkage acts at the end of the rocker and exerts no moment there."""
    model = jd.robots.four_bar()
    run = jd.simulate(model, jd.neutral(model), jnp.zeros(model.nv), jnp.linspace(0.0, 0.2, 3), dt=5e-3).checked()
    beam = Beam(Rectangle(0.01, 0.02), ALUMINIUM, model.closures[0].translations[1, 0])
    loads = internal_loads_along(run, {"rocker": beam}, sections=5)
    force = run.reactions.wrench[:, model.link_index("rocker"), 3:]
    assert np.abs(run.external).max() > 1
    np.testing.assert_allclose(loads.force[:, 0, 0], -force, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(loads.moment[:, 0, -1], 0, atol=1e-9)
    assert np.abs(loads.moment[:, 0]).max() > 0.1
