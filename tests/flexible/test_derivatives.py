"""Derivatives with respect to the leaves of a beam, against central differences and closed forms; batches of arms."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.beams import Beam, Material, Round
from jaxdyn.flexible import Strains, add_flexible_link
from jaxdyn.joints import Revolute
from jaxdyn.simulation import Feedback
from jaxdyn.spatial import point_mass

#: E (Pa), radius (m), density (kg/m^3), length (m), retardation time (s)
PARAMETERS = jnp.array([70e9, 0.006, 2700.0, 0.9, 1e-3])
SUBLINKS = 2


def make_arm(joint, gravity):
    builder = jd.ModelBuilder(gravity=gravity)
    beam = Beam(Round(0.01), Material.aluminium(), 1.0)
    part = add_flexible_link(builder, "arm", "world", joint, beam=beam, sublinks=SUBLINKS, strains=Strains.planar())
    builder.add_link("payload", part.tip, None, point_mass(0.1))
    return builder.build(), part


CLAMPED, HINGED = (lambda: make_arm(None, [0.0, -9.81, 0.0])), (lambda: make_arm(Revolute([0, 0, 1]), [0.0, 0.0, 0.0]))


def with_parameters(part, x):
    """The part of an arm with other numbers."""
    leaves = lambda p: (
        p.beam.material.youngs_modulus,
        p.beam.section.radius,
        p.beam.material.density,
        p.beam.length,
        p.beam.material.retardation_time,
    )
    return eqx.tree_at(leaves, part, tuple(x))


def push(t, q, v):
    """A torque that turns the hub forth and back within 0.2 s."""
    return jnp.zeros_like(v).at[0].set(3.0 * jnp.sin(2 * jnp.pi * t / 0.2))


def frequency(x):
    model, part = CLAMPED()
    mounted = with_parameters(part, x).mount(model)
    return jd.modes(mounted, jnp.zeros(mounted.nq)).frequencies[0]


def deflection(x):
    model, part = CLAMPED()
    mounted = with_parameters(part, x).mount(model)
    rest = jd.static_equilibrium(mounted, jnp.zeros(mounted.nq))
    return jd.frame_pose(mounted, rest.q, part.tip).translation[1]


def residual_vibration(x):
    """Strain energy after the motion, J."""
    model, part = HINGED()
    part = with_parameters(part, x)
    system = jd.System(model, (part, Feedback(push)))
    ts = jnp.array([0.0, 0.2])
    run = jd.simulate(
        system, jnp.zeros(3), jnp.zeros(3), ts, dt=2e-3, solver=diffrax.Tsit5(), adjoint=diffrax.ForwardMode()
    )
    return part.strain_energy(model, run.q[-1])


def quantities(x):
    y = jnp.stack([frequency(x), deflection(x), residual_vibration(x)])
    return y, y


@pytest.mark.exhaustive
def test_derivatives_with_respect_to_the_beam():
    evaluate = jax.jit(jax.jacfwd(quantities, has_aux=True))
    jacobian, values = evaluate(PARAMETERS)
    jacobian, step = jacobian * PARAMETERS, 1e-5
    moved = [evaluate(PARAMETERS * (1 + sign * step * np.eye(5)[k]))[1] for k in range(5) for sign in (1, -1)]
    differences = (np.stack(moved[::2]) - np.stack(moved[1::2])) / (2 * step)
    scale = np.abs(values)[:, None]
    np.testing.assert_allclose(jacobian / scale, differences.T / scale, rtol=1e-6, atol=1e-6)
    assert np.all(np.abs(jacobian[2]) > 1e-3 * scale[2])  # damping changes the vibration
    assert np.all(jacobian[:2, 4] == 0)  # and neither the frequency nor the deflection


@pytest.mark.exhaustive
def test_slopes_of_closed_forms_and_a_batch():
    model, part = CLAMPED()

    def first(part):
        mounted = part.mount(model)
        return jd.modes(mounted, jnp.zeros(mounted.nq), gravity=False).frequencies[0]

    value, slope = jax.jit(jax.value_and_grad(first))(part)
    e = part.beam.material.youngs_modulus
    np.testing.assert_allclose(slope.beam.material.youngs_modulus, value / (2 * e), rtol=1e-9)
    arms = jax.vmap(lambda x: with_parameters(part, PARAMETERS * x))(jnp.linspace(0.9, 1.1, 3))
    found = jax.jit(jax.vmap(first))(arms)
    np.testing.assert_allclose(found[1], first(jax.tree.map(lambda x: x[1], arms)), rtol=1e-9)
    assert np.all(np.diff(found) > 0)
