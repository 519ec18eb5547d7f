"""The pose that is nearest on a constraint, and its derivatives in the constraint's numbers."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxdyn as jd
import jaxdyn.constraints as jc


class Bowl(eqx.Module):
    """A surface with numbers of its own."""

    depth: jax.Array
    waves: jax.Array

    def __call__(self, p):
        return p[2] - self.depth * (p[0] ** 2 + p[1] ** 2) - jnp.sin(self.waves @ p)


def _bead(depth):
    """A bead on a bowl: three slides, and a surface with a number."""
    b = jd.ModelBuilder()
    b.add_link("x", "world", jd.joints.Prismatic((1, 0, 0)))
    b.add_link("y", "x", jd.joints.Prismatic((0, 1, 0)))
    b.add_link("bead", "y", jd.joints.Prismatic((0, 0, 1)), jd.spatial.point_mass(0.7))
    return b.build(), (jc.OnSurface("bowl", "bead", Bowl(depth, jnp.zeros(3))),)


@pytest.mark.slow
@pytest.mark.wide
def test_nearest_point_of_a_sphere():
    """From a rough point to the sphere, straight along the radius, with the derivative of that projection."""
    model, _ = _bead(0.0)

    @jax.jit
    def nearest(radius, q):
        sphere = jc.Distance("sphere", "world", "bead", radius)
        end = jc.assemble(model, sphere, q)
        return end.q, end.nearest

    rough, radius = jnp.array([0.9, -1.2, 2.5]), jnp.array(1.3)
    q, there = nearest(radius, rough)
    length = np.linalg.norm(rough)
    assert bool(there)
    assert_allclose(q, 1.3 * rough / length, atol=1e-9)
    by_radius, by_start = jax.jit(jax.jacfwd(lambda r, q: nearest(r, q)[0], (0, 1)))(radius, rough)
    assert_allclose(by_radius, rough / length, atol=1e-8)
    assert_allclose(by_start, 1.3 / length * (np.eye(3) - np.outer(rough, rough) / length**2), atol=1e-8)


@pytest.mark.slow
def test_nearest_point_of_a_paraboloid():
    """Neither straight nor circular: the normal of `z = d r^2` at the foot goes through the start."""
    rough = jnp.array([1.0, 0.5, 0.1])

    @jax.jit
    def nearest(depth):
        model, bowl = _bead(depth)
        end = jc.assemble(model, bowl, rough)
        return end.q, end.nearest

    q, there = nearest(jnp.array(1.1))
    assert bool(there)
    assert_allclose(q[2], 1.1 * (q[0] ** 2 + q[1] ** 2), atol=1e-12)
    assert_allclose(np.cross(rough - q, [-2.2 * q[0], -2.2 * q[1], 1.0]), 0, atol=1e-8)
    slope = jax.jit(jax.jacrev(lambda d: nearest(d)[0]))(jnp.array(1.1))
    want = (nearest(jnp.array(1.1 + 1e-4))[0] - nearest(jnp.array(1.1 - 1e-4))[0]) / 2e-4
    assert_allclose(slope, want, atol=1e-6)
