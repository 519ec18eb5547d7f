"""Constrained dynamics of two coupled sliders and of a gripped mass, in closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn.joints import Prismatic

#: masses of the sliders, kg, and the ratio of the coupling `q_b = RATIO q_a`
MASSES, RATIO = (2.0, 3.0), -0.5
COUPLING = jc.LinearCoupling("gear", "b", ("a",), (RATIO,))


def _sliders():
    b = jd.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    for name, axis, mass in (("a", (1, 0, 0), MASSES[0]), ("b", (0, 0, 1), MASSES[1])):
        b.add_link(name, "world", Prismatic(axis), jd.spatial.point_mass(mass), joint_name=name)
    return b.build()


@jax.jit
def _evaluate(m, q, v, tau):
    free = jc.constrained_dynamics(m, COUPLING, q, v, tau)
    return {
        "free": free,
        "inverse": jc.constrained_inverse_dynamics(m, COUPLING, q, v, free.a, free.multipliers),
        "allowed": jc.allowed_forces(m, COUPLING, q, tau),
        "impulse": jc.impulse(m, COUPLING, q, v),
        "mobility": jc.mobility(m, COUPLING, q),
        "reduced": jc.reduced_dynamics(m, lambda y: y[0] * jnp.array([1.0, RATIO]), q[:1], v[:1], tau),
        "assembly": jc.assemble(m, COUPLING, q, v),
        "task": jc.constrained_task_space_dynamics(m, COUPLING, q, v, "a", reference=jd.WORLD_ALIGNED),
    }


@pytest.fixture(scope="module")
def found():
    return _evaluate(_sliders(), jnp.array([0.4, 0.4]), jnp.array([1.0, 2.0]), jnp.array([5.0, 1.0]))


def test_dynamics_of_coupled_sliders(found):
    along = np.array([1.0, RATIO])  # of the motion that the coupling allows
    mass = along @ np.diag(MASSES) @ along
    a = along * (along @ [5.0, 1.0]) / mass
    assert_allclose(found["free"].a, a, rtol=1e-12)
    assert_allclose(found["inverse"], [5.0, 1.0], rtol=1e-12)
    assert_allclose(found["allowed"], np.array(MASSES) * a, rtol=1e-12)
    assert_allclose(found["task"].inertia[3, 3], mass, rtol=1e-12)
    assert found["task"].full_rank == 0
    assert found["mobility"] == 1
    assert_allclose(found["reduced"].a, a, rtol=1e-12)
    assert_allclose(found["reduced"].inertia, [[mass]], rtol=1e-12)


def test_impulse_and_assembly_of_coupled_sliders(found):
    along = np.array([1.0, RATIO])
    mass, momentum = np.diag(MASSES), along @ np.diag(MASSES) @ [1.0, 2.0]
    assert_allclose(found["impulse"].v, along * momentum / (along @ mass @ along), rtol=1e-12)
    assembly = found["assembly"].checked()
    assert_allclose(assembly.q[1], RATIO * assembly.q[0], atol=1e-12)
    assert_allclose(assembly.v[1], RATIO * assembly.v[0], atol=1e-12)


def test_sliders_hold_a_load():
    """The load has the position and the velocity of the hands, and its mass adds to theirs."""
    slider = lambda: (
        jd.ModelBuilder(gravity=(0.0, 0.0, 0.0))
        .add_link("hand", "world", Prismatic((1, 0, 0)), jd.spatial.point_mass(2.0))
        .build()
    )
    one, grip = jc.gripping_load(slider(), "hand", 3.0)
    assert one.nv == 4 and len(grip) == 1
    model, grips = jc.common_load(slider(), slider(), ("hand", "hand"), 3.0)
    q, v = jc.carried_state(model, grips, jnp.array([0.3, 0.3]), jnp.array([0.5, 0.5]))
    assert_allclose(q[:2], 0.3), assert_allclose(v[:2], 0.5)
    position = jd.forward_kinematics(model, q).translation
    assert_allclose(position[-1], position[0], atol=1e-15)
    assert_allclose(jd.total_mass(model), 2 + 2 + 3)


def test_slider_on_a_slope():
    """A point mass on the plane `z = x` falls along it with `g / 2` in both coordinates."""
    b = jd.ModelBuilder()
    b.add_link("x", "world", Prismatic((1, 0, 0)))
    b.add_link("z", "x", Prismatic((0, 0, 1)), jd.spatial.point_mass(2.0))
    model, surface = jc.on_surface(b.build(), "z", lambda p: p[2] - p[0])
    zero = jnp.zeros(2)
    motion = jax.jit(jc.constrained_dynamics)(model, surface, zero, zero, zero)
    assert_allclose(motion.a, [-9.81 / 2, -9.81 / 2], rtol=1e-12)
    assert_allclose(motion.multiplier("surface"), 9.81, rtol=1e-12)  # N, along (-1, 1)
