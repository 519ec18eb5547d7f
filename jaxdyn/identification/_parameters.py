"""Selected parameters as one vector: x in the units of the leaves, and z without bounds."""

import fnmatch
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.identification._selection import Selection, select
from jaxdyn.identification._slots import AbstractSlot, TenParameters
from jaxdyn.simulation import System
from jaxdyn.simulation._system import as_system

#: pairs of least and greatest values, by path or by the name of a parameter
Bounds = Mapping[str, tuple[float | int, float | int]]


class Parameters(eqx.Module):
    """A system and the places of it that a fit may change, as one vector."""

    #: before the fit
    system: System
    slots: tuple[AbstractSlot, ...]
    #: each selected path with the number of its parameters
    paths: tuple[tuple[str, int], ...] = eqx.field(static=True)
    #: bounds in place of the usual ones: place in the vector, least and greatest value
    bounds: tuple[tuple[int, float, float], ...] = eqx.field(static=True, default=())

    @property
    def names(self) -> tuple[str, ...]:
        """Names in the order of the vector."""
        return tuple(name for slot in self.slots for name in slot.names)

    @property
    def units(self) -> tuple[str, ...]:
        """Units in the order of the vector."""
        return tuple(unit for slot in self.slots for unit in slot.units)

    @property
    def lower(self) -> np.ndarray:
        """Least values, -inf where there are none."""
        usual = np.array([x for slot in self.slots for x in slot.lower])
        for k, low, _ in self.bounds:
            usual[k] = low
        return usual

    @property
    def upper(self) -> np.ndarray:
        """Greatest values, inf where there are none."""
        greatest = np.full(len(self.names), np.inf)
        for k, _, high in self.bounds:
            greatest[k] = high
        return greatest

    @property
    def scale(self) -> np.ndarray:
        """Magnitudes of changes that matter, where the values themselves are zero."""
        return np.array([x for slot in self.slots for x in slot.scale])

    @property
    def inertial(self) -> np.ndarray:
        """Positions of inertial parameters `(links, 10)`."""
        at, rows = 0, []
        for slot in self.slots:
            if isinstance(slot, TenParameters):
                rows.append(np.arange(at, at + 10))
            at += len(slot.names)
        return np.array(rows, int).reshape(-1, 10)

    @property
    def links(self) -> tuple[str, ...]:
        """The links whose ten parameters are selected."""
        return tuple(slot.link for slot in self.slots if isinstance(slot, TenParameters))

    def read(self) -> Float[Array, " n"]:
        """The vector before the fit."""
        return jnp.concatenate([slot.read(self.system) for slot in self.slots])

    def insert(self, x: Float[Array, " n"]) -> System:
        """The system with the vector x."""
        system, at = self.system, 0
        for slot in self.slots:
            system = slot.write(system, x[at : at + len(slot.names)])
            at += len(slot.names)
        return system

    def moved(self, x: Float[Array, " n"]) -> tuple[list[Any], Callable[[list[Any]], System]]:
        """The leaves of the system that the vector x goes into, and the system with other values of these."""
        old, structure = jax.tree.flatten(self.system)
        new = jax.tree.leaves(self.insert(x))
        rows = [k for k, (a, b) in enumerate(zip(old, new, strict=True)) if a is not b]

        def place(leaves: list[Any]) -> System:
            all_leaves = list(old)
            for k, leaf in zip(rows, leaves, strict=True):
                all_leaves[k] = leaf
            return jax.tree.unflatten(structure, all_leaves)

        return [new[k] for k in rows], place


def collect(system: Any, selection: Any, bounds: Bounds | None = None) -> Parameters:
    """The parameters that a selection stands for in a model or system, with `bounds` in place of the usual ones."""
    system = as_system(system)
    system = jax.tree.map(jnp.asarray, system)
    if not isinstance(selection, Selection):
        selection = select(*([selection] if isinstance(selection, str) or callable(selection) else selection))
    groups = selection.groups(system)
    slots = tuple(slot for _, found in groups for slot in found)
    paths = tuple((text, sum(len(slot.names) for slot in found)) for text, found in groups)
    for slot in slots:
        if isinstance(slot, TenParameters) and not float(system.model.links.mass[slot.row]) > 0:
            raise ModelError(
                f"link {slot.link!r} has no mass before the fit, so there is no body near which to look for its "
                "inertia; give it a guess, or leave it out of the selection"
            )
    names = [name for slot in slots for name in slot.names]
    return Parameters(system, slots, paths, _bounded(system, names, bounds or {}))


def _bounded(system: System, names: list[str], bounds: Bounds) -> tuple[tuple[int, float, float], ...]:
    """Bounds by the place in the vector."""
    found: dict[int, tuple[float, float]] = {}
    for key, pair in bounds.items():
        low, high = (float(x) for x in pair)
        if not low < high:
            raise ModelError(f"bounds of {key!r} are {low:g} and {high:g}; expected the lower one first")
        if "(" in key:
            meant = fnmatch.filter(names, key)
        else:
            meant = [name for _, some in Selection((key,)).groups(system) for slot in some for name in slot.names]
        places = [k for k, name in enumerate(names) if name in set(meant)]
        if not places:
            raise ModelError(f"bounds of {key!r} name no selected parameter; the first of them is {names[0]!r}")
        found |= dict.fromkeys(places, (low, high))
    return tuple((k, *found[k]) for k in sorted(found))


def check_bodies(parameters: Parameters, *, inertial_bounds: bool):
    """Refuses what a fit over bodies cannot keep: inertias of nine free numbers, and bounds that its chart has not."""
    loose = [slot.names[0][:-3] for slot in parameters.slots if slot.names[0].endswith(".inertia[0]")]
    if loose:
        raise ModelError(
            f"{loose[0]} is nine free numbers, which need not be those of a body; select links[..].inertial, whose ten "
            "stay those of a body, or fit by Linear"
        )
    ten = set(parameters.inertial.reshape(-1).tolist())
    tied = [parameters.names[k] for k, _, _ in parameters.bounds if k in ten]
    if tied and not inertial_bounds:
        raise ModelError(
            f"bounds of {tied[0]!r}, one of the ten of a body, are kept by Physical alone; take that method, or leave "
            "them out"
        )


# Inertia as a matrix

_BASIS = np.zeros((10, 4, 4))
_BASIS[0, 3, 3] = 1
for _k in range(3):
    _BASIS[1 + _k, _k, 3] = _BASIS[1 + _k, 3, _k] = 1
for _n, (_a, _b) in enumerate(((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))):
    _I = np.zeros((3, 3))
    _I[_a, _b] = _I[_b, _a] = 1
    _BASIS[4 + _n, :3, :3] = np.trace(_I) / 2 * np.eye(3) - _I


def pseudo_inertia(ten):
    """`[[S, h], [h^T, m]]`, `S = tr(I)/2 1 - I`: positive definite for bodies and for them alone.

    `ten` holds inertial parameters `(..., 10)` about a link's origin (Wensing, Kim and Slotine 2018).
    """
    return jnp.einsum("...k,kab->...ab", ten, jnp.asarray(_BASIS, jnp.result_type(ten)))


def pseudo_inertia_basis() -> np.ndarray:
    """`(10, 4, 4)`: the pseudo-inertia of each parameter alone."""
    return _BASIS


def definite(s: np.ndarray, floor: float, scale: float = 0.0) -> np.ndarray:
    """A symmetric matrix, as it is or with eigenvalues raised to `floor` times the greatest, or times `scale`."""
    values, axes = np.linalg.eigh(s)
    least = floor * max(values.max(), scale)
    return s if values.min() >= least else (axes * np.maximum(values, least)) @ axes.T


def interior(ten: np.ndarray, floor: float = 1e-5) -> np.ndarray:
    """The parameters, moved to where the pseudo-inertia is definite if they are on the boundary or beyond it."""
    p = np.einsum("k,kab->ab", ten, _BASIS)
    mass, com = ten[0], ten[1:4] / ten[0]
    central = p[:3, :3] - mass * np.outer(com, com)
    lifted = definite(central, floor, 1e-6 * mass)
    if lifted is central:
        return ten
    s = lifted + mass * np.outer(com, com)
    i = np.trace(s) * np.eye(3) - s
    return np.concatenate([ten[:4], [i[0, 0], i[0, 1], i[0, 2], i[1, 1], i[1, 2], i[2, 2]]])


# Without bounds


def _to_cholesky(p):
    """Upper triangular U with `P = U U^T`."""
    flip = lambda m: m[::-1, ::-1]
    return flip(jnp.linalg.cholesky(flip(p)))


def log_cholesky(ten):
    """Ten free numbers of a body: logarithms of the diagonal of U, then what is above it; `P = U U^T`."""
    u = _to_cholesky(pseudo_inertia(ten))
    above = jnp.stack([u[0, 1], u[0, 2], u[1, 2], u[0, 3], u[1, 3], u[2, 3]])
    return jnp.concatenate([jnp.log(jnp.diagonal(u)), above])


def upper_factor(z):
    """U with `P = U U^T` from ten free numbers."""
    d = jnp.exp(z[:4])
    o = jnp.zeros_like(d[0])
    rows = ((d[0], z[4], z[5], z[7]), (o, d[1], z[6], z[8]), (o, o, d[2], z[9]), (o, o, o, d[3]))
    return jnp.stack([jnp.stack(row) for row in rows])


def from_log_cholesky(z):
    """Inertial parameters of a body from ten free numbers (Rucker and Wensing 2022, with another order)."""
    u = upper_factor(z)
    p = u @ u.T
    i = jnp.trace(p[:3, :3]) * jnp.eye(3, dtype=p.dtype) - p[:3, :3]
    return jnp.concatenate([p[3:, 3], p[:3, 3], jnp.stack([i[0, 0], i[0, 1], i[0, 2], i[1, 1], i[1, 2], i[2, 2]])])


class Chart(eqx.Module):
    """Parameters x as functions of free numbers z: bodies by log-Cholesky, all else scaled.

    Between two bounds x is a logistic function of z, beyond one of them softplus.
    """

    #: where z = 0 would be for scaled ones; centre and width for all
    centre: Float[Array, " n"]
    width: Float[Array, " n"]
    lower: tuple[float, ...] = eqx.field(static=True)
    upper: tuple[float, ...] = eqx.field(static=True)
    inertial: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    def _sides(self, dtype):
        """Which are bounded from below alone, from above alone and from both sides; the bounds, finite."""
        low, high = np.array(self.lower), np.array(self.upper)
        below, above = np.isfinite(low), np.isfinite(high)
        finite = lambda x, known: jnp.asarray(np.where(known, x, 0.0), dtype)
        return below & ~above, above & ~below, below & above, finite(low, below), finite(high, above)

    def x(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        """Parameters in their units."""
        one, other, both, low, high = self._sides(z.dtype)
        soft = self.width * jax.nn.softplus(z)
        x = jnp.where(one, low + soft, jnp.where(other, high - soft, self.centre + self.width * z))
        x = jnp.where(both, low + (high - low) * jax.nn.sigmoid(z), x)
        for rows in self.inertial:
            x = x.at[np.array(rows)].set(from_log_cholesky(z[np.array(rows)]))
        return x

    def z(self, x: Float[Array, " n"]) -> Float[Array, " n"]:
        """Free numbers of parameters that are inside of their bounds."""
        one, other, both, low, high = self._sides(x.dtype)
        gap = jnp.where(one, x - low, high - x)
        y = jnp.where(one | other, jnp.maximum(gap / self.width, 1e-12), 1.0)
        inverse = y + jnp.log(-jnp.expm1(-y))
        z = jnp.where(one | other, inverse, (x - self.centre) / self.width)
        share = jnp.clip(jnp.where(both, (x - low) / jnp.where(both, high - low, 1.0), 0.5), 1e-12, 1 - 1e-6)
        z = jnp.where(both, jnp.log(share) - jnp.log1p(-share), z)
        for rows in self.inertial:
            z = z.at[np.array(rows)].set(log_cholesky(x[np.array(rows)]))
        return z


def chart(parameters: Parameters, start: np.ndarray) -> Chart:
    """The chart around a start."""
    width = np.where(start != 0, np.maximum(np.abs(start), 1e-3 * parameters.scale), parameters.scale)
    inertial = tuple(tuple(int(k) for k in row) for row in parameters.inertial)
    dtype = parameters.read().dtype
    lower, upper = tuple(map(float, parameters.lower)), tuple(map(float, parameters.upper))
    return Chart(jnp.asarray(start, dtype), jnp.asarray(width, dtype), lower, upper, inertial)


def inside(parameters: Parameters, x: np.ndarray) -> np.ndarray:
    """The vector, moved inside of bounds and of the set of bodies where it is not."""
    x = np.array(x, float)
    low, high = parameters.lower, parameters.upper
    step = np.minimum(1e-3 * parameters.scale, np.where(np.isfinite(high - low), (high - low) / 4, np.inf))
    x = np.minimum(np.maximum(x, low + step), high - step)
    for rows in parameters.inertial:
        x[rows] = interior(x[rows])
    return x
