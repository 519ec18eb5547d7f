"""The pseudo-inertia of a body: a symmetric 4x4 matrix, linear in the ten inertial parameters."""

import jax.numpy as jnp
import numpy as np

from jaxdyn._types import Array, Float

#: row and column of Ixx, Ixy, Ixz, Iyy, Iyz, Izz
_ENTRIES = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))

_BASIS = np.zeros((10, 4, 4))
_BASIS[0, 3, 3] = 1
for _k in range(3):
    _BASIS[1 + _k, _k, 3] = _BASIS[1 + _k, 3, _k] = 1
for _n, (_a, _b) in enumerate(_ENTRIES):
    _I = np.zeros((3, 3))
    _I[_a, _b] = _I[_b, _a] = 1
    _BASIS[4 + _n, :3, :3] = np.trace(_I) / 2 * np.eye(3) - _I


def pseudo_inertia(ten: Float[Array | np.ndarray, "*links 10"]) -> Float[Array, "*links 4 4"]:
    """`P = [[S, h], [h^T, m]]` with `S = tr(I)/2 1 - I` and `h = m c`; P is positive definite for rigid bodies only.

    `ten` holds inertial parameters about a link's origin (Wensing, Kim and Slotine 2018).
    """
    return jnp.einsum("...k,kab->...ab", ten, jnp.asarray(_BASIS, jnp.result_type(ten)))


def pseudo_inertia_basis() -> np.ndarray:
    """`(10, 4, 4)`: the derivative of the pseudo-inertia with respect to each inertial parameter."""
    return _BASIS


def inertia_entries(s: Array | np.ndarray) -> list[Array | np.ndarray]:
    """`Ixx, Ixy, Ixz, Iyy, Iyz, Izz` of `I = tr(S) 1 - S`, S being the second moments of the mass, `(3, 3)`."""
    xp = np if isinstance(s, np.ndarray) else jnp
    i = xp.trace(s) * xp.eye(3, dtype=s.dtype) - s
    return [i[a, b] for a, b in _ENTRIES]


def raise_eigenvalues(s: np.ndarray, floor: float, scale: float = 0.0) -> np.ndarray:
    """A symmetric matrix with its eigenvalues raised to `floor max(greatest eigenvalue, scale)` where they are less."""
    values, axes = np.linalg.eigh(s)
    least = floor * max(values.max(), scale)
    return s if values.min() >= least else (axes * np.maximum(values, least)) @ axes.T


def consistent_parameters(ten: np.ndarray, floor: float = 1e-5) -> np.ndarray:
    """Inertial parameters with a positive definite pseudo-inertia: the given ones if theirs is, otherwise near ones."""
    p = np.einsum("k,kab->ab", ten, _BASIS)
    mass, com = ten[0], ten[1:4] / ten[0]
    central = p[:3, :3] - mass * np.outer(com, com)
    definite = raise_eigenvalues(central, floor, 1e-6 * mass)
    if definite is central:
        return ten
    return np.concatenate([ten[:4], inertia_entries(definite + mass * np.outer(com, com))])
