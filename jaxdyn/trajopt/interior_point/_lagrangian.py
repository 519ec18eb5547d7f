"""Values and first derivatives of a block-structured program, and the gradient of its Lagrangian."""

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Bounded(NamedTuple):
    """Quantities with lower and upper bounds: states, interval variables, rows of the intervals, rows of the end."""

    s: jax.Array
    m: jax.Array
    rows: jax.Array
    end: jax.Array


class Values(NamedTuple):
    """Cost, equality constraints (zero at a solution) and bounded quantities."""

    cost: jax.Array
    #: (N, c)
    c: jax.Array
    b0: jax.Array
    bN: jax.Array
    bounded: Bounded


class FirstDerivatives(NamedTuple):
    """Gradient of the cost and Jacobians of the constraints."""

    #: gradient with respect to z of each interval, and to the last state
    cost: jax.Array
    cost_end: jax.Array
    #: Jacobians of equations and rows of the intervals, (N, c, z) and (N, r, z)
    c: jax.Array
    rows: jax.Array
    b0: jax.Array
    bN: jax.Array
    end: jax.Array


class Multipliers(NamedTuple):
    """Lagrange multipliers of the equations and of the bounded quantities (upper less lower bound)."""

    c: jax.Array
    b0: jax.Array
    bN: jax.Array
    bounded: Bounded


def interval_variables(s, m):
    """`z = (s, m, s')` of all intervals."""
    return jnp.concatenate([s[:-1], m, s[1:]], axis=1)


def lagrangian_gradients(d: FirstDerivatives, w: Multipliers):
    """Gradients of the Lagrangian with respect to z of each interval, the first state and the last state."""
    ns = d.bN.shape[1]
    g = d.cost + jnp.einsum("kij,ki->kj", d.c, w.c) + jnp.einsum("kij,ki->kj", d.rows, w.bounded.rows)
    g = g.at[:, :-ns].add(jnp.concatenate([w.bounded.s[:-1], w.bounded.m], axis=1))
    gN = d.cost_end + d.bN.T @ w.bN + d.end.T @ w.bounded.end + w.bounded.s[-1]
    return g, d.b0.T @ w.b0, gN


def stationarity(d: FirstDerivatives, w: Multipliers):
    """Gradient of the Lagrangian with respect to the variables s and m, `(N + 1, s)` and `(N, m)`."""
    ns = d.bN.shape[1]
    g, g0, gN = lagrangian_gradients(d, w)
    s = jnp.concatenate([g[:, :ns], gN[None]]).at[1:].add(g[:, -ns:])
    return s.at[0].add(g0), g[:, ns:-ns]
