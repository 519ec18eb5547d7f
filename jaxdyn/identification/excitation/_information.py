"""The information matrix of the base parameters along a motion, and criteria of optimal experiment design."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._types import Array, Float
from jaxdyn.dynamics import inertial_regressor
from jaxdyn.model import Model


class Information(eqx.Module):
    """The base regressor of a robot and its information matrix.

    The columns of the regressor are those of the links' inertial parameters, of rotor inertias `a`, of viscous and
    Coulomb friction `v` and `tanh(v / v_s)`, and of effort offsets 1. `basis` spans the identifiable directions in
    scaled columns, that is the base parameters (Gautier and Khalil 1990).
    """

    model: Model
    #: inverse root mean square of each column
    scale: Float[Array, " columns"]
    #: orthonormal basis of the identifiable directions, `(columns, base)`
    basis: Float[Array, "columns base"]
    #: standard deviation of the noise of each effort, N m or N
    noise: Float[Array, " nv"]
    #: velocity v_s over which Coulomb friction changes sign, rad/s or m/s
    slow: Float[Array, " nv"]

    def rows(self, q, v, a) -> Float[Array, "nv columns"]:
        """The scaled regressor of one state, divided by the standard deviation of the noise."""
        return _regressor_rows(self.model, self.slow, q, v, a) * self.scale / self.noise[:, None]

    def gram(self, q, v, a) -> Float[Array, "base base"]:
        """Information matrix per sample, `sum Y_b^T Y_b / n`, over states `(n, nv)`."""
        y = jax.vmap(self.rows)(q, v, a) @ self.basis
        return jnp.einsum("nik,nil->kl", y, y) / q.shape[0]


def _regressor_rows(model: Model, slow, q, v, a):
    per_joint = [jnp.diag(x) for x in (a, v, jnp.tanh(v / slow), jnp.ones_like(v))]
    return jnp.concatenate([inertial_regressor(model, q, v, a), *per_joint], axis=1)


@eqx.filter_jit
def _regressors(model: Model, slow, q, v, a):
    return jax.vmap(lambda *x: _regressor_rows(model, slow, *x))(q, v, a)


def information_of(model: Model, noise: Float[Array, " nv"], key, lower, upper, velocity) -> Information:
    """The base regressor for motions within given ranges, with its basis computed from random states.

    Singular values below 1e-8 of the greatest (1e-4 in float32) count as zero.

    Arguments:

    * `noise`: standard deviation of each effort `(nv,)`, N m or N.
    * `key`: a JAX random key.
    * `lower`, `upper`: ranges of the positions `(nv,)`, rad or m.
    * `velocity`: magnitude of the velocities `(nv,)`, rad/s or m/s.
    """
    count = 4 * (10 * model.num_links + 4 * model.nv) // model.nv + 8
    slow = jnp.maximum(0.02 * velocity, 1e-6)
    keys = jax.random.split(key, 3)
    uniform = lambda k, low, high: jax.random.uniform(k, (count, model.nv), model.dtype) * (high - low) + low
    q, v = uniform(keys[0], lower, upper), uniform(keys[1], -velocity, velocity)
    a = uniform(keys[2], -4 * velocity, 4 * velocity)
    y = _regressors(model, slow, q, v, a)
    y = np.asarray(y / noise[:, None], float).reshape(-1, y.shape[-1])
    size = np.sqrt(np.mean(y**2, axis=0))
    scale = np.where(size > 0, 1 / np.where(size > 0, size, 1.0), 0.0)
    _, values, rows = np.linalg.svd(y * scale, full_matrices=False)
    tolerance = 1e-8 if model.dtype == jnp.float64 else 1e-4
    identifiable = rows[values > tolerance * values[0]]
    cast = lambda x: jnp.asarray(x, model.dtype)
    return Information(model, cast(scale), cast(identifiable.T), cast(noise), cast(slow))


def log_volume(gram) -> Array:
    """D-optimality, `-log det(gram) / size`: the mean logarithm of the variances of the base parameters."""
    size = gram.shape[0]
    tiny = jnp.finfo(gram.dtype).eps * jnp.trace(gram) / size
    _, value = jnp.linalg.slogdet(gram + tiny * jnp.eye(size, dtype=gram.dtype))
    return -value / size


def log_condition(gram) -> Array:
    """Logarithm of the condition number of the base regressor: half that of the Gram matrix."""
    values = jnp.linalg.eigvalsh(gram)
    tiny = jnp.finfo(gram.dtype).eps * values[-1]
    return 0.5 * (jnp.log(values[-1]) - jnp.log(jnp.maximum(values[0], tiny)))
