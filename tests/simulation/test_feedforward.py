"""Dynamic control of driven robots (figure 20.10): exact following, poles of the error, saturation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.actuators import DcMotor
from jaxdyn.control import PathReference
from jaxdyn.simulation import (
    InputFeedback,
    Inputs,
    MeasuredNominal,
    SampledInputs,
    State,
    System,
    linearise_system,
    store_nominal,
)

ARM = jd.robots.double_pendulum()
GEAR, INERTIA = np.array([50.0, 40.0]), np.array([2e-4, 1e-4])
CONSTANT, RESISTANCE, INDUCTANCE = np.array([0.06, 0.05]), np.array([1.2, 1.5]), np.array([2e-3, 1.5e-3])
KP, KD, KI = jnp.array([90.0, 60.0]), jnp.array([12.0, 8.0]), jnp.array([40.0, 30.0])
Q = np.array([0.3, -0.7])


def motors(has_inductance=True, **options):
    return tuple(
        DcMotor(
            ARM.joint_names[k],
            constant=CONSTANT[k],
            resistance=RESISTANCE[k],
            inductance=INDUCTANCE[k] if has_inductance else None,
            gear=GEAR[k],
            rotor_inertia=INERTIA[k],
            **options,
        )
        for k in range(2)
    )


def swing(t):
    return jnp.stack([0.6 - 0.6 * jnp.cos(2 * t), 0.4 * jnp.sin(3 * t) ** 3])


SWING, TS = PathReference(swing), jnp.linspace(0.0, 1.0, 401)


def follow(system, nominal, start):
    """The largest error of a motion that starts on the reference, with its velocity and its currents."""
    ts = TS[::40]
    path = jd.simulate(
        system,
        jnp.zeros(2),
        jnp.zeros(2),
        ts,
        inputs=InputFeedback(nominal, kp=KP, kd=KD, ki=KI),
        parts=(*start, None),
        rtol=1e-10,
        atol=1e-10,
    )
    return np.abs(path.q - jax.vmap(swing)(ts)).max(), path


@pytest.mark.slow
def test_both_schemes_follow_exactly_with_a_perfect_model():
    """Motors with inductance: nominal voltages from a table, and from measured q and v."""
    system = System(ARM, motors())
    stored = store_nominal(system, SWING, TS)
    assert stored.saturated_times.size == 0
    start = stored.initial_parts()
    for nominal in (stored, MeasuredNominal(system, SWING)):
        error, path = follow(system, nominal, start)
        assert path.status == 0 and error < 1e-7


@pytest.mark.exhaustive
def test_with_saturated_voltages_the_robot_does_not_follow_and_the_report_says_when():
    system = System(ARM, motors(voltage_limit=13.0))
    stored = store_nominal(system, SWING, TS)
    times = stored.saturated_times
    voltages = np.abs(stored.table[0][3])
    np.testing.assert_array_equal(times, TS[np.any(voltages > 13.0, axis=1)])
    assert 0 < times.size < TS.size
    error, path = follow(system, stored, stored.initial_parts())
    assert error > 1e-3
    # on the reference until the first saturation
    is_before = path.t < times[0]
    assert np.abs(path.q - jax.vmap(swing)(path.t))[is_before].max() < 1e-7 and is_before.sum() > 1


def matrices_by_hand():
    """H*, D and the damping of the back-EMF of the arm with its motors (20.71), and the slope of gravity."""
    c = np.cos(Q[1])
    mass = np.array([[3 + 2 * c, 1 + c], [1 + c, 1]]) + np.diag(GEAR**2 * INERTIA)
    both = np.cos(Q.sum())
    slope = 9.81 * np.array([[2 * np.cos(Q[0]) + both, both], [both, both]])
    gain = np.diag(GEAR * CONSTANT / RESISTANCE)
    return mass, gain, np.diag(GEAR**2 * CONSTANT**2 / RESISTANCE), slope


def poles_by_hand(mass, damping, stiffness, integral):
    """Roots of det(H s^3 + damping s^2 + stiffness s + integral)."""
    zero, one = np.zeros((2, 2)), np.eye(2)
    last = -np.linalg.solve(mass, np.concatenate([stiffness, damping, integral], 1))
    return np.linalg.eigvals(np.block([[zero, one, zero], [last[:, :2], last[:, 2:4], last[:, 4:]], [one, zero, zero]]))


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["stored", "measured"])
def test_poles_of_the_error_are_those_of_the_driven_matrices(scheme):
    """Without inductance, about a constant reference.

    Nominal voltages from the measured velocity compensate the back-EMF: `H* edd + D (Kd ed + Kp e + Ki z) = 0`. Those
    of a table leave its damping `n^2 C_M C_E / R` (20.71) and the slope of gravity in the loop.
    """
    system = System(ARM, motors(has_inductance=False))
    rest = jnp.asarray(Q)
    is_stored = scheme == "stored"
    nominal = store_nominal(system, rest, jnp.array([0.0, 1.0])) if is_stored else MeasuredNominal(system, rest)
    closed = System(ARM, (*motors(has_inductance=False), Inputs(InputFeedback(nominal, kp=KP, kd=KD, ki=KI))))
    a, _ = linearise_system(closed, State(rest, jnp.zeros(2)))
    mass, gain, back_emf, slope = matrices_by_hand()
    left = (back_emf, slope) if is_stored else (0, 0)
    expected = poles_by_hand(mass, gain * KD + left[0], gain * KP + left[1], gain * KI)
    found = np.linalg.eigvals(a)
    order = lambda x: x[np.lexsort((x.imag.round(6), x.real.round(6)))]
    np.testing.assert_allclose(order(found), order(expected), rtol=1e-8)
    assert found.real.max() < 0


@pytest.mark.exhaustive
def test_sampled_voltages_with_delay_stay_near_the_reference():
    """Digital dynamic control at 1 kHz with half a period of delay."""
    system = System(ARM, motors())
    stored = store_nominal(system, SWING, TS)
    control = SampledInputs(InputFeedback(stored, kp=KP, kd=KD, ki=KI), period=1e-3, delay=5e-4)
    path = jd.simulate(
        system, jnp.zeros(2), jnp.zeros(2), TS[::40], inputs=control, parts=(*stored.initial_parts(), None), dt=1e-3
    )
    assert 1e-7 < np.abs(path.q - jax.vmap(swing)(path.t)).max() < 0.02


def test_the_integral_stops_where_the_input_is_limited():
    system = System(ARM, motors(has_inductance=False))
    nominal = store_nominal(system, jnp.asarray(Q), jnp.array([0.0, 1.0]))
    control = InputFeedback(nominal, kp=1e3, kd=0.0, ki=1.0, limit=10.0)
    command = control.command(ARM, 0.0, State(jnp.zeros(2), jnp.zeros(2)), jnp.zeros(2))
    np.testing.assert_allclose(command.inputs, [10.0, -10.0])
    np.testing.assert_array_equal(command.rate, 0.0)


def test_systems_without_free_inputs_are_refused():
    with pytest.raises(jd.ModelError, match="store_nominal needs a system whose actuators have inputs"):
        store_nominal(System(ARM), SWING, TS)
    with pytest.raises(jd.ModelError, match="MeasuredNominal needs a system in|MeasuredNominal needs a system whose"):
        MeasuredNominal(System(ARM, (*motors(), Inputs(jnp.zeros(2)))), SWING)
