"""Robust losses: M-estimators of the residuals."""

import abc

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._types import Array, Float


class AbstractLoss(eqx.Module):
    """A robust loss: the function rho of an M-estimator.

    r is a residual over its standard deviation; `rho(r) = r^2 / 2` for small r.
    """

    @abc.abstractmethod
    def value(self, r: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """`rho(r)`."""

    @abc.abstractmethod
    def weight(self, r: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """The weight `rho'(r) / r`, at most one."""


class Huber(AbstractLoss):
    """Huber's loss: quadratic up to `limit` standard deviations and linear beyond (Huber 1964).

    The weight is `min(1, limit / |r|)`. With the default limit of 1.345 the estimate has 95 % efficiency for normally
    distributed residuals.

    ```python
    import jax.numpy as jnp
    from jaxdyn.identification import Huber, Linear

    assert abs(Huber().weight(jnp.array(13.45)) - 0.1) < 1e-6
    method = Linear(loss=Huber())  # for logs with outliers
    ```
    """

    limit: float = 1.345

    def value(self, r):
        least = jnp.minimum(jnp.abs(r), self.limit)
        return least * (jnp.abs(r) - least / 2)

    def weight(self, r):
        return self.limit / jnp.maximum(jnp.abs(r), self.limit)


class Cauchy(AbstractLoss):
    """Cauchy's loss `limit^2 / 2 log(1 + (r / limit)^2)`, which rejects gross outliers.

    The weight is `1 / (1 + (r / limit)^2)`. With the default limit of 2.385 the estimate has 95 % efficiency for
    normally distributed residuals.

    ```python
    import jax.numpy as jnp
    from jaxdyn.identification import Cauchy, Physical

    assert float(Cauchy(limit=2.0).weight(jnp.array(2.0))) == 0.5
    method = Physical(loss=Cauchy())  # for logs with gross outliers
    ```
    """

    limit: float = 2.385

    def value(self, r):
        return self.limit**2 / 2 * jnp.log1p((r / self.limit) ** 2)

    def weight(self, r):
        return 1 / (1 + (r / self.limit) ** 2)
