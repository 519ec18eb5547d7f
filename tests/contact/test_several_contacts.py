"""Several contacts at once: unique impulses where they are redundant, slow separations, a cube that comes to rest."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import cube_toss
from jaxdyn.contact.rigid._impacts import Encounter, keep_slow_contacts
from tests.contact.test_complementarity import contacts, solver


def four_corners():
    """Delassus matrix of normal and two tangential rows at the corners of a block of unit mass and side 2."""
    inverse = np.diag([1, 1, 1, 1.5, 1.5, 1.5])
    rows = []
    for x in (-1, 1):
        for y in (-1, 1):
            arm = np.array([x, y, -1.0])
            rows += [np.concatenate([e, np.cross(arm, e)]) for e in np.eye(3)[[2, 0, 1]]]
    return np.stack(rows) @ inverse @ np.stack(rows).T, np.stack(rows)


@pytest.mark.slow
def test_redundant_impulses_are_continuous():
    """The impulses of a block that lands flat change by as little as its velocity does, in 300 random landings."""
    delassus, rows = four_corners()
    assert np.linalg.matrix_rank(delassus) < len(delassus)
    _, solve = solver(4)
    random = np.random.default_rng(0)
    velocity = random.normal(size=(300, 6)) * [0.3, 0.3, 0.2, 0.3, 0.3, 0.5] - [0, 0, 1, 0, 0, 0]
    change = 1e-8 * random.normal(size=velocity.shape)
    impulses = jax.jit(jax.vmap(lambda v: solve(jnp.asarray(delassus), rows @ v, jnp.full(4, 0.3))))
    one, two = impulses(velocity), impulses(velocity + change)
    solved = np.asarray(one.is_solved & two.is_solved)
    assert solved.mean() > 0.98
    assert np.abs(one.forces - two.forces)[solved].max() < 1e-6
    assert np.abs(one.rates - two.rates)[solved].max() < 1e-6


@pytest.mark.slow
def test_contacts_that_open_slowly_stay_closed():
    """Velocities below the rest speed become zero at the least loss of energy; faster ones remain."""
    pair = contacts(2, friction=None)
    gain, rate = jnp.array([[1.0, -0.4], [-0.4, 1.0]]), jnp.array([0.0, 4e-4])
    encounter = Encounter(pair, gain, rate, jnp.ones(2), jnp.asarray(1e-3))
    impulses = keep_slow_contacts(encounter, jnp.zeros(2))
    np.testing.assert_allclose(rate + gain @ impulses, 0, atol=1e-15)
    assert (impulses @ rate) / 2 < 0  # change of the kinetic energy, p . (c_before + c_after) / 2
    fast = keep_slow_contacts(encounter._replace(rate=jnp.array([0.0, 2e-3])), jnp.zeros(2))
    assert abs(fast[1]) < 1e-15


@pytest.mark.exhaustive
def test_a_tossed_cube_comes_to_rest_and_has_its_gradient():
    x = cube_toss.section("jaxdyn", 0.0)
    assert x["events"] > 20
    np.testing.assert_allclose(x["gradient"], x["difference"], rtol=1e-4)
