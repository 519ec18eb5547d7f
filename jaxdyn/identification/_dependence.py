"""How far the residuals of a log depend on their neighbours."""

import equinox as eqx
import jax
import numpy as np

from jaxdyn.identification._fit_problem import Problem


@eqx.filter_jit
def _residuals(problem: Problem, x):
    system = problem.parameters.insert(x)
    return jax.lax.map(jax.vmap(lambda sample: problem.residual(system, sample)), problem.samples)[0]


def residuals(problem: Problem, x) -> np.ndarray:
    """All residuals in the order of the samples, `(channels, samples)`."""
    # a program for one chunk, which logs of any length share
    found = np.stack([_residuals(problem.chunk(k), x) for k in range(problem.present.shape[0])])
    rows = found.reshape(-1, *found.shape[2:])[np.asarray(problem.present).reshape(-1) > 0]
    return rows.transpose(1, 0, 2).reshape(found.shape[2], -1)


def dependence(r: np.ndarray) -> np.ndarray:
    """Samples for each independent one, `tau = 1 + 2 sum_k rho(k)`, of each row of r.

    The autocorrelation rho is summed from lag one to where it first falls below twice the deviation that it has of
    white noise, `1 / sqrt(n)`. A mean over n samples deviates as one over `n / tau` independent ones (Bartlett 1946).
    A filter that was run over a log makes tau about half the ratio of the rate to the cut-off.
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
    counted = (np.arange(n) >= 1) & (np.arange(n) < last[:, None])
    return 1 + 2 * np.sum(np.where(counted, rho, 0), axis=1)
