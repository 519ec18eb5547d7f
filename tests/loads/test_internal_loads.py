"""Internal forces and moments against closed forms, joint reactions and chains of welded sublinks."""

import equinox as eqx
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.beams import Beam, Tube
from jaxdyn.joints import Fixed, Revolute
from jaxdyn.model import ModelBuilder
from jaxdyn.spatial import Pose, rpy_to_matrix
from tests.loads._cases import ALUMINIUM, loads_at, reactions_at, spatial_arm, states, thin_rod
from tests.oracles import to_mujoco


def test_falling_rod():
    """`M(s) = mu g sin(q) s (l - s)^2 / 4 l`, at most `m g l sin(q) / 27` at a third of the length."""
    model, beams = thin_rod(2.0, 1.5)
    q, zero = jnp.array([0.6]), jnp.zeros(1)
    loads = loads_at(model, beams, q, zero, jd.forward_dynamics(model, q, zero, zero), sections=31)
    s, bending = loads.s[0], loads.bending[0]
    np.testing.assert_allclose(bending, 2.0 / 1.5 * 9.81 * np.sin(0.6) * s * (1.5 - s) ** 2 / (4 * 1.5), atol=1e-10)
    np.testing.assert_allclose(bending.max(), 0.615460296, rtol=1e-9)
    np.testing.assert_allclose(s[bending.argmax()], 0.5)
    np.testing.assert_allclose(loads.torque, 0, atol=1e-12)


@pytest.mark.slow
def test_rotating_rod():
    """`N(s) = mu w^2 (l^2 - s^2) / 2`: 150 N at the hinge."""
    model, beams = thin_rod(2.0, 1.5)
    model = eqx.tree_at(lambda m: m.gravity, model, jnp.zeros(3))
    q, v = jnp.zeros(1), jnp.array([10.0])
    loads = loads_at(model, beams, q, v, q, sections=31)
    np.testing.assert_allclose(loads.axial[0, 0], 150.0)
    np.testing.assert_allclose(loads.axial[0], 2.0 / 1.5 * 100 * (1.5**2 - loads.s[0] ** 2) / 2, atol=1e-9)
    np.testing.assert_allclose(loads.shear, 0, atol=1e-9)


@pytest.mark.slow
def test_tip_force_and_own_weight_of_a_cantilever():
    """`M(0) = F l` and `M(0) = w l^2 / 2`; the force acts at the end."""
    beam = Beam(Tube(0.03, 0.026), ALUMINIUM, 0.8)
    model = ModelBuilder().add_link("arm", "world", Fixed(), beam.inertia()).build()
    none = jnp.zeros(0)
    force = jnp.array([[0, -50.0 * 0.8, 0, 0, 0, 50.0]])  # up at the tip, about the origin
    loads = loads_at(model, {"arm": beam}, none, none, none, force)
    w = 9.81 * beam.inertia().mass / 0.8
    l, s = 0.8, loads.s[0]
    np.testing.assert_allclose(loads.force[0, :, 2], 50.0 - w * (l - s), atol=1e-12)
    np.testing.assert_allclose(loads.moment[0, :, 1], -50.0 * (l - s) + w * (l - s) ** 2 / 2, atol=1e-12)


@pytest.mark.slow
def test_sections_at_the_joints_transmit_the_reactions():
    """At the start of the beams the outer part is the whole link: (Q, M) is minus the wrench of the joint."""
    model, beams = spatial_arm()
    state = [x[0] for x in states(model, 1)]
    loads, reactions = loads_at(model, beams, *state), np.asarray(reactions_at(model, *state).wrench)
    assert loads.links == ("bent", "bent", "cone", "bar")
    for row, name, beam in ((0, "bent", beams["bent"][0]), (2, "cone", beams["cone"]), (3, "bar", beams["bar"])):
        wrench = -reactions[model.link_index(name)]
        moment = wrench[:3] - np.cross(beam.placement.translation, wrench[3:])
        np.testing.assert_allclose(loads.force[row, 0], wrench[3:] @ beam.placement.rotation, rtol=1e-10)
        np.testing.assert_allclose(loads.moment[row, 0], moment @ beam.placement.rotation, rtol=1e-10)
    # the bent link is continuous at its corner
    first, second = (x.placement.rotation for x in beams["bent"])
    for x in (loads.force, loads.moment):
        np.testing.assert_allclose(first @ x[0, -1], second @ x[1, 0], rtol=1e-10)


@pytest.mark.slow
def test_steps():
    """A motor changes the loads by its wrench, at the point where it is attached; elsewhere they are continuous."""
    model, beams = spatial_arm()
    state = [x[0] for x in states(model, 1)]
    loads, wrench = loads_at(model, beams, *state), np.asarray(reactions_at(model, *state).wrench)
    motor = model.link_index("motor")
    s, force = np.asarray(loads.s[2]), np.asarray(loads.force[2])
    turn = beams["cone"].placement.rotation
    place = (model.placements.translation[motor] - beams["cone"].placement.translation) @ turn[:, 0]
    steps = [k for k in range(s.size - 1) if s[k] == s[k + 1] and np.abs(force[k] - force[k + 1]).max() > 1e-9]
    assert [s[k] for k in steps] == [pytest.approx(place)]
    np.testing.assert_allclose(force[steps[0]] - force[steps[0] + 1], -wrench[motor, 3:] @ turn, rtol=1e-9)


@pytest.mark.slow
def test_a_beam_that_rests_on_its_middle():
    """Both halves carry their own weight, `M = w x^2 / 2` at the distance x from the nearer end; a joint is a step."""
    turn = Pose(np.eye(3), np.array([-0.4, 0.0, 0.0]))
    beam = Beam(Tube(0.03, 0.026), ALUMINIUM, 0.8, placement=turn)
    model = ModelBuilder().add_link("arm", "world", Revolute((0.0, 1.0, 0.0)), beam.inertia()).build()
    zero = jnp.zeros(1)
    loads = loads_at(model, {"arm": beam}, zero, zero, zero)
    s, w = np.asarray(loads.s[0]), 9.81 * float(beam.inertia().mass) / 0.8
    np.testing.assert_allclose(loads.moment[0, :, 1], w * np.minimum(s, 0.8 - s) ** 2 / 2, atol=1e-12)
    shear = np.asarray(loads.force[0, :, 2])
    at_joint = np.flatnonzero(s == 0.4)
    np.testing.assert_allclose(shear[[0, at_joint[0], at_joint[-1], -1]], [0, 0.4 * w, -0.4 * w, 0], atol=1e-12)


@pytest.mark.slow
def test_a_wrench_at_the_middle_acts_on_a_link_without_mass():
    beam = Beam(Tube(0.03, 0.026), ALUMINIUM, 0.8)
    builder = ModelBuilder().add_link("arm", "world", Fixed(), beam.inertia())
    model = builder.add_link("point", "arm", Fixed(), translation=(0.3, 0.0, 0.0)).build()
    none = jnp.zeros(0)
    push = jnp.zeros((2, 6)).at[1, 5].set(50.0)
    loads, weight = (loads_at(model, {"arm": beam}, none, none, none, x) for x in (push, jnp.zeros((2, 6))))
    np.testing.assert_allclose(
        (loads.moment - weight.moment)[0, :, 1], -50 * np.maximum(0.3 - loads.s[0], 0), atol=1e-12
    )


# Chains of welded sublinks


def two_links(pieces: int):
    """A tube and a cone on hinges, each cut into welded pieces whose origins are the cuts; the beams of whole links."""
    turn = Pose(rpy_to_matrix(np.array([0.4, -0.3, 0.2])), np.zeros(3))
    tube = Beam(Tube(0.04, 0.03), ALUMINIUM, 0.6)
    cone = Beam(Tube(0.03, 0.02), ALUMINIUM, 0.5, Tube(0.02, 0.015))
    builder = ModelBuilder()
    parent, place = "world", turn
    for name, beam, axis in (("tube", tube, (0.2, 1.0, 0.1)), ("cone", cone, (0.0, 0.5, 1.0))):
        cuts = np.linspace(0, 1, pieces + 1) * float(beam.length)
        for k in range(pieces):
            part = beam.inertia(cuts[k], cuts[k + 1]).moved((-cuts[k], 0.0, 0.0))
            joint = Fixed() if k else Revolute(axis)
            at = {"translation": (cuts[1], 0.0, 0.0)} if k else {"translation": place.translation}
            rotation = np.eye(3) if k or parent != "world" else place.rotation
            link = f"{name}{k}" if k else name
            builder.add_link(link, parent, joint, part, rotation=rotation, **at)
            parent = link
        place = Pose(np.eye(3), (cuts[1], 0.0, 0.0))
    return builder.build(), {"tube": tube, "cone": cone}


def mujoco_interactions(model, q, v, a, external) -> np.ndarray:
    """Force and moment of each link on its parent, in axes of the link about its origin, by MuJoCo."""
    oracle = to_mujoco(model)
    data = oracle.set(q, v)
    for i in range(model.num_links):
        turn = data.xmat[i + 1].reshape(3, 3)
        force, offset = turn @ external[i, 3:], data.xpos[i + 1] - data.xipos[i + 1]
        data.xfrc_applied[i + 1] = np.r_[force, turn @ external[i, :3] + np.cross(offset, force)]
    data.qacc[:] = oracle.a(q, v, a)
    mujoco.mj_rnePostConstraint(oracle.model, data)
    rows = []
    for i in range(1, model.num_links + 1):
        turn, arm = data.xmat[i].reshape(3, 3), data.subtree_com[oracle.model.body_rootid[i]] - data.xpos[i]
        moment, force = np.split(data.cfrc_int[i], 2)
        rows.append(-np.r_[force @ turn, (moment + np.cross(arm, force)) @ turn])
    return np.stack(rows)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["jaxdyn", "mujoco"])
def test_welds_of_sublinks_transmit_the_internal_loads(engine):
    """The beams of two links, in motion under a wrench at the tip, against the reactions of their pieces' welds."""
    whole, beams = two_links(1)
    cut, _ = two_links(4)
    q, v, a = (jnp.asarray(x[0]) for x in states(whole, 1)[:3])
    tip = jnp.array([0.5, -0.3, 0.8, 12.0, 7.0, -9.0])  # about the end of the cone
    about_origin = lambda arm: tip.at[:3].add(jnp.cross(jnp.array([arm, 0.0, 0.0]), tip[3:]))
    external = jnp.zeros((8, 6)).at[7].set(about_origin(0.125))
    loads = loads_at(whole, beams, q, v, a, jnp.zeros((2, 6)).at[1].set(about_origin(0.5)), sections=9)
    if engine == "mujoco":
        expected = mujoco_interactions(cut, q, v, a, np.asarray(external))
    else:
        wrench = -reactions_at(cut, q, v, a, external).wrench
        expected = np.concatenate([wrench[:, 3:], wrench[:, :3]], 1)
    for row, beam in enumerate(beams.values()):
        at_cuts = [int(np.abs(np.asarray(loads.s[row]) - x).argmin()) for x in np.arange(4) * float(beam.length) / 4]
        np.testing.assert_allclose(loads.force[row, at_cuts], expected[4 * row : 4 * row + 4, :3], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(
            loads.moment[row, at_cuts], expected[4 * row : 4 * row + 4, 3:], rtol=1e-9, atol=1e-9
        )
