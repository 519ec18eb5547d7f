"""The part that gives the sublinks of a flexible link their inertia, lengths, springs and dampers."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ArgumentError, ModelError, check_instance, describe
from jaxdyn._types import Array, Config, Float, Scalar, Velocity
from jaxdyn.beams import Beam
from jaxdyn.dynamics import AbstractActuator, Action
from jaxdyn.flexible._strains import Strains
from jaxdyn.model import Model
from jaxdyn.spatial import Inertia, Pose, matrix_to_quaternion


class Lump(eqx.Module):
    """A body that is fixed to a flexible link, for instance a motor, a flange or a connector.

    Arguments:

    * `inertia`: in the axes of the link, about the point of the axis at `fraction`; pure rotary inertia, without mass,
      is allowed
    * `fraction`: of the length, from 0 to 1: the point of the undeformed axis that carries the body; structure
    """

    inertia: Inertia
    fraction: float = eqx.field(static=True, default=1.0)

    def __check_init__(self):
        check_instance("inertia of a Lump", self.inertia, Inertia, "make one with jaxdyn.spatial")
        check_fraction("fraction of a Lump", self.fraction)


def check_fraction(name: str, value):
    """Raises `ArgumentError` unless a value is a number from 0 to 1; it decides the structure, so it is not traced."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ArgumentError(f"{name} is {describe(value)}, expected a Python number from 0 to 1, of the length")


class FlexibleLink(AbstractActuator):
    """The beam of a flexible link, made by `add_flexible_link` and `make_flexible`.

    The beam of length L consists of `sublinks + 1` rigid bars, of length `L / 2n` at both ends and `L / n` between,
    connected by n elastic joints in the middle of n equal parts. Each spring has the compliance of its part,
    `1 / K = int ds / (E I)`, which is `K = n E I / L` for a uniform beam, and the damping `eta K` with the retardation
    time of the material. Bars have the mass and the rotational inertia of their part of the beam (L. Celentano, in "New
    Approaches in Automation and Robotics", I-Tech 2008, section 5, equations 67 and 68). The error of frequencies and
    deflections is of the order `1 / n^2`.

    All numbers follow from the leaves of the beam: the model itself has massless sublinks without length, and
    `mount(model)` returns the model with inertias, lengths, stiffnesses and dampings as functions of the leaves. A
    `System` moves the mounted model. The part exerts no effort itself, since the springs and dampers are those of the
    joints; it has no state and no inputs.

    Sublink k, counted from zero, begins at joint k; its axes are those of the beam, and those of the link for the
    first. Every station is a massless link that is fixed to the beam, with the axes of the link.
    """

    #: name of the link, and of its first sublink
    name: str = eqx.field(static=True)
    beam: Beam
    #: n, number of elastic joints
    sublinks: int = eqx.field(static=True)
    strains: Strains = eqx.field(static=True)
    lumps: tuple[Lump, ...] = ()
    #: names of links that are fixed to the beam, each with its fraction of the length
    stations: tuple[tuple[str, float], ...] = eqx.field(static=True, default=())
    num_inputs: int = eqx.field(static=True, default=0, init=False)
    uses_acceleration: bool = eqx.field(static=True, default=False, init=False)

    @property
    def link_names(self) -> tuple[str, ...]:
        """Names of the sublinks, `(sublinks + 1)`."""
        return (self.name, *(f"{self.name}_sublink{k}" for k in range(1, self.sublinks + 1)))

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the elastic joints."""
        return tuple(f"{self.name}_flexure{k}" for k in range(1, self.sublinks + 1))

    @property
    def tip(self) -> str:
        """Name of the link at the end of the beam."""
        return f"{self.name}_tip"

    def sublink_at(self, fraction: float) -> int:
        """Number of the sublink that carries the point at a fraction of the length."""
        return min(math.floor(fraction * self.sublinks + 0.5), self.sublinks)

    @property
    def bar_ends(self) -> Float[Array, "bars 2"]:
        """Distances of the two ends of each bar from the start of the beam, m."""
        inner = (np.arange(self.sublinks) + 0.5) / self.sublinks
        fractions = np.stack([np.concatenate([[0.0], inner]), np.concatenate([inner, [1.0]])], axis=1)
        return self.beam.length * jnp.asarray(fractions, self.beam.length.dtype)

    def coordinates(self, model: Model) -> np.ndarray:
        """Places of the strains in v, `(sublinks, strains)`; in q as well, unless other joints have quaternions."""
        return self._places(model, "v")

    def deformation(self, model: Model, q: Config) -> Float[Array, "sublinks strains"]:
        """Relative angles (rad) and displacements (m) of the elastic joints, in the order of `strains.names`."""
        return q[self._places(model, "q")]

    def spring_stiffness(self) -> Float[Array, "sublinks strains"]:
        """Stiffnesses of the elastic joints, N m/rad and N/m."""
        parts = self.beam.length * jnp.asarray(np.arange(self.sublinks + 1) / self.sublinks, self.beam.length.dtype)
        return jax.vmap(lambda a, b: self.strains.spring_stiffness(self.beam, a, b))(parts[:-1], parts[1:])

    def strain_energy(self, model: Model, q: Config) -> Scalar:
        """Energy of the deformation, J."""
        return jnp.sum(self.spring_stiffness() * self.deformation(model, q) ** 2) / 2

    def mount(self, model: Model) -> Model:
        """The model whose sublinks have the inertias, lengths, stiffnesses and dampings of the beam."""
        places = self._places(model, "v")
        model = self._place(model)
        bodies = self._bodies()
        rows = np.array([model.link_index(name) for name in self.link_names])
        cast = lambda old, new: old.at[rows].set(jnp.stack(new).astype(old.dtype))
        links, properties = model.links, model.properties
        stiffness = self.spring_stiffness().astype(model.dtype)
        time = jnp.asarray(self.beam.material.retardation_time, model.dtype)
        new = (
            cast(links.mass, [body.mass for body in bodies]),
            cast(links.com, [body.com for body in bodies]),
            cast(links.inertia, [body.inertia for body in bodies]),
            properties.stiffness.at[places].set(stiffness),
            properties.damping.at[places].set(stiffness * time),
        )
        old = lambda m: (m.links.mass, m.links.com, m.links.inertia, m.properties.stiffness, m.properties.damping)
        return eqx.tree_at(old, model, new)

    def initial(self, model, q, v):
        return None

    def act(self, model, t, q, v: Velocity, a, state, inputs):
        return Action()

    def _bodies(self) -> list[Inertia]:
        """Inertias of the sublinks with their lumps, in their axes."""
        straight, ends = eqx.tree_at(lambda b: b.placement, self.beam, Pose.identity()), self.bar_ends
        bars = jax.vmap(straight.inertia)(ends[:, 0], ends[:, 1])
        place, onto = self.beam.placement, self.beam.placement.rotation.T
        bodies = []
        for k in range(self.sublinks + 1):
            body = jax.tree.map(lambda x: x[k], bars)  # noqa: B023
            for lump in self.lumps:
                if self.sublink_at(lump.fraction) == k:
                    body = body + lump.inertia.moved(rotation=onto).moved(self._along(lump.fraction))
            bodies.append(body.moved(-_along_x(ends[k, 0])) if k else body.moved(place.translation, place.rotation))
        return bodies

    def _along(self, fraction: float):
        return _along_x(self.beam.length * fraction)

    def _place(self, model: Model) -> Model:
        """The model with the placements of elastic joints and stations."""
        place, starts = self.beam.placement, self.bar_ends[:, 0]
        onto, ahead = matrix_to_quaternion(place.rotation), matrix_to_quaternion(place.rotation.T)
        same = jnp.zeros(4, onto.dtype).at[0].set(1.0)
        rows, quaternions, translations = [], [], []
        for k in range(1, self.sublinks + 1):
            rows.append(model.link_index(self.link_names[k]))
            quaternions.append(onto if k == 1 else same)
            step = _along_x(starts[k] - starts[k - 1])
            translations.append(place.apply(step) if k == 1 else step)
        for name, fraction in self.stations:
            k = self.sublink_at(fraction)
            rows.append(model.link_index(name))
            quaternions.append(ahead if k else same)
            step = self._along(fraction) - _along_x(starts[k])
            translations.append(step if k else place.apply(step))
        old, index = model.placements, np.array(rows)
        new = (
            old.rotation.at[index].set(jnp.stack(quaternions).astype(old.rotation.dtype)),
            old.translation.at[index].set(jnp.stack(translations).astype(old.translation.dtype)),
        )
        return eqx.tree_at(lambda m: (m.placements.rotation, m.placements.translation), model, new)

    def _places(self, model: Model, coordinates: str) -> np.ndarray:
        slices = []
        for name in self.joint_names:
            view = model.joint(name)
            if view.joint.nv != len(self.strains.names):
                raise ModelError(
                    f"flexible link {self.name!r}: joint {name!r} has {view.joint.nv} coordinates, expected "
                    f"{len(self.strains.names)} for the strains {', '.join(self.strains.names)}; the joints of a "
                    "flexible link cannot be locked: make the link flexible with fewer sublinks or strains"
                )
            slices.append(_indices(getattr(view, coordinates)))
        return np.stack(slices)


def _indices(part: slice) -> np.ndarray:
    return np.arange(part.start, part.stop)


def _along_x(distance):
    return distance * jnp.eye(3, dtype=distance.dtype)[0]
