"""Contracts of parts, which exert efforts and wrenches on a robot, and of motions, which yield its accelerations.

A *part* is a drive, a controller, a contact or an applied wrench: a small pytree whose leaves are its numbers. It may
have a state, such as a current or a filtered signal, which is integrated with the state of the robot. An *actuator* is
a part that takes inputs, brings moving inertia to the robot, and may depend on the acceleration. A *controller*
computes the inputs of the actuators from the whole state. A *motion* maps efforts and wrenches to accelerations.
Actuators, constraints and control define parts and motions; a simulation knows their contracts only.
"""

import abc
from collections.abc import Callable, Mapping

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve
from jax.typing import ArrayLike
from jaxtyping import Bool

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_function, is_concrete
from jaxdyn._types import Array, Float, PyTree, Velocity
from jaxdyn.dynamics._crba import mass_matrix
from jaxdyn.dynamics._forward_dynamics import forward_dynamics
from jaxdyn.dynamics._rnea import rnea
from jaxdyn.model import Model


class Action(eqx.Module):
    """Efforts and wrenches that a part exerts at one instant, and the rate of its state; None stands for zero."""

    #: efforts on the velocity coordinates, N m or N
    effort: Float[Array, " nv"] | None = None
    #: a wrench on every link, (moment, force) in link axes about the link's origin
    external: Float[Array, "links 6"] | None = None
    #: time derivative of the part's state, a pytree like it
    rate: PyTree = None


class AbstractPart(eqx.Module):
    """Contract of a part that acts on a robot in continuous time, with or without a state x.

    The state is a pytree of floating-point arrays: `initial` returns its initial value and `act` its derivative,
    `tau = act(t, q, v, x).effort`, `xdot = act(t, q, v, x).rate`. Efforts and wrenches of all parts of a `System` are
    added. A part implements both methods; its numbers are leaves.

    ```python
    import jax
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.dynamics import AbstractPart, Action

    class Damper(AbstractPart):
        coefficient: jax.Array

        def initial(self, model, q, v):
            return None

        def act(self, model, t, q, v, state):
            return Action(effort=-self.coefficient * v)

    model = jd.robots.pendulum()
    system = jd.System(model, parts=(Damper(jnp.array(0.1)),))
    run = jd.simulate(system, jnp.array([0.5]), jnp.zeros(1), jnp.linspace(0.0, 0.1, 3))
    ```
    """

    @abc.abstractmethod
    def initial(self, model: Model, q, v) -> PyTree:
        """Initial state of the part at the initial state (q, v) of the robot, or None if the part has no state."""

    @abc.abstractmethod
    def act(self, model: Model, t, q, v, state) -> Action:
        """Efforts, wrenches and the rate of the part's state at time t (s), `(q, v)` and the part's `state`."""


class AbstractSampledPart(eqx.Module):
    """Contract of a part that samples the robot every `period` seconds and keeps its state constant in between.

    `sample` is called at `t_k = t_0 + k period`, where t_0 is the start of the simulation. It returns the next state,
    which `act` receives from `t_k + delay` on, `0 <= delay <= period`. Integration steps end at all these instants.
    """

    #: time between two samples, s
    period: eqx.AbstractVar[ArrayLike]
    #: time from a sample until its state takes effect, s
    delay: eqx.AbstractVar[ArrayLike]

    @abc.abstractmethod
    def initial(self, model: Model, q, v) -> PyTree:
        """State of the part before its first sample, a pytree of floating-point arrays."""

    @abc.abstractmethod
    def sample(self, model: Model, t, q, v, state) -> PyTree:
        """State after a sample at time t (s)."""

    @abc.abstractmethod
    def act(self, model: Model, t, q, v, state) -> Action:
        """Efforts and wrenches at the constant `state`; the `rate` of the result is not used."""


class AbstractActuator(eqx.Module):
    """Contract of an actuator: a part with inputs, such as voltages, whose moving inertia belongs to the robot.

    A `System` moves the model that `mount` returns, so that inertias follow the leaves of the actuator. Other numbers
    of the model may follow in the same way, as those of flexible links do. With the mounted model, the inputs u and
    the state x of the actuator,

        M(q) a + h(q, v) = act(t, q, v, a, x, u).effort + ...,    xdot = act(t, q, v, a, x, u).rate

    An actuator whose effort depends on the acceleration, for example by the losses of a gear under the inertia of its
    rotor, sets `uses_acceleration`. Its effort on a coordinate may depend on the acceleration of this coordinate only,
    may not increase with it, and is piecewise smooth; the system then solves for a by Newton's method. For an actuator
    without this flag a is NaN.

    ```python
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.dynamics import AbstractActuator, Action

    class Flywheel(AbstractActuator):
        "A torque source on the first joint, with the inertia of its rotor."

        inertia: jax.Array
        num_inputs: int = eqx.field(static=True, default=1)
        uses_acceleration: bool = eqx.field(static=True, default=False)

        def initial(self, model, q, v):
            return None

        def mount(self, model):
            get = lambda m: m.properties.armature
            return eqx.tree_at(get, model, get(model).at[0].add(self.inertia))

        def act(self, model, t, q, v, a, state, inputs):
            return Action(effort=jnp.zeros_like(v).at[0].set(inputs[0]))

    system = jd.System(jd.robots.pendulum(), (Flywheel(jnp.array(0.5)),))
    ts = jnp.linspace(0.0, 0.1, 3)
    run = jd.simulate(system, jnp.zeros(1), jnp.zeros(1), ts, inputs=jnp.array([2.0]))
    ```
    """

    #: number of entries of the inputs of the system that this actuator takes
    num_inputs: eqx.AbstractVar[int]
    #: whether `act` depends on the acceleration
    uses_acceleration: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def initial(self, model: Model, q, v) -> PyTree:
        """Initial state of the actuator at the initial state (q, v) of the robot, or None."""

    @abc.abstractmethod
    def mount(self, model: Model) -> Model:
        """The model with the moving inertia of the actuator, or the model itself."""

    @abc.abstractmethod
    def act(self, model: Model, t, q, v, a, state, inputs) -> Action:
        """Efforts, wrenches and the rate of the actuator's state, on the mounted model.

        Arguments: time t (s), `(q, v)`, accelerations a `(nv,)`, the actuator's `state` and inputs `(num_inputs,)`.
        """


class AbstractRatedActuator(AbstractActuator):
    """Contract of an actuator that names its inputs and states limits of its inputs and its state.

    Names appear in messages, and `jaxdyn.trajopt.Bounds.of` takes the limits as bounds.
    """

    @property
    @abc.abstractmethod
    def input_names(self) -> tuple[str, ...]:
        """One name for each input, such as "voltage.elbow"."""

    @abc.abstractmethod
    def input_limits(self) -> tuple[Float[Array, " inputs"], Float[Array, " inputs"]]:
        """Lower and upper limits of the inputs, `(num_inputs,)`, infinite without a limit."""

    @abc.abstractmethod
    def state_limits(self, state: PyTree) -> tuple[PyTree, PyTree]:
        """Lower and upper limits of the state, pytrees like `state`, infinite without a limit."""


class AbstractMeasuredActuator(AbstractActuator):
    """Contract of an actuator with measured quantities, such as currents and temperatures, for identification.

    Names consist of a quantity and a joint, such as "current.elbow". A log holds measurements under the same names.
    """

    @property
    @abc.abstractmethod
    def measurement_units(self) -> dict[str, str]:
        """The unit of each measurement by its name."""

    @abc.abstractmethod
    def measurements(self, model: Model, t, q, v, state, inputs) -> dict[str, Float[Array, ""]]:
        """The values of all measurements, with arguments as for `act`."""

    @abc.abstractmethod
    def state_measurements(self, state: PyTree) -> dict[str, Float[Array, ""]]:
        """The measurements that are entries of the state; applied to its rate, their rates."""

    @abc.abstractmethod
    def replace_measured(self, state: PyTree, values: Mapping[str, Float[Array, ""]]) -> PyTree:
        """The state with measured values in place of the entries that `values` names."""


class Command(eqx.Module):
    """Inputs of the actuators at one instant, and how the controller's memory goes on."""

    #: voltages, currents, torques or whatever the actuators take, in the order of the parts of the system
    inputs: Float[Array, " inputs"]
    #: time derivative of the memory, a pytree like it
    rate: PyTree = None
    #: memory after a sample, for a controller in discrete time; with a `rate`, `period * rate` is added to it
    memory: PyTree = None


class AbstractController(eqx.Module):
    """Contract of a controller: inputs of the actuators from the state of the whole system and from a memory.

    The memory, for example the integral of an error, obeys `d memory / dt = command(...).rate`. In continuous time the
    solver integrates it with the state; a sampled controller advances it by `period * rate` at each sample. A
    controller in discrete time, such as a digital filter or a counter, returns the new memory, with or without a rate.
    """

    @abc.abstractmethod
    def initial(self, model: Model, q, v) -> PyTree:
        """Initial memory, a pytree of floating-point arrays, or None."""

    @abc.abstractmethod
    def command(self, model: Model, t, state, memory) -> Command:
        """Inputs and rate of the memory at time t (s); `state` has the fields `q`, `v` and `parts`."""


class AbstractMotion(eqx.Module):
    """Contract of the equations of motion: accelerations under given efforts, with or without constraints."""

    #: True if `project` changes the state
    projects: eqx.AbstractVar[bool]
    #: whether the motion obeys constraints that the model does not describe
    adds_constraints: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def check(self, model: Model) -> None:
        """Raises `ModelError` if the motion cannot be computed for this model."""

    @abc.abstractmethod
    def acceleration(self, model: Model, t, q, v, effort, external) -> Float[Array, " nv"]:
        """Accelerations `(nv,)` under efforts `(nv,)` and wrenches `(links, 6)` or None."""

    @abc.abstractmethod
    def residual(self, model: Model, t, q, v, a, effort, external) -> Float[Array, " nv"]:
        """Residual of the equations of motion, zero at the accelerations, with a regular derivative in a."""

    @property
    @abc.abstractmethod
    def has_affine_residual(self) -> bool:
        """Whether `residual` is affine in accelerations and efforts, and cheaper than `acceleration`."""

    @abc.abstractmethod
    def velocity(self, model: Model, t, q, v) -> Float[Array, " nv"]:
        """The velocity `(nv,)` with which q is integrated: v, or v with a correction towards the constraints."""

    @abc.abstractmethod
    def project(self, model: Model, t, q, v) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
        """The state `(q, v)` projected onto the constraints; applied after each step."""

    @abc.abstractmethod
    def exerted(self, model: Model, t, q, v, effort, external) -> Action:
        """Efforts and wrenches of the constraints under the given efforts and wrenches."""

    @abc.abstractmethod
    def jump(self, model: Model, t, q, impulse) -> Float[Array, " nv"]:
        """Change of v, `(nv,)`, by an impulse on the velocity coordinates, `(nv,)` in N m s or N s."""

    @abc.abstractmethod
    def violates_constraints(self, model: Model, t, q, v) -> Bool[Array, ""]:
        """Whether a state violates the constraints, as when they contradict each other or the correction failed."""


def joints_without_inertia(model: Model) -> list[str]:
    """Joints of which neither the links behind them nor their armatures have inertia; none where these are traced."""
    numbers = model.links.mass, model.links.inertia, model.properties.armature
    if not is_concrete(numbers):
        return []
    mass, inertia, armature = (np.asarray(x) for x in numbers)
    has_inertia = (mass != 0) | (inertia != 0).any((-2, -1))
    parents = np.asarray(model.topology.parents)
    for k in reversed(range(len(parents))):  # parents come first
        if parents[k] >= 0:
            has_inertia[parents[k]] |= has_inertia[k]
    views = [model.joint(name) for name in model.joint_names]
    mimics = {follower for follower, _ in model.topology.mimics}
    return [
        name
        for name, view in zip(model.joint_names, views, strict=True)
        if view.index not in mimics and not has_inertia[view.index] and (armature[view.v] == 0).any()
    ]


class FreeMotion(AbstractMotion):
    """Motion of the tree without constraints: `M(q) a + h(q, v) = effort + J^T external`.

    `method` is the algorithm that `forward_dynamics` takes: a function, or a formulation of `jaxdyn.formulations`,
    whose numbers are leaves; None takes the default. Functions are compared by identity: define them at module level
    to avoid recompilation.

    ```python
    import jaxdyn as jd
    from jaxdyn.dynamics import FreeMotion

    model = jd.robots.pendulum()
    system = jd.System(model, motion=FreeMotion(method=jd.crba_solve))
    ```
    """

    method: Callable[..., Velocity] | None = eqx.field(converter=as_function, default=None)
    projects: bool = eqx.field(static=True, default=False, init=False)
    adds_constraints: bool = eqx.field(static=True, default=False, init=False)

    def check(self, model):
        # a formulation states which models it covers, a plain function does not
        covers = getattr(self.method, "covers", None)
        reason = covers(model) if callable(covers) else None
        if reason is not None:
            raise ModelError(
                f"{type(self.method).__name__}, the method of this motion, does not cover this model: {reason}; omit "
                "the method, or choose one that covers the model, such as jaxdyn.formulations.Lagrange()"
            )
        joints = joints_without_inertia(model)
        if joints:
            raise ModelError(
                f"joints {joints} move neither mass nor inertia, so that the mass matrix is singular; give their links "
                "a mass, the joints an armature, the shaft of a transmission an inertia, or the motor that drives it a "
                "rotor_inertia"
            )

    def acceleration(self, model, t, q, v, effort, external):
        return forward_dynamics(model, q, v, effort, external, method=self.method)

    def residual(self, model, t, q, v, a, effort, external):
        return rnea(model, q, v, a, external) - effort

    @property
    def has_affine_residual(self) -> bool:
        return self.method is None

    def velocity(self, model, t, q, v):
        return v

    def project(self, model, t, q, v):
        return q, v

    def exerted(self, model, t, q, v, effort, external):
        return Action()

    def violates_constraints(self, model, t, q, v):
        return jnp.zeros((), bool)

    def jump(self, model, t, q, impulse):
        return cho_solve(cho_factor(mass_matrix(model, q)), impulse)
