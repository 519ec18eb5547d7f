"""Flexible links as links of robots: the same robot undeformed, and errors."""

from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.beams import Beam, Material, Rectangle, Round, Tube
from jaxdyn.flexible import Lump, Strains, add_flexible_link, make_flexible
from jaxdyn.joints import Bushing, Prismatic, Revolute
from jaxdyn.model import Closure
from jaxdyn.spatial import Inertia, Pose, box, rpy_to_matrix

TUBE = Tube(0.012, 0.010)


def leg():
    """Two links that point along -z, with a frame and a loop closure on the first."""
    b = jd.ModelBuilder()
    b.add_link("hip", "world", Revolute([0, 1, 0]), box([0.05, 0.06, 0.8], mass=2.0).moved([0, 0, -0.4]))
    b.add_link("shin", "hip", Revolute([0, 1, 0]), box([0.03, 0.02, 0.5], mass=1.0), translation=[0.02, 0.03, -0.8])
    b.add_frame("knee", "hip", translation=[0.05, 0.0, -0.8], rpy=[0.1, 0.2, 0.3])
    b.add_frame("middle", "hip", translation=[0.0, 0.1, -0.3])
    b.add_closure("rope", "distance", ("hip", [0.1, 0.0, -0.7]), ("world", [0.5, 0.0, 0.0]), length=0.5)
    return b.build()


def thigh():
    """The beam of the first link: it begins below the hip and points downwards."""
    return Beam(TUBE, Material.aluminium(), 0.7, placement=Pose(rpy_to_matrix([0.3, np.pi / 2, 0.0]), [0, 0, -0.05]))


def flexible_leg(**options):
    model, part = make_flexible(leg(), "hip", thigh(), sublinks=2, attached={"middle": 0.3}, **options)
    return part.mount(model), part


@jax.jit
def rigid_quantities(model, q, v):
    frames = [jd.frame_pose(model, q, name) for name in ("knee", "middle", "shin")]
    mass = jd.mass_matrix(model, q)
    return [(p.rotation, p.translation) for p in frames], mass, jd.gravity_forces(model, q), jd.bias_forces(model, q, v)


@pytest.mark.slow
def test_undeformed_robot_is_the_rigid_one():
    rigid, (flexible, part) = leg(), flexible_leg()
    assert (flexible.nv, part.link_names[-1], part.tip) == (2 + 2 * 3, "hip_sublink2", "hip_tip")
    assert [view.parent for view in map(flexible.link, ("shin", "hip_sublink2"))] == ["hip_tip", "hip_sublink1"]
    assert flexible.topology.link_names[flexible.topology.frame_links[1]] == "hip_station1"
    index = np.array([flexible.joint(name).v.start for name in rigid.joint_names])
    q, v = jax.random.normal(jax.random.key(0), (2, 2))
    wide = lambda x: jnp.zeros(flexible.nv).at[index].set(x)
    expected, found = rigid_quantities(rigid, q, v), rigid_quantities(flexible, wide(q), wide(v))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12), expected[0], found[0])
    np.testing.assert_allclose(found[1][np.ix_(index, index)], expected[1], rtol=1e-9)
    for k in (2, 3):
        np.testing.assert_allclose(found[k][index], expected[k], rtol=1e-8, atol=1e-10)
    closure, rope = (cast("Closure", model.closures[0]) for model in (flexible, rigid))
    assert closure.links == ("hip_tip", "world")
    tip = jd.frame_pose(flexible, wide(q), "hip_tip").apply(closure.translations[0])
    expected = jd.frame_pose(rigid, q, "hip").apply(rope.translations[0])
    np.testing.assert_allclose(tip, expected, atol=1e-12)


@pytest.mark.exhaustive
def test_stiffness_is_that_of_the_section():
    beam = Beam(Rectangle(0.02, 0.03), Material(2700.0, 70e9, 27e9, retardation_time=1e-4), 0.8)
    builder = jd.ModelBuilder()
    part = add_flexible_link(builder, "arm", beam=beam, sublinks=4, strains=Strains.all())
    model = part.mount(builder.build())
    numbers, k = beam.section.properties(), 10 * (1 + 8 / 27) / (12 + 11 * 8 / 27)
    expected = [
        70e9 * numbers.second_moment_z,
        70e9 * numbers.second_moment_y,
        27e9 * numbers.torsion_constant,
        70e9 * numbers.area,
        k * 27e9 * numbers.area,
        k * 27e9 * numbers.area,
    ]
    np.testing.assert_allclose(
        model.properties.stiffness.reshape(4, 6), np.tile(expected, (4, 1)) * 4 / 0.8, rtol=1e-12
    )
    np.testing.assert_allclose(model.properties.damping, 1e-4 * model.properties.stiffness, rtol=1e-12)
    np.testing.assert_allclose(model.links.mass.sum(), beam.inertia().mass, rtol=1e-12)
    q = 1e-3 * jax.random.normal(jax.random.key(1), (24,))
    np.testing.assert_allclose(
        part.strain_energy(model, q), jnp.sum(model.properties.stiffness * q * q) / 2, rtol=1e-12
    )
    assert "FlexibleLink.mount" in " ".join(note.what for note in model.report)


def test_taper_is_integrated():
    end, start = Round(0.005), Round(0.015)
    part = add_flexible_link(
        jd.ModelBuilder(), "arm", beam=Beam(start, Material.steel(), 0.9, end), sublinks=3, strains=Strains.planar()
    )
    s = np.linspace(0.3, 0.6, 2001)
    radius = 0.015 - 0.01 * s / 0.9
    compliance = np.trapezoid(1 / (210e9 * np.pi * radius**4 / 4), s)
    np.testing.assert_allclose(part.spring_stiffness()[1, 0], 1 / compliance, rtol=1e-6)


@pytest.mark.parametrize(
    ("strains", "kind"),
    [
        (Strains.planar(), Revolute),
        (Strains(torsion=False), Bushing),
        (Strains(), Bushing),
        (Strains(False, False, False, extension=True), Prismatic),
    ],
    ids=["planar", "bending", "default", "extension"],
)
def test_joints_of_strains(strains, kind):
    assert isinstance(strains.joint(), kind) and strains.joint().nv == len(strains.names)


def test_strain_pose_does_not_depend_on_the_direction_of_the_beam():
    joint = Strains.all().joint()
    q = jnp.array([0.3, -0.2, 0.4, 0.1, 0.05, -0.07])  # bending z, y, torsion, extension, shear y, z
    forward = Pose(*joint.transform(q))
    # from the other end, with x and y reversed, the same strains of curvature about z and extension
    turn = Pose(jnp.diag(jnp.array([-1.0, -1.0, 1.0])), jnp.zeros(3))
    reversed_q = q * jnp.array([-1, 1, 1, 1, 1, -1.0])
    backward = turn.inverse() @ forward.inverse() @ turn
    np.testing.assert_allclose(Pose(*joint.transform(reversed_q)).rotation, backward.rotation, atol=1e-12)
    np.testing.assert_allclose(Pose(*joint.transform(reversed_q)).translation, backward.translation, atol=1e-12)


@pytest.mark.slow
def test_lumps_and_stations():
    builder = jd.ModelBuilder()
    motor = Inertia(0.4, [0.0, 0.02, 0.0], np.diag([3e-4, 2e-4, 1e-4]))
    beam = Beam(Round(0.01), Material.steel(), 1.0, placement=Pose(rpy_to_matrix([0.0, 0.0, np.pi / 2]), [0.1, 0, 0]))
    part = add_flexible_link(
        builder,
        "arm",
        "world",
        Prismatic([1, 0, 0]),
        beam=beam,
        sublinks=4,
        lumps=(Lump(motor, 0.5),),
        stations={"sensor": 0.5},
    )
    model = part.mount(builder.build())
    pose = jd.frame_pose(model, jnp.zeros(model.nq), "sensor")
    np.testing.assert_allclose(pose.translation, [0.1, 0.5, 0.0], atol=1e-12)
    np.testing.assert_allclose(pose.rotation, np.eye(3), atol=1e-12)
    total = beam.inertia() + motor.moved([0.1, 0.5, 0.0])
    np.testing.assert_allclose(jd.center_of_mass(model, jnp.zeros(model.nq)), total.com, atol=1e-12)
    assert model.link("arm_sublink2").mass > model.link("arm_sublink1").mass + 0.39


ERRORS = {
    "heavy": (lambda: make_flexible(leg(), "hip", Beam(Round(0.03), Material.steel(), 0.8)), "is not heavier"),
    "no body": (lambda: make_flexible(leg(), "hip", Beam(Tube(0.2, 0.199), Material.aluminium(), 0.2)), "rigid body"),
    "attached": (lambda: flexible_leg_attached("foot"), "'foot' in `attached` is not on link 'hip'"),
    "fraction": (lambda: make_flexible(leg(), "hip", thigh(), attached={"knee": 1.5}), "from 0 to 1"),
    "sublinks": (lambda: make_flexible(leg(), "hip", thigh(), sublinks=0), "sublinks is 0"),
    "locked": (
        lambda: flexible_leg()[1].mount(jd.lock_joints(flexible_leg()[0], {"hip_flexure1": None})),
        "cannot be locked",
    ),
    "strains": (lambda: Strains(False, False, False), "no strain"),
}


def flexible_leg_attached(name):
    return make_flexible(leg(), "hip", thigh(), attached={name: 0.5})


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case):
    make, message = ERRORS[case]
    with pytest.raises((jd.ModelError, jd.ArgumentError), match=message):
        make()


@pytest.mark.exhaustive
def test_traced_inertia_needs_the_place_of_the_difference():
    def total(mass, **options):
        model = eqx.tree_at(lambda m: m.links.mass, leg(), leg().links.mass.at[0].set(mass))
        flexible, part = make_flexible(model, "hip", thigh(), sublinks=1, strains=Strains.planar(), **options)
        return part.mount(flexible).links.mass.sum()

    with pytest.raises(jd.ModelError, match="give lump_fraction"):
        jax.grad(total)(2.0)
    np.testing.assert_allclose(jax.grad(lambda m: total(m, lump_fraction=0.5))(2.0), 1.0)


@pytest.mark.slow
def test_wrong_classes_are_named(without_annotations):
    number: Any = 1.0
    with pytest.raises(jd.ArgumentError, match="bending_z of Strains is 1.0, expected True or False"):
        Strains(bending_z=number)
    with pytest.raises(jd.ArgumentError, match="inertia of a Lump"):
        Lump(number)
