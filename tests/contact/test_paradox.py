"""Painleve's paradox of a sliding rod: the status, and the impact without collision against its closed form.

A slender rod of mass m and length l slides on its lower end at the angle phi to the floor. With the Delassus matrix
`m G = [[1 + 3 cos^2 phi, g], [g, 1 + 3 sin^2 phi]]`, `g = 3 sin phi cos phi`, of determinant 4, no forces exist beyond
`mu_P = (1 + 3 cos^2 phi) / g`, where the end slides away from the other one, so that friction turns it into the floor.
"""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxdyn as jd
from jaxdyn.contact import Contact, ContactMotion, Gap, Newton, Plane, Point, Poisson, Stronge
from jaxdyn.dynamics import SwitchFailure
from jaxdyn.joints import Prismatic, Revolute
from jaxdyn.spatial import rod

MASS, LENGTH, PHI = 1.3, 0.8, 0.9
SLIP = -0.7
G_N, G_NT, G_T = 1 + 3 * np.cos(PHI) ** 2, 3 * np.sin(PHI) * np.cos(PHI), 1 + 3 * np.sin(PHI) ** 2
CRITICAL = G_N / G_NT
Y = (0.0, 1.0, 0.0)


@ft.cache
def leaning_rod():
    """The rod; its upper end leans to positive x."""
    b = jd.ModelBuilder()
    b.add_link("x", "world", Prismatic((1, 0, 0)))
    b.add_link("z", "x", Prismatic((0, 0, 1)))
    b.add_link("rod", "z", Revolute(Y), rod(LENGTH, mass=MASS))
    return b.build()


def state(slip, spin=0.0):
    """The rod with its lower end in the floor's plane, which slides with no normal velocity."""
    c, s = LENGTH / 2 * np.cos(PHI), LENGTH / 2 * np.sin(PHI)
    q = jnp.array([c, s, np.pi / 2 - PHI])
    return q, jnp.array([slip + spin * s, -spin * c, spin])


def motion(mu, law=None, plane=Y, resolves=True):
    end = Gap(("rod", (0.0, 0.0, -LENGTH / 2)), Point(), "world", Plane())
    contact = Contact("end", end, mu, Newton(0.0) if law is None else law, plane)
    return ContactMotion(contact, impact_without_collision=resolves)


def begin(whole, q, v):
    """The start of a motion."""
    return begin_of_model(leaning_rod(), whole, q, v)


@jax.jit
def begin_of_model(model, whole, q, v):
    t = jnp.zeros(())
    whole = whole.in_modes(whole.initial_modes(model, t, q, v))
    none = jnp.zeros(whole.num_guards)
    return whole.switch(model, t, q, v, none, lambda motion, v: (jnp.zeros(3), None))


def end_velocity(q, v):
    """Normal velocity and slip of the lower end."""
    c, s = LENGTH / 2 * np.sin(q[2]), LENGTH / 2 * np.cos(q[2])
    return v[1] + c * v[2], v[0] - s * v[2]


def energy(q, v):
    return jd.kinetic_energy(leaning_rod(), q, v)


@pytest.mark.slow
def test_a_rod_beyond_the_critical_friction_has_no_forces():
    q, v = state(SLIP)
    for resolves in (False, True):
        below = begin(motion(CRITICAL - 1e-3, resolves=resolves), q, v)
        assert below.failure == SwitchFailure.NONE and below.modes.sliding[0] == 1
        assert_allclose(below.v, v, atol=1e-9)
    beyond = begin(motion(CRITICAL + 1e-3, resolves=False), q, v)
    assert beyond.failure == SwitchFailure.INDETERMINATE and beyond.culprit == 0
    other = begin(motion(CRITICAL + 1e-3, resolves=False), *state(-SLIP))
    assert other.failure == SwitchFailure.NONE


@pytest.mark.exhaustive
@pytest.mark.parametrize("plane", [Y, None], ids=["planar", "spatial"])
@pytest.mark.parametrize("law", [Newton, Poisson, Stronge])
def test_the_impact_without_collision_of_a_rod(law, plane):
    """The compression takes the slip with `p_c = g m |c_t| / 4`; then it sticks, with gain `4 / (1 + 3 sin^2 phi)`."""
    e, (q, v) = 0.6, state(SLIP, spin=0.4)
    out = begin(motion(CRITICAL + 0.2, law(e), plane), q, v)
    assert out.failure == SwitchFailure.NONE
    compression = G_NT * MASS * abs(SLIP) / 4
    expansion = {Newton: 0.0, Poisson: e * compression}.get(law)
    if law is Stronge:
        slope, stop = G_N - (CRITICAL + 0.2) * G_NT, abs(SLIP) / ((CRITICAL + 0.2) * G_T - G_NT) * MASS
        work = -slope * stop / MASS * compression / 2  # the normal velocity falls to slope p / m, then rises to zero
        expansion = e * np.sqrt(2 * work / (4 / G_T / MASS))
    normal, slip = end_velocity(q, out.v)
    assert_allclose(out.impulse[0], compression + expansion, rtol=1e-5)
    assert_allclose(normal, 4 / G_T * expansion / MASS, atol=1e-5)
    assert_allclose(slip, 0, atol=1e-8)
    assert energy(q, out.v) < energy(q, v)
    assert out.modes.closed[0] == (law is Newton)


@pytest.mark.exhaustive
def test_a_rod_that_is_stopped_turns_about_its_end():
    """The angular momentum about the end is conserved: `omega+ = H / (m l^2 / 3)`."""
    q, v = state(SLIP, spin=0.4)
    whole = motion(CRITICAL + 0.2)
    out, tangent = jax.jvp(lambda v: begin(whole, q, v).v, (v,), (jnp.array([1.0, 0.0, 0.0]),))
    arm = LENGTH / 2 * np.sin(PHI), LENGTH / 2 * np.cos(PHI)
    about_end = MASS * (arm[0] * v[0] - arm[1] * v[1]) + MASS * LENGTH**2 / 12 * v[2]
    assert_allclose(out[2], about_end / (MASS * LENGTH**2 / 3), rtol=1e-8)
    assert_allclose(end_velocity(q, out), 0, atol=1e-9)
    assert_allclose(tangent[2], MASS * arm[0] / (MASS * LENGTH**2 / 3), rtol=1e-8)


@pytest.mark.exhaustive
def test_several_solutions_remain_a_status():
    """A rod that spins fast enough to lift its end has the choice between leaving and sliding on."""
    out = begin(motion(CRITICAL + 0.2), *state(SLIP, spin=8.0))
    assert out.failure == SwitchFailure.INDETERMINATE and out.culprit == 0


@pytest.mark.exhaustive
def test_the_motion_goes_on_after_an_impact_without_collision():
    q, v = state(SLIP)
    ts = jnp.array([0.0, 0.2])
    run = jd.simulate(jd.System(leaning_rod(), motion=motion(CRITICAL + 0.2)), q, v, ts)
    assert run.status == jd.SimulationStatus.FINISHED
    assert np.isfinite(run.q).all() and run.energy[-1] < energy(q, v) + run.potential_energy[0]
    assert run.phases.impulse[0, 0] > 0
    fails = jd.simulate(jd.System(leaning_rod(), motion=motion(CRITICAL + 0.2, resolves=False)), q, v, ts)
    assert fails.status == jd.SimulationStatus.INDETERMINATE and fails.phases.culprit == 0
