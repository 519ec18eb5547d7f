"""Parts of equal structure, evaluated together.

A robot with seven motors of one kind has one copy of the equations of the motor in its program: the leaves of the
motors are stacked, and the equations are mapped over them (`jax.vmap`).
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError, check_shape
from jaxdyn._types import Array, PyTree
from jaxdyn.actuators import AbstractJointActuator, JointMotion
from jaxdyn.dynamics import AbstractActuator, AbstractPart, AbstractSampledPart, Action
from jaxdyn.model import Model


class Point(NamedTuple):
    """The arguments that all parts of a system share at one instant."""

    #: with the inertia of the actuators
    model: Model
    t: Array
    q: Array
    v: Array
    #: accelerations, NaN where no actuator depends on them
    a: Array


class Exertion(NamedTuple):
    """The sum of the actions of several parts."""

    effort: Array
    external: Array | None
    #: the rate of the state of each part, by its index among the parts of the system
    rates: dict[int, PyTree]


class PartGroup(NamedTuple):
    """Parts that are evaluated together: one part, or several of the same structure."""

    #: places among the parts of the system
    indices: tuple[int, ...]
    parts: tuple[Any, ...]
    #: the arrays of several parts, stacked
    arrays: list[Array]
    #: the part with given arrays
    rebuild: Callable[[Sequence[Array]], Any]
    #: the joint coordinates in q and in v of actuators of one joint each
    coordinates: tuple[tuple[int, ...], tuple[int, ...]] | None

    @property
    def uses_acceleration(self) -> bool:
        """Whether the efforts of the parts depend on the acceleration."""
        return isinstance(self.parts[0], AbstractActuator) and self.parts[0].uses_acceleration

    def mount(self, model: Model) -> Model:
        """The model with the moving inertia of the parts."""
        if not isinstance(self.parts[0], AbstractActuator):
            return model
        if self.coordinates is None or len(self.parts) == 1:
            for part in self.parts:
                model = part.mount(model)
            return model
        inertias = jax.vmap(lambda arrays, _: self.rebuild(arrays).joint_inertia)(self.arrays, self._numbers)
        if inertias is None:
            return model
        armature = model.properties.armature
        added = self._sum_over_joints(inertias, model.nv).astype(armature.dtype)
        return eqx.tree_at(lambda m: m.properties.armature, model, armature + added)

    def act(
        self, point: Point, states: Sequence[PyTree], inputs: Sequence[Array | None]
    ) -> tuple[Action, list[PyTree]]:
        """The sum of the actions of the parts, and the rates of their states."""
        if len(self.parts) == 1:
            action = _act_alone(self.parts[0], point, states[0], inputs[0])
            return Action(action.effort, action.external), [action.rate]
        mapped = self.arrays, _stack(states), _stack(inputs), self._numbers
        if self.coordinates is not None:
            efforts, rates = self._act_on_joints(point, mapped)
            return Action(self._sum_over_joints(efforts, point.model.nv)), self._unstack(rates)
        action = jax.vmap(lambda arrays, x, u, _: _act_alone(self.rebuild(arrays), point, x, u))(*mapped)
        total = jax.tree.map(lambda x: jnp.sum(x, 0), (action.effort, action.external))
        return Action(*total), self._unstack(action.rate)

    def _act_on_joints(self, point: Point, mapped):
        """Efforts `(n,)` of actuators of one joint each, and stacked rates of their states."""
        in_q, in_v = (_as_slice(x) for x in self.coordinates or ((), ()))
        motion = JointMotion(point.q[in_q], point.v[in_v], point.a[in_v])

        def act(own, motion):
            arrays, x, u, _ = own
            actuator = self.rebuild(arrays)
            effort, rate = actuator.act_on_joint(point.t, point.q, point.v, motion, x, u)
            effort = check_shape(f"effort of {type(actuator).__name__}", jnp.asarray(effort), ())
            return effort, check_rate(actuator, x, rate)

        return jax.vmap(act)(mapped, motion)

    def _sum_over_joints(self, x: Array, nv: int) -> Array:
        """Numbers of the parts, added on their velocity coordinates; as a sum, which is cheaper than a scatter."""
        is_own = np.asarray((self.coordinates or ((), ()))[1])[:, None] == np.arange(nv)
        return jnp.sum(jnp.where(is_own, x[:, None], 0), 0)

    @property
    def _numbers(self) -> np.ndarray:
        """An array to map over, also where the parts have no numbers."""
        return np.arange(len(self.parts))

    def _unstack(self, tree: PyTree) -> list[PyTree]:
        take = lambda k: jax.tree.map(lambda x: jax.lax.index_in_dim(x, k, keepdims=False), tree)
        return [take(k) for k in range(len(self.parts))]


def group_parts(parts: Sequence[PyTree], model: Model) -> list[PartGroup]:
    """The parts of a system in groups of equal class, structure and shapes of their leaves, in the order of the parts.

    Actuators of one joint (`AbstractJointActuator`) with the same structure form a group on different joints. Sources
    of inputs are left out.
    """
    groups: dict[Hashable, list[int]] = {}
    flat = {}
    for k, part in enumerate(parts):
        if isinstance(part, AbstractPart | AbstractActuator | AbstractSampledPart):
            flat[k] = jax.tree.flatten(_without_joint(part))
            groups.setdefault(_key(part, k, *flat[k]), []).append(k)
    return [_make_group(indices, parts, flat, model) for indices in groups.values()]


def _make_group(indices: list[int], parts: Sequence[PyTree], flat, model: Model) -> PartGroup:
    members, (first, tree) = tuple(parts[k] for k in indices), flat[indices[0]]
    arrays, places = [], None
    if len(members) > 1:
        columns = zip(*(flat[k][0] for k in indices), strict=True)
        arrays = [jnp.stack(column) for column in columns if eqx.is_array(column[0])]
        if isinstance(members[0], AbstractJointActuator):
            q, v = zip(*(part.coordinate(model) for part in members), strict=True)
            places = q, v

    def rebuild(arrays):
        rest = iter(arrays)
        return jax.tree.unflatten(tree, [next(rest) if eqx.is_array(x) else x for x in first])

    return PartGroup(tuple(indices), members, arrays, rebuild, places)


def check_rate(part, state, rate):
    """The rate of the part's state, in its shapes and precision."""
    if jax.tree.structure(rate) != jax.tree.structure(state):
        raise ModelError(
            f"{type(part).__name__}: act returns a rate of structure {jax.tree.structure(rate)}, but its state has "
            f"{jax.tree.structure(state)}; return Action(..., rate=the time derivative of the state)"
        )
    return jax.tree.map(lambda r, x: jnp.broadcast_to(jnp.asarray(r, x.dtype), x.shape), rate, state)


def _act_alone(part, point: Point, state, inputs) -> Action:
    """The action of one part, with checked shapes."""
    model, t, q, v, a = point
    if isinstance(part, AbstractSampledPart):
        action = part.act(model, t, q, v, state.acting)
        rate = jax.tree.map(jnp.zeros_like, state)
    elif isinstance(part, AbstractActuator):
        action = part.act(model, t, q, v, a, state, inputs)
        rate = check_rate(part, state, action.rate)
    else:
        action = part.act(model, t, q, v, state)
        rate = check_rate(part, state, action.rate)
    effort, external = action.effort, action.external
    if effort is not None:
        effort = check_shape(f"effort of {type(part).__name__}", effort, (model.nv,))
    if external is not None:
        name = f"external of {type(part).__name__}"
        external = check_shape(name, external, (model.num_links, 6)).astype(v.dtype)
    return Action(effort, external, rate)


def _key(part, index: int, leaves, tree) -> Hashable:
    """Equal for parts that can be evaluated together; the index of a part that cannot be compared."""
    if isinstance(part, AbstractSampledPart):
        return index
    kinds = tuple((x.shape, str(x.dtype)) if eqx.is_array(x) else (type(x), x) for x in leaves)
    key = type(part), tree, kinds
    try:
        hash(key)
    except TypeError:
        return index
    return key


def _without_joint(part):
    """An actuator of a joint without the joint's name, on which its equations do not depend; any other part itself."""
    if not isinstance(part, AbstractJointActuator):
        return part
    copy: Any = object.__new__(type(part))
    for name, value in vars(part).items():
        object.__setattr__(copy, name, "" if name == "joint" else value)
    return copy


def _stack(trees: Sequence[PyTree]) -> PyTree:
    """Trees of equal structure as one, with stacked arrays."""
    return jax.tree.map(lambda *xs: jnp.stack(xs), *trees)


def _as_slice(indices: tuple[int, ...]):
    """Consecutive indices as a slice, which is cheaper than a gather."""
    first, last = indices[0], indices[-1]
    return slice(first, last + 1) if indices == tuple(range(first, last + 1)) else np.asarray(indices)
