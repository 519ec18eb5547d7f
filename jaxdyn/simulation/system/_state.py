"""States of a system, and a solver's representations of them."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx

from jaxdyn._errors import ModelError, check_shape
from jaxdyn._types import Array, Float, PyTree
from jaxdyn.kinematics import integrate
from jaxdyn.model import Model

if TYPE_CHECKING:
    from jaxdyn.simulation.system._system import System


def unsolved_result() -> diffrax.RESULTS:
    """The result, in diffrax's enumeration, of a step whose equations were not solved."""
    return diffrax.RESULTS.promote(optx.RESULTS.nonlinear_max_steps_reached)


class SampledState(eqx.Module):
    """State of a sampled part between its samples."""

    #: the part's state that `act` receives
    acting: PyTree
    #: the part's state after the last sample, which acts when the delay has passed
    waiting: PyTree
    #: time of the first sample, s
    start: Float[Array, "*batch"]
    #: number of samples taken
    samples: Float[Array, "*batch"]
    #: number of samples that have taken effect
    updates: Float[Array, "*batch"]


class State(eqx.Module):
    """Configuration, velocity and the states of the parts of a system.

    A rate of change is a `State` as well, with the velocity `(nv,)` in place of q and the acceleration in place of v.

    Arguments:

    * `q`: configuration, `(nq,)`.
    * `v`: velocity, `(nv,)`.
    * `parts`: a tuple with the state of each part, or None if the system has no parts.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.simulation import State, System

    system = System(jd.robots.pendulum())
    rate = system.rate(0.0, State(jnp.array([jnp.pi / 2]), jnp.zeros(1)))
    assert jnp.allclose(rate.v, -9.81)  # rad/s^2, of a point mass on a horizontal rod of 1 m
    ```
    """

    q: Float[Array, "*batch coordinates"]
    v: Float[Array, "*batch nv"]
    #: a tuple or None, and `PackedParts` in solvers; not an empty tuple, which equinox's loops take for a number
    parts: PyTree = None


class ChartedState(eqx.Module):
    """A state whose configuration is `base (+) offset`, as solvers on manifolds interpolate it."""

    base: Float[Array, "*batch coordinates"]
    offset: Float[Array, "*batch nv"]
    v: Float[Array, "*batch nv"]
    parts: PyTree

    def state(self, model: Model) -> State:
        return State(integrate(model, self.base, self.offset), self.v, self.parts)


def to_state(system: "System", y: PyTree) -> State:
    """The `State` that a solver's iterate or interpolation represents, with a tuple of states of the parts."""
    y = underlying_state(system, y)
    return State(y.q, y.v, unpack_parts(y.parts))


def underlying_state(system: "System", y: PyTree) -> State:
    """The `State` that a solver's iterate or interpolation represents, with states of parts packed as in the solver."""
    if isinstance(y, State):
        return y
    model = system.mounted_model
    while not isinstance(y, State):
        y = y.state(model)
    return y


class PackedParts(eqx.Module):
    """The continuous states of the parts as one vector, and the states of sampled parts.

    Solvers treat every array of a state separately, at each stage of each step, and a robot with seven motors has
    twenty-one. One vector shortens the program of a driven Panda by a sixth.
    """

    values: Float[Array, "*batch size"]
    #: for each part its `SampledState`, or None
    sampled: tuple[PyTree, ...]
    #: tree and shapes of the other states
    tree: PyTree = eqx.field(static=True)
    shapes: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    def unpack(self) -> tuple[PyTree, ...]:
        """The tuple of the states of the parts."""
        states = unravel(self.values, self.tree, self.shapes)
        return tuple(x if own is None else own for x, own in zip(states, self.sampled, strict=True))


def unravel(x: Float[Array, "*rows size"], tree: PyTree, shapes: tuple[tuple[int, ...], ...]) -> PyTree:
    """The pytree of a structure and shapes whose leaves follow each other in a vector, or in each row of an array."""
    ends = np.cumsum([0, *map(math.prod, shapes)])
    rows = x.shape[:-1]
    leaves = [x[..., a:b].reshape(*rows, *s) for a, b, s in zip(ends[:-1], ends[1:], shapes, strict=True)]
    return jax.tree.unflatten(tree, leaves)


def pack_parts(parts: tuple[PyTree, ...] | None) -> PyTree:
    """The states of parts with their continuous ones as one vector; the same if there are fewer than two of these."""
    if parts is None:
        return None
    is_sampled = [isinstance(x, SampledState) for x in parts]
    continuous = tuple(None if own else x for x, own in zip(parts, is_sampled, strict=True))
    leaves, tree = jax.tree.flatten(continuous)
    if len(leaves) < 2 or len({x.dtype for x in leaves}) > 1:
        return parts
    sampled = tuple(x if own else None for x, own in zip(parts, is_sampled, strict=True))
    values = jnp.concatenate([x.reshape(-1) for x in leaves])
    return PackedParts(values, sampled, tree, tuple(x.shape for x in leaves))


def unpack_parts(parts: PyTree) -> tuple[PyTree, ...] | None:
    """The tuple of the states of the parts."""
    return parts.unpack() if isinstance(parts, PackedParts) else parts


def pack_like(parts: tuple[PyTree, ...] | None, like: PyTree) -> PyTree:
    """States or rates of parts, packed if `like` is."""
    return pack_parts(parts) if isinstance(like, PackedParts) else parts


def match_part_states(parts: Sequence[PyTree], given: Sequence[PyTree], initial: Sequence[PyTree]) -> list[PyTree]:
    """The given states of the parts in the structures, shapes and precision of the initial ones; None takes the latter.

    Raises `ModelError` for another number of states or another structure, and `ShapeError` for another shape.
    """
    names = [type(part).__name__ for part in parts]
    if not isinstance(given, tuple | list) or len(given) != len(parts):
        what = f"{len(given)} states" if isinstance(given, tuple | list) else type(given).__name__
        raise ModelError(
            f"parts is {what}; expected a tuple with one state, or None, for each of the parts {names} of the system"
        )
    states = []
    for name, own, start in zip(names, given, initial, strict=True):
        if own is not None and jax.tree.structure(own) != jax.tree.structure(start):
            raise ModelError(
                f"the state of {name} has structure {jax.tree.structure(own)}; expected {jax.tree.structure(start)}"
            )
        match = lambda x, s, name=name: check_shape(f"state of {name}", jnp.asarray(x, s.dtype), s.shape)
        states.append(start if own is None else jax.tree.map(match, own, start))
    return states
