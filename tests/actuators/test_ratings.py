"""Speed-torque limits and heat of motors against closed forms and reference numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import jaxdyn as jd
from jaxdyn.actuators import (
    DcMotor,
    SynchronousMotor,
    ThermalModel,
    motor_ratings,
    rms_current,
    torque_range,
)

NUMBERS = {"constant": 0.06, "resistance": 1.2, "voltage_limit": 24.0, "current_limit": 10.0}


def test_corners_of_the_speed_torque_diagram():
    ratings = motor_ratings(DcMotor("j", **NUMBERS))
    np.testing.assert_allclose(ratings, [400.0, 1.2, 0.6, 200.0, 120.0], rtol=1e-12)
    peak = lambda limit: motor_ratings(DcMotor("j", **{**NUMBERS, "current_limit": limit})).peak_power
    np.testing.assert_allclose([peak(15.0), peak(5.0)], [120.0, 0.3 * 300], rtol=1e-12)
    assert np.isinf(motor_ratings(DcMotor("j", **{**NUMBERS, "voltage_limit": None})).no_load_speed)
    psi = 0.06 / 7  # the same back-EMF, 1.5 times the torque
    motor = SynchronousMotor(
        "j", pole_pairs=7, flux_linkage=psi, resistance=1.2, voltage_limit=24.0, current_limit=10.0
    )
    np.testing.assert_allclose(motor_ratings(motor), [400.0, 1.8, 0.9, 200.0, 180.0], rtol=1e-12)


def test_torque_range_at_a_joint():
    """Limited by the current below 200 rad/s of the rotor, by the voltage above; the gear loses power."""
    ideal = DcMotor("j", gear=50.0, viscous=1e-4, **NUMBERS)
    low, high = torque_range(ideal, jnp.array([0.0, 2.0, 6.0]))
    w = 50 * np.array([0.0, 2.0, 6.0])
    np.testing.assert_allclose(high, 50 * (np.minimum(0.6, 0.06 * (24 - 0.06 * w) / 1.2) - 1e-4 * w), rtol=1e-12)
    np.testing.assert_allclose(low, 50 * (-0.6 - 1e-4 * w), rtol=1e-12)
    lossy = DcMotor("j", gear=50.0, efficiency=0.8, reverse_efficiency=0.6, width=1e-3, **NUMBERS)
    low, high = torque_range(lossy, 2.0)
    np.testing.assert_allclose([low, high], [-30 / 0.6, 30 * 0.8], rtol=1e-12)
    # the limits are those of the motor in a simulation
    hot = ThermalModel(1.0, 1.0, constant_coefficient=-1e-3)
    motor = DcMotor("j", gear=-50.0, thermal=hot, **NUMBERS)
    flow = motor.flow(0.0, 4.5, None, 1e3)
    np.testing.assert_allclose(torque_range(motor, 4.5).low, -50 * flow.air_gap_torque, rtol=1e-12)
    warm = torque_range(motor, 0.0, temperature=jnp.array([125.0])).high
    np.testing.assert_allclose(warm, 50 * 0.06 * 0.9 * 10, rtol=1e-12)


ONE = ThermalModel(15.0, 4.0)
TWO = ThermalModel(15.0, 1.2, 200.0, 2.8)
OTHER = ThermalModel(17.0, 3.0, 200.0, 6.0)


def test_steady_temperatures_match_the_reference():
    np.testing.assert_allclose(ONE.steady_state(1.2, 3.0).rise, [52.0341498197], atol=1e-9)
    constant = ThermalModel(15.0, 4.0, resistance_coefficient=0.0)
    np.testing.assert_allclose(constant.steady_state(1.2, 3.0).rise, [43.2], rtol=1e-12)
    np.testing.assert_allclose(TWO.steady_state(1.2, 3.0).rise, [52.03414982, 36.42390487], atol=5e-9)
    np.testing.assert_allclose(OTHER.steady_state(1.2, 1.5).rise, [26.865641939589, 17.910427959726], atol=1e-11)
    np.testing.assert_allclose(OTHER.runaway_current(1.2), 4.853911425895, atol=1e-11)
    below, above = (OTHER.steady_state(1.2, 4.853911425895 + d) for d in (-1e-6, 1e-6))
    assert not below.is_runaway and above.is_runaway and np.isinf(above.rise).all()


def test_time_constants_match_the_reference():
    np.testing.assert_allclose(TWO.time_constants(1.2, 3.0), [17.47048159, 694.9609008], rtol=1e-9)
    np.testing.assert_allclose(OTHER.time_constants(1.2, 1.5), [48.14134662, 1405.47827348], rtol=1e-9)
    np.testing.assert_allclose(ONE.time_constants(), [60.0], rtol=1e-12)
    assert np.isinf(OTHER.time_constants(1.2, 5.0)[1]) and np.isinf(ONE.time_constants(1.2, 20.0)[0])


def test_transient_temperatures_match_the_reference():
    rise = jax.jit(jax.vmap(lambda model, i, t: model.rise_after(1.2, i, t)[0], (None, None, 0)))
    np.testing.assert_allclose(TWO.rise_after(1.2, 3.0, 60.0), [14.5361674579, 2.1814734721], atol=1e-9)
    times = jnp.array([10.0, 60.0, 600.0])
    np.testing.assert_allclose(rise(OTHER, 1.5, times), [1.4473686, 5.79337265, 13.87943183], atol=1e-7)


def test_current_for_a_rise_matches_the_reference():
    solve = jax.jit(lambda model, rise, time: model.current_for_rise(1.2, rise, time))
    np.testing.assert_allclose(solve(OTHER, 100.0, 60.0), 5.615901852319, atol=1e-11)
    # a time after which a current beyond runaway has no finite rise in double precision
    steady = solve(OTHER, 26.865641939589, 1e6)
    np.testing.assert_allclose(steady, 1.5, rtol=1e-10)


@pytest.mark.slow
def test_derivatives_of_the_current_for_a_rise():
    """Against central differences, in the capacity, the resistance and the rise."""

    def current(x):
        return ThermalModel(x[0], 3.0, 200.0, 6.0).current_for_rise(x[1], x[2], 60.0)

    x = jnp.array([17.0, 1.2, 100.0])
    steps = 1e-5 * jnp.diag(x)
    values = jax.jit(jax.vmap(current))(jnp.concatenate([x + steps, x - steps]))
    central = (values[:3] - values[3:]) / (2e-5 * x)
    np.testing.assert_allclose(jax.jit(jax.jacfwd(current))(x), central, rtol=1e-7)
    np.testing.assert_allclose(jax.jit(jax.grad(current))(x), central, rtol=1e-7)


def test_duty_cycle_by_the_root_mean_square_of_the_current():
    duty = rms_current(jnp.array([6.0, 0.0]), jnp.array([1.0, 3.0]))
    np.testing.assert_allclose(duty, 3.0, rtol=1e-15)
    np.testing.assert_allclose(ONE.steady_state(1.2, duty).rise, [52.0341498197], atol=1e-9)


@pytest.mark.parametrize("model", [ONE, TWO], ids=["one node", "two nodes"])
def test_periodic_temperatures_of_a_duty_cycle(model):
    """The state repeats after a cycle of the simulated equations; limits are a constant and a fast periodic current."""
    currents, durations = np.array([4.0, 0.0, 2.0]), np.array([40.0, 90.0, 20.0])
    found = jax.jit(lambda m, i, t: m.periodic_state(1.2, jnp.asarray(i), jnp.asarray(t)))
    cycle = found(model, currents, durations)
    assert cycle.rise.shape == (3, model.num_nodes) and not cycle.is_runaway.any()
    rise = np.asarray(cycle.rise[0])
    for k, (i, time) in enumerate(zip(currents, durations, strict=True)):
        np.testing.assert_allclose(rise, cycle.rise[k], rtol=1e-8)

        def rate(_, x, i=i):
            temperature = model.ambient + x
            return np.asarray(model.rate(temperature, 1.2 * model.resistance_factor(temperature) * i**2, 0.0))

        rise = solve_ivp(rate, (0.0, time), rise, rtol=1e-10, atol=1e-10).y[:, -1]
    np.testing.assert_allclose(rise, cycle.rise[0], rtol=1e-8)
    steady = found(model, np.full(3, 1.5), durations)
    np.testing.assert_allclose(steady.rise, np.tile(model.steady_state(1.2, 1.5).rise, (3, 1)), rtol=1e-9)
    fast = found(model, currents, 1e-4 * durations)
    mean = model.steady_state(1.2, rms_current(jnp.asarray(currents), jnp.asarray(durations))).rise
    np.testing.assert_allclose(fast.rise[0], mean, rtol=1e-3)
    limit = model.runaway_current(1.2)
    for share, is_runaway in ((0.999, False), (1.001, True)):
        near = found(model, np.full(3, share * limit), durations)
        assert near.is_runaway.all() == is_runaway == np.isinf(near.rise).all()


def test_duty_cycles_have_one_duration_for_each_current(without_annotations):
    with pytest.raises(jd.ShapeError, match="one duration for each current"):
        ONE.periodic_state(1.2, jnp.ones(3), jnp.ones(2))


@pytest.mark.slow
def test_derivatives_of_periodic_temperatures():
    """Against central differences, with respect to currents, durations, resistance and a capacity."""

    def peak(x):
        return ThermalModel(x[0], 3.0, 200.0, 6.0).periodic_state(x[1], x[2:4], x[4:6]).rise[1, 0]

    x = jnp.array([17.0, 1.2, 6.0, 1.0, 10.0, 150.0])
    steps = 1e-5 * jnp.diag(x)
    values = jax.jit(jax.vmap(peak))(jnp.concatenate([x + steps, x - steps]))
    central = (values[:6] - values[6:]) / (2e-5 * x)
    np.testing.assert_allclose(jax.jit(jax.jacfwd(peak))(x), central, rtol=1e-7)
    np.testing.assert_allclose(jax.jit(jax.grad(peak))(x), central, rtol=1e-7)
    in_runaway = jax.jit(jax.grad(lambda i: ONE.periodic_state(1.2, i, x[4:6]).rise[0, 0]))
    np.testing.assert_array_equal(in_runaway(jnp.array([90.0, 90.0])), 0.0)
