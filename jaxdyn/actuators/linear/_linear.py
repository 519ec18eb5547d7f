"""Actuators with linear equations of motion."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError, ShapeError
from jaxdyn._numerics import as_float, as_function, is_concrete, optional_float
from jaxdyn._types import Array, Float, Scalar
from jaxdyn.actuators.contract import (
    CanonicalForm,
    PowerFlow,
    Requirement,
    inputs_of_form,
    saturate,
)
from jaxdyn.actuators.linear._vector_state import _AbstractVectorStateActuator


class LinearActuator(_AbstractVectorStateActuator):
    """An actuator with the equations `xdot = C x + f M + d u`, in its own coordinates (20.64, 20.74).

    `x = (s, sdot, z)`: the coordinate of the actuator, its velocity, and the further states z, which are the state of
    the part and start at zero. M is the force or torque that the actuator exerts, u its input. It drives the joint
    through a gear, `s = gear q` and `tau = gear M`, or through a mechanism `s = g(q)`, `tau = g'(q) M`. The inertia of
    the actuator is `-1 / f_2`. It is added to the model (`mount`); with a mechanism it is part of the effort, which
    then depends on the acceleration.

    Arguments, all leaves:

    * `joint`: name of a joint with one velocity coordinate.
    * `C`: `(n, n)`, n of at least 2, with the first row (0, 1, 0, ...).
    * `f`: `(n,)` with f_1 = 0 and f_2 < 0; or the number f_2, if M acts on the velocity alone.
    * `d`: `(n,)` with d_1 = 0; or a number, the last entry of d, if u acts on the last state alone.
    * `gear`: n, velocity of the actuator per velocity of the joint.
    * `mechanism`: a function g of the joint coordinate that replaces the gear, or a module whose leaves are numbers.
    * `input_limit`: largest magnitude of u; None for no limit. `saturation_width`, relative to the limit, smooths the
      corners.

    A direct-current motor with the states (angle, velocity, current):

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import LinearActuator

    J, B, R, L, K = 2e-4, 1e-4, 1.2, 2e-3, 0.06
    C = jnp.array([[0, 1, 0], [0, -B / J, K / J], [0, -K / L, -R / L]])
    model = jd.robots.pendulum()
    motor = LinearActuator(model.joint_names[0], C, f=-1 / J, d=1 / L, gear=50.0)
    system, ts = jd.System(model, (motor,)), jnp.linspace(0.0, 0.1, 3)
    run = jd.simulate(system, jnp.zeros(1), jnp.zeros(1), ts, inputs=jnp.array([12.0]))
    ```
    """

    joint: str = eqx.field(static=True)
    C: Float[Array, "*batch n n"] = eqx.field(converter=as_float)
    f: Float[Array, "*batch n"] | Float[Array, "*batch"] = eqx.field(converter=as_float)
    d: Float[Array, "*batch n"] | Float[Array, "*batch"] = eqx.field(converter=as_float)
    gear: Float[Array, "*batch"] = eqx.field(converter=as_float, default=1.0, kw_only=True)
    mechanism: Callable[[Scalar], Scalar] | None = eqx.field(converter=as_function, default=None, kw_only=True)
    input_limit: Float[Array, "*batch"] | None = eqx.field(converter=optional_float, default=None, kw_only=True)
    saturation_width: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0, kw_only=True)
    num_inputs: int = eqx.field(static=True, default=1, init=False)
    #: whether M acts on further states than the velocity; static, because f may have an axis of a batch
    couples_effort: bool = eqx.field(static=True, init=False)
    #: whether u acts on the last state alone
    drives_last_state: bool = eqx.field(static=True, init=False)

    def __init__(
        self,
        joint: str,
        C: ArrayLike | Sequence[Sequence[ArrayLike]],
        f: ArrayLike | Sequence[ArrayLike],
        d: ArrayLike | Sequence[ArrayLike],
        *,
        gear: ArrayLike = 1.0,
        mechanism: Callable[[Scalar], Scalar] | None = None,
        input_limit: ArrayLike | None = None,
        saturation_width: ArrayLike = 0.0,
    ):
        self.joint, self.C, self.f, self.d, self.gear = joint, as_float(C), as_float(f), as_float(d), as_float(gear)
        self.mechanism = as_function(mechanism)
        self.input_limit = optional_float(input_limit)
        self.saturation_width = as_float(saturation_width)
        self.num_inputs = 1
        self.couples_effort = self.f.ndim > 0
        self.drives_last_state = self.d.ndim == 0
        _check_matrices(self.C, self.f, self.d)

    @property
    def uses_acceleration(self) -> bool:
        """Whether there is a mechanism, or f acts on further states than the velocity."""
        return self.mechanism is not None or self.couples_effort

    @property
    def joint_inertia(self):
        """The inertia at the joint, `-gear^2 / f_2`; None behind a mechanism, where it depends on q."""
        return None if self.mechanism is not None else self.gear**2 * self._inertia

    def initial(self, model, q, v):
        num = self.C.shape[-1] - 2
        return jnp.zeros(num, v.dtype) if num else None

    def canonical_form(self, q, v, state):
        """The actuator in joint coordinates: `inertia = -(ds/dq)^2 / f_2`."""
        s, ratio, bend = self._geometry(q)
        z = jnp.zeros(0, s.dtype) if state is None else state
        x = jnp.concatenate([jnp.stack([s, ratio * v]), z])
        drift, inertia = self.C[1:] @ x, self._inertia
        f_z = self.f[2:] if self.couples_effort else jnp.zeros_like(z)
        d_v = jnp.zeros_like(inertia) if self.drives_last_state else self.d[1]
        d_z = jnp.zeros_like(z) if self.drives_last_state else self.d[2:]
        if self.drives_last_state and z.shape[0]:
            d_z = d_z.at[-1].set(self.d)
        elif self.drives_last_state:
            d_v = self.d
        effort = ratio * inertia * (drift[0] - bend * v**2)
        return CanonicalForm(ratio**2 * inertia, effort, ratio * inertia * d_v, drift[1:], f_z / _finite(ratio), d_z)

    def act_on_joint(self, t, q, v, motion, state, inputs):
        form = self.canonical_form(motion.q, motion.v, state)
        u = self.limit_input(inputs[0])
        effort = form.effort + form.effort_gain * u
        rate = None if state is None else form.rate + form.rate_gain * u
        if self.uses_acceleration:
            tau = effort - form.inertia * motion.a
            rate = None if rate is None else rate + form.rate_effort * tau
            effort = effort if self.mechanism is None else tau
        return effort, rate

    def limit_input(self, u) -> Array:
        """The input after saturation."""
        return (
            u if self.input_limit is None else saturate(u, self.input_limit, self.saturation_width * self.input_limit)
        )

    def requirement(self, motion, rate, state):
        num = self.C.shape[-1] - 2
        if num > 1 or (num == 1 and not self.drives_last_state):
            raise ModelError(
                f"the inputs of the LinearActuator on joint {self.joint!r} do not follow from position to jerk: it has "
                f"{num} states besides position and velocity, and d has the shape {self.d.shape}"
                "; expected at most one such state with d given as a number, the entry of the last state; otherwise "
                "find the inputs by jaxdyn.trajopt"
            )
        z = jnp.zeros(1, motion.effort.dtype) if num else None
        u, z = inputs_of_form(self, motion, rate, z, is_mounted=self.mechanism is None)
        margins = {} if self.input_limit is None else {"input": self.input_limit - jnp.abs(u)}
        return Requirement(u[None], z, margins)

    def power_flow(self, model, t, q, v, a, state, inputs, input_rates=None):
        """Balance of power at the joint; the linear equations do not determine the power of the energy source.

        The `supply` is the power of all terms of the velocity row, `stored` the rate of the kinetic energy.
        """
        k, index = self.coordinate(model)
        joint_q, joint_v = q[k], v[index]
        form = self.canonical_form(joint_q, joint_v, state)
        tau = form.effort + form.effort_gain * self.limit_input(inputs[0]) - form.inertia * a[index]
        _, ratio, bend = self._geometry(joint_q)
        stored = self._inertia * (ratio * a[index] + bend * joint_v**2) * ratio * joint_v
        zero = jnp.zeros_like(stored)
        return PowerFlow(stored + tau * joint_v, zero, zero, zero, zero, stored, tau * joint_v)

    @property
    def input_names(self) -> tuple[str, ...]:
        """The input and the joint, such as "input.elbow"."""
        return (f"input.{self.joint}",)

    @property
    def measurement_units(self) -> dict[str, str]:
        """The states, such as "state.elbow", or "state.elbow.0" if there are several."""
        num = self.C.shape[-1] - 2
        return {f"state.{self.joint}" + (f".{k}" if num > 1 else ""): "" for k in range(num)}

    @property
    def _dtype(self):
        return self.C.dtype

    @property
    def _inertia(self) -> Array:
        return -1 / (self.f[1] if self.couples_effort else self.f)

    def _geometry(self, q):
        """Coordinate of the actuator, and its first and second derivative with respect to the joint coordinate."""
        if self.mechanism is None:
            return self.gear * q, self.gear, jnp.zeros_like(self.gear)
        g: Callable[[Array], Array] = self.mechanism
        slope = lambda x: jax.jvp(g, (x,), (jnp.ones_like(x),))[1]
        return g(q), *jax.jvp(slope, (q,), (jnp.ones_like(q),))


def _finite(ratio):
    """The ratio, or a tiny number at a dead centre of the mechanism, where the ratio is zero."""
    return jnp.where(ratio == 0, jnp.finfo(jnp.result_type(ratio)).tiny, ratio)


def _check_matrices(C, f, d):
    n = C.shape[-1] if C.ndim else 0
    if C.ndim != 2 or C.shape != (n, n) or n < 2 or f.shape not in ((), (n,)) or d.shape not in ((), (n,)):
        raise ShapeError(
            f"a LinearActuator has C {C.shape}, f {f.shape} and d {d.shape}; expected C (n, n) with n of at least 2, "
            "and f and d with shape (n,) or numbers"
        )
    if not is_concrete((C, f, d)):
        return
    first, own = np.asarray(C[0]), [np.asarray(x)[0] for x in (f, d) if x.ndim]
    if not np.array_equal(first, np.eye(n)[1]) or any(own):
        raise ModelError(
            f"the first row of xdot = C x + f M + d u is {first} with entries {own} of f and d; expected (0, 1, 0, ..) "
            "and zeros: the derivative of the first state is the second"
        )
    if not np.all(np.asarray(f)[1] < 0 if f.ndim else np.asarray(f) < 0):
        raise ModelError(
            f"f is {f}; expected a negative entry for the velocity, -1 / inertia; for an actuator without inertia take "
            "LinearEffort"
        )
