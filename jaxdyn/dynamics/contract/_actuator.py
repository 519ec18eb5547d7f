"""The contracts of actuators: parts that take inputs, bring moving inertia and may depend on the acceleration."""

import abc
from collections.abc import Mapping

import equinox as eqx

from jaxdyn._types import Array, Float, PyTree
from jaxdyn.dynamics.contract._part import Action
from jaxdyn.model import Model


class AbstractActuator(eqx.Module):
    """Contract of an actuator: a part with inputs, such as voltages, whose moving inertia belongs to the robot.

    A `System` moves the model that `mount` returns, so that inertias follow the leaves of the actuator. With the
    mounted model, the inputs u and the state x of the actuator,

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
