"""Least-squares problems over many samples, and their normal equations accumulated in chunks."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from jaxdyn._types import Array, Float, PyTree
from jaxdyn.identification.parameters import Parameters
from jaxdyn.identification.residuals._losses import AbstractLoss
from jaxdyn.simulation import System

#: one sample of what was measured, a pytree of arrays
Sample = PyTree
AnyArray = Array | np.ndarray


class NormalEquations(NamedTuple):
    """Sums over all samples, for each channel c: `H_c = sum w J^T J`, `g_c = sum w J^T r`, `s_c = sum w r^2`.

    They are evaluated at x. A residual that is linear in x is determined by them. `loss` is `sum 2 rho`, whose gradient
    is `2 g_c`; without a robust loss it is s_c.
    """

    x: AnyArray
    #: `(channels, n, n)`
    hessian: AnyArray
    #: `(channels, n)`
    gradient: AnyArray
    #: `(channels,)`
    square: AnyArray
    #: number of residuals of each channel, less the nuisance parameters
    count: AnyArray
    loss: AnyArray

    def at(self, x: AnyArray) -> "NormalEquations":
        """The sums at another x, for a residual that is linear in it."""
        d = x - self.x
        step = self.hessian @ d
        square = self.square + 2 * self.gradient @ d + step @ d
        return NormalEquations(x, self.hessian, self.gradient + step, square, self.count, square)

    def weighted(self, weights: AnyArray) -> tuple[Any, Any, Any]:
        """`(H, g, s)` summed over channels with the squares of `weights`, `(channels,)`; of NumPy if the sums are."""
        w = weights**2
        total = lambda a: (w @ a.reshape(a.shape[0], -1)).reshape(a.shape[1:])
        return total(self.hessian), total(self.gradient), total(self.square)

    def cost(self, weights: AnyArray) -> Any:
        """Half the weighted sum of squares, or the sum of the robust loss."""
        return weights**2 @ self.loss / 2


class LeastSquaresProblem(eqx.Module):
    """A residual `residual(system, sample)`, `(channels, k)`, over samples that are stacked in chunks."""

    parameters: Parameters
    #: measurements: a pytree of `(chunks, size, ...)`, in the memory of the host
    samples: Sample
    #: one for samples, zero for the padding of the last chunk
    present: Float[Array | np.ndarray, "chunks size"]
    residual: Callable[[System, Sample], Array] = eqx.field(static=True)
    channels: tuple[str, ...] = eqx.field(static=True)
    units: tuple[str, ...] = eqx.field(static=True)
    #: derivatives by forward mode, for residuals with more rows than parameters
    forward: bool = eqx.field(static=True, default=False)
    #: root mean squares of the measurements, `(channels,)`
    measured: Float[Array, " channels"] | None = None
    #: nuisance parameters of each sample and channel, eliminated from the residual, by which its count is reduced
    nuisance: int = eqx.field(static=True, default=0)

    def measured_rms(self) -> np.ndarray:
        """Root mean squares of the measurements, NaN where they are not known."""
        return np.full(len(self.channels), np.nan) if self.measured is None else np.asarray(self.measured)

    def chunk(self, k: int) -> "LeastSquaresProblem":
        """The same problem over one chunk."""
        return self.with_samples(*jax.tree.map(lambda x: x[k : k + 1], (self.samples, self.present)))

    def with_samples(self, samples: Sample, present: AnyArray) -> "LeastSquaresProblem":
        """The same problem over other samples in chunks."""
        return eqx.tree_at(lambda p: (p.samples, p.present), self, (samples, present))

    def draw_chunks(self, chunks: int) -> "LeastSquaresProblem":
        """The same problem over at most this number of chunks of samples, drawn at random from all samples."""
        if self.present.shape[0] <= chunks:
            return self
        size = self.present.shape[1]
        real = np.flatnonzero(self.present)
        rows = np.sort(np.random.default_rng(0).choice(real, chunks * size, replace=False))
        take = lambda x: x.reshape(-1, *x.shape[2:])[rows].reshape(chunks, size, *x.shape[2:])
        return self.with_samples(*jax.tree.map(take, (self.samples, self.present)))

    def normal_equations(
        self, x: Float[Array, " n"], weights: Array | None = None, loss: AbstractLoss | None = None
    ) -> NormalEquations:
        """The normal equations at x; a robust loss takes residuals times `weights`, `(channels,)`."""
        n, c = x.shape[0], len(self.channels)
        linearise = self._linearisation(x)

        def sample_terms(sample, present):
            # the padding of a chunk repeats a sample, so that it is as finite as the others
            r, j = linearise(sample)
            w, rho = _robust_terms(loss, weights, r)
            return r, j, w * present, rho * present

        def add_chunk(sums, block):
            r, j, w, rho = jax.vmap(sample_terms)(*block)
            jw = j * w[..., None]
            h = jnp.einsum("scki,sckj->cij", jw, j)
            g = jnp.einsum("scki,sck->ci", jw, r)
            s = jnp.einsum("sck,sck,sck->c", w, r, r)
            count = jnp.broadcast_to(jnp.sum(block[1]) * (r.shape[2] - self.nuisance), (c,))
            return jax.tree.map(jnp.add, sums, (h, g, s, count, jnp.sum(rho, axis=(0, 2)))), None

        zero = (jnp.zeros((c, n, n), x.dtype), jnp.zeros((c, n), x.dtype), *(jnp.zeros(c, x.dtype),) * 3)
        sums, _ = jax.lax.scan(add_chunk, zero, (self.samples, self.present))
        return NormalEquations(x, *sums)

    def value_and_gradient(
        self, x: Float[Array, " n"], weights: Array, loss: AbstractLoss | None = None
    ) -> tuple[Array, Array]:
        """Half the weighted sum of squares (or the sum of the loss) and its gradient, by one reverse-mode pass."""
        leaves, combine = self.parameters.leaves_at(x)

        def cost(leaves, block):
            samples, present = block
            r = jax.vmap(lambda sample: self.residual(combine(leaves), sample))(samples)
            rho = jax.vmap(lambda row: _robust_terms(loss, weights, row)[1])(r)
            return jnp.einsum("c,sck,s->", weights**2, rho, present) / 2

        def add_chunk(sums, block):
            return jax.tree.map(jnp.add, sums, jax.value_and_grad(cost)(leaves, block)), None

        zero = (jnp.zeros((), x.dtype), jax.tree.map(jnp.zeros_like, leaves))
        (value, gradient), _ = jax.lax.scan(add_chunk, zero, (self.samples, self.present))
        return value, jax.vjp(lambda x: self.parameters.leaves_at(x)[0], x)[1](gradient)[0]

    def column_squares(
        self,
        point: Callable[[Array], Array],
        z: Float[Array, " n"],
        weights: Array,
        loss: AbstractLoss | None = None,
    ) -> Array:
        """`sum w (dr/dz_i)^2` for each coordinate of `x = point(z)`: the diagonal of the Gauss-Newton matrix alone."""

        def rows(z, sample):
            leaves, combine = self.parameters.leaves_at(point(z))
            return self.residual(combine(leaves), sample)

        def weigh(r, present):
            return weights[:, None] ** 2 * _robust_terms(loss, weights, r)[0] * present

        def reverse(sample, present):
            r, pull = jax.vjp(lambda z: rows(z, sample), z)
            j = jax.vmap(lambda e: pull(e)[0])(jnp.eye(r.size, dtype=r.dtype).reshape(r.size, *r.shape))
            return weigh(r, present).reshape(-1) @ j**2

        def forward(block):
            def column(i):
                direction = (jnp.arange(z.shape[0]) == i).astype(z.dtype)
                r, d = jax.vmap(lambda sample: jax.jvp(lambda z: rows(z, sample), (z,), (direction,)))(block[0])
                return jnp.sum(jax.vmap(weigh)(r, block[1]) * d**2)

            return jax.lax.map(column, jnp.arange(z.shape[0]))

        def add_chunk(total, block):
            return total + (forward(block) if self.forward else jnp.sum(jax.vmap(reverse)(*block), axis=0)), None

        return jax.lax.scan(add_chunk, jnp.zeros_like(z), (self.samples, self.present))[0]

    def _linearisation(self, x: Float[Array, " n"]) -> Callable[[Sample], tuple[Array, Array]]:
        """`sample -> (r, dr/dx)` through the leaves y that depend on x: `dr/dx = dr/dy dy/dx`, with one `dy/dx`."""
        leaves, combine = self.parameters.leaves_at(x)
        y, unravel = ravel_pytree(leaves)
        dy_dx = jax.jacfwd(lambda x: ravel_pytree(self.parameters.leaves_at(x)[0])[0])(x)

        def linearise(sample):
            rows = lambda y: self.residual(combine(unravel(y)), sample)
            if self.forward:
                r, j = jax.vmap(lambda d: jax.jvp(rows, (y,), (d,)))(dy_dx.T)
                return r[0], jnp.moveaxis(j, 0, -1)  # the primal output is the same for every tangent
            r, pull = jax.vjp(rows, y)
            j = jax.vmap(lambda e: pull(e)[0])(jnp.eye(r.size, dtype=r.dtype).reshape(r.size, *r.shape))
            return r, (j @ dy_dx).reshape(*r.shape, -1)

        return linearise


def _robust_terms(loss: AbstractLoss | None, weights: Array | None, r: Array) -> tuple[Array, Array]:
    """The weight of each residual, and its contribution `2 rho(w r) / w^2` in place of its square."""
    if loss is None or weights is None:
        return jnp.ones_like(r), r**2
    has_weight = (weights > 0)[:, None]
    w = jnp.where(has_weight, weights[:, None], 1.0)
    return loss.weight(r * weights[:, None]), jnp.where(has_weight, 2 * loss.value(r * w) / w**2, r**2)


def sum_normal_equations(
    problem: LeastSquaresProblem, x: Array, weights: Array | None = None, loss: AbstractLoss | None = None
) -> NormalEquations:
    """`problem.normal_equations`, compiled for one chunk: one program serves logs of any length."""
    total = _chunk_normal_equations(problem.chunk(0), x, weights, loss)
    for k in range(1, problem.present.shape[0]):
        more = _chunk_normal_equations(problem.chunk(k), x, weights, loss)
        # one chunk is in memory at a time
        total = jax.block_until_ready(NormalEquations(x, *jax.tree.map(jnp.add, total[1:], more[1:])))
    return total


@eqx.filter_jit
def _chunk_normal_equations(problem: LeastSquaresProblem, x, weights, loss) -> NormalEquations:
    return problem.normal_equations(x, weights, loss)


def stack_chunks(samples: Sample, size: int) -> tuple[Sample, np.ndarray]:
    """Samples in chunks of at most `size`, the last one padded with copies, and a mask `(chunks, size)` of samples."""
    count = jax.tree.leaves(samples)[0].shape[0]
    size = max(1, min(size, count))
    chunks = -(-count // size)
    padding = chunks * size - count
    dtype = np.result_type(*[np.asarray(x).dtype for x in jax.tree.leaves(samples)])
    present = (np.arange(chunks * size) < count).astype(dtype).reshape(chunks, size)

    def fold(x):
        x = np.asarray(x)  # one column at a time is copied, none where the chunks are full
        x = np.concatenate([x, np.repeat(x[-1:], padding, axis=0)]) if padding else x
        return x.reshape(chunks, size, *x.shape[1:])

    return jax.tree.map(fold, samples), present


def sum_away_from(problem: LeastSquaresProblem, x: AnyArray) -> NormalEquations:
    """The normal equations at a generic point whose distance from x is of the size of the parameters."""
    parameters = problem.parameters
    dtype, x = x.dtype, np.asarray(x)
    step = 0.3 * np.where(x != 0, np.abs(x), parameters.scale) * np.cos(1.0 + 2.3 * np.arange(x.size))
    point = x + step
    for rows in parameters.inertial:
        point[rows] = 1.4 * x[rows]
    return sum_normal_equations(problem, jnp.asarray(point, dtype))


def is_linear(first: NormalEquations, second: NormalEquations) -> bool:
    """Whether the residual is linear in the parameters, by its normal equations at two points."""
    expected = first.at(second.x)
    tolerance = 200 * np.sqrt(float(np.finfo(first.x.dtype).eps))
    scale = np.sqrt(np.maximum(np.einsum("cii->i", np.asarray(first.hessian)), 0))
    scale = np.maximum(scale, 1e-5 * scale.max(initial=1e-300))
    change = np.abs(np.asarray(second.hessian - first.hessian)) / (scale[:, None] * scale)
    square = np.abs(np.asarray(second.square - expected.square))
    limit = tolerance * np.max(np.asarray(second.square), initial=1e-300)
    return bool(change.max(initial=0) < tolerance and square.max(initial=0) <= limit)
