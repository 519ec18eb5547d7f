"""Limit cycles of compass gaits: published gaits, eigenvalues, derivatives with respect to the design, bifurcations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.simulation import OrbitStatus, State, periodic_orbit

from ._walkers import Strike, Walker, relative, step

NOMINAL = jnp.array([jnp.deg2rad(3.0), 10.0, 5.0, 0.5, 0.5, 9.81])  # slope, m_H, m, a, b, g
GUESS = State(relative(0.2187, -0.3234), jnp.array([-1.09, 0.72]))


def gait(numbers, guess=GUESS, **options):
    slope, hip_mass, leg_mass, a, b, gravity = numbers
    walker = Walker.build(a, b, leg_mass, hip_mass, gravity=gravity, slope=slope)
    return walker, periodic_orbit(step, walker.pinned, guess, walker, **options)


def summary(numbers):
    """Stance angle and rates of the legs after the strike, period, and average speed along the slope."""
    walker, orbit = gait(numbers)
    slope, a, b = numbers[0], numbers[3], numbers[4]
    (stance, _), (rate, hip) = orbit.state.q, orbit.state.v
    speed = 2 * (a + b) * jnp.sin(stance + slope) / orbit.period
    values = jnp.stack([stance, rate, rate + hip, orbit.period, speed])
    return values, (values, orbit, step(walker.pinned, orbit.state, walker).events)


@pytest.mark.slow
def test_compass_gait_and_its_design_derivatives():
    """Computed independently in float64 with tolerances of 1e-13; the derivatives by differences of fixed points."""
    derivatives = np.array(
        [
            [0.7566769926, -3.4556105149, 8.8407456912, 0.8153966595, 3.8000590777],
            [0.0037129292, 0.0023587383, 0.0002721056, 0.0067014963, 0.0030890307],
            [-0.0074258584, -0.0047174766, -0.0005442112, -0.0134029926, -0.0061780614],
            [-0.0204373211, 0.5400926434, 1.2723823091, -0.0881268798, 0.7630189122],
            [0.0204373211, 0.5522909465, -0.8950083602, 0.8224732710, -0.0338733457],
            [0, -0.0556770433, -0.0192341462, -0.0374284604, 0.0371633824],
        ]
    )
    slopes, (values, orbit, strike) = jax.jit(jax.jacrev(summary, has_aux=True))(NOMINAL)
    assert orbit.status == OrbitStatus.CONVERGED and orbit.is_stable
    expected = [0.218668802939, -1.0923835898835, -0.3773739489073, 0.7343463911587, 0.7291455665563]
    np.testing.assert_allclose(values, expected, atol=2e-10)
    eigenvalues = [-0.1997261269 - 0.5444760620j, -0.1997261269 + 0.5444760620j, 0, 0.1315726240]
    np.testing.assert_allclose(np.sort_complex(orbit.multipliers), eigenvalues, atol=2e-9)
    np.testing.assert_allclose(slopes.T, derivatives, atol=1e-8)
    before = strike.v_before[0]
    np.testing.assert_allclose([before[0], before.sum()], [-1.4942048971002, -1.8056788689876], atol=2e-9)
    floating = Walker.build(slope=NOMINAL[0]).floating
    impulse = Strike(floating).impact(strike.q_before[0], before)
    np.testing.assert_allclose(impulse.multipliers, [-2.6194904772112, 0, 13.7355980133197], atol=1e-8)


@jax.jit
@jax.vmap
def gait_from_the_normal(foot_mass, hip_mass, slope, guess):
    """A walker with the masses of its legs at the feet; angles from the normal of the slope, and between the legs."""
    walker = Walker.build(0.0, 1.0, foot_mass, hip_mass, gravity=1.0, slope=slope)
    start = State(jnp.stack([guess[0] - slope, -guess[2]]), jnp.stack([guess[1], -guess[3]]))
    orbit = periodic_orbit(step, walker.pinned, start, walker, 6.0)
    q, v = orbit.state.q, orbit.state.v
    order = jnp.argsort(orbit.multipliers[:2].imag + 1e-6 * orbit.multipliers[:2].real)
    return jnp.stack([q[0] + slope, v[0], -q[1], -v[1]]), orbit.multipliers[:2][order], orbit


def extrapolate(x):
    """The value at zero of the parabola through values at 1, 2 and 4, along the last batch axis."""
    return 8 / 3 * x[:, 0] - 2 * x[:, 1] + x[:, 2] / 3


@pytest.mark.exhaustive
def test_simplest_walker():
    """Garcia's gaits as the limit of light feet, and heavier feet by Bhounsule's program passivewalker.m."""
    slopes = np.array([0.009, 0.009, 0.004, 0.014, 0.016])
    starts = np.array([[0.2, -0.2], [0.194, -0.204], [0.153, -0.156], [0.23, -0.23], [0.24, -0.24], [0.2, -0.2]])
    guesses = np.concatenate([starts, 2 * starts[:, :1], starts[:, 1:] * 0.08], axis=1)
    foot_masses = np.append(np.tile(1e-4 * np.array([1.0, 2.0, 4.0]), 5), 1.0)
    hip_masses = np.append(np.ones(15), 1000.0)
    slopes, guesses = np.append(np.repeat(slopes, 3), 0.009), np.append(np.repeat(guesses[:5], 3, 0), guesses[5:], 0)
    states, multipliers, orbit = gait_from_the_normal(foot_masses, hip_masses, slopes, guesses)
    orbit.checked()
    light = lambda x: extrapolate(np.asarray(x)[:15].reshape(5, 3, -1))
    published = [(0.2003109005442, -0.1998324730049), (0.1939373698102, -0.203866927442)]
    published += [(0.1533895648763, -0.1560801466757)]
    np.testing.assert_allclose(light(states)[:3, :2], published, atol=1e-9)
    np.testing.assert_allclose(light(orbit.period)[:3, 0], [3.88246375285, 3.09610586808, 3.85261346175], atol=1e-8)
    eigenvalues = [
        (-0.1900998411 - 0.5575987767j, -0.1900998411 + 0.5575987767j),
        (0.4595895897982, 4.003864358815),
        (0.2288899629 - 0.5911551947j, 0.2288899629 + 0.5911551947j),
    ]
    np.testing.assert_allclose(light(multipliers)[:3], eigenvalues, atol=1e-7)
    stable = np.asarray(orbit.is_stable)[[0, 3, 6, 9, 12]]
    np.testing.assert_array_equal(stable, [True, False, True, True, False])  # up to a slope of 0.015
    # the stance angle grows with the cube root of the slope, 0.970956 times (Garcia et al. 1998)
    ratios, size = light(states)[[0, 2], 0] / np.cbrt([0.009, 0.004]), np.cbrt([0.009, 0.004]) ** 2
    np.testing.assert_allclose(ratios[0] - size[0] * np.diff(ratios) / np.diff(size), 0.970956, atol=3e-4)
    heavy = [0.200161072169750, -0.199906060087682, 0.400322144339512, -0.015805473227965]
    np.testing.assert_allclose(states[15], heavy, atol=1e-9)


@jax.jit
def smallest_multiplier(slope, guess):
    """The smallest real part of a multiplier, with its derivative, and the gait."""

    def value(slope):
        _, orbit = gait(NOMINAL.at[0].set(slope), guess)
        real = orbit.multipliers.real
        return real[jnp.argmin(real)], orbit

    (value, orbit), slope_of_value = jax.value_and_grad(value, has_aux=True)(slope)
    return value, slope_of_value, orbit


@pytest.mark.exhaustive
def test_period_doubling():
    """Newton's method on the slope at which a multiplier is -1; 4.37 to 4.4 degrees in the literature."""
    slope, guess = jnp.deg2rad(4.2), GUESS
    for _ in range(6):
        value, derivative, orbit = smallest_multiplier(slope, guess)
        orbit.checked()
        guess, last, slope = orbit.state, slope, slope - (value + 1) / derivative
    assert abs(value + 1) < 1e-7
    assert 4.36 < jnp.rad2deg(slope) < 4.41
    h = 1e-4
    difference = lambda s: smallest_multiplier(last + s * h, guess)[0] - smallest_multiplier(last - s * h, guess)[0]
    fourth_order = (8 * difference(1) - difference(2)) / (12 * h)
    np.testing.assert_allclose(derivative, fourth_order, rtol=1e-5)
