"""Places of a system that parameters are read from and written to."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn.simulation import System
from jaxdyn.spatial import quaternion_multiply, quaternion_to_matrix

COMPONENTS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
UNITS = ("kg", "kg m", "kg m", "kg m", *("kg m^2",) * 6)


class Place:
    """A leaf of a system by its path of attributes and positions; equal paths are equal, and compiled once."""

    def __init__(self, *path: str | int):
        self.path = path

    def __call__(self, system: System) -> Any:
        leaf: Any = system
        for step in self.path:
            leaf = leaf[step] if isinstance(step, int) else getattr(leaf, step)
        return leaf

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and self.path == other.path

    def __hash__(self) -> int:
        return hash(self.path)


class AbstractSlot(eqx.Module):
    """Some parameters, their names, units and lower bounds, and where in a system they are."""

    names: eqx.AbstractVar[tuple[str, ...]]
    units: eqx.AbstractVar[tuple[str, ...]]
    #: -inf where there is none
    lower: eqx.AbstractVar[tuple[float, ...]]
    #: magnitude of a change that matters, for parameters whose prior is zero
    scale: eqx.AbstractVar[tuple[float, ...]]

    @abc.abstractmethod
    def read(self, system: System) -> Any:
        """Their values `(k,)`."""

    @abc.abstractmethod
    def write(self, system: System, x: Any) -> System:
        """The system with the values x, all else as it is."""


class Entries(AbstractSlot):
    """Entries of one leaf."""

    where: Callable[[System], Any] = eqx.field(static=True)
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


def entries(where: Callable[[System], Any], index, names, units, lower, scale) -> Entries:
    """Entries of the leaf `where`, all tuples of one length."""
    return Entries(where=where, index=index, names=names, units=units, lower=lower, scale=scale)


class TenParameters(AbstractSlot):
    """The ten inertial parameters of one link about its origin, in which efforts are linear."""

    link: str = eqx.field(static=True)
    row: int = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    units: tuple[str, ...] = eqx.field(static=True, default=UNITS)
    lower: tuple[float, ...] = eqx.field(static=True, default=(-np.inf,) * 10)
    scale: tuple[float, ...] = eqx.field(static=True, default=(1.0,) + (0.1,) * 3 + (0.01,) * 6)

    def read(self, system):
        links = system.model.links
        m, c, i = links.mass[self.row], links.com[self.row], links.inertia[self.row]
        about = (i + i.T) / 2 + m * ((c @ c) * jnp.eye(3, dtype=c.dtype) - jnp.outer(c, c))
        six = jnp.stack([about[a, b] for a, b in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))])
        return jnp.concatenate([m[None], m * c, six])

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


class Turn(AbstractSlot):
    """A small rotation after the placement of a frame: a rotation vector in the frame's axes, zero before the fit."""

    where: Callable[[System], Any] = eqx.field(static=True)
    row: int = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    units: tuple[str, ...] = eqx.field(static=True, default=("rad",) * 3)
    lower: tuple[float, ...] = eqx.field(static=True, default=(-np.inf,) * 3)
    scale: tuple[float, ...] = eqx.field(static=True, default=(0.1,) * 3)

    def read(self, system):
        return jnp.zeros(3, self.where(system).dtype)

    def write(self, system, x):
        leaf = self.where(system)
        turned = quaternion_multiply(leaf[self.row], _rotation_vector_quaternion(x))
        return eqx.tree_at(self.where, system, leaf.at[self.row].set(turned))


class GravityDirection(AbstractSlot):
    """A tilt of gravity at the same strength: rotations about two axes across it, zero before the fit."""

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
        turn = quaternion_to_matrix(_rotation_vector_quaternion(x[0] * first + x[1] * second))
        return eqx.tree_at(lambda s: s.model.gravity, system, turn @ g)


def _rotation_vector_quaternion(x):
    """`exp(x / 2)` as a quaternion, scalar first; of any length but zero, exact to fourth order and a rotation always.

    The quaternion `(1, tan(t/2)/t x)` has the direction of the exponential; tan(t/2)/t is even in t and smooth.
    """
    t2 = x @ x
    small = t2 < 1e-4
    t = jnp.sqrt(jnp.where(small, 1, t2))
    ratio = jnp.where(small, 0.5 + t2 / 24 + t2 * t2 / 240, jnp.tan(t / 2) / t)
    return jnp.concatenate([jnp.ones(1, x.dtype), ratio * x])
