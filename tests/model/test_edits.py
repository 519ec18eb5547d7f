"""Edited models are the same robots: the physics does not change where it must not."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn._errors import JaxdynError, ModelError
from jaxdyn.dynamics import rnea
from jaxdyn.joints import Fixed, Free, Prismatic, Revolute
from jaxdyn.model import (
    ModelBuilder,
    Shape,
    attach,
    change_base,
    lock_joints,
    merge,
    reduce_joints,
    remove_link,
    subtree,
)
from jaxdyn.model._edits import to_builder
from jaxdyn.spatial import Inertia, axis_angle_to_matrix, quaternion_to_matrix

from ._robots import body, branched, carry_over, efforts, mass_matrix, neutral, pendulum, random_state

TREE = branched()
STATE = random_state(TREE)


def kept(model, names):
    return np.concatenate([np.r_[model.joint(name).v] for name in names])


def same(a, b):
    assert a.topology == b.topology
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-14), a, b)


def test_taken_apart_and_built_again():
    same(to_builder(TREE).build(), TREE)


# --- locking -------------------------------------------------------------------------------------


def locked_state(locked, q):
    return carry_over(TREE, locked, q, "q")


@pytest.mark.slow
def test_a_locked_joint_stands_still_and_the_rest_moves_as_before():
    q, v, a = STATE
    names = ["b_joint", "c_joint", "e_joint"]
    locked = lock_joints(TREE, {name: q[TREE.joint(name).q] for name in names})
    assert locked.nv == TREE.nv - 1 - 2 - 3 and locked.link_names == TREE.link_names
    still = lambda x: x.at[kept(TREE, names)].set(0)
    rest = ["root", "a_joint", "d_joint"]
    tau = efforts(TREE, q, still(v), still(a))[kept(TREE, rest)]
    state = (carry_over(TREE, locked, x, k) for x, k in ((q, "q"), (v, "v"), (a, "v")))
    np.testing.assert_allclose(efforts(locked, *state)[kept(locked, rest)], tau, rtol=1e-11)


def test_a_locked_joint_takes_its_neutral_and_a_number():
    for value in (None, 0.0, jnp.zeros(1)):
        locked = lock_joints(TREE, {"a_joint": value})
        np.testing.assert_allclose(locked.placements.translation[1], TREE.placements.translation[1])
    assert "a_joint" in locked.joint_names and isinstance(locked.joint("a_joint").joint, Fixed)


@pytest.mark.slow
def test_joints_geared_to_a_locked_one_are_locked_with_it():
    q = STATE[0]
    locked = lock_joints(TREE, {"d_joint": 0.6})
    assert not locked.topology.mimics and isinstance(locked.joint("f_joint").joint, Fixed)
    q = q.at[TREE.joint("d_joint").q].set(0.6)
    names = ["root", "a_joint", "b_joint", "c_joint", "e_joint"]
    full = mass_matrix(TREE, q)[np.ix_(kept(TREE, names), kept(TREE, names))]
    part = mass_matrix(locked, locked_state(locked, q))[np.ix_(kept(locked, names), kept(locked, names))]
    np.testing.assert_allclose(part, full, atol=1e-11)


@pytest.mark.slow
def test_reducing_keeps_the_named_joints_only():
    q = STATE[0]
    small = reduce_joints(TREE, ["d_joint", "a_joint"], q)
    assert small.nv == 2
    full = mass_matrix(TREE, q)[np.ix_(kept(TREE, ["a_joint", "d_joint"]), kept(TREE, ["a_joint", "d_joint"]))]
    np.testing.assert_allclose(mass_matrix(small, carry_over(TREE, small, q, "q")), full, atol=1e-12)
    np.testing.assert_allclose(small.limits.upper, [2.0, np.inf])
    np.testing.assert_allclose(small.properties.stiffness, [0.0, 3.0])
    same(reduce_joints(TREE, ["d_joint", "a_joint", "f_joint"], q), small)


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ({"x_joint": None}, "no joint is called 'x_joint'"),
        ({"f_joint": 0.0}, "'f_joint' mimics 'd_joint'"),
        ({"e_joint": 0.0}, r"joint 'e_joint' has shape \(\), expected \(4,\)"),
        ({"a_joint": [1.0, 2.0]}, r"joint 'a_joint' has shape \(2,\), expected \(1,\)"),
    ],
)
def test_what_cannot_be_locked(at, message):
    with pytest.raises(JaxdynError, match=message):
        lock_joints(TREE, at)


def test_a_follower_cannot_be_kept_without_its_source():
    with pytest.raises(ModelError, match="'f_joint' mimics 'd_joint': keep that one too"):
        reduce_joints(TREE, ["f_joint"])


@pytest.mark.slow
def test_locking_is_differentiable_in_the_angle_and_in_every_leaf():
    """The torque that holds a pendulum whose elbow is locked at an angle."""
    arm = pendulum()
    zero = jnp.zeros(1)

    @jax.jit
    def hold(model, angle):
        return rnea(lock_joints(model, {"link1_joint": angle}), jnp.array([0.4]), zero, zero)[0]

    both = lambda model, angle: efforts(model, jnp.stack([0.4, angle]), jnp.zeros(2), jnp.zeros(2))[0]
    grads, expected = (jax.grad(f, (0, 1))(arm, jnp.array(0.3)) for f in (hold, both))
    np.testing.assert_allclose(grads[1], expected[1], rtol=1e-12)
    for x, y in zip(jax.tree.leaves(grads[0].links), jax.tree.leaves(expected[0].links), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-12)
    place = [g[0].placements.translation for g in (grads, expected)]
    np.testing.assert_allclose(*place, atol=1e-12)


# --- attaching and merging -----------------------------------------------------------------------


def gripper():
    b = ModelBuilder()
    b.add_link("palm", "world", None, body(1), translation=(0, 0, 0.1))
    b.add_link("left", "palm", Prismatic((0, 1, 0)), body(0), translation=(0, 0.1, 0), upper=0.2)
    b.add_link("right", "palm", Prismatic((0, -1, 0)), body(0), translation=(0, -0.1, 0))
    b.add_mimic("right_joint", "left_joint")
    b.add_frame("grasp", "palm", translation=(0, 0, 0.3))
    return b.build()


@pytest.mark.slow
def test_attaching_is_building_the_whole():
    pose = {"translation": (0.3, 0.1, 0.2), "rpy": (0.3, -0.2, 0.1)}
    whole = attach(pendulum(), gripper(), "link1", prefix="hand/", **pose)
    b = to_builder(pendulum())
    b.add_link("hand/mount", "link1", None, **pose)
    b.add_link("hand/palm", "hand/mount", None, body(1), translation=(0, 0, 0.1))
    b.add_link("hand/left", "hand/palm", Prismatic((0, 1, 0)), body(0), translation=(0, 0.1, 0))
    b.add_link("hand/right", "hand/palm", Prismatic((0, -1, 0)), body(0), translation=(0, -0.1, 0))
    b.add_mimic("hand/right_joint", "hand/left_joint")
    expected = b.build()
    state = random_state(whole)
    np.testing.assert_allclose(efforts(whole, *state), efforts(expected, *state), rtol=1e-12)
    assert whole.link("hand/palm").parent == "link1"
    assert whole.frame_names == ("tip", "hand/grasp")
    np.testing.assert_allclose(whole.limits.upper[whole.joint("hand/left_joint").q], [0.2])


@pytest.mark.slow
def test_merged_models_do_not_feel_each_other():
    arm, other = pendulum(), pendulum((0.3, 0.7))
    both = merge(arm, other, prefix="other/", translation=(1.0, 0, 0))
    q = random_state(both)[0]
    m = mass_matrix(both, q)
    np.testing.assert_allclose(m[:2, :2], mass_matrix(arm, q[:2]), atol=1e-13)
    np.testing.assert_allclose(m[2:, 2:], mass_matrix(other, q[2:]), atol=1e-13)
    np.testing.assert_allclose(m[:2, 2:], 0, atol=1e-13)


def test_names_that_clash_and_links_that_are_not_there():
    with pytest.raises(ModelError, match="two links are called 'link0'"):
        merge(pendulum(), pendulum())
    with pytest.raises(ModelError, match="no link is called 'hand'"):
        attach(pendulum(), gripper(), "hand")


# --- parts ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_subtree_stands_alone():
    """On the world by its own joint, with the inertia that its joints had while the base stood still."""
    part = subtree(TREE, "a")
    assert part.link_names == ("a", "b", "plate", "c", "d") and part.frame_names == ("tool",)
    q, names = STATE[0], ["a_joint", "b_joint", "c_joint"]
    full = mass_matrix(TREE, q)[np.ix_(kept(TREE, names), kept(TREE, names))]
    alone = mass_matrix(part, carry_over(TREE, part, q, "q"))
    np.testing.assert_allclose(alone[np.ix_(kept(part, names), kept(part, names))], full, atol=1e-12)
    assert isinstance(subtree(TREE, "a", Fixed()).joint("a_joint").joint, Fixed)
    with pytest.raises(ModelError, match="'f_joint' mimics 'd_joint'"):
        subtree(TREE, "e")


def test_removing_a_link_removes_what_it_carries():
    rest = remove_link(TREE, "e")
    assert rest.link_names == ("base", "a", "b", "plate", "c", "d")
    assert rest.frame_names == ("tool", "camera") and not rest.topology.mimics
    assert remove_link(TREE, "b").frame_names == ("camera",)
    with pytest.raises(ModelError, match="'f_joint' mimics 'd_joint', which is on a removed link"):
        remove_link(TREE, "a")


# --- another base --------------------------------------------------------------------------------


def rotated_base(model, link):
    """The model held at `link` by a free joint, and the same configuration of it, up to a motion."""
    moved = change_base(model, link, Free())
    return moved, lambda q: carry_over(model, moved, q, "q").at[:7].set(neutral(moved)[:7])


def internal(model, q, names):
    """`M_jj - M_jb M_bb^-1 M_bj`: inertia of the joints while the whole floats freely."""
    m, j = np.asarray(mass_matrix(model, q)), kept(model, names)
    b = np.setdiff1d(np.arange(model.nv), j)
    return m[np.ix_(j, j)] - m[np.ix_(j, b)] @ np.linalg.solve(m[np.ix_(b, b)], m[np.ix_(b, j)])


JOINTS = ["a_joint", "b_joint", "c_joint", "d_joint", "e_joint"]


@pytest.mark.slow
@pytest.mark.parametrize("link", ["c", "plate", "d"])
def test_a_floating_robot_does_not_know_its_base(link):
    """What does not depend on the base: inertia between the joints, and det M, by unimodular change."""
    q = STATE[0]
    moved, configuration = rotated_base(TREE, link)
    assert moved.nv == TREE.nv and moved.link_names[0] == link
    p = configuration(q)
    np.testing.assert_allclose(internal(moved, p, JOINTS), internal(TREE, q, JOINTS), atol=1e-11)
    determinants = [np.linalg.det(mass_matrix(*x)) for x in ((moved, p), (TREE, q))]
    np.testing.assert_allclose(*determinants, rtol=1e-10)


def test_changing_the_base_keeps_what_belongs_to_links_and_joints():
    moved = change_base(TREE, "c", Free(), translation=(0, 0, 1.0))
    for name in TREE.link_names:
        old, new = TREE.link(name), moved.link(name)
        for x, y in ((old.mass, new.mass), (old.com, new.com), (old.inertia, new.inertia)):
            np.testing.assert_array_equal(x, y)
    assert set(moved.joint_names) >= set(TREE.joint_names) and moved.frame_names == TREE.frame_names
    for kind, size in (("lower", "q"), ("upper", "q"), ("effort", "v")):
        for name in JOINTS:
            at = [getattr(m.joint(name), size) for m in (TREE, moved)]
            values = [getattr(m.limits, kind)[s] for m, s in zip((TREE, moved), at, strict=True)]
            np.testing.assert_array_equal(*values)
    np.testing.assert_allclose(moved.properties.damping[moved.joint("b_joint").v], [0.3])
    assert len(moved.topology.mimics) == 1
    np.testing.assert_allclose(moved.placements.translation[0], [0, 0, 1])


@pytest.mark.slow
def test_back_to_the_first_base():
    q = STATE[0]
    there = change_base(TREE, "c", Free())
    back = change_base(there, "base", Free())
    p = carry_over(TREE, back, q, "q")
    np.testing.assert_allclose(internal(back, p, JOINTS), internal(TREE, q, JOINTS), atol=1e-11)
    at = np.r_[kept(TREE, ["root", *JOINTS])], np.r_[kept(back, ["root", *JOINTS])]
    whole, again = (np.asarray(mass_matrix(m, x)) for m, x in ((TREE, q), (back, p)))
    np.testing.assert_allclose(again[np.ix_(at[1], at[1])], whole[np.ix_(at[0], at[0])], atol=1e-11)


def test_a_chain_hung_from_its_other_end():
    """Held at its tip, the chain is the one that is built from there."""
    b = ModelBuilder()
    b.add_link("base", inertia=body(2))
    b.add_link("tip", "base", Revolute((0, 1, 0)), body(1), translation=(0.3, 0, 0.1), rpy=(0.1, 0.2, 0.3))
    moved = change_base(b.build(), "tip")
    m = mass_matrix(moved, jnp.array([0.7]))
    base = body(2).moved((-0.3, 0, -0.1))  # about the hinge
    about = base.inertia + base.mass * ((base.com @ base.com) * np.eye(3) - np.outer(base.com, base.com))
    axis = np.asarray(_turn(0.1, 0.2, 0.3))[:, 1]
    np.testing.assert_allclose(m, [[axis @ about @ axis]], rtol=1e-12)


def _turn(*rpy):
    b = ModelBuilder().add_frame("x", "y", rpy=rpy).add_link("y").build()
    w, *xyz = np.asarray(b.frames.rotation[0])
    x, y, z = xyz
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * k + 2 * k @ k


@pytest.mark.parametrize(
    ("model", "link", "message"),
    [
        (TREE, "f", "joint 'e_joint' is a Spherical joint, which cannot be turned around"),
        (pendulum(), "link1", "'link0_joint' ties the old base to the world and moves by a Revolute"),
        (TREE, "hand", "no link is called 'hand'"),
    ],
)
def test_bases_that_are_refused(model, link, message):
    with pytest.raises(ModelError, match=message):
        change_base(model, link)


@pytest.mark.slow
def test_edits_work_on_traced_and_on_batched_leaves():
    """Efforts that start a robot from rest are linear in its masses, edited or not."""
    edited = lambda model: change_base(lock_joints(model, {"d_joint": None}), "c", Free())
    shape = edited(TREE)
    q = carry_over(TREE, shape, STATE[0], "q")

    def total(mass):
        model = edited(eqx.tree_at(lambda m: m.links.mass, TREE, mass))
        return rnea(model, q, jnp.zeros(model.nv), jnp.ones(model.nv)).sum()

    masses = jnp.linspace(1, 2, 3)[:, None] * TREE.links.mass
    slopes = jax.jit(jax.vmap(jax.grad(total)))(masses)
    assert slopes.shape == masses.shape
    np.testing.assert_allclose(slopes[0], slopes[2], rtol=1e-9)  # sums of terms that partly cancel
    assert (slopes[0] != 0).all()


def test_edits_take_inertias_as_they_are():
    """Files describe inertias that no body has; what was read with a note can be edited too."""
    b = ModelBuilder(strict=False)
    flat = Inertia(1.0, np.zeros(3), np.diag([1.0, 1, 5]))
    b.add_link("a", "world", Revolute((0, 0, 1)), flat)
    b.add_link("b", "a", Revolute((0, 0, 1)), Inertia(1.0, np.zeros(3), np.eye(3)))
    locked = lock_joints(b.build(), {"b_joint": 0.3})
    assert locked.nv == 1
    np.testing.assert_allclose(locked.links.inertia[0], flat.inertia)


# --- what a model describes ----------------------------------------------------------------------


def described():
    """A cart with two arms, one of which follows the other; a loop, two tethers, drives, shapes."""
    b = ModelBuilder()
    b.add_link("cart", "world", Prismatic((1, 0, 0)), body(1))
    for side in ("left", "right"):
        b.add_link(side, "cart", Revolute((0, 1, 0)), body(2), translation=(0.1, 0, 0.2))
        b.add_actuator(f"{side}_motor", f"{side}_joint", gear=3.0)
    b.add_coupling("gear", "right_joint", "left_joint", [0.1, -2.0])
    b.add_closure("loop", "point", ("left", (0, 0, 0.3)), ("right", (0, 0, 0.3)))
    b.add_closure("rope", "distance", ("left", (0, 0, 1.0)), ("world", (0, 0, 3.0)), length=2.0)
    b.add_closure("rail", "planar", ("cart", (0, 0, 0)), ("world", (0, 0, 0)))
    b.add_shape(Shape("floor", "world", "plane", ()))
    b.add_shape(Shape("hand", "right", "sphere", (0.1,)))
    return b.build()


DESCRIBED = described()


def parts(model):
    """Names of all that is described, and where the report says that something was left out."""
    names = lambda entries: {x.name for x in entries}
    lost = {n.where for n in model.report}
    return names(model.closures), names(model.actuators), names(model.shapes), lost


def test_descriptions_of_a_model_without_a_link():
    assert parts(remove_link(DESCRIBED, "right")) == (
        {"rope", "rail"},
        {"left_motor"},
        {"floor"},
        {"closure gear", "closure loop", "actuator right_motor"},
    )


def test_descriptions_of_a_subtree():
    """Its world is where its parent was, so that what was tied to the old one is gone, and said to be."""
    assert parts(subtree(DESCRIBED, "left")) == (
        set(),
        {"left_motor"},
        set(),
        {f"closure {x}" for x in ("gear", "loop", "rope", "rail")} | {"actuator right_motor", "shape floor"},
    )
    assert parts(subtree(DESCRIBED, "cart")) == parts(DESCRIBED)


def test_descriptions_of_locked_joints():
    """What drives or ties a locked joint goes; a coupling to a locked source holds its joint there."""
    locked = lock_joints(DESCRIBED, {"left_joint": 0.3})
    assert parts(locked)[1:] == ({"right_motor"}, {"floor", "hand"}, {"actuator left_motor"})
    (gear,) = (c for c in locked.closures if c.name == "gear")
    assert (gear.joint, gear.source) == ("right_joint", None)
    np.testing.assert_allclose(gear.coefficients, [0.1 - 2.0 * 0.3])
    both = lock_joints(DESCRIBED, {"left_joint": 0.3, "right_joint": -0.5})
    assert parts(both)[0] == {"loop", "rope", "rail"} and "closure gear" in parts(both)[3]
    with pytest.raises(ModelError, match="coupling 'gear' ties 'right_joint' to 'left_joint'"):
        lock_joints(DESCRIBED, {"right_joint": 0.0})


def test_reducing_goes_along_couplings():
    """A joint that follows a kept one goes on moving; one that follows a locked one is locked where that puts it."""
    assert reduce_joints(DESCRIBED, ["left_joint"]).nv == 2
    alone = reduce_joints(DESCRIBED, ["cart_joint"])
    assert alone.nv == 1 and "gear" not in parts(alone)[0]
    turned = quaternion_to_matrix(alone.placements.rotation[alone.link_index("right")])
    np.testing.assert_allclose(turned, axis_angle_to_matrix(jnp.array([0.0, 1, 0]), 0.1), atol=1e-14)
    given = reduce_joints(DESCRIBED, ["cart_joint"], jnp.array([0.0, 0.2, -0.3]))
    turned = quaternion_to_matrix(given.placements.rotation[given.link_index("right")])
    np.testing.assert_allclose(turned, axis_angle_to_matrix(jnp.array([0.0, 1, 0]), -0.3), atol=1e-14)


def test_attached_descriptions_move_along():
    whole = attach(pendulum(), DESCRIBED, "link1", prefix="x/", translation=(0, 0, 1.0))
    assert parts(whole)[1] == {"x/left_motor", "x/right_motor"}
    (rope,) = (c for c in whole.closures if c.name == "x/rope")
    assert rope.links == ("x/left", "link1")
    np.testing.assert_allclose(rope.translations[1], [0, 0, 4.0])
    (floor,) = (s for s in whole.shapes if s.name == "x/floor")
    assert floor.link == "link1" and floor.translation == (0.0, 0.0, 1.0)
