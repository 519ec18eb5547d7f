"""Dynamic control of driven robots: nominal inputs of the actuators, and feedback of the error on the inputs."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Bool, Float, PyTree
from jaxdyn.control import DesiredMotion, Reference, as_reference, desired_motion
from jaxdyn.dynamics import AbstractController, Command
from jaxdyn.kinematics import difference
from jaxdyn.model import Model
from jaxdyn.simulation.drives._joint_actuators import joint_actuators
from jaxdyn.simulation.drives._required_inputs import RequiredInputs, required_inputs
from jaxdyn.simulation.system import State, System, has_free_inputs, has_vector_coordinates, part_layout

#: a number, one number for each input, or a matrix
Gain = Float[Array, "..."]


class AbstractNominal(eqx.Module):
    """Contract of nominal control: the inputs under which a driven robot follows a reference motion."""

    @abc.abstractmethod
    def target(self, model: Model, t) -> DesiredMotion:
        """The desired motion at time t (s)."""

    @abc.abstractmethod
    def inputs(self, t, state: State) -> Float[Array, " inputs"]:
        """The nominal inputs `(inputs,)` at time t (s) and the measured state."""

    @property
    @abc.abstractmethod
    def columns(self) -> tuple[int, ...]:
        """The velocity coordinate that each input drives."""


class StoredNominal(AbstractNominal):
    """Nominal inputs from a table: scheme (a) of figure 20.10, computed off line by `store_nominal`.

    Between rows, inputs and motion are cubic Hermite polynomials with the derivatives of the table, and constant
    outside of it.
    """

    #: increasing times, s
    times: Float[Array, " rows"]
    #: value and time derivative of (q, v, a, inputs) in each row
    table: tuple[PyTree, PyTree]
    #: whether the motion exceeds a limit of an actuator in a row
    is_saturated: Bool[Array, "rows actuators"]
    #: states of the parts in the rows, such as the currents that the motion needs
    parts: tuple[PyTree, ...] | None
    driven: tuple[int, ...] = eqx.field(static=True)

    @property
    def columns(self):
        return self.driven

    @property
    def saturated_times(self) -> np.ndarray:
        """The times (s) at which the motion exceeds a limit, so that the robot cannot follow; for concrete values."""
        return np.asarray(self.times)[np.asarray(self.is_saturated).any(-1)]

    def initial_parts(self) -> tuple[PyTree, ...] | None:
        """The states of the parts in the first row, with which the robot starts on the reference."""
        return jax.tree.map(lambda x: x[0], self.parts)

    def target(self, model, t):
        q, v, a, _ = self._at(t)
        is_inside = (t >= self.times[0]) & (t <= self.times[-1])
        return DesiredMotion(q, jnp.where(is_inside, v, 0), jnp.where(is_inside, a, 0))

    def inputs(self, t, state):
        return self._at(t)[3]

    def _at(self, t):
        times = self.times
        t = jnp.clip(jnp.asarray(t, times.dtype), times[0], times[-1])
        k = jnp.clip(jnp.searchsorted(times, t, side="right") - 1, 0, times.shape[0] - 2)
        h = times[k + 1] - times[k]
        s = (t - times[k]) / h

        def hermite(y, rate):
            change, first, last = y[k + 1] - y[k], h * rate[k], h * rate[k + 1]
            return y[k] + s * (first + s * (3 * change - 2 * first - last + s * (first + last - 2 * change)))

        return jax.tree.map(hermite, *self.table)


class MeasuredNominal(AbstractNominal):
    """Nominal inputs on line, at the measured configuration and velocity: scheme (b) of figure 20.10.

    `u*(q, v, a_d, jerk_d)` by `required_inputs`, with the states of the parts that the motion does not determine, such
    as temperatures, as measured.
    """

    system: System
    reference: Reference = eqx.field(converter=as_reference)

    def __check_init__(self):
        _check_system(self.system, "MeasuredNominal")

    @property
    def columns(self):
        return _driven_columns(self.system)

    def target(self, model, t):
        return desired_motion(model, self.reference, t)

    def inputs(self, t, state):
        return self.required(t, state).inputs

    def required(self, t, state: State) -> RequiredInputs:
        """Nominal inputs, currents and margins at time t (s) and the measured state."""
        model, count = self.system.model, len(self.system.parts)
        target, jerk = _motion_and_jerk(model, self.reference, t)
        return required_inputs(self.system, t, state.q, state.v, target.a, jerk, parts=(state.parts or ())[:count])


def store_nominal(
    system: System, reference: PyTree, times: Float[Array, " rows"], *, parts: tuple[PyTree, ...] | None = None
) -> StoredNominal:
    """Tabulates a reference motion and the inputs that it requires, with their time derivatives, at `times` (s).

    The reference has to be four times differentiable for actuators with an inductance, as a `PathReference` of a smooth
    function is. `parts` are the states of the parts that the motion does not determine, such as temperatures. The rows
    `is_saturated` report where the motion exceeds a limit of an actuator.
    """
    _check_system(system, "store_nominal")
    if not has_vector_coordinates(system.model):
        raise ModelError(
            "store_nominal interpolates configurations as vectors, but the robot has joints with quaternions; replace "
            "them by joints with angles, such as SphericalZYX, or use MeasuredNominal"
        )
    return _store(system, as_reference(reference), as_float(times), parts, _driven_columns(system))


@eqx.filter_jit
def _store(system: System, reference, times, parts, columns) -> StoredNominal:
    model = system.model

    def row(t):
        motion, jerk = _motion_and_jerk(model, reference, t)
        required = required_inputs(system, t, *motion, jerk, parts=parts)
        return (*motion, required.inputs), (required.is_saturated, required.parts)

    values, rates, (saturated, states) = jax.vmap(lambda t: jax.jvp(row, (t,), (jnp.ones_like(t),), has_aux=True))(
        times
    )
    return StoredNominal(times, (values, rates), saturated, states, columns)


class InputFeedback(AbstractController):
    """Dynamic control of a driven robot: nominal inputs, and feedback of the error on the inputs.

        u = u* + K_p e + K_d edot + K_i integral of e,    e = q_d (-) q

    Figure 20.10 of Vukobratovic and Potkonjak 2002, with u* from a table (`store_nominal`) or from the measured state
    (`MeasuredNominal`). It works in `Inputs` and in `SampledInputs`. Arguments: `nominal`, and gains in V/rad, V s/rad
    and V/(rad s) for voltages, each a number, one number for each input, or a matrix; `limit`, the largest input,
    beyond which the integral is not increased.

    With a perfect model, a start on the reference and no saturation the robot follows it. With u* from the measured
    state and without inductance the error obeys

        H* eddot + D (K_d edot + K_p e + K_i integral of e) = 0,    D = diag(n C_M / R),    H* = H + diag(n^2 J);

    with u* from a table the back-EMF damps the error in addition, `D K_d + diag(n^2 C_M C_E / R)` (20.71).

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import DcMotor
    from jaxdyn.control import PathReference
    from jaxdyn.simulation import InputFeedback, store_nominal

    pendulum = jd.robots.pendulum()
    motor = DcMotor(pendulum.joint_names[0], constant=0.05, resistance=1.0, gear=20.0)
    system = jd.System(pendulum, (motor,))
    swing, ts = PathReference(lambda t: (1 - jnp.cos(2 * t))[None]), jnp.linspace(0.0, 1.0, 101)
    control = InputFeedback(store_nominal(system, swing, ts), kp=50.0, kd=5.0)
    path = jd.simulate(system, jnp.zeros(1), jnp.zeros(1), ts, inputs=control)
    assert abs(path.q[-1, 0] - (1 - jnp.cos(2.0))) < 1e-5  # rad
    ```
    """

    nominal: AbstractNominal
    kp: Gain = eqx.field(converter=as_float)
    kd: Gain = eqx.field(converter=as_float)
    ki: Gain = eqx.field(converter=as_float, default=0.0)
    limit: Float[Array, "..."] | None = eqx.field(converter=lambda x: None if x is None else as_float(x), default=None)

    def initial(self, model, q, v):
        """The integral of the error, one entry for each input."""
        return jnp.zeros(len(self.nominal.columns), v.dtype)

    def command(self, model, t, state, memory):
        columns = np.array(self.nominal.columns, int)
        target = self.nominal.target(model, t)
        e = difference(model, state.q, target.q)[columns]
        rate = (target.v - state.v)[columns]
        u = self.nominal.inputs(t, state) + _apply(self.kp, e) + _apply(self.kd, rate) + _apply(self.ki, memory)
        if self.limit is None:
            return Command(u, e)
        limited = jnp.clip(u, -self.limit, self.limit)
        winds_up = (u - limited) * _apply(self.ki, e) > 0
        return Command(limited, jnp.where(winds_up, 0, e))


def _apply(gain, error):
    return gain @ error if jnp.ndim(gain) == 2 else gain * error


def _motion_and_jerk(model: Model, reference, t):
    acceleration = lambda t: desired_motion(model, reference, t).a
    return desired_motion(model, reference, t), jax.jvp(acceleration, (t,), (jnp.ones_like(t),))[1]


def _driven_columns(system: System) -> tuple[int, ...]:
    """The velocity coordinate that each input drives."""
    drives = joint_actuators(system, system.model)
    return tuple(x.v for x in drives for _ in range(x.actuator.num_inputs))


def _check_system(system: System, user: str):
    part_layout(system, user)
    if not has_free_inputs(system):
        raise ModelError(
            f"{user} needs a system whose actuators have inputs and that has no controller; leave Inputs(...) out of "
            "its parts, and give the controller to simulate(..., inputs=)"
        )
