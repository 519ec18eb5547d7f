"""Each type of constraint against a tree with the corresponding joint, or against a closed-form motion."""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn.constraints.types._ends import tilt
from jaxdyn.spatial import Inertia, Pose, rotation_vector_to_matrix

solve = jax.jit(jc.constrained_dynamics)
Z = (0.0, 0.0, 1.0)

# closure, the joint with the same motions, and the constrained rows of (moment, force) in axes of the first frame
PAIRS = {
    "point": (jc.PointClosure, jd.joints.Spherical(), (3, 4, 5)),
    "weld": (jc.WeldClosure, None, (0, 1, 2, 3, 4, 5)),
    "revolute": (jc.RevoluteClosure, jd.joints.Revolute(Z), (0, 1, 3, 4, 5)),
    "cylindrical": (jc.CylindricalClosure, jd.joints.Cylindrical(Z), (0, 1, 3, 4)),
    "prismatic": (jc.PrismaticClosure, jd.joints.Prismatic(Z), (0, 1, 2, 3, 4)),
    "planar": (jc.PlanarClosure, jd.joints.Planar(), (0, 1, 5)),
}


def _body(k):
    turned = jnp.diag(jnp.array([0.1, 0.2, 0.25]) * (1 + 0.1 * k))
    return Inertia(1.0 + 0.3 * k, jnp.array([0.1, -0.05 * k, 0.2]), turned)


def _place(k):
    """Translation and quaternion of closure k on the arm."""
    return (0.1 * k, 0.3, -0.2), (0.9, 0.1 * k, -0.2, 0.3)


@ft.cache
def arm_with_bodies():
    """An arm with a body on each type of joint, and the same bodies on free joints with closures."""
    tree, torn, closures = jd.ModelBuilder(), jd.ModelBuilder(), []
    for b in (tree, torn):
        b.add_link("arm", "world", jd.joints.Revolute((0.3, 1.0, 0.2)), _body(9))
    for k, (name, (closure, joint, _)) in enumerate(PAIRS.items()):
        at, quaternion = _place(k)
        rotation = Pose.from_quaternion(jnp.array(quaternion)).rotation
        tree.add_link(name, "arm", joint, _body(k), translation=at, rotation=np.asarray(rotation))
        torn.add_link(name, "world", jd.joints.Free(), _body(k))
        closures.append(closure(f"{name}_closure", ("arm", at, quaternion), name))
    return tree.build(), torn.build(), tuple(closures)


def _floating_state(tree, torn, q, v):
    """The coordinate of the arm, and the coordinates and velocities of the free joints of the bodies."""
    poses = jd.forward_kinematics(tree, q)
    own = [q[:1]]
    rates = [v[:1]]
    for name in torn.link_names[1:]:
        pose = poses[name]
        own += [pose.quaternion(), pose.translation]
        rates.append(jd.frame_velocity(tree, q, v, name, reference=jd.LOCAL))
    return jnp.concatenate(own), jnp.concatenate(rates)


@ft.cache
def solve_tree_and_closures():
    tree, torn, closures = arm_with_bodies()
    rng = np.random.default_rng(4)
    q = jd.integrate(tree, jd.neutral(tree), jnp.asarray(rng.normal(size=tree.nv)))
    v = jnp.asarray(rng.normal(size=tree.nv))

    @jax.jit
    def both(tree, torn, closures, q, v):
        a = jd.forward_dynamics(tree, q, v, jnp.zeros(tree.nv).at[0].set(3.0))
        move = lambda e: _floating_state(tree, torn, jd.integrate(tree, q, e * v), v + e * a)[1]
        want = jax.jvp(move, (jnp.zeros(()),), (jnp.ones(()),))[1]
        state = _floating_state(tree, torn, q, v)
        got = jc.constrained_dynamics(torn, closures, *state, jnp.zeros(torn.nv).at[0].set(3.0))
        return got, want, jd.joint_reactions(tree, q, v, a).wrench, jd.forward_kinematics(tree, q)

    return both(tree, torn, closures, q, v)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_closure_equals_the_joint_of_a_tree(name):
    """Accelerations equal those of the tree, and multipliers the reactions of its joint."""
    tree, torn, _ = arm_with_bodies()
    got, want, carried, poses = solve_tree_and_closures()
    assert int(got.status) == jc.ConstraintStatus.SOLVED
    assert int(got.rank) == sum(len(rows) for *_, rows in PAIRS.values())
    i = torn.link_index(name)
    six = slice(1 + 6 * (i - 1), 7 + 6 * (i - 1))
    assert_allclose(got.a[0], want[0], rtol=1e-10)
    assert_allclose(got.a[six], want[six], atol=1e-9)
    wrench = carried[tree.link_index(name)]
    assert_allclose(got.wrenches[i], wrench, atol=1e-9)
    first = poses["arm"] @ Pose.from_quaternion(jnp.array(_place(i - 1)[1]), jnp.array(_place(i - 1)[0]))
    turn = first.inverse() @ poses[name]  # moments are about the body's origin
    in_first = np.r_[turn.rotation @ wrench[:3], turn.rotation @ wrench[3:]]
    rows = np.array(PAIRS[name][2])
    assert_allclose(got.multiplier(f"{name}_closure")[rows > 2], in_first[rows][rows > 2], atol=1e-9)


@ft.cache
def body(gravity=(0.0, 0.0, -9.81), disc=False):
    """A ball, or a disc with its axle along z, of 2 kg and 0.3 m."""
    m, r = 2.0, 0.3
    moments = [m * r * r / 4, m * r * r / 4, m * r * r / 2] if disc else [0.4 * m * r * r] * 3
    b = jd.ModelBuilder(gravity)
    return b.add_link("body", "world", jd.joints.Free(), Inertia(m, np.zeros(3), np.diag(moments))).build()


@pytest.mark.slow
@pytest.mark.parametrize("slope", [0.0, 0.4])
def test_ball_on_a_slope(slope):
    """Acceleration `5/7 g sin(slope)`, normal force `m g cos(slope)` and friction `2/7 m g sin(slope)`."""
    m, r, g = 2.0, 0.3, 9.81
    base = jc.End("world", (0.5, 0.0, 0.2), (np.cos(slope / 2), 0.0, np.sin(slope / 2), 0.0))  # tilted about y
    ball = (jc.BallOnPlane("up", "body", r, base=base), jc.RollingBall("grip", "body", r, base=base))
    plane = Pose.from_quaternion(base.rotation, base.translation)
    spin = 2.0  # about y, in world axes
    down = plane.rotation[:, 0]
    q = jnp.array([1.0, 0, 0, 0, *plane.apply(jnp.array([0.7, -0.4, r]))])
    v = jnp.concatenate([jnp.array([0.0, spin, 0.0]), spin * r * down])
    got = solve(body(), ball, q, v, jnp.zeros(6))
    fast = 5 / 7 * g * np.sin(slope)
    assert_allclose(got.a[3:] + jnp.cross(v[:3], v[3:]), fast * down, atol=1e-11)  # in body axes
    assert_allclose(got.a[:3], [0, fast / r, 0], atol=1e-10)
    assert_allclose(got.multiplier("up"), m * g * np.cos(slope), rtol=1e-12)
    # along y and against x of the plane
    assert_allclose(got.multiplier("grip"), [0, 2 / 7 * m * g * np.sin(slope)], atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(("lean", "precession"), [(1.2, 1.5), (0.7, -4.0), (np.pi / 2, 0.0)])
def test_disc_in_steady_rolling(lean, precession):
    """Axle at an angle: `(C + m r^2) w3 Om sin - A Om^2 sin cos + m g r cos = 0` (Routh 1905)."""
    m, r, g = 2.0, 0.3, 9.81
    flat, axial = m * r * r / 4, m * r * r / 2
    s, c = np.sin(lean), np.cos(lean)
    spin = 5.0 if precession == 0 else (flat * precession**2 * s * c - m * g * r * c) / (
        (axial + m * r * r) * precession * s
    )  # fmt: skip
    level, axle, up = np.eye(3)[0], np.array([0, -s, c]), np.array([0, c, s])  # e1, e3 and e2 up the disc
    rotation = np.column_stack([level, up, axle])
    omega = precession * s * up + spin * axle
    velocity = np.cross(omega, r * up)
    q = jnp.concatenate([Pose(jnp.asarray(rotation), jnp.zeros(3)).quaternion(), jnp.array([0.0, 0, r * s])])
    v = jnp.asarray(np.r_[rotation.T @ omega, rotation.T @ velocity])
    rolling = (jc.DiscOnPlane("up", "body", r), jc.RollingDisc("grip", "body", r))
    got = solve(body(disc=True), rolling, q, v, jnp.zeros(6))
    about = np.array([0, 0, precession])
    change = np.cross(about, velocity)  # of the centre, along its circle
    assert_allclose(rotation @ got.a[:3], np.cross(about, omega), atol=1e-9)
    assert_allclose(rotation @ got.a[3:] + np.cross(omega, velocity), change, atol=1e-9)
    assert_allclose(got.multiplier("up"), m * g, rtol=1e-10)
    # forces along y and -x are the centripetal force of the centre
    assert_allclose(got.multiplier("grip"), m * np.array([change[1], -change[0]]), atol=1e-9)


@pytest.mark.slow
def test_multipliers_of_a_prescribed_frame_equal_inverse_dynamics():
    """A body on a helix in a tilted base frame."""
    model, place = body(disc=True), jc.End("world", (0.1, 0.2, 0.3), (0.9, 0.2, -0.1, 0.4))

    def helix(t):
        turn = jnp.stack([jnp.cos(t), jnp.zeros_like(t), jnp.zeros_like(t), jnp.sin(t)])
        return Pose.from_quaternion(turn, jnp.stack([jnp.cos(t), jnp.sin(t), t**2]))

    def state(t):
        pose = Pose.from_quaternion(place.rotation, place.translation) @ helix(t)
        return jnp.concatenate([pose.quaternion(), pose.translation])

    def velocity(t):
        return jax.jvp(lambda s: jd.difference(model, state(t), state(s)), (t,), (jnp.ones(()),))[1]

    t = jnp.asarray(0.7)
    a = jax.jvp(velocity, (t,), (jnp.ones(()),))[1]
    carried = jc.PrescribedFrame("hand", "body", helix, place)
    got = solve(model, carried, state(t), velocity(t), jnp.zeros(6), t=t)
    assert_allclose(got.a, a, atol=1e-10)
    assert_allclose(got.multipliers, jd.rnea(model, state(t), velocity(t), a), atol=1e-9)


@pytest.mark.slow
def test_rolling_between_two_links():
    """A ball and a skate on a plate in free fall: uniform motion relative to the plate, without contact forces."""
    b = jd.ModelBuilder()
    b.add_link("plate", "world", jd.joints.Free(), jd.spatial.box((2.0, 2.0, 0.1), mass=50.0))
    for name in ("ball", "skate"):
        b.add_link(name, "world", jd.joints.Free(), Inertia(2.0, np.zeros(3), np.diag([0.07, 0.07, 0.07])))
    model = b.build()
    top = jc.End("plate", (0.0, 0.0, 0.05))
    constraints = (
        jc.BallOnPlane("up", "ball", 0.3, base=top),
        jc.RollingBall("grip", "ball", 0.3, base=top),
        jc.PlanarClosure("ice", top, "skate"),
        jc.KnifeEdge("edge", "skate", top),
    )
    plate = jnp.array([0.8, 0.3, -0.2, 0.4])
    pose = Pose.from_quaternion(plate, jnp.array([0.2, 0.1, 3.0]))
    place = lambda *at: jnp.concatenate([pose.quaternion(), pose.apply(jnp.array(at))])
    q = jnp.concatenate([place(0.0, 0, 0), place(0.5, 0.1, 0.35), place(-0.4, 0.3, 0.05)])
    drift = pose.rotation.T @ jnp.array([0.3, -0.2, -4.0])
    ball = drift + jnp.array([0.6, 0, 0])
    v = jnp.concatenate(
        [jnp.zeros(3), drift, jnp.array([0, 2.0, 0]), ball, jnp.zeros(3), drift + jnp.array([0.5, 0, 0])]
    )
    got = solve(model, constraints, q, v, jnp.zeros(18))
    assert_allclose(
        jax.jit(jc.impulse)(model, constraints, q, v).v, v, atol=1e-12
    )  # the state satisfies the constraints
    fall = pose.rotation.T @ jnp.array([0, 0, -9.81])
    want = jnp.tile(jnp.r_[jnp.zeros(3), fall], 3)
    turning = jnp.cross(v[6:9], v[9:12])  # accelerations are in body axes, and the ball spins
    assert_allclose(got.a, want.at[9:12].add(-turning), atol=1e-10)
    assert_allclose(got.multipliers, 0, atol=1e-10)


@pytest.mark.slow
def test_tilt_is_largest_for_opposite_axes():
    """`2 sin(angle / 2)` about the axis of the turn, and finite with its derivative at half a turn."""
    axis = jnp.array([0.6, 0.8, 0.0])
    at = jax.jit(lambda angle: tilt(rotation_vector_to_matrix(angle * axis)))
    for angle in (1e-9, 1.0, np.pi / 2, 2.0, 3.1, np.pi - 1e-6):
        assert_allclose(at(angle), 2 * np.sin(angle / 2) * axis[:2], rtol=1e-9)
    opposed = jnp.diag(jnp.array([1.0, -1.0, -1.0]))
    assert_allclose(np.linalg.norm(tilt(opposed)), 2)
    assert np.isfinite(jax.jacfwd(tilt)(opposed)).all()


def _free_body():
    return jd.ModelBuilder().add_link("x", "world", jd.joints.Free(), jd.spatial.box((0.1, 0.2, 0.3), mass=1.0)).build()


@pytest.mark.slow
def test_hinges_close_with_aligned_axes():
    """For initial angles above 90 degrees the assembled axes are aligned, not opposite."""
    model = _free_body()
    close = jax.jit(lambda q: jc.assemble(model, jc.RevoluteClosure("hinge", "world", "x"), q))
    for angle in (2 * np.pi / 3, 2.9):
        q = jnp.array([np.cos(angle / 2), 0.6 * np.sin(angle / 2), 0.8 * np.sin(angle / 2), 0.0, 0.1, 0.2, 0.3])
        end = close(q).checked()
        assert jd.frame_pose(model, end.q, "x").rotation[2, 2] > 1 - 1e-12


def test_coordinates_of_joints_and_mimic_joints():
    """A joint of several coordinates raises an error; a mimic joint includes its ratio and offset."""
    b = jd.ModelBuilder()
    for name, joint in (("a", jd.joints.Revolute(Z)), ("b", jd.joints.Revolute(Z)), ("c", jd.joints.Spherical())):
        b.add_link(name, "world", joint, jd.spatial.box((0.1, 0.2, 0.3), mass=1.0))
    model = b.add_mimic("b_joint", "a_joint", ratio=-1.5, offset=0.2).build()
    q = jnp.array([0.4, 1.0, 0, 0, 0])
    rotation, translation = jnp.tile(jnp.eye(3), (3, 1, 1)), jnp.zeros((3, 3))
    placed = jc.Configuration(model, 0.0, q, rotation, translation)
    assert_allclose(placed.coordinate("a_joint"), 0.4)
    assert_allclose(placed.coordinate("b_joint"), -1.5 * 0.4 + 0.2)
    with pytest.raises(jd.ModelError, match="'c_joint' is a Spherical of 4 coordinates"):
        placed.coordinate("c_joint")


def test_residual_of_wrong_shape_raises():
    bad = jc.Holonomic("bad", lambda x: x.q[:1, None])
    with pytest.raises(jd.ShapeError, match=r"residual of constraint 'bad' has shape \(1, 1\)"):
        jc.mobility(jd.robots.pendulum(), bad, jnp.zeros(1))
