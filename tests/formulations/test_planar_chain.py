"""Theorems 2 to 5 for planar chains, against their definitions and the closed form of a double pendulum."""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.formulations import (
    PlanarChain,
    absolute_kinetic_gradient,
    absolute_mass_matrix,
    gravity_torques,
    kinetic_gradient,
    planar_link_inertia,
    planar_link_mass_matrices,
    planar_links,
    planar_momentum_rates,
    relative_mass_matrix,
)
from tests.formulations._cases import TOLERANCE, model
from tests.oracles import relative_error

jit = ft.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
BETA, RATE = jnp.array([0.4, -0.9, 0.7]), jnp.array([1.0, -0.6, 0.8])


def _rotate(angle, x):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c * x[0] - s * x[1], s * x[0] + c * x[1]])


@jit
def _functions(links, beta, rate):
    alpha = jnp.cumsum(beta)
    energy = lambda b: rate @ relative_mass_matrix(links, b) @ rate / 2

    def potential(b):
        angles = jnp.cumsum(b)
        turn = lambda x: jnp.stack(
            [
                jnp.cos(angles) * x[:, 0] - jnp.sin(angles) * x[:, 1],
                jnp.sin(angles) * x[:, 0] + jnp.cos(angles) * x[:, 1],
            ],
            1,
        )
        joints = jnp.cumsum(turn(links.arm), axis=0) - turn(links.arm)
        return -links.mass @ ((joints + turn(links.center)) @ links.gravity)

    return (
        (planar_link_inertia(links, alpha), absolute_mass_matrix(links, alpha), relative_mass_matrix(links, beta)),
        (kinetic_gradient(links, beta, rate), jax.grad(energy)(beta)),
        (gravity_torques(links, beta), -jax.grad(potential)(beta)),
        (
            planar_link_mass_matrices(links, alpha),
            absolute_kinetic_gradient(links, alpha, rate),
            jax.grad(lambda x: rate @ absolute_mass_matrix(links, x) @ rate / 2)(alpha),
        ),
        planar_momentum_rates(links, alpha, absolute_mass_matrix(links, alpha) @ jnp.cumsum(rate), jnp.arange(3.0)),
    )


@pytest.mark.slow
def test_theorems():
    links = planar_links(model("planar"))
    (inertia, absolute, relative), (gradient, slope), (torque, weight), parts, (velocity, force) = _functions(
        links, BETA, RATE
    )
    alpha = np.cumsum(BETA)
    arms = [_rotate(angle, d) for angle, d in zip(alpha, np.asarray(links.arm), strict=True)]
    assembled = np.zeros((3, 3))
    for i in range(3):  # theorem 3, equations 15, 16 and 26, and the assembly of figure 8
        r = np.zeros((3, i + 1))
        for h in range(i):
            r[:2, h] = -arms[h][1], arms[h][0]
        r[2, i] = 1
        own = r.T @ np.asarray(inertia[i]) @ r  # equation 15
        assembled[: i + 1, : i + 1] += own
        assert relative_error(parts[0][i, : i + 1, : i + 1], own) < TOLERANCE  # equations 17 and 18
        assert not np.any(parts[0][i, i + 1 :]) and not np.any(parts[0][i, :, i + 1 :])
    assert relative_error(absolute, assembled) < TOLERANCE
    u = np.tril(np.ones((3, 3)))
    assert relative_error(relative, u.T @ assembled @ u) < TOLERANCE
    assert relative_error(gradient, slope) < TOLERANCE
    assert relative_error(parts[1], parts[2]) < TOLERANCE
    assert gradient[0] == 0
    assert relative_error(torque, weight) < TOLERANCE
    assert relative_error(velocity, np.cumsum(RATE)) < TOLERANCE
    assert relative_error(u.T @ force, gradient + torque + u.T @ np.arange(3.0)) < TOLERANCE


@pytest.mark.slow
def test_link_inertia_of_theorem_2():
    """The kinetic energy of a body of two point masses equals that of the points."""
    links = planar_links(model("hinges"))
    alpha, rate = jnp.array([0.3, -0.8]), np.array([0.5, -0.2, 1.3])
    matrices = np.asarray(planar_link_inertia(links, alpha))
    for i in range(2):
        mass, center = float(links.mass[i]), np.asarray(links.center[i])
        spread = np.sqrt(float(links.inertia[i]) / mass - center @ center) * np.array([0.6, 0.8])
        energy = 0.0
        for point in (center + spread, center - spread):
            x, y = _rotate(float(alpha[i]), point)
            energy += mass / 4 * ((rate[0] - rate[2] * y) ** 2 + (rate[1] + rate[2] * x) ** 2)
        assert abs(rate @ matrices[i] @ rate / 2 - energy) < 1e-12


def test_nonparallel_axes_raise_an_error():
    assert "'joint2'" in str(PlanarChain().covers(jd.robots.panda()))
    assert jax.eval_shape(lambda m: planar_links(m).mass, jd.robots.panda()).shape == (7,)  # no numbers in a trace
    with pytest.raises(jd.ModelError, match="'joint2' is not parallel"):
        planar_links(jd.robots.panda())


def _robot_with_crossed_axes():
    builder = jd.ModelBuilder()
    for name, parent, axis in (("a", "world", (0, 1, 0)), ("b", "a", (0, 1, 0)), ("c", "b", (0, 0.6, 0.8))):
        builder.add_link(
            name, parent, jd.joints.Revolute(axis), jd.spatial.sphere(0.1, mass=1.0), translation=(0.1, 0, 0)
        )
    return builder.build()


def test_traced_nonparallel_axes_raise_an_error_at_run_time():
    """A model that is an argument of a compiled function raises an error at run time, also for one model of a batch."""
    good, bad = jd.robots.double_pendulum(), _robot_with_crossed_axes()
    links = jit(lambda m: planar_links(m).inertia)
    assert np.isfinite(links(good)).all()
    with pytest.raises(Exception, match="the axis of joint 'c_joint' is not parallel"):
        links(bad).block_until_ready()


def test_rotated_leaf_link_does_not_affect_the_plane():
    """Fixed links that are not part of the chain do not affect the direction of its axes."""
    builder = jd.ModelBuilder()
    builder.add_link("a", "world", jd.joints.Revolute((0, 0, 1)), jd.spatial.sphere(0.1, mass=1.0))
    builder.add_link("leaf", "a", jd.joints.Fixed(), jd.spatial.sphere(0.1, mass=1.0), rpy=(0.4, 0.5, 0.6))
    builder.add_link("b", "a", jd.joints.Revolute((0, 0, 1)), jd.spatial.sphere(0.1, mass=1.0), translation=(1, 0, 0))
    m = builder.build()
    assert m.link_names.index("leaf") < m.link_names.index("b")
    assert PlanarChain().covers(m) is None
