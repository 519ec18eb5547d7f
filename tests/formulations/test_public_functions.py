"""Batches and derivatives of all functions of `jaxdyn.formulations`, against central differences."""

import functools as ft
import re
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import formulations as jf
from jaxdyn.spatial import Inertia, Pose
from tests.formulations._cases import model, state

jit = ft.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def _bodies(m, q, v, a):
    twist, inertia = jnp.concatenate([q, v, a]), jf.spatial_inertia(m.links.mass[0], m.links.inertia[0])
    body = Inertia(m.links.mass[0], m.links.com[0], m.links.inertia[0])
    return (
        jf.inertia_in_frame(inertia, Pose(jnp.eye(3), body.com)),
        jf.twist_bracket(twist),
        jf.body_wrench(inertia, twist, twist[::-1]),
        jf.principal_frame(body),
        jf.screw_exponential(jnp.array([0.6, 0, 0.8, 0, 0, 0]).at[3:].set(body.com), q[0]),
    )


def _exponential(m, q, v, a):
    name = m.link_names[-1]
    return (
        jf.space_screws(m),
        jf.exponential_pose(m, q, name),
        jf.exponential_jacobian(m, q, name),
        jf.exponential_jacobian_rate(m, q, v, name),
        jf.moving_jacobian(m, q, name),
        jf.moving_jacobian_rate(m, q, v, name),
        jf.exponential_motion(m, q, v, a, name),
        jf.exponential_factors(m, q, name).columns(),
    )


def _newton_euler(m, q, v, a):
    return jf.linear_forms(m, q, v), jf.reactions(m, q, v, a)


def _gibbs_appell(m, q, v, a):
    forces = jf.generalized_forces(m, q, v, a), jf.resultants(m, q, v, a, m.link_names[-1])
    return jf.acceleration_energy(m, q, v, a), jf.acceleration_matrices(m, q, v), forces


def _lagrange(m, q, v, a):
    return jf.second_kind(m, q, v), jf.lagrange_christoffel_symbols(m, q)


def _momenta(m, q, v, a):
    return jf.momentum_rates(m, q, v, a), jf.hamiltonian(m, q, v), jf.hamilton_equations(m, q, v, a)


def _planar(m, q, v, a):
    links = jf.planar_links(m)
    return (
        jf.planar_link_inertia(links, q),
        jf.planar_link_mass_matrices(links, q),
        jf.absolute_mass_matrix(links, q),
        jf.relative_mass_matrix(links, q),
        jf.kinetic_gradient(links, q, v),
        jf.absolute_kinetic_gradient(links, q, v),
        jf.gravity_torques(links, q),
        jf.planar_momentum_rates(links, q, v, a),
    )


def _spatial(m, q, v, a):
    links, angles = jf.spatial_links(m), jf.absolute_angles(m, q).reshape(-1, 3)
    moments = jnp.diagonal(links.second, axis1=1, axis2=2)
    principal = jf.PrincipalLinks(links.mass, moments, links.arm[:, 0], links.center[:, 0], -links.gravity[2])
    return (
        jf.spatial_link_inertia(principal, angles),
        jf.gravity_gradient(principal, angles),
        jf.spatial_link_inertia(links, angles),
        jf.slope_products(jf.rotation_slopes(angles)),
        jf.angular_mass_matrix(links, angles),
        jf.gravity_gradient(links, angles),
        jf.spatial_momentum_rates(links, angles, v, a),
    )


GROUPS = (
    (_bodies, "hinges"),
    (_exponential, "hinges"),
    (_newton_euler, "pair"),
    (_gibbs_appell, "hinges"),
    (_lagrange, "hinges"),
    (_momenta, "hinges"),
    (_planar, "hinges"),
    (_spatial, "balls"),
)


def _numbers(m):
    return m.links.mass, m.links.com, m.links.inertia, m.placements.translation, m.gravity


@ft.partial(jit, static_argnums=0)
def _values_and_derivative(group, m, states, direction):
    """Values of a weighted sum of a group's results at two points of a line, and its derivative along the line."""

    def scalar(x, state):
        numbers, dq = x
        q, v, a = state
        given = group(eqx.tree_at(_numbers, m, numbers), q + dq, v, a)
        flat = jnp.concatenate([jnp.ravel(y) for y in jax.tree.leaves(given)])
        return jnp.cos(1.3 * jnp.arange(flat.size)) @ flat

    here = _numbers(m), jnp.zeros(direction[1].shape)
    moved = lambda h: jax.tree.map(lambda x, d: x + h * d, here, direction)
    along = lambda slope: sum(jnp.vdot(x, d) for x, d in zip(*map(jax.tree.leaves, (slope, direction)), strict=True))
    ends = jnp.array([-1e-5, 1e-5])
    one = lambda state: (
        jax.vmap(lambda h: scalar(moved(h), state))(ends),
        along(jax.grad(scalar)(here, state)),
    )
    return jax.vmap(one)(states)


@pytest.mark.slow("bodies-hinges", "newton_euler-pair")
@pytest.mark.parametrize(("group", "robot"), GROUPS, ids=lambda x: getattr(x, "__name__", x).strip("_"))
def test_batches_and_gradients(group, robot):
    """`jit(vmap(grad))` with respect to link parameters and configuration, along a random direction."""
    m, rng = model(robot), np.random.default_rng(0)
    states = tuple(map(jnp.stack, zip(state(robot, 0)[:3], state(robot, 1)[:3], strict=True)))
    direction = jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape)), (_numbers(m), jnp.zeros(m.nq)))
    spin = direction[0][2]
    direction = eqx.tree_at(lambda d: d[0][2], direction, (spin + spin.swapaxes(1, 2)) * 0.01)
    (values, slope) = map(np.asarray, _values_and_derivative(group, m, states, direction))
    central = (values[:, 1] - values[:, 0]) / 2e-5
    assert np.isfinite(slope).all() and np.abs(slope).min() > 1e-3
    np.testing.assert_allclose(slope, central, rtol=1e-6, atol=1e-6 * np.abs(values).max())


def test_all_public_functions_are_tested():
    """All but one, which needs known numbers and cannot be traced."""
    used = set(re.findall(r"jf\.([a-z_]+)\(", Path(__file__).read_text(encoding="utf-8")))
    assert {name for name, x in vars(jf).items() if name[0].islower() and callable(x)} - used == {"principal_links"}
