"""Constrained motion: status, driven mechanisms, moving objects and loads, against independent computations."""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn import SimulationStatus
from jaxdyn.simulation import System
from jaxdyn.spatial import point_mass

solve = jax.jit(jc.constrained_dynamics)


@ft.cache
def linkage():
    model = jd.robots.four_bar()
    loop = jc.described_constraints(model)
    return model, loop, jc.impulse(model, loop, jnp.zeros(3), jnp.array([1.0, 0.0, 0.0])).v


@pytest.mark.exhaustive
def test_initial_state_off_the_constraint_gives_a_status():
    """The saved states are projected, so the status reports that the first one is not the given initial state."""
    model, loop, speed = linkage()
    run = lambda q, v: jd.simulate(System(model, (), jc.ConstrainedMotion(loop)), q, v, jnp.array([0.0, 0.1]), dt=0.02)
    assert int(run(jnp.zeros(3), speed).status) == SimulationStatus.FINISHED
    for q, v in ((jnp.array([0.02, 0.0, 0.0]), speed), (jnp.zeros(3), jnp.array([1.0, 0.0, 0.0]))):
        path = run(q, v)
        assert int(path.status) == SimulationStatus.OFF_CONSTRAINT
        assert path.reached.all() and np.isfinite(path.q).all()
        with pytest.raises(jd.ConvergenceError, match="assemble"):
            path.checked()


@pytest.mark.exhaustive
def test_infeasible_constraints_give_a_status():
    model = jd.robots.pendulum()
    (joint,) = model.joint_names
    apart = tuple(jc.PrescribedCoordinate(n, joint, lambda t, k=k: k * t**2) for k, n in enumerate("ab"))
    system = System(model, (), jc.ConstrainedMotion(apart))
    path = jd.simulate(system, jnp.zeros(1), jnp.zeros(1), jnp.array([0.0, 0.5]), dt=0.05)
    assert int(path.status) == SimulationStatus.OFF_CONSTRAINT
    assert int(jc.impulse(model, apart, jnp.zeros(1), jnp.zeros(1), t=1.0).status) == jc.ConstraintStatus.CONTRADICTORY
    end = jc.assemble(model, apart[0], jnp.zeros(1), jnp.full(1, jnp.nan))
    assert int(end.status) == jc.AssemblyStatus.NOT_FINITE
    assert int(jc.mobility(model, apart, jnp.full(1, jnp.nan))) == -1


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "stabilisation",
    [jc.Projection(), jc.Baumgarte(10.0), jc.GearGuptaLeimkuhler(10.0)],
    ids=type,
)
def test_crank_driven_at_a_constant_rate(stabilisation):
    """The multiplier of the motor is the torque from the principle of virtual work."""
    model, loop, _ = linkage()
    rate = 2.0
    driven = (*loop, jc.PrescribedCoordinate("motor", "crank_joint", lambda t: rate * t))
    v = jc.impulse(model, driven, jnp.zeros(3), jnp.zeros(3)).v
    motion = jc.ConstrainedMotion(driven, stabilisation)
    path = jd.simulate(System(model, (), motion), jnp.zeros(3), v, jnp.array([0.0, 0.8]), rtol=1e-10, atol=1e-10)
    q, v = path.checked().q[-1], path.v[-1]
    assert_allclose(q[0], rate * 0.8, atol=1e-6)
    got = solve(model, driven, q, v, jnp.zeros(3), t=jnp.asarray(0.8))
    assert_allclose(got.a[0], 0, atol=1e-10)
    assert_allclose(got.multiplier("motor") * rate, jd.rnea(model, q, v, got.a) @ v, rtol=1e-5)


@pytest.mark.slow
def test_inverse_dynamics_with_two_motors_of_a_five_bar():
    """Torques at the cranks alone, by the principle of virtual work for the two degrees of freedom of the loop."""
    model = jd.robots.five_bar()
    loop = jc.described_constraints(model)
    motors = np.array([name in ("left_joint", "right_joint") for name in model.joint_names])
    q = jnp.zeros(4)
    v = jc.impulse(model, loop, q, jnp.array([1.0, -0.5, 0.3, 0.2])).v
    a = solve(model, loop, q, v, jnp.array([0.4, 0.0, -0.3, 0.1])).a
    tau = jc.constrained_inverse_dynamics(model, loop, q, v, a, actuated=motors)
    assert_allclose(tau[~motors], 0, atol=1e-12)
    assert_allclose(solve(model, loop, q, v, tau).a, a, atol=1e-9)
    ends = lambda q: jnp.stack([jd.frame_pose(model, q, "tool").translation, _right_end(model, q)])
    rows = jax.jacfwd(lambda q: jnp.diff(ends(q), axis=0)[0, :2])(q)
    free = np.linalg.svd(rows)[2][2:].T
    want = np.linalg.solve(free.T[:, motors], free.T @ jd.rnea(model, q, v, a))
    assert_allclose(tau[motors], want, rtol=1e-9)
    # one motor cannot produce a general motion of two degrees of freedom: an effort remains at the other joints
    one = jc.constrained_inverse_dynamics(model, loop, q, v, a, actuated=motors & (np.arange(4) < 2))
    assert np.abs(one[np.arange(4) >= 2]).max() > 1e-3


def _right_end(model, q):
    pose = jd.frame_pose(model, q, "right_rod")
    return pose.translation + pose.rotation @ jnp.array([0.4, 0.0, 0.0])


# Functional coordinates: the tool relative to an object with prescribed motion


def _puck():
    b = jd.ModelBuilder()
    b.add_link("x", "world", jd.joints.Prismatic((1, 0, 0)))
    b.add_link("z", "x", jd.joints.Prismatic((0, 0, 1)))
    return b.add_link("peg", "z", jd.joints.Revolute((0, 1, 0)), jd.spatial.box((0.1, 0.1, 0.4), mass=2.0)).build()


@pytest.mark.slow
def test_contact_with_a_moving_object():
    """A puck on a lifted table: the normal force is `m (g + a)`, and reduced dynamics relative to the table agrees."""
    model = _puck()
    height = lambda t: 0.3 + 0.2 * jnp.sin(3 * t)
    table = jc.Holonomic("table", lambda x: (x.pose("peg").translation[2] - height(x.t))[None])
    t, m = jnp.asarray(0.4), 2.0
    q = jnp.array([0.2, height(t), 0.5])
    v = jnp.array([0.7, jax.grad(height)(t), -0.3])
    tau = jnp.array([1.0, 0.0, 0.2])
    got = solve(model, table, q, v, tau, t=t)
    rise = jax.grad(jax.grad(height))(t)
    assert_allclose(got.multipliers, m * (9.81 + rise), rtol=1e-12)
    chart = lambda y, t: jnp.stack([y[0], height(t), y[1]])
    y, ydot = q[jnp.array([0, 2])], v[jnp.array([0, 2])]
    reduced = jc.reduced_dynamics(model, chart, y, ydot, tau, t=t)
    assert int(reduced.status) == jc.ConstraintStatus.SOLVED
    assert_allclose(reduced.v, v, atol=1e-14)
    assert_allclose(reduced.a, got.a, atol=1e-12)


@pytest.mark.slow
def test_peg_in_a_hole():
    """A peg in a hole has one degree of freedom, its depth; the wall bears the transverse weight."""
    model, slope = _puck(), 0.3
    hole = jc.End("world", (0.1, 0.0, 0.2), (np.cos(slope / 2), 0.0, np.sin(slope / 2), 0.0))

    def across(x):
        peg = jc.End("peg", (0, 0, 0)).pose(x)
        relative = hole.pose(x).inverse() @ peg
        return jnp.stack([relative.translation[0], relative.rotation[0, 2]])

    wall = jc.Holonomic("wall", across)
    way = jnp.array([jnp.sin(slope), 0.0, jnp.cos(slope)])
    q = jnp.array([0.1 + 0.3 * way[0], 0.2 + 0.3 * way[2], slope])
    v = 0.8 * jnp.array([way[0], way[2], 0.0])
    got = solve(model, wall, q, v, jnp.zeros(3))
    assert int(jc.mobility(model, wall, q)) == 1
    assert_allclose(got.a, -9.81 * way[2] * np.array([way[0], way[2], 0.0]), atol=1e-11)
    assert_allclose(got.multipliers, [-2.0 * 9.81 * np.sin(slope), 0], atol=1e-10)


@pytest.mark.slow
def test_singular_chart_gives_a_status():
    model = jd.robots.double_pendulum()
    both = lambda y: jnp.stack([y[0] + y[1], y[0] + y[1]])
    got = jc.reduced_dynamics(model, both, jnp.array([0.3, 0.2]), jnp.zeros(2), jnp.zeros(2))
    assert int(got.status) == jc.ConstraintStatus.SINGULAR_CHART
    assert np.isfinite(got.acceleration).all()


# A load in motion


@ft.cache
def planar_arm(base=0.0):
    b = jd.ModelBuilder()
    bar = jd.spatial.box((0.05, 0.05, 0.5), mass=2.0).moved((0, 0, 0.25))
    b.add_link("upper", "world", jd.joints.Revolute((0, 1, 0)), bar, translation=(base, 0, 0))
    b.add_link("lower", "upper", jd.joints.Revolute((0, 1, 0)), bar, translation=(0, 0, 0.5))
    return b.add_frame("hand", "lower", translation=(0, 0, 0.5)).build()


@pytest.mark.exhaustive
def test_gripped_load_moves_as_part_of_the_last_link():
    """The same path and energy over half a second."""
    arm = planar_arm()
    model, grip = jc.gripping_load(arm, "hand", 1.5)
    q, v = jc.carried_state(model, grip, jnp.array([0.4, 0.8]), jnp.array([0.5, -1.0]))
    ts = jnp.linspace(0, 0.5, 6)
    path = jd.simulate(System(model, (), jc.ConstrainedMotion(grip)), q, v, ts).checked()
    load = jd.ModelBuilder().add_link("load", "world", None, point_mass(1.5)).build()
    heavier = jd.attach(arm, load, "lower", translation=(0, 0, 0.5))
    want = jd.simulate(heavier, q[:2], v[:2], ts).checked()
    assert_allclose(path.q[:, :2], want.q, atol=1e-6)
    assert_allclose(path.energy, path.energy[0], atol=1e-5)
    assert_allclose(path.energy - want.energy, 0, atol=1e-5)
