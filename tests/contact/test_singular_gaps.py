"""Gaps and their derivatives are finite in singular configurations, in both precisions."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jaxdyn.contact as ct
from jaxdyn.constraints.contract import KinematicState
from jaxdyn.contact.contract import relative_velocity

from ._cases import Ellipsoid, configuration, derivatives, flat_touch, move

ROTATIONS = [
    (0, 0, 0),
    (np.pi / 2, 0, 0),
    (0, np.pi / 2, 0),
    (np.pi, 0, 0),
    (0.3, -0.2, 0.5),
    (1e-9, 0, 0),
    (1e-4, 0, 0),
]
POSITIONS = [(0, 0, 0), (0, 0, 0.3), (0.5, 0, 0), (0, 0, 0.5), (1e-10, 1e-12, 0), (1e-6, 0, 1e-6), (1e-4, 0, 0)]

SHAPES = {"sphere": ct.Sphere(0.1), "capsule": ct.Capsule(0.1, 0.6), "disc": ct.Disc(0.5)}
SURFACES = {
    "plane": lambda: ct.Plane(),
    "sphere": lambda: ct.Sphere(0.5),
    "capsule": lambda: ct.Capsule(0.2, 0.6),
    "inside cylinder": lambda: ct.Inside(ct.Cylinder(0.5)),
    "implicit": lambda: ct.ImplicitSurface(Ellipsoid(jnp.array([4.0, 4.0, 4.0]))),
}
PAIRS = [f"{shape}-{surface}" for shape in SHAPES for surface in SURFACES]
#: pairs without singular configurations in which a segment or circle crosses the centre of a surface
RATES = ("sphere-plane", "sphere-sphere", "sphere-capsule", "sphere-inside cylinder", "disc-plane")


def evaluate(pair: str, dtype):
    """Touch, three derivatives along a motion and the gradient of the gap's rate, for all rotations and positions."""
    shape, surface = pair.split("-")
    gap = jax.tree.map(lambda x: x.astype(dtype), ct.Gap("a", SHAPES[shape], "b", SURFACES[surface]()))
    twists = jnp.asarray(np.random.default_rng(0).normal(size=(2, 6)), dtype)

    def along(vector):
        rotation, translation = vector[:9].reshape(3, 3), vector[9:]
        r, p = jnp.stack([rotation, jnp.eye(3, dtype=dtype)]), jnp.stack([translation, jnp.zeros(3, dtype)])
        f = lambda e: flat_touch(gap.measure(move(r, p, twists, e)))
        state = KinematicState(configuration(r, p), jnp.zeros(12, dtype), twists[:, :3], twists[:, 3:])
        return f, relative_velocity(gap, state, gap.measure(state.configuration))

    @jax.jit
    @jax.vmap
    def values(vector):
        f, relative = along(vector)
        rate = lambda x: jax.jvp(along(x)[0], (jnp.zeros((), dtype),), (jnp.ones((), dtype),))[1][0]
        return derivatives(f, 3)(jnp.zeros((), dtype)), relative, jax.grad(rate)(vector)

    poses = itertools.product(ROTATIONS, POSITIONS)
    cases = [[*Rotation.from_rotvec(w).as_matrix().ravel(), *p] for w, p in poses]
    return [np.asarray(x) for x in values(jnp.asarray(np.array(cases), dtype))]


def _least(vector):
    """The least absolute value of the entries that are not zero."""
    return min((abs(x) for x in vector if x), default=np.inf)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.slow("sphere-sphere-float32", "disc-plane-float32", "capsule-capsule-float64")
def test_singular_gaps_have_finite_derivatives(pair, dtype):
    """Centres on axes, parallel capsules, flat discs, coincident shapes, and configurations near these."""
    orders, relative, gradient = evaluate(pair, jnp.dtype(dtype))
    assert orders.dtype == jnp.dtype(dtype)
    assert all(np.isfinite(x).all() for x in (orders, relative, gradient))
    eps = np.finfo(dtype).eps
    normal = orders[:, 0, 4:]
    assert np.abs(np.linalg.norm(normal, axis=1) - 1).max() < 8 * eps
    if pair in RATES:
        exact = [i for i, case in enumerate(itertools.product(ROTATIONS, POSITIONS)) if min(map(_least, case)) > 1e-3]
        rate, expected = orders[exact, 1, 0], np.sum(normal * relative, axis=1)[exact]
        assert np.abs(rate - expected).max() < 100 * np.sqrt(eps)


def test_normals_of_singular_configurations():
    """The documented choices."""
    at = lambda gap: gap.measure(configuration(jnp.stack([jnp.eye(3)] * 2), jnp.zeros((2, 3))))
    sphere, tube = at(ct.Gap("a", ct.Point(), "b", ct.Sphere(0.5))), at(ct.Gap("a", ct.Point(), "b", ct.Cylinder(0.5)))
    assert (sphere.gap, tube.gap) == (-0.5, -0.5)
    assert np.array_equal(sphere.normal, [0, 0, 1]) and np.array_equal(tube.normal, [1, 0, 0])
    disc = at(ct.Gap("a", ct.Disc(0.3), "b", ct.Plane()))
    assert disc.gap == 0 and np.array_equal(disc.point, [0.3, 0, 0])
    capsule = at(ct.Gap(("a", (1.0, 0, 0.2)), ct.Capsule(0.1, 0.6), "b", ct.Capsule(0.2, 0.6)))
    assert abs(capsule.gap - 0.7) < 1e-15
    assert np.abs(capsule.point - np.array([0.9, 0, 0.1])).max() < 1e-15  # the middle of the common stretch
