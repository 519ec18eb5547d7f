"""Events without a derivative: a ball that grazes a sphere, and two contacts that close at the same instant."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxdyn as jd
from jaxdyn.contact import Contact, ContactMotion, Gap, Plane, Point, Sphere
from jaxdyn.joints import Prismatic
from jaxdyn.simulation import SensitivityStatus, sensitivity_status
from jaxdyn.spatial import point_mass


def flight(*contacts):
    """A point mass that moves in the plane x, z without gravity."""
    b = jd.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    b.add_link("x", "world", Prismatic((1, 0, 0)))
    b.add_link("z", "x", Prismatic((0, 0, 1)), point_mass(1.0))
    return jd.System(b.build(), motion=ContactMotion(contacts))


def contact(name, surface, place=(0.0, 0.0, 0.0)):
    return Contact(name, Gap("z", Point(), ("world", place), surface), restitution=1.0)


@pytest.mark.exhaustive
def test_a_ball_that_grazes_a_sphere():
    """It passes a unit sphere at the height z: the gap has the rate `-c v` and the second derivative `(1 - c^2) v^2`,
    with `c = sqrt(1 - z^2)`.
    """
    system = flight(contact("sphere", Sphere(1.0)))
    run = jax.vmap(
        lambda z: jd.simulate(system, jnp.stack([-2.0, z]), jnp.array([2.0, 0.0]), jnp.array([0.0, 1.2]), dt=0.01)
    )
    heights = jnp.array([0.5, 1 - 1e-4, 1 - 1e-9, 1.1])
    runs = run(heights)
    assert ((runs.phases.count > 1) == np.array([True, True, True, False])).all()
    cosine = np.sqrt(1 - heights[:2] ** 2)
    assert_allclose(runs.phases.slope[:2, 1], -2 * cosine, rtol=2e-2)
    assert_allclose(runs.phases.curvature[:2, 1], 4 * heights[:2] ** 2, rtol=2e-2)
    status = sensitivity_status(runs)
    kinds = SensitivityStatus
    assert status.shape == runs.phases.time.shape
    assert (status.max(axis=1) == np.array([kinds.REGULAR, kinds.REGULAR, kinds.GRAZING, kinds.REGULAR])).all()
    assert (sensitivity_status(runs, window=0.01)[1] == kinds.GRAZING).sum() == 1


@pytest.mark.exhaustive
def test_two_walls_met_at_the_same_instant():
    corner = flight(contact("left", Plane((1.0, 0.0, 0.0))), contact("low", Plane((0.0, 0.0, 1.0))))
    run = jax.vmap(lambda x: jd.simulate(corner, jnp.stack([x, 1.0]), -jnp.ones(2), jnp.array([0.0, 1.5]), dt=0.25))
    together, apart = sensitivity_status(run(jnp.array([1.0, 1.1])))
    assert SensitivityStatus.COINCIDENT in together and (apart == SensitivityStatus.REGULAR).all()


def test_a_motion_without_phases_has_no_status():
    ts = jnp.array([0.0, 0.1])
    run = jd.simulate(jd.robots.pendulum(), jnp.zeros(1), jnp.zeros(1), ts, dt=0.1)
    with pytest.raises(jd.ModelError, match="FreeMotion, which has no phases"):
        sensitivity_status(run)
