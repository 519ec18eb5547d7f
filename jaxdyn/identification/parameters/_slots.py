"""Slots: the entries of a system that parameters are read from and written to."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn._types import Array, Float, PyTree
from jaxdyn.simulation import System
from jaxdyn.spatial import quaternion_multiply, quaternion_to_matrix, ten_parameters

COMPONENTS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
UNITS = ("kg", "kg m", "kg m", "kg m", *("kg m^2",) * 6)


class LeafPath:
    """A function from a system to a leaf by attributes and positions; equal paths are equal, so compiled once."""

    def __init__(self, *path: str | int):
        self.path = path

    def __call__(self, system: System) -> PyTree:
        leaf: Any = system
        for step in self.path:
            leaf = leaf[step] if isinstance(step, int) else getattr(leaf, step)
        return leaf

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LeafPath) and self.path == other.path

    def __hash__(self) -> int:
        return hash(self.path)


class AbstractSlot(eqx.Module):
    """A contract for some parameters of a system: how to read and write them, with names, units and lower bounds."""

    names: eqx.AbstractVar[tuple[str, ...]]
    units: eqx.AbstractVar[tuple[str, ...]]
    #: -inf where there is no bound
    lower: eqx.AbstractVar[tuple[float, ...]]
    #: magnitude of a significant change, for parameters whose prior is zero
    scale: eqx.AbstractVar[tuple[float, ...]]

    @abc.abstractmethod
    def read(self, system: System) -> Float[Array, " k"]:
        """The values of the parameters, `(k,)`."""

    @abc.abstractmethod
    def write(self, system: System, x: Float[Array, " k"]) -> System:
        """The system with the values x of the parameters, otherwise unchanged."""


class LeafEntries(AbstractSlot):
    """Entries of one leaf."""

    where: Callable[[System], Array] = eqx.field(static=True)
    index: tuple[int, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    units: tuple[str, ...] = eqx.field(static=True)
    lower: tuple[float, ...] = eqx.field(static=True)
    scale: tuple[float, ...] = eqx.field(static=True)

    def read(self, system):
        return jnp.asarray(self.where(system)).reshape(-1)[np.array(self.index)]

    def write(self, system, x):
        leaf = jnp.asarray(self.where(system))
        new = leaf.reshape(-1).at[np.array(self.index)].set(x).reshape(leaf.shape)
        return eqx.tree_at(self.where, system, new)


def entries(
    where: Callable[[System], Array],
    index: tuple[int, ...],
    names: tuple[str, ...],
    units: tuple[str, ...],
    lower: tuple[float, ...],
    scale: tuple[float, ...],
) -> LeafEntries:
    """Entries of the leaf `where`, all tuples of one length."""
    return LeafEntries(where=where, index=index, names=names, units=units, lower=lower, scale=scale)


class TenParameters(AbstractSlot):
    """The ten inertial parameters of one link about its origin, in which inverse dynamics is linear."""

    link: str = eqx.field(static=True)
    row: int = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    units: tuple[str, ...] = eqx.field(static=True, default=UNITS)
    lower: tuple[float, ...] = eqx.field(static=True, default=(-np.inf,) * 10)
    scale: tuple[float, ...] = eqx.field(static=True, default=(1.0,) + (0.1,) * 3 + (0.01,) * 6)

    def read(self, system):
        links = system.model.links
        return jnp.asarray(ten_parameters(links.mass[self.row], links.com[self.row], links.inertia[self.row]))

    def write(self, system, x):
        m, h = x[0], x[1:4]
        c = h / jnp.where(m == 0, 1, m)
        xx, xy, xz, yy, yz, zz = x[4:]
        about = jnp.stack([jnp.stack([xx, xy, xz]), jnp.stack([xy, yy, yz]), jnp.stack([xz, yz, zz])])
        central = about - ((h @ c) * jnp.eye(3, dtype=c.dtype) - jnp.outer(h, c))
        links = system.model.links
        new = (
            links.mass.at[self.row].set(m),
            links.com.at[self.row].set(c),
            links.inertia.at[self.row].set(central),
        )
        return eqx.tree_at(lambda s: (s.model.links.mass, s.model.links.com, s.model.links.inertia), system, new)


class SmallRotation(AbstractSlot):
    """A rotation of a frame relative to its placement: a rotation vector in the frame's axes, zero before the fit."""

    where: Callable[[System], Array] = eqx.field(static=True)
    row: int = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    units: tuple[str, ...] = eqx.field(static=True, default=("rad",) * 3)
    lower: tuple[float, ...] = eqx.field(static=True, default=(-np.inf,) * 3)
    scale: tuple[float, ...] = eqx.field(static=True, default=(0.1,) * 3)

    def read(self, system):
        return jnp.zeros(3, self.where(system).dtype)

    def write(self, system, x):
        leaf = self.where(system)
        rotation = quaternion_multiply(leaf[self.row], _rotation_vector_quaternion(x))
        return eqx.tree_at(self.where, system, leaf.at[self.row].set(rotation))


class GravityDirection(AbstractSlot):
    """A tilt of gravity at constant strength: rotations about two axes perpendicular to it, zero before the fit."""

    names: tuple[str, ...] = eqx.field(static=True, default=("gravity.direction[0]", "gravity.direction[1]"))
    units: tuple[str, ...] = eqx.field(static=True, default=("rad",) * 2)
    lower: tuple[float, ...] = eqx.field(static=True, default=(-np.inf,) * 2)
    scale: tuple[float, ...] = eqx.field(static=True, default=(0.1,) * 2)

    def read(self, system):
        return jnp.zeros(2, system.model.gravity.dtype)

    def write(self, system, x):
        g = system.model.gravity
        least = jnp.eye(3, dtype=g.dtype)[jnp.argmin(jnp.abs(g))]
        first = jnp.cross(g, least)
        first = first / jnp.linalg.norm(first)
        second = jnp.cross(g, first)
        second = second / jnp.linalg.norm(second)
        tilt = quaternion_to_matrix(_rotation_vector_quaternion(x[0] * first + x[1] * second))
        return eqx.tree_at(lambda s: s.model.gravity, system, tilt @ g)


def _rotation_vector_quaternion(x):
    """A quaternion, scalar first and not normalised, of the rotation vector x with norm t.

    `(1, tan(t/2)/t x)` is parallel to the exponential, and tan(t/2)/t is even in t and smooth; near zero its series
    is exact to fourth order.
    """
    t2 = x @ x
    small = t2 < 1e-4
    t = jnp.sqrt(jnp.where(small, 1, t2))
    ratio = jnp.where(small, 0.5 + t2 / 24 + t2 * t2 / 240, jnp.tan(t / 2) / t)
    return jnp.concatenate([jnp.ones(1, x.dtype), ratio * x])
