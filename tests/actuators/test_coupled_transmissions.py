"""Motors at the base over belts and chains, against the mass matrix of the reference."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.actuators import DcMotor, add_rotor, add_shaft
from jaxdyn.constraints import ConstrainedMotion, LinearCoupling

ARM = jd.robots.double_pendulum()
FIRST, SECOND = ARM.joint_names
RATIO, INERTIA, VOLTS = 40.0, 1e-4, 6.0
NUMBERS = {"constant": 0.05, "resistance": 1.5, "rotor_inertia": INERTIA}


def over_chain(ratio, inertia):
    """The elbow's motor at the base, `theta = ratio (q_1 + q_2)`."""
    robot = add_shaft(ARM, "motor")
    chain = LinearCoupling("chain", "motor", (FIRST, SECOND), ratio * jnp.ones(2))
    motor = DcMotor("motor", constant=0.05, resistance=1.5, rotor_inertia=inertia)
    return jd.System(robot, (motor,), motion=ConstrainedMotion((chain,)))


def accelerations(ratio=RATIO, inertia=INERTIA):
    """Accelerations of the arm's joints under the voltage, moving with the rates v of the joints."""
    system = over_chain(ratio, inertia)
    robot = system.model
    order = [robot.joint(name).v.start for name in (FIRST, SECOND, "motor")]
    q, v = jnp.array([0.3, -0.7]), jnp.array([0.5, -0.4])
    whole = lambda x: jnp.zeros(3).at[jnp.array(order)].set(jnp.append(x, ratio * x.sum()))
    rate = system.rate(0.0, system.initial(whole(q), whole(v)), jnp.array([VOLTS]))
    return rate.v[jnp.array(order[:2])]


@pytest.mark.slow
def test_a_motor_at_the_base_adds_the_inertia_of_both_joints():
    """`H + J n^2 [[1, 1], [1, 1]]`; a rotor on the upper link adds `J [[1, n], [n, n^2]]`."""
    q, v = jnp.array([0.3, -0.7]), jnp.array([0.5, -0.4])
    mass = jd.mass_matrix(ARM, q) + INERTIA * RATIO**2 * jnp.ones((2, 2))
    torque = RATIO * 0.05 * (VOLTS - 0.05 * RATIO * (v[0] + v[1])) / 1.5
    expected = jnp.linalg.solve(mass, torque * jnp.ones(2) - jd.bias_forces(ARM, q, v))
    f = jax.jit(accelerations)
    np.testing.assert_allclose(f(), expected, rtol=1e-9)
    carried = add_rotor(ARM, SECOND, gear=RATIO, inertia=INERTIA)
    added = jd.mass_matrix(carried, q) - jd.mass_matrix(ARM, q)
    np.testing.assert_allclose(added, INERTIA * np.array([[1, RATIO], [RATIO, RATIO**2]]), atol=1e-12)
    for argument, step in ((0, 1e-3), (1, 1e-8)):
        at = jnp.array([RATIO, INERTIA])
        g = lambda x: accelerations(*x)
        column = jax.jit(jax.jacfwd(g))(at)[:, argument]
        shift = step * jnp.eye(2)[argument]
        central = (f(*(at + shift)) - f(*(at - shift))) / (2 * step)
        np.testing.assert_allclose(column, central, rtol=1e-5)


def test_wrong_couplings_are_refused():
    with pytest.raises(jd.ModelError, match="one ratio for each source"):
        LinearCoupling("chain", "motor", (FIRST, SECOND), jnp.ones(3))
    with pytest.raises(jd.ModelError, match="already"):
        add_shaft(ARM, FIRST)
