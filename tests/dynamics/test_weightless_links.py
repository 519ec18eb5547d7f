"""Derivatives with respect to the masses of several massless links that are rigidly connected.

The wrenches of a robot are linear in mass, first moment and second moment of each link, so that the derivative with
respect to a mass is that of a point mass at the link's own centre. The truth is by Jacobians of these points.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from tests.dynamics._cases import QUICK
from tests.dynamics._functions import scalar
from tests.oracles import random_rotation, random_state

TOLERANCE = 1e-10
# one function of each kernel, and of the sums over links; the centroidal ones are about a centre of mass, 0/0 here
NAMES = (
    "rnea",
    "mass_matrix",
    "forward_dynamics",
    "rnea_derivatives",
    "forward_dynamics_derivatives",
    "kinetic_energy",
    "potential_energy",
    "joint_reactions",
)


def _massless() -> jd.Model:
    """Two bodies of three and two massless links whose centres differ, and rotors that keep the robot regular."""
    rng = np.random.default_rng(3)
    builder = jd.ModelBuilder(gravity=(1.0, -2.0, -9.0))
    joints = (jd.joints.Universal([0, 1, 0], [1, 0, 0]), None, None, jd.joints.Prismatic([0, 0.6, 0.8]), None)
    for i, joint in enumerate(joints):
        builder.add_link(
            f"l{i}",
            f"l{i - 1}" if i else "world",
            joint or jd.joints.Fixed(),
            jd.spatial.Inertia(0.0, 0.4 * rng.normal(size=3), np.zeros((3, 3))),
            translation=0.3 * rng.normal(size=3),
            rotation=random_rotation(rng),
            armature=0.3 + 0.1 * i if joint else 0.0,
        )
    return builder.add_frame("f0", "l4").build()


def _with_masses(model, mass):
    return eqx.tree_at(lambda m: m.links.mass, model, mass)


def _values(mass, model, q, v, a):
    m = _with_masses(model, mass)
    return jd.mass_matrix(m, q), jd.rnea(m, q, v, a), jd.forward_dynamics(m, q, v, a), jd.center_of_mass(m, q)


def _point_derivatives(model, q, v, a):
    """`(dM/dm, dtau/dm, da/dm)` for each link, by the Jacobian of its centre and the motion of this point."""

    def point(q):
        poses = jd.forward_kinematics(model, q)
        return poses.translation + jnp.einsum("lij,lj->li", poses.rotation, model.links.com)

    jacobian = jax.jacfwd(point)
    J, velocity = jacobian(q), lambda q: jacobian(q) @ v
    bias = jax.jvp(velocity, (q,), (v,))[1]
    dM = jnp.einsum("lpi,lpj->ijl", J, J)
    effort = lambda a: jnp.einsum("lpi,lp->il", J, J @ a + bias - model.gravity)
    free = a / model.properties.armature  # the acceleration of the massless robot under the efforts a
    return dM, effort(a), -effort(free) / model.properties.armature[:, None]


_forward = jax.jit(jax.jacfwd(_values), compiler_options=QUICK)
_reverse = jax.jit(jax.jacrev(_values), compiler_options=QUICK)
_truth = jax.jit(_point_derivatives, compiler_options=QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("jacobian", [_forward, _reverse], ids=["forward", "reverse"])
def test_derivatives_are_those_of_point_masses_at_each_centre(jacobian):
    model = _massless()
    q, v, a = (jnp.asarray(x) for x in random_state(model, 0)[:3])
    *got, centre = jacobian(model.links.mass, model, q, v, a)
    for x, expected in zip(got, _truth(model, q, v, a), strict=True):
        assert jnp.abs(expected).max() > 1e-2
        np.testing.assert_allclose(x, expected, atol=TOLERANCE)
    assert not centre.any()  # the centre of mass of a massless robot is defined as zero


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_every_function_in_every_mode(name):
    """Derivatives with respect to the masses, and those of a gradient over the state (forward over reverse mode)."""
    model = _massless()
    q, v, a, e = (jnp.asarray(x) for x in random_state(model, 1))
    function = scalar(name)
    value = lambda mass, v: function(_with_masses(model, mass), q, v, a, e)
    slope = lambda mass: jax.value_and_grad(value, argnums=1)(mass, v)
    run = lambda f: jax.jit(f, compiler_options=QUICK)
    forward = run(jax.jacfwd(slope))(model.links.mass)
    reverse = run(jax.grad(value))(model.links.mass, v)
    np.testing.assert_allclose(reverse, forward[0], atol=TOLERANCE, rtol=TOLERANCE)

    slopes = run(jax.vmap(slope))
    h, directions = 1e-3, jnp.eye(model.num_links)
    samples = [slopes(k * h * directions) for k in (-3, -2, -1, 1, 2, 3)]
    weights = (-1 / 60, 3 / 20, -3 / 4, 3 / 4, -3 / 20, 1 / 60)  # central differences of sixth order
    expected = jax.tree.map(lambda *x: sum(w * y for w, y in zip(weights, x, strict=True)) / h, *samples)
    for got, x in zip(forward, expected, strict=True):
        np.testing.assert_allclose(got, x.T, atol=1e-9, rtol=1e-8)
