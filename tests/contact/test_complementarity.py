"""The complementarity problem of contact forces, several impacts at once, and cases without a unique answer."""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxdyn as jd
from jaxdyn._errors import ModelError
from jaxdyn.contact import (
    AllAtOnce,
    Contact,
    ContactMotion,
    Gap,
    Newton,
    OneAfterAnother,
    Plane,
    Point,
    Poisson,
    Sphere,
    Stronge,
)
from jaxdyn.contact.rigid import ContactProblem, contact_layout, solve_complementarity
from jaxdyn.dynamics import SwitchFailure
from jaxdyn.joints import Prismatic, Revolute
from jaxdyn.spatial import point_mass, rod


def contacts(count, friction=0.5, plane=None):
    gap = Gap("x", Point(), "world", Plane())
    return tuple(Contact(f"c{k}", gap, friction, plane=plane) for k in range(count))


@ft.cache
def solver(count, friction=0.5):
    layout = contact_layout(contacts(count, friction))
    n = layout.num_contacts

    def solve(delassus, bias, mu):
        zero = jnp.zeros(n)
        free = jnp.zeros(layout.num_groups), jnp.zeros(layout.num_rows)
        return solve_complementarity(layout, ContactProblem(delassus, bias, jnp.ones(n), zero, mu, *free))

    return layout, solve


def violation(layout, forces, rates, mu):
    """The largest violation of any condition of the problem."""
    normal, gap = forces[:, layout.normal], rates[:, layout.normal]
    worst = [-normal, -gap, np.abs(normal * gap)]
    if layout.num_groups:
        tangential = np.stack([forces[:, r[:2]] for r in layout.rows], 1)
        slip = np.stack([rates[:, r[:2]] for r in layout.rows], 1)
        length, speed = np.linalg.norm(tangential, axis=-1), np.linalg.norm(slip, axis=-1)
        worst += [length - mu * normal, speed * (mu * normal - length)]
        worst.append(np.sum(tangential * slip, -1) + length * speed)  # opposite directions
    return np.max(np.stack([x.max(axis=1) for x in worst]), axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 3])
def test_random_problems_are_solved_to_rounding(count):
    """2,000 random problems, with Delassus matrices of well-conditioned and of planar robots."""
    layout, solve = solver(count)
    rng = np.random.default_rng(count)
    m = layout.num_rows
    half = rng.normal(size=(2000, m, m))
    half[::4, :, 1] = 0.0
    delassus = half @ half.swapaxes(1, 2) / m + 1e-3 * np.eye(m)
    bias, mu = rng.normal(size=(2000, m)), rng.uniform(0, 1, (2000, count))
    out = jax.jit(jax.vmap(solve))(delassus, bias, mu)
    found = np.asarray(out.is_solved)
    error = violation(layout, np.asarray(out.forces), np.asarray(out.rates), mu)
    assert found.mean() > 0.995
    assert error[found].max() < 1e-7
    assert np.isfinite(out.forces).all()


@pytest.mark.slow
def test_derivatives_of_contact_forces():
    layout, solve = solver(3)
    rng = np.random.default_rng(5)
    half = rng.normal(size=(9, 9))
    delassus, mu = jnp.asarray(half @ half.T + np.eye(9)), jnp.array([0.3, 0.5, 0.1])
    bias = jnp.asarray(rng.normal(size=9)).at[layout.normal].add(-2)
    total = lambda bias, mu: jnp.sum(solve(delassus, bias, mu).forces * jnp.arange(1.0, 10.0))
    value, gradient = jax.jit(total), jax.jit(jax.grad(total, (0, 1)))
    h = 1e-6
    by_bias, by_mu = gradient(bias, mu)
    numbers = [(value(bias.at[i].add(h), mu) - value(bias.at[i].add(-h), mu)) / (2 * h) for i in range(9)]
    assert_allclose(by_bias, numbers, atol=1e-6)
    numbers = [(value(bias, mu.at[i].add(h)) - value(bias, mu.at[i].add(-h))) / (2 * h) for i in range(3)]
    assert_allclose(by_mu, numbers, atol=1e-6)


def three_balls(impacts, law):
    """Three equal balls in a row, the first of which hits the other two at rest; velocities after the impact."""
    b = jd.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    for name in "abc":
        b.add_link(name, "world", Prismatic((1, 0, 0)), point_mass(1.0))
    model = b.build()
    pairs = [Contact(x + y, Gap(y, Sphere(0.1), x, Sphere(0.1)), restitution=law) for x, y in ("ab", "bc")]
    motion = ContactMotion(pairs, impacts=impacts)
    q, v = jnp.array([0.0, 0.2, 0.4]), jnp.array([1.0, 0.0, 0.0])
    motion = motion.in_modes(motion.initial_modes(model, 0.0, q, v))
    forces = lambda motion, v: (jnp.zeros(3), None)
    fired = jnp.zeros(motion.num_guards).at[0].set(1)
    return jax.jit(lambda v: motion.switch(model, jnp.zeros(()), q, v, fired, forces))(v)


@pytest.mark.slow
def test_newtons_cradle_needs_impacts_one_after_another():
    assert_allclose(three_balls(OneAfterAnother(20), Newton(1.0)).v, [0, 0, 1], atol=1e-9)
    together = three_balls(AllAtOnce(), Newton(1.0)).v
    assert_allclose([together.sum(), (together**2).sum()], [1, 1], atol=1e-9)
    assert abs(together[2] - 1) > 0.1  # the classical multiple impact law keeps momentum and energy, not the cradle
    plastic = three_balls(AllAtOnce(), Poisson(0.0)).v
    assert_allclose(plastic, [1 / 3] * 3, atol=1e-9)


@pytest.mark.slow
def test_impacts_without_end_have_a_status():
    out = three_balls(OneAfterAnother(3), Newton(0.0))
    assert out.failure == SwitchFailure.IMPACT_LIMIT


def test_a_law_of_one_contact_is_refused_for_impacts_at_once():
    motion = ContactMotion([Contact(n, Gap("x", Point(), "world", Plane()), 0.1, Stronge(0.5)) for n in ("a", "b")])
    with pytest.raises(ModelError, match=r"law of single impacts.*OneAfterAnother"):
        motion.check(jd.robots.pendulum())


@pytest.mark.slow
@pytest.mark.parametrize(("mu", "fails"), [(1.3, False), (1.4, True)])
def test_painleves_paradox_has_a_status(mu, fails):
    """A uniform rod slides on its end; forces can fail to exist from mu = 4/3 on, at an angle with tangent 2."""
    b = jd.ModelBuilder()
    b.add_link("x", "world", Prismatic((1, 0, 0)))
    b.add_link("z", "x", Prismatic((0, 0, 1)))
    b.add_link("rod", "z", Revolute((0, 1, 0)), rod(1.0, mass=1.0))
    model = b.add_frame("end", "rod", translation=(0, 0, -0.5)).build()
    angle = np.arctan(2.0)  # between rod and floor
    tilt = np.pi / 2 - angle
    q = jnp.array([0.0, 0.5 * np.sin(angle), tilt])
    floor = Contact("floor", Gap("end", Point(), "world", Plane()), mu, plane=(0, 1, 0))
    motion = ContactMotion(floor)
    motion = motion.in_modes(motion.initial_modes(model, 0.0, q, 0 * q))
    forces = lambda motion, v: (jnp.zeros(3), None)
    none = jnp.zeros(motion.num_guards)
    switch = jax.jit(lambda v: motion.switch(model, jnp.zeros(()), q, v, none, forces))
    failures = [int(switch(jnp.array([speed, 0.0, 0.0])).failure) for speed in (1.0, -1.0)]
    assert (SwitchFailure.INDETERMINATE in failures) == fails


@pytest.mark.slow
def test_the_critical_coefficient_of_a_sliding_rod():
    """A uniform rod at the angle a to the floor: forces exist up to `mu = (1 + 3 cos^2 a) / (3 sin a cos a)`."""
    layout = contact_layout(contacts(1, 0.5, (0.0, 1.0, 0.0)))
    angle = np.append(np.linspace(0.3, 1.4, 23), np.arctan(2.0))
    s, c = np.sin(angle), np.cos(angle)
    delassus = np.moveaxis(np.array([[1 + 3 * c**2, 3 * s * c], [3 * s * c, 1 + 3 * s**2]]), -1, 0)
    critical = (1 + 3 * c**2) / (3 * s * c)
    assert critical.min() == critical[-1] == pytest.approx(4 / 3)
    one = jnp.ones(1)
    weight, along = jnp.array([-1.0, 0.0]), jnp.array([0.0, 1.0])
    solve = jax.jit(
        jax.vmap(
            lambda g, mu: solve_complementarity(layout, ContactProblem(g, weight, one, 0 * one, mu[None], one, along))
        )
    )
    below, above = (solve(delassus, critical * (1 + h)) for h in (-1e-4, 1e-4))
    assert below.is_solved.all() and not above.is_solved.any()
    assert_allclose(below.forces[:, 0], 1 / (delassus[:, 0, 0] * 1e-4), rtol=1e-6)
    assert np.isfinite(above.forces).all()
