"""Linear actuators without inertia."""

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._errors import ModelError, ShapeError
from jaxdyn._numerics import as_float, optional_float
from jaxdyn._types import Array, Float
from jaxdyn.actuators.contract import (
    CanonicalForm,
    PowerFlow,
    Requirement,
    inputs_of_form,
    saturate,
)
from jaxdyn.actuators.linear._vector_state import _AbstractVectorStateActuator


class LinearEffort(_AbstractVectorStateActuator):
    """A linear actuator without inertia: `tau = c x + e u`, `zdot = C x + f tau + d u`, in joint coordinates.

    `x = (q, v, z)`; z are k states of the part, which start at zero. It is the limit of `LinearActuator` for
    vanishing inertia, in which `f_2` is infinite.

    Arguments, all leaves: `joint`, the name of a joint with one velocity coordinate; `c` `(2 + k,)`; `e`; and, with
    states, `C` `(k, 2 + k)`, `f` `(k,)` and `d` `(k,)`; `input_limit`, the largest magnitude of u, or None.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import LinearEffort

    model = jd.robots.pendulum()
    valve = LinearEffort(model.joint_names[0], c=[0, -0.1, 1.0], e=0.0, C=[[0, 0, -50.0]], d=[100.0])
    system, ts = jd.System(model, (valve,)), jnp.linspace(0.0, 0.1, 3)
    run = jd.simulate(system, jnp.zeros(1), jnp.zeros(1), ts, inputs=jnp.array([2.0]))
    ```
    """

    joint: str = eqx.field(static=True)
    c: Float[Array, "*batch n"] = eqx.field(converter=as_float)
    e: Float[Array, "*batch"] = eqx.field(converter=as_float)
    C: Float[Array, "*batch k n"] | None = eqx.field(converter=optional_float, default=None)
    f: Float[Array, "*batch k"] | None = eqx.field(converter=optional_float, default=None)
    d: Float[Array, "*batch k"] | None = eqx.field(converter=optional_float, default=None)
    input_limit: Float[Array, "*batch"] | None = eqx.field(converter=optional_float, default=None, kw_only=True)
    num_inputs: int = eqx.field(static=True, default=1, init=False)
    uses_acceleration: bool = eqx.field(static=True, default=False, init=False)

    def __check_init__(self):
        k = self.c.shape[-1] - 2 if self.c.ndim else -1
        shapes = {name: None if x is None else x.shape for name, x in (("C", self.C), ("f", self.f), ("d", self.d))}
        wanted = {"C": (k, k + 2), "f": (k,), "d": (k,)} if k > 0 else {}
        wrong = any(
            shape is not None and shape[-len(wanted.get(name, ())) :] != wanted.get(name)
            for name, shape in shapes.items()
        )
        if k < 0 or wrong or (self.C is None) != (k == 0):
            raise ShapeError(
                f"a LinearEffort has c {self.c.shape} and {shapes}; expected c (2 + k,), and for k states C (k, 2 + k)"
                ", f (k,) and d (k,)"
            )

    @property
    def num_states(self) -> int:
        """Number k of the states z."""
        return self.c.shape[-1] - 2

    @property
    def joint_inertia(self):
        return None

    def initial(self, model, q, v):
        return jnp.zeros(self.num_states, v.dtype) if self.num_states else None

    def canonical_form(self, q, v, state):
        """The actuator with inertia zero."""
        z = jnp.zeros(0, self.c.dtype) if state is None else state
        x = jnp.concatenate([jnp.stack([jnp.asarray(q), jnp.asarray(v)]), z])
        zero = jnp.zeros_like(z)
        rate = zero if self.C is None else self.C @ x
        f, d = (zero if y is None else y for y in (self.f, self.d))
        return CanonicalForm(jnp.zeros_like(self.e), self.c @ x, self.e, rate, f, d)

    def act_on_joint(self, t, q, v, motion, state, inputs):
        form = self.canonical_form(motion.q, motion.v, state)
        u = self._limit(inputs[0])
        tau = form.effort + form.effort_gain * u
        rate = None if state is None else form.rate + form.rate_effort * tau + form.rate_gain * u
        return tau, rate

    def _limit(self, u):
        return u if self.input_limit is None else saturate(u, self.input_limit, jnp.zeros_like(u))

    def requirement(self, motion, rate, state):
        """The input; with one state the input is assumed to act on the state alone, `e = 0`."""
        if self.num_states > 1:
            raise ModelError(
                f"the inputs of the LinearEffort on joint {self.joint!r} do not follow from position to jerk: it has "
                f"{self.num_states} states; expected at most one; find the inputs by jaxdyn.trajopt"
            )
        u, z = inputs_of_form(self, motion, rate, jnp.zeros(1, self.c.dtype) if self.num_states else None)
        # with e != 0 the state does not follow from the effort
        u = jnp.where((self.e != 0) & (self.num_states > 0), jnp.nan, u)
        return Requirement(u[None], z, {} if self.input_limit is None else {"input": self.input_limit - jnp.abs(u)})

    def power_flow(self, model, t, q, v, a, state, inputs, input_rates=None):
        """Balance of power at the joint; the linear equations do not determine the power of the energy source."""
        k, index = self.coordinate(model)
        form = self.canonical_form(q[k], v[index], state)
        power = (form.effort + form.effort_gain * self._limit(inputs[0])) * v[index]
        zero = jnp.zeros_like(power)
        return PowerFlow(power, zero, zero, zero, zero, zero, power)

    @property
    def input_names(self) -> tuple[str, ...]:
        """The input and the joint, such as "input.elbow"."""
        return (f"input.{self.joint}",)

    @property
    def measurement_units(self) -> dict[str, str]:
        """The states, such as "state.elbow", or "state.elbow.0" if there are several."""
        num = self.num_states
        return {f"state.{self.joint}" + (f".{k}" if num > 1 else ""): "" for k in range(num)}

    @property
    def _dtype(self):
        return self.c.dtype
