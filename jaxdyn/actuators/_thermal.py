"""Heating of a motor: one or two thermal nodes with a resistance that grows with temperature."""

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Bool, Float


def _number_or_none(x):
    return None if x is None else as_float(x)


class ThermalModel(eqx.Module):
    """Temperatures of the winding and, with two nodes, of the housing of a motor.

    With the winding temperature T_w, the housing temperature T_h, the ambient temperature T_a and the resistance
    `R(T_w) = R_0 (1 + alpha (T_w - T_0))`,

        C_w dT_w/dt = R(T_w) i^2 - (T_w - T_h) / R_wh
        C_h dT_h/dt = (T_w - T_h) / R_wh + friction - (T_h - T_a) / R_ha

    With one node (`housing_capacity` None) the winding loses heat to the ambient air through `winding_resistance`, and
    friction heats the winding. The motor starts at the ambient temperature. Every field is a leaf, in SI units.
    """

    #: C_w, heat capacity of the winding, J/K
    winding_capacity: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: R_wh, thermal resistance from the winding to the housing, or to the ambient air with one node, K/W
    winding_resistance: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: C_h, heat capacity of the housing, J/K; None for one node
    housing_capacity: Float[Array, "*batch"] | None = eqx.field(converter=_number_or_none, default=None)
    #: R_ha, thermal resistance from the housing to the ambient air, K/W; None for one node
    housing_resistance: Float[Array, "*batch"] | None = eqx.field(converter=_number_or_none, default=None)
    #: T_a, ambient temperature, degrees Celsius (or any scale with steps of 1 K)
    ambient: Float[Array, "*batch"] = eqx.field(converter=as_float, default=25.0)
    #: T_0, the temperature at which the motor's resistance and torque constant are given
    reference: Float[Array, "*batch"] = eqx.field(converter=as_float, default=25.0)
    #: alpha, relative growth of the resistance per kelvin, 1/K; of copper by default
    resistance_coefficient: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.00393)
    #: relative growth of the torque constant per kelvin of the last node (the magnets), 1/K; negative for magnets
    constant_coefficient: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0)

    def __check_init__(self):
        if (self.housing_capacity is None) != (self.housing_resistance is None):
            raise ModelError(
                "a ThermalModel has one of housing_capacity and housing_resistance; give both for two nodes, or neither"
            )

    @property
    def num_nodes(self) -> int:
        """1 for the winding alone, 2 for winding and housing."""
        return 1 if self.housing_capacity is None else 2

    def initial(self, dtype) -> Float[Array, " nodes"]:
        """All nodes at the ambient temperature."""
        return jnp.full(self.num_nodes, self.ambient, dtype)

    def resistance_factor(self, temperature: Float[Array, " nodes"]) -> Float[Array, ""]:
        """`R / R_0` at the temperature of the winding."""
        return 1 + self.resistance_coefficient * (temperature[0] - self.reference)

    def constant_factor(self, temperature: Float[Array, " nodes"]) -> Float[Array, ""]:
        """Torque constant over its reference value, at the temperature of the last node."""
        return 1 + self.constant_coefficient * (temperature[-1] - self.reference)

    def rate(self, temperature: Float[Array, " nodes"], copper: ArrayLike, friction: ArrayLike):
        """Rates of the temperatures `(nodes,)`, K/s, under copper and friction losses, W."""
        winding = temperature[0]
        if self.housing_capacity is None:
            flow = (winding - self.ambient) / self.winding_resistance
            return ((copper + friction - flow) / self.winding_capacity)[None]
        housing = temperature[1]
        inner = (winding - housing) / self.winding_resistance
        outer = (housing - self.ambient) / self.housing_resistance
        return jnp.stack([(copper - inner) / self.winding_capacity, (inner + friction - outer) / self.housing_capacity])

    def heat_flow(self, temperature: Float[Array, " nodes"]) -> Float[Array, ""]:
        """Heat that the motor gives to the ambient air, W."""
        outer = self.winding_resistance if self.housing_resistance is None else self.housing_resistance
        return (temperature[-1] - self.ambient) / outer

    def steady_state(self, resistance: ArrayLike, current: ArrayLike) -> "SteadyTemperature":
        """Temperatures to which a constant current, or a fast periodic one of this root mean square, leads.

        With the thermal resistance `R_th` of all nodes to the ambient air, `i` the current (A) and `R_a` the electrical
        resistance at the ambient temperature, the winding rises by

            dT = R_th R_a i^2 / (1 - alpha' R_th R_a i^2),    alpha' = alpha R_0 / R_a

        Where the denominator is not positive, losses grow faster than the heat flow: `is_runaway` is True and the
        temperatures are infinite. `resistance` is R_0, ohm, at the reference temperature.
        """
        slope = self.resistance_coefficient * resistance * jnp.square(current)
        cold = resistance * (1 + self.resistance_coefficient * (self.ambient - self.reference)) * jnp.square(current)
        own = self.winding_resistance
        total = own if self.housing_resistance is None else own + self.housing_resistance
        margin = 1 - slope * total
        is_runaway = margin <= 0
        winding = jnp.where(is_runaway, jnp.inf, total * cold / jnp.where(is_runaway, 1, margin))
        rise = [winding]
        if self.housing_resistance is not None:
            rise.append(winding * self.housing_resistance / total)
        return SteadyTemperature(self.ambient + jnp.stack(rise, -1), jnp.stack(rise, -1), is_runaway)

    def runaway_current(self, resistance: ArrayLike) -> Float[Array, "*batch"]:
        """The root mean square of the current, A, above which the temperature grows without bound."""
        own = self.winding_resistance
        total = own if self.housing_resistance is None else own + self.housing_resistance
        return 1 / jnp.sqrt(self.resistance_coefficient * resistance * total)


class SteadyTemperature(eqx.Module):
    """Temperatures in thermal equilibrium."""

    #: temperatures of the nodes, infinite in thermal runaway
    temperature: Float[Array, "*batch nodes"]
    #: temperatures above the ambient one, K
    rise: Float[Array, "*batch nodes"]
    #: whether there is no equilibrium
    is_runaway: Bool[Array, "*batch"]
