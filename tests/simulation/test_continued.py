"""Runs that are continued, batches of starts of parts, and events that reset the states of parts."""

import functools

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.actuators import DcMotor, MotorState, ThermalModel
from jaxdyn.control import CascadedControl, ServoControl
from jaxdyn.simulation import Event, SampledInputs, State, System, simulate_batch

PENDULUM = jd.robots.pendulum()
WARM = ThermalModel(winding_capacity=0.5, winding_resistance=8.0, housing_capacity=50.0, housing_resistance=4.0)
MOTOR = DcMotor(
    PENDULUM.joint_names[0], constant=0.05, resistance=1.0, inductance=2e-3, gear=20.0, rotor_inertia=1e-3, thermal=WARM
)
SERVO = ServoControl(jnp.array([0.7]), position_gain=6.0, velocity_gain=15.0, velocity_integral=60.0, limit=20.0)
DIGITAL = SampledInputs(
    CascadedControl(SERVO, current_gain=1.5, current_integral=400.0, voltage_limit=24.0, ratio=3),
    period=2e-3,
    delay=7e-4,
    wait=1,
)


@pytest.mark.slow
def test_a_continued_run_is_the_uninterrupted_run():
    """Current, two temperatures, and a digital cascade with a queue, a delay and a counter.

    The second span starts between two samples, so the schedule has to continue as well.
    """
    system = System(PENDULUM, (MOTOR, DIGITAL))
    run = functools.partial(jd.simulate, system, rtol=1e-10, atol=1e-10)
    ts = jnp.linspace(0.0, 0.1013, 7)
    whole = run(jnp.zeros(1), jnp.zeros(1), jnp.concatenate([ts, 0.1013 + ts[1:]]))
    first = run(jnp.zeros(1), jnp.zeros(1), ts)
    last = first.last
    second = run(last.q, last.v, 0.1013 + ts, parts=last.parts)
    rows = lambda tr: jax.tree.leaves((tr.q, tr.v, tr.parts))
    for a, b in zip(rows(second), rows(whole), strict=True):
        np.testing.assert_allclose(a, b[6:], rtol=1e-7, atol=1e-8)
    assert second.parts[0].current[-1] != 0 and second.parts[0].temperature[-1, 0] > 25.5
    forgotten = run(last.q, last.v, 0.1013 + ts)
    assert np.abs(forgotten.q - second.q).max() > 1e-4  # the states of the parts matter


@pytest.mark.slow
def test_a_batch_of_starts_of_parts_is_as_single_runs():
    """Currents and temperatures of the motor with the axis of the batch; the last states of a batch continue it."""
    system, ts = System(PENDULUM, (MOTOR,)), jnp.linspace(0.0, 0.05, 3)
    currents, temperatures = jnp.array([0.0, 4.0]), jnp.array([[25.0, 25.0], [90.0, 40.0]])
    voltages = jnp.array([[6.0], [6.0]])
    starts = (MotorState(currents, temperatures), None)
    q, v = jnp.array([[0.1], [0.1]]), jnp.zeros((2, 1))
    batch = simulate_batch(system, q, v, ts, inputs=voltages, parts=starts, dt=1e-3)
    assert batch.last.q.shape == (2, 1) and batch.last.parts[0].temperature.shape == (2, 2)
    for k in range(2):
        own = (MotorState(currents[k], temperatures[k]), None)
        alone = jd.simulate(system, q[k], v[k], ts, inputs=voltages[k], parts=own, dt=1e-3)
        for a, b in zip(jax.tree.leaves(alone.last), jax.tree.leaves(batch[k].last), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    again = simulate_batch(system, batch.last.q, batch.last.v, ts, inputs=voltages, parts=batch.last.parts, dt=1e-3)
    assert np.all(again.parts[0].temperature[:, 0] == batch.parts[0].temperature[:, -1])


class _Angle(eqx.Module):
    limit: jax.Array

    def __call__(self, model, t, q, v):
        return q[0] - self.limit


def _release(model, t, q, v, parts):
    """A clutch opens and a current limiter trips: part of the current is lost, and the integral is reset."""
    motor, memory = parts
    return q, 0.8 * v, (eqx.tree_at(lambda m: m.current, motor, 0.25 * motor.current), jnp.zeros_like(memory))


@pytest.mark.slow
def test_derivatives_across_a_reset_of_parts_are_central_differences():
    """Derivatives of the state after an event that resets current and integral: of start, gain and place of the event.

    The saltation terms are those of current and integral as well, whose rates differ across the event.
    """
    motor = DcMotor(PENDULUM.joint_names[0], constant=0.05, resistance=1.0, inductance=2e-2, gear=20.0)
    servo = ServoControl(jnp.array([0.7]), position_gain=6.0, velocity_gain=5.0, velocity_integral=30.0)
    ts = jnp.linspace(0.0, 0.5, 3)

    @jax.jit
    def final(p):
        current, gain, place = p
        control = eqx.tree_at(lambda s: s.velocity_gain, servo, gain)
        events = (Event(_Angle(place), _release, direction=1, resets_parts=True),)
        path = jd.simulate(
            System(PENDULUM, (motor,)),
            jnp.zeros(1),
            jnp.zeros(1),
            ts,
            inputs=control,
            parts=(MotorState(current), None),
            events=events,
            max_events=2,
            rtol=1e-10,
            atol=1e-10,
            adjoint=diffrax.ForwardMode(),
        )
        state = path.last
        out = jnp.concatenate([state.q, state.v, state.parts[0].current[None], state.parts[1]])
        return out, (path.events.count, path.events.time[0])

    p = jnp.array([1.0, 5.0, 0.3])
    slopes, (count, time) = jax.jit(jax.jacfwd(final, has_aux=True))(p)
    assert count == 1 and 0.05 < time < 0.45
    h = 1e-5
    for k, e in enumerate(h * np.eye(3)):
        difference = (final(p + e)[0] - final(p - e)[0]) / (2 * h)
        np.testing.assert_allclose(slopes[:, k], difference, rtol=1e-5, atol=1e-6)
    assert np.abs(slopes).min() > 1e-4


def test_the_last_state_of_a_trajectory_has_no_axis_of_times():
    path = jd.simulate(PENDULUM, jnp.array([0.4]), jnp.zeros(1), jnp.linspace(0.0, 0.1, 3), dt=0.02)
    last = path.last
    assert isinstance(last, State) and last.parts is None
    np.testing.assert_array_equal(last.q, path.q[-1])
