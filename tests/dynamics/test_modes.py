"""Natural frequencies and mode shapes against closed forms, scipy and MuJoCo's matrices."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import jaxdyn as jd
from jaxdyn._numerics import generalised_eigen
from jaxdyn.joints import Free, Prismatic, Revolute
from jaxdyn.spatial import Inertia, box, point_mass


def two_inertias(k=300.0):
    """Two wheels on one axis with a spring between them: J_1 turns freely, J_2 relative to J_1."""
    builder = jd.ModelBuilder()
    wheel = lambda j: Inertia(1.0, jnp.zeros(3), j * jnp.eye(3))
    builder.add_link("motor", "world", Revolute([0, 0, 1]), wheel(0.01))
    builder.add_link("load", "motor", Revolute([0, 0, 1]), wheel(0.5), stiffness=k)
    return builder.build()


modes_at_zero = jax.jit(lambda model: jd.modes(model, jnp.zeros(model.nq)))


def test_resonance_and_antiresonance_of_two_inertias():
    result = modes_at_zero(two_inertias())
    np.testing.assert_allclose(result.frequencies, [0, 174.92855684535903], rtol=1e-12)
    # the antiresonance is the frequency with the motor at rest
    heavy = eqx.tree_at(lambda m: m.properties.armature, two_inertias(), jnp.array([1e12, 0.0]))
    np.testing.assert_allclose(modes_at_zero(heavy).frequencies[1], 24.49489742783178, rtol=1e-10)


def plane_oscillator(k):
    """A mass of 2 kg on three orthogonal springs."""
    builder, axes = jd.ModelBuilder(gravity=[0, 0, 0]), np.eye(3)
    for n, (axis, stiffness) in enumerate(zip(axes, k, strict=True)):
        body = point_mass(2.0) if n == 2 else None
        builder.add_link(f"l{n}", f"l{n - 1}" if n else "world", Prismatic(axis), body, stiffness=stiffness)
    return builder.build()


@pytest.mark.slow
def test_repeated_frequencies_have_exact_derivatives():
    """`w^2 = k / m`: sums over a repeated frequency, its products and the projector on its modes are differentiable."""
    model = plane_oscillator([50.0, 50.0, 50.0])

    def functions(k):
        result = jd.modes(eqx.tree_at(lambda m: m.properties.stiffness, model, k), jnp.zeros(3))
        projector = result.shapes @ jnp.diag(result.eigenvalues) @ result.shapes.T
        return result.frequencies.sum(), jnp.prod(result.eigenvalues), projector

    k = jnp.full(3, 50.0)
    first, second = jax.jit(lambda k: (jax.jacfwd(functions)(k), jax.hessian(lambda k: functions(k)[1])(k)))(k)
    w = np.sqrt(25.0)
    np.testing.assert_allclose(first[0], np.full(3, 1 / (2 * 2 * w)), rtol=1e-12)
    np.testing.assert_allclose(first[1], np.full(3, 25.0**2 / 2), rtol=1e-12)
    # X W X^T = M^-1 K M^-1
    np.testing.assert_allclose(first[2], np.einsum("ai,bi->abi", np.eye(3), np.eye(3)) / 4, atol=1e-14)
    np.testing.assert_allclose(second, 25.0 / 4 * (1 - np.eye(3)), atol=1e-12)


@pytest.mark.slow
def test_derivatives_of_a_general_eigenproblem():
    """Forward and reverse mode against central differences, with a pair of repeated eigenvalues."""
    keys = jax.random.split(jax.random.key(1), 4)
    n = 5
    square = lambda key: jax.random.normal(key, (n, n))
    symmetric = lambda a: a + a.T
    m = square(keys[0]) @ square(keys[0]).T + n * jnp.eye(n)
    lower = jnp.linalg.cholesky(m)
    basis = jnp.linalg.qr(square(keys[1]))[0]
    k = lower @ basis @ jnp.diag(jnp.array([1.0, 3.0, 3.0, 7.0, 20.0])) @ basis.T @ lower.T
    dk, dm = symmetric(square(keys[2])), symmetric(square(keys[3]))

    def invariants(s):
        values, x = generalised_eigen(k + s * dk, m + s * dm)
        pair = x[:, 1:3]
        return values[jnp.array([0, 3, 4])], values[1] + values[2], values[1] * values[2], pair @ pair.T, x[:, 3] ** 2

    h = 1e-6
    exact = jax.jit(jax.jacfwd(invariants))(0.0)
    at = jax.jit(invariants)
    central = jax.tree.map(lambda a, b: (a - b) / (2 * h), at(h), at(-h))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8), exact, central)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-10), jax.jacrev(invariants)(0.0), exact)
    values, x = generalised_eigen(k, m)
    np.testing.assert_allclose(values, scipy.linalg.eigh(k, m)[0], rtol=1e-11)
    np.testing.assert_allclose(x.T @ m @ x, np.eye(n), atol=1e-12)
    turn = jax.jvp(lambda s: x.T @ m @ generalised_eigen(k + s * dk, m + s * dm)[1], (0.0,), (1.0,))[1]
    np.testing.assert_allclose(turn[1:3, 1:3], -(x.T @ dm @ x)[1:3, 1:3] / 2, atol=1e-12)  # no rotation in the pair


@pytest.mark.slow
def test_unstable_and_free_motions():
    """An inverted pendulum has a negative eigenvalue; rigid-body motions have frequency and derivative zero."""
    model = jd.robots.pendulum()
    result = jd.modes(model, jnp.array([jnp.pi]))
    np.testing.assert_allclose(result.frequencies, [-np.sqrt(9.81)], rtol=1e-12)
    slope = jax.grad(lambda k: modes_at_zero(two_inertias(k)).frequencies.sum())(300.0)
    np.testing.assert_allclose(slope, 174.92855684535903 / 600, rtol=1e-10)


@pytest.mark.exhaustive
def test_floating_robot_matches_scipy():
    """Stiffness by a matrix, by energies and by gravity, at a turned free joint; K by the Hessian of the energy."""
    builder = jd.ModelBuilder()
    limb = box([0.1, 0.1, 0.5], mass=1.0)
    builder.add_link("base", "world", Free(), box([0.4, 0.3, 0.2], mass=3.0))
    builder.add_link("arm", "base", Revolute([0, 1, 0]), limb, translation=[0, 0, -0.3], stiffness=9.0)
    model = builder.build()
    q = jd.random_configuration(model, jax.random.key(3))
    rest = jd.random_configuration(model, jax.random.key(4)).at[4:7].set(q[4:7])
    energy = lambda model, q: 40 * jnp.sum((q[4:7] - rest[4:7]) ** 2) + 3 * jnp.sin(q[7]) ** 2
    extra = jnp.diag(jnp.arange(1.0, 8.0))
    result = jax.jit(lambda m, q: jd.modes(m, q, stiffness=extra, energies=(energy,)))(model, q)

    def total(d):
        moved = jd.integrate(model, q, d)
        spring = 9.0 * jd.difference(model, model.properties.rest, moved)[6] ** 2 / 2
        return jd.potential_energy(model, moved) + spring + energy(model, moved) + d @ extra @ d / 2

    k, m = jax.jit(lambda m: (jax.hessian(total)(jnp.zeros(7)), jd.mass_matrix(m, q)))(model)
    values, shapes = scipy.linalg.eigh(k, m)
    np.testing.assert_allclose(result.eigenvalues, values, rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(np.abs(result.shapes), np.abs(shapes), atol=1e-8)
    assert (np.asarray(result.shapes)[np.abs(result.shapes).argmax(0), range(7)] > 0).all()


@pytest.mark.slow
def test_frequencies_of_an_arm_match_the_matrices_of_mujoco():
    mujoco = pytest.importorskip("mujoco")
    text = """<mujoco><option gravity="0 0 -9.81"/><worldbody><body><joint name="a" axis="0 1 0" stiffness="30"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.4" size=".03" mass="2"/><body pos="0 0 -.4">
    <joint name="b" axis="0 1 0" stiffness="12" armature=".01"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass="1"/></body></body></worldbody></mujoco>"""
    peer = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(peer)

    def restoring(q):
        data.qpos[:], data.qvel[:] = q, 0
        mujoco.mj_forward(peer, data)
        return data.qfrc_bias - data.qfrc_passive

    h = 1e-6
    k = np.stack([(restoring(h * e) - restoring(-h * e)) / (2 * h) for e in np.eye(2)], 1)
    restoring(np.zeros(2))
    m = np.zeros((2, 2))
    for row, unit in zip(m, np.eye(2), strict=True):
        mujoco.mj_mulM(peer, data, row, unit)
    result = modes_at_zero(jd.parse_mjcf(text))
    np.testing.assert_allclose(result.frequencies**2, scipy.linalg.eigh(k, m)[0], rtol=1e-8)
