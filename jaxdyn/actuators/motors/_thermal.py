"""Heating of a motor: one or two thermal nodes with a resistance that grows with temperature."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import expm
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError, ShapeError
from jaxdyn._numerics import as_float, optional_float
from jaxdyn._types import Array, Bool, Float


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
    housing_capacity: Float[Array, "*batch"] | None = eqx.field(converter=optional_float, default=None)
    #: R_ha, thermal resistance from the housing to the ambient air, K/W; None for one node
    housing_resistance: Float[Array, "*batch"] | None = eqx.field(converter=optional_float, default=None)
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
        if self.housing_capacity is None or self.housing_resistance is None:
            flow = (winding - self.ambient) / self.winding_resistance
            return ((copper + friction - flow) / self.winding_capacity)[None]
        housing = temperature[1]
        inner = (winding - housing) / self.winding_resistance
        outer = (housing - self.ambient) / self.housing_resistance
        return jnp.stack([(copper - inner) / self.winding_capacity, (inner + friction - outer) / self.housing_capacity])

    def heat_flow(self, temperature: Float[Array, " nodes"]) -> Float[Array, ""]:
        """Heat flow from the motor to the ambient air, W."""
        outer = self.winding_resistance if self.housing_resistance is None else self.housing_resistance
        return (temperature[-1] - self.ambient) / outer

    def steady_state(self, resistance: ArrayLike, current: ArrayLike) -> "SteadyTemperature":
        """Equilibrium temperatures at a constant current, or at a fast periodic current of this root mean square.

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

    def periodic_state(
        self, resistance: ArrayLike, currents: Float[Array, " n"], durations: Float[Array, " n"]
    ) -> "SteadyTemperature":
        """Periodic temperatures of a repeated duty cycle, at the start of each of its intervals.

        In an interval of constant current the rises obey a linear equation, so a cycle maps them affinely,
        `x -> E x + f`, and the periodic rise is `(1 - E)^-1 f`: exact for cycles of any length, in one step. With two
        nodes, the winding can have an extremum within an interval; divide long intervals to see it. Friction losses are
        neglected.

        Arguments: `resistance` R_0, ohm, at the reference temperature; `currents` `(n,)`, A; `durations` `(n,)`, s.

        Returns temperatures and rises `(n, nodes)`. Without a periodic state, `is_runaway` `(n,)` is True and they are
        infinite. Raises `ShapeError` unless there is one duration for each current.

        ```python
        import jax.numpy as jnp
        from jaxdyn.actuators import ThermalModel

        motor = ThermalModel(17.0, 3.0, 200.0, 6.0)
        cycle = motor.periodic_state(1.2, jnp.array([6.0, 0.0]), jnp.array([10.0, 150.0]))
        peak = cycle.temperature[1, 0]  # winding at the end of the pulse
        assert not cycle.is_runaway.any() and peak > cycle.temperature[0, 0]
        ```
        """
        currents, durations = as_float(currents), as_float(durations)
        if currents.ndim != 1 or currents.shape != durations.shape:
            raise ShapeError(
                f"a duty cycle has currents of shape {currents.shape} and durations of shape {durations.shape}; "
                "expected (n,) for both, one duration for each current"
            )
        n = self.num_nodes
        maps = jax.vmap(lambda current, time: self._map_of_interval(resistance, current, time))(currents, durations)

        def compose(before, interval):
            return interval @ before, before

        cycle, before = jax.lax.scan(compose, jnp.eye(n + 1, dtype=maps.dtype), maps)
        # E is not negative, so its spectral radius is below 1 if the leading minors of 1 - E are positive
        gap = jnp.eye(n, dtype=maps.dtype) - cycle[:n, :n]
        is_runaway = ~((gap[0, 0] > 0) & (jnp.linalg.det(gap) > 0))
        start = jnp.linalg.solve(jnp.where(is_runaway, jnp.eye(n, dtype=maps.dtype), gap), cycle[:n, n])
        rise = jnp.where(is_runaway, jnp.inf, before[:, :n, :n] @ start + before[:, :n, n])
        return SteadyTemperature(self.ambient + rise, rise, jnp.broadcast_to(is_runaway, currents.shape))

    def time_constants(self, resistance: ArrayLike = 0.0, current: ArrayLike = 0.0) -> Float[Array, " nodes"]:
        """Time constants of the temperatures at a constant current, in increasing order, s; infinite in runaway.

        They increase with the current, as the resistance grows with temperature; at zero current they describe cooling.
        """
        matrix, _ = self._linear_system(resistance, current)
        # the matrix is similar to a symmetric one, its eigenvalues are real
        if self.num_nodes == 1:
            rates = -matrix[0]
        else:
            half = jnp.trace(matrix) / 2
            spread = jnp.sqrt(((matrix[0, 0] - matrix[1, 1]) / 2) ** 2 + matrix[0, 1] * matrix[1, 0])
            rates = -jnp.stack([half - spread, half + spread])
        return jnp.where(rates > 0, 1 / jnp.where(rates > 0, rates, 1), jnp.inf)

    def rise_after(self, resistance: ArrayLike, current: ArrayLike, time: ArrayLike) -> Float[Array, " nodes"]:
        """Temperatures above the ambient one, K, after a constant current from the ambient temperature."""
        n = self.num_nodes
        return self._map_of_interval(resistance, current, time)[:n, n]

    def current_for_rise(self, resistance: ArrayLike, rise: ArrayLike, time: ArrayLike) -> Float[Array, ""]:
        """The constant current, A, that heats the winding by `rise` (K) within `time` (s) from the ambient temperature.

        By bisection, bounded by the current for a constant resistance, and one Newton step, which carries the
        derivatives.
        """
        cold = self.resistance_at_ambient(resistance)
        frozen = eqx.tree_at(lambda m: m.resistance_coefficient, self, jnp.zeros_like(self.resistance_coefficient))
        high = rise / (frozen.rise_after(cold, 1.0, time)[0])  # square of a current

        def excess(square, model=self):
            return model.rise_after(resistance, jnp.sqrt(square), time)[0] - rise

        constant = jax.lax.stop_gradient(self)
        low, high = jnp.zeros_like(high), high * jnp.ones_like(cold)

        def halve(_, bounds):
            low, high = bounds
            middle = (low + high) / 2
            # beyond runaway the rise may be infinite
            is_above = ~(excess(middle, constant) <= 0)
            return jnp.where(is_above, low, middle), jnp.where(is_above, middle, high)

        bounds = jax.lax.stop_gradient(jax.lax.fori_loop(0, 60, halve, jax.lax.stop_gradient((low, high))))
        square = (bounds[0] + bounds[1]) / 2
        slope = jax.jvp(excess, (square,), (jnp.ones_like(square),))[1]
        return jnp.sqrt(square - excess(square) / jax.lax.stop_gradient(slope))

    def resistance_at_ambient(self, resistance: ArrayLike) -> Float[Array, ""]:
        """Electrical resistance at the ambient temperature, from the one at the reference temperature, ohm."""
        return jnp.asarray(resistance * (1 + self.resistance_coefficient * (self.ambient - self.reference)))

    def _map_of_interval(self, resistance, current, time) -> Array:
        """The affine map of the rises by an interval of constant current, `(nodes + 1, nodes + 1)`."""
        matrix, heat = self._linear_system(resistance, current)
        n = self.num_nodes
        augmented = jnp.zeros((n + 1, n + 1), heat.dtype).at[:n, :n].set(matrix).at[:n, n].set(heat)
        return expm(augmented * time)

    def _linear_system(self, resistance, current) -> tuple[Array, Array]:
        """Matrix and heating of the rises, `d rise/dt = matrix rise + heating`, at a constant current."""
        square = jnp.square(jnp.asarray(current))
        feedback = self.resistance_coefficient * resistance * square
        heat = self.resistance_at_ambient(resistance) * square
        own = 1 / self.winding_resistance
        if self.housing_capacity is None or self.housing_resistance is None:
            return ((feedback - own) / self.winding_capacity)[None, None], (heat / self.winding_capacity)[None]
        winding = jnp.stack([feedback - own, own]) / self.winding_capacity
        housing = jnp.stack([own, -own - 1 / self.housing_resistance]) / self.housing_capacity
        heat = heat / self.winding_capacity
        return jnp.stack([winding, housing]), jnp.stack([heat, jnp.zeros_like(heat)])

    def runaway_current(self, resistance: ArrayLike) -> Float[Array, "*batch"]:
        """The root mean square of the current, A, above which the temperature grows without bound."""
        own = self.winding_resistance
        total = own if self.housing_resistance is None else own + self.housing_resistance
        return 1 / jnp.sqrt(self.resistance_coefficient * resistance * total)


class SteadyTemperature(eqx.Module):
    """Temperatures in thermal equilibrium, or in the periodic state of a duty cycle."""

    #: temperatures of the nodes, infinite in thermal runaway
    temperature: Float[Array, "*batch nodes"]
    #: temperatures above the ambient one, K
    rise: Float[Array, "*batch nodes"]
    #: whether there is no equilibrium
    is_runaway: Bool[Array, "*batch"]


def rms_current(currents: Float[Array, " n"], durations: Float[Array, " n"]) -> Float[Array, ""]:
    """Root mean square of the currents of a duty cycle, A, from constant currents over durations (s).

    Where a cycle is short against the time constants of a motor, its winding warms as under this constant current
    (`ThermalModel.steady_state`).
    """
    currents, durations = as_float(currents), as_float(durations)
    return jnp.sqrt(jnp.sum(currents**2 * durations) / jnp.sum(durations))
