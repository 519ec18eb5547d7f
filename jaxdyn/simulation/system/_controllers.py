"""Parts that command the inputs of the actuators: continuous or sampled controllers of the whole system."""

from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import check_shape
from jaxdyn._numerics import as_float, as_function
from jaxdyn._types import Array, Float, PyTree, Scalar
from jaxdyn.dynamics import AbstractController, Command
from jaxdyn.model import Model
from jaxdyn.simulation.system._state import State


class _Constant(AbstractController):
    inputs: Float[Array, "*batch inputs"]

    def initial(self, model, q, v):
        return None

    def command(self, model, t, state, memory):
        return Command(jnp.atleast_1d(self.inputs))


class _Path(AbstractController):
    path: diffrax.AbstractPath

    def initial(self, model, q, v):
        return None

    def command(self, model, t, state, memory):
        return Command(self.path.evaluate(jnp.clip(t, self.path.t0, self.path.t1)))


class _Law(AbstractController):
    law: Callable[[Scalar, State], Array] = eqx.field(converter=as_function)

    def initial(self, model, q, v):
        return None

    def command(self, model, t, state, memory):
        return Command(jnp.asarray(self.law(t, state), state.v.dtype))


class _Rows(AbstractController):
    """One row of a table after the other."""

    rows: Float[Array, "*batch rows inputs"] = eqx.field(converter=as_float)

    def initial(self, model, q, v):
        return jnp.zeros(())

    def command(self, model, t, state, memory):
        row = jnp.minimum(memory, self.rows.shape[0] - 1).astype(int)
        return Command(self.rows[row], memory=memory + 1)


#: a constant `(inputs,)`, a law `(t, state) -> (inputs,)`, a path over time, or a controller
ControllerInput = AbstractController | diffrax.AbstractPath | Callable[[Scalar, State], Array] | ArrayLike


def as_controller(x: ControllerInput) -> AbstractController:
    """The controller that corresponds to a constant, a law `(t, state)`, a path over time, or a controller."""
    if isinstance(x, AbstractController):
        return x
    if isinstance(x, diffrax.AbstractPath):
        return _Path(x)
    if callable(x):
        return _Law(x)
    return _Constant(jnp.atleast_1d(as_float(x)))


class Inputs(eqx.Module):
    """Inputs of the actuators of a system from a controller in continuous time.

    Arguments:

    * `controller`: a constant `(inputs,)`, a law `(t, state) -> (inputs,)` with the `State` of the whole system, a
      `diffrax.AbstractPath` over time, or an `AbstractController`, whose memory the solver integrates.

    The entries are in the order of the actuators among the parts of the system.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import DcMotor
    from jaxdyn.simulation import Inputs


    def brake(t, state):
        return -5.0 * state.v  # V


    pendulum = jd.robots.pendulum()
    motor = DcMotor(pendulum.joint_names[0], constant=0.05, resistance=1.0, gear=20.0)
    system = jd.System(pendulum, (motor, Inputs(brake)))
    path = jd.simulate(system, jnp.array([1.0]), jnp.zeros(1), jnp.array([0.0, 20.0]))
    assert abs(path.v[-1, 0]) < 1e-2
    ```
    """

    controller: AbstractController = eqx.field(converter=as_controller)

    def initial(self, model: Model, q, v) -> PyTree:
        """The initial memory of the controller."""
        return self.controller.initial(model, q, v)


class SampledInputs(eqx.Module):
    """Inputs of the actuators of a system from a controller that samples the state every `period` and holds its output.

    An output takes effect `wait` periods and `delay` seconds after its sample. Before the first output takes effect,
    the inputs are zero. The memory of a controller advances by `period * rate` at each sample.

    Arguments: `controller` as for `Inputs`; `period` and `delay` in s, `0 <= delay <= period`; `wait`, a dead time in
    whole periods.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import DcMotor
    from jaxdyn.simulation import SampledInputs


    def brake(t, state):
        return -5.0 * state.v  # V


    pendulum = jd.robots.pendulum()
    motor = DcMotor(pendulum.joint_names[0], constant=0.05, resistance=1.0, gear=20.0)
    digital = SampledInputs(brake, period=1e-2, delay=2e-3)
    path = jd.simulate(
        jd.System(pendulum, (motor,)), jnp.array([1.0]), jnp.zeros(1), jnp.array([0.0, 1.0]), inputs=digital, dt=1e-2
    )
    ```
    """

    controller: AbstractController = eqx.field(converter=as_controller)
    #: s
    period: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: s
    delay: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0)
    wait: int = eqx.field(static=True, default=0)

    def initial_queue(self, model: Model, q, v, num_inputs: int) -> tuple[Array, PyTree]:
        """Outputs that have not taken effect, all zero, and the initial memory."""
        return jnp.zeros((self.wait + 1, num_inputs), v.dtype), self.controller.initial(model, q, v)

    def sample(self, model: Model, t, state: State, waiting: Any):
        """The queue of outputs and the memory after a sample."""
        queue, memory = waiting
        command = self.controller.command(model, t, state, memory)
        new = check_shape("inputs of a controller", jnp.asarray(command.inputs, queue.dtype), queue.shape[1:])
        if command.memory is None:
            memory = jax.tree.map(lambda m, r: m + self.period * r, memory, command.rate)
        else:
            memory = command.memory
        return jnp.concatenate([queue[1:], new[None]]), memory


def held_inputs(inputs: Float[Array, "n inputs"], period: ArrayLike, delay: ArrayLike = 0.0) -> SampledInputs:
    """Piecewise constant inputs of the actuators: row k acts from `ts[0] + k period + delay` on, the last to the end.

    Arguments: `inputs` `(n, inputs)`, `period` and `delay` in s, `0 <= delay <= period`. Before the delay has passed
    the inputs are zero. Returns the source of inputs for `simulate(..., inputs=)`.
    """
    return SampledInputs(_Rows(inputs), period, delay)


#: inputs as `simulate` takes them
InputsInput = Inputs | SampledInputs | ControllerInput


def as_inputs(x: InputsInput) -> Inputs | SampledInputs:
    """The part that corresponds to an argument `inputs`."""
    return x if isinstance(x, Inputs | SampledInputs) else Inputs(x)
