"""Selections, the ten parameters, and the charts of bodies."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.actuators import drive, joint_friction
from jaxdyn.identification import GeometricPrior, collect, link_checks, pseudo_inertia, select
from jaxdyn.identification._parameters import chart, from_log_cholesky, inside, log_cholesky
from jaxdyn.identification._physical import divergence, solve_bodies

from ._made import SELECTION, arm

ARM = arm()
SYSTEM = jd.System(ARM, (drive(ARM), joint_friction(ARM, coulomb=0.1)))


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("links[link2].mass", ["links[link2].mass"]),
        ("joints[joint?].damping", [f"joints[joint{k}].damping" for k in (1, 2, 3)]),
        ("parts[Drive].gain[joint3]", ["parts[Drive].gain[joint3]"]),
        ("parts[1].stribeck[joint1]", ["parts[JointFriction].stribeck[joint1]"]),
        ("gravity", ["gravity[0]", "gravity[1]", "gravity[2]"]),
        ("gravity.direction", ["gravity.direction[0]", "gravity.direction[1]"]),
        ("joints[joint2].rotation", [f"joints[joint2].rotation[{k}]" for k in range(3)]),
        ("joints[joint2].axis", [f"joints[joint2].axis[{k}]" for k in range(3)]),
    ],
)
def test_paths_name_what_they_select(path, names):
    assert list(collect(SYSTEM, path).names) == names


def test_a_function_selects_a_leaf():
    found = collect(SYSTEM, select(lambda s: s.model.properties.stiffness))
    assert found.names == tuple(f"model.properties.stiffness[{k}]" for k in range(3))
    system = found.insert(jnp.array([1.0, 2.0, 3.0]))
    assert system.model.properties.stiffness.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("links[elbow].mass", "no link is called 'elbow'"),
        ("links[link1].colour", "names no number"),
        ("wheels[*].mass", "is no parameter"),
        ("joints.damping", "does not say which joint"),
        ("parts[Motor].gain", "no part is called 'Motor'"),
        (("links[*].mass", "links[link1].mass"), "selected already"),
    ],
)
def test_wrong_paths_say_what_is_wrong(path, message):
    with pytest.raises(jd.ModelError, match=message):
        collect(SYSTEM, path)


def test_reading_and_inserting_agree():
    found = collect(SYSTEM, (*SELECTION, "joints[joint2].translation", "parts[*].width"))
    x, insert = found.read(), eqx.filter_jit(found.insert)
    np.testing.assert_allclose(insert(x).model.links.inertia, ARM.links.inertia, atol=1e-15)
    moved = x * 1.01
    again = eqx.tree_at(lambda p: p.system, found, insert(moved)).read()
    np.testing.assert_allclose(again, moved, rtol=1e-12)
    ten = found.inertial.reshape(-1)
    np.testing.assert_allclose(x[ten], jd.inertial_parameters(ARM), rtol=1e-12)


def test_gravity_tilts_without_changing_its_strength():
    found = collect(SYSTEM, "gravity.direction")
    tilted = found.insert(jnp.array([0.3, -0.2])).model.gravity
    assert abs(jnp.linalg.norm(tilted) - jnp.linalg.norm(ARM.gravity)) < 1e-12
    angle = jnp.arccos(tilted @ ARM.gravity / (tilted @ tilted))
    assert abs(angle - np.hypot(0.3, 0.2)) < 1e-12


def test_free_numbers_are_bodies_and_come_back():
    ten = jd.inertial_parameters(ARM)[:10]
    np.testing.assert_allclose(jax.jit(lambda x: from_log_cholesky(log_cholesky(x)))(ten), ten, rtol=1e-12, atol=1e-14)
    zs = np.random.default_rng(0).normal(size=(64, 10))
    x, p = map(np.asarray, jax.jit(lambda zs: (y := jax.vmap(from_log_cholesky)(zs), pseudo_inertia(y)))(zs))
    assert (np.linalg.eigvalsh(p) > 0).all()
    # the pseudo-inertia against its definition, by the second moment of the mass
    np.testing.assert_allclose(2 * np.einsum("naa->n", p[:, :3, :3]), x[:, 4] + x[:, 7] + x[:, 9], rtol=1e-12)
    bounds = {"joints[joint1].damping": (-1.0, 2.0), "joints[*].armature": (-np.inf, 1.0)}
    found = collect(SYSTEM, SELECTION, bounds)
    start = inside(found, np.asarray(found.read()))
    free = chart(found, start)
    both = jax.jit(lambda x, far: (free.x(free.z(x)), free.x(far)))
    again, far = both(start, np.random.default_rng(1).normal(0, 4, start.size))
    np.testing.assert_allclose(again, start, rtol=1e-10, atol=1e-14)
    assert (far >= found.lower).all() and (far <= found.upper).all()


def test_the_divergence_is_invariant_and_half_the_square_of_relative_changes():
    ten = np.asarray(jd.inertial_parameters(ARM)).reshape(-1, 10)
    other = ten.copy()
    other[:, 0] *= 1.2
    assert abs(float(divergence(ten, ten).max())) < 1e-12
    base = divergence(other, ten)
    scaled = divergence(7.0 * other, 7.0 * ten)
    np.testing.assert_allclose(base, scaled, rtol=1e-10)
    small = divergence(ten * 1.001, ten)
    np.testing.assert_allclose(small, 4 * (1e-3 - np.log(1.001)), rtol=1e-6)  # four eigenvalues 1.001


def test_the_convex_solver_finds_the_stationary_point():
    found = collect(SYSTEM, SELECTION)
    x0 = inside(found, np.asarray(found.read()))
    rng = np.random.default_rng(3)
    j = rng.normal(size=(80, x0.size))
    h = j.T @ j
    g = -h @ (0.2 * x0 * rng.normal(size=x0.size))
    prior = GeometricPrior(0.5, 0.1)
    x, _, reached = solve_bodies(found, h, g, x0, x0, prior)
    assert reached
    slope = jax.jit(jax.grad(lambda y: prior.cost(found, jnp.asarray(x0), y)))(x) + g + h @ (x - x0)
    free = np.where(np.isfinite(found.lower), x - found.lower > 1e-6, True)
    assert np.abs(np.asarray(slope))[free].max() < 1e-5 * np.abs(g).max()


def test_links_that_are_no_bodies_are_found():
    broken = eqx.tree_at(lambda m: m.links.inertia, ARM, ARM.links.inertia.at[1, 0, 0].set(9.0))
    checks = {c.link: c for c in link_checks(broken)}
    assert checks["link1"].physical and checks["link3"].physical
    assert not checks["link2"].physical and "no body" in checks["link2"].reason


def test_what_is_collected_twice_is_compiled_once():
    """Compiled functions are found by structure, which has to be equal for equal selections."""
    paths = (
        "links[*].inertial",
        "joints[*].damping",
        "joints[*].translation",
        "joints[*].rotation",
        "joints[*].axis",
        "gravity",
        "parts[Drive].offset",
    )
    made = lambda: jax.tree.structure(collect(jd.System(arm(2), (drive(arm(2)),)), paths))
    assert made() == made()
