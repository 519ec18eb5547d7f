"""Systems with actuators: their inputs, the inertia that they bring, and efforts that depend on the acceleration."""

import itertools
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.actuators import DcMotor, MotorState, Stage, ThermalModel, add_elastic_transmission
from jaxdyn.dynamics import AbstractController, Command, FreeMotion
from jaxdyn.simulation import (
    CanonicalMomenta,
    Inputs,
    SampledInputs,
    State,
    System,
    Variational,
    held_inputs,
    integrate_fixed_steps,
    simulate,
    simulate_batch,
)

# the driven double pendulum: gears, rotor inertias, motor constants, resistances, inductances, bearings
N, J, C, R, L, B = (50.0, 40.0), (2e-4, 1e-4), (0.06, 0.05), (1.2, 1.5), (2e-3, 1.5e-3), (1e-4, 8e-5)
Q, V, U = jnp.array([0.3, -0.7]), jnp.array([0.5, -0.4]), jnp.array([12.0, -6.0])
ARM = jd.robots.double_pendulum()


def motors(inductance=False, **options: Any):
    """The two motors; options are pairs of numbers."""
    return tuple(
        DcMotor(
            ARM.joint_names[k],
            constant=C[k],
            resistance=R[k],
            inductance=L[k] if inductance else None,
            **{"gear": N[k], "rotor_inertia": J[k], "viscous": B[k]} | {name: x[k] for name, x in options.items()},
        )
        for k in (0, 1)
    )


@jax.jit
def acceleration(system, state, inputs=U):
    return system.rate(0.0, state, inputs).v


def at(system, currents=None):
    if currents is None:
        return system.initial(Q, V)
    return State(Q, V, tuple(MotorState(jnp.asarray(i)) for i in currents))


@pytest.mark.slow
def test_accelerations_of_driven_systems_match_the_reference():
    """20.62 to 20.69 in numpy, with inductance, without, and with gear losses after the inertia of the rotors."""
    full = System(ARM, motors(inductance=True))
    rate = jax.jit(lambda s, x: s.rate(0.0, x, U))(full, at(full, (2.0, -1.0)))
    np.testing.assert_allclose(rate.v, [0.409234141882, 1.129495415333], atol=1e-11)
    np.testing.assert_allclose([p.current for p in rate.parts], [4050, -2466.666666667], atol=1e-8)
    static = System(ARM, motors())
    np.testing.assert_allclose(acceleration(static, at(static)), [12.247221541256, -21.133877781469], atol=1e-11)
    losses = {"efficiency": (0.8, 0.75), "reverse_efficiency": (0.6, 0.55)}
    lossy = System(ARM, motors(inductance=True, **losses))
    expected = [-0.508970723243, 3.051697646722]
    np.testing.assert_allclose(acceleration(lossy, at(lossy, (2.0, -1.0))), expected, atol=1e-11)


@pytest.mark.slow
def test_derivatives_with_respect_to_a_gear_include_its_inertia():
    """The reflected inertia follows the leaves of the motor, in forward and in reverse mode."""

    def of_gear(gear, **options):
        first, second = motors(**options)
        system = System(ARM, (eqx.tree_at(lambda m: m.gear, first, gear), second))
        return system.rate(0.0, system.initial(Q, V), U).v

    for options in ({}, {"efficiency": (0.8, 0.75), "reverse_efficiency": (0.6, 0.55)}):
        f = jax.jit(lambda n, options=options: of_gear(n, **options))
        forward, reverse = jax.jit(lambda n, f=f: (jax.jacfwd(f)(n), jax.jacrev(f)(n)))(jnp.array(50.0))
        np.testing.assert_allclose(forward, (f(50 + 1e-4) - f(50 - 1e-4)) / 2e-4, rtol=1e-6)
        np.testing.assert_allclose(reverse, forward, rtol=1e-10)
        if not options:
            np.testing.assert_allclose(forward, [0.08532516, -0.12981503], atol=1e-8)


@pytest.mark.slow
def test_gear_losses_of_random_robots_have_one_consistent_branch():
    """Against all four branches of power flow, each one linear in the acceleration."""

    def sample(key):
        k = jax.random.split(key, 7)
        spread = lambda key, low, high: jnp.exp(jax.random.uniform(key, (2,), minval=np.log(low), maxval=np.log(high)))
        return {
            "gear": spread(k[0], 5, 200),
            "rotor_inertia": spread(k[1], 1e-6, 1e-3),
            "efficiency": jax.random.uniform(k[2], (2,), minval=0.2),
            "reverse_efficiency": jax.random.uniform(k[3], (2,), minval=0.05),
            "width": jnp.zeros(2),
            "q": jax.random.normal(k[4], (2,)),
            "v": jax.random.normal(k[5], (2,)),
            "u": 10 * jax.random.normal(k[6], (2,)),
        }

    def errors(numbers):
        q, v, u = (numbers.pop(name) for name in "qvu")
        system = System(ARM, motors(**numbers))
        found = system.rate(0.0, system.initial(q, v), u).v
        mass, bias = jd.mass_matrix(ARM, q), jd.bias_forces(ARM, q, v)
        n, inertia = numbers["gear"], numbers["rotor_inertia"]
        torque = jnp.array(C) * (u - jnp.array(C) * n * v) / jnp.array(R) - jnp.array(B) * n * v
        consistent, error = [], []
        for driving in itertools.product((True, False), repeat=2):
            factor = n * jnp.where(jnp.array(driving), numbers["efficiency"], 1 / numbers["reverse_efficiency"])
            a = jnp.linalg.solve(mass + jnp.diag(inertia * n * factor), factor * torque - bias)
            consistent.append(jnp.all(((mass @ a + bias) * v >= 0) == jnp.array(driving)))
            error.append(jnp.max(jnp.abs(a - found) / (1 + jnp.abs(a))))
        consistent = jnp.stack(consistent)
        return consistent.sum(), jnp.where(consistent, jnp.stack(error), 0).max()

    count, error = jax.jit(jax.vmap(lambda key: errors(sample(key))))(jax.random.split(jax.random.key(1), 5000))
    assert (count == 1).all() and error.max() < 1e-12


class Integral(AbstractController):
    """`u = -gain * integral of the first coordinate`."""

    gain: Any

    def initial(self, model, q, v):
        return jnp.zeros(())

    def command(self, model, t, state, memory):
        return Command(-self.gain * memory[None], rate=state.q[0])


class Delta(AbstractController):
    """The difference of two samples of the first coordinate, in discrete time."""

    def initial(self, model, q, v):
        return q[:1]

    def command(self, model, t, state, memory):
        return Command(state.q[:1] - memory, memory=state.q[:1])


PENDULUM = jd.robots.pendulum()
MOTOR = DcMotor("rod_joint", constant=0.05, resistance=2.0, gear=20.0, rotor_inertia=1e-4)


def run(inputs, **options):
    ts = jnp.linspace(0, 0.4, 5)
    return simulate(System(PENDULUM, (MOTOR,)), jnp.array([0.2]), jnp.zeros(1), ts, inputs=inputs, dt=0.02, **options)


def law(t, state):
    return jnp.array([3.0 * t])


@pytest.mark.slow
def test_inputs_from_constants_laws_paths_and_controllers():
    path = diffrax.LinearInterpolation(jnp.array([0.0, 1.0]), jnp.array([[0.0], [3.0]]))
    np.testing.assert_allclose(run(law).q, run(path).q, atol=1e-13)
    same = [
        run(jnp.array([4.0])).q,
        run(lambda t, state: jnp.array([4.0])).q,
        run(held_inputs(jnp.array([[4.0]]), 0.04)).q,
    ]
    for q in same:
        np.testing.assert_allclose(q, run(4.0).q, atol=1e-13)
    # an integral as a memory, against the same integral as a coordinate of a larger system of equations
    bias = lambda q: jd.gravity_forces(PENDULUM, q[None])[0]
    torque = lambda u, v: 20 * 0.05 * (u - 0.05 * 20 * v) / 2
    inertia = float(jd.mass_matrix(PENDULUM, jnp.zeros(1))[0, 0]) + 400 * 1e-4
    field = lambda t, y, _: jnp.stack([y[1], (torque(-50 * y[2], y[1]) - bias(y[0])) / inertia, y[0]])
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Tsit5(),
        0.0,
        0.4,
        0.02,
        jnp.array([0.2, 0.0, 0.0]),
        saveat=diffrax.SaveAt(ts=jnp.linspace(0, 0.4, 5)),
    )
    continuous = run(Integral(50.0))
    np.testing.assert_allclose(continuous.q[:, 0], solution.ys[:, 0], atol=1e-9)
    np.testing.assert_allclose(continuous.parts[1], solution.ys[:, 2], atol=1e-9)


@pytest.mark.slow
def test_sampled_controllers_hold_and_delay_their_output():
    """The memory of an integral advances by `period * rate`; a controller in discrete time returns its memory."""
    sampled = run(SampledInputs(Integral(50.0), period=0.1, delay=0.05))
    queue, memory = sampled.parts[1].waiting
    q = np.asarray(sampled.q[:, 0])
    np.testing.assert_allclose(memory[-1], 0.1 * q[:4].sum(), rtol=1e-10)  # samples at 0, 0.1, 0.2, 0.3 and none at 0.4
    np.testing.assert_allclose(queue[-1], [[-50 * 0.1 * q[:3].sum()]], rtol=1e-10)
    differences = run(SampledInputs(Delta(), period=0.1))
    np.testing.assert_allclose(differences.parts[1].waiting[0][-1, 0], np.diff(differences.q[2:4, 0]), atol=1e-9)
    with pytest.raises(jd.ModelError, match="works in discrete time"):
        run(Delta())


def test_actuators_without_inputs_are_refused():
    system = System(PENDULUM, (MOTOR,))
    state = system.initial(jnp.zeros(1), jnp.zeros(1))
    with pytest.raises(jd.ModelError, match="no source commands them"):
        system.rate(0.0, state)
    with pytest.raises(jd.ShapeError, match="inputs of the actuators"):
        system.rate(0.0, state, jnp.zeros(2))
    with pytest.raises(jd.ModelError, match="two sources"):
        System(PENDULUM, (MOTOR, Inputs(1.0), SampledInputs(1.0, period=0.1)))
    with pytest.raises(jd.ModelError, match="expected a tuple with one state"):
        system.initial(jnp.zeros(1), jnp.zeros(1), parts=())


@pytest.mark.slow
@pytest.mark.parametrize("solver", [None, Variational(), CanonicalMomenta(diffrax.Tsit5())])
def test_rotors_carry_energy_in_every_solver(solver):
    """Without voltage, resistance losses or friction, the energy with the rotors is conserved."""
    idle = [eqx.tree_at(lambda m: m.constant, MOTOR, jnp.array(0.0))]
    system = System(PENDULUM, tuple(idle))
    start, ts = jnp.array([0.5]), jnp.linspace(0, 1, 5)
    path = simulate(system, start, jnp.zeros(1), ts, inputs=0.0, dt=5e-3, solver=solver)
    assert float(jnp.ptp(path.energy)) < (1e-5 if isinstance(solver, Variational) else 1e-8)
    alone = simulate(PENDULUM, start, jnp.zeros(1), ts, dt=5e-3)
    assert abs(path.q[-1, 0] - alone.q[-1, 0]) > 1e-3  # the rotor slows the pendulum down


@pytest.mark.exhaustive
def test_runs_continue_from_the_states_of_parts():
    """Currents, memories and schedules of samples go on where the first run ended."""
    motor = eqx.tree_at(lambda m: m.inductance, MOTOR, jnp.array(0.02), is_leaf=lambda x: x is None)
    system, start = System(PENDULUM, (motor,)), (jnp.array([0.2]), jnp.zeros(1))
    for inputs in (Integral(50.0), SampledInputs(Integral(50.0), period=0.1, delay=0.03, wait=1)):
        options = {"inputs": inputs, "rtol": 1e-11, "atol": 1e-11}
        whole = simulate(system, *start, jnp.array([0.0, 0.25, 0.5]), **options)
        first = simulate(system, *start, jnp.array([0.0, 0.25]), **options)
        parts = jax.tree.map(lambda x: x[-1], first.parts)
        rest = simulate(system, first.q[-1], first.v[-1], jnp.array([0.25, 0.5]), parts=parts, **options)
        np.testing.assert_allclose(rest.q[-1], whole.q[-1], atol=1e-9)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a[-1], b[-1], atol=1e-8), rest.parts, whole.parts)


@pytest.mark.slow
def test_batches_of_different_driven_robots():
    """Every sample has its own motor, inputs and initial current."""
    motor = eqx.tree_at(lambda m: m.inductance, MOTOR, jnp.array(0.02), is_leaf=lambda x: x is None)
    gears, volts, currents = jnp.array([10.0, 20.0, 30.0]), jnp.array([[1.0], [2.0], [3.0]]), jnp.array([0.0, 0.1, 0.2])
    system = System(PENDULUM, (eqx.tree_at(lambda m: m.gear, motor, gears),))
    mask = eqx.tree_at(lambda s: s.parts[0].gear, jax.tree.map(lambda _: False, system), True)
    ts, zeros = jnp.array([0.0, 0.2]), jnp.zeros((3, 1))
    batch = simulate_batch(
        system, zeros, zeros, ts, batched=mask, inputs=volts, parts=(MotorState(currents), None), dt=0.01
    )
    for k in range(3):
        one = System(PENDULUM, (eqx.tree_at(lambda m: m.gear, motor, gears[k]),))
        parts = (MotorState(currents[k]), None)
        path = simulate(one, zeros[k], zeros[k], ts, inputs=volts[k], parts=parts, dt=0.01)
        np.testing.assert_allclose(batch[k].q, path.q, atol=1e-12)
        np.testing.assert_allclose(batch[k].energy, path.energy, atol=1e-10)


def heated_arm(numbers=None, **losses):
    """The arm with heated motors with inductance, whose leaves are scaled by one number each."""
    thermal = ThermalModel(0.2, 1.5, 2.0, 3.0)
    parts = tuple(eqx.tree_at(lambda m: m.thermal, m, thermal, is_leaf=_is_none) for m in motors(True, **losses))
    arrays, static = eqx.partition(System(ARM, parts), eqx.is_inexact_array)
    leaves, tree = jax.tree.flatten(arrays)
    numbers = np.ones(len(leaves)) if numbers is None else numbers
    return eqx.combine(tree.unflatten([x * n for x, n in zip(leaves, numbers, strict=True)]), static)


def _is_none(x):
    return x is None


def count_numbers(**losses):
    return len(jax.tree.leaves(eqx.filter(heated_arm(**losses), eqx.is_inexact_array)))


@pytest.mark.slow
def test_driven_robots_are_traced_once_per_shape():
    """Other numbers in all leaves, states, inputs and step sizes; another class of weak types; another horizon."""
    traces = []

    def volts(t, state):
        traces.append(1)
        return 3.0 - state.parts[0].current + state.q

    ts, rng = jnp.linspace(0.0, 0.002, 3), np.random.default_rng(4)
    losses = {"efficiency": (0.8, 0.7), "reverse_efficiency": (0.6, 0.5)}
    first = None
    for k in range(3):
        system = heated_arm(rng.uniform(0.9, 1.1, count_numbers(**losses)), **losses)
        parts = (MotorState(jnp.array(0.1 * k), jnp.array([30.0 + k, 25.0]), None), None, None)
        run = simulate(system, Q + k, V * k, ts * (k + 1), inputs=Inputs(volts), parts=parts, dt=5e-4 / (k + 1))
        assert run.status == jd.SimulationStatus.FINISHED
        first = len(traces) if first is None else first
        assert len(traces) == first > 0
    # numbers of the actuators without a type, such as 2.0 in place of an array
    weak = eqx.tree_at(lambda s: s.parts[0].gear, heated_arm(**losses), 45.0)
    simulate(weak, Q, V, ts, inputs=Inputs(volts), dt=5e-4)
    assert len(traces) == first


@pytest.mark.slow("3")
@pytest.mark.parametrize("size", [3, 4096])
def test_batches_of_robots_that_differ_in_every_number(size):
    """Samples of a batch, with other numbers in all leaves of robot and motors, equal single simulations."""
    losses = {"efficiency": (0.8, 0.7), "reverse_efficiency": (0.6, 0.5)}
    numbers = np.random.default_rng(5).uniform(0.9, 1.1, (size, count_numbers(**losses)))
    inputs = np.linspace(-1.0, 1.0, size)[:, None] * np.asarray(U)

    @jax.jit
    def run(numbers, inputs):
        return integrate_fixed_steps(
            System(*_with_inputs(heated_arm(numbers, **losses), inputs)), Q, V, 0.0, 5e-4, 20, solver=diffrax.Heun()
        )

    batch = jax.jit(jax.vmap(run))(numbers, inputs)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(batch))
    for k in np.linspace(0, size - 1, 3).astype(int):
        one = run(numbers[k], inputs[k])
        for x, y in zip(jax.tree.leaves(batch), jax.tree.leaves(one), strict=True):
            np.testing.assert_allclose(x[k], y, rtol=1e-10, atol=1e-11)
    assert np.ptp(np.asarray(batch.q[:, -1, 0])) > 1e-3


def _with_inputs(system, inputs):
    return system.model, (*system.parts, Inputs(inputs))


@pytest.mark.slow
def test_a_trajectory_returns_the_inputs_that_were_applied():
    """Of constants, laws of the state, and sampled controllers, which hold their output."""
    system, ts = System(ARM, motors()), jnp.linspace(0.0, 0.04, 9)
    law = lambda t, state: 10 * t + state.v
    run = simulate(system, Q, V, ts, inputs=law, dt=5e-3)
    np.testing.assert_allclose(run.inputs, 10 * run.t[:, None] + run.v, atol=1e-12)
    held = simulate(system, Q, V, ts, inputs=held_inputs(jnp.arange(10.0).reshape(5, 2), 0.01), dt=5e-3)
    # a row at an instant of a sample has the inputs up to it
    np.testing.assert_array_equal(held.inputs[1:, 0], [0, 0, 2, 2, 4, 4, 6, 6])
    assert simulate(ARM, Q, V, ts[:2], dt=0.01).inputs.shape == (2, 0)


def test_a_shaft_without_inertia_is_named():
    """The shaft of a transmission needs an inertia, or a motor with a rotor."""
    robot, springs = add_elastic_transmission(PENDULUM, PENDULUM.joint_names[0], Stage(10.0, 300.0, 1.0, 0.0))
    zeros, ts = jnp.zeros(2), jnp.array([0.0, 0.01])
    motor = DcMotor(springs.shafts[0], constant=0.1, resistance=1.0)
    for parts in ((springs,), (springs, motor)):
        with pytest.raises(jd.ModelError, match=r"joints \['\w+_shaft'\] move neither mass nor inertia"):
            simulate(System(robot, parts), zeros, zeros, ts, dt=0.01, inputs=jnp.ones(len(parts) - 1))
    with_rotor = eqx.tree_at(lambda m: m.rotor_inertia, motor, jnp.array(1e-3))
    FreeMotion().check(System(robot, (springs, with_rotor)).mounted_model)
