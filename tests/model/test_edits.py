"""Edited models: the dynamics of everything that an edit does not concern stay the same."""

import functools as ft

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
    to_builder,
)
from jaxdyn.spatial import Inertia, axis_angle_to_matrix, quaternion_to_matrix

from ._robots import body, branched_robot, carry_over, efforts, mass_matrix, neutral, pendulum, random_state

TREE = branched_robot()


@ft.cache
def tree_state():
    """A random state of the tree; computed when a test needs it."""
    return random_state(TREE)


def velocity_rows(model, names):
    return np.concatenate([np.r_[model.joint(name).v] for name in names])


def assert_same_model(a, b):
    assert a.topology == b.topology
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-14), a, b)


def test_to_builder_and_build_give_the_same_model():
    assert_same_model(to_builder(TREE).build(), TREE)


# --- locking -------------------------------------------------------------------------------------


def configuration_of(locked, q):
    return carry_over(TREE, locked, q, "q")


@pytest.mark.slow
def test_efforts_of_the_other_joints_with_locked_joints():
    q, v, a = tree_state()
    names = ["b_joint", "c_joint", "e_joint"]
    locked = lock_joints(TREE, {name: q[TREE.joint(name).q] for name in names})
    assert locked.nv == TREE.nv - 1 - 2 - 3 and locked.link_names == TREE.link_names
    at_rest = lambda x: x.at[velocity_rows(TREE, names)].set(0)
    rest = ["root", "a_joint", "d_joint"]
    tau = efforts(TREE, q, at_rest(v), at_rest(a))[velocity_rows(TREE, rest)]
    state = (carry_over(TREE, locked, x, k) for x, k in ((q, "q"), (v, "v"), (a, "v")))
    np.testing.assert_allclose(efforts(locked, *state)[velocity_rows(locked, rest)], tau, rtol=1e-11)


def test_joints_are_locked_at_the_neutral_configuration_or_a_number():
    for value in (None, 0.0, jnp.zeros(1)):
        locked = lock_joints(TREE, {"a_joint": value})
        np.testing.assert_allclose(locked.placements.translation[1], TREE.placements.translation[1])
    assert "a_joint" in locked.joint_names and isinstance(locked.joint("a_joint").joint, Fixed)


@pytest.mark.slow
def test_mimics_of_a_locked_joint_are_locked():
    q = tree_state()[0]
    locked = lock_joints(TREE, {"d_joint": 0.6})
    assert not locked.topology.mimics and isinstance(locked.joint("f_joint").joint, Fixed)
    q = q.at[TREE.joint("d_joint").q].set(0.6)
    names = ["root", "a_joint", "b_joint", "c_joint", "e_joint"]
    full = mass_matrix(TREE, q)[np.ix_(velocity_rows(TREE, names), velocity_rows(TREE, names))]
    part = mass_matrix(locked, configuration_of(locked, q))[
        np.ix_(velocity_rows(locked, names), velocity_rows(locked, names))
    ]
    np.testing.assert_allclose(part, full, atol=1e-11)


@pytest.mark.slow
def test_reduce_joints_keeps_the_named_joints_only():
    q = tree_state()[0]
    small = reduce_joints(TREE, ["d_joint", "a_joint"], q)
    assert small.nv == 2
    full = mass_matrix(TREE, q)[
        np.ix_(velocity_rows(TREE, ["a_joint", "d_joint"]), velocity_rows(TREE, ["a_joint", "d_joint"]))
    ]
    np.testing.assert_allclose(mass_matrix(small, carry_over(TREE, small, q, "q")), full, atol=1e-12)
    np.testing.assert_allclose(small.limits.upper, [2.0, np.inf])
    np.testing.assert_allclose(small.properties.stiffness, [0.0, 3.0])
    assert_same_model(reduce_joints(TREE, ["d_joint", "a_joint", "f_joint"], q), small)


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ({"x_joint": None}, "no joint is called 'x_joint'"),
        ({"f_joint": 0.0}, "'f_joint' mimics 'd_joint'"),
        ({"e_joint": 0.0}, r"joint 'e_joint' has shape \(\), expected \(4,\)"),
        ({"a_joint": [1.0, 2.0]}, r"joint 'a_joint' has shape \(2,\), expected \(1,\)"),
    ],
)
def test_invalid_locks_are_refused(at, message):
    with pytest.raises(JaxdynError, match=message):
        lock_joints(TREE, at)


def test_a_mimic_joint_cannot_be_kept_without_its_source():
    with pytest.raises(ModelError, match="'f_joint' mimics 'd_joint': add that joint"):
        reduce_joints(TREE, ["f_joint"])


@pytest.mark.exhaustive
def test_lock_joints_is_differentiable_with_respect_to_the_angle_and_all_leaves():
    """Derivatives of the holding torque of a pendulum whose elbow is locked at an angle."""
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
def test_attach_agrees_with_a_model_built_as_a_whole():
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
def test_merged_models_are_decoupled():
    arm, other = pendulum(), pendulum((0.3, 0.7))
    both = merge(arm, other, prefix="other/", translation=(1.0, 0, 0))
    q = random_state(both)[0]
    m = mass_matrix(both, q)
    np.testing.assert_allclose(m[:2, :2], mass_matrix(arm, q[:2]), atol=1e-13)
    np.testing.assert_allclose(m[2:, 2:], mass_matrix(other, q[2:]), atol=1e-13)
    np.testing.assert_allclose(m[:2, 2:], 0, atol=1e-13)


def test_clashing_names_and_unknown_links_are_refused():
    with pytest.raises(ModelError, match="two links are called 'link0'"):
        merge(pendulum(), pendulum())
    with pytest.raises(ModelError, match="no link is called 'hand'"):
        attach(pendulum(), gripper(), "hand")


# --- subtrees and removed links ------------------------------------------------------------------


@pytest.mark.slow
def test_inertia_of_a_subtree_on_the_world():
    """On the world by its own joint, a subtree has the inertia of its joints in the whole robot with a fixed base."""
    part = subtree(TREE, "a")
    assert part.link_names == ("a", "b", "plate", "c", "d") and part.frame_names == ("tool",)
    q, names = tree_state()[0], ["a_joint", "b_joint", "c_joint"]
    full = mass_matrix(TREE, q)[np.ix_(velocity_rows(TREE, names), velocity_rows(TREE, names))]
    alone = mass_matrix(part, carry_over(TREE, part, q, "q"))
    np.testing.assert_allclose(alone[np.ix_(velocity_rows(part, names), velocity_rows(part, names))], full, atol=1e-12)
    assert isinstance(subtree(TREE, "a", Fixed()).joint("a_joint").joint, Fixed)
    with pytest.raises(ModelError, match="'f_joint' mimics 'd_joint'"):
        subtree(TREE, "e")


def test_remove_link_removes_its_descendants():
    rest = remove_link(TREE, "e")
    assert rest.link_names == ("base", "a", "b", "plate", "c", "d")
    assert rest.frame_names == ("tool", "camera") and not rest.topology.mimics
    assert remove_link(TREE, "b").frame_names == ("camera",)
    with pytest.raises(ModelError, match="'f_joint' mimics 'd_joint', which is on a removed link"):
        remove_link(TREE, "a")


# --- another base --------------------------------------------------------------------------------


def rotated_base(model, link):
    """The model with a free joint at `link`, and the map of configurations up to a rigid motion."""
    rebased = change_base(model, link, Free())
    return rebased, lambda q: carry_over(model, rebased, q, "q").at[:7].set(neutral(rebased)[:7])


def internal_inertia(model, q, names):
    """`M_jj - M_jb M_bb^-1 M_bj`: inertia of the joints of a freely floating robot."""
    m, j = np.asarray(mass_matrix(model, q)), velocity_rows(model, names)
    b = np.setdiff1d(np.arange(model.nv), j)
    return m[np.ix_(j, j)] - m[np.ix_(j, b)] @ np.linalg.solve(m[np.ix_(b, b)], m[np.ix_(b, j)])


JOINTS = ["a_joint", "b_joint", "c_joint", "d_joint", "e_joint"]


@pytest.mark.slow
@pytest.mark.parametrize("link", ["c", "plate", "d"])
def test_internal_inertia_does_not_depend_on_the_base(link):
    """The internal inertia and det M (the change of velocities is unimodular) do not depend on the base."""
    q = tree_state()[0]
    rebased, configuration = rotated_base(TREE, link)
    assert rebased.nv == TREE.nv and rebased.link_names[0] == link
    p = configuration(q)
    np.testing.assert_allclose(internal_inertia(rebased, p, JOINTS), internal_inertia(TREE, q, JOINTS), atol=1e-11)
    determinants = [np.linalg.det(mass_matrix(*x)) for x in ((rebased, p), (TREE, q))]
    np.testing.assert_allclose(*determinants, rtol=1e-10)


def test_change_base_keeps_the_parameters_of_links_and_joints():
    rebased = change_base(TREE, "c", Free(), translation=(0, 0, 1.0))
    for name in TREE.link_names:
        old, new = TREE.link(name), rebased.link(name)
        for x, y in ((old.mass, new.mass), (old.com, new.com), (old.inertia, new.inertia)):
            np.testing.assert_array_equal(x, y)
    assert set(rebased.joint_names) >= set(TREE.joint_names) and rebased.frame_names == TREE.frame_names
    for kind, size in (("lower", "q"), ("upper", "q"), ("effort", "v")):
        for name in JOINTS:
            at = [getattr(m.joint(name), size) for m in (TREE, rebased)]
            values = [getattr(m.limits, kind)[s] for m, s in zip((TREE, rebased), at, strict=True)]
            np.testing.assert_array_equal(*values)
    np.testing.assert_allclose(rebased.properties.damping[rebased.joint("b_joint").v], [0.3])
    assert len(rebased.topology.mimics) == 1
    np.testing.assert_allclose(rebased.placements.translation[0], [0, 0, 1])


@pytest.mark.slow
def test_change_base_back_to_the_first_base():
    q = tree_state()[0]
    there = change_base(TREE, "c", Free())
    back = change_base(there, "base", Free())
    p = carry_over(TREE, back, q, "q")
    np.testing.assert_allclose(internal_inertia(back, p, JOINTS), internal_inertia(TREE, q, JOINTS), atol=1e-11)
    at = np.r_[velocity_rows(TREE, ["root", *JOINTS])], np.r_[velocity_rows(back, ["root", *JOINTS])]
    whole, again = (np.asarray(mass_matrix(m, x)) for m, x in ((TREE, q), (back, p)))
    np.testing.assert_allclose(again[np.ix_(at[1], at[1])], whole[np.ix_(at[0], at[0])], atol=1e-11)


def test_change_base_to_the_end_of_a_chain():
    """Fixed at its tip, the chain has the inertia of a chain that is built from there."""
    b = ModelBuilder()
    b.add_link("base", inertia=body(2))
    b.add_link("tip", "base", Revolute((0, 1, 0)), body(1), translation=(0.3, 0, 0.1), rpy=(0.1, 0.2, 0.3))
    rebased = change_base(b.build(), "tip")
    m = mass_matrix(rebased, jnp.array([0.7]))
    base = body(2).moved((-0.3, 0, -0.1))  # about the hinge
    about = base.inertia + base.mass * ((base.com @ base.com) * np.eye(3) - np.outer(base.com, base.com))
    axis = np.asarray(_rotation_from_rpy(0.1, 0.2, 0.3))[:, 1]
    np.testing.assert_allclose(m, [[axis @ about @ axis]], rtol=1e-12)


def _rotation_from_rpy(*rpy):
    b = ModelBuilder().add_frame("x", "y", rpy=rpy).add_link("y").build()
    w, *xyz = np.asarray(b.frames.rotation[0])
    x, y, z = xyz
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * k + 2 * k @ k


@pytest.mark.parametrize(
    ("model", "link", "message"),
    [
        (TREE, "f", "joint 'e_joint' is a Spherical joint, which cannot be reversed"),
        (pendulum(), "link1", "'link0_joint' connects the old base to the world and is a Revolute"),
        (TREE, "hand", "no link is called 'hand'"),
    ],
)
def test_invalid_bases_are_refused(model, link, message):
    with pytest.raises(ModelError, match=message):
        change_base(model, link)


@pytest.mark.exhaustive
def test_edits_of_traced_and_batched_leaves():
    """Efforts at rest are linear in the masses, also after edits."""
    edited = lambda model: change_base(lock_joints(model, {"d_joint": None}), "c", Free())
    shape = edited(TREE)
    q = carry_over(TREE, shape, tree_state()[0], "q")

    def total(mass):
        model = edited(eqx.tree_at(lambda m: m.links.mass, TREE, mass))
        return rnea(model, q, jnp.zeros(model.nv), jnp.ones(model.nv)).sum()

    masses = jnp.linspace(1, 2, 3)[:, None] * TREE.links.mass
    slopes = jax.jit(jax.vmap(jax.grad(total)))(masses)
    assert slopes.shape == masses.shape
    np.testing.assert_allclose(slopes[0], slopes[2], rtol=1e-9)  # sums of terms that partly cancel
    assert (slopes[0] != 0).all()


def test_edits_do_not_check_inertias():
    """Files may contain unphysical inertias; such models can be edited."""
    b = ModelBuilder(strict=False)
    flat = Inertia(1.0, np.zeros(3), np.diag([1.0, 1, 5]))
    b.add_link("a", "world", Revolute((0, 0, 1)), flat)
    b.add_link("b", "a", Revolute((0, 0, 1)), Inertia(1.0, np.zeros(3), np.eye(3)))
    locked = lock_joints(b.build(), {"b_joint": 0.3})
    assert locked.nv == 1
    np.testing.assert_allclose(locked.links.inertia[0], flat.inertia)


# --- closures, actuators and shapes ---------------------------------------------------------------


def model_with_descriptions():
    """A cart with two coupled arms, loop closures, actuators and shapes."""
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


WITH_DESCRIPTIONS = model_with_descriptions()


def names_of_descriptions(model):
    """Names of closures, actuators and shapes, and of those that the report lists as dropped."""
    names = lambda entries: {x.name for x in entries}
    dropped = {n.where for n in model.report}
    return names(model.closures), names(model.actuators), names(model.shapes), dropped


def test_remove_link_drops_descriptions_of_the_link():
    assert names_of_descriptions(remove_link(WITH_DESCRIPTIONS, "right")) == (
        {"rope", "rail"},
        {"left_motor"},
        {"floor"},
        {"closure gear", "closure loop", "actuator right_motor"},
    )


def test_subtree_drops_descriptions_on_other_links():
    """The world of a subtree is the former parent, so that closures to the old world are dropped with a note."""
    assert names_of_descriptions(subtree(WITH_DESCRIPTIONS, "left")) == (
        set(),
        {"left_motor"},
        set(),
        {f"closure {x}" for x in ("gear", "loop", "rope", "rail")} | {"actuator right_motor", "shape floor"},
    )
    assert names_of_descriptions(subtree(WITH_DESCRIPTIONS, "cart")) == names_of_descriptions(WITH_DESCRIPTIONS)


def test_lock_joints_drops_actuators_and_fixes_coupled_joints():
    """Actuators of locked joints are dropped; a coupling to a locked source fixes its joint."""
    locked = lock_joints(WITH_DESCRIPTIONS, {"left_joint": 0.3})
    assert names_of_descriptions(locked)[1:] == ({"right_motor"}, {"floor", "hand"}, {"actuator left_motor"})
    (gear,) = (c for c in locked.closures if c.name == "gear")
    assert (gear.joint, gear.source) == ("right_joint", None)
    np.testing.assert_allclose(gear.coefficients, [0.1 - 2.0 * 0.3])
    both = lock_joints(WITH_DESCRIPTIONS, {"left_joint": 0.3, "right_joint": -0.5})
    assert (
        names_of_descriptions(both)[0] == {"loop", "rope", "rail"} and "closure gear" in names_of_descriptions(both)[3]
    )
    with pytest.raises(ModelError, match="coupling 'gear' ties 'right_joint' to 'left_joint'"):
        lock_joints(WITH_DESCRIPTIONS, {"right_joint": 0.0})


def test_reduce_joints_follows_couplings():
    """A joint coupled to a kept one stays free; a joint coupled to a locked one is locked at its polynomial."""
    assert reduce_joints(WITH_DESCRIPTIONS, ["left_joint"]).nv == 2
    alone = reduce_joints(WITH_DESCRIPTIONS, ["cart_joint"])
    assert alone.nv == 1 and "gear" not in names_of_descriptions(alone)[0]
    turned = quaternion_to_matrix(alone.placements.rotation[alone.link_index("right")])
    np.testing.assert_allclose(turned, axis_angle_to_matrix(jnp.array([0.0, 1, 0]), 0.1), atol=1e-14)
    given = reduce_joints(WITH_DESCRIPTIONS, ["cart_joint"], jnp.array([0.0, 0.2, -0.3]))
    turned = quaternion_to_matrix(given.placements.rotation[given.link_index("right")])
    np.testing.assert_allclose(turned, axis_angle_to_matrix(jnp.array([0.0, 1, 0]), -0.3), atol=1e-14)


def test_attach_moves_descriptions():
    whole = attach(pendulum(), WITH_DESCRIPTIONS, "link1", prefix="x/", translation=(0, 0, 1.0))
    assert names_of_descriptions(whole)[1] == {"x/left_motor", "x/right_motor"}
    (rope,) = (c for c in whole.closures if c.name == "x/rope")
    assert rope.links == ("x/left", "link1")
    np.testing.assert_allclose(rope.translations[1], [0, 0, 4.0])
    (floor,) = (s for s in whole.shapes if s.name == "x/floor")
    assert floor.link == "link1" and floor.translation == (0.0, 0.0, 1.0)
