"""Constraints, regulators and identification of robots with elastic transmissions, supports and objects."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn.actuators import (
    DcMotor,
    ElasticSupport,
    Stage,
    add_elastic_object,
    add_elastic_transmission,
    on_elastic_support,
)
from jaxdyn.control import RiccatiStatus
from jaxdyn.identification import Log, OutputError, Physical, Windows, fit
from jaxdyn.joints import Prismatic
from jaxdyn.simulation import State, linear_signal, simulate, system_lqr
from jaxdyn.simulation.linearisation import linearise_system
from jaxdyn.spatial import box
from tests.actuators._elastic import flywheel

ARM = jd.robots.double_pendulum()
GRAVITY = 9.81


def height(p):
    return p[2]


def tip(q):
    """Height of the tip of the arm with two rods of 1 m that hang at zero."""
    return -jnp.cos(q[0]) - jnp.cos(q[0] + q[1])


def arm_on_a_plate(stiffness=400.0, mass=3.0):
    """The arm whose tip slides on a plate, which moves vertically on a spring; the rest of the plate is at -1.6 m."""
    plate = box([0.6, 0.6, 0.02], mass=mass)
    robot = add_elastic_object(
        ARM, "plate", plate, [Prismatic([0, 0, 1])], stiffness=stiffness, translation=(0.0, 0.0, -1.6)
    )
    contact = jc.OnSurface("contact", jc.End("tip", jnp.zeros(3)), height, "plate")
    return robot, jd.System(robot, motion=jc.ConstrainedMotion(contact))


@pytest.mark.slow
def test_constraint_on_an_elastic_object_has_the_equations_of_lagrange():
    """With the height of the plate from the angles, the system has two coordinates and no constraint."""
    robot, system = arm_on_a_plate()
    stiffness, mass = 400.0, 3.0
    place = robot.joint("plate_joint").v.start
    angles = [k for k in range(3) if k != place]
    q, v = jnp.array([0.6, -0.5]), jnp.array([0.3, -0.8])
    deflection = lambda q: tip(q) + 1.6

    def lagrangian(q, v):
        rate = jax.jvp(deflection, (q,), (v,))[1]
        arm = jd.kinetic_energy(ARM, q, v) - jd.potential_energy(ARM, q)
        return arm + mass * (rate**2 / 2 - GRAVITY * deflection(q)) - stiffness * deflection(q) ** 2 / 2

    @jax.jit
    def accelerations(q, v):
        momentum = jax.grad(lagrangian, 1)
        drift = jax.jvp(lambda q: momentum(q, v), (q,), (v,))[1]
        wanted = jnp.linalg.solve(jax.jacfwd(momentum, 1)(q, v), jax.grad(lagrangian)(q, v) - drift)
        whole = jnp.zeros(3).at[jnp.array(angles)].set(q).at[place].set(deflection(q))
        rates = jnp.zeros(3).at[jnp.array(angles)].set(v).at[place].set(jax.jvp(deflection, (q,), (v,))[1])
        return wanted, system.rate(0.0, State(whole, rates)).v

    wanted, found = accelerations(q, v)
    np.testing.assert_allclose(found[jnp.array(angles)], wanted, rtol=1e-10)


@pytest.mark.slow
def test_arm_slides_on_an_elastic_object():
    """The tip stays on the moving plate and the energy, with that of the spring, is constant."""
    robot, system = arm_on_a_plate()
    place = robot.joint("plate_joint").q.start
    angles = np.array([k for k in range(3) if k != place])
    start = np.zeros(3)
    start[angles], start[place] = (0.6, -0.5), float(tip(jnp.array([0.6, -0.5]))) + 1.6
    run = simulate(system, jnp.asarray(start), jnp.zeros(3), jnp.linspace(0.0, 1.0, 11), dt=2e-3).checked()
    q = np.asarray(run.q)
    tips = -np.cos(q[:, angles[0]]) - np.cos(q[:, angles].sum(1))
    np.testing.assert_allclose(tips, q[:, place] - 1.6, atol=1e-9)
    assert np.ptp(q[:, place]) > 0.02
    energy = np.asarray(run.kinetic_energy + run.potential_energy) + 200.0 * q[:, place] ** 2
    np.testing.assert_allclose(energy, energy[0], atol=1e-7)


@pytest.mark.exhaustive
def test_constrained_arm_on_an_elastic_support():
    """The tip of an arm is pinned to the world while its base moves on springs: against numpy."""
    base = box([0.4, 0.4, 0.2], mass=20.0)
    robot, support = on_elastic_support(ARM, [300.0, 300, 300, 4e3, 4e3, 4e3], base=base, damping=5.0)
    start = jd.integrate(robot, jd.neutral(robot), jnp.array([0.02, -0.01, 0.03, 0.01, 0.02, -0.02, 0.5, -0.9]))
    at_tip = lambda q: jd.frame_pose(robot, q, "tip").translation
    pin = jc.PointClosure("pin", jc.End("tip", jnp.zeros(3)), jc.End("world", at_tip(start)))
    system = jd.System(robot, (support,), motion=jc.ConstrainedMotion(pin))

    @jax.jit
    def terms(q):
        a = jax.jacfwd(lambda d: at_tip(jd.integrate(robot, q, d)))(jnp.zeros(robot.nv))
        zero = jnp.zeros(robot.nv)
        force = support.act(robot, 0.0, q, zero, None).effort - jd.gravity_forces(robot, q)
        return jd.mass_matrix(robot, q), a, force, system.rate(0.0, system.initial(q, zero)).v

    m, a, force, found = (np.asarray(x) for x in terms(start))
    # at rest the drift of the constraint is zero
    system_matrix = np.block([[m, -a.T], [a, np.zeros((3, 3))]])
    np.testing.assert_allclose(found, np.linalg.solve(system_matrix, np.append(force, np.zeros(3)))[:8], atol=1e-9)
    run = simulate(system, start, jnp.zeros(8), jnp.array([0.0, 0.1]), dt=2e-3).checked()
    np.testing.assert_allclose(jax.jit(at_tip)(run.q[-1]), at_tip(start), atol=1e-9)
    assert np.abs(np.asarray(run.q[-1] - run.q[0])).max() > 1e-3


RATIO, STIFFNESS, DAMPING, ROTOR, LOAD = 20.0, 800.0, 0.5, 2e-3, 0.8
VOLT, OHM, HENRY = 0.06, 1.2, 4e-3


def series_elastic():
    """A wheel behind an elastic transmission and its motor, the part of the springs, and their indices."""
    stage = Stage(RATIO, STIFFNESS, DAMPING, input_inertia=0.0)
    robot, springs = add_elastic_transmission(flywheel(LOAD), "joint", stage)
    motor = DcMotor(springs.shafts[0], constant=VOLT, resistance=OHM, inductance=HENRY, rotor_inertia=ROTOR)
    return robot, springs, motor, robot.joint("joint").v.start, robot.joint(springs.shafts[0]).v.start


@pytest.mark.slow
def test_regulator_of_an_elastic_transmission_has_the_gain_of_its_equations():
    """States (q, theta, v, w, i): inertia of the load, rotor, spring over the ratio, winding."""
    robot, springs, motor, load, shaft = series_elastic()
    pull = lambda k, d: {"q": -k, "theta": k / RATIO, "v": -d, "w": d / RATIO}  # torque on the load
    order = ["q", "theta", "v", "w", "i"]
    torque = np.array([pull(STIFFNESS, DAMPING).get(name, 0.0) for name in order])
    a = np.zeros((5, 5))
    a[0, 2] = a[1, 3] = 1
    a[2] = torque / LOAD
    a[3] = -torque / RATIO / ROTOR
    a[3, 4] += VOLT / ROTOR
    a[4, 3], a[4, 4] = -VOLT / HENRY, -OHM / HENRY
    b = np.array([[0, 0, 0, 0, 1 / HENRY]]).T
    cost = np.diag([1e3, 0.0, 10.0, 0.0, 1e-2])
    gain = b.T @ scipy.linalg.solve_continuous_are(a, b, cost, np.eye(1))
    places = np.array([load, shaft, 2 + load, 2 + shaft, 4])
    whole = np.zeros((5, 5))
    whole[np.ix_(places, places)] = cost
    system = jd.System(robot, (springs, motor))
    found = system_lqr(system, State(jnp.zeros(2), jnp.zeros(2)), jnp.zeros(1), jnp.asarray(whole), jnp.eye(1))
    assert found.riccati.status == RiccatiStatus.SOLVED
    np.testing.assert_allclose(found.controller.gain[:, places], gain, rtol=1e-7)


@pytest.mark.exhaustive
def test_regulator_holds_an_arm_on_an_elastic_support_upright():
    """The regulator measures the base, too: its poles are those of the linearised system, and the arm comes to rest."""
    rod = jd.robots.pendulum()
    base = box([0.4, 0.4, 0.2], mass=15.0)
    upright = jnp.array([jnp.pi])
    stiffness = jnp.array([900.0, 900, 900, 9e3, 9e3, 9e3])
    robot, support = on_elastic_support(rod, stiffness, base=base, damping=80.0, equilibrium=upright)
    motor = DcMotor(rod.joint_names[0], constant=0.06, resistance=1.0, gear=30.0, rotor_inertia=1e-4)
    system = jd.System(robot, (support, motor))
    rest = State(jnp.concatenate([support.rest, upright]), jnp.zeros(7))
    assert isinstance(support, ElasticSupport)
    np.testing.assert_allclose(system.rate(0.0, system.initial(rest.q, rest.v), jnp.zeros(1)).v, 0, atol=1e-9)
    found = system_lqr(system, rest, jnp.zeros(1), jnp.eye(14), 0.1 * jnp.eye(1))
    assert found.riccati.status == RiccatiStatus.SOLVED
    a, b = (np.asarray(x) for x in linearise_system(system, system.initial(rest.q, rest.v), jnp.zeros(1)))
    assert np.linalg.eigvals(a).real.max() > 1.0  # the arm falls without control
    wanted = scipy.linalg.solve_continuous_are(a, b, np.eye(14), 0.1 * np.eye(1))
    np.testing.assert_allclose(found.riccati.cost, wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max())
    start = jd.integrate(robot, rest.q, jnp.array([0.01, 0.02, 0.0, 0.005, 0.0, 0.01, 0.05]))
    run = simulate(system, start, jnp.zeros(7), jnp.array([0.0, 8.0]), inputs=found.controller, dt=5e-3).checked()
    left = jd.difference(robot, rest.q, run.q[-1])
    assert np.abs(left).max() < 2e-3 and abs(left[-1]) < 1e-3


@pytest.mark.slow
def test_stiffness_and_damping_of_a_transmission_from_two_encoders():
    """Both are found within their standard deviations from a log of shaft and joint with noise."""
    robot, springs = add_elastic_transmission(flywheel(LOAD), "joint", Stage(RATIO, STIFFNESS, DAMPING, ROTOR))
    shaft = robot.joint(springs.shafts[0]).v.start
    t = np.arange(401) * 5e-3
    effort = np.zeros((t.size, 2))
    effort[:, shaft] = 0.3 * np.sin(12.0 * t) + 0.2 * np.sin(25.0 * t + 1.0)
    signal = linear_signal(jnp.asarray(t), jnp.asarray(effort))
    run = simulate(jd.System(robot, (springs,)), jnp.zeros(2), jnp.zeros(2), jnp.asarray(t), effort=signal)
    noise = np.random.default_rng(2).normal(size=(t.size, 2)) * np.where(np.arange(2) == shaft, 1e-3, 1e-4)
    log = Log(t, np.asarray(run.q) + noise, np.asarray(run.v), None, effort, "elastic")
    paths = tuple(f"parts[TransmissionSprings].stages.0.{name}" for name in ("stiffness", "damping"))
    guess = jd.System(robot, (jd.actuators.TransmissionSprings(
        springs.joint, springs.shafts, (Stage(RATIO, 600.0, 0.2, ROTOR),)
    ),))  # fmt: skip
    found = fit(guess, log, paths, OutputError(Windows(length=0.5, lead=0.1, substeps=4), Physical())).checked()
    rows = {row.name: row for row in found.parameters}
    for name, truth, share in zip(paths, (STIFFNESS, DAMPING), (0.05, 0.15), strict=True):
        assert abs(rows[name].value - truth) < 4 * rows[name].deviation and rows[name].deviation < share * truth
        assert rows[name].unit in ("N m/rad", "N m s/rad")


def test_unknown_stages_are_refused():
    robot, springs, motor, *_ = series_elastic()
    for field in ("stages.3.stiffness", "stages.stiffness", "stages.0.backlash"):
        with pytest.raises(jd.ModelError, match="parts\\[TransmissionSprings\\]"):
            jd.identification.collect(jd.System(robot, (springs, motor)), f"parts[TransmissionSprings].{field}")
