"""Derivatives in the numbers of every type of constraint, and of the pose that is nearest on one."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn.constraints import _evaluate as ev
from jaxdyn.simulation import System
from jaxdyn.spatial import Pose
from tests.constraints._cases import every_type
from tests.oracles import random_model, random_state


class Bowl(eqx.Module):
    """A surface with numbers of its own."""

    depth: jax.Array
    waves: jax.Array

    def __call__(self, p):
        return p[2] - self.depth * (p[0] ** 2 + p[1] ** 2) - jnp.sin(self.waves @ p)


class Screw(eqx.Module):
    """A motion with numbers of its own."""

    rate: jax.Array

    def __call__(self, t):
        turn = jnp.stack([jnp.cos(self.rate * t), 0 * t, 0 * t, jnp.sin(self.rate * t)])
        return Pose.from_quaternion(turn, jnp.stack([t, self.rate * t**2, 1 + t]))


class Sine(eqx.Module):
    size: jax.Array

    def __call__(self, t):
        return self.size * jnp.sin(t)


def _with_numbers():
    """`every_type` with functions that have leaves, and the types on coordinates besides."""
    bowl = Bowl(jnp.array(0.3), jnp.array([0.2, 0.5, 0.1]))
    named = {c.name: c for c in every_type()}
    named["bowl"] = jc.OnSurface("bowl", named["bowl"].frame, bowl, "l1")
    named["carried"] = jc.PrescribedFrame(
        "carried", named["carried"].frame, Screw(jnp.array(0.8)), ("l1", (0.1, 0.2, 0.0))
    )
    named["gear"] = jc.JointCoupling("gear", "l1_joint", "l0_joint", (0.1, 0.5, -0.2))
    named["driven"] = jc.PrescribedCoordinate("driven", "l2_joint", Sine(jnp.array(0.7)))
    return tuple(named.values())


@pytest.mark.slow
def test_derivatives_in_every_number():
    """One at a time, so that none hides behind another: residual, rate, Jacobian and bias together."""
    model = random_model(5, 8, kinds=("revolute", "prismatic"), branching=0.6)
    q, v, a, _ = random_state(model, 6)[:4]
    leaves, rest = eqx.partition(_with_numbers_on(model), eqx.is_inexact_array)

    def score(leaves):
        constraints = eqx.combine(leaves, rest)
        x = ev.evaluated(model, 0.3, q, v)
        jacobian, drift = ev.linearised(model, constraints, x)
        rows = ev.residuals(model, constraints, x) + jacobian @ a + drift + ev.bias(model, constraints, x)
        return rows @ jnp.sin(1.0 + jnp.arange(rows.shape[0]))

    value, slopes = jax.jit(score), jax.jit(jax.grad(score))(leaves)
    flat, tree = jax.tree.flatten(leaves)
    rng, moved = np.random.default_rng(0), 0
    for k, (x, got) in enumerate(zip(flat, jax.tree.leaves(slopes), strict=True)):
        along = jnp.asarray(rng.normal(size=x.shape))
        at = lambda s, k=k, x=x, along=along: value(
            jax.tree.unflatten(tree, [*flat[:k], x + s * along, *flat[k + 1 :]])
        )
        want = (at(1e-5) - at(-1e-5)) / 2e-5
        assert_allclose(jnp.vdot(got, along), want, rtol=1e-5, atol=1e-7)
        moved += abs(want) > 1e-6
    assert moved > 0.9 * len(flat) > 50


def _with_numbers_on(model):
    kept = []
    for c in _with_numbers():
        if isinstance(c, jc.Pfaffian):  # its matrix is written for another size
            continue
        kept.append(c)
    assert {"l0_joint", "l1_joint", "l2_joint"} <= set(model.joint_names)
    return tuple(kept)


def _bead(depth):
    """A bead on a bowl: three slides, and a surface with a number."""
    b = jd.ModelBuilder()
    b.add_link("x", "world", jd.joints.Prismatic((1, 0, 0)))
    b.add_link("y", "x", jd.joints.Prismatic((0, 1, 0)))
    b.add_link("bead", "y", jd.joints.Prismatic((0, 0, 1)), jd.spatial.point_mass(0.7))
    return b.build(), (jc.OnSurface("bowl", "bead", Bowl(depth, jnp.zeros(3))),)


@pytest.mark.slow
@pytest.mark.wide
def test_rollout_in_a_number_of_a_surface_and_its_remedy():
    """A bead in the bowl `z = d (x^2 + y^2)`, in d and in the rates of the stabilisation; compiled once."""
    traces = []

    @jax.jit
    def end(depth, rate):
        traces.append(0)
        model, bowl = _bead(depth)
        q = jnp.stack([0.5, 0.2, depth * 0.29])
        v = jnp.stack([0.3, -0.4, depth * 0.28])
        motion = jc.ConstrainedMotion(bowl, jc.Baumgarte(rate))
        path = jd.simulate(System(model, (), motion), q, v + 0.01 * q, jnp.array([0.0, 0.3]), dt=0.05, max_steps=8)
        return path.q[-1] @ jnp.array([1.0, 2.0, -1.0])

    both = jax.jit(jax.value_and_grad(end, (0, 1)))
    at = (jnp.array(1.1), jnp.array(4.0))
    _, got = both(*at)
    for k, slope in enumerate(got):
        shifted = lambda s, k=k: both(*(x + s * (i == k) for i, x in enumerate(at)))[0]
        want = (shifted(1e-5) - shifted(-1e-5)) / 2e-5
        assert abs(want) > 1e-4
        assert_allclose(slope, want, rtol=1e-6)
    assert len(traces) == 1


@pytest.mark.slow
@pytest.mark.wide
def test_nearest_point_of_a_sphere():
    """From a rough point to the sphere, straight along the radius, with the derivative of that projection."""
    model, _ = _bead(0.0)

    @jax.jit
    def nearest(radius, q):
        sphere = jc.Distance("sphere", "world", "bead", radius)
        end = jc.assemble(model, sphere, q)
        return end.q, end.nearest

    rough, radius = jnp.array([0.9, -1.2, 2.5]), jnp.array(1.3)
    q, there = nearest(radius, rough)
    length = np.linalg.norm(rough)
    assert bool(there)
    assert_allclose(q, 1.3 * rough / length, atol=1e-9)
    by_radius, by_start = jax.jit(jax.jacfwd(lambda r, q: nearest(r, q)[0], (0, 1)))(radius, rough)
    assert_allclose(by_radius, rough / length, atol=1e-8)
    assert_allclose(by_start, 1.3 / length * (np.eye(3) - np.outer(rough, rough) / length**2), atol=1e-8)


@pytest.mark.slow
def test_nearest_point_of_a_paraboloid():
    """Neither straight nor circular: the normal of `z = d r^2` at the foot goes through the start."""
    rough = jnp.array([1.0, 0.5, 0.1])

    @jax.jit
    def nearest(depth):
        model, bowl = _bead(depth)
        end = jc.assemble(model, bowl, rough)
        return end.q, end.nearest

    q, there = nearest(jnp.array(1.1))
    assert bool(there)
    assert_allclose(q[2], 1.1 * (q[0] ** 2 + q[1] ** 2), atol=1e-12)
    assert_allclose(np.cross(rough - q, [-2.2 * q[0], -2.2 * q[1], 1.0]), 0, atol=1e-8)
    slope = jax.jit(jax.jacrev(lambda d: nearest(d)[0]))(jnp.array(1.1))
    want = (nearest(jnp.array(1.1 + 1e-4))[0] - nearest(jnp.array(1.1 - 1e-4))[0]) / 2e-4
    assert_allclose(slope, want, atol=1e-6)
