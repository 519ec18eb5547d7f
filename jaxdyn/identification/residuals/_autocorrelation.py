"""Residuals of all samples, and their autocorrelation time."""

import equinox as eqx
import jax
import numpy as np

from jaxdyn._types import Array, Float
from jaxdyn.identification.residuals._least_squares import LeastSquaresProblem


@eqx.filter_jit
def _chunk_residuals(problem: LeastSquaresProblem, x: Float[Array, " n"]) -> Float[Array, "size channels k"]:
    system = problem.parameters.insert(x)
    return jax.lax.map(jax.vmap(lambda sample: problem.residual(system, sample)), problem.samples)[0]


def residuals(problem: LeastSquaresProblem, x: Float[Array, " n"]) -> np.ndarray:
    """All residuals in the order of the samples, `(channels, samples)`."""
    # one program for one chunk serves logs of any length
    found = np.stack([_chunk_residuals(problem.chunk(k), x) for k in range(problem.present.shape[0])])
    rows = found.reshape(-1, *found.shape[2:])[np.asarray(problem.present).reshape(-1) > 0]
    return rows.transpose(1, 0, 2).reshape(found.shape[2], -1)


def autocorrelation_time(r: np.ndarray) -> np.ndarray:
    """Integrated autocorrelation time `tau = 1 + 2 sum_k rho(k)` of each row of r, in samples.

    The autocorrelation rho is summed from lag one to where it first falls below `2 / sqrt(n)`, twice its standard
    deviation for white noise. The variance of a mean over n samples is that over `n / tau` independent ones (Bartlett
    1946). A low-pass filter makes tau about half the ratio of the sampling rate to the cut-off frequency.
    """
    n = r.shape[1]
    if not np.isfinite(r).all():
        return np.ones(len(r))
    size = 1 << (2 * n).bit_length()
    power = np.abs(np.fft.rfft(r, size, axis=1)) ** 2
    covariance = np.fft.irfft(power, size, axis=1)[:, :n]
    rho = covariance / np.where(covariance[:, :1] > 0, covariance[:, :1], 1.0)
    below = rho < 2 / np.sqrt(n)
    last = np.where(below.any(axis=1), below.argmax(axis=1), n)
    included = (np.arange(n) >= 1) & (np.arange(n) < last[:, None])
    return 1 + 2 * np.sum(np.where(included, rho, 0), axis=1)
