"""Identities of rigid-body dynamics at 1e-10, on robots with every joint type."""

import functools as ft

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from tests.dynamics._cases import QUICK, TOLERANCE, call, derivative_along, jitted, model, state, without_armature
from tests.oracles import relative_error

exhaustive = lambda x: pytest.param(x, marks=pytest.mark.exhaustive)
robots = pytest.mark.parametrize(
    "robot", [exhaustive("single"), exhaustive("tree"), exhaustive("every"), "pair", exhaustive("geared")]
)
rigid = pytest.mark.parametrize(
    "robot", [exhaustive("single"), exhaustive("tree"), exhaustive("every"), "pair"]
)  # without gears
quick = ft.partial(jax.jit, compiler_options=QUICK)


@quick
def _columns(m, q):
    """`rnea(q, 0, e_k) - rnea(q, 0, 0)`."""
    zero = jnp.zeros(m.nv)
    no_load = jnp.zeros((m.num_links, 6))
    f = lambda a: jd.rnea(m, q, zero, a, no_load)
    return (jax.vmap(f)(jnp.eye(m.nv)) - f(zero)).T


@quick
def _crba_solve(m, q, v, tau, external):
    return jd.forward_dynamics(m, q, v, tau, external, method=jd.crba_solve)


_energy_rate = derivative_along(lambda m, q, v: jd.kinetic_energy(m, q, v) + jd.potential_energy(m, q))
_mass_rate = derivative_along(lambda m, q, v: jd.mass_matrix(m, q))
_momentum_rate = derivative_along(lambda m, q, v: jd.momentum(m, q, v))
_centroidal_rate = derivative_along(lambda m, q, v: jd.centroidal_momentum_matrix(m, q))


@quick
def _potential_gradient(m, q):
    return jax.grad(lambda dq: jd.potential_energy(m, jd.integrate(m, q, dq)))(jnp.zeros(m.nv))


@pytest.mark.slow
@robots
def test_mass_matrix_is_symmetric_positive_definite(robot):
    mass = np.asarray(call("mass_matrix", model(robot), state(robot)[0]))
    assert relative_error(mass, mass.T) < TOLERANCE
    assert np.linalg.eigvalsh(mass)[0] > 0


@pytest.mark.slow
@robots
def test_columns_of_the_mass_matrix(robot):
    m, q = model(robot), state(robot)[0]
    assert relative_error(call("mass_matrix", m, q), _columns(m, q)) < TOLERANCE


@pytest.mark.slow
@robots
def test_equation_of_motion(robot):
    """`tau = M a + C v + g` without external wrenches."""
    m, (q, v, a, _) = model(robot), state(robot)
    inertial = call("mass_matrix", m, q) @ a
    tau = call("rnea", m, q, v, a, jnp.zeros((m.num_links, 6)))
    bias = call("bias_forces", m, q, v)
    velocity = call("coriolis_matrix", m, q, v) @ v
    assert relative_error(inertial + bias, tau) < TOLERANCE
    assert relative_error(velocity + call("gravity_forces", m, q), bias) < TOLERANCE


@pytest.mark.slow
@robots
def test_forward_dynamics_inverts_inverse_dynamics(robot):
    m, (q, v, tau, e) = model(robot), state(robot)
    a = call("forward_dynamics", m, q, v, tau, e)
    assert relative_error(call("rnea", m, q, v, a, e), tau) < TOLERANCE


@pytest.mark.slow
@robots
def test_aba_and_crba_agree(robot):
    args = (model(robot), *state(robot))
    assert relative_error(_crba_solve(*args), call("forward_dynamics", *args)) < TOLERANCE


@pytest.mark.slow("pair")
@robots
def test_power_balance(robot):
    """`d(T + U)/dt = tau . v + sum of external wrench . velocity`."""
    m, (q, v, a, e) = model(robot), state(robot)
    tau = call("rnea", m, q, v, a, e)
    free = call("rnea", m, q, v, a, jnp.zeros_like(e))
    external = (e * _velocities(m, q, v)).sum()
    assert relative_error((free - tau) @ v, external) < TOLERANCE
    assert relative_error(_energy_rate(m, q, v, v, a), tau @ v + external) < TOLERANCE


@quick
def _velocities(m, q, v):
    return jnp.stack([jd.frame_velocity(m, q, v, name) for name in m.link_names])


@pytest.mark.slow
@robots
def test_mass_rate_minus_twice_the_coriolis_matrix_is_skew(robot):
    m, (q, v, *_) = model(robot), state(robot)
    rate = _mass_rate(m, q, v, v, v)
    c = call("coriolis_matrix", m, q, v)
    skew = rate - 2 * c
    assert np.abs(skew + skew.T).max() < TOLERANCE * max(1.0, np.abs(np.asarray(c)).max())


@robots
@pytest.mark.exhaustive
def test_coriolis_matrix_from_christoffel_symbols(robot):
    """`C_ij = sum of G_ijk v_k`."""
    m, (q, v, *_) = model(robot), state(robot)
    off = call("christoffel_symbols", m, q) @ v - call("coriolis_matrix", m, q, v)
    # against the scale of the mass matrix: a single hinge has neither
    assert np.abs(np.asarray(off)).max() < TOLERANCE * np.abs(np.asarray(call("mass_matrix", m, q))).max()


@pytest.mark.parametrize("robot", ["based", "geared"])
@pytest.mark.exhaustive
def test_christoffel_symbols_of_the_first_kind(robot):
    """`(dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) / 2` where the velocities are rates of coordinates."""
    m, q = model(robot), state(robot)[0]
    d = quick(jax.jacfwd(jd.mass_matrix, argnums=1))(m, q)
    want = (d + jnp.swapaxes(d, 1, 2) - jnp.transpose(d, (2, 0, 1))) / 2
    assert relative_error(call("christoffel_symbols", m, q), want) < TOLERANCE


@robots
@pytest.mark.exhaustive
def test_gravity_is_the_gradient_of_potential_energy(robot):
    m, q = model(robot), state(robot)[0]
    assert relative_error(call("gravity_forces", m, q), _potential_gradient(m, q)) < TOLERANCE


@robots
def test_kinetic_energy_is_the_quadratic_form_of_the_mass_matrix(robot):
    m, (q, v, *_) = model(robot), state(robot)
    want = 0.5 * v @ call("mass_matrix", m, q) @ v
    assert relative_error(call("kinetic_energy", m, q, v), want) < TOLERANCE


@robots
@pytest.mark.slow("pair")
def test_momentum_rate_is_the_external_wrench(robot):
    """Weight, external wrenches and the reactions of joints at the world, about the world's origin."""
    m = without_armature(model(robot))
    q, v, a, e = state(robot)
    poses = call("forward_kinematics", m, q)
    r, p = np.asarray(poses.rotation), np.asarray(poses.translation)
    total = np.zeros(6)

    def add(link, moment, force):
        total[:3] += r[link] @ moment + np.cross(p[link], r[link] @ force)
        total[3:] += r[link] @ force

    wrench = np.asarray(call("joint_reactions", m, q, v, a, e).wrench)
    for i, parent in enumerate(m.topology.parents):
        weight = r[i].T @ np.asarray(m.gravity) * float(m.links.mass[i])
        add(i, np.cross(m.links.com[i], weight), weight)
        add(i, e[i, :3], e[i, 3:])
        if parent < 0:
            add(i, wrench[i, :3], wrench[i, 3:])
    assert relative_error(_momentum_rate(m, q, v, v, a), total) < TOLERANCE


@pytest.mark.slow
def test_momentum_of_a_free_robot_is_conserved():
    m = without_armature(model("pair"))
    m = eqx.tree_at(lambda m: m.gravity, m, jnp.zeros(3))
    q, v, tau, e = state("pair")
    tau = tau.at[m.joint("l0_joint").v].set(0)
    a = call("forward_dynamics", m, q, v, tau, jnp.zeros_like(e))
    scale = np.abs(np.asarray(call("momentum", m, q, v))).max()
    assert np.abs(np.asarray(_momentum_rate(m, q, v, v, a))).max() < TOLERANCE * scale


@robots
@pytest.mark.slow("pair")
def test_centroidal_momentum(robot):
    """`A v` is the momentum about the centre of mass; the rate of A is the derivative along v."""
    m, (q, v, *_) = model(robot), state(robot)
    about_origin = np.asarray(call("momentum", m, q, v))
    centre = np.asarray(call("center_of_mass", m, q))
    want = np.r_[about_origin[:3] - np.cross(centre, about_origin[3:]), about_origin[3:]]
    assert relative_error(call("centroidal_momentum_matrix", m, q) @ v, want) < TOLERANCE
    rate = call("centroidal_momentum_matrix_derivative", m, q, v)
    assert relative_error(rate, _centroidal_rate(m, q, v, v, v)) < TOLERANCE


@robots
def test_inertial_regressor(robot):
    """`Y(q, v, a) pi + armature a = rnea(q, v, a)`, also for robots with mimicking joints."""
    m, (q, v, a, _) = without_armature(model(robot)), state(robot)
    parameters = call("inertial_parameters", m)
    tau = call("rnea", m, q, v, a, jnp.zeros((m.num_links, 6)))
    assert relative_error(call("inertial_regressor", m, q, v, a) @ parameters, tau) < TOLERANCE


def test_inertial_parameters():
    """Mass, first moment, and inertia about the link's origin by Steiner's rule."""
    m = model("pair")
    got = np.asarray(call("inertial_parameters", m)).reshape(m.num_links, 10)
    for i in range(m.num_links):
        mass, c = float(m.links.mass[i]), np.asarray(m.links.com[i])
        about = np.asarray(m.links.inertia[i]) + mass * (c @ c * np.eye(3) - np.outer(c, c))
        want = np.r_[mass, mass * c, about[np.triu_indices(3)]]
        assert relative_error(got[i], want) < TOLERANCE


@rigid
def test_joint_reactions(robot):
    """Motor and bearing wrenches add up, bearings do no work, and efforts equal inverse dynamics."""
    m, (q, v, a, e) = model(robot), state(robot)
    reactions = call("joint_reactions", m, q, v, a, e)
    assert relative_error(reactions.motor + reactions.bearing, reactions.wrench) < TOLERANCE
    tau = call("rnea", m, q, v, a, e)
    through = tau - m.properties.armature * a
    for i, name in enumerate(m.joint_names):
        view = m.joint(name)
        if not view.joint.nv:
            continue
        s = np.asarray(view.joint.subspace(q[view.q]))
        wrench, bearing = np.asarray(reactions.wrench[i]), np.asarray(reactions.bearing[i])
        scale = np.abs(wrench).max()
        assert np.abs(s.T @ wrench - np.asarray(through[view.v])).max() < TOLERANCE * scale
        assert np.abs(s.T @ bearing).max() < TOLERANCE * scale


@robots
def test_joint_power_is_effort_times_velocity(robot):
    """With mimicking joints, each effort does work at the velocity of its joint; armatures count once."""
    m, (q, v, a, e) = model(robot), state(robot)
    reactions = call("joint_reactions", m, q, v, a, e)
    tau = call("rnea", m, q, v, a, e)
    if not m.topology.mimics:
        assert relative_error(reactions.effort, tau) < TOLERANCE
    assert relative_error(reactions.power.sum(), tau @ v) < TOLERANCE


@pytest.mark.parametrize("robot", ["pair", exhaustive("tree"), exhaustive("every")])
@pytest.mark.exhaustive
def test_task_space_dynamics(robot):
    """`Lambda^-1 = J M^-1 J^T`; the acceleration under a task force follows from Lambda and eta."""
    m, (q, v, *_), name = model(robot), state(robot), "f0"
    task = quick(jd.task_space_dynamics, static_argnums=3)(m, q, v, name)
    j = np.asarray(_frame_jacobian(m, q, name))
    mass = np.asarray(call("mass_matrix", m, q))
    assert relative_error(task.inertia @ j @ np.linalg.solve(mass, j.T), np.eye(6)) < TOLERANCE
    force = np.arange(1.0, 7.0)
    a = np.linalg.solve(mass, j.T @ force - np.asarray(call("bias_forces", m, q, v)))
    acceleration = _frame_acceleration(m, q, v, jnp.asarray(a), name)
    got = task.inertia @ np.asarray(acceleration) + task.bias
    assert relative_error(got, force) < TOLERANCE


_frame_jacobian = quick(lambda m, q, name: jd.jacobian(m, q, name), static_argnums=2)
_frame_acceleration = quick(lambda m, q, v, a, name: jd.frame_acceleration(m, q, v, a, name), static_argnums=4)


@robots
def test_passive_forces_dissipate(robot):
    """Without springs their power is negative at every velocity, and they vanish at rest."""
    m, (q, v, *_) = model(robot), state(robot)
    m = eqx.tree_at(lambda m: m.properties.stiffness, m, jnp.zeros(m.nv))
    assert float(call("passive_forces", m, q, v) @ v) < 0
    assert np.abs(np.asarray(call("passive_forces", m, q, 0 * v))).max() == 0
    # nearly at full Coulomb friction far above its velocity of transition
    m = eqx.tree_at(lambda m: m.properties.damping, m, jnp.zeros(m.nv))
    fast = np.asarray(call("passive_forces", m, q, 1e3 * jnp.ones(m.nv)))
    assert relative_error(-fast, m.properties.friction) < 1e-3  # a smooth step reaches it in the limit


@robots
def test_springs_act_towards_their_rest_position(robot):
    m = model(robot)
    at_rest = call("passive_forces", m, m.properties.rest, jnp.zeros(m.nv))
    assert np.abs(np.asarray(at_rest)).max() < TOLERANCE
    push = jnp.asarray(np.random.default_rng(0).normal(size=m.nv)) * 0.1
    away = jitted("integrate")(m, m.properties.rest, push)
    pull = call("passive_forces", m, away, jnp.zeros(m.nv))
    assert relative_error(pull, -m.properties.stiffness * push) < TOLERANCE


def test_forward_dynamics_with_a_user_defined_method():
    """A user-defined method takes the place of `aba`."""
    m, (q, v, tau, e) = model("single"), state("single")

    @jax.jit
    def own(m, q, v, tau, external=None):
        return jnp.linalg.solve(jd.mass_matrix(m, q), tau - jd.bias_forces(m, q, v, external))

    a = jd.forward_dynamics(m, q, v, tau, e, method=own)
    assert relative_error(call("rnea", m, q, v, a, e), tau) < TOLERANCE
