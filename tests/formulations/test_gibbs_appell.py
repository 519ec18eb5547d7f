"""The acceleration energy against a cloud of particles, its matrices, the 2TR robot, and the generalised forces."""

import functools as ft

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.formulations import (
    acceleration_energy,
    acceleration_matrices,
    exponential_jacobian,
    exponential_motion,
    generalized_forces,
    moving_jacobian,
    resultants,
)
from jaxdyn.formulations._formulation import link_poses_and_rates
from jaxdyn.joints import Spherical
from jaxdyn.spatial import Inertia, point_mass
from tests.formulations._cases import TOLERANCE, model, state
from tests.oracles import relative_error

jit = ft.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})

MASSES, ARM, INERTIA, G = (4.0, 3.0, 2.0), 0.4, 0.05, 9.81


@jit
def _evaluate(m, q, v, a, external):
    return acceleration_energy(m, q, v, a), acceleration_matrices(m, q, v), generalized_forces(m, q, v, a, external)


@ft.cache
def _two_tr():
    """The 2TR robot, a state and all of equations 36 to 40 in it."""
    m = jd.robots.two_tr(MASSES, ARM, INERTIA)
    q, v, a = jnp.asarray(np.random.default_rng(1).normal(size=(3, 3)))
    none = jnp.zeros((3, 6))
    return (q, v, a), jax.tree.map(np.asarray, _evaluate(m, q, v, a, none)), _two_tr_motion(m, q, v, a)


@jit
def _two_tr_motion(m, q, v, a):
    return exponential_jacobian(m, q, "tool"), moving_jacobian(m, q, "tool"), exponential_motion(m, q, v, a, "tool")


@pytest.mark.slow
def test_jacobians_of_equation_36():
    """Rows of the transposes, linear half first; the first row of (n)J is `(cos, -sin, 0)`, printed with `-cos`."""
    (q, _, _), _, (base, moving, _) = _two_tr()
    linear_first = lambda x: np.roll(np.asarray(x).T, 3, axis=1)
    s, c = np.sin(q[2]), np.cos(q[2])
    still, up, turn = [0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1]
    np.testing.assert_allclose(linear_first(base), [[1, 0, 0, *still], up, turn], atol=1e-14)
    np.testing.assert_allclose(linear_first(moving), [[c, -s, 0, *still], up, turn], atol=1e-14)


@pytest.mark.slow
def test_motion_of_equation_37():
    """In frame {0}; in frame {3} the translation along x has two components, unlike the printed equation."""
    (q, v, a), _, (_, _, motion) = _two_tr()
    s, c = np.sin(q[2]), np.cos(q[2])
    for got, x in ((motion.base_velocity, v), (motion.base_acceleration, a)):
        np.testing.assert_allclose(got, [0, 0, x[2], x[0], 0, x[1]], atol=1e-14)
    for got, x in ((motion.moving_velocity, v), (motion.moving_acceleration, a)):
        np.testing.assert_allclose(got, [0, 0, x[2], c * x[0], -s * x[0], x[1]], atol=1e-14)


@pytest.mark.slow
def test_energy_of_equation_38():
    """Terms that are quadratic, linear and constant in the accelerations; planar moments `Ixx + Iyy = Iz`."""
    (q, v, a), (energy, symmetric_matrices, _), _ = _two_tr()
    m1, m2, m3 = MASSES
    s, c = float(np.sin(q[2])), float(np.cos(q[2]))
    v3, (a1, a2, a3) = float(v[2]), map(float, a)
    terms = {
        "M": 0.5 * (m1 + m2 + m3) * a1**2
        + 0.5 * (m2 + m3) * a2**2
        + 0.5 * m3 * ARM**2 * a3**2
        - m3 * ARM * s * a1 * a3
        + 0.5 * INERTIA * a3**2,
        "V": -m3 * ARM * v3**2 * c * a1,
        "D": 0.5 * m3 * ARM**2 * v3**4 + 0.5 * INERTIA * v3**4,
    }
    np.testing.assert_allclose(energy, sum(terms.values()), rtol=1e-13)
    mass = [[m1 + m2 + m3, 0, -m3 * ARM * s], [0, m2 + m3, 0], [-m3 * ARM * s, 0, m3 * ARM**2 + INERTIA]]
    np.testing.assert_allclose(symmetric_matrices.M, mass, atol=1e-13)
    np.testing.assert_allclose(symmetric_matrices.V, [-2 * m3 * ARM * v3**2 * c, 0, 0], atol=1e-13)
    np.testing.assert_allclose(symmetric_matrices.D, np.diag([0, 0, (m3 * ARM**2 + INERTIA) * v3**2]), atol=1e-13)
    x, y = np.asarray(a), np.asarray(v)
    parts = (x @ symmetric_matrices.M @ x, x @ symmetric_matrices.V, y @ symmetric_matrices.D @ y)
    np.testing.assert_allclose(np.array(parts) / 2, list(terms.values()), rtol=1e-12)


@pytest.mark.slow
def test_forces_of_equations_39_and_40():
    (q, _, _), (_, _, forces), _ = _two_tr()
    (_, v, a), m1, m2, m3 = _two_tr()[0], *MASSES
    s, c = np.sin(q[2]), np.cos(q[2])
    weight = np.array([0, (m2 + m3) * G, 0])
    wanted = np.array(
        [
            (m1 + m2 + m3) * a[0] - m3 * ARM * s * a[2] - m3 * ARM * v[2] ** 2 * c,
            (m2 + m3) * (a[1] + G),
            m3 * ARM**2 * a[2] - m3 * ARM * s * a[0] + INERTIA * a[2],
        ]
    )
    np.testing.assert_allclose(forces.gravity, weight, atol=1e-13)
    np.testing.assert_allclose(forces.inertia, wanted - weight, atol=1e-13)
    np.testing.assert_allclose(forces.driving, wanted, atol=1e-13)


def _equations_of_the_source(symbols, q, v, a):
    """Corrected equations 38 and 40 as functions of `M_1, M_2, M_3, a_2, I_z`."""
    m1, m2, m3, arm, inertia = symbols
    s, c = jnp.sin(q[2]), jnp.cos(q[2])
    energy = (
        0.5 * ((m1 + m2 + m3) * a[0] ** 2 + (m2 + m3) * a[1] ** 2 + (m3 * arm**2 + inertia) * a[2] ** 2)
        - m3 * arm * (s * a[2] + c * v[2] ** 2) * a[0]
        + 0.5 * (m3 * arm**2 + inertia) * v[2] ** 4
    )
    first = (m1 + m2 + m3) * a[0] - m3 * arm * (s * a[2] + v[2] ** 2 * c)
    third = (m3 * arm**2 + inertia) * a[2] - m3 * arm * s * a[0]
    return jnp.stack([energy, first, (m2 + m3) * (a[1] + G), third])


def _equations_of_the_package(parameters, symbols, q, v, a):
    """The same four numbers by the acceleration energy and the generalised forces of the robot."""
    m1, m2, m3, arm, inertia = symbols
    third = Inertia(m3, jnp.zeros(3), inertia * jnp.eye(3)).moved(jnp.stack([arm, 0 * arm, 0 * arm]))
    links = parameters.links
    links = eqx.tree_at(
        lambda x: (x.mass, x.com, x.inertia),
        links,
        (jnp.stack([m1, m2, m3]), links.com.at[2].set(third.com), links.inertia.at[2].set(third.inertia)),
    )
    m = eqx.tree_at(lambda m: m.links, parameters, links)
    energy = acceleration_energy(m, q, v, a)
    return jnp.concatenate([energy[None], generalized_forces(m, q, v, a).driving])


@pytest.mark.slow
def test_equations_38_and_40_symbol_by_symbol():
    """Values, first and second derivatives with respect to the symbols, in which the equations are polynomials."""
    symbols = jnp.array([*MASSES, ARM, INERTIA])
    state = jnp.asarray(np.random.default_rng(1).normal(size=(3, 3)))

    def all_orders(equations):
        f = lambda s: equations(s, *state)
        return jit(lambda s: (f(s), jax.jacfwd(f)(s), jax.jacfwd(jax.jacfwd(f))(s)))(symbols)

    computed = ft.partial(_equations_of_the_package, jd.robots.two_tr(MASSES, ARM, INERTIA))
    for got, wanted in zip(all_orders(computed), all_orders(_equations_of_the_source), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-12)
        assert np.abs(wanted).max() > 0.1


@jit
def _about_tool(m, q, v, a, external):
    found = resultants(m, q, v, a, "tool", external)
    forces = generalized_forces(m, q, v, a, external)
    return found, forces, exponential_jacobian(m, q, "tool"), moving_jacobian(m, q, "tool"), jd.frame_pose(m, q, "tool")


@pytest.mark.slow
def test_resultants_about_the_last_frame():
    """Equations 25 to 28 and 32: a column of either Jacobian times the resultant on the subtree of the joint."""
    m = jd.robots.two_tr(MASSES, ARM, INERTIA)
    q, v, a = jnp.asarray(np.random.default_rng(1).normal(size=(3, 3)))
    external = jnp.asarray(np.random.default_rng(2).normal(size=(3, 6)))
    found, forces, base, moving, pose = jax.tree.map(np.asarray, _about_tool(m, q, v, a, external))
    along = np.kron(np.eye(2), pose.rotation)
    for name in ("gravity", "manipulating", "inertia"):
        rows, wanted = getattr(found, name), getattr(forces, name)
        np.testing.assert_allclose(np.einsum("ki,ik->i", base, rows), wanted, atol=1e-12)
        np.testing.assert_allclose(np.einsum("ki,ik->i", moving, rows @ along), wanted, atol=1e-12)
    # (26) by hand: the centre of the third link is `arm` off the frame's origin
    centre = pose.rotation @ np.array([ARM, 0, 0])
    np.testing.assert_allclose(
        found.gravity[2], MASSES[2] * G * np.array([*np.cross(centre, [0, 0, 1]), 0, 0, 1]), atol=1e-12
    )


@pytest.mark.slow
def test_energy_equals_that_of_particles():
    """Half the squared accelerations of a cloud of particles on a ball joint, differentiated twice along the motion."""
    rng = np.random.default_rng(3)
    points, masses = rng.normal(size=(5, 3)), rng.uniform(0.5, 2, 5)
    body = sum(
        (point_mass(w).moved(x) for w, x in zip(masses, points, strict=True)), Inertia(0.0, [0.0] * 3, np.zeros((3, 3)))
    )
    builder = jd.ModelBuilder()
    builder.add_link("cart", "world", jd.joints.Prismatic((1, 2, 0)))
    builder.add_link("ball", "cart", Spherical(), body)
    m = builder.build()
    q = jnp.asarray([0.3, *(rng.normal(size=4))])
    v, a = jnp.asarray(rng.normal(size=(2, 4)))

    @jit
    def both(m, q, v, a):
        def velocity(s):
            _, spin, _, speed = link_poses_and_rates(m, q, s * v, v + s * a)
            return speed[1] + jnp.asarray(points) @ spin[1].T

        return acceleration_energy(m, q, v, a), jax.jvp(velocity, (0.0,), (1.0,))[1]

    energy, accelerations = both(m, q, v, a)
    np.testing.assert_allclose(energy, 0.5 * masses @ np.sum(np.asarray(accelerations) ** 2, axis=1), rtol=1e-12)


@jit
def _reference(m, q, v, a, external):
    still = jnp.zeros_like(v)
    return (
        jd.mass_matrix(m, q),
        jd.bias_forces(m, q, v),
        jd.rnea(m, q, still, still),
        jd.rnea(m, q, v, a, external),
        jd.joint_reactions(m, q, v, a, external).wrench,
    )


@pytest.mark.parametrize("robot", ["ball_slide", "geared", pytest.param("floating", marks=pytest.mark.exhaustive)])
@pytest.mark.exhaustive
def test_matrices_and_forces_of_any_robot(robot):
    """Equations 25 to 35: the quadratic form, the sum (31), and the wrenches in the joints."""
    m, (q, v, a, external) = model(robot), state(robot)
    energy, form, f = jax.tree.map(np.asarray, _evaluate(m, q, v, a, external))
    mass, bias, weight, tau, wrench = map(np.asarray, _reference(m, q, v, a, external))
    assert relative_error(form.M, mass) < TOLERANCE
    assert relative_error(form.V / 2, bias - weight) < TOLERANCE
    v, a = np.asarray(v), np.asarray(a)
    np.testing.assert_allclose((a @ form.M @ a + a @ form.V + v @ form.D @ v) / 2, energy, rtol=1e-12)
    np.testing.assert_allclose(form.D, form.D.T, atol=1e-12)
    assert relative_error(f.gravity, weight) < TOLERANCE
    assert relative_error(f.inertia, mass @ a + form.V / 2) < TOLERANCE
    assert relative_error(f.driving, tau) < TOLERANCE
    assert relative_error(f.inertia + f.gravity + f.manipulating, tau) < TOLERANCE
    both = np.concatenate([f.joint_moment, f.joint_force], axis=1)
    assert relative_error(both, wrench[list(m.topology.bodies)]) < TOLERANCE
    assert np.abs(f.manipulating).max() > 0.1
