"""Selections, inertial parameters, charts and the prior."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.actuators import drive, joint_friction
from jaxdyn.identification import GeometricPrior, collect, link_checks, pseudo_inertia, select
from jaxdyn.identification.methods._barrier_method import minimise_over_bodies
from jaxdyn.identification.methods._prior import log_det_divergence
from jaxdyn.identification.parameters import feasible_point, make_chart
from jaxdyn.identification.parameters._charts import from_log_cholesky, log_cholesky

from .synthetic_logs import SELECTION, arm

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
def test_names_of_selected_parameters(path, names):
    assert list(collect(SYSTEM, path).names) == names


def test_selection_by_a_function():
    found = collect(SYSTEM, select(lambda s: s.model.properties.stiffness))
    assert found.names == tuple(f"model.properties.stiffness[{k}]" for k in range(3))
    system = found.insert(jnp.array([1.0, 2.0, 3.0]))
    assert system.model.properties.stiffness.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("links[elbow].mass", "no link is called 'elbow'"),
        ("links[link1].colour", "names no field"),
        ("wheels[*].mass", "is not a path"),
        ("joints.damping", "does not say which joint"),
        ("parts[Motor].gain", "no part is called 'Motor'"),
        (("links[*].mass", "links[link1].mass"), "selected already"),
    ],
)
def test_messages_of_wrong_paths(path, message):
    with pytest.raises(jd.ModelError, match=message):
        collect(SYSTEM, path)


def test_insert_is_the_inverse_of_read():
    found = collect(SYSTEM, (*SELECTION, "joints[joint2].translation", "parts[*].width"))
    x, insert = found.read(), eqx.filter_jit(found.insert)
    np.testing.assert_allclose(insert(x).model.links.inertia, ARM.links.inertia, atol=1e-15)
    changed = x * 1.01
    again = eqx.tree_at(lambda p: p.system, found, insert(changed)).read()
    np.testing.assert_allclose(again, changed, rtol=1e-12)
    ten = found.inertial.reshape(-1)
    np.testing.assert_allclose(x[ten], jd.inertial_parameters(ARM), rtol=1e-12)


def test_gravity_direction_keeps_the_strength():
    found = collect(SYSTEM, "gravity.direction")
    tilted = found.insert(jnp.array([0.3, -0.2])).model.gravity
    assert abs(jnp.linalg.norm(tilted) - jnp.linalg.norm(ARM.gravity)) < 1e-12
    angle = jnp.arccos(tilted @ ARM.gravity / (tilted @ tilted))
    assert abs(angle - np.hypot(0.3, 0.2)) < 1e-12


def test_charts_are_bijective_and_feasible():
    ten = jd.inertial_parameters(ARM)[:10]
    np.testing.assert_allclose(jax.jit(lambda x: from_log_cholesky(log_cholesky(x)))(ten), ten, rtol=1e-12, atol=1e-14)
    zs = np.random.default_rng(0).normal(size=(64, 10))
    x, p = map(np.asarray, jax.jit(lambda zs: (y := jax.vmap(from_log_cholesky)(zs), pseudo_inertia(y)))(zs))
    assert (np.linalg.eigvalsh(p) > 0).all()
    # the trace of the second moments of the mass is half that of the inertia
    np.testing.assert_allclose(2 * np.einsum("naa->n", p[:, :3, :3]), x[:, 4] + x[:, 7] + x[:, 9], rtol=1e-12)
    bounds = {"joints[joint1].damping": (-1.0, 2.0), "joints[*].armature": (-np.inf, 1.0)}
    found = collect(SYSTEM, SELECTION, bounds)
    start = feasible_point(found, np.asarray(found.read()))
    chart = make_chart(found, start)
    both = jax.jit(lambda x, far: (chart.x(chart.z(x)), chart.x(far)))
    again, far = both(start, np.random.default_rng(1).normal(0, 4, start.size))
    np.testing.assert_allclose(again, start, rtol=1e-10, atol=1e-14)
    assert (far >= found.lower).all() and (far <= found.upper).all()


@pytest.mark.slow
def test_log_det_divergence_is_scale_invariant_and_quadratic_near_the_prior():
    ten = np.asarray(jd.inertial_parameters(ARM)).reshape(-1, 10)
    other = ten.copy()
    other[:, 0] *= 1.2
    assert abs(float(log_det_divergence(ten, ten).max())) < 1e-12
    base = log_det_divergence(other, ten)
    scaled = log_det_divergence(7.0 * other, 7.0 * ten)
    np.testing.assert_allclose(base, scaled, rtol=1e-10)
    small = log_det_divergence(ten * 1.001, ten)
    np.testing.assert_allclose(small, 4 * (1e-3 - np.log(1.001)), rtol=1e-6)  # four eigenvalues 1.001


def test_barrier_method_finds_the_stationary_point():
    found = collect(SYSTEM, SELECTION)
    x0 = feasible_point(found, np.asarray(found.read()))
    rng = np.random.default_rng(3)
    j = rng.normal(size=(80, x0.size))
    h = j.T @ j
    g = -h @ (0.2 * x0 * rng.normal(size=x0.size))
    prior = GeometricPrior(0.5, 0.1)
    x, _, is_converged = minimise_over_bodies(found, h, g, x0, x0, prior)
    assert is_converged
    slope = jax.jit(jax.grad(lambda y: prior.cost(found, jnp.asarray(x0), y)))(x) + g + h @ (x - x0)
    free = np.where(np.isfinite(found.lower), x - found.lower > 1e-6, True)
    assert np.abs(np.asarray(slope))[free].max() < 1e-5 * np.abs(g).max()


def test_link_checks_find_inconsistent_links():
    broken = eqx.tree_at(lambda m: m.links.inertia, ARM, ARM.links.inertia.at[1, 0, 0].set(9.0))
    checks = {c.link: c for c in link_checks(broken)}
    assert checks["link1"].physical and checks["link3"].physical
    assert not checks["link2"].physical and "no body can" in checks["link2"].reason


def test_equal_selections_have_equal_structures():
    """Compiled programs are reused for equal structures."""
    paths = (
        "links[*].inertial",
        "joints[*].damping",
        "joints[*].translation",
        "joints[*].rotation",
        "joints[*].axis",
        "gravity",
        "parts[Drive].offset",
    )
    structure = lambda: jax.tree.structure(collect(jd.System(arm(2), (drive(arm(2)),)), paths))
    assert structure() == structure()
