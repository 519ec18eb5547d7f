"""Functions of the classical formulations for robots with two joints, against `jaxdyn.dynamics`, in two programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import formulations as jf
from tests.formulations._cases import TOLERANCE, model, state
from tests.oracles import relative_error

EFFORT = jnp.array([0.7, -0.3])


@jax.jit
def _two_hinges(m, q, v, a):
    name, base = m.link_names[-1], jd.WORLD_ALIGNED
    pose = jd.frame_pose(m, q, name)
    return {
        "pose": (jf.exponential_pose(m, q, name), pose),
        "jacobian": (jf.exponential_jacobian(m, q, name), jd.jacobian(m, q, name, reference=base)),
        "rate": (jf.exponential_jacobian_rate(m, q, v, name), jd.jacobian_derivative(m, q, v, name, reference=base)),
        "moving": (jf.moving_jacobian(m, q, name), jd.jacobian(m, q, name)),
        "moving_rate": jf.moving_jacobian_rate(m, q, v, name),
        "motion": jf.exponential_motion(m, q, v, a, name),
        "columns": jf.exponential_factors(m, q, name).columns(),
        "gibbs": (jf.acceleration_energy(m, q, v, a), jf.acceleration_matrices(m, q, v)),
        "forces": (jf.generalized_forces(m, q, v, a), jf.resultants(m, q, v, a, name), jf.reactions(m, q, v, a)),
        "lagrange": (jf.second_kind(m, q, v), jf.lagrange_christoffel_symbols(m, q)),
        "hamiltonian": (jf.hamiltonian(m, q, jd.mass_matrix(m, q) @ v), jd.kinetic_energy(m, q, v)),
        "momenta": [f(m, q, jd.mass_matrix(m, q) @ v, a) for f in (jf.momentum_rates, jf.hamilton_equations)],
        "screws": jf.space_screws(m),
        "linear": (jf.linear_forms(m, q, v), jd.frame_velocity(m, q, v, name)),
        "terms": (jd.mass_matrix(m, q), jd.bias_forces(m, q, v), jd.gravity_forces(m, q), jd.rnea(m, q, v, a)),
        "potential": jd.potential_energy(m, q),
    }


@jax.jit
def _planar_links(links, beta, rate):
    alpha = jnp.cumsum(beta)
    absolute = jf.absolute_mass_matrix(links, alpha)
    momentum = absolute @ jnp.cumsum(rate)
    return {
        "inertia": jf.planar_link_inertia(links, alpha),
        "matrices": jf.planar_link_mass_matrices(links, alpha),
        "absolute": absolute,
        "relative": jf.relative_mass_matrix(links, beta),
        "gradient": jf.kinetic_gradient(links, beta, rate),
        "absolute_gradient": jf.absolute_kinetic_gradient(links, alpha, rate),
        "gravity": jf.gravity_torques(links, beta),
        "rates": jf.planar_momentum_rates(links, alpha, momentum, EFFORT),
    }


@pytest.fixture(scope="module")
def hinges():
    q, v, a, _ = state("hinges")
    return jax.tree.map(np.asarray, _two_hinges(model("hinges"), q, v, a))


def _agree(got, wanted):
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        assert relative_error(x, y) < TOLERANCE


def test_exponentials(hinges):
    _, v, a, _ = state("hinges")
    for name in ("pose", "jacobian", "rate", "moving"):
        _agree(*hinges[name])
    (jacobian, _), (rate, _), motion = hinges["jacobian"], hinges["rate"], hinges["motion"]
    _agree(motion.base_velocity, jacobian @ v)
    _agree(motion.base_acceleration, jacobian @ a + rate @ v)
    _agree(motion.moving_acceleration, hinges["moving"][0] @ a + hinges["moving_rate"] @ v)
    _agree(np.roll(hinges["columns"], 3, axis=0), jacobian)
    np.testing.assert_allclose(hinges["screws"][:, :3], [[0, 1, 0], [0, 1, 0]], atol=1e-14)
    forms, twist = hinges["linear"]
    _agree(hinges["pose"][0].rotation.T @ (forms.Lambda[-1] @ v), twist[:3])


def test_acceleration_energy_and_forces(hinges):
    _, v, a, _ = state("hinges")
    (energy, form), (mass, bias, weight, tau) = hinges["gibbs"], hinges["terms"]
    rotors = np.asarray(model("hinges").properties.armature) * a
    _agree(form.M, mass)
    _agree(form.V / 2, bias - weight)
    _agree(energy, (a @ form.M @ a + a @ form.V + v @ form.D @ v) / 2)
    forces, resultants, reactions = hinges["forces"]
    _agree((forces.gravity, forces.driving), (weight, tau))
    _agree(reactions.drive, tau - rotors)
    base, moving = hinges["jacobian"][0], hinges["moving"][0]
    along = np.kron(np.eye(2), hinges["pose"][0].rotation)
    for rows, wanted in ((resultants.gravity, forces.gravity), (resultants.inertia, forces.inertia - rotors)):
        _agree(np.einsum("ki,ik->i", base, rows), wanted)
        _agree(np.einsum("ki,ik->i", moving, rows @ along), wanted)


def test_lagrange_and_hamilton(hinges):
    _, v, _, _ = state("hinges")
    (terms, symbols), (mass, bias, weight, _) = hinges["lagrange"], hinges["terms"]
    _agree(terms.mass_matrix, mass)
    _agree(terms.coriolis @ v + terms.gravity, bias)
    _agree(v @ symbols @ v, bias - weight)
    (hamiltonian, kinetic), potential = hinges["hamiltonian"], hinges["potential"]
    _agree(hamiltonian, kinetic + potential)
    for velocity, rate in hinges["momenta"]:
        _agree(velocity, v)
        _agree(rate, hinges["momenta"][0][1])


def test_planar_chain():
    """The closed forms of two point masses on massless rods, with angles from the vertical."""
    m1, m2, l1, l2, g = 1.3, 0.7, 0.5, 0.8, 9.81
    links = jf.planar_links(jd.robots.double_pendulum())
    links = type(links)(
        jnp.array([m1, m2]),
        jnp.array([m1 * l1**2, m2 * l2**2]),
        jnp.array([[l1, 0.0], [0.0, 0.0]]),
        jnp.array([[l1, 0.0], [l2, 0.0]]),
        jnp.array([g, 0.0]),
        jnp.ones(2),
    )
    beta, rate = np.array([0.4, -0.9]), np.array([1.0, -0.6])
    got = jax.tree.map(np.asarray, _planar_links(links, beta, rate))
    cross, bend = m2 * l1 * l2 * np.cos(beta[1]), m2 * l1 * l2 * np.sin(beta[1])
    absolute, u = np.array([[(m1 + m2) * l1**2, cross], [cross, m2 * l2**2]]), np.array([[1.0, 0], [1, 1]])
    _agree((got["absolute"], got["relative"]), (absolute, u.T @ absolute @ u))
    _agree(got["matrices"].sum(0), absolute)
    _agree(got["inertia"][:, 2, 2], links.inertia)
    alpha, spin = np.cumsum(beta), np.cumsum(rate)
    _agree(got["gradient"], np.array([0, -bend * spin[0] * spin[1]]))  # of T = ... + cross w_1 w_2
    _agree(got["absolute_gradient"], bend * rate[0] * rate[1] * np.array([1, -1]))
    second = -m2 * g * l2 * np.sin(alpha[1])
    _agree(got["gravity"], np.array([second - (m1 + m2) * g * l1 * np.sin(alpha[0]), second]))
    velocity, force = got["rates"]
    _agree(velocity, spin)
    _agree(u.T @ force, got["gradient"] + got["gravity"] + u.T @ EFFORT)


@jax.jit
def _ball_joints(links, angles, rate, effort):
    energy = lambda x: rate @ jf.angular_mass_matrix(links, x) @ rate / 2
    momentum = jf.angular_mass_matrix(links, angles) @ rate
    velocity, force = jf.spatial_momentum_rates(links, angles, momentum, effort)
    gradient = jax.grad(energy)(angles).reshape(-1) - jf.gravity_gradient(links, angles)
    return velocity, force, gradient


def test_spatial_chain():
    """Theorem 1 for two ball joints: `pdot = d(T - U)/dq + u` with `p = B qdot`."""
    links, angles = jf.spatial_links(model("balls")), jnp.array([[0.4, -0.3, 0.9], [-0.7, 0.5, 0.2]])
    rate, effort = jnp.cos(jnp.arange(6.0)), jnp.sin(jnp.arange(6.0))
    velocity, force, gradient = _ball_joints(links, angles, rate, effort)
    _agree((velocity, force), (rate, gradient + effort))
