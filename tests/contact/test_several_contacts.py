"""Several contacts at once: unique impulses where they are redundant, slow separations, a cube that comes to rest."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from benchmarks import cube_toss
from jaxdyn.contact import Contact, ContactMotion, Gap, Plane, Point
from jaxdyn.joints import Prismatic, Revolute
from jaxdyn.spatial import Inertia
from tests.contact.test_complementarity import solver


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
    assert one.is_solved.all() and two.is_solved.all()
    assert np.abs(one.forces - two.forces).max() < 1e-6
    assert np.abs(one.rates - two.rates).max() < 1e-6


@pytest.mark.slow
def test_contacts_that_open_slowly_stay_closed():
    """A rod on two supports is hit at one of them, and the other end begins to separate.

    If the loads hold it down and it is slower than the rest speed, both ends come to rest; otherwise it leaves with its
    velocity. Supports at a third of a uniform rod leave with half the speed with which the other one hits.
    """
    b = jd.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    b.add_link("z", "world", Prismatic((0, 0, 1)))
    uniform = Inertia(1.0, np.zeros(3), np.diag([0.0, 1 / 3, 1 / 3]))
    beam = b.add_link("beam", "z", Revolute((0, -1, 0)), uniform).build()
    ends = [Contact(f"end {x}", Gap(("beam", (x / 3, 0, 0)), Point(), "world", Plane())) for x in (-1, 1)]
    motion = ContactMotion(ends, rest_speed=1e-3)
    q = jnp.zeros(2)
    motion = motion.in_modes(motion.initial_modes(beam, 0.0, q, q))

    @jax.jit
    def hit(left, right, torque):
        """Velocities of both ends after the impact, and whether they are closed."""
        v = jnp.stack([(left + right) / 2, 1.5 * (right - left)])
        forces = lambda motion, v: (jnp.stack([0.0, torque]), None)
        out = motion.switch(beam, jnp.zeros(()), q, v, jnp.zeros(4).at[:2].set(1), forces)
        return out.v[0] + out.v[1] * jnp.array([-1, 1]) / 3, out.modes.closed

    slow, fast = (0.0, -1e-3), (0.0, -4e-3)
    for (left, right), torque, velocity, closed in (
        (slow, 0.0, 0.0, 1),
        (slow, -12.0, 0.5e-3, 0),  # the torque lifts the left end
        (fast, 0.0, 2e-3, 0),
    ):
        v, modes = hit(left, right, torque)
        np.testing.assert_allclose(v, [velocity, 0], atol=1e-12)
        np.testing.assert_allclose(modes, [closed, 1])


@pytest.mark.exhaustive
def test_a_tossed_cube_comes_to_rest_and_has_its_gradient():
    x = cube_toss.section("jaxdyn", 0.0)
    assert x["events"] > 20
    np.testing.assert_allclose(x["gradient"], x["difference"], rtol=1e-4)
