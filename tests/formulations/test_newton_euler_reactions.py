"""Linear forms of the link motions and wrenches in the joints, against `jaxdyn.dynamics`."""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.formulations import NewtonEulerReactions, linear_forms, reactions
from jaxdyn.formulations._axes import axis_bodies
from jaxdyn.recursion import body_wrenches
from jaxdyn.recursion._body_states import body_states
from tests.formulations._cases import TOLERANCE, model
from tests.oracles import random_model, random_state, relative_error

jit = ft.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


@ft.cache
def _robot():
    """A tree of revolute and prismatic joints with a fixed link."""
    robots = (random_model(k, 4, kinds=("revolute", "prismatic"), fixed_fraction=0.2) for k in range(1, 20))
    m = next(m for m in robots if 2 < m.nv < m.num_links and 0 < _is_prismatic(m).sum() < m.nv)
    return m, random_state(m, 0)


@jit
def _evaluate(m, q, v, a, external):
    return (
        linear_forms(m, q, v),
        reactions(m, q, v, a, external),
        body_states(m, q, v, a),
        jd.joint_reactions(m, q, v, a, external),
        jd.rnea(m, q, v, a, external),
        axis_bodies(m),
        body_wrenches(m, external, float),
    )


@ft.cache
def _results():
    m, state = _robot()
    return jax.tree.map(np.asarray, _evaluate(m, *state))


def _is_prismatic(m):
    return np.array([isinstance(m.joint(m.joint_names[link]).joint, jd.joints.Prismatic) for link in m.topology.bodies])


@pytest.mark.slow
def test_linear_forms_give_the_motion_of_mass_centres():
    """Equations 20.32 to 20.35."""
    m, (_, v, a, _) = _robot()
    f, _, s, *_ = _results()
    w, dw = s.velocity[:, :3], s.acceleration[:, :3]
    speed = s.velocity[:, 3:] + np.cross(w, f.centre)
    rate = s.acceleration[:, 3:] + np.cross(dw, f.centre) + np.cross(w, speed)
    v, a = np.asarray(v), np.asarray(a)
    assert relative_error(f.spin, w) < TOLERANCE
    assert relative_error(f.Lambda @ v, w) < TOLERANCE
    assert relative_error(f.Xi @ v, speed) < TOLERANCE
    assert relative_error(f.Lambda @ a + f.Gamma, dw) < TOLERANCE
    assert relative_error(f.Xi @ a + f.Delta, rate) < TOLERANCE
    assert relative_error(f.rotation, s.rotation) < TOLERANCE
    # what a joint does not carry does not depend on its coordinate (20.36, 20.38)
    beyond = m.topology.body_ancestors.T[:, None, :]
    assert not np.any(np.where(beyond, 0, f.Lambda)) and not np.any(np.where(beyond, 0, f.Xi))


@pytest.mark.slow
def test_reactions_equal_joint_reactions():
    """Totals and reactions (20.17 to 20.20) against `joint_reactions`, whose moments are about the child's origin."""
    m, (q, *_) = _robot()
    f, r, s, wanted, tau, *_ = _results()
    slides = _is_prismatic(m)
    assert slides.any() and not slides.all()
    slid = (slides * np.asarray(q))[:, None] * f.axis
    np.testing.assert_allclose(f.joint + slid, s.translation, atol=1e-13)
    links = np.array(m.topology.bodies)
    out = lambda x: np.einsum("jkl,jl->jk", s.rotation, x[links])
    total = out(wanted.wrench[:, 3:])
    at_joint = lambda x: out(x[:, :3]) + np.cross(slid, total)
    assert relative_error(r.total_force, total) < TOLERANCE
    assert relative_error(r.total_couple, at_joint(wanted.wrench)) < TOLERANCE
    assert relative_error(r.force, out(wanted.bearing[:, 3:])) < TOLERANCE
    assert relative_error(r.couple, at_joint(wanted.bearing)) < TOLERANCE
    assert relative_error(r.drive + m.properties.armature * random_state(m, 0)[2], tau) < TOLERANCE


@pytest.mark.slow
def test_reactions_do_no_work():
    """`F_R` is perpendicular to the axis of a prismatic joint, `M_R` to the axis of a revolute joint."""
    m, _ = _robot()
    f, r, *_ = _results()
    along = np.where(_is_prismatic(m), np.sum(r.force * f.axis, axis=1), np.sum(r.couple * f.axis, axis=1))
    np.testing.assert_allclose(along, 0, atol=1e-12)


@pytest.mark.slow
def test_equilibrium_of_each_link():
    """Equations 20.13 and 20.14, with external wrenches and the wrenches in the joints of the child links."""
    m, (_, _, a, _) = _robot()
    f, r, s, _, _, b, pushed = _results()
    parents = np.array(m.topology.body_parents)
    J = f.rotation @ b.inertia @ np.swapaxes(f.rotation, 1, 2)
    for j in range(len(parents)):
        beyond = np.flatnonzero(parents == j)
        mass, w = float(b.mass[j]), f.spin[j]
        turn, push = f.rotation[j] @ pushed[j, :3], f.rotation[j] @ pushed[j, 3:]
        force = mass * np.asarray(m.gravity) + push + r.total_force[j] - r.total_force[beyond].sum(0)
        arm = f.joint - f.centre[j]
        turned = np.cross(arm[j], r.total_force[j]) - np.cross(arm[beyond], r.total_force[beyond]).sum(0)
        turned = turned + turn + np.cross(s.translation[j] - f.centre[j], push)
        couple = r.total_couple[j] - r.total_couple[beyond].sum(0) + turned
        dw = f.Lambda[j] @ np.asarray(a) + f.Gamma[j]
        np.testing.assert_allclose(mass * (f.Xi[j] @ np.asarray(a) + f.Delta[j]), force, atol=1e-11)
        np.testing.assert_allclose(J[j] @ dw + np.cross(w, J[j] @ w), couple, atol=1e-11)


def test_uncovered_joints_raise_an_error():
    screw = jd.ModelBuilder()
    screw.add_link("nut", "world", jd.joints.Helical((0, 0, 1), 0.1), jd.spatial.sphere(0.1, mass=1.0))
    with pytest.raises(jd.ModelError, match="'nut_joint' is a Helical"):
        linear_forms(screw.build(), jnp.zeros(1), jnp.zeros(1))
    assert "mimics" in (NewtonEulerReactions().covers(model("geared")) or "")
