"""Elastic transmissions against closed forms, energy balances and central differences."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import jaxdyn as jd
from jaxdyn.actuators import (
    Backlash,
    BoucWen,
    CubicSpring,
    DcMotor,
    LinearSpring,
    PiecewiseLinearSpring,
    Stage,
    add_elastic_transmission,
    add_rotor,
)
from jaxdyn.joints import Prismatic
from jaxdyn.spatial import Inertia, point_mass

from ._elastic import Metered, flywheel, state_matrix, undamped_modes

#: data of the reference: I, J + I', I'', N, c
LOAD, ROTOR, GEAR, RATIO, STIFFNESS = 0.8, 2e-4 + 5e-5, 0.02, 80.0, 5000.0
REFLECTED = RATIO**2 * (ROTOR + GEAR / RATIO**2)


def transmission(stiffness=STIFFNESS, damping=None):
    stage = Stage(RATIO, stiffness, damping, input_inertia=ROTOR, output_inertia=GEAR)
    return add_elastic_transmission(flywheel(LOAD), "joint", stage)


def driven(stiffness, damping):
    robot, springs = transmission(stiffness, damping)
    motor = DcMotor("joint_shaft", 0.0, constant=0.06, resistance=1.2)
    return jd.System(robot, (springs, motor))


def test_inertia_and_frequencies_of_the_reference():
    robot, springs = transmission()
    assert springs.shafts == ("joint_shaft",) and abs(springs.stages[0].shaft_inertia - 2.53125e-4) < 1e-18
    np.testing.assert_allclose(REFLECTED, 1.62, rtol=1e-14)
    result = undamped_modes(robot, springs)
    np.testing.assert_allclose(result.frequencies, [0, 96.62515072736714], rtol=1e-12)
    heavy = eqx.tree_at(lambda p: p.stages[0].input_inertia, springs, jnp.array(1e9))
    locked = undamped_modes(robot, heavy)
    np.testing.assert_allclose(locked.frequencies[1], 79.05694150420949, rtol=1e-12)


@pytest.mark.slow
def test_poles_of_the_reference_and_their_rigid_limit():
    poles = np.linalg.eigvals(state_matrix(driven(STIFFNESS, 2.0)))
    poles = poles[np.lexsort((poles.imag, -poles.real))]
    oscillation = -3.8130195486 + 96.3888172483j
    np.testing.assert_allclose(poles, [0, oscillation.conjugate(), oscillation, -7.9603806559], atol=2e-9)
    # the slow pole approaches that of the rigid robot with the first order of 1 / c
    slow = lambda c: min(np.linalg.eigvals(state_matrix(driven(c, 2.0))), key=lambda s: abs(s + 7.93)).real
    limit = -(0.06**2) / 1.2 * RATIO**2 / (LOAD + REFLECTED)
    np.testing.assert_allclose(limit, -7.9338842975, atol=1e-10)
    found = np.array([slow(c) for c in (5e4, 5e5, 5e6)])
    np.testing.assert_allclose(found, [-7.936526623, -7.934148456643, -7.933910712683], atol=2e-9)
    np.testing.assert_allclose((found - limit)[:-1] / (found - limit)[1:], 10, rtol=1e-3)


@pytest.mark.slow
def test_springs_in_series_are_one_spring():
    stages = [Stage(3.0, 40.0, input_inertia=1e-3, output_inertia=9e-3), Stage(4.0, 6000.0, damping=0.5)]
    robot, springs = add_elastic_transmission(flywheel(), "joint", stages)
    (stage,) = springs.equivalent
    np.testing.assert_allclose(stage.stiffness, 578.313253012, rtol=1e-12)
    assert springs.ratio == 12 and stage.ratio == 12 and robot.nv == 2
    np.testing.assert_allclose(stage.shaft_inertia, 2e-3, rtol=1e-14)
    # a shaft between the stages with an inertia that vanishes gives the same low frequency
    with_shaft, both = add_elastic_transmission(flywheel(), "joint", [stages[0], Stage(4.0, 6000.0, None, 1e-9)])
    found = undamped_modes(with_shaft, both).frequencies
    merged = undamped_modes(robot, springs).frequencies
    assert abs(found[1] / merged[1] - 1) < 1e-6


@pytest.mark.slow
def test_two_stages_match_their_equations():
    """`J_k theta_(k-1)'' = T_(k-1) - T_k / N_k`, with frequencies from scipy."""
    stages = [Stage(3.0, 40.0, 0.1, 1e-3, 9e-3), Stage(4.0, 6000.0, 0.5, input_inertia=2e-3)]
    robot, springs = add_elastic_transmission(flywheel(), "joint", stages)
    assert robot.joint_names == ("joint", "joint_shaft", "joint_shaft2")
    q, v = jnp.array([0.1, 2.0, 0.5]), jnp.array([-1.0, 3.0, 0.2])
    rate = jax.jit(lambda s, q, v: s.rate(0.0, s.initial(q, v)))(jd.System(robot, (springs,)), q, v)
    first = 40.0 * (2.0 / 3 - 0.5) + 0.1 * (3.0 / 3 - 0.2)
    second = 6000.0 * (0.5 / 4 - 0.1) + 0.5 * (0.2 / 4 + 1.0)
    np.testing.assert_allclose(springs.torques(robot, q, v), [first, second], rtol=1e-14)
    np.testing.assert_allclose(rate.v, [second / 0.8, -first / 3 / 2e-3, (first - second / 4) / 2e-3], rtol=1e-12)
    result = undamped_modes(robot, springs)
    row = np.array([[0, 1 / 3, -1], [-1, 0, 1 / 4]])
    k, m = row.T @ np.diag([40.0, 6000.0]) @ row, np.diag([0.8, 2e-3, 2e-3])
    np.testing.assert_allclose(result.eigenvalues, scipy.linalg.eigh(k, m)[0], rtol=1e-10, atol=1e-9)


def test_static_deflection():
    """`q = theta / N - tau / c`, in both directions."""
    _, springs = transmission(CubicSpring(STIFFNESS, 1e8))
    robot, linear = transmission()
    torque = jnp.array(70.0)
    np.testing.assert_allclose(linear.shaft_angles(jnp.array(0.3), torque), [RATIO * (0.3 + 70 / 5000)], rtol=1e-14)
    angle = springs.shaft_angles(jnp.array(0.3), torque)[0]
    at = springs.torques(robot, jnp.array([0.3, angle]), jnp.zeros(2))
    np.testing.assert_allclose(at, [70.0], rtol=1e-12)


SPRINGS = {
    "linear": LinearSpring(300.0),
    "cubic": CubicSpring(100.0, 5e4),
    "softening-then-hardening": PiecewiseLinearSpring([0.1, 0.2, 0.4], [10.0, 15.0, 80.0]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SPRINGS)
def test_spring_laws_are_consistent(name):
    spring = SPRINGS[name]
    x = jnp.array([-0.5, -0.15, 0.0, 0.03, 0.25, 0.7])
    torque, slope = jax.vmap(jax.value_and_grad(spring.energy))(x)
    np.testing.assert_allclose(slope, jax.vmap(spring.torque)(x), rtol=1e-12, atol=1e-12)
    assert torque[2] == 0 and (torque >= 0).all()
    np.testing.assert_allclose(jax.vmap(lambda x: spring.deflection(spring.torque(x)))(x), x, atol=1e-13)
    # the inverse has derivatives with respect to torque and numbers: d x = (d T - dT/dc dc) / (dT/dx)
    back = lambda s, torque: s.deflection(torque)
    at = jnp.array(0.25)
    by_number, by_torque = jax.grad(back, (0, 1))(spring, spring.torque(at))
    np.testing.assert_allclose(by_torque, 1 / jax.grad(spring.torque)(at), rtol=1e-12)
    expected = jax.tree.map(lambda g: -g * by_torque, jax.grad(lambda s: s.torque(at))(spring))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-16), by_number, expected)


def test_piecewise_stiffness_of_a_catalogue():
    k, limits = np.array([8e3, 1e4, 1.3e4]), np.array([7.0, 25.0])
    knots = np.cumsum([limits[0] / k[0], (limits[1] - limits[0]) / k[1], 10.0 / k[2]])
    spring = PiecewiseLinearSpring(knots, [*limits, limits[1] + 10])
    slopes = [jax.grad(spring.torque)(x) for x in (0.0, -5e-4, 2e-3, -2e-3, 4e-3, 1.0)]
    np.testing.assert_allclose(slopes, k[[0, 0, 1, 1, 2, 2]], rtol=1e-12)
    with pytest.raises(jd.ModelError, match="positive numbers that increase"):
        PiecewiseLinearSpring([0.1, 0.1], [1.0, 2.0])


def test_backlash_transmits_nothing_in_the_gap_and_never_pulls():
    b, w = 1e-2, 2e-3
    stage = Stage(1.0, 500.0, 0.8, 1.0, backlash=Backlash(b, w))
    torque = jax.vmap(lambda x, rate: stage.torque(x, rate, None))
    x = jnp.linspace(-3 * b, 3 * b, 2001)
    for rate in (-20.0, 0.0, 20.0):
        t = torque(x, jnp.full_like(x, rate))
        assert (t[jnp.abs(x) <= b - w] == 0).all() and (t * x >= 0).all()
        # continuous: the largest step is that of the steepest slope of the blend, 3 c / 2 + d rate / w
        assert jnp.abs(jnp.diff(t)).max() <= 1.01 * (1.5 * 500 + 0.8 * 20 / w) * (x[1] - x[0])
    still = torque(x, jnp.zeros_like(x))
    engaged = jnp.abs(x) >= b + w
    np.testing.assert_allclose(still[engaged], (500 * (jnp.abs(x) - b) * jnp.sign(x))[engaged], rtol=1e-12)
    np.testing.assert_allclose(still, jax.vmap(jax.grad(lambda x: stage.energy(x, None)))(x), rtol=1e-11, atol=1e-12)
    with pytest.raises(jd.ModelError, match="0 < blend <= half_width"):
        Backlash(0.0, 0.0)


def test_hysteresis_follows_the_curve_of_dahl():
    """At `sigma = n = 1` and growing deflection `z = 1 - exp(-x / x_0)`, and a reversal has a closed form."""
    element = BoucWen(limit=3.0, deflection=0.01)

    def run(z, length, n=400):
        def step(z, _):
            f = lambda z: element.rate(z, jnp.asarray(length))
            k1 = f(z)
            k2 = f(z + k1 / n / 2)
            k3 = f(z + k2 / n / 2)
            return z + (k1 + 2 * k2 + 2 * k3 + f(z + k3 / n)) / n / 6, None

        return jax.lax.scan(step, z, None, length=n)[0]

    up = run(jnp.zeros(()), 0.02)
    np.testing.assert_allclose(up, 1 - np.exp(-2), atol=1e-9)
    np.testing.assert_allclose(run(up, -0.03), -1 + (1 + up) * np.exp(-3), atol=1e-9)
    slope = jax.grad(lambda z, e: e.rate(z, jnp.asarray(2.0)), (0, 1))(jnp.zeros(()), element)
    np.testing.assert_allclose(slope[0], -200.0, rtol=1e-12)  # -|xdot| / x_0 at z = 0
    assert all(np.isfinite(x) for x in jax.tree.leaves(slope))


def everything():
    """Two shafts with backlash, damping, hysteresis and nonlinear springs, in leaves that are all in use."""
    stages = [
        Stage(5.0, 60.0, 0.05, 2e-3, 4e-3, backlash=Backlash(0.05, 0.02)),
        Stage(3.0, CubicSpring(300.0, 900.0), 0.2, 5e-3, 9e-3, hysteresis=BoucWen(4.0, 0.02, 0.9, 1.5)),
    ]
    return add_elastic_transmission(flywheel(0.3), "joint", stages)


Q, V = jnp.array([0.02, 0.9, 0.1]), jnp.array([-1.0, 12.0, 4.0])


@pytest.mark.slow
def test_energy_is_balanced():
    robot, springs = everything()
    system = jd.System(robot, (Metered(springs),))
    path = jd.simulate(system, Q, V, jnp.linspace(0.0, 0.6, 121), rtol=1e-9, atol=1e-9)
    assert path.status == jd.SimulationStatus.FINISHED
    mounted = springs.mount(robot)
    kinetic = jax.vmap(lambda q, v: jd.kinetic_energy(mounted, q, v))(path.q, path.v)
    inner, lost = path.parts[0]
    stored = jax.vmap(lambda q, z: springs.potential_energy(robot, q, z))(path.q, inner)
    total = kinetic + stored + lost
    assert jnp.abs(total - total[0]).max() < 1e-7 * total[0]
    assert (jnp.diff(lost) >= -1e-10).all() and lost[-1] > 0.2 * total[0]
    gap = path.q[:, 1] / 5 - path.q[:, 2]
    assert (gap > 0.05).any() and (gap < -0.05).any()  # both flanks were in contact


def test_dissipation_of_a_linear_stage():
    robot, springs = transmission(damping=2.0)
    meter = Metered(springs)
    q, v = jnp.array([0.1, 9.0]), jnp.array([0.4, 80.0])
    state = meter.initial(robot, q, v)
    loss = meter.act(robot, 0.0, q, v, v, state, jnp.zeros(0)).rate[1]
    np.testing.assert_allclose(loss, 2.0 * (80 / RATIO - 0.4) ** 2, rtol=1e-10)


@pytest.mark.slow
def test_derivatives_with_respect_to_every_leaf():
    robot, springs = everything()
    flat, rebuild = jax.flatten_util.ravel_pytree(springs)
    ts = jnp.array([0.0, 0.12])

    def final(x, adjoint):
        system = jd.System(robot, (rebuild(x),))
        path = jd.simulate(system, Q, V, ts, dt=0.01, max_steps=16, adjoint=adjoint)
        return jnp.sin(jnp.arange(1.0, 7)) @ jnp.concatenate([path.q[-1], path.v[-1] / 10])

    forward = jax.jit(jax.jacfwd(lambda x: final(x, diffrax.ForwardMode())))(flat)
    reverse = jax.jit(jax.grad(lambda x: final(x, diffrax.RecursiveCheckpointAdjoint())))(flat)
    h = 1e-6 * flat
    value = jax.jit(jax.vmap(lambda x: final(x, diffrax.ForwardMode())))
    central = (value(flat + jnp.diag(h)) - value(flat - jnp.diag(h))) / (2 * h)
    np.testing.assert_allclose(reverse, forward, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(forward, central, rtol=2e-5, atol=1e-7)  # central differences of a C1 function
    assert (jnp.abs(forward * flat) > 1e-6).all()  # each leaf acts


@pytest.mark.slow
def test_stiff_transmission_approaches_the_rigid_robot():
    """With Kvaerno5 and c up to 1e7 N m/rad the joint follows the rigid robot up to a multiple of 1 / c."""
    arm = jd.robots.pendulum()
    name = arm.joint_names[0]
    stage = lambda c: Stage(80.0, c, 1e-4 * c, input_inertia=2.5e-4)
    robot, _ = add_elastic_transmission(arm, name, stage(1.0))
    joint, shaft = robot.joint(name).q.start, robot.joint(f"{name}_shaft").q.start
    rigid = eqx.tree_at(lambda m: m.properties.armature, arm, jnp.array([80.0**2 * 2.5e-4]))
    ts = jnp.linspace(0.0, 0.5, 6)
    expected = jd.simulate(rigid, jnp.array([1.0]), jnp.zeros(1), ts, rtol=1e-10, atol=1e-10).q[:, 0]
    a = jd.forward_dynamics(rigid, jnp.array([1.0]), jnp.zeros(1), jnp.zeros(1))
    torque = jd.rnea(arm, jnp.array([1.0]), jnp.zeros(1), a)[0]

    @jax.jit
    def run(c):
        _, springs = add_elastic_transmission(arm, name, stage(c))
        start = jnp.zeros(2).at[joint].set(1.0).at[shaft].set(80 * (1.0 + torque / c))
        system = jd.System(robot, (springs,))
        solver = diffrax.Kvaerno5()
        path = jd.simulate(system, start, jnp.zeros(2), ts, solver=solver, rtol=1e-9, atol=1e-10, max_steps=400)
        return path.q[:, joint], path.status

    errors = []
    for c in (1e5, 1e6, 1e7):
        q, status = run(c)
        assert status == jd.SimulationStatus.FINISHED
        errors.append(jnp.abs(q - expected).max())
    np.testing.assert_allclose(errors[0] / errors[1], 10, rtol=0.1)
    assert errors[2] < 1.5e-1 * errors[1]


@pytest.mark.slow
def test_rotor_as_a_body_couples_with_its_link():
    """In the rigid limit `theta = N q` the mass matrix is that of `add_rotor`."""
    arm, j, n = jd.robots.double_pendulum(), 3e-3, 6.0
    name = arm.joint_names[-1]
    axis = np.asarray(arm.joint(name).joint.axis)
    disc = Inertia(0.0, jnp.zeros(3), j * (np.outer(axis, axis) + np.eye(3)) / 2)
    robot, springs = add_elastic_transmission(arm, name, Stage(n, 1e3), rotor=disc)
    q = jnp.array([0.3, -0.7, 0.2])
    index = [robot.joint(x).v.start for x in (*arm.joint_names, springs.shafts[0])]
    stiff = np.array([[1, 0], [0, 1], [0, n]])
    m = np.asarray(jd.mass_matrix(springs.mount(robot), q[np.argsort(index)]))[np.ix_(index, index)]
    expected = jd.mass_matrix(add_rotor(arm, name, gear=n, inertia=j), q[:2])
    np.testing.assert_allclose(stiff.T @ m @ stiff, expected, atol=1e-14)
    assert abs(m[0, 2] - j) < 1e-15


@pytest.mark.slow
def test_ball_screw():
    """A rotor in front of a prismatic joint, with a ratio in rad/m."""
    builder = jd.ModelBuilder(gravity=[0, 0, 0])
    slide = builder.add_link("carriage", "world", Prismatic([1, 0, 0]), point_mass(2.0)).build()
    stage = Stage(400.0, 1e6, input_inertia=1e-5)
    robot, springs = add_elastic_transmission(slide, "carriage_joint", stage)
    result = undamped_modes(robot, springs)
    np.testing.assert_allclose(result.frequencies, [0, np.sqrt(1e6 * (1 / 2 + 1 / (400**2 * 1e-5)))], rtol=1e-10)


def test_inertia_of_the_shafts_is_noted_and_mounted():
    robot, springs = transmission()
    (note,) = robot.report
    assert str(note) == "joint joint_shaft: its inertia is brought by TransmissionSprings.mount"
    again, _ = add_elastic_transmission(robot, "joint_shaft", Stage(2.0, 10.0, input_inertia=1e-5))
    assert {note.what for note in again.report} == {note.what} and len(again.report) == 2
    assert (robot.properties.armature == 0).all()
    slope = jax.grad(lambda p: jd.mass_matrix(p.mount(robot), jnp.zeros(2))[1, 1])(springs).stages[0]
    np.testing.assert_allclose(slope.output_inertia, RATIO**-2, rtol=1e-14)
    np.testing.assert_allclose(slope.ratio, -2 * GEAR / RATIO**3, rtol=1e-14)


@pytest.mark.slow
def test_batch_of_4096_transmissions():
    robot, springs = transmission(damping=2.0)
    factors = jax.random.uniform(jax.random.key(0), (4096, 5), minval=0.5, maxval=2.0)
    flat, rebuild = jax.flatten_util.ravel_pytree(springs)
    assert flat.shape == (5,)
    q, v = jnp.array([0.1, 9.0]), jnp.array([0.4, 80.0])

    def acceleration(x):
        system = jd.System(robot, (rebuild(flat * x),))
        return system.rate(0.0, system.initial(q, v)).v

    n, c, d, j, g = (factors * flat).T
    torque = c * (9 / n - 0.1) + d * (80 / n - 0.4)
    expected = np.stack([torque / LOAD, -torque / n / (j + g / n**2)], 1)
    np.testing.assert_allclose(jax.jit(jax.vmap(acceleration))(factors), expected, rtol=1e-9)


def test_wrong_transmissions_are_refused():
    arm = jd.robots.double_pendulum()
    name = arm.joint_names[0]
    add = lambda stages, model=arm, joint=name: add_elastic_transmission(model, joint, stages)
    with pytest.raises(jd.ModelError, match="no stages"):
        add([])
    with pytest.raises(jd.ModelError, match="the input shaft has no inertia"):
        add(Stage(10.0, 1e3))
    with pytest.raises(jd.ModelError, match="stage 2 has the inertia 0.0"):
        add([Stage(10.0, 1e3, input_inertia=1e-3), Stage(2.0, 1e3, input_inertia=0.0)])
    with pytest.raises(jd.ModelError, match="springs in series must be linear"):
        add([Stage(10.0, CubicSpring(1e3, 1.0), input_inertia=1e-3), Stage(2.0, 1e3)])
    with pytest.raises(jd.ModelError, match="springs in series must be linear"):
        add([Stage(10.0, 1e3, 1.0, input_inertia=1e-3), Stage(2.0, 1e3)])
    free = jd.ModelBuilder().add_link("a", "world", jd.joints.Free(), point_mass(1.0)).build()
    with pytest.raises(jd.ModelError, match="Free with 6 velocity coordinates"):
        add(Stage(10.0, 1e3, input_inertia=1e-3), free, "a_joint")
