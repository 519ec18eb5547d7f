"""Actuators of every kind: balance of power, gradients, inverses, and closed forms."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
from jax.flatten_util import ravel_pytree

import jaxdyn as jd
from jaxdyn.actuators import (
    CoordinateFriction,
    DcMotor,
    HydraulicCylinder,
    JointMotion,
    LinearActuator,
    LinearEffort,
    LuGreFriction,
    SteppingMotor,
    SynchronousMotor,
)
from jaxdyn.simulation import Inputs, State, drive_loads, integrate_fixed_steps
from tests.actuators._kinds import FRICTIONS, JOINT, KINDS, PENDULUM

Q, V = jnp.array([0.4]), jnp.array([0.6])
KIND = pytest.mark.parametrize("kind", KINDS)


def _state(actuator, seed=1):
    """A random state of an actuator, near its initial one."""
    start = actuator.initial(PENDULUM, Q, V)
    flat, unravel = ravel_pytree(start)
    if not flat.size:
        return start
    return unravel(flat + jnp.asarray(np.random.default_rng(seed).uniform(0.3, 1.0, flat.size)))


def _stored_energy(actuator, q, v, state, reference):
    """Energy of fields, springs and moving masses, written down from the equations."""
    if isinstance(actuator, DcMotor | SynchronousMotor):
        phases = 1.5 if isinstance(actuator, SynchronousMotor) else 1.0
        energy = actuator.rotor_inertia * (actuator.gear * v) ** 2 / 2 + actuator.cogging.energy(actuator.gear * q)
        if actuator.inductance is not None:
            energy = energy + phases * actuator.inductance * state.current**2 / 2
        if actuator.friction is not None and state.friction is not None:
            energy = energy + actuator.friction.energy(state.friction)
        return energy
    if isinstance(actuator, SteppingMotor):
        lag = actuator.pole_pairs * (actuator.gear * q - reference)
        field = -actuator.holding_torque * jnp.cos(lag) / actuator.pole_pairs
        return field + actuator.rotor_inertia * (actuator.gear * v) ** 2 / 2
    if isinstance(actuator, LinearEffort):
        return 0.0 * v
    if isinstance(actuator, LinearActuator):
        mass = -1 / (actuator.f[1] if actuator.f.ndim else actuator.f)
        speed = actuator.gear * v
        compression = 0.0
    else:
        modulus = getattr(actuator, "bulk_modulus", None)
        modulus = actuator.polytropic_exponent * actuator.pressure if modulus is None else modulus
        mass, compression = actuator.mass, actuator.volume * state[0] ** 2 / (8 * modulus)
        speed = actuator.lever * v
    if actuator.mechanism is not None:
        speed = jax.jvp(actuator.mechanism, (q,), (v,))[1]
    return mass * speed**2 / 2 + compression


@eqx.filter_jit
def _balance(actuator, u, udot):
    """The balance of power in a random state, with the rates of the stored energies of actuator and pendulum."""
    system = jd.System(PENDULUM, (actuator,), passive=False)
    state = State(Q, V, (_state(actuator),))
    rate = system.rate(0.0, state, u[None])
    flow = actuator.power_flow(system.mounted_model, 0.0, Q, V, rate.v, state.parts[0], u[None], udot[None])
    at = lambda q, v, x, r: _stored_energy(actuator, q, v, x, r)
    point, along = (Q[0], V[0], state.parts[0], u), (V[0], rate.v[0], rate.parts[0], udot)
    _, stored = eqx.filter_jvp(at, point, along)
    energy = lambda q, v: jd.kinetic_energy(PENDULUM, q, v) + jd.potential_energy(PENDULUM, q)
    _, robot = jax.jvp(energy, (Q, V), (V, rate.v))
    return flow, flow.supply - flow.heat - flow.stored - flow.mechanical, stored, robot


@pytest.mark.slow("dc", "hydraulic", "stepping")
@KIND
def test_supply_is_heat_stored_and_mechanical_power(kind):
    """Each term by itself: the stored one is the derivative of an energy along the motion, the mechanical one the
    derivative of the robot's energy. The integrals over any motion then agree as well.
    """
    actuator, u = KINDS[kind]
    flow, rest, stored, robot = _balance(actuator, jnp.array(u), jnp.array(0.3))
    scale = max(float(jnp.max(jnp.abs(jnp.stack(jax.tree.leaves(flow))))), 1e-3)
    assert scale > 1e-2
    assert abs(rest) < 1e-12 * scale
    assert abs(flow.stored - stored) < 1e-11 * scale
    assert abs(flow.mechanical - robot) < 1e-11 * scale
    losses = np.array([flow.copper_loss, flow.friction_loss, flow.gear_loss])
    assert (losses >= -1e-12).all()


@pytest.mark.exhaustive
@KIND
def test_supplied_energy_is_heat_stored_and_mechanical_energy(kind):
    """Over a trajectory, to the errors of integration and of Simpson's rule."""
    actuator, u = KINDS[kind]
    system = jd.System(PENDULUM, (actuator,), passive=False)
    times = jnp.linspace(0.0, 0.3, 1201)
    options = {"inputs": jnp.array([u]), "parts": (_state(actuator), None), "rtol": 1e-9, "atol": 1e-10}
    run = jd.simulate(system, Q, V, times, max_steps=100_000, **options).checked()
    power = drive_loads(run).power
    integral = lambda y: scipy.integrate.simpson(np.asarray(y)[:, 0], x=np.asarray(times))
    ends = [(run.q[k], run.v[k], jax.tree.map(lambda x, k=k: x[k], run.parts[0])) for k in (0, -1)]
    stored = [_stored_energy(actuator, q[0], v[0], x, u) for q, v, x in ends]
    robot = [jd.kinetic_energy(PENDULUM, q, v) + jd.potential_energy(PENDULUM, q) for q, v, _ in ends]
    rest = integral(power.supply - power.heat) - (stored[1] - stored[0]) - (robot[1] - robot[0])
    scale = integral(jnp.abs(power.supply) + jnp.abs(power.heat) + jnp.abs(power.mechanical))
    assert abs(rest) < 1e-6 * scale


@pytest.mark.slow
def test_heat_of_a_motor_warms_its_nodes():
    """Losses of winding and bearings are the heat that the nodes store and give to the ambient air."""
    motor, u = KINDS["dc"]
    flow, *_ = _balance(motor, jnp.array(u), jnp.array(0.0))
    system, state = jd.System(PENDULUM, (motor,), passive=False), State(Q, V, (_state(motor),))
    thermal, temperature = motor.thermal, state.parts[0].temperature
    rates = system.rate(0.0, state, jnp.array([u])).parts[0].temperature
    warmed = thermal.winding_capacity * rates[0] + thermal.housing_capacity * rates[1]
    expected = flow.copper_loss + flow.friction_loss
    assert abs(warmed + thermal.heat_flow(temperature) - expected) < 1e-11 * expected


@eqx.filter_jit
def _round_trip(actuator, u):
    """The inputs that the motion under the inputs u requires, with its jerk in forward mode, and the state."""
    system = jd.System(PENDULUM, (actuator,))
    state = State(Q, V, (_state(actuator),))

    def acceleration(s):
        rate = system.rate(0.0, state, u[None])
        moved = jax.tree.map(lambda x, r: x + s * r, state, State(V, rate.v, rate.parts))
        return system.rate(0.0, moved, u[None]).v

    a, jerk = jax.jvp(acceleration, (0.0,), (1.0,))
    need = jd.simulation.required_inputs(system, 0.0, Q, V, a, jerk, parts=state.parts)
    return need, state.parts[0]


@pytest.mark.slow("dc", "hydraulic")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("linear", "linear_effort")])
def test_required_inputs_return_the_inputs_of_a_motion(kind):
    actuator, u = KINDS[kind]
    if hasattr(actuator, "voltage_limit"):  # the inverse has no limits
        names = lambda m: (m.voltage_limit, m.current_limit)
        actuator = eqx.tree_at(names, actuator, (jnp.array(1e6), jnp.array(1e6)))
        actuator = eqx.tree_at(lambda m: m.saturation_width, actuator, jnp.array(0.0))
    u = u if kind != "stepping" else 2.1  # within the pull-out angle
    need, state = _round_trip(actuator, jnp.array(u))
    np.testing.assert_allclose(need.inputs, [u], rtol=1e-9)
    for found, given in zip(jax.tree.leaves(need.parts), jax.tree.leaves(state), strict=True):
        np.testing.assert_allclose(found, given, rtol=1e-10)
    assert not need.is_saturated.any()


def test_motions_that_do_not_determine_the_input_are_refused():
    motion = JointMotion(*jnp.zeros(4))
    with pytest.raises(jd.ModelError, match="do not follow from position to jerk"):
        KINDS["linear"][0].requirement(motion, motion, jnp.zeros(1))
    effort = LinearEffort(JOINT, [0.0, 0, 1, 1], 0.0, jnp.zeros((2, 4)))
    with pytest.raises(jd.ModelError, match="it has 2 states"):
        effort.requirement(motion, motion, jnp.zeros(2))
    with pytest.raises(jd.ModelError, match="has its own voltage"):
        DcMotor(JOINT, 3.0, constant=1.0, resistance=1.0).requirement(motion, motion, None)
    assert np.isnan(KINDS["linear_effort"][0].requirement(motion, motion, jnp.zeros(1)).inputs).all()
    with pytest.raises(jd.ShapeError, match="a LinearEffort has c"):
        LinearEffort(JOINT, [0.0, 0, 1], 0.0)


def _final_state(theta, unravel, static, adjoint):
    """State after 8 steps as a function of all numbers of the parts."""
    parts = eqx.combine(unravel(theta), static)
    system = jd.System(PENDULUM, parts)
    path = integrate_fixed_steps(system, Q, V, 0.0, 0.01, 8, solver=diffrax.Heun(), adjoint=adjoint)
    return jnp.concatenate([path.q[-1], path.v[-1]])


@pytest.mark.slow("dc")
@pytest.mark.parametrize("kind", [*KINDS, *FRICTIONS])
def test_derivatives_with_respect_to_every_number(kind):
    """Through a simulation, in forward and reverse mode against central differences; no number is without effect."""
    if kind in KINDS:
        actuator, u = KINDS[kind]
        parts = (actuator, Inputs(jnp.array([u])))
    else:
        parts = (FRICTIONS[kind],)
    numbers, static = eqx.partition(parts, eqx.is_inexact_array)
    theta, unravel = ravel_pytree(numbers)
    final = lambda adjoint: lambda x: _final_state(x, unravel, static, adjoint)
    forward = jax.jit(jax.jacfwd(final(diffrax.ForwardMode())))(theta)
    reverse = jax.jit(jax.jacrev(final(None)))(theta)
    scale = jnp.where(theta == 0, 1.0, jnp.abs(theta))
    steps = 1e-5 * jnp.diag(scale)
    values = jax.jit(jax.vmap(final(None)))(jnp.concatenate([theta + steps, theta - steps]))
    central = ((values[: len(theta)] - values[len(theta) :]) / 2e-5).T
    np.testing.assert_allclose(forward * scale, central, atol=2e-8)
    np.testing.assert_allclose(reverse, forward, rtol=1e-9, atol=1e-12)
    has_effect = jax.tree.map(lambda x: bool(jnp.any(x != 0)), jax.vmap(unravel)(forward))
    names = [jax.tree_util.keystr(path) for path, x in jax.tree_util.tree_leaves_with_path(has_effect) if not x]
    assert names == WITHOUT_EFFECT.get(kind, [])


#: numbers without effect: a gear that a mechanism replaces, a limit that is not reached, a width without losses
WITHOUT_EFFECT = {
    "dc_without_inductance": ["[0].width"],
    "dc_current": ["[0].width"],
    "hydraulic": ["[0].input_limit"],
    "hydraulic_crank": ["[0].lever"],
    "linear_crank": ["[0].gear", "[0].saturation_width"],
    "linear_effort": ["[0].input_limit"],
}


def test_synchronous_motor_is_the_direct_current_motor_of_its_equations():
    """`C_M = 1.5 p psi`, `C_E = p psi`; power and heat of three phases."""
    motor, u = KINDS["synchronous"]
    same = motor.equivalent
    np.testing.assert_allclose([same.constant, same.back_emf], [1.5 * 7 * 0.08, 7 * 0.08], rtol=1e-15)
    state = _state(motor)
    flow = same.flow(0.4, 0.6, state, u)
    resistance, constant, _ = same.constants(state.temperature)
    np.testing.assert_allclose(flow.copper_loss, 1.5 * resistance * state.current**2, rtol=1e-12)
    np.testing.assert_allclose(flow.air_gap_torque, constant * state.current, rtol=1e-12)
    with pytest.raises(jd.ModelError, match="has no voltage and no inductance"):
        SynchronousMotor(
            JOINT, pole_pairs=7, flux_linkage=0.1, resistance=1.0, inductance=1.0, input_quantity="current"
        )


def test_stepping_motor_is_stiff_about_its_field_and_slips_beyond_the_pull_out_torque():
    motor = KINDS["stepping"][0]
    slope = jax.grad(lambda q: motor.torque(q, 0.0, 0.3) / motor.gear)(0.3 / motor.gear)
    np.testing.assert_allclose([motor.stiffness, -slope], [12.0, 12.0], rtol=1e-12)
    form = motor.canonical_form(0.3, 0.2, None)
    np.testing.assert_allclose(form.effort_gain, 5 * 12.0, rtol=1e-15)
    np.testing.assert_allclose(form.effort, -25 * 12.0 * 0.3 - 25 * 0.05 * 0.2, rtol=1e-14)
    still = JointMotion(*jnp.zeros(4))
    need = motor.requirement(still._replace(effort=jnp.array(11.0)), still, None)
    assert np.isnan(need.inputs[0])
    np.testing.assert_allclose(need.margins["pull_out_torque"], 2.0 - 11 / 5, rtol=1e-12)


def test_hydraulic_cylinder_matches_its_matrices():
    """`C = [[0, 1, 0], [0, -B/m, A/m], [0, -4 beta A/V, -4 beta k_c/V]]`, `d = (0, 0, 4 beta k_q/V)`, `f_2 = -1/m`."""
    cylinder: HydraulicCylinder = KINDS["hydraulic"][0]
    same = cylinder.equivalent
    A, V_oil, beta, k_q, k_c, m, B = 1e-3, 4e-4, 1e6, 1e-3, 1e-9, 2.0, 100.0
    C = [[0, 1, 0], [0, -B / m, A / m], [0, -4 * beta * A / V_oil, -4 * beta * k_c / V_oil]]
    np.testing.assert_allclose(same.C, C, rtol=1e-14)
    np.testing.assert_allclose([same.f, same.d, same.gear], [-1 / m, 4 * beta * k_q / V_oil, 0.2], rtol=1e-14)
    air = KINDS["pneumatic"][0].equivalent
    np.testing.assert_allclose(air.d, 4 * 1.4 * 6e5 * k_q / V_oil, rtol=1e-14)


def test_lugre_friction_of_a_coordinate_is_that_of_a_rotor():
    """A rotor without mass and electricity on a gear of ratio one."""
    friction: LuGreFriction = FRICTIONS["coordinate_friction"].friction
    part = CoordinateFriction(friction, joints=(JOINT,))
    action = part.act(PENDULUM, 0.0, Q, V, jnp.array([0.02]))
    torque, rate = friction.torque(V[0], 0.02)
    np.testing.assert_allclose([action.effort[0], action.rate[0]], [-torque, rate], rtol=1e-15)
    np.testing.assert_allclose(part.energy(jnp.array([0.02])), 3.0 * 0.02**2 / 2, rtol=1e-14)
