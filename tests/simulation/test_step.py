"""One step at a time, and the linearly implicit solver behind it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.actuators import DcMotor
from jaxdyn.joints import Prismatic
from jaxdyn.simulation import Inputs, Rosenbrock, SampledFeedback, SemiImplicitEuler, System, Variational
from jaxdyn.spatial import box

GAMMA = 1 - 1 / np.sqrt(2)


def slider(stiffness, damping):
    """A mass of 2 kg on a spring and a damper."""
    builder = jd.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    builder.add_link(
        "mass", "world", Prismatic([1.0, 0, 0]), box([0.1] * 3, mass=2.0), damping=damping, stiffness=stiffness
    )
    return builder.build()


def test_steps_have_the_stability_function_of_the_method():
    """`R(z) = (1 + (1 - 2 gamma) z) / (1 - gamma z)^2` of the matrix of a linear system, here with z down to -2,000."""
    model, h, u = slider(3e3, 4e4), 0.1, np.array([5.0])
    matrix = np.array([[0, 1], [-3e3 / 2, -4e4 / 2]])
    one = np.eye(2)
    stability = np.linalg.solve(np.linalg.matrix_power(one - GAMMA * h * matrix, 2), one + (1 - 2 * GAMMA) * h * matrix)
    rest = np.array([5.0 / 3e3, 0.0])  # under the effort
    start = np.array([0.2, -1.0])
    after = jd.step(model, jnp.asarray(start[:1]), jnp.asarray(start[1:]), jnp.asarray(u), h)
    np.testing.assert_allclose(
        np.concatenate([after.q, after.v]), rest + stability @ (start - rest), rtol=1e-9, atol=1e-12
    )


@pytest.mark.slow
def test_a_driven_joint_continues_its_current():
    """A stiff electric time constant of 0.02 ms at steps of 5 ms, and derivatives with respect to the voltage."""
    model = slider(0.0, 1.0)
    motor = DcMotor("mass_joint", constant=0.5, resistance=2.0, inductance=4e-5)
    system = System(model, (motor,))

    def run(voltage):
        def move(state, _):
            after = jd.step(system, state[0], state[1], voltage, 0.005, parts=state[2])
            return (after.q, after.v, after.parts), after.v

        first = system.initial(jnp.zeros(1), jnp.zeros(1))
        return jax.lax.scan(move, (first.q, first.v, first.parts), None, length=400)[1][:, 0]

    speeds = jax.jit(run)(jnp.array([12.0]))
    final = 12 * 0.5 / 2 / (1 + 0.5 * 0.5 / 2)
    rate = (1 + 0.5 * 0.5 / 2) / 2.0
    np.testing.assert_allclose(speeds, final * (1 - np.exp(-rate * 0.005 * np.arange(1, 401))), rtol=1e-3, atol=1e-3)
    slope = jax.jit(jax.jacfwd(lambda u: run(u)[-1]))(jnp.array([12.0]))
    np.testing.assert_allclose(slope, speeds[-1] / 12, rtol=1e-8)


@pytest.mark.slow
def test_a_panda_stays_finite_under_random_torques():
    """At steps of 4 ms and with damped joints, where semi-implicit steps become infinite."""
    panda = jd.robots.panda()
    panda = eqx.tree_at(lambda m: m.properties.damping, panda, jnp.full(7, 5.0))
    largest = jnp.array([40.0, 40.0, 40.0, 40.0, 8.0, 8.0, 8.0])
    torque = largest * jax.random.uniform(jax.random.key(0), (500, 7), minval=-1.0, maxval=1.0)
    start = jnp.array([0.0, 0.3, 0.0, -1.8, 0.0, 2.0, 0.8])

    def run(solver):
        def move(state, u):
            after = jd.step(panda, *state, u, 0.004, solver=solver)
            return (after.q, after.v), after.v

        return jax.jit(lambda u: jax.lax.scan(move, (start, jnp.zeros(7)), u)[1])(torque)

    assert jnp.abs(run(Rosenbrock())).max() < 10  # rad/s
    assert not jnp.isfinite(run(SemiImplicitEuler())).all()


@pytest.mark.slow
def test_adaptive_steps_of_a_stiff_system():
    model = slider(3e3, 4e4)
    path = jd.simulate(
        model, jnp.array([0.2]), jnp.array([-1.0]), jnp.array([0.0, 5.0]), rtol=1e-5, atol=1e-8, solver=Rosenbrock()
    )
    slow = -(2e4 - np.sqrt(4e8 - 4 * 1.5e3)) / 2
    assert path.num_steps < 1500  # an explicit method needs 5 s x 2e4 / s / 3.3
    np.testing.assert_allclose(path.q[-1, 0], (0.2 - 1 / 2e4) * np.exp(slow * 5), rtol=1e-4)


@pytest.mark.slow
def test_variational_steps_of_a_stiff_spring():
    """The implicit midpoint rule `z_1 = (1 - h A / 2)^-1 (1 + h A / 2) z_0` at h w = 120, where energy is constant."""
    model, h = slider(3e6, 0.0), 0.1
    start = np.array([0.2, -1.0])
    path = jd.simulate(
        model, jnp.asarray(start[:1]), jnp.asarray(start[1:]), jnp.array([0.0, h, 50 * h]), dt=h, solver=Variational()
    )
    matrix, one = np.array([[0, 1], [-3e6 / 2, 0]]), np.eye(2)
    step = np.linalg.solve(one - h / 2 * matrix, one + h / 2 * matrix)
    for k, power in ((1, 1), (2, 50)):
        expected = np.linalg.matrix_power(step, power) @ start
        np.testing.assert_allclose([path.q[k, 0], path.v[k, 0]], expected, rtol=1e-8, atol=1e-10)


def test_refused_steps():
    model = slider(0.0, 0.0)
    zero = jnp.zeros(1)
    with pytest.raises(jd.ShapeError, match=r"u has shape \(2,\)"):
        jd.step(model, zero, zero, jnp.zeros(2), 0.01)
    motor = DcMotor("mass_joint", constant=0.5, resistance=2.0)
    with pytest.raises(jd.ShapeError, match=r"u has shape \(3,\)"):
        jd.step(System(model, (motor, Inputs(zero))), zero, zero, jnp.zeros(3), 0.01)
    sampled = System(model, (SampledFeedback(lambda t, q, v: -q, 0.01),))
    with pytest.raises(jd.ModelError, match="sampled parts"):
        jd.step(sampled, zero, zero, zero, 0.01)
    with pytest.raises(jd.ArgumentError, match="dt"):
        jd.step(model, zero, zero, zero, -0.01)
