"""Parts that act from outside: constant efforts, wrenches, signals over time, and continuous or sampled feedback."""

from collections.abc import Callable

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import core
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError, ShapeError, check_shape
from jaxdyn._numerics import as_float, as_function
from jaxdyn._types import Array, Config, Float, Law, Scalar, Vec6, Velocity
from jaxdyn.dynamics import AbstractPart, AbstractSampledPart, Action
from jaxdyn.model import Model
from jaxdyn.simulation.system._controllers import InputsInput, as_inputs
from jaxdyn.simulation.system._system import System


class Effort(AbstractPart):
    """Constant efforts on the velocity coordinates.

    Arguments:

    * `effort`: `(nv,)`, N m or N.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.simulation import Effort

    pendulum = jd.robots.pendulum()
    start, ts = jnp.array([jnp.pi / 2]), jnp.array([0.0, 1.0])
    balanced = jd.System(pendulum, (Effort(jnp.array([9.81])),))
    path = jd.simulate(balanced, start, jnp.zeros(1), ts, dt=0.1)
    assert jnp.allclose(path.q[-1], start)
    ```
    """

    effort: Float[Array, "*batch nv"] = eqx.field(converter=as_float)

    def initial(self, model, q, v):
        return None

    def act(self, model, t, q, v, state):
        return Action(self.effort)


class Feedback(AbstractPart):
    """Continuous feedback: the efforts `law(t, q, v)` at every instant.

    Arguments:

    * `law`: `(t, q, v) -> (nv,)`, with t in s and the efforts in N m or N. A function, or an `equinox.Module` whose
      leaves are gains. Functions are compared by identity. Define them at module level to avoid recompilation.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.simulation import Feedback


    def spring_and_damper(t, q, v):
        return -20.0 * q - 8.0 * v


    system = jd.System(jd.robots.pendulum(), (Feedback(spring_and_damper),))
    path = jd.simulate(system, jnp.array([1.0]), jnp.zeros(1), jnp.array([0.0, 5.0]))
    assert abs(path.q[-1, 0]) < 1e-3  # rad
    ```
    """

    law: Law = eqx.field(converter=as_function)

    def initial(self, model, q, v):
        return None

    def act(self, model, t, q, v, state):
        return Action(self.law(t, q, v))


class Signal(AbstractPart):
    """Efforts over time.

    Arguments:

    * `path`: a `diffrax.AbstractPath` from time (s) to efforts `(nv,)` (N m or N). `linear_signal` and `cubic_signal`
      interpolate tables.

    ```python
    import diffrax
    import jax.numpy as jnp
    from jaxdyn.simulation import Signal

    ramp = Signal(diffrax.LinearInterpolation(jnp.array([0.0, 2.0]), jnp.array([[0.0], [1.0]])))
    assert jnp.allclose(ramp.path.evaluate(0.5), 0.25)  # N m
    ```
    """

    path: diffrax.AbstractPath

    def initial(self, model, q, v):
        return None

    def act(self, model, t, q, v, state):
        return Action(self.path.evaluate(t))


def _as_wrench(x):
    return x if isinstance(x, diffrax.AbstractPath) else as_function(x) if callable(x) else as_float(x)


class Wrench(AbstractPart):
    """A wrench (moment, force) on one link, in link axes about the link's origin.

    Arguments:

    * `link`: name of the link.
    * `wrench`: a constant `(6,)` in N m and N, a law `(t, q, v) -> (6,)`, or a `diffrax.AbstractPath` over time, such
      as the `path` of a `linear_signal` of wrenches.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.simulation import Wrench

    pendulum = jd.robots.pendulum()
    push = Wrench(pendulum.link_names[-1], [0, 0, 0, 1.0, 0, 0])
    system = jd.System(pendulum, (push,))
    state = system.initial(jnp.zeros(1), jnp.zeros(1))
    assert system.action(0.0, state).external.shape == (pendulum.num_links, 6)
    ```
    """

    link: str = eqx.field(static=True)
    wrench: Float[Array, "*batch 6"] | Callable[[Scalar, Config, Velocity], Vec6] | diffrax.AbstractPath = eqx.field(
        converter=_as_wrench
    )

    def initial(self, model, q, v):
        return None

    def act(self, model, t, q, v, state):
        wrench = self.wrench
        if isinstance(wrench, diffrax.AbstractPath):
            wrench = wrench.evaluate(t)
        elif callable(wrench):
            wrench = wrench(t, q, v)
        wrench = check_shape(f"wrench on {self.link}", jnp.asarray(wrench, v.dtype), (6,))
        return Action(external=jnp.zeros((model.num_links, 6), v.dtype).at[model.link_index(self.link)].set(wrench))


def linear_signal(times: Float[Array, " n"], efforts: Float[Array, "n nv"]) -> Signal:
    """Efforts interpolated linearly between the values `efforts` at `times` (s), constant before and after."""
    times, efforts = _check_table(times, efforts)
    return Signal(_ClampedPath(diffrax.LinearInterpolation(times, efforts)))


def cubic_signal(times: Float[Array, " n"], efforts: Float[Array, "n nv"]) -> Signal:
    """Efforts interpolated by cubic Hermite polynomials with backward differences, constant before and after.

    The signal is once continuously differentiable, and causal: its value does not depend on later entries of the table
    (Morrill, Kidger, Yang and Lyons 2022, "On the choice of interpolation scheme for neural CDEs").
    """
    times, efforts = _check_table(times, efforts)
    coefficients = diffrax.backward_hermite_coefficients(times, efforts)
    return Signal(_ClampedPath(diffrax.CubicInterpolation(times, coefficients)))


class _ClampedPath(diffrax.AbstractPath):
    """A path that is constant before its start and after its end."""

    path: diffrax.AbstractPath

    @property
    def t0(self):
        return self.path.t0

    @property
    def t1(self):
        return self.path.t1

    def evaluate(self, t0, t1=None, left=True):
        return self.path.evaluate(jnp.clip(t0, self.path.t0, self.path.t1))


def _check_table(times, efforts):
    """The table as floating-point arrays of matching shapes, with increasing times."""
    times, efforts = as_float(times), as_float(efforts)
    if times.ndim != 1 or efforts.ndim != 2 or times.shape[0] != efforts.shape[0] or times.shape[0] < 2:
        raise ShapeError(
            f"a signal has times of shape {times.shape} and efforts of shape {efforts.shape}; expected (n,) and "
            "(n, nv) with n of at least 2"
        )
    if not isinstance(times, core.Tracer) and not np.all(np.diff(times) > 0):
        raise ModelError("the times of a signal do not increase; sort the rows and keep one row for each time")
    return times, efforts


class HeldSignal(AbstractSampledPart):
    """Piecewise constant efforts: row k of `efforts` `(n, nv)` acts from `ts[0] + k period` on, the last to the end.

    The signal counts from the start of the simulation, as all sampled parts do, whereas `linear_signal` and
    `cubic_signal` are functions of the time t. A `delay` shifts all rows; until it has passed, the first row acts.
    Steps of the simulation end where the efforts change, so the jumps cost no accuracy.
    """

    efforts: Float[Array, "*batch n nv"] = eqx.field(converter=as_float)
    #: s
    period: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: s
    delay: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0)

    def initial(self, model, q, v):
        return jnp.zeros(()), self.efforts[0]

    def sample(self, model, t, q, v, state):
        k, _ = state
        row = jnp.minimum(k, self.efforts.shape[0] - 1).astype(int)
        return k + 1, self.efforts[row]

    def act(self, model, t, q, v, state):
        return Action(state[1])


class SampledFeedback(AbstractSampledPart):
    """Sampled feedback: a controller that evaluates `law(t, q, v)` every `period` and holds the output in between.

    An output takes effect `wait` periods and `delay` seconds after its sample. Before the first output takes effect,
    the efforts are zero.

    Arguments:

    * `law`: `(t, q, v) -> (nv,)`, with t in s and the efforts in N m or N; see `Feedback`.
    * `period`: time between two samples, s.
    * `delay`: dead time, s, from 0 to the period.
    * `wait`: dead time in whole periods.

    `System` raises `ModelError` unless `period > 0` and `0 <= delay <= period`.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.simulation import SampledFeedback


    def spring_and_damper(t, q, v):
        return -20.0 * q - 8.0 * v


    controller = SampledFeedback(spring_and_damper, period=0.02, delay=0.005)
    start, ts = jnp.array([1.0]), jnp.array([0.0, 5.0])
    path = jd.simulate(jd.robots.pendulum(), start, jnp.zeros(1), ts, effort=controller, dt=0.02)
    assert abs(path.q[-1, 0]) < 1e-2  # rad
    ```
    """

    law: Law = eqx.field(converter=as_function)
    #: s
    period: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: s
    delay: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0)
    wait: int = eqx.field(static=True, default=0)

    def initial(self, model: Model, q, v):
        return jnp.zeros((self.wait + 1, model.nv), v.dtype)

    def sample(self, model, t, q, v, state):
        new = jnp.asarray(self.law(t, q, v), state.dtype)
        return jnp.concatenate([state[1:], new[None]])

    def act(self, model, t, q, v, state):
        return Action(state[0])


#: efforts as `simulate` takes them
EffortInput = AbstractPart | AbstractSampledPart | diffrax.AbstractPath | Law | ArrayLike


def as_part(effort: EffortInput) -> AbstractPart | AbstractSampledPart:
    """The part that corresponds to an argument `effort`: a part, a path over time, a law or a constant."""
    if isinstance(effort, AbstractPart | AbstractSampledPart):
        return effort
    if isinstance(effort, diffrax.AbstractPath):
        return Signal(effort)
    if callable(effort):
        return Feedback(effort)
    return Effort(jax.tree.map(jnp.asarray, effort))


def with_effort(system: System, effort: EffortInput | None) -> System:
    """The system with the effort as one more part; the system itself if the effort is None."""
    if effort is None:
        return system
    return System(system.model, (*system.parts, as_part(effort)), system.motion, system.passive)


def with_inputs(system: System, inputs: InputsInput | None) -> System:
    """The system with the source of its actuators' inputs as one more part; the system itself for None."""
    if inputs is None:
        return system
    return System(system.model, (*system.parts, as_inputs(inputs)), system.motion, system.passive)
