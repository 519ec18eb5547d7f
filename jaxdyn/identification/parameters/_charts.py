"""Unconstrained coordinates of parameters: log-Cholesky for bodies, softplus and logistic functions for bounds."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._types import Array, Float
from jaxdyn.identification.parameters._parameters import Parameters
from jaxdyn.identification.parameters._pseudo_inertia import inertia_entries, pseudo_inertia


def log_cholesky(ten: Float[Array | np.ndarray, " 10"]) -> Float[Array, " 10"]:
    """Log-Cholesky coordinates of a body: logarithms of the diagonal of U, then its entries above; `P = U U^T`."""
    flip = lambda m: m[::-1, ::-1]
    u = flip(jnp.linalg.cholesky(flip(pseudo_inertia(ten))))
    above = jnp.stack([u[0, 1], u[0, 2], u[1, 2], u[0, 3], u[1, 3], u[2, 3]])
    return jnp.concatenate([jnp.log(jnp.diagonal(u)), above])


def log_cholesky_factor(z: Float[Array | np.ndarray, " 10"]) -> Float[Array, "4 4"]:
    """The upper triangular U with `P = U U^T` from log-Cholesky coordinates."""
    d = jnp.exp(z[:4])
    o = jnp.zeros_like(d[0])
    rows = ((d[0], z[4], z[5], z[7]), (o, d[1], z[6], z[8]), (o, o, d[2], z[9]), (o, o, o, d[3]))
    return jnp.stack([jnp.stack(row) for row in rows])


def from_log_cholesky(z: Float[Array | np.ndarray, " 10"]) -> Float[Array, " 10"]:
    """Inertial parameters of a body from log-Cholesky coordinates (Rucker and Wensing 2022, in another order)."""
    u = log_cholesky_factor(z)
    p = u @ u.T
    return jnp.concatenate([p[3:, 3], p[:3, 3], jnp.stack(inertia_entries(p[:3, :3]))])


class _Sides(NamedTuple):
    """Masks of parameters by their bounds, and the bounds with zeros in place of infinite ones."""

    only_lower: np.ndarray
    only_upper: np.ndarray
    both: np.ndarray
    lower: Array
    upper: Array


class Chart(eqx.Module):
    """A map between parameters x and unconstrained coordinates z in which every x is feasible.

    Bodies have log-Cholesky coordinates. A parameter with two bounds is a logistic function of z, one with a single
    bound a softplus function, and all others are `centre + width z`.
    """

    centre: Float[Array, " n"]
    width: Float[Array, " n"]
    lower: tuple[float, ...] = eqx.field(static=True)
    upper: tuple[float, ...] = eqx.field(static=True)
    #: positions of the ten inertial parameters of each link
    inertial: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    def _sides(self, dtype) -> _Sides:
        low, high = np.array(self.lower), np.array(self.upper)
        has_low, has_high = np.isfinite(low), np.isfinite(high)
        finite = lambda x, known: jnp.asarray(np.where(known, x, 0.0), dtype)
        return _Sides(
            has_low & ~has_high, has_high & ~has_low, has_low & has_high, finite(low, has_low), finite(high, has_high)
        )

    def x(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        """Parameters in their units."""
        s = self._sides(z.dtype)
        soft = self.width * jax.nn.softplus(z)
        x = jnp.where(
            s.only_lower, s.lower + soft, jnp.where(s.only_upper, s.upper - soft, self.centre + self.width * z)
        )
        x = jnp.where(s.both, s.lower + (s.upper - s.lower) * jax.nn.sigmoid(z), x)
        for rows in self.inertial:
            x = x.at[np.array(rows)].set(from_log_cholesky(z[np.array(rows)]))
        return x

    def z(self, x: Float[Array, " n"]) -> Float[Array, " n"]:
        """Unconstrained coordinates of feasible parameters."""
        s = self._sides(x.dtype)
        one_sided = s.only_lower | s.only_upper
        gap = jnp.where(s.only_lower, x - s.lower, s.upper - x)
        y = jnp.where(one_sided, jnp.maximum(gap / self.width, 1e-12), 1.0)
        inverse_softplus = y + jnp.log(-jnp.expm1(-y))
        z = jnp.where(one_sided, inverse_softplus, (x - self.centre) / self.width)
        share = jnp.where(s.both, (x - s.lower) / jnp.where(s.both, s.upper - s.lower, 1.0), 0.5)
        share = jnp.clip(share, 1e-12, 1 - 1e-6)
        z = jnp.where(s.both, jnp.log(share) - jnp.log1p(-share), z)
        for rows in self.inertial:
            z = z.at[np.array(rows)].set(log_cholesky(x[np.array(rows)]))
        return z


def make_chart(parameters: Parameters, start: np.ndarray) -> Chart:
    """The chart centred at the parameters `start`, with widths of their magnitudes."""
    width = np.where(start != 0, np.maximum(np.abs(start), 1e-3 * parameters.scale), parameters.scale)
    inertial = tuple(tuple(int(k) for k in row) for row in parameters.inertial)
    dtype = parameters.read().dtype
    lower, upper = tuple(map(float, parameters.lower)), tuple(map(float, parameters.upper))
    return Chart(jnp.asarray(start, dtype), jnp.asarray(width, dtype), lower, upper, inertial)
