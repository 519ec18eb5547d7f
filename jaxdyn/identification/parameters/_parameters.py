"""The selected parameters of a system as one vector."""

import fnmatch
from collections.abc import Callable, Iterable, Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.identification.parameters._selection import Selection, select
from jaxdyn.identification.parameters._slots import AbstractSlot, TenParameters
from jaxdyn.model import Model
from jaxdyn.simulation import System
from jaxdyn.simulation.system import as_system

#: pairs of least and greatest values, by path or by the name of a parameter
ParameterBounds = Mapping[str, tuple[float | int, float | int]]


class Parameters(eqx.Module):
    """A system and the vector of those of its parameters that a fit may change, as `collect` returns it.

    `names`, `units`, `lower`, `upper` and `scale` are in the order of the vector, `(n,)`; `read()` gives its values and
    `insert(x)` a system with others. Both are differentiable and can be compiled.

    ```python
    import jaxdyn as jd
    from jaxdyn.identification import collect

    parameters = collect(jd.robots.pendulum(damping=0.3), "joints[*].damping")
    assert parameters.units == ("N m s/rad",) and parameters.lower[0] == 0
    doubled = parameters.insert(2 * parameters.read())
    assert abs(doubled.model.properties.damping[0] - 0.6) < 1e-6
    ```
    """

    #: before the fit
    system: System
    slots: tuple[AbstractSlot, ...]
    #: each selected path with the number of its parameters
    paths: tuple[tuple[str, int], ...] = eqx.field(static=True)
    #: bounds in place of the default ones: position in the vector, least and greatest value
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
        """Least values, -inf where there is no lower bound."""
        least = np.array([x for slot in self.slots for x in slot.lower])
        for k, low, _ in self.bounds:
            least[k] = low
        return least

    @property
    def upper(self) -> np.ndarray:
        """Greatest values, inf where there is no upper bound."""
        greatest = np.full(len(self.names), np.inf)
        for k, _, high in self.bounds:
            greatest[k] = high
        return greatest

    @property
    def scale(self) -> np.ndarray:
        """Magnitudes of significant changes, for parameters whose value is zero."""
        return np.array([x for slot in self.slots for x in slot.scale])

    @property
    def inertial(self) -> np.ndarray:
        """Positions of the ten inertial parameters of each selected link, `(links, 10)`."""
        at, rows = 0, []
        for slot in self.slots:
            if isinstance(slot, TenParameters):
                rows.append(np.arange(at, at + 10))
            at += len(slot.names)
        return np.array(rows, int).reshape(-1, 10)

    @property
    def links(self) -> tuple[str, ...]:
        """The links whose ten inertial parameters are selected."""
        return tuple(slot.link for slot in self.slots if isinstance(slot, TenParameters))

    def read(self) -> Float[Array, " n"]:
        """The vector before the fit."""
        return jnp.concatenate([slot.read(self.system) for slot in self.slots])

    def insert(self, x: Float[Array, " n"]) -> System:
        """The system with the parameters x."""
        system, at = self.system, 0
        for slot in self.slots:
            system = slot.write(system, x[at : at + len(slot.names)])
            at += len(slot.names)
        return system

    def leaves_at(self, x: Float[Array, " n"]) -> tuple[list[Array], Callable[[list[Array]], System]]:
        """The leaves of `insert(x)` that depend on x, and a function that returns the system with other such leaves."""
        old, structure = jax.tree.flatten(self.system)
        new = jax.tree.leaves(self.insert(x))
        rows = [k for k, (a, b) in enumerate(zip(old, new, strict=True)) if a is not b]

        def combine(leaves: list[Array]) -> System:
            all_leaves = list(old)
            for k, leaf in zip(rows, leaves, strict=True):
                all_leaves[k] = leaf
            return jax.tree.unflatten(structure, all_leaves)

        return [new[k] for k in rows], combine


def collect(
    system: Model | System,
    selection: Selection | str | Callable[[System], Array] | Iterable[Selection | str | Callable[[System], Array]],
    bounds: ParameterBounds | None = None,
) -> Parameters:
    """The parameters of a model or system that a selection names, as one vector.

    `fit` calls this function first; call it yourself to see which parameters a selection matches.

    Arguments:

    * `system`: the robot, or a `System` around it.
    * `selection`: a `select(...)`, a path, a function to a leaf, or several of them.
    * `bounds`: pairs `(low, high)` in place of the default ones, by path (`joints[*].damping`) or by the name of a
      parameter (`m(hand)`, `m(*)`); infinite where there is none.

    Returns `Parameters`. Raises `ModelError` for paths that match nothing, parameters selected twice, bounds in the
    wrong order, and inertial parameters of links without mass.

    ```python
    import jaxdyn as jd
    from jaxdyn.identification import collect

    paths = ["links[*].mass", "joints[*].damping"]
    parameters = collect(jd.robots.pendulum(), paths, {"joints[*].damping": (0.0, 2.0)})
    assert parameters.names == ("links[rod].mass", "joints[rod_joint].damping") and parameters.upper[1] == 2.0
    ```
    """
    whole: System = jax.tree.map(jnp.asarray, as_system(system))
    if not isinstance(selection, Selection):
        items = [selection] if isinstance(selection, str) or callable(selection) else selection
        selection = select(*items)
    groups = selection.groups(whole)
    slots = tuple(slot for _, found in groups for slot in found)
    paths = tuple((text, sum(len(slot.names) for slot in found)) for text, found in groups)
    for slot in slots:
        if isinstance(slot, TenParameters) and not float(whole.model.links.mass[slot.row]) > 0:
            raise ModelError(
                f"link {slot.link!r} has no mass before the fit, but its inertia is searched near that of a body; give "
                "the link an initial guess, or leave it out of the selection"
            )
    names = [name for slot in slots for name in slot.names]
    return Parameters(whole, slots, paths, _resolve_bounds(whole, names, bounds or {}))


def _resolve_bounds(system: System, names: list[str], bounds: ParameterBounds) -> tuple[tuple[int, float, float], ...]:
    """Bounds by the position in the vector."""
    resolved: dict[int, tuple[float, float]] = {}
    for key, pair in bounds.items():
        low, high = (float(x) for x in pair)
        if not low < high:
            raise ModelError(f"bounds of {key!r} are {low:g} and {high:g}; expected the lower one first")
        if "(" in key:
            matches = fnmatch.filter(names, key)
        else:
            matches = [name for _, slots in Selection((key,)).groups(system) for slot in slots for name in slot.names]
        positions = [k for k, name in enumerate(names) if name in set(matches)]
        if not positions:
            raise ModelError(f"bounds of {key!r} name no selected parameter; the first of them is {names[0]!r}")
        resolved |= dict.fromkeys(positions, (low, high))
    return tuple((k, *resolved[k]) for k in sorted(resolved))
