"""Compliant contact as a part: wrenches, impacts against closed forms, energy, derivatives through touch-down."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import ModelError
from jaxdyn.contact import (
    CompliantContact,
    Gap,
    Hertz,
    HuntCrossley,
    KelvinVoigt,
    Plane,
    Point,
    RegularisedFriction,
)
from jaxdyn.joints import Prismatic
from jaxdyn.simulation import integrate_fixed_steps, switching_events
from jaxdyn.spatial import point_mass

from ._drops import FLOOR, FORWARD, drop, impacts, tool, total_energy

ARM = jd.robots.double_pendulum()


# Forces


@pytest.mark.slow
def test_wrenches_do_the_work_of_the_forces():
    """Between two links: the power of the wrenches is that of the forces on gap and slip."""
    contact = CompliantContact(
        Gap("tip", Point(), ("upper", (0.43, 0.0, -0.153)), Plane([0.2, 0.0, 1.0])),
        KelvinVoigt(4000.0, 30.0),
        RegularisedFriction(0.5, 0.1),
        located=False,
    )
    q, v = jnp.array([0.3, -2.5]), jnp.array([0.5, -1.0])

    @jax.jit
    def compare(q, v):
        f = contact.forces(ARM, 0.0, q, v)
        external = contact.act(ARM, 0.0, q, v, None).external
        effort = jd.bias_forces(ARM, q, v) - jd.bias_forces(ARM, q, v, external)
        rate = jax.jvp(lambda q: contact.forces(ARM, 0.0, q, v).gap, (q,), (v,))[1]
        return f, effort @ v, f.normal_force * f.rate + f.friction_force @ f.slip, rate

    f, power, expected, rate = compare(q, v)
    assert f.gap < 0 and f.normal_force > 0 and abs(f.slip).max() > 0.1
    np.testing.assert_allclose(power, expected, rtol=1e-12)
    np.testing.assert_allclose(f.rate, rate, rtol=1e-12)


LAWS = [KelvinVoigt(4e3, 30.0), HuntCrossley(1e4, 0.5), Hertz(0.05, 1e7)]


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=["spring", "hunt", "hertz"])
def test_random_states_have_finite_derivatives(law):
    """A thousand states, among them exact touch-down and zero slip; every derivative is finite and has its sign."""
    contact = CompliantContact(FLOOR, law, RegularisedFriction(0.3), located=False)
    rng = np.random.default_rng(0)
    q = jnp.asarray(np.where(rng.random(1000) < 0.3, 0.0, rng.uniform(-0.01, 0.01, 1000)))[:, None]
    v = jnp.asarray(np.where(rng.random(1000) < 0.3, 0.0, rng.normal(size=1000)))[:, None]
    model = tool()
    leaves, rest = eqx.partition(contact, eqx.is_inexact_array)

    def force(leaves, q, v):
        return eqx.combine(leaves, rest).forces(model, 0.0, q, v).normal_force

    both = jax.jit(jax.vmap(jax.value_and_grad(force, (0, 1, 2)), (None, 0, 0)))
    value, slopes = both(leaves, q, v)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves((value, slopes)))
    assert (value >= 0).all() and (value[q[:, 0] > 0] == 0).all()
    for x in jax.tree.leaves(slopes):
        assert (np.asarray(x)[q[:, 0] > 0] == 0).all()
    assert (slopes[1][(q < 0) & (v <= 0)] < 0).all()


# Impacts


def _with_leaves(law, **leaves):
    """A batch of laws with these leaves."""
    size = max(np.size(x) for x in leaves.values())
    batch = jax.tree.map(lambda x: jnp.broadcast_to(x, (size,)), law)
    return eqx.tree_at(lambda m: [getattr(m, k) for k in leaves], batch, [jnp.asarray(x) for x in leaves.values()])


@pytest.mark.exhaustive
def test_hunt_crossley_impacts():
    """Restitution and depth in closed form; the reference digits."""
    c, v = np.array([0.5, 1.0, 0.2]), np.array([1.0, 1.0, 4.42944691807])
    laws = _with_leaves(HuntCrossley(1e4, 0.5, 1.5), damping=c)
    ts = jnp.linspace(0.0, 0.2, 201)
    path = impacts(laws, 1.0, jnp.asarray(v), ts)
    e = path.v[:, -1, 0] / v
    np.testing.assert_allclose(e, [0.7484349315974342, 0.5936242600400401, 0.6235857476187942], rtol=1e-9)
    np.testing.assert_allclose(c * v * (1 + e), np.log((1 + c * v) / (1 - c * e * v)), rtol=1e-9)
    assert (path.events.count == 3).all()  # touch-down, deepest point, separation
    np.testing.assert_allclose(path.events.time[:, 0], 1e-3 / v, atol=1e-14)
    depth = (2.5 / 1e4 * (v / c - np.log1p(c * v) / c**2)) ** 0.4
    np.testing.assert_allclose(path.events.q[:, 1, 0], -depth, rtol=1e-10)
    np.testing.assert_allclose(depth[0], 0.02456048014301429, rtol=1e-14)
    energy = total_energy(jd.System(tool(1.0, 0.0), (CompliantContact(FLOOR, HuntCrossley(1e4, 0.5)),)), _row(path, 0))
    assert (np.diff(energy) < 1e-11).all() and energy[-1] < 0.6 * energy[0]


def _row(path, k):
    return jax.tree.map(lambda x: x[k], path)


KELVIN_VOIGT = {
    True: [0.729247614288, 0.526620599330, 0.163033534822],
    False: [0.744079397722, 0.571740027585, 0.298436059192],
}


@pytest.mark.slow("without")
@pytest.mark.parametrize("tension", [True, False], ids=["with", "without"])
def test_kelvin_voigt_impacts(tension):
    """Coefficients of restitution with and without tension, and the sequence of modes."""
    zeta = np.array([0.1, 0.2, 0.5])
    laws = _with_leaves(KelvinVoigt(1e4, 0.0, tension), damping=200 * zeta)
    path = impacts(laws, 1.0, jnp.ones(3), jnp.linspace(0.0, 0.05, 201))
    np.testing.assert_allclose(path.v[:, -1, 0], KELVIN_VOIGT[tension], rtol=1e-10)
    assert (path.events.count == (3 if tension else 4)).all()
    np.testing.assert_allclose(path.events.time[:, 0], 1e-3, atol=1e-14)
    if tension:
        w = 100 * np.sqrt(1 - zeta**2)
        np.testing.assert_allclose(path.events.time[:, 2] - 1e-3, np.pi / w, rtol=1e-10)
    else:
        np.testing.assert_allclose(100 * path.events.q[:, 2, 0], -2 * zeta * path.events.v[:, 2, 0], rtol=1e-9)


@pytest.mark.exhaustive
def test_hertz_impact():
    """Duration and depth of an impact without losses, and conservation of energy."""
    law = _with_leaves(Hertz(0.05, 1e7), radius=np.full(1, 0.05))
    path = impacts(law, 0.5, jnp.ones(1), jnp.linspace(0.0, 0.01, 201))
    times = path.events.time[0]
    np.testing.assert_allclose(times[2] - times[0], 6.272105866985e-3, rtol=1e-9)
    np.testing.assert_allclose(path.events.q[0, 1, 0], -2.130995396e-3, rtol=2e-10)
    law = Hertz(0.05, 1e7)
    np.testing.assert_allclose(law.energy(2.130995396e-3), 0.25, rtol=2e-9)
    energy = total_energy(jd.System(tool(0.5, 0.0), (CompliantContact(FLOOR, law),)), _row(path, 0))
    np.testing.assert_allclose(energy, 0.25, rtol=1e-9)


# Derivatives


@pytest.mark.slow
def test_derivatives_through_touch_down_and_separation():
    """Of the state after an impact whose force jumps, with respect to the drop and every number of tool and law."""
    ts = jnp.array([0.0, 0.3])

    def end(p):
        height, stiffness, damping, gravity, mass = p
        path = drop(KelvinVoigt(stiffness, damping), mass, gravity, height, 0.0, ts, FORWARD)
        return jnp.array([path.q[-1, 0], path.v[-1, 0], *path.events.time[:3]])

    p = jnp.array([0.1, 4000.0, 30.0, 9.81, 2.0])
    tangents = jnp.diag(p)  # relative changes
    step = 1e-5
    points = jnp.concatenate([jnp.tile(p, (5, 1)), p + step * tangents, p - step * tangents])
    directional = jax.jit(jax.vmap(lambda p, d: jax.jvp(end, (p,), (d,))))
    values, slopes = directional(points, jnp.tile(tangents, (3, 1)))
    differences = (values[5:10] - values[10:]) / (2 * step)
    np.testing.assert_allclose(slopes[:5], differences, rtol=2e-6, atol=2e-7)
    # the touch-down of a free fall is at sqrt(2 h / g)
    np.testing.assert_allclose(slopes[0, 2], 0.5 * np.sqrt(0.2 / 9.81), rtol=1e-9)


@pytest.mark.exhaustive
def test_derivatives_of_a_smooth_law_without_events():
    """Of Hunt and Crossley's restitution, from the derivative of its implicit equation.

    Steps that contain the touch-down are of low order for derivatives: these have half the digits of the state.
    """
    c, speed = 0.5, 1.0

    def restitution(c, speed):
        system = jd.System(tool(1.0, 0.0), (CompliantContact(FLOOR, HuntCrossley(1e4, c)),))
        start, velocity = jnp.array([1e-3]), jnp.reshape(-speed, (1,))
        path = jd.simulate(system, start, velocity, jnp.array([0.0, 0.2]), rtol=1e-10, atol=1e-12, adjoint=FORWARD)
        return path.v[-1, 0] / speed

    def equation(e, c, speed):
        return c * speed * (1 + e) - jnp.log1p(c * speed) + jnp.log1p(-c * e * speed)

    slopes = jax.jit(jax.jacfwd(restitution, (0, 1)))(c, speed)
    by_e, by_c, by_speed = jax.grad(equation, (0, 1, 2))(0.7484349315974342, c, speed)
    np.testing.assert_allclose(slopes, [-by_c / by_e, -by_speed / by_e], rtol=1e-5)


# Modes


def test_modes_need_their_events():
    system = jd.System(tool(), (CompliantContact(FLOOR, KelvinVoigt(4e3, 30.0)),))
    with pytest.raises(ModelError, match="CompliantContact changes its discrete state .*switching_events"):
        jd.simulate(system, jnp.ones(1), jnp.zeros(1), jnp.array([0.0, 0.1]))
    with pytest.raises(ModelError, match="discrete state .*located=False"):
        integrate_fixed_steps(system, jnp.ones(1), jnp.zeros(1), 0.0, 0.01, 2)
    with pytest.raises(ModelError, match="switch 0 of part 0, which the system does not have"):
        jd.simulate(tool(), jnp.ones(1), jnp.zeros(1), jnp.array([0.0, 0.1]), events=switching_events(system))


def test_initial_modes():
    contact = CompliantContact(FLOOR, KelvinVoigt(4e3, 30.0))
    starts = {(0.1, -1.0): 0, (0.0, -1.0): 1, (0.0, 0.0): 1, (0.0, 1.0): 0, (-0.01, 0.0): 1, (-0.01, 2.0): 2}
    q, v = np.array(list(starts)).T[..., None]
    modes = jax.jit(jax.vmap(lambda q, v: contact.initial(tool(), q, v)))(q, v)
    np.testing.assert_array_equal(modes, list(starts.values()))
    assert CompliantContact(FLOOR, Hertz(0.05, 1e7)).initial(tool(), jnp.zeros(1), jnp.zeros(1)) is None


# Friction


@pytest.mark.slow
def test_sliding_block():
    """A block on its static deflection slides to rest: `sinh(v / w) = sinh(v_0 / w) exp(-mu g t / w)`, in a plane."""
    b = jd.ModelBuilder()
    b.add_link("x", "world", Prismatic([1, 0, 0])).add_link("y", "x", Prismatic([0, 1, 0]))
    block = b.add_link("block", "y", Prismatic([0, 0, 1]), point_mass(1.0)).build()
    mu, width, v0 = 0.25, 0.2, np.array([4.0, 0.8])
    contact = CompliantContact(
        Gap("block", Point(), "world", Plane()), HuntCrossley(1e4, 0.5), RegularisedFriction(mu, width)
    )
    depth = (9.81 / 1e4) ** (2 / 3)
    system = jd.System(block, (contact,))
    ts = jnp.linspace(0.0, 3.0, 31)
    start = jnp.array([-1.5, -0.5, -depth])
    path = jd.simulate(system, start, jnp.array([*v0, 0.0]), ts, rtol=1e-10, atol=1e-12)
    speed = np.hypot(*v0)
    expected = width * np.arcsinh(np.sinh(speed / width) * np.exp(-mu * 9.81 * ts / width))
    np.testing.assert_allclose(np.linalg.norm(path.v[:, :2], axis=1), expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(path.q[:, 2], -depth, rtol=1e-8)
    # the path is straight, and its length tends to that of Coulomb friction, v^2 / (2 mu g), as width^2
    vx, vy = path.v[:-1, 0], path.v[:-1, 1]
    np.testing.assert_allclose(vx * v0[1] - vy * v0[0], 0.0, atol=1e-9)
    length = np.linalg.norm(path.q[-1, :2] - start[:2])
    excess = width**2 * np.pi**2 / 12 / (mu * 9.81)
    np.testing.assert_allclose(length, 3.3924566768603466 + excess, rtol=1e-6)
