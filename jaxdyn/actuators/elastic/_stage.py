"""Stages of elastic transmissions."""

import math
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import as_float, optional_float
from jaxdyn._types import Array, Float, Scalar
from jaxdyn.actuators.elastic._hysteresis import BoucWen
from jaxdyn.actuators.elastic._springs import AbstractSpring, Backlash, LinearSpring, as_spring, number_or_spring


class Stage(eqx.Module):
    """A stage of a transmission: two rigid gears and a torsion spring behind them.

    With the angles `theta_in` of its input and `theta_out` of its output shaft, the deflection
    `x = theta_in / N - theta_out` gives the output torque `T = c x + d xdot`; the input shaft, whose inertia is
    `I' + I'' / N^2`, bears `-T / N` (M. Vukobratovic and V. Potkonjak, "Robot Dynamics", in a CRC handbook, 2002,
    equations 20.98 and 20.99, which lack a dot each; Spong 1987). A belt or chain over pulleys of radii r_1, r_2
    with strands of stiffness k is a stage with `N = r_2 / r_1` and `c = 2 k r_2^2`.

    Fields are leaves, None is structure. A later stage whose two inertias are None has a shaft without inertia, which
    is eliminated: its spring and the spring of the preceding stage act in series.

    ```python
    from jaxdyn.actuators import Backlash, CubicSpring, Stage

    belt = Stage(ratio=4.0, stiffness=40.0, input_inertia=1e-5, output_inertia=1e-4)
    harmonic = Stage(100.0, CubicSpring(8e3, 4e8), damping=2.0, input_inertia=3e-5, backlash=Backlash(1e-4, 2e-5))
    ```
    """

    #: N, turns of the input shaft per turn of the output shaft; rad/m where the output is a length
    ratio: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: c at the output, N m/rad or N/m: a number, or a spring law
    stiffness: Float[Array, "*batch"] | AbstractSpring = eqx.field(converter=number_or_spring)
    #: d at the output, N m s/rad or N s/m
    damping: Float[Array, "*batch"] | None = eqx.field(converter=optional_float, default=None)
    #: I', of the input shaft with its gear and, unless an actuator brings it, the rotor, kg m^2
    input_inertia: Float[Array, "*batch"] | None = eqx.field(converter=optional_float, default=None)
    #: I'', of the output gear before the spring, kg m^2 or kg
    output_inertia: Float[Array, "*batch"] | None = eqx.field(converter=optional_float, default=None)
    #: gap between the gears
    backlash: Backlash | None = None
    #: hysteretic torque in parallel with the spring
    hysteresis: BoucWen | None = None

    @property
    def spring(self) -> AbstractSpring:
        """The spring law."""
        return as_spring(self.stiffness)

    @property
    def has_inertia(self) -> bool:
        """Whether the input shaft has an inertia."""
        return self.input_inertia is not None or self.output_inertia is not None

    @property
    def is_linear(self) -> bool:
        """Whether the spring is linear, without backlash or hysteresis."""
        return isinstance(self.spring, LinearSpring) and self.backlash is None and self.hysteresis is None

    @property
    def shaft_inertia(self) -> Scalar:
        """Inertia of the input shaft, `I' + I'' / N^2`, kg m^2."""
        own = jnp.zeros_like(self.ratio) if self.input_inertia is None else self.input_inertia
        return own if self.output_inertia is None else own + self.output_inertia / self.ratio**2

    def torque(self, x: Scalar, rate: Scalar, z: Scalar | None) -> Scalar:
        """Output torque at a deflection, its rate and the state z of the hysteresis, N m or N."""
        g, slope = (x, 1.0) if self.backlash is None else self.backlash.engage(x)
        torque = self.spring.torque(g)
        if self.hysteresis is not None and z is not None:
            torque = torque + self.hysteresis.torque(z)
        if self.damping is not None:
            torque = torque + self.damping * slope * rate
        if self.backlash is None:
            return torque
        pushing = jnp.where(g > 0, jnp.maximum(torque, 0), jnp.where(g < 0, jnp.minimum(torque, 0), 0))
        return slope * pushing

    def energy(self, x: Scalar, z: Scalar | None) -> Scalar:
        """Stored energy, J."""
        g = x if self.backlash is None else self.backlash.engage(x)[0]
        energy = self.spring.energy(g)
        return energy if self.hysteresis is None or z is None else energy + self.hysteresis.energy(z)

    def hysteresis_rate(self, x: Scalar, rate: Scalar, z: Scalar) -> Scalar:
        """Time derivative of the state of the hysteresis, 1/s."""
        slope = 1.0 if self.backlash is None else self.backlash.engage(x)[1]
        return jnp.zeros_like(z) if self.hysteresis is None else self.hysteresis.rate(z, slope * rate)


def equivalent_stages(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """The stages with those in series merged, one for each shaft with inertia.

    `1 / c = 1 / c_K + sum of 1 / (c_k prod_{m > k} N_m^2)`. The damping of the last stage acts on the total deflection.
    """
    groups: list[list[Stage]] = []
    for stage in stages:
        if groups and not stage.has_inertia:
            groups[-1].append(stage)
        else:
            groups.append([stage])
    return tuple(group[0] if len(group) == 1 else _series(group) for group in groups)


def _series(group: list[Stage]) -> Stage:
    compliance, ratio = 0.0, 1.0
    for stage in reversed(group):
        compliance = compliance + stage.spring.deflection(jnp.ones_like(stage.ratio)) / ratio**2
        ratio = ratio * stage.ratio
    first, last = group[0], group[-1]
    return Stage(ratio, 1 / compliance, last.damping, first.shaft_inertia if first.has_inertia else None)


def total_ratio(stages: Sequence[Stage]) -> Scalar:
    """Turns of the input shaft per turn of the joint."""
    return math.prod((stage.ratio for stage in stages[1:]), start=stages[0].ratio)
