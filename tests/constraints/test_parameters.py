"""Derivatives with respect to constraint parameters, for all types and for the nearest configuration."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn.constraints import evaluation as ev
from jaxdyn.spatial import Pose
from tests.constraints._cases import every_type
from tests.oracles import random_model, random_state


class Bowl(eqx.Module):
    """A surface with parameters."""

    depth: jax.Array
    waves: jax.Array

    def __call__(self, p):
        return p[2] - self.depth * (p[0] ** 2 + p[1] ** 2) - jnp.sin(self.waves @ p)


class Screw(eqx.Module):
    """A motion with a parameter."""

    rate: jax.Array

    def __call__(self, t):
        turn = jnp.stack([jnp.cos(self.rate * t), 0 * t, 0 * t, jnp.sin(self.rate * t)])
        return Pose.from_quaternion(turn, jnp.stack([t, self.rate * t**2, 1 + t]))


class Wave(eqx.Module):
    """A function of time, or the matrix of a Pfaffian constraint, with a parameter."""

    size: jax.Array

    def __call__(self, *x):
        return self.size * jnp.sin(x[-1]) * (1 if len(x) == 1 else jnp.cos(x[0])[None])


def _parametrised_constraints():
    """`every_type` with parametrised functions, and the constraints on coordinates."""
    base = ("l1", (0.1, 0.2, 0.0), (0.8, 0.1, 0.2, -0.1))
    kinds = {c.name: dataclasses.replace(c, base=jc.End(*base)) if hasattr(c, "base") else c for c in every_type()}
    bowl = Bowl(jnp.array(0.3), jnp.array([0.2, 0.5, 0.1]))
    kinds["bowl"] = jc.OnSurface("bowl", kinds["bowl"].frame, bowl, kinds["bowl"].base)
    kinds["carried"] = jc.PrescribedFrame("carried", kinds["carried"].frame, Screw(jnp.array(0.8)), base)
    kinds["given"] = jc.Pfaffian("given", Wave(jnp.array(0.6)))
    kinds["chain"] = jc.LinearCoupling("chain", "l2_joint", ("l0_joint", "l1_joint"), (0.5, -0.3), 0.1)
    kinds["gear"] = jc.JointCoupling("gear", "l1_joint", "l0_joint", (0.1, 0.5, -0.2))
    kinds["driven"] = jc.PrescribedCoordinate("driven", "l2_joint", Wave(jnp.array(0.7)))
    return tuple(kinds.values())


@pytest.mark.exhaustive
def test_derivatives_with_respect_to_every_constraint_parameter():
    """Residuals and rates of every type of constraint, one leaf at a time, so that no leaf masks another.

    Each leaf is perturbed along a random direction; all differences are computed in one call.
    """
    model = random_model(5, 8, kinds=("revolute", "prismatic"), branching=0.6)
    q, v, _, _ = random_state(model, 6)
    x = jax.jit(ev.constraint_kinematics)(model, jnp.asarray(0.3), q, v)
    leaves, rest = eqx.partition(_parametrised_constraints(), eqx.is_inexact_array)

    def score(leaves):
        constraints = eqx.combine(leaves, rest)
        parts = (f(model, constraints, x) for f in (ev.constraint_residuals, ev.constraint_rates))
        return sum(rows @ jnp.sin(1.0 + k + jnp.arange(rows.shape[0])) for k, rows in enumerate(parts))

    rng = np.random.default_rng(0)
    way = jax.tree.map(lambda x: rng.normal(size=x.shape), leaves)
    count, h = len(jax.tree.leaves(leaves)), 1e-4
    pick = jax.tree.unflatten(jax.tree.structure(leaves), list(np.eye(count)))
    shift = lambda x, d, own: np.asarray(x) + np.multiply.outer(np.kron([0, h, -h, 2 * h, -2 * h], own), d)
    values, slopes = jax.jit(jax.vmap(jax.value_and_grad(score)))(jax.tree.map(shift, leaves, way, pick))
    value = values.reshape(5, count)
    want = (8 * (value[1] - value[2]) - value[3] + value[4]) / (12 * h)
    got = np.array([np.vdot(g[0], d) for g, d in zip(*map(jax.tree.leaves, (slopes, way)), strict=True)])
    assert_allclose(got, want, rtol=1e-7, atol=1e-8)
    # some leaves have no effect, such as the rotation of a frame of which only the origin matters
    assert np.sum(np.abs(want) > 1e-6) > 0.7 * count > 45


def _bead(depth):
    """A bead on a bowl: three prismatic joints, and a surface with a parameter."""
    b = jd.ModelBuilder()
    b.add_link("x", "world", jd.joints.Prismatic((1, 0, 0)))
    b.add_link("y", "x", jd.joints.Prismatic((0, 1, 0)))
    b.add_link("bead", "y", jd.joints.Prismatic((0, 0, 1)), jd.spatial.point_mass(0.7))
    return b.build(), (jc.OnSurface("bowl", "bead", Bowl(depth, jnp.zeros(3))),)


@pytest.mark.exhaustive
def test_nearest_point_of_a_sphere():
    """From a guess to the sphere along the radius, with the derivative of this projection."""
    model, _ = _bead(0.0)

    @jax.jit
    def nearest(radius, q):
        sphere = jc.Distance("sphere", "world", "bead", radius)
        end = jc.assemble(model, sphere, q)
        return end.q, end.nearest

    guess, radius = jnp.array([0.9, -1.2, 2.5]), jnp.array(1.3)
    q, there = nearest(radius, guess)
    length = np.linalg.norm(guess)
    assert bool(there)
    assert_allclose(q, 1.3 * guess / length, atol=1e-9)
    by_radius, by_start = jax.jit(jax.jacfwd(lambda r, q: nearest(r, q)[0], (0, 1)))(radius, guess)
    assert_allclose(by_radius, guess / length, atol=1e-8)
    assert_allclose(by_start, 1.3 / length * (np.eye(3) - np.outer(guess, guess) / length**2), atol=1e-8)


@pytest.mark.slow
def test_nearest_point_of_a_paraboloid():
    """The normal of `z = d r^2` at the nearest point goes thguess the guess."""
    guess = jnp.array([1.0, 0.5, 0.1])

    @jax.jit
    def nearest(depth):
        model, bowl = _bead(depth)
        end = jc.assemble(model, bowl, guess)
        return end.q, end.nearest

    q, there = nearest(jnp.array(1.1))
    assert bool(there)
    assert_allclose(q[2], 1.1 * (q[0] ** 2 + q[1] ** 2), atol=1e-12)
    assert_allclose(np.cross(guess - q, [-2.2 * q[0], -2.2 * q[1], 1.0]), 0, atol=1e-8)
    slope = jax.jit(jax.jacrev(lambda d: nearest(d)[0]))(jnp.array(1.1))
    want = (nearest(jnp.array(1.1 + 1e-4))[0] - nearest(jnp.array(1.1 - 1e-4))[0]) / 2e-4
    assert_allclose(slope, want, atol=1e-6)
