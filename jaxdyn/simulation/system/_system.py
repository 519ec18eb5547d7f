"""A robot with the parts that act on it, as one vector field."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError, check_instance, check_shape
from jaxdyn._types import Array, Float, PyTree
from jaxdyn.constraints import ConstrainedMotion
from jaxdyn.dynamics import (
    AbstractActuator,
    AbstractModalPart,
    AbstractMotion,
    AbstractPart,
    AbstractSampledPart,
    Action,
    FreeMotion,
    passive_forces,
)
from jaxdyn.joints import has_vector_rate
from jaxdyn.model import Model
from jaxdyn.simulation.system._acceleration import solve_acceleration
from jaxdyn.simulation.system._controllers import Inputs, SampledInputs
from jaxdyn.simulation.system._groups import Exertion, PartGroup, Point, check_rate, group_parts
from jaxdyn.simulation.system._sampling import check_timing, take_due_sample
from jaxdyn.simulation.system._state import SampledState, State, match_part_states, pack_like, unpack_parts

_PARTS = (AbstractPart, AbstractSampledPart, AbstractActuator, Inputs, SampledInputs)


class System(eqx.Module):
    """A robot, the parts that act on it, and its motion under them: one vector field with one state.

    With the efforts and wrenches of all parts and, if `passive`, the passive forces of the joints,

        effort = sum of part.act(t, q, v, x).effort + passive_forces(q, v),  a = motion.acceleration(effort, wrenches)

    The numbers of parts and model are leaves, so gains, motor constants and masses have derivatives.

    The robot moves with the inertia of its actuators, as the `mounted_model`, and with an actuator that depends on the
    acceleration the two equations are solved together.

    Arguments:

    * `model`: the robot.
    * `parts`: objects with the contract of `AbstractPart`, `AbstractSampledPart` or `AbstractActuator`, such as
      `Feedback` or a `DcMotor`, and at most one `Inputs` or `SampledInputs`, which commands the actuators.
    * `motion`: an `AbstractMotion`. By default the robot moves as the mechanism that its model describes: freely, or
      along `model.closures` if there are any.
    * `passive`: whether damping, friction and springs of the joints act.

    Raises `ModelError` if a part has none of these contracts, or a sampled part an impossible period or delay.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.simulation import Effort, Feedback


    def damping(t, q, v):
        return -0.5 * v


    system = jd.System(jd.robots.pendulum(), (Effort(jnp.array([2.0])), Feedback(damping)))
    state = system.initial(jnp.zeros(1), jnp.array([1.0]))
    assert jnp.allclose(system.action(0.0, state).effort, 1.5)  # N m
    ```
    """

    model: Model
    #: parts, actuators, and at most one source of the actuators' inputs
    parts: tuple[AbstractPart | AbstractSampledPart | AbstractActuator | Inputs | SampledInputs, ...]
    motion: AbstractMotion
    passive: bool = eqx.field(static=True)

    def __init__(
        self,
        model: Model,
        parts: tuple[PyTree, ...] = (),
        motion: AbstractMotion | None = None,
        passive: bool = True,
    ):
        self.model = model
        self.parts = parts
        self.motion = described_motion(model) if motion is None else motion
        self.passive = passive

    def __check_init__(self):
        for part in self.parts:
            if not isinstance(part, _PARTS):
                raise ModelError(
                    f"a part of a System is {type(part).__name__}, which is neither an AbstractPart nor an "
                    "AbstractSampledPart nor an AbstractActuator; wrap a function of (t, q, v) into "
                    "jaxdyn.simulation.Feedback, or one of (t, state) for the inputs of actuators into Inputs"
                )
            if isinstance(part, AbstractSampledPart | SampledInputs):
                check_timing(part)
        if sum(isinstance(part, Inputs | SampledInputs) for part in self.parts) > 1:
            raise ModelError(
                "a System has two sources of its actuators' inputs; expected at most one Inputs or SampledInputs, "
                "whose controller returns the inputs of all actuators"
            )

    @property
    def sampled(self) -> tuple[AbstractSampledPart | SampledInputs, ...]:
        """The parts with a sample rate."""
        return tuple(p for p in self.parts if isinstance(p, AbstractSampledPart | SampledInputs))

    @property
    def updates_between_steps(self) -> bool:
        """Whether samples or projections change the state between the steps of a solver."""
        return bool(self.sampled) or self.motion.projects

    @property
    def mounted_model(self) -> Model:
        """The model that moves: the robot with the inertia of its actuators."""
        return self._group_parts()[1]

    @property
    def num_inputs(self) -> int:
        """Number of inputs of all actuators."""
        return sum(part.num_inputs for part in self.parts if isinstance(part, AbstractActuator))

    @property
    def uses_acceleration(self) -> bool:
        """Whether the effort of an actuator depends on the acceleration."""
        return any(part.uses_acceleration for part in self.parts if isinstance(part, AbstractActuator))

    def initial(self, q, v, t: ArrayLike = 0.0, parts: tuple[PyTree, ...] | None = None) -> State:
        """The state at configuration q `(nq,)` and velocity v `(nv,)` at time t (s).

        The parts are in their initial states, or in the states `parts`, where None stands for an initial state. A
        `SampledState`, as in the rows of a trajectory, continues its schedule. Raises `ModelError` for states of
        another structure.
        """
        dtype = jnp.result_type(q, v)
        as_number = lambda x: jnp.asarray(x, dtype)
        model = self.mounted_model
        states = []
        for part in self.parts:
            if isinstance(part, SampledInputs):
                x = part.initial_queue(model, q, v, self.num_inputs)
            else:
                x = part.initial(model, q, v)
            x = jax.tree.map(as_number, x)
            if isinstance(part, AbstractSampledPart | SampledInputs):
                x = SampledState(x, x, as_number(t), as_number(0), as_number(0))
            states.append(x)
        if parts is not None:
            states = match_part_states(self.parts, parts, states)
        return State(q, v, tuple(states) or None)

    def inputs(self, t, state: State) -> Float[Array, " inputs"]:
        """Inputs of the actuators at time t, from the controller of the system."""
        return self._commands(self.mounted_model, t, state)[0]

    def action(
        self,
        t,
        state: State,
        *,
        inputs: Float[Array, " inputs"] | None = None,
        effort: Float[Array, " nv"] | None = None,
        acceleration: Float[Array, " nv"] | None = None,
    ) -> Action:
        """Efforts and wrenches of all parts and of the joints, and the rates of the parts' states.

        Efforts belong to the mounted model. `inputs` replace the inputs from the system's controller, `effort` is
        applied in addition, and `acceleration` is the one under which actuators act that depend on it; by default the
        acceleration of the robot under all these efforts.
        """
        return self._act_and_accelerate(*self._group_parts(), t, state, inputs, effort, acceleration)[0]

    def accelerate(
        self,
        t,
        state: State,
        *,
        inputs: Float[Array, " inputs"] | None = None,
        effort: Float[Array, " nv"] | None = None,
    ) -> tuple[Action, Float[Array, " nv"]]:
        """The `action` and the accelerations `(nv,)` of the robot under it, with the arguments of `action`."""
        return self._accelerate(*self._group_parts(), t, state, inputs, effort)

    def rate(self, t, state: State, inputs: Float[Array, " inputs"] | None = None) -> State:
        """The vector field: velocity, acceleration and the rates of the parts' states; `inputs` as in `action`."""
        groups, model = self._group_parts()
        action, a = self._accelerate(groups, model, t, state, inputs, None)
        return State(self.motion.velocity(model, t, state.q, state.v), a, action.rate)

    def sample(self, t, state: State) -> tuple[State, Array]:
        """The state after the samples that are due at time t, and whether any were due."""
        parts, due = [], jnp.asarray(False)
        packed = state.parts
        state = State(state.q, state.v, unpack_parts(packed))
        for part, x in zip(self.parts, state.parts or (), strict=True):
            if isinstance(part, AbstractSampledPart | SampledInputs):
                x, now = take_due_sample(self.mounted_model, part, t, state, x)
                due = due | now
            parts.append(x)
        return State(state.q, state.v, pack_like(tuple(parts) or None, packed)), due

    def _group_parts(self) -> tuple[list[PartGroup], Model]:
        """Groups of parts that are evaluated together, and the mounted model."""
        groups, model = group_parts(self.parts, self.model), self.model
        for group in groups:
            model = group.mount(model)
        return groups, model

    def _accelerate(self, groups, model: Model, t, state: State, inputs, applied) -> tuple[Action, Array]:
        """`accelerate` for the groups of parts and the mounted model."""
        action, a = self._act_and_accelerate(groups, model, t, state, inputs, applied)
        if not self.uses_acceleration:
            a = self.motion.acceleration(model, t, state.q, state.v, action.effort, action.external)
        return action, a

    def _act_and_accelerate(
        self, groups: list[PartGroup], model: Model, t, state: State, inputs, applied, a=None
    ) -> tuple[Action, Array]:
        """`action` for the mounted model, and the accelerations on which it depends, NaN if it depends on none."""
        packed = state.parts
        state = State(state.q, state.v, unpack_parts(packed))
        inputs, memory_rate = self._commands(model, t, state, inputs)
        at = lambda a: Point(model, t, state.q, state.v, a)
        act = lambda known, groups, a: self._act(known, groups, at(a), state.parts or (), inputs)
        effort = passive_forces(model, state.q, state.v) if self.passive else jnp.zeros_like(state.v)
        effort = effort if applied is None else effort + applied
        unknown = jnp.full_like(state.v, jnp.nan)
        # the efforts of other parts are known before the search for the acceleration
        known = Exertion(effort, None, self._source_rates(state.parts or (), memory_rate))
        known = act(known, [group for group in groups if not group.uses_acceleration], unknown)
        dependent = [group for group in groups if group.uses_acceleration]
        if a is None:
            a = self._solve(model, t, state, lambda x: act(known, dependent, x)) if dependent else unknown
        total = act(known, dependent, a)
        rates = tuple(total.rates[k] for k in range(len(self.parts))) or None
        return Action(total.effort.astype(state.v.dtype), total.external, pack_like(rates, packed)), a

    def _commands(self, model: Model, t, state: State, inputs=None) -> tuple[Array, PyTree]:
        """Inputs of all actuators, and the rate of the memory of the controller."""
        rate = None
        for part, x in zip(self.parts, state.parts or (), strict=True):
            if isinstance(part, SampledInputs):
                own = x.acting[0][0]
            elif isinstance(part, Inputs):
                command = part.controller.command(model, t, state, x)
                if command.memory is not None:
                    raise ModelError(
                        f"{type(part.controller).__name__} works in discrete time; sample it by "
                        "SampledInputs(controller, period=...)"
                    )
                own, rate = command.inputs, check_rate(part, x, command.rate)
            else:
                continue
            inputs = own if inputs is None else inputs
        if inputs is None:
            if self.num_inputs:
                raise ModelError(
                    f"the actuators of the System have {self.num_inputs} inputs, but no source commands them; give "
                    "simulate(..., inputs=...), or add jaxdyn.simulation.Inputs(...) to the parts"
                )
            return jnp.zeros(0, state.v.dtype), None
        return check_shape("inputs of the actuators", jnp.asarray(inputs, state.v.dtype), (self.num_inputs,)), rate

    def _source_rates(self, states, memory_rate) -> dict[int, PyTree]:
        """The rate of the state of the source of inputs, by its index among the parts."""
        rates = {}
        for k, part in enumerate(self.parts):
            if isinstance(part, Inputs):
                rates[k] = memory_rate
            elif isinstance(part, SampledInputs):
                rates[k] = jax.tree.map(jnp.zeros_like, states[k])
        return rates

    def _act(self, known: Exertion, groups: list[PartGroup], point: Point, states, inputs) -> Exertion:
        """The sum with the actions of further parts added to it."""
        rows = self._split_inputs(inputs)
        effort, external, rates = known.effort, known.external, dict(known.rates)
        for group in groups:
            own, own_rates = group.act(point, [states[k] for k in group.indices], [rows[k] for k in group.indices])
            rates |= dict(zip(group.indices, own_rates, strict=True))
            effort = effort if own.effort is None else effort + own.effort
            if own.external is not None:
                external = own.external if external is None else external + own.external
        return Exertion(effort, external, rates)

    def _split_inputs(self, inputs) -> list[Array | None]:
        """The inputs of each part, None for parts that are not actuators."""
        rows, used = [], 0
        for part in self.parts:
            number = part.num_inputs if isinstance(part, AbstractActuator) else None
            rows.append(None if number is None else inputs[used : used + number])
            used += number or 0
        return rows

    def _solve(self, model: Model, t, state: State, act: Callable[[Array], Exertion]) -> Float[Array, " nv"]:
        """Accelerations of the robot under actuators that depend on them."""

        def efforts(a):
            total = act(a)
            return total.effort, total.external

        def accelerate(armature, effort, external):
            heavier = eqx.tree_at(lambda m: m.properties.armature, model, model.properties.armature + armature)
            return self.motion.acceleration(heavier, t, state.q, state.v, effort, external)

        return solve_acceleration(efforts, accelerate, state.v)


def as_system(system: Model | System) -> System:
    """The system itself, or the system of a model without parts."""
    check_instance("system", system, (Model, System), "pass the robot, or jaxdyn.System(model, parts)")
    return System(system) if isinstance(system, Model) else system


def in_modes(system: System, modes: PyTree) -> System:
    """The system with its motion, and the parts that know of modes, in the given modes; the same without modes."""
    if modes is None:
        return system
    motion: Any = system.motion
    parts = tuple(p.in_modes(modes) if isinstance(p, AbstractModalPart) else p for p in system.parts)
    return System(system.model, parts, motion.in_modes(modes), system.passive)


def described_motion(model: Model) -> AbstractMotion:
    """The motion along the closures of the model, or the free motion if there are none."""
    constrained: Any = ConstrainedMotion
    return constrained() if model.closures else FreeMotion()


def has_vector_coordinates(model: Model) -> bool:
    """Whether `qdot = v`, so that the configuration manifold is a vector space."""
    return all(has_vector_rate(joint) for joint in model.joints)
