"""Elastic supports, objects and couplings against closed forms and conservation laws."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.actuators import CubicSpring, ElasticCoupling, add_elastic_object, on_elastic_support
from jaxdyn.control import ComputedTorque, PathReference
from jaxdyn.dynamics import AbstractPart, Action
from jaxdyn.joints import Prismatic, Revolute, Spherical
from jaxdyn.simulation import Feedback
from jaxdyn.spatial import Pose, box, quaternion_to_matrix, rpy_to_matrix

K = jnp.array([9e3, 8e3, 7e3, 5e4, 5e4, 5e4])


def block():
    """A robot of 5 kg whose joints are locked."""
    return jd.ModelBuilder().add_link("block", "world", None, box([0.2, 0.2, 0.2], mass=5.0)).build()


BASE = box([0.4, 0.4, 0.2], mass=20.0)


@eqx.filter_jit
def modes_on(robot, support, q):
    return jd.modes(robot, q, energies=(support.potential_energy,), gravity=False)


@eqx.filter_jit
def rate(system, q, v):
    return system.rate(0.0, system.initial(q, v)).v


def random_stiffness():
    a = jax.random.normal(jax.random.key(0), (6, 6))
    scale = jnp.sqrt(K)
    return scale[:, None] * (jnp.eye(6) + 0.05 * (a + a.T)) * scale


@pytest.mark.slow
def test_frequency_of_the_reference():
    robot, support = on_elastic_support(block(), K, base=BASE)
    frequencies = modes_on(robot, support, jd.neutral(robot)).frequencies
    assert (
        np.abs(frequencies - 44.72135955).min() < 1e-8
    )  # sqrt(k / (M + m)), three times: all springs act at the centre
    inertia = 20 * (0.4**2 + np.array([0.2**2, 0.2**2, 0.4**2])) / 12 + 5 * 2 * 0.2**2 / 12
    expected = np.sort([*np.sqrt(np.array(K[:3]) / inertia), *[np.sqrt(5e4 / 25)] * 3])
    np.testing.assert_allclose(frequencies, expected, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("full", [False, True], ids=["diagonal", "full"])
def test_rest_pose_is_unloaded_or_the_equilibrium(full):
    rest = Pose(rpy_to_matrix(jnp.array([0.3, -0.2, 0.5])), jnp.array([0.1, 0.2, 0.3]))
    k = random_stiffness() if full else K
    robot, support = on_elastic_support(block(), k, base=BASE, rest=rest, equilibrium=jnp.zeros(0))
    still = jnp.zeros(6)
    acceleration = rate(jd.System(robot, (support,)), support.rest, still)
    np.testing.assert_allclose(acceleration, 0, atol=1e-10)  # rounding of the pose, 1e-16, times K / I
    unloaded = eqx.tree_at(lambda s: s.equilibrium, support, None, is_leaf=lambda x: x is None)
    acceleration = rate(jd.System(robot, (unloaded,)), support.rest, still)
    np.testing.assert_allclose(rest.rotation @ acceleration[3:], [0, 0, -9.81], atol=1e-12)
    # near the rest pose the wrench is -K log(pose)
    d = 1e-6 * jnp.arange(1.0, 7)
    moved = jd.integrate(robot, support.rest, d)
    wrench = unloaded.act(robot, 0.0, moved, still, None).effort
    np.testing.assert_allclose(wrench, -(k @ d if full else k * d), rtol=1e-5, atol=1e-6)


class Impulse(AbstractPart):
    """Integrates the force of a support and of gravity on the robot, N s in world axes."""

    support: eqx.Module

    def initial(self, model, q, v):
        return jnp.zeros(3)

    def act(self, model, t, q, v, state):
        wrench = self.support.act(model, t, q, v, None).effort[:6]
        weight = jd.total_mass(model) * model.gravity
        return Action(rate=quaternion_to_matrix(q[:4]) @ wrench[3:] + weight)


@pytest.mark.slow
def test_momentum_changes_by_the_impulse_of_the_springs():
    """An arm moves by computed torque of the arm on a fixed base, while its base moves freely on the springs."""
    arm = jd.robots.double_pendulum()
    robot, support = on_elastic_support(arm, random_stiffness(), base=BASE, damping=40.0)
    law = ComputedTorque(arm, PathReference(lambda t: jnp.sin(9 * t + jnp.arange(2.0))), 100.0, 20.0)
    torque = lambda t, q, v: jnp.zeros(8).at[6:].set(law(t, q[7:], v[6:]))
    system = jd.System(robot, (support, Feedback(torque), Impulse(support)))
    q0 = jnp.concatenate([support.rest, jnp.array([0.2, 0.7])])
    path = jd.simulate(system, q0, jnp.zeros(8), jnp.linspace(0.0, 0.4, 9), rtol=1e-9, atol=1e-10)
    assert path.status == jd.SimulationStatus.FINISHED
    velocity = jax.vmap(lambda q, v: jd.center_of_mass_velocity(robot, q, v))(path.q, path.v)
    momentum = jd.total_mass(robot) * velocity
    np.testing.assert_allclose(momentum, path.parts[2], atol=1e-6)
    assert jnp.abs(momentum).max() > 1


@pytest.mark.slow
def test_energy_is_conserved_at_large_turns():
    """A full stiffness matrix and turns of more than a radian; the wrench is the gradient of the energy."""
    robot, support = on_elastic_support(block(), random_stiffness() / 100, base=BASE)
    v = jnp.array([9.0, -7.0, 11.0, 1.0, -2.0, 1.5])
    path = jd.simulate(jd.System(robot, (support,)), support.rest, v, jnp.linspace(0.0, 1.0, 11), rtol=1e-9, atol=1e-9)
    kinetic, potential, stored = jax.vmap(
        lambda q, v: (jd.kinetic_energy(robot, q, v), jd.potential_energy(robot, q), support.potential_energy(robot, q))
    )(path.q, path.v)
    total = kinetic + potential + stored
    assert jnp.abs(total - total[0]).max() < 1e-7 * total[0]
    assert max(jnp.linalg.norm(jd.difference(robot, support.rest, q)[:3]) for q in path.q) > 1


@pytest.mark.exhaustive
def test_stiff_support_tends_to_the_fixed_base():
    """Frequencies of an arm: the error is of first order in 1 / k, and Richardson's extrapolation of second."""
    arm = jd.robots.double_pendulum()
    robot, support = on_elastic_support(arm, K, base=BASE)
    q = jnp.concatenate([support.rest, jnp.array([0.0, 0.0])])

    @eqx.filter_jit
    def lowest(k):
        stiff = eqx.tree_at(lambda s: s.stiffness, support, k * K)
        return jd.modes(robot, q, energies=(stiff.potential_energy,)).frequencies[:2]

    fixed = jd.modes(arm, jnp.zeros(2)).frequencies
    k = np.array([10.0, 20.0, 40.0])
    found = np.stack([lowest(x) for x in k])
    error = np.abs(found - fixed)
    np.testing.assert_allclose(error[:-1] / error[1:], 2, rtol=0.05)
    better = np.abs(2 * found[1:] - found[:-1] - fixed)
    np.testing.assert_allclose(better[0] / better[1], 4, rtol=0.2)
    assert (better[1] < 1e-2 * error[2]).all()


@pytest.mark.exhaustive
def test_derivatives_with_respect_to_every_leaf():
    """Through a short simulation of an arm on a support, with a coupling between its joints."""
    arm = jd.robots.double_pendulum()
    upper, lower = arm.joint_names
    robot, support = on_elastic_support(
        arm,
        random_stiffness(),
        base=BASE,
        damping=40.0,
        rest=Pose(rpy_to_matrix([0.3, -0.2, 0.5]), [0.1, 0.2, 0.3]),
        equilibrium=jnp.array([0.4, -0.2]),
    )
    belt = ElasticCoupling(lower, upper, [0.1, -0.5, 0.2], CubicSpring(200.0, 50.0), damping=0.7)
    flat, rebuild = jax.flatten_util.ravel_pytree((support, belt))
    q = jnp.concatenate([support.rest, jnp.array([0.6, 0.3])])
    v = jnp.linspace(1.0, -2.0, 8)
    ts = jnp.array([0.0, 0.04])

    def final(x, adjoint):
        path = jd.simulate(jd.System(robot, rebuild(x)), q, v, ts, dt=0.01, max_steps=8, adjoint=adjoint)
        return jnp.sin(jnp.arange(1.0, 9)) @ path.v[-1]

    forward = jax.jit(jax.jacfwd(lambda x: final(x, diffrax.ForwardMode())))(flat)
    reverse = jax.jit(jax.grad(lambda x: final(x, diffrax.RecursiveCheckpointAdjoint())))(flat)
    h = 1e-6 * jnp.maximum(jnp.abs(flat), 1)
    value = jax.jit(jax.vmap(lambda x: final(x, diffrax.ForwardMode())))
    central = (value(flat + jnp.diag(h)) - value(flat - jnp.diag(h))) / (2 * h)
    np.testing.assert_allclose(reverse, forward, rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(forward, central, rtol=1e-5, atol=1e-7)


def test_wrong_supports_are_refused():
    with pytest.raises(jd.ShapeError, match=r"stiffness of an elastic support has shape \(3,\)"):
        on_elastic_support(block(), jnp.ones(3), base=BASE)
    with pytest.raises(jd.ModelError, match="not symmetric"):
        on_elastic_support(block(), jnp.eye(6).at[0, 1].set(0.5), base=BASE)
    with pytest.raises(jd.ShapeError, match="equilibrium has shape"):
        on_elastic_support(block(), K, base=BASE, equilibrium=jnp.zeros(2))


@pytest.mark.slow
def test_object_on_springs():
    """A plate on a fixture that yields along z and about x; its link is at the end of the joints."""
    plate = box([0.4, 0.3, 0.1], mass=4.0)
    joints = [Prismatic([0, 0, 1]), Revolute([1, 0, 0])]
    model = add_elastic_object(
        jd.robots.pendulum(), "plate", plate, joints, stiffness=[2e4, 300.0], damping=[30.0, 0.1]
    )
    assert model.joint_names[1:] == ("plate_joint1", "plate_joint2") and model.link_names[-1] == "plate"
    result = jax.jit(lambda m: jd.modes(m, jnp.zeros(3)))(model)
    expected = [np.sqrt(9.81), np.sqrt(2e4 / 4), np.sqrt(300 / (4 * (0.3**2 + 0.1**2) / 12))]
    np.testing.assert_allclose(result.frequencies, np.sort(expected), rtol=1e-10)
    with pytest.raises(jd.ModelError, match="a Spherical; expected one or more joints with one coordinate"):
        add_elastic_object(model, "ball", plate, [Spherical()], stiffness=1.0)
    with pytest.raises(jd.ShapeError, match="one for each joint"):
        add_elastic_object(model, "slab", plate, joints, stiffness=[1.0, 2.0, 3.0])


def test_compliant_coupling():
    """Efforts are the gradient of the energy, damping acts on the rate of the deflection, and frequencies follow."""
    arm = jd.robots.double_pendulum()
    upper, lower = arm.joint_names
    belt = ElasticCoupling(lower, upper, [0.1, -0.5, 0.2], CubicSpring(200.0, 50.0), damping=0.7)
    q, v = jnp.array([0.4, -0.3]), jnp.array([1.5, -0.2])
    x = -0.3 - (0.1 - 0.5 * 0.4 + 0.2 * 0.16)
    slope = -0.5 + 0.4 * 0.4
    np.testing.assert_allclose(belt.deflection(arm, q), x, rtol=1e-14)
    torque = 200 * x + 50 * x**3 + 0.7 * (-0.2 - slope * 1.5)
    effort = belt.act(arm, 0.0, q, v, None).effort
    np.testing.assert_allclose(effort, [slope * torque, -torque], rtol=1e-12)
    still = belt.act(arm, 0.0, q, 0 * v, None).effort
    np.testing.assert_allclose(still, -jax.grad(lambda q: belt.potential_energy(arm, q))(q), rtol=1e-12)
    ball = jd.ModelBuilder().add_link("a", "world", Spherical(), BASE).build()
    with pytest.raises(jd.ModelError, match="a coupling connects joints with one"):
        ElasticCoupling("a_joint", "a_joint", [0.0, 1.0], 1.0).deflection(ball, jd.neutral(ball))
