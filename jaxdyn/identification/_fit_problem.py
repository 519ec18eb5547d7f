"""Residuals over many samples, and their normal equations accumulated in chunks."""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from jaxdyn._types import Array, Float
from jaxdyn.identification._parameters import Parameters


class AbstractLoss(eqx.Module):
    """A robust loss rho of a residual in units of its deviation; `r^2 / 2` where r is small."""

    @abc.abstractmethod
    def value(self, r: Any) -> Any:
        """`rho(r)`."""

    @abc.abstractmethod
    def weight(self, r: Any) -> Any:
        """`rho'(r) / r`, at most one."""


class Huber(AbstractLoss):
    """Quadratic up to `limit` deviations and linear beyond: weight `min(1, limit / |r|)` (Huber 1964)."""

    limit: float = 1.345

    def value(self, r):
        least = jnp.minimum(jnp.abs(r), self.limit)
        return least * (jnp.abs(r) - least / 2)

    def weight(self, r):
        return self.limit / jnp.maximum(jnp.abs(r), self.limit)


class Cauchy(AbstractLoss):
    """Grows as a logarithm: weight `1 / (1 + (r / limit)^2)`; ignores gross errors."""

    limit: float = 2.385

    def value(self, r):
        return self.limit**2 / 2 * jnp.log1p((r / self.limit) ** 2)

    def weight(self, r):
        return 1 / (1 + (r / self.limit) ** 2)


class Normal(NamedTuple):
    """Sums over all samples, for each channel c: `H_c = sum w J^T J`, `g_c = sum w J^T r`, `s_c = sum w r^2`.

    `loss` is `sum 2 rho`, of which g_c is half the slope; without a robust loss it is s_c. x is where they were
    computed. Of a residual that is linear in x they are all there is to know.
    """

    x: Any
    hessian: Any
    gradient: Any
    square: Any
    count: Any
    loss: Any

    def at(self, x) -> "Normal":
        """The sums at another x, for a residual that is linear in it."""
        d = x - self.x
        step = self.hessian @ d
        square = self.square + 2 * self.gradient @ d + step @ d
        return Normal(x, self.hessian, self.gradient + step, square, self.count, square)

    def weighted(self, weights) -> tuple[Any, Any, Any]:
        """`(H, g, s)` over all channels with the squares of `weights`, one a channel."""
        w = weights**2
        total = lambda a: (w @ a.reshape(a.shape[0], -1)).reshape(a.shape[1:])
        return total(self.hessian), total(self.gradient), total(self.square)

    def cost(self, weights) -> Any:
        """Half the weighted sum of squares, or the sum of the loss."""
        return weights**2 @ self.loss / 2


class Problem(eqx.Module):
    """A residual `residual(system, sample)`, `(channels, k)`, over samples that are stacked in chunks."""

    parameters: Parameters
    #: what was measured: a pytree of `(chunks, size, ...)`, in the memory of the host
    samples: Any
    #: one for samples, zero for what fills the last chunk
    present: Float[Array | np.ndarray, "chunks size"]
    residual: Callable[..., Any] = eqx.field(static=True)
    channels: tuple[str, ...] = eqx.field(static=True)
    units: tuple[str, ...] = eqx.field(static=True)
    #: derivatives by forward mode, for residuals with more rows than parameters
    forward: bool = eqx.field(static=True, default=False)
    #: root mean squares of what was measured, `(channels,)`
    measured: Float[Array, " channels"] | None = None
    #: numbers of each sample and channel that went into unknowns of the sample's own, and are no evidence
    spent: int = eqx.field(static=True, default=0)

    def measured_rms(self) -> np.ndarray:
        """Root mean squares of what was measured, NaN where the problem does not say."""
        return np.full(len(self.channels), np.nan) if self.measured is None else np.asarray(self.measured)

    def chunk(self, k: int) -> "Problem":
        """The same problem over one chunk."""
        return self.over(*jax.tree.map(lambda x: x[k : k + 1], (self.samples, self.present)))

    def over(self, samples: Any, present: Any) -> "Problem":
        """The same problem over other samples in chunks."""
        return eqx.tree_at(lambda p: (p.samples, p.present), self, (samples, present))

    def some(self, chunks: int) -> "Problem":
        """The same problem over so many chunks of its samples, which are drawn at random from all."""
        if self.present.shape[0] <= chunks:
            return self
        size = self.present.shape[1]
        real = np.flatnonzero(self.present)
        drawn = np.sort(np.random.default_rng(0).choice(real, chunks * size, replace=False))
        take = lambda x: x.reshape(-1, *x.shape[2:])[drawn].reshape(chunks, size, *x.shape[2:])
        return self.over(*jax.tree.map(take, (self.samples, self.present)))

    def normal(self, x: Float[Array, " n"], weights=None, loss: AbstractLoss | None = None) -> Normal:
        """The normal equations at x; a loss sees residuals times `weights`, `(channels,)`."""
        n, c = x.shape[0], len(self.channels)
        derivatives = self._derivatives(x)

        def one(sample, present):
            # what fills a chunk is a copy of a sample, so that it is as finite as the others
            r, j = derivatives(sample)
            w, rho = _robust(loss, weights, r)
            return r, j, w * present, rho * present

        def chunk(sums, block):
            r, j, w, rho = jax.vmap(one)(*block)
            jw = j * w[..., None]
            h = jnp.einsum("scki,sckj->cij", jw, j)
            g = jnp.einsum("scki,sck->ci", jw, r)
            s = jnp.einsum("sck,sck,sck->c", w, r, r)
            many = jnp.broadcast_to(jnp.sum(block[1]) * (r.shape[2] - self.spent), (c,))
            return jax.tree.map(jnp.add, sums, (h, g, s, many, jnp.sum(rho, axis=(0, 2)))), None

        zero = (jnp.zeros((c, n, n), x.dtype), jnp.zeros((c, n), x.dtype), *(jnp.zeros(c, x.dtype),) * 3)
        sums, _ = jax.lax.scan(chunk, zero, (self.samples, self.present))
        return Normal(x, *sums)

    def slope(self, x: Float[Array, " n"], weights, loss: AbstractLoss | None = None) -> tuple[Any, Any]:
        """Half the weighted sum of squares, or the sum of the loss, and its gradient, at the cost of one pull-back."""
        leaves, place = self.parameters.moved(x)

        def cost(leaves, block):
            samples, present = block
            r = jax.vmap(lambda sample: self.residual(place(leaves), sample))(samples)
            rho = jax.vmap(lambda one: _robust(loss, weights, one)[1])(r)
            return jnp.einsum("c,sck,s->", weights**2, rho, present) / 2

        def chunk(sums, block):
            return jax.tree.map(jnp.add, sums, jax.value_and_grad(cost)(leaves, block)), None

        zero = (jnp.zeros((), x.dtype), jax.tree.map(jnp.zeros_like, leaves))
        (value, slopes), _ = jax.lax.scan(chunk, zero, (self.samples, self.present))
        return value, jax.vjp(lambda x: self.parameters.moved(x)[0], x)[1](slopes)[0]

    def _derivatives(self, x) -> Callable[[Any], tuple[Any, Any]]:
        """`sample -> (r, dr/dx)`, by the leaves y that x goes into: `dr/dx = dr/dy dy/dx`, the latter computed once."""
        leaves, place = self.parameters.moved(x)
        y, unravel = ravel_pytree(leaves)
        slope = jax.jacfwd(lambda x: ravel_pytree(self.parameters.moved(x)[0])[0])(x)

        def derivatives(sample):
            rows = lambda y: self.residual(place(unravel(y)), sample)
            if self.forward:
                r, j = jax.vmap(lambda d: jax.jvp(rows, (y,), (d,)))(slope.T)
                return r[0], jnp.moveaxis(j, 0, -1)  # all r are one: a single motion beside its derivatives
            r, pull = jax.vjp(rows, y)
            j = jax.vmap(lambda e: pull(e)[0])(jnp.eye(r.size, dtype=r.dtype).reshape(r.size, *r.shape))
            return r, (j @ slope).reshape(*r.shape, -1)

        return derivatives


def _robust(loss: AbstractLoss | None, weights, r) -> tuple[Any, Any]:
    """The weight of each residual, and what it adds to the sum of squares: `2 rho(w r) / w^2`."""
    if loss is None or weights is None:
        return jnp.ones_like(r), r**2
    counted = (weights > 0)[:, None]
    w = jnp.where(counted, weights[:, None], 1.0)
    return loss.weight(r * weights[:, None]), jnp.where(counted, 2 * loss.value(r * w) / w**2, r**2)


def normal(problem: Problem, x, weights=None, loss=None) -> Normal:
    """`problem.normal` by a program for one chunk, which logs of any length share."""
    total = _normal(problem.chunk(0), x, weights, loss)
    for k in range(1, problem.present.shape[0]):
        more = _normal(problem.chunk(k), x, weights, loss)
        # one chunk is in memory at a time
        total = jax.block_until_ready(Normal(x, *jax.tree.map(jnp.add, total[1:], more[1:])))
    return total


@eqx.filter_jit
def _normal(problem: Problem, x, weights, loss) -> Normal:
    return problem.normal(x, weights, loss)


def stacked(samples: Any, size: int) -> tuple[Any, Any]:
    """Samples in chunks of at most `size`, the last one filled with copies, and which of them are real."""
    many = jax.tree.leaves(samples)[0].shape[0]
    size = max(1, min(size, many))
    chunks = -(-many // size)
    filling = chunks * size - many
    dtype = np.result_type(*[np.asarray(x).dtype for x in jax.tree.leaves(samples)])
    present = (np.arange(chunks * size) < many).astype(dtype).reshape(chunks, size)

    def fold(x):
        x = np.asarray(x)  # one column at a time is copied, none where the chunks are full
        x = np.concatenate([x, np.repeat(x[-1:], filling, axis=0)]) if filling else x
        return x.reshape(chunks, size, *x.shape[1:])

    return jax.tree.map(fold, samples), present


def generic(problem: Problem, x) -> Normal:
    """The sums at a distance of the size of the parameters."""
    parameters = problem.parameters
    dtype, x = x.dtype, np.asarray(x)
    step = 0.3 * np.where(x != 0, np.abs(x), parameters.scale) * np.cos(1.0 + 2.3 * np.arange(x.size))
    there = x + step
    for rows in parameters.inertial:
        there[rows] = 1.4 * x[rows]
    return normal(problem, jnp.asarray(there, dtype))


def is_linear(at: Normal, found: Normal) -> bool:
    """Whether the residual is linear in the parameters, by the sums at two places."""
    expected = at.at(found.x)
    tolerance = 200 * np.sqrt(float(np.finfo(at.x.dtype).eps))
    scale = np.sqrt(np.maximum(np.einsum("cii->i", np.asarray(at.hessian)), 0))
    scale = np.maximum(scale, 1e-5 * scale.max(initial=1e-300))
    change = np.abs(np.asarray(found.hessian - at.hessian)) / (scale[:, None] * scale)
    square = np.abs(np.asarray(found.square - expected.square))
    limit = tolerance * np.max(np.asarray(found.square), initial=1e-300)
    return bool(change.max(initial=0) < tolerance and square.max(initial=0) <= limit)
