"""Hydraulic and pneumatic servo cylinders."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._numerics import as_float, as_function, optional_float
from jaxdyn._types import Array, Float, Scalar
from jaxdyn.actuators.contract import PowerFlow
from jaxdyn.actuators.linear._linear import LinearActuator
from jaxdyn.actuators.linear._vector_state import _AbstractVectorStateActuator


class _AbstractCylinder(_AbstractVectorStateActuator):
    """A servo valve with a symmetric cylinder, as a linear actuator with the load pressure as a state."""

    piston_area: eqx.AbstractVar[Array]
    flow_gain: eqx.AbstractVar[Array]
    flow_pressure: eqx.AbstractVar[Array]
    mass: eqx.AbstractVar[Array]
    viscous: eqx.AbstractVar[Array]
    lever: eqx.AbstractVar[Array]
    mechanism: eqx.AbstractVar[Callable[[Scalar], Scalar] | None]

    @property
    @abc.abstractmethod
    def _stiffness(self) -> Array:
        """Rate of the load pressure per flow, `4 beta / V`, Pa/m^3."""

    @property
    def equivalent(self) -> LinearActuator:
        """The same actuator as matrices."""
        k = self._stiffness
        zero, one = jnp.zeros_like(k), jnp.ones_like(k)
        C = jnp.stack(
            [
                jnp.stack([zero, one, zero]),
                jnp.stack([zero, -self.viscous / self.mass, self.piston_area / self.mass]),
                jnp.stack([zero, -k * self.piston_area, -k * self.flow_pressure]),
            ]
        )
        options: dict[str, Any] = {"gear": self.lever, "mechanism": self.mechanism, "input_limit": self.input_limit}
        return LinearActuator(self.joint, C, -1 / self.mass, k * self.flow_gain, **options)

    @property
    def uses_acceleration(self) -> bool:
        """Whether there is a mechanism."""
        return self.mechanism is not None

    @property
    def joint_inertia(self):
        """The mass of the piston at the joint, `r^2 m`; None behind a mechanism, where it depends on q."""
        return self.equivalent.joint_inertia

    def initial(self, model, q, v):
        return jnp.zeros(1, v.dtype)

    def canonical_form(self, q, v, state):
        return self.equivalent.canonical_form(q, v, state)

    def act_on_joint(self, t, q, v, motion, state, inputs):
        return self.equivalent.act_on_joint(t, q, v, motion, state, inputs)

    def requirement(self, motion, rate, state):
        """The jerk determines the input through the rate of the load pressure."""
        return self.equivalent.requirement(motion, rate, state)

    def power_flow(self, model, t, q, v, a, state, inputs, input_rates=None):
        """Balance of power; `supply` is `k_q u p`, `copper_loss` the heat `k_c p^2` of leaks and valve."""
        actuator = self.equivalent
        k, index = self.coordinate(model)
        position = q[k]
        form = actuator.canonical_form(position, v[index], state)
        speed, acceleration = self._piston(position, v[index], a[index])
        p, u = state[0], actuator.limit_input(inputs[0])
        leak = self.flow_pressure * p
        compression = (self.flow_gain * u - leak - self.piston_area * speed) * p  # = p dp/dt / stiffness
        kinetic = self.mass * acceleration * speed
        mechanical = (form.effort - form.inertia * a[index]) * v[index]
        zero = jnp.zeros_like(kinetic)
        friction = self.viscous * speed**2
        return PowerFlow(self.flow_gain * u * p, leak * p, zero, friction, zero, compression + kinetic, mechanical)

    @property
    def input_names(self) -> tuple[str, ...]:
        """The opening of the valve and the joint, such as "valve.boom"."""
        return (f"valve.{self.joint}",)

    @property
    def measurement_units(self) -> dict[str, str]:
        """The load pressure, such as "load_pressure.boom"."""
        return {f"load_pressure.{self.joint}": "Pa"}

    @property
    def _dtype(self):
        return self.piston_area.dtype

    def _piston(self, q, v, a):
        """Velocity and acceleration of the piston."""
        if self.mechanism is None:
            return self.lever * v, self.lever * a
        g: Callable[[Array], Array] = self.mechanism
        speed = lambda x, w: jax.jvp(g, (x,), (w,))[1]
        return jax.jvp(speed, (q, v), (v, a))


class HydraulicCylinder(_AbstractCylinder):
    """An electrohydraulic servo valve with a symmetric cylinder, linearised about the middle of the stroke.

        m sdd = A p - B sdot - F,    V / (4 beta) dp/dt = k_q u - k_c p - A sdot

    s is the position of the piston, p the load pressure, which is the state and starts at zero, u the input of the
    valve and F the force on the robot (Merritt 1967, "Hydraulic control systems"). The piston drives a prismatic joint,
    or a revolute one through a lever r, `tau = r F`, `sdot = r v`; or any joint through a `mechanism` `s = g(q)`. The
    moving mass is added to the robot, `r^2 m` at the joint.

    Arguments: `joint`, the name of a joint with one velocity coordinate, and the fields below, all leaves.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import HydraulicCylinder

    model = jd.robots.pendulum()
    numbers = {"piston_area": 1e-3, "volume": 4e-4, "bulk_modulus": 1e9, "flow_gain": 1e-3, "flow_pressure": 1e-11}
    cylinder = HydraulicCylinder(model.joint_names[0], **numbers, mass=2.0, viscous=100.0, lever=0.1)
    system, ts = jd.System(model, (cylinder,)), jnp.linspace(0.0, 0.02, 3)
    run = jd.simulate(system, jnp.zeros(1), jnp.zeros(1), ts, inputs=jnp.array([0.1]))
    ```
    """

    joint: str = eqx.field(static=True)
    #: A, m^2
    piston_area: Float[Array, "*batch"] = eqx.field(converter=as_float, kw_only=True)
    #: V, of the oil in both chambers and lines, m^3
    volume: Float[Array, "*batch"] = eqx.field(converter=as_float, kw_only=True)
    #: beta, of the oil, Pa
    bulk_modulus: Float[Array, "*batch"] = eqx.field(converter=as_float, kw_only=True)
    #: k_q, flow per input, m^3/s
    flow_gain: Float[Array, "*batch"] = eqx.field(converter=as_float, kw_only=True)
    #: k_c, flow-pressure coefficient of valve and leaks, m^3/(s Pa)
    flow_pressure: Float[Array, "*batch"] = eqx.field(converter=as_float, kw_only=True)
    #: m, of piston, rod and moving oil, kg
    mass: Float[Array, "*batch"] = eqx.field(converter=as_float, kw_only=True)
    #: B, of piston and seals, N s/m
    viscous: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0, kw_only=True)
    #: r, displacement of the piston per joint coordinate, m/rad or 1
    lever: Float[Array, "*batch"] = eqx.field(converter=as_float, default=1.0, kw_only=True)
    #: g of a mechanism `s = g(q)`, which replaces the lever
    mechanism: Callable[[Scalar], Scalar] | None = eqx.field(converter=as_function, default=None, kw_only=True)
    #: largest magnitude of u; None for no limit
    input_limit: Float[Array, "*batch"] | None = eqx.field(converter=optional_float, default=None, kw_only=True)
    num_inputs: int = eqx.field(static=True, default=1, init=False)

    @property
    def _stiffness(self):
        return 4 * self.bulk_modulus / self.volume


class PneumaticCylinder(_AbstractCylinder):
    """A pneumatic servo valve with a symmetric cylinder, linearised about the middle of the stroke.

        m sdd = A p - B sdot - F,    V / (4 kappa p_0) dp/dt = k_q u - k_c p - A sdot

    The equations of `HydraulicCylinder` with the bulk modulus `kappa p_0` of the air at the mean absolute pressure p_0,
    with kappa = 1 for isothermal and 1.4 for adiabatic changes; the stiffness is lower by three orders of magnitude.

    Arguments: `joint`, the name of a joint with one velocity coordinate, and the fields below, all leaves.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import PneumaticCylinder

    model = jd.robots.pendulum()
    numbers = {"piston_area": 1e-3, "volume": 4e-4, "pressure": 6e5, "flow_gain": 5e-3, "flow_pressure": 1e-9}
    cylinder = PneumaticCylinder(model.joint_names[0], **numbers, mass=1.0, viscous=50.0, lever=0.1)
    system, ts = jd.System(model, (cylinder,)), jnp.linspace(0.0, 0.02, 3)
    run = jd.simulate(system, jnp.zeros(1), jnp.zeros(1), ts, inputs=jnp.array([0.1]))
    ```
    """

    joint: str = eqx.field(static=True)
    #: A, m^2
    piston_area: Float[Array, "*batch"] = eqx.field(converter=as_float, kw_only=True)
    #: V, of the air in both chambers and lines, m^3
    volume: Float[Array, "*batch"] = eqx.field(converter=as_float, kw_only=True)
    #: p_0, mean absolute pressure of the chambers, Pa
    pressure: Float[Array, "*batch"] = eqx.field(converter=as_float, kw_only=True)
    #: kappa, 1 for isothermal and 1.4 for adiabatic changes of air
    polytropic_exponent: Float[Array, "*batch"] = eqx.field(converter=as_float, default=1.4, kw_only=True)
    #: k_q, flow per input, m^3/s
    flow_gain: Float[Array, "*batch"] = eqx.field(converter=as_float, kw_only=True)
    #: k_c, flow-pressure coefficient of valve and leaks, m^3/(s Pa)
    flow_pressure: Float[Array, "*batch"] = eqx.field(converter=as_float, kw_only=True)
    #: m, of piston and rod, kg
    mass: Float[Array, "*batch"] = eqx.field(converter=as_float, kw_only=True)
    #: B, of piston and seals, N s/m
    viscous: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0, kw_only=True)
    #: r, displacement of the piston per joint coordinate, m/rad or 1
    lever: Float[Array, "*batch"] = eqx.field(converter=as_float, default=1.0, kw_only=True)
    #: g of a mechanism `s = g(q)`, which replaces the lever
    mechanism: Callable[[Scalar], Scalar] | None = eqx.field(converter=as_function, default=None, kw_only=True)
    #: largest magnitude of u; None for no limit
    input_limit: Float[Array, "*batch"] | None = eqx.field(converter=optional_float, default=None, kw_only=True)
    num_inputs: int = eqx.field(static=True, default=1, init=False)

    @property
    def _stiffness(self):
        return 4 * self.polytropic_exponent * self.pressure / self.volume
