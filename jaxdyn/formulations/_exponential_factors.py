"""The matrices ME{V} and ME{J} whose product is a column of the Jacobian in exponential form.

After equations 5 to 10 and 12 of I. Negrean, A. Duca, K. Kacso, S. Mura-Cozma and C. Schonstein, "New formulations on
serial robots dynamics", COMEC 2009; see `_exponentials` for its notation. As there, linear halves come first.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._types import Array, Config, Float
from jaxdyn.formulations._exponentials import screw_exponential, supporting_joints
from jaxdyn.model import Model
from jaxdyn.recursion import check_state
from jaxdyn.spatial import skew


class ExponentialFactors(eqx.Module):
    """Factors `ME{J_i1} ME{J_i2} ME{J_i3} M_iv` of the Jacobian column of each joint that carries a frame (12).

    One row per joint i, `n` in all. In the source `ME{V_i3}` has a block of three columns for each joint from i on;
    here it has one for every joint, zero before joint i, so that all rows have the same size `m = 3 (n + 2)`.
    """

    #: velocity coordinates of the joints
    joints: tuple[int, ...] = eqx.field(static=True)
    #: `exp([k_1] q_1) ... exp([k_(i-1)] q_(i-1))` (5)
    V1: Float[Array, "n 3 3"]
    #: `(1, Delta_i [k_i])` (6)
    V2: Float[Array, "n 3 6"]
    #: `(1, 0, 0; 0, exp([k_i] q_i) ... exp([k_(k-1)] q_(k-1)) for each k, exp([k_i] q_i) ... exp([k_n] q_n))` (7)
    V3: Float[Array, "n 6 m"]
    #: the column `(v_i, b_1 ... b_n, p_n, Delta_i k_i)`
    M: Float[Array, "n l"]

    @property
    def J1(self) -> Float[Array, "n 6 6"]:
        """`diag(ME{V_i1}, ME{V_i1})` (8)."""
        return _diagonal(self.V1, self.V1)

    @property
    def J2(self) -> Float[Array, "n 6 9"]:
        """`diag(ME{V_i2}, 1)` (9)."""
        return _diagonal(self.V2, _ones(self.V1))

    @property
    def J3(self) -> Float[Array, "n 9 l"]:
        """`diag(ME{V_i3}, 1)` (10)."""
        return _diagonal(self.V3, _ones(self.V1))

    def columns(self) -> Float[Array, "6 n"]:
        """The products: velocity of the frame's origin and angular velocity for unit rates, in base axes (2, 3)."""
        return jnp.einsum("iab,ibc,icd,id->ai", self.J1, self.J2, self.J3, self.M)


def exponential_factors(model: Model, q: Config, name: str) -> ExponentialFactors:
    """The factors of the Jacobian of the link or frame called `name` (5 to 10).

    Their product is `exponential_jacobian` with the halves exchanged; `exponential_jacobian` multiplies fewer zeros.
    For models of revolute, continuous, prismatic and helical joints.
    """
    (q,) = check_state(model, q=q)
    path, screws, at_zero = supporting_joints(model, name)
    steps = jax.vmap(screw_exponential)(screws, q[path])
    n, one = len(path), jnp.eye(3, dtype=steps.rotation.dtype)
    last, before = jax.lax.scan(lambda r, step: (r @ step, r), one, steps.rotation)
    reached = jnp.concatenate([before, last[None]])
    between = jnp.einsum("iba,kbc->iakc", before, reached)  # i to k - 1; the last is i to n
    between = between * jnp.triu(jnp.ones((n, n + 1), one.dtype))[:, None, :, None]
    v3 = _diagonal(jnp.broadcast_to(one, before.shape), between.reshape(n, 3, 3 * (n + 1)))
    turn, moment = screws[:, :3], screws[:, 3:]
    v2 = jnp.concatenate([jnp.broadcast_to(one, before.shape), skew(turn)], axis=2)
    shared = jnp.concatenate([steps.translation.reshape(-1), at_zero.translation.astype(one.dtype)])
    column = jnp.concatenate([moment, jnp.broadcast_to(shared, (n, *shared.shape)), turn], axis=1)
    return ExponentialFactors(tuple(int(k) for k in path), before, v2, v3, column)


def _ones(like):
    return jnp.broadcast_to(jnp.eye(3, dtype=like.dtype), like.shape)


def _diagonal(a, b):
    """Block-diagonal matrices, row by row."""
    right = jnp.zeros((*a.shape[:2], b.shape[2]), a.dtype)
    left = jnp.zeros((*b.shape[:2], a.shape[2]), a.dtype)
    return jnp.concatenate([jnp.concatenate([a, right], axis=2), jnp.concatenate([left, b], axis=2)], axis=1)
