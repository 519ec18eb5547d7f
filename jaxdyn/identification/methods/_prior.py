"""The prior of a fit: regularisation of the estimate towards the initial model."""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._numerics import is_concrete
from jaxdyn._types import Array, Float
from jaxdyn.identification.parameters import Parameters, pseudo_inertia_basis


class GeometricPrior(eqx.Module):
    """Regularises the estimate towards the initial model, with a distance of bodies that depends on no units or axes.

    With the pseudo-inertias P of links and `P_0` before the fit, the prior adds to half the weighted sum of squares

        strength sum_links (tr(P_0^-1 P) - log det(P_0^-1 P) - 4) + spread/2 sum ((x - x_0) / scale)^2

    The first term is the log-det divergence of Lee, Wensing and Park (2020, IEEE T-RO 36(1), equation 21), near `P_0`
    half the square of relative changes. The second one is for all other parameters x.

    Arguments:

    * `strength`: weight of the links. To trust the initial links to a relative deviation s, give `1 / s^2`, times the
      number of samples for each independent one (`FitResult.dependence`).
    * `spread`: weight of all other parameters, relative to their initial magnitudes.

    Raises `ModelError` for weights that are negative or not finite.

    ```python
    from jaxdyn.identification import GeometricPrior

    prior = GeometricPrior(strength=100.0)  # the initial links are trusted to a tenth: fit(..., prior=prior)
    assert prior.spread == 1e-9
    ```
    """

    strength: float = 1e-6
    spread: float = 1e-9

    def __check_init__(self):
        for name in ("strength", "spread"):
            value = getattr(self, name)
            if is_concrete(value) and not 0 <= value < math.inf:
                raise ModelError(f"{name} of the prior is {value}, expected zero or more")

    def cost(
        self, parameters: Parameters, x0: Float[Array | np.ndarray, " n"], x: Float[Array | np.ndarray, " n"]
    ) -> Array:
        """The contribution of the prior to the cost, differentiable with respect to x."""
        ten = parameters.inertial
        total = jnp.zeros((), x.dtype)
        if len(ten):
            total = self.strength * jnp.sum(log_det_divergence(x[ten], x0[ten]))
        scaled = (x - x0) / prior_scale(parameters, x0)
        return total + self.spread / 2 * jnp.sum(jnp.where(is_not_inertial(parameters), scaled, 0) ** 2)


def log_det_divergence(
    ten: Float[Array | np.ndarray, "links 10"], prior: Float[Array | np.ndarray, "links 10"]
) -> Float[Array, " links"]:
    """`tr(P_0^-1 P) - log det(P_0^-1 P) - 4` for rows of inertial parameters."""
    basis = jnp.asarray(pseudo_inertia_basis(), ten.dtype)
    p, p0 = (jnp.einsum("lk,kab->lab", x, basis) for x in (ten, prior))
    ratio = jnp.linalg.solve(p0, p)
    return jnp.trace(ratio, axis1=1, axis2=2) - jnp.linalg.slogdet(ratio)[1] - 4


def is_not_inertial(parameters: Parameters) -> np.ndarray:
    """A mask of the parameters that are not among the ten of a link."""
    mask = np.ones(len(parameters.names), bool)
    mask[parameters.inertial.reshape(-1)] = False
    return mask


def prior_scale(parameters: Parameters, x0: Float[Array | np.ndarray, " n"]) -> Float[Array, " n"]:
    """Magnitudes relative to which the prior measures deviations from x_0."""
    return jnp.where(x0 != 0, jnp.maximum(jnp.abs(x0), 1e-3 * parameters.scale), parameters.scale)
