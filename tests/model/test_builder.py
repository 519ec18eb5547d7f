"""Assembly by name: numbering, views, derivatives, and the messages of invalid descriptions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn._errors import ModelError
from jaxdyn.joints import Helical, Prismatic, Revolute, Spherical, Universal
from jaxdyn.model import ModelBuilder, Shape
from jaxdyn.model._edits import to_builder
from jaxdyn.spatial import Inertia, box, quaternion_to_matrix, sphere

from ._robots import branched_robot, efforts, pendulum, random_state

Y = Revolute((0, 1, 0))


def test_links_are_numbered_depth_first():
    b = ModelBuilder()
    b.add_link("finger", "hand", Y)
    b.add_link("hand", "arm", Y)
    b.add_link("base")
    b.add_link("arm", "base", Y)
    b.add_link("leg", "base", Y)
    model = b.build()
    assert model.link_names == ("base", "arm", "hand", "finger", "leg")
    assert model.topology.parents == (-1, 0, 1, 2, 0)
    assert (model.nq, model.nv, model.num_links) == (4, 4, 5)


def test_views_by_name():
    model = branched_robot()
    assert model.joint("root").q == slice(0, 7) and model.joint("root").v == slice(0, 6)
    assert isinstance(model.joint("b_joint").joint, Helical)
    np.testing.assert_allclose(model.joint("b_joint").joint.pitch, 0.2)
    assert model.link("plate").parent == "b"
    np.testing.assert_allclose(model.link("plate").mass, 1.4)
    assert model.joint("plate_joint").q == slice(0, 0)
    assert model.frame_index("camera") == 1
    np.testing.assert_allclose(model.limits.lower[model.joint("a_joint").q], [-1])
    np.testing.assert_allclose(model.properties.rest[model.joint("e_joint").q], [1, 0, 0, 0])


def test_three_forms_of_a_rotation_agree():
    rpy = (0.0, 0.0, np.pi / 2)
    matrix = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    quaternion = np.array([1.0, 0, 0, 1])
    models = [
        ModelBuilder().add_link("x", "world", Y, **given).build()
        for given in ({"rpy": rpy}, {"rotation": matrix}, {"quaternion": quaternion / np.sqrt(2)})
    ]
    for model in models[1:]:
        np.testing.assert_allclose(model.placements.rotation, models[0].placements.rotation, atol=1e-15)


def start(name="arm", joint=Y, inertia=None, **given):
    return ModelBuilder().add_link(name, "world", joint, inertia, **given)


ERRORS = {
    "unknown parent": (lambda: start().add_link("hand", "amr", Y), "'hand' has the unknown parent 'amr'.*'arm'"),
    "cycle": (
        lambda: start().add_link("x", "y", Y).add_link("y", "x", Y),
        r"\['x', 'y'\] form a cycle",
    ),
    "link on itself": (lambda: start("x").add_link("y", "y", Y), r"\['y'\] form a cycle"),
    "two links of a name": (lambda: start().add_link("arm", "world", Y), "two links are called 'arm'"),
    "two joints of a name": (
        lambda: start().add_link("hand", "arm", Y, joint_name="arm_joint"),
        "two joints are called 'arm_joint'",
    ),
    "link called world": (lambda: start("world"), "a link is called 'world'"),
    "negative mass": (lambda: start(inertia=sphere(1.0, mass=-1.0)), "'arm' has negative mass -1 kg"),
    "triangle inequality": (
        lambda: start(inertia=Inertia(1.0, np.zeros(3), np.diag([1.0, 1.0, 3.0]))),
        "'arm' has principal moments.*triangle inequality",
    ),
    "asymmetric inertia": (
        lambda: start(inertia=Inertia(1.0, np.zeros(3), np.triu(np.ones((3, 3))))),
        "'arm'.*not symmetric",
    ),
    "mass not finite": (
        lambda: start(inertia=box((1, 1, np.nan), density=1.0)),
        "link 'arm': mass is nan, expected finite",
    ),
    "centre not finite": (
        lambda: start(inertia=sphere(1.0, mass=1.0).moved((np.inf, 0, 0))),
        "link 'arm': com is .inf 0. 0.., expected finite",
    ),
    "translation not finite": (
        lambda: start(translation=(0, 0, np.nan)),
        "joint 'arm_joint': translation is .*nan.*, expected finite",
    ),
    "rotation not finite": (lambda: start(rpy=(0, 0, np.inf)), "joint 'arm_joint': rpy is .*inf.*, expected finite"),
    "zero quaternion": (lambda: start(quaternion=np.zeros(4)), "joint 'arm_joint': quaternion is .*not all"),
    "zero axis": (lambda: start(joint=Revolute((0, 0, 0))), "joint 'arm_joint': axis is .*not all of them zero"),
    "one zero axis of two": (
        lambda: start(joint=Universal((0, 0, 1), (0, 0, 0))),
        "joint 'arm_joint': axis2 is .*not all of them zero",
    ),
    "axis not finite": (
        lambda: start(joint=Prismatic((0, 0, np.nan))),
        "'arm_joint': axis is .*nan.*, expected finite",
    ),
    "pitch not finite": (lambda: start(joint=Helical((0, 0, 1), np.nan)), "'arm_joint': pitch is nan, expected finite"),
    "armature not finite": (lambda: start(armature=np.inf), "'arm_joint': armature is inf, expected finite"),
    "stiffness not finite": (lambda: start(stiffness=np.inf), "'arm_joint': stiffness is inf, expected finite"),
    "negative armature": (lambda: start(armature=-0.1), "'arm_joint': armature is -0.1, expected .* not negative"),
    "limits crossed": (lambda: start(lower=1.0, upper=-1.0), "'arm_joint': its lower limit 1.0 is above"),
    "gravity not finite": (
        lambda: ModelBuilder(gravity=(0, 0, np.nan)).add_link("arm", "world", Y),
        "robot: gravity is .*nan., expected finite",
    ),
    "frame not finite": (
        lambda: start().add_frame("tip", "arm", translation=(0, np.inf, 0)),
        "frame 'tip': translation is .*inf.*, expected finite",
    ),
    "frame with a link's name": (lambda: start().add_frame("arm", "arm"), "frame 'arm' has the name of a link"),
    "mimic not finite": (
        lambda: start().add_link("x", "arm", Y).add_mimic("x_joint", "arm_joint", ratio=np.nan),
        "mimic of 'x_joint': ratio is nan, expected finite",
    ),
    "closure not finite": (
        lambda: start().add_closure("loop", "point", ("arm", (0, 0, np.nan)), ("world", (0, 0, 0))),
        "closure 'loop': translation is .*nan., expected finite",
    ),
    "coupling not finite": (
        lambda: start().add_coupling("tie", "arm_joint", None, [np.inf]),
        "coupling 'tie': coefficients is .inf., expected finite",
    ),
    "gear not finite": (
        lambda: start().add_actuator("motor", "arm_joint", gear=np.inf),
        "actuator 'motor': gear is inf, expected finite",
    ),
    "range of no control": (
        lambda: start().add_actuator("motor", "arm_joint", range=(1.0, -1.0)),
        "actuator 'motor': its range",
    ),
    "damping not a number": (lambda: start(damping=np.nan), "'arm_joint': damping is nan, expected finite"),
    "damping of a wrong shape": (
        lambda: start(damping=[1.0, 2.0]),
        r"'arm_joint': damping has shape \(2,\), expected \(1,\) or a number",
    ),
    "rest of a wrong shape": (
        lambda: start(joint=Spherical(), rest=[1.0, 0.0, 0.0]),
        r"'arm_joint': rest has shape \(3,\), expected \(4,\)",
    ),
    "unknown property": (lambda: start(dampng=1.0), r"'arm': unknown joint property \['dampng'\]"),
    "two rotations": (lambda: start(rpy=(0, 0, 0), quaternion=(1, 0, 0, 0)), "at most one of rotation"),
    "frame on nothing": (lambda: start().add_frame("tip", "hand"), "frame 'tip' is fixed to 'hand'"),
    "two frames of a name": (
        lambda: start().add_frame("tip", "arm").add_frame("tip", "arm"),
        "two frames are called 'tip'",
    ),
    "mimic of nothing": (lambda: start().add_mimic("arm_joint", "x"), "there is no joint called 'x'"),
    "mimic of itself": (
        lambda: start().add_mimic("arm_joint", "arm_joint"),
        "mimic of 'arm_joint': its source 'arm_joint'",
    ),
    "mimic of a ball joint": (
        lambda: start().add_link("x", "arm", Spherical()).add_mimic("arm_joint", "x_joint"),
        "'x_joint' does not have exactly one coordinate",
    ),
    "chain of mimics": (
        lambda: (
            start()
            .add_link("x", "arm", Y)
            .add_link("y", "x", Y)
            .add_mimic("y_joint", "x_joint")
            .add_mimic("x_joint", "arm_joint")
        ),
        "its source 'x_joint' mimics a joint itself",
    ),
}


#: wrong values by the argument of `add_link` that receives them
WRONG = {
    "translation": ([1.0, 2.0], 3.0, np.zeros((3, 1)), "here", [1.0, "x", 0.0], 1j * np.ones(3)),
    "rotation": (np.ones((3, 3)), np.diag([1.0, 1.0, -1.0]), 2 * np.eye(3), np.eye(4), np.full((3, 3), np.nan)),
    "quaternion": (np.ones(3), np.zeros(4), 1.0),
    "rpy": ([0.0, 0.0], np.eye(3)),
    **dict.fromkeys(("damping", "friction", "armature", "friction_velocity"), (-1.0, np.inf, [1.0, 2.0], "stiff")),
    **dict.fromkeys(("effort", "velocity"), (-1.0, np.nan, [[1.0]], [1.0, 1.0])),
    "stiffness": (np.nan, [1.0, 2.0]),
    "rest": (np.inf, [0.0, 0.0]),
    **dict.fromkeys(("lower", "upper"), (np.nan, [0.0, 0.0, 0.0])),
}
#: calls with a wrong argument, by the argument and its owner
WRONG_CALLS = {
    "joint 'arm_joint': axis": [lambda n=n: start(joint=Revolute(np.ones(n))) for n in (1, 2, 4)],
    "joint 'arm_joint': axis2": [lambda: start(joint=Universal([0, 0, 1], [0, 1]))],
    "joint 'arm_joint': pitch": [lambda: start(joint=Helical([0, 0, 1], [0.1, 0.2]))],
    "link 'arm': inertia": [
        lambda: start(inertia=Inertia(1.0, np.zeros(3), np.eye(2))),
        lambda: start(inertia=Inertia(1.0, np.zeros(3), np.ones(3))),
    ],
    "link 'arm': mass": [lambda: start(inertia=Inertia([1.0, 2.0], np.zeros(3), np.eye(3)))],
    "link 'arm': com": [lambda: start(inertia=Inertia(1.0, np.zeros(2), np.eye(3)))],
    "robot: gravity": [
        lambda g=g: ModelBuilder(gravity=g).add_link("arm").build() for g in (9.81, (0, 9.81), np.zeros((3, 1)), "down")
    ],
    "frame 'tip': translation": [lambda: start().add_frame("tip", "arm", translation=[0, 0])],
    "frame 'tip': rotation": [lambda: start().add_frame("tip", "arm", rotation=-np.eye(3))],
    "mimic of 'x_joint': offset": [
        lambda: start().add_link("x", "arm", Y).add_mimic("x_joint", "arm_joint", offset=np.array([0.0, 1.0]))
    ],
    "closure 'loop': quaternion": [
        lambda: start().add_closure("loop", "weld", ("arm", (np.ones(3), np.zeros(3))), ("world", np.zeros(3)))
    ],
    "closure 'loop': length": [
        lambda: start().add_closure("loop", "distance", ("arm", np.zeros(3)), ("world", np.zeros(3)), length=-1.0)
    ],
    "coupling 'tie': coefficients": [lambda: start().add_coupling("tie", "arm_joint", None, np.eye(2))],
    "actuator 'motor': gear": [lambda: start().add_actuator("motor", "arm_joint", gear=[1.0, 2.0]).build()],
    "actuator 'motor': range": [lambda: start().add_actuator("motor", "arm_joint", range=[1.0, 2.0, 3.0])],
    "shape 'box': size": [lambda: start().add_shape(Shape("box", "arm", "box", (1.0, np.nan, 1.0)))],
    "shape 'box': translation": [lambda: start().add_shape(Shape("box", "arm", "box", (1.0, 1.0, 1.0), (0.0, 0.0)))],
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_shapes_and_values_name_joint_and_argument(name):
    for value in WRONG[name]:
        with pytest.raises(ModelError, match=f"joint 'arm_joint': {name} (is|has shape) .*, expected "):
            start(**{name: value})


@pytest.mark.parametrize("message", WRONG_CALLS)
def test_wrong_arguments_name_owner_and_argument(message):
    for call in WRONG_CALLS[message]:
        with pytest.raises(ModelError, match=f"^{message}"):
            call()


@pytest.mark.slow
def test_wrong_classes_name_owner_and_argument(without_annotations):
    for joint in (Revolute, "revolute", 3):
        with pytest.raises(
            ModelError, match="^joint 'arm_joint': joint is .*, expected an instance of AbstractJoint; "
        ):
            start(joint=joint)
    with pytest.raises(ModelError, match=r"the class Revolute, .*; create one: Revolute\(...\)"):
        start(joint=Revolute)
    with pytest.raises(ModelError, match="^link 'arm': inertia is 1.0, expected an instance of Inertia"):
        start(inertia=1.0)


@pytest.mark.parametrize("message", ["translation", "damping", "axis", "mass"])
def test_shapes_of_traced_numbers_are_checked_and_their_values_are_not(message):
    def build(x, size):
        wide = lambda name: jnp.full(size, x) if name == message else x
        b = ModelBuilder()
        at = jnp.full(2 if message == "translation" and size else 3, x)
        axis = jnp.full(2 if message == "axis" and size else 3, x)
        b.add_link("arm", "world", Revolute(axis), Inertia(wide("mass"), jnp.zeros(3), jnp.eye(3)),
                   translation=at, damping=wide("damping"))  # fmt: skip
        return b.build().links.mass.sum()

    assert jax.eval_shape(lambda x: build(x, ()), jnp.array(-1.0)).shape == ()
    with pytest.raises(ModelError, match=f"{message} has shape"):
        jax.eval_shape(lambda x: build(x, (2,)), jnp.array(1.0))


def test_unphysical_inertia_is_kept_on_request_and_noted():
    body = Inertia(1.0, np.zeros(3), np.diag([1.0, 1.0, 3.0]))
    with pytest.raises(ModelError, match="link 'arm' has principal moments.*allow_unphysical_inertia=True"):
        start(inertia=body).build()
    builder = ModelBuilder(allow_unphysical_inertia=True).add_link("arm", "world", Y, body)
    model = builder.build()
    np.testing.assert_array_equal(model.links.inertia[0], np.diag([1.0, 1.0, 3.0]))
    (note,) = model.report
    assert note.where == "link arm" and "triangle inequality" in note.what and "kept" in note.what
    assert to_builder(model).build().report == model.report
    with pytest.raises(ModelError, match="link 'arm': inertia is .*nan"):
        ModelBuilder(allow_unphysical_inertia=True).add_link(
            "arm", "world", Y, Inertia(1.0, np.zeros(3), np.full((3, 3), np.nan))
        )


@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_the_link_or_joint(name):
    make, message = ERRORS[name]
    with pytest.raises(ModelError, match=message):
        make().build()


def test_errors_of_unknown_names_list_the_existing_ones():
    model = pendulum()
    for find in (model.joint, model.link, model.frame_index):
        with pytest.raises(ModelError, match="no .* is called 'elbow'; this model has '"):
            find("elbow")


def test_models_without_links_and_without_joints():
    empty = ModelBuilder().build()
    assert (empty.nq, empty.nv, empty.num_links) == (0, 0, 0)
    bench = ModelBuilder().add_link("bench", inertia=box((1, 1, 1), mass=3.0)).build()
    assert (bench.nq, bench.nv, bench.topology.bodies) == (0, 0, ())


@pytest.mark.slow
def test_derivative_with_respect_to_the_edge_of_a_box():
    """`Iyy + m d^2` of a box on a hinge, as a function of the edge that determines mass and inertia."""

    def hinge_inertia(edge):
        b = ModelBuilder()
        solid = box(jnp.stack([edge, 0.2, 0.3]), density=500.0).moved(jnp.stack([edge / 2, 0.0, 0.0]))
        b.add_link("door", "world", Y, solid)
        model = b.build()
        zero = jnp.zeros(1)
        one = jnp.ones(1)
        return (efforts(model, zero, zero, one) - efforts(model, zero, zero, zero))[0]

    rho = 500.0 * 0.2 * 0.3
    value, slope = jax.value_and_grad(hinge_inertia)(jnp.array(0.7))
    np.testing.assert_allclose(value, rho * (0.7**3 / 3 + 0.7 * 0.3**2 / 12), rtol=1e-13)
    np.testing.assert_allclose(slope, rho * (0.7**2 + 0.3**2 / 12), rtol=1e-13)


def test_precision_is_an_argument_of_build():
    single = start(inertia=sphere(0.1, mass=1.0)).build(jnp.float32)
    assert {x.dtype for x in jax.tree.leaves(single)} == {jnp.dtype(jnp.float32)}
    double = single.astype(jnp.float64)
    assert double.dtype == jnp.float64 and double.topology == single.topology


@pytest.mark.slow
def test_links_behind_fixed_joints_are_merged_into_their_body():
    """Three rigidly connected links have the dynamics of one link with the sum of their inertias."""
    parts = [box((0.1, 0.2, 0.3), mass=m) for m in (1.0, 2.0, 3.0)]
    b = ModelBuilder()
    b.add_link("arm", "world", Revolute((0.2, 1, 0.3)), parts[0], translation=(0.1, 0, 0))
    b.add_link("plate", "arm", None, parts[1], translation=(0.3, 0.1, 0), rpy=(0.3, 0.2, 0.1))
    b.add_link("sensor", "plate", None, parts[2], translation=(0, 0.2, 0), rpy=(0, 1.0, 0))
    b.add_link("hand", "sensor", Prismatic((0, 0, 1)), parts[0], translation=(0, 0, 0.4))
    one, two = (quaternion_to_matrix(b.build().placements.rotation[k]) for k in (1, 2))
    at = jnp.array([0.3, 0.1, 0])
    there = at + one @ jnp.array([0, 0.2, 0])
    whole = parts[0] + parts[1].moved(at, one) + parts[2].moved(there, one @ two)
    c = ModelBuilder()
    c.add_link("arm", "world", Revolute((0.2, 1, 0.3)), whole, translation=(0.1, 0, 0))
    c.add_link(
        "hand",
        "arm",
        Prismatic((0, 0, 1)),
        parts[0],
        translation=there + one @ two @ jnp.array([0, 0, 0.4]),
        rotation=one @ two,
    )
    model, merged = b.build(), c.build()
    state = random_state(model)
    np.testing.assert_allclose(efforts(model, *state), efforts(merged, *state), rtol=1e-12)


def test_joints_without_inertia_are_reported():
    """Their row of the mass matrix is zero unless a descendant has mass, or the joint a rotor."""
    note = [("joint arm_joint", "moves no mass and has no armature: the mass matrix is singular")]
    notes = lambda builder: [(n.where, n.what) for n in builder.build().report]
    assert notes(start()) == note
    assert notes(start(armature=0.1)) == notes(start(inertia=sphere(0.1, mass=1.0))) == []
    assert notes(start().add_link("tip", "arm", None, sphere(0.1, mass=1.0))) == []
    assert notes(start().add_note(*note[0])) == note
    assert notes(start().add_link("x", "world", Y, sphere(0.1, mass=1.0))) == note
