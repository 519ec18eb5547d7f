"""Task-space laws on a redundant arm: the equations of motion of the frame in closed loop."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn import control as ct
from jaxdyn.kinematics import WORLD_ALIGNED, frame_classical_acceleration, frame_velocity

ARM = jd.robots.panda()
TIP = ARM.link_names[-1]
Q = np.array([0.1, -0.6, 0.3, -2.0, 0.2, 1.4, 0.5])
V = np.array([0.3, -0.2, 0.5, 0.4, -0.3, 0.2, 0.1])


class Circle(eqx.Module):
    """A pose whose orientation changes while its origin moves on a circle."""

    radius: jax.Array

    def __call__(self, t):
        turn = jd.spatial.rotation_vector_to_matrix(jnp.stack([3.0 + 0 * t, 0 * t, 0.3 * t]))
        return jd.spatial.Pose(turn, jnp.stack([0.4 + 0 * t, self.radius * jnp.cos(t), 0.5 + self.radius * jnp.sin(t)]))


CIRCLE = Circle(jnp.asarray(0.1))


@eqx.filter_jit
def frame_motion(law, t, q, v, wrench):
    """Pose, velocity and acceleration of the tip under a law and a wrench on it, and its Jacobian."""
    j = jd.jacobian(ARM, q, TIP, reference=WORLD_ALIGNED)
    a = jd.forward_dynamics(ARM, q, v, law(t, q, v) + jd.passive_forces(ARM, q, v) + j.T @ wrench)
    mobility = j @ jnp.linalg.solve(jd.mass_matrix(ARM, q), j.T)
    at = lambda f, *x: f(ARM, q, v, *x, TIP, reference=WORLD_ALIGNED)
    return jd.frame_pose(ARM, q, TIP), at(frame_velocity), at(frame_classical_acceleration, a), mobility


def target_rates(t):
    """Pose, velocity and acceleration of the circle, by central differences."""
    h = 1e-4
    poses = [CIRCLE(t + s) for s in (-h, 0.0, h)]
    x = np.array([p.translation for p in poses])
    w = np.array([0, 0, 0.3])
    # the angular velocity of the rotation vector (3, 0, 0.3 t) is not constant: differences of rotations
    half = [CIRCLE(t + s).rotation for s in (-1.5 * h, -0.5 * h, 0.5 * h, 1.5 * h)]
    rates = [jd.spatial.matrix_to_rotation_vector(b @ a.T) / h for a, b in itertools.pairwise(half)]
    w, alpha = rates[1], (rates[2] - rates[0]) / (2 * h)
    return poses[1], np.r_[w, (x[2] - x[0]) / (2 * h)], np.r_[alpha, (x[2] - 2 * x[1] + x[0]) / h**2]


def errors(pose, velocity, t):
    want, rate, acceleration = target_rates(t)
    turn = jd.spatial.matrix_to_rotation_vector(want.rotation @ pose.rotation.T)
    return np.r_[turn, want.translation - pose.translation], rate - velocity, acceleration


@pytest.mark.slow
def test_operational_space_control_decouples_the_task():
    t, none = 0.4, np.zeros(6)
    law = ct.OperationalSpace(ARM, TIP, CIRCLE, 30.0, 9.0, posture=jnp.zeros(7), posture_kp=5.0, posture_kd=1.0)
    pose, velocity, a, _ = frame_motion(law, t, Q, V, none)
    e, rate, want = errors(pose, velocity, t)
    np.testing.assert_allclose(a, want + 9 * rate + 30 * e, atol=1e-6)  # the target's rates are differences
    position = ct.OperationalSpace(ARM, TIP, CIRCLE, 30.0, 9.0, ct.POSITION, posture_kd=1.0)
    pose, velocity, a, _ = frame_motion(position, t, Q, V, none)
    np.testing.assert_allclose(a[3:], (want + 9 * rate + 30 * e)[3:], atol=1e-6)


@pytest.mark.slow
def test_impedance_has_its_inertia_damping_and_stiffness():
    t, wrench = 0.4, np.array([0.5, -0.3, 0.2, 4.0, -6.0, 3.0])
    own = ct.Impedance(ARM, TIP, CIRCLE, 200.0, 30.0)
    pose, velocity, a, mobility = frame_motion(own, t, Q, V, wrench)
    e, rate, want = errors(pose, velocity, t)
    np.testing.assert_allclose(np.linalg.solve(mobility, want - a) + 30 * rate + 200 * e, -wrench, atol=1e-5)
    mass = np.diag([0.1, 0.2, 0.3, 2.0, 3.0, 4.0])
    shaped = ct.Impedance(ARM, TIP, CIRCLE, 200.0, 30.0, inertia=mass, measured=lambda t, q, v: jnp.asarray(wrench))
    a = frame_motion(shaped, t, Q, V, wrench)[2]
    np.testing.assert_allclose(mass @ (want - a) + 30 * rate + 200 * e, -wrench, atol=1e-5)


@pytest.mark.slow
def test_singular_poses_have_finite_efforts_and_gradients():
    straight = jnp.zeros(7)
    law = ct.OperationalSpace(ARM, TIP, CIRCLE, 30.0, 9.0, damping=1e-3)
    tau, slope = jax.jit(jax.value_and_grad(lambda q: jnp.sum(law(0.0, q, jnp.zeros(7)) ** 2)))(straight)
    assert np.isfinite(tau)
    assert np.isfinite(slope).all()


def dome(p):
    """Signed distance from a ball about (0.3, 0, 0): positive outside, where the arm is."""
    return jnp.linalg.norm(p - jnp.array([0.3, 0.0, 0.0])) - 0.4


@pytest.fixture(scope="module")
def contact():
    model, constraint = jc.on_surface(ARM, TIP, dome)
    start = jc.assemble(model, constraint, jnp.asarray(Q), jnp.asarray(V)).checked()
    return constraint, start


def hybrid_law(force):
    path = lambda t: jd.spatial.Pose(jnp.eye(3), jnp.stack([0.4 + 0 * t, 0.1 * jnp.sin(t), 0.6 + 0 * t]))
    return ct.HybridPositionForce(
        ARM, TIP, path, dome, force, 40.0, 12.0, posture=jnp.asarray(Q), posture_kp=5.0, posture_kd=3.0
    )


@pytest.mark.exhaustive
def test_hybrid_control_has_the_desired_force_and_acceleration(contact):
    constraint, start = contact
    law = hybrid_law(7.0)

    @jax.jit
    def ours(q, v):
        tau = law(0.3, q, v)
        d = jc.constrained_dynamics(ARM, constraint, q, v, tau + jd.passive_forces(ARM, q, v))
        a = frame_classical_acceleration(ARM, q, v, d.a, TIP, reference=WORLD_ALIGNED)[3:]
        return d.multiplier("surface")[0], a, jax.grad(dome)(jd.frame_pose(ARM, q, TIP).translation)

    force, a, normal = ours(start.q, start.v)
    np.testing.assert_allclose(force, 7.0, atol=1e-8)
    p = jd.frame_pose(ARM, start.q, TIP).translation
    v = frame_velocity(ARM, start.q, start.v, TIP, reference=WORLD_ALIGNED)[3:]
    e = np.array([0.4, 0.1 * np.sin(0.3), 0.6]) - p
    want = np.array([0, -0.1 * np.sin(0.3), 0]) + 12 * (np.array([0, 0.1 * np.cos(0.3), 0]) - v) + 40 * e
    tangent = np.eye(3) - np.outer(normal, normal)
    np.testing.assert_allclose(tangent @ a, tangent @ want, atol=1e-8)
