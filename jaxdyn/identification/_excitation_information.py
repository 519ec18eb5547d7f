"""What a motion says about the parameters that can be told from joint efforts."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._types import Array, Float
from jaxdyn.dynamics import inertial_regressor
from jaxdyn.model import Model


class Information(eqx.Module):
    """Turns states into the information matrix of the base parameters of a robot.

    The columns of a joint row are those of the links' inertial parameters, the rotor `a`, viscous and Coulomb friction
    `v`, `tanh(v / v_s)`, and 1 for the offset of a sensor. `basis` spans the directions that any motion can show
    (Gautier and Khalil 1990), in scaled columns.
    """

    model: Model
    #: 1 over the size of each column
    scale: Float[Array, " columns"]
    #: orthonormal, `(columns, base)`
    basis: Float[Array, "columns base"]
    #: standard deviation of the noise of each joint's effort, N m or N
    noise: Float[Array, " nv"]
    #: rad/s or m/s, over which Coulomb friction changes sign
    slow: Float[Array, " nv"]

    def rows(self, q, v, a) -> Float[Array, "nv columns"]:
        """All columns of one state, in units of the noise."""
        return _columns(self.model, self.slow, q, v, a) * self.scale / self.noise[:, None]

    def gram(self, q, v, a) -> Float[Array, "base base"]:
        """`sum Y_b^T Y_b` over states `(n, nv)` divided by n: information a sample."""
        y = jax.vmap(self.rows)(q, v, a) @ self.basis
        return jnp.einsum("nik,nil->kl", y, y) / q.shape[0]


def _columns(model: Model, slow, q, v, a):
    joint = lambda x: jnp.diag(x)
    own = [joint(x) for x in (a, v, jnp.tanh(v / slow), jnp.ones_like(v))]
    return jnp.concatenate([inertial_regressor(model, q, v, a), *own], axis=1)


@eqx.filter_jit
def _tables(model: Model, slow, q, v, a):
    return jax.vmap(lambda *x: _columns(model, slow, *x))(q, v, a)


def information_of(model: Model, noise: Any, key, lower, upper, velocity) -> Information:
    """The information that motions within given ranges carry; its basis is found from random states.

    A singular value below 1e-8 of the greatest counts as zero: the direction changes no effort at all.
    """
    count = 4 * (10 * model.num_links + 4 * model.nv) // model.nv + 8
    slow = jnp.maximum(0.02 * velocity, 1e-6)
    keys = jax.random.split(key, 3)
    spread = lambda k, low, high: jax.random.uniform(k, (count, model.nv), model.dtype) * (high - low) + low
    q, v = spread(keys[0], lower, upper), spread(keys[1], -velocity, velocity)
    a = spread(keys[2], -4 * velocity, 4 * velocity)
    table = _tables(model, slow, q, v, a)
    table = np.asarray(table / noise[:, None], float).reshape(-1, table.shape[-1])
    size = np.sqrt(np.mean(table**2, axis=0))
    scale = np.where(size > 0, 1 / np.where(size > 0, size, 1.0), 0.0)
    _, values, rows = np.linalg.svd(table * scale, full_matrices=False)
    tolerance = 1e-8 if model.dtype == jnp.float64 else 1e-4
    seen = rows[values > tolerance * values[0]]
    number = lambda x: jnp.asarray(x, model.dtype)
    return Information(model, number(scale), number(seen.T), number(noise), number(slow))


def log_volume(gram) -> Array:
    """`-log det(gram) / size`: the mean logarithm of the variances of the base parameters, to be made small."""
    size = gram.shape[0]
    tiny = jnp.finfo(gram.dtype).eps * jnp.trace(gram) / size
    _, value = jnp.linalg.slogdet(gram + tiny * jnp.eye(size, dtype=gram.dtype))
    return -value / size


def log_condition(gram) -> Array:
    """`log cond`: the logarithm of the condition number of the base regressor, half that of its Gram matrix."""
    values = jnp.linalg.eigvalsh(gram)
    tiny = jnp.finfo(gram.dtype).eps * values[-1]
    return 0.5 * (jnp.log(values[-1]) - jnp.log(jnp.maximum(values[0], tiny)))
