"""Theorems 6 to 12 for chains of ball joints, against their definitions."""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.formulations import (
    PrincipalLinks,
    SpatialLinks,
    SphericalChain,
    ThreePointGradient,
    TwoPointGradient,
    angular_mass_matrix,
    gravity_gradient,
    principal_links,
    rotation_slopes,
    slope_products,
    spatial_link_inertia,
    spatial_links,
    spatial_momentum_rates,
)
from jaxdyn.joints import SphericalZYX
from tests.formulations._cases import TOLERANCE, model, state
from tests.oracles import relative_error

jit = ft.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
N = 3
ANGLES = jnp.array([[0.4, -0.3, 0.9], [-0.7, 0.5, 0.2], [1.1, 0.8, -0.6]])

RATE, EFFORT = jnp.cos(jnp.arange(9.0)), jnp.sin(jnp.arange(9.0))


def _links():
    """Three links with random numbers; second moments of a cloud of points."""
    rng = np.random.default_rng(3)
    second = rng.normal(size=(N, 3, 3))
    second = second @ second.transpose(0, 2, 1) + 0.1 * np.eye(3)
    arm = rng.normal(size=(N, 3))
    arm[-1] = 0
    numbers = (rng.uniform(1, 2, N), second, arm, rng.normal(size=(N, 3)), np.array([1.0, -2.0, -9.0]))
    return SpatialLinks(*map(jnp.asarray, numbers))


def _rotations(angles):
    return jax.vmap(lambda a: SphericalZYX().transform(a)[0])(angles)


@jit
def _functions(links, angles):
    def potential(angles):
        r = _rotations(angles)
        arm = jnp.einsum("nij,nj->ni", r, links.arm)
        centre = jnp.cumsum(arm, axis=0) - arm + jnp.einsum("nij,nj->ni", r, links.center)
        return -links.mass @ (centre @ links.gravity)

    slopes = jnp.moveaxis(jax.vmap(jax.jacfwd(lambda a: _rotations(a[None])[0]))(angles), 3, 1)
    return (
        (rotation_slopes(angles), slopes),
        (gravity_gradient(links, angles), jax.grad(potential)(angles).reshape(-1)),
        (spatial_link_inertia(links, angles), angular_mass_matrix(links, angles)),
        spatial_momentum_rates(links, angles, angular_mass_matrix(links, angles) @ RATE, EFFORT),
        jax.grad(lambda x: RATE @ angular_mass_matrix(links, x) @ RATE / 2 - potential(x))(angles).reshape(-1),
    )


@pytest.mark.slow
def test_theorems():
    links = _links()
    (got, slopes), (gravity, slope), (inertia, mass), (rate, force), lagrangian = _functions(links, ANGLES)
    assert relative_error(got, slopes) < TOLERANCE  # theorem 7
    assert relative_error(gravity, slope) < TOLERANCE  # theorem 11
    assert relative_error(rate, RATE) < TOLERANCE
    assert relative_error(force, lagrangian + EFFORT) < TOLERANCE  # theorem 1
    slopes = np.asarray(slopes)
    arms = np.einsum("nhij,nj->nih", slopes, np.asarray(links.arm))
    assembled = np.zeros((3 * N, 3 * N))
    for i in range(N):  # theorem 9, equations 51 to 56, and the assembly after equation 64
        chain = np.zeros((6, 3 * (i + 1)))
        chain[:3, : 3 * i] = arms[:i].transpose(1, 0, 2).reshape(3, -1)
        chain[3:, 3 * i :] = np.eye(3)
        assembled[: 3 * (i + 1), : 3 * (i + 1)] += chain.T @ np.asarray(inertia[i]) @ chain
    assert relative_error(mass, assembled) < TOLERANCE


def test_link_inertia_equals_that_of_points():
    """Theorem 6 with equation 39: the kinetic energy of the points."""
    rng = np.random.default_rng(4)
    points, weights = rng.normal(size=(N, 5, 3)), rng.uniform(0.1, 1, (N, 5))
    total = weights.sum(1)
    second = np.einsum("np,npi,npj->nij", weights, points, points)
    center = np.einsum("np,npi->ni", weights, points) / total[:, None]
    links = SpatialLinks(*map(jnp.asarray, (total, second, np.zeros((N, 3)), center, np.zeros(3))))
    matrices = np.asarray(spatial_link_inertia(links, ANGLES))
    rate = rng.normal(size=6)
    slopes = np.asarray(rotation_slopes(ANGLES))
    for i in range(N):
        velocity = rate[:3] + np.einsum("hij,pj,h->pi", slopes[i], points[i], rate[3:])
        assert abs(rate @ matrices[i] @ rate - weights[i] @ (velocity**2).sum(1)) < 1e-12 * abs(
            rate @ matrices[i] @ rate
        )


def test_centres_on_the_first_axis():
    """Theorems 8 and 12: the mixed block from one column, and gravity on the second angles only."""
    given = _links()
    first = jnp.array([1.0, 0.0, 0.0])
    links = SpatialLinks(given.mass, given.second, given.arm * first, given.center * first, jnp.array([0.0, 0, -9.81]))
    inertia = np.asarray(spatial_link_inertia(links, ANGLES))
    gradient = np.asarray(gravity_gradient(links, ANGLES)).reshape(N, 3)
    for i in range(N):
        (s1, s2, _), (c1, c2, _) = np.sin(ANGLES[i]), np.cos(ANGLES[i])
        column = np.array([[-s1 * c2, -c1 * s2, 0], [c1 * c2, -s1 * s2, 0], [0, -c2, 0]])
        m, g, o = float(links.mass[i]), float(links.center[i, 0]), float(links.arm[i, 0])
        assert np.abs(inertia[i, :3, 3:] - m * g * column).max() < 1e-12
        after = float(links.mass[i + 1 :].sum())
        assert np.abs(gradient[i] - [0, -9.81 * c2 * (m * g + after * o), 0]).max() < 1e-12  # the sign of (60)


def _principal():
    """The same links as `PrincipalLinks` and as `SpatialLinks`."""
    given = _links()
    moments, arm, center = jnp.diagonal(given.second, axis1=1, axis2=2), given.arm[:, 0], given.center[:, 0]
    first, whole = jnp.array([1.0, 0.0, 0.0]), moments[:, :, None] * jnp.eye(3)
    down = jnp.array([0.0, 0.0, -9.81])
    general = SpatialLinks(given.mass, whole, arm[:, None] * first, center[:, None] * first, down)
    return PrincipalLinks(given.mass, moments, arm, center, jnp.asarray(9.81)), general


@jit
def _of_links(links, angles):
    p = angular_mass_matrix(links, angles) @ RATE
    return (
        spatial_link_inertia(links, angles),
        angular_mass_matrix(links, angles),
        gravity_gradient(links, angles),
        spatial_momentum_rates(links, angles, p, EFFORT),
    )


@pytest.mark.slow
def test_principal_axes():
    """Theorems 8, 10 and 12 (48, 57, 58 and 62) are special cases of 6, 9 and 11."""
    principal, general = _principal()
    for x, y in zip(
        jax.tree.leaves(_of_links(principal, ANGLES)), jax.tree.leaves(_of_links(general, ANGLES)), strict=True
    ):
        assert relative_error(x, y) < TOLERANCE


def test_algorithm_1():
    """Step 3: the block I_22 from six products (47), and from three of them in principal axes."""
    slopes = rotation_slopes(ANGLES)
    products = np.asarray(slope_products(slopes))
    columns = np.asarray(slopes)  # [link, angle, row, column]
    np.testing.assert_allclose(products[:, 4], np.einsum("nai,nbi->nab", columns[..., 1], columns[..., 2]), atol=1e-14)
    for links in (_links(), _principal()[1]):
        second, total = np.asarray(links.second), 0
        for p, (h, k) in enumerate(zip(*np.triu_indices(3), strict=True)):
            term = products[:, p] * second[:, h, k, None, None]
            total = total + (term if h == k else term + term.transpose(0, 2, 1))
        assert relative_error(spatial_link_inertia(links, ANGLES)[:, 3:, 3:], total) < TOLERANCE


@ft.partial(jit, static_argnums=0)
def _numerical_gradient(kind, links, step):
    p = angular_mass_matrix(links, ANGLES) @ RATE
    return spatial_momentum_rates(links, ANGLES, p, EFFORT, kind(step))[1]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "order"), [(TwoPointGradient, 1), (ThreePointGradient, 2)])
def test_numerical_gradients_of_a_chain(kind, order):
    """The error decreases with the power of the step in lemma 1, and is not zero."""
    exact = _of_links(_links(), ANGLES)[-1][1]
    coarse, fine = (np.abs(_numerical_gradient(kind, _links(), step) - exact).max() for step in (2e-3, 1e-3))
    assert abs(coarse / fine - 2**order) < 0.05 * 2**order
    assert 1e-8 < fine < 1e-2 * np.abs(exact).max()


@ft.partial(jit, static_argnums=0)
def _bias(kind, m, q, v, step):
    return SphericalChain(kind(step)).bias(m, q, v)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "order"), [(TwoPointGradient, 1), (ThreePointGradient, 2)])
def test_numerical_gradients_of_the_formulation(kind, order):
    m, (q, v, _, _) = model("balls"), state("balls")
    exact = jd.bias_forces(m, q, v)
    coarse, fine = (np.abs(_bias(kind, m, q, v, step) - exact).max() for step in (2e-3, 1e-3))
    assert abs(coarse / fine - 2**order) < 0.05 * 2**order
    assert 0 < fine < 1e-2 * np.abs(exact).max()


def _rods(turned=False, gravity=(0, 0, -9.81)):
    builder = jd.ModelBuilder(gravity=gravity)
    body = jd.spatial.box((0.4, 0.05, 0.04), mass=1.0).moved((0.2, 0.0, 0.05 * turned))
    for i in range(2):
        joint = jd.joints.SphericalZYX()
        builder.add_link(f"l{i}", f"l{i - 1}" if i else "world", joint, body, translation=(0.4 * i, 0, 0))
    return builder.build()


def test_links_of_a_model():
    assert spatial_links(model("balls")).mass.shape == (2,)
    links, m = principal_links(_rods()), _rods()
    assert relative_error(links.second, jnp.diagonal(spatial_links(m).second, axis1=1, axis2=2)) < TOLERANCE
    assert (float(links.arm[0]), float(links.gravity)) == (0.4, 9.81)
    for other, fault in ((_rods(turned=True), "link 'l0' has products"), (_rods(gravity=(1, 0, -9)), "gravity is")):
        with pytest.raises(jd.ModelError, match=fault):
            principal_links(other)
    with pytest.raises(jd.ModelError, match="outside of jit"):
        jax.eval_shape(principal_links, m)
