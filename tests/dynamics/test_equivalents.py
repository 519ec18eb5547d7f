"""Joint types against chains of simpler joints, and against Lagrange's equations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.joints import (
    Continuous,
    Custom,
    Cylindrical,
    Helical,
    Planar,
    Prismatic,
    Revolute,
    SphericalZYX,
    Universal,
)
from jaxdyn.model import ModelBuilder
from tests.dynamics import _lagrange
from tests.dynamics._cases import QUICK, TOLERANCE, call, model, state
from tests.oracles import random_inertia, random_rotation, relative_error


def _robot(joints):
    """The joints in series on massless links, between a first revolute joint and a last prismatic one."""
    rng = np.random.default_rng(5)
    builder = ModelBuilder(gravity=(1.0, 2.0, -9.0))
    builder.add_link("base", "world", Revolute(rng.normal(size=3)), random_inertia(rng))
    pose = {"translation": rng.normal(size=3), "rotation": random_rotation(rng)}
    body = random_inertia(rng)
    last = {"translation": rng.normal(size=3), "rotation": random_rotation(rng)}
    end = random_inertia(rng), rng.normal(size=3)
    parent = "base"
    for k, joint in enumerate(joints):
        carried = body if k == len(joints) - 1 else None
        builder.add_link(f"l{k}", parent, joint, carried, **(pose if k == 0 else {}))
        parent = f"l{k}"
    builder.add_link("end", parent, Prismatic(end[1]), end[0], **last)
    return builder


def _random(n, seed=0):
    rng = np.random.default_rng(seed)
    return tuple(jnp.asarray(rng.uniform(-1, 1, n)) for _ in range(3))


def _efforts(m, q, v, a):
    return call("rnea", m, q, v, a, jnp.zeros((m.num_links, 6)))


AXIS, OTHER = (0.3, -0.5, 0.7), (0.1, 0.9, -0.4)


def _screw(params, q):
    a = params / jnp.sqrt(params @ params)
    cross = jnp.cross(a, jnp.eye(3)).T
    return jnp.eye(3) + jnp.sin(q[0]) * cross + (1 - jnp.cos(q[0])) * cross @ cross, a * q[1]


PAIRS = {
    "continuous": ([Continuous(AXIS)], [Revolute(AXIS)]),
    "cylindrical": ([Cylindrical(AXIS)], [Revolute(AXIS), Prismatic(AXIS)]),
    "universal with oblique axes": ([Universal(AXIS, OTHER)], [Revolute(AXIS), Revolute(OTHER)]),
    "spherical in z-y-x angles": (
        [SphericalZYX()],
        [Revolute((0, 0, 1)), Revolute((0, 1, 0)), Revolute((1, 0, 0))],
    ),
    "axis of any length": ([Revolute(AXIS)], [Revolute(3 * np.array(AXIS))]),
    "custom": ([Custom(jnp.array(AXIS), _screw, 2)], [Cylindrical(AXIS)]),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", PAIRS)
def test_joints_equal_chains_of_simpler_joints(name):
    ours, simple = (_robot(joints).build() for joints in PAIRS[name])
    q, v, a = _random(ours.nv)
    assert relative_error(_efforts(ours, q, v, a), _efforts(simple, q, v, a)) < TOLERANCE
    assert relative_error(call("mass_matrix", ours, q), call("mass_matrix", simple, q)) < TOLERANCE


@pytest.mark.slow
def test_planar_joint_equals_two_prismatic_joints_and_a_revolute_joint():
    """Prismatic joints move along fixed axes; the velocity of a planar joint is along rotating axes."""
    ours = _robot([Planar()]).build()
    simple = _robot([Prismatic((1, 0, 0)), Prismatic((0, 1, 0)), Revolute((0, 0, 1))]).build()
    q, v, a = _random(ours.nv)
    s, c = jnp.sin(q[3]), jnp.cos(q[3])
    turn = jnp.eye(5).at[1:3, 1:3].set(jnp.array([[c, -s], [s, c]]))
    rate = jnp.zeros((5, 5)).at[1:3, 1:3].set(v[3] * jnp.array([[-s, -c], [c, -s]]))
    want = turn.T @ _efforts(simple, q, turn @ v, turn @ a + rate @ v)
    assert relative_error(_efforts(ours, q, v, a), want) < TOLERANCE
    assert relative_error(call("mass_matrix", ours, q), turn.T @ call("mass_matrix", simple, q) @ turn) < TOLERANCE


@pytest.mark.slow
def test_helical_joint_equals_a_prismatic_joint_that_mimics_a_revolute_joint():
    ours = _robot([Helical(AXIS, 0.3)]).build()
    geared = _robot([Revolute(AXIS), Prismatic(AXIS)]).add_mimic("l1_joint", "l0_joint", ratio=0.3).build()
    q, v, a = _random(ours.nv)
    assert geared.nv == ours.nv
    assert relative_error(_efforts(geared, q, v, a), _efforts(ours, q, v, a)) < TOLERANCE
    assert relative_error(call("mass_matrix", geared, q), call("mass_matrix", ours, q)) < TOLERANCE


@pytest.mark.slow
def test_mimicking_prismatic_joint_is_driven_like_a_helical_joint():
    ours = _robot([Helical(AXIS, 0.3)]).build()
    geared = _robot([Revolute(AXIS), Prismatic(AXIS)]).add_mimic("l1_joint", "l0_joint", ratio=0.3).build()
    q, v, a = _random(ours.nv)
    no_load = jnp.zeros((ours.num_links, 6))
    acceleration = call("forward_dynamics", ours, q, v, a, no_load)
    no_load = jnp.zeros((geared.num_links, 6))
    assert relative_error(call("forward_dynamics", geared, q, v, a, no_load), acceleration) < TOLERANCE


@pytest.mark.slow
def test_mimicking_joints_restrict_independent_coordinates():
    """`M = G^T M_full G` and `tau = G^T tau_full(G q + c, G v, G a)` for `q_full = G q + c`."""
    builder = lambda: _robot([Revolute(AXIS), Revolute(OTHER), Cylindrical(AXIS)])
    free = builder().build()
    geared = builder().add_mimic("end_joint", "base_joint", ratio=-0.7, offset=0.4).build()
    gear = jnp.eye(6)[:, :5].at[5, 0].set(-0.7)
    offset = jnp.zeros(6).at[5].set(0.4)
    q, v, a = _random(5)
    full = call("mass_matrix", free, gear @ q + offset)
    assert relative_error(call("mass_matrix", geared, q), gear.T @ full @ gear) < TOLERANCE
    want = gear.T @ _efforts(free, gear @ q + offset, gear @ v, gear @ a)
    assert relative_error(_efforts(geared, q, v, a), want) < TOLERANCE
    forward = call("forward_dynamics", geared, q, v, want, jnp.zeros((geared.num_links, 6)))
    assert relative_error(forward, a) < TOLERANCE


@pytest.mark.slow("0")
@pytest.mark.parametrize("seed", [0, 1])
def test_lagrange_equations_for_joints_without_other_reference(seed):
    joints = [Custom(jnp.array(AXIS), _screw, 2), Cylindrical(AXIS), Revolute(OTHER)]
    m = _robot(joints).add_mimic("end_joint", "l2_joint", ratio=-0.6, offset=0.1).build()
    q, v, a = _random(m.nv, seed)
    assert relative_error(_efforts(m, q, v, a), _lagrange.efforts(m, q, v, a)) < TOLERANCE


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", [0, 1])
def test_lagrange_equations_for_every_joint_type(seed):
    m = model("every")
    q, v, a, _ = state("every", seed)
    assert relative_error(_efforts(m, q, v, a), _lagrange.efforts(m, q, v, a)) < TOLERANCE


@pytest.mark.exhaustive
def test_energies_for_every_joint_type():
    m = model("every")
    q, v, *_ = state("every")
    kinetic, potential = jax.jit(_lagrange.energies, compiler_options=QUICK)(m, q, jnp.zeros(m.nv), v)
    assert relative_error(call("kinetic_energy", m, q, v), kinetic) < TOLERANCE
    assert relative_error(call("potential_energy", m, q), potential) < TOLERANCE
