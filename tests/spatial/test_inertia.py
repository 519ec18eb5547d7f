"""Inertia of solids against integration over their volume, the parallel axis theorem, and principal axes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.spatial import (
    Inertia,
    box,
    cylinder,
    ellipsoid,
    inertia_defect,
    point_mass,
    principal_axes,
    rod,
    rotation_vector_to_matrix,
    rpy_to_matrix,
    shell,
    sphere,
    steiner,
)

NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)


def gauss(low, high):
    return (high - low) / 2 * NODES + (high + low) / 2, (high - low) / 2 * WEIGHTS


def integrate(points, weights):
    """Mass and inertia about the origin of a cloud `points` (3, n)."""
    moment = np.einsum("in,jn,n->ij", points, points, weights)
    return weights.sum(), np.trace(moment) * np.eye(3) - moment


def grid(*axes):
    points = np.meshgrid(*(a for a, _ in axes), indexing="ij")
    weights = np.meshgrid(*(w for _, w in axes), indexing="ij")
    return [p.ravel() for p in points], np.prod([w.ravel() for w in weights], axis=0)


def box_points(x, y, z):
    points, w = grid(gauss(-x / 2, x / 2), gauss(-y / 2, y / 2), gauss(-z / 2, z / 2))
    return np.stack(points), w


def cylinder_points(r, l):
    turn = (2 * np.pi * np.arange(16) / 16, np.full(16, 2 * np.pi / 16))
    (rho, phi, z), w = grid(gauss(0, r), turn, gauss(-l / 2, l / 2))
    return np.stack([rho * np.cos(phi), rho * np.sin(phi), z]), w * rho


def ellipsoid_points(a, b, c, shell_only=False):
    turn = (2 * np.pi * np.arange(16) / 16, np.full(16, 2 * np.pi / 16))
    radial = (np.ones(1), np.ones(1)) if shell_only else gauss(0, 1)
    (rho, phi, u), w = grid(radial, turn, gauss(-1, 1))
    s = np.sqrt(1 - u * u)
    points = np.stack([a * rho * s * np.cos(phi), b * rho * s * np.sin(phi), c * rho * u])
    return points, w * rho**2 * a * b * c


SOLIDS = {
    "box": (lambda d: box((0.3, 0.5, 0.7), density=d), box_points(0.3, 0.5, 0.7)),
    "cylinder": (lambda d: cylinder(0.2, 0.9, density=d), cylinder_points(0.2, 0.9)),
    "sphere": (lambda d: sphere(0.4, density=d), ellipsoid_points(0.4, 0.4, 0.4)),
    "ellipsoid": (lambda d: ellipsoid((0.2, 0.3, 0.5), density=d), ellipsoid_points(0.2, 0.3, 0.5)),
    "rod": (lambda d: rod(0.8, density=d), (np.stack([0 * NODES, 0 * NODES, 0.4 * NODES]), 0.4 * WEIGHTS)),
    "shell": (
        lambda d: shell(0.5, density=d),
        (ellipsoid_points(0.5, 0.5, 0.5, True)[0], ellipsoid_points(1, 1, 1, True)[1] * 0.25),
    ),
}


@pytest.mark.parametrize("name", SOLIDS)
def test_solids_against_integration(name):
    make, (points, weights) = SOLIDS[name]
    body = make(1200.0)
    mass, inertia = integrate(points, 1200 * weights)
    np.testing.assert_allclose(body.mass, mass, rtol=1e-12)
    np.testing.assert_allclose(body.inertia, inertia, atol=1e-12 * mass)
    assert inertia_defect(body.mass, body.inertia) is None


def test_mass_or_density_but_not_both():
    np.testing.assert_allclose(box((1, 2, 3), mass=6.0).inertia, box((1, 2, 3), density=1.0).inertia)
    for given in ({}, {"mass": 1.0, "density": 1.0}):
        with pytest.raises(ValueError, match="either density .* or mass"):
            sphere(1.0, **given)


def test_inertia_is_differentiable_with_respect_to_dimensions():
    slope = jax.grad(lambda x: box((x, 0.5, 0.7), density=10.0).inertia[1, 1])(0.3)
    np.testing.assert_allclose(slope, 10 * 0.5 * 0.7 / 12 * (3 * 0.3**2 + 0.7**2), rtol=1e-14)


def test_sums_of_bodies_follow_the_parallel_axis_theorem():
    a = box((0.1, 0.2, 0.3), mass=2.0).moved((0.3, -0.1, 0.2), rpy_to_matrix(jnp.array([0.3, 0.5, -0.2])))
    b = point_mass(3.0).moved((-0.2, 0.4, 0.1))
    whole = a + b
    np.testing.assert_allclose(whole.mass, 5.0, rtol=1e-15)
    np.testing.assert_allclose(whole.com, (2 * a.com + 3 * b.com) / 5, rtol=1e-14)
    about = lambda i: i.inertia + i.mass * steiner(i.com)
    np.testing.assert_allclose(about(whole), about(a) + about(b), rtol=1e-13)
    reduced = 2.0 * 3.0 / 5.0
    pair = point_mass(2.0) + point_mass(3.0).moved((0, 0, 0.5))
    np.testing.assert_allclose(pair.inertia, reduced * 0.25 * np.diag([1.0, 1, 0]), atol=1e-15)


@pytest.mark.slow
def test_the_sum_of_massless_bodies_and_its_gradient_are_finite():
    massless = point_mass(0.0)
    total = massless + massless
    assert total.mass == 0 and np.isfinite(total.com).all() and np.isfinite(total.inertia).all()
    slope = jax.grad(lambda m: (point_mass(m).moved((1, 0, 0)) + massless).inertia.sum())(0.0)
    assert np.isfinite(slope)


def test_inertia_rotated_by_a_quarter_turn_about_z():
    rotated = Inertia(1.0, np.zeros(3), np.diag([1.0, 2.0, 2.5])).moved(
        rotation=rpy_to_matrix(jnp.array([0, 0, np.pi / 2]))
    )
    np.testing.assert_allclose(rotated.inertia, np.diag([2.0, 1.0, 2.5]), atol=1e-15)
    np.testing.assert_allclose(jnp.linalg.solve(rotated.inertia, jnp.array([2.0, 0, 0])), [1, 0, 0], atol=1e-15)


def test_inertia_of_a_rotated_body_against_integration():
    r = rotation_vector_to_matrix(jnp.array([0.3, 0.7, -0.4]))
    points, weights = box_points(0.1, 0.2, 0.5)
    body = box((0.1, 0.2, 0.5), density=3.0).moved(rotation=r)
    np.testing.assert_allclose(body.inertia, integrate(r @ points, 3 * weights)[1], atol=1e-15)


def test_principal_axes_reconstruct_the_inertia():
    r = rotation_vector_to_matrix(jnp.array([0.3, 0.7, -0.4]))
    inertia = r @ jnp.diag(jnp.array([2.5, 1.0, 2.0])) @ r.T
    moments, axes = principal_axes(inertia)
    np.testing.assert_allclose(moments, [1, 2, 2.5], rtol=1e-13)
    np.testing.assert_allclose(axes @ jnp.diag(moments) @ axes.T, inertia, atol=1e-14)
    np.testing.assert_allclose(jnp.linalg.det(axes), 1, rtol=1e-14)


@pytest.mark.parametrize(
    ("mass", "inertia", "message"),
    [
        (-1.0, np.eye(3), "negative mass"),
        (np.nan, np.eye(3), "not finite"),
        (1.0, np.full((3, 3), np.inf), "not finite"),
        (1.0, np.array([[1, 0.1, 0], [0, 1, 0], [0, 0, 1]]), "not symmetric"),
        (1.0, np.diag([1.0, 1, -0.1]), "negative principal moment"),
        (1.0, np.diag([1.0, 1, 2.1]), "triangle inequality"),
    ],
)
def test_inertia_defects_are_named(mass, inertia, message):
    assert message in inertia_defect(mass, inertia)


def test_equality_in_the_triangle_inequality_is_allowed():
    assert inertia_defect(1.0, np.diag([1.0, 1, 2.0])) is None
    assert inertia_defect(0.0, np.zeros((3, 3))) is None


@pytest.mark.slow
def test_gradients_of_principal_axes_of_bodies_of_revolution():
    """Equal eigenvalues, where the derivative of eigenvectors has poles."""
    moments = lambda r: principal_axes(cylinder(r, 1.0, mass=12.0).inertia)[0]
    np.testing.assert_allclose(jax.jacfwd(moments)(0.1), [1.2, 0.6, 0.6], rtol=1e-12)  # of m r^2 / 2, then m r^2 / 4
    slopes = jax.jit(jax.jacrev(principal_axes))
    for body in (sphere(0.3, mass=2.0), cylinder(0.1, 1.0, mass=2.0), point_mass(1.0)):
        by_moment, by_axis = slopes(body.inertia)
        np.testing.assert_allclose(by_moment.sum(0), np.eye(3), atol=1e-14)  # the trace
        assert np.isfinite(by_axis).all()


@pytest.mark.slow
def test_derivative_of_principal_axes_of_distinct_moments():
    """The tangent of `R diag(moments) R^T` is the tangent of the inertia."""
    turn = np.asarray(rpy_to_matrix(jnp.array([0.3, -0.4, 0.5])))
    inertia = turn @ np.diag([1.0, 1.5, 2.2]) @ turn.T
    change = np.array([[0.3, 0.1, -0.2], [0.1, -0.4, 0.5], [-0.2, 0.5, 0.7]])
    build = lambda x: (lambda m, r: (r * m) @ r.T)(*principal_axes(x))
    np.testing.assert_allclose(jax.jvp(build, (inertia,), (change,))[1], change, atol=1e-13)
