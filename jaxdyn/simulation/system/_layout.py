"""The states of the parts of a system as one vector, with names."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float, PyTree
from jaxdyn.dynamics import AbstractActuator, AbstractRatedActuator
from jaxdyn.simulation.system._controllers import Inputs, SampledInputs
from jaxdyn.simulation.system._state import unravel
from jaxdyn.simulation.system._system import System


class PartLayout(eqx.Module):
    """The order in which the states of the parts of a system form a vector; structure only."""

    structure: Any = eqx.field(static=True)
    shapes: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    #: one per entry of the vector, such as "current.elbow"
    names: tuple[str, ...] = eqx.field(static=True)
    num_parts: int = eqx.field(static=True)

    @property
    def size(self) -> int:
        """Number of entries of the vector."""
        return len(self.names)

    def flatten(self, parts: tuple[PyTree, ...] | None, dtype) -> Float[Array, " n"]:
        """The vector of the states of the parts; entries of `parts` beyond those of the system are left out."""
        leaves = jax.tree.leaves((parts or ())[: self.num_parts])
        return jnp.concatenate([jnp.zeros(0, dtype), *(jnp.ravel(x) for x in leaves)])

    def unflatten(self, x: Float[Array, " n"]) -> tuple[PyTree, ...] | None:
        """The states of the parts from their vector."""
        return unravel(x, self.structure, self.shapes)


def part_layout(system: System, user: str) -> PartLayout:
    """The layout of a system in continuous time; `ModelError`, which names the `user`, for a part with samples."""
    if system.sampled:
        names = [type(part).__name__ for part in system.sampled]
        raise ModelError(
            f"parts {names} sample the robot, but {user} needs a system in continuous time; replace them by their "
            "continuous counterparts, such as Feedback and Inputs, or leave them out"
        )
    zeros = lambda n: jnp.zeros(n, system.model.dtype)
    parts = jax.eval_shape(lambda: system.initial(zeros(system.model.nq), zeros(system.model.nv)).parts)
    names = []
    for label, state in zip(part_labels(system), parts or (), strict=True):
        for path, leaf in jax.tree_util.tree_flatten_with_path(state)[0]:
            name = ".".join([_key_name(key) for key in path] + [label])
            names += [name] if leaf.shape == () else [f"{name}.{k}" for k in range(math.prod(leaf.shape))]
    shapes = tuple(leaf.shape for leaf in jax.tree.leaves(parts))
    return PartLayout(jax.tree.structure(parts), shapes, tuple(names), len(parts or ()))


def part_labels(system: System) -> list[str]:
    """A name for each part: its joint if it has one, otherwise its class; with its index where names repeat."""
    labels = []
    for part in system.parts:
        joint = getattr(part, "joint", None)
        own = part.controller if isinstance(part, Inputs | SampledInputs) else part
        labels.append(joint if isinstance(joint, str) else type(own).__name__)
    return [f"{x}[{k}]" if labels.count(x) > 1 else x for k, x in enumerate(labels)]


def input_names(system: System) -> tuple[str, ...]:
    """A name for each input of the actuators."""
    names = []
    for label, part in zip(part_labels(system), system.parts, strict=True):
        if isinstance(part, AbstractRatedActuator):
            names += part.input_names
        elif isinstance(part, AbstractActuator):
            several = part.num_inputs > 1
            names += [f"input.{label}.{k}" if several else f"input.{label}" for k in range(part.num_inputs)]
    return tuple(names)


def input_limits(system: System) -> tuple[Float[Array, " inputs"], Float[Array, " inputs"]]:
    """Lower and upper limits of the inputs of the actuators, infinite where an actuator states none."""
    dtype = system.model.dtype
    lower, upper = [jnp.zeros(0, dtype)], [jnp.zeros(0, dtype)]
    for part in system.parts:
        if isinstance(part, AbstractRatedActuator):
            low, high = part.input_limits()
        elif isinstance(part, AbstractActuator):
            high = jnp.full(part.num_inputs, jnp.inf, dtype)
            low = -high
        else:
            continue
        lower.append(jnp.asarray(low, dtype))
        upper.append(jnp.asarray(high, dtype))
    return jnp.concatenate(lower), jnp.concatenate(upper)


def part_limits(system: System, layout: PartLayout) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Lower and upper limits of the states of the parts as vectors, infinite where a part states none."""
    dtype = system.model.dtype
    states = layout.unflatten(jnp.full(layout.size, jnp.inf, dtype)) or ()
    limits = [
        part.state_limits(state) if isinstance(part, AbstractRatedActuator) else (_negative(state), state)
        for part, state in zip(system.parts, states, strict=True)
    ]
    lower, upper = (tuple(pair[side] for pair in limits) for side in (0, 1))
    return layout.flatten(lower, dtype), layout.flatten(upper, dtype)


def has_free_inputs(system: System) -> bool:
    """Whether the actuators of a system have inputs that no controller of the system commands."""
    return system.num_inputs > 0 and not any(isinstance(part, Inputs | SampledInputs) for part in system.parts)


def _negative(tree: PyTree) -> PyTree:
    return jax.tree.map(jnp.negative, tree)


def _key_name(key) -> str:
    for attribute in ("name", "key", "idx"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)
