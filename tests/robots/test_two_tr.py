"""The 2TR robot against equations 36 to 40 of Negrean et al."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.dynamics import rnea
from jaxdyn.kinematics import WORLD_ALIGNED, frame_velocity, jacobian
from jaxdyn.robots import two_tr

MASSES, ARM, INERTIA, G = (4.0, 3.0, 2.0), 0.4, 0.05, 9.81


@pytest.fixture(scope="module")
def model():
    return two_tr(MASSES, ARM, INERTIA)


def _state(seed):
    return np.random.default_rng(seed).standard_normal((3, 3))


def _acceleration_energy(v, a, q, turning):
    """Equation 38; `turning` replaces a_3 in its second line."""
    m1, m2, m3 = MASSES
    lines = (
        0.5 * (m1 + m2 + m3) * a[0] ** 2
        + 0.5 * (m2 + m3) * a[1] ** 2
        + 0.5 * m3 * ARM**2 * a[2] ** 2
        - m3 * ARM * v[2] ** 2 * jnp.cos(q[2]) * a[0],
        -m3 * ARM * jnp.sin(q[2]) * a[0] * turning(a)
        + 0.5 * m3 * ARM**2 * v[2] ** 4
        + 0.5 * INERTIA * a[2] ** 2
        + 0.5 * INERTIA * v[2] ** 4,  # the planar moments: Ixx + Iyy = Iz
    )
    return sum(lines)


@pytest.mark.slow
def test_jacobian_agrees_with_equation_36(model):
    """Columns of `J` in frame {0}, angular half first; the end frame {3} is on the axis of joint 3."""
    expected = np.zeros((6, 3))
    expected[3, 0] = expected[5, 1] = expected[2, 2] = 1
    q = jnp.asarray(_state(0)[0])
    np.testing.assert_allclose(jacobian(model, q, "tool", reference=WORLD_ALIGNED), expected, atol=1e-14)


@pytest.mark.slow
def test_velocity_agrees_with_equation_37(model):
    q, v, _ = _state(1)
    got = frame_velocity(model, jnp.asarray(q), jnp.asarray(v), "tool", reference=WORLD_ALIGNED)
    np.testing.assert_allclose(got, [0, 0, v[2], v[0], 0, v[1]], atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_forces_agree_with_equation_40(model, seed):
    q, v, a = _state(seed)
    m1, m2, m3 = MASSES
    s, c = np.sin(q[2]), np.cos(q[2])
    expected = [
        (m1 + m2 + m3) * a[0] - m3 * ARM * s * a[2] - m3 * ARM * v[2] ** 2 * c,
        (m2 + m3) * (a[1] + G),
        m3 * ARM**2 * a[2] - m3 * ARM * s * a[0] + INERTIA * a[2],
    ]
    np.testing.assert_allclose(rnea(model, *map(jnp.asarray, (q, v, a))), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_forces_are_derivatives_of_the_acceleration_energy(model):
    """Equation 39 with gravity; equation 38 as printed, without a_3 in its second line, is wrong."""
    q, v, a = _state(4)
    tau = np.asarray(rnea(model, *map(jnp.asarray, (q, v, a))))
    weight = np.array([0, (MASSES[1] + MASSES[2]) * G, 0])
    by = lambda turning: jax.grad(lambda x: _acceleration_energy(v, x, q, turning))(jnp.asarray(a)) + weight
    np.testing.assert_allclose(by(lambda x: x[2]), tau, rtol=1e-12)
    assert np.abs(by(lambda x: 1.0) - tau).max() > 0.1
