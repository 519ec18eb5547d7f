"""Hysteresis of a transmission: the normalised model of Bouc and Wen."""

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float, Scalar


class BoucWen(eqx.Module):
    """Hysteretic torque `T_h = T_max z` in parallel with the spring of a stage, with the state z between -1 and 1.

        zdot = (xdot - sigma |xdot| |z|^(n-1) z + (sigma - 1) xdot |z|^n) / x_0

    x is the deflection. Around `z = 0` the element is a spring of stiffness `T_max / x_0`; it slips at `T_max`. It
    stores `T_max x_0 z^2 / 2` and dissipates for every `sigma >= 1/2`. `sigma = n = 1` is the model of Dahl, the LuGre
    model without damping of the bristles (Ikhouane and Rodellar 2007, "Systems with hysteresis", chapter 2).
    """

    #: T_max, N m or N
    limit: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: x_0, rad or m
    deflection: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: sigma, dimensionless
    shape: Float[Array, "*batch"] = eqx.field(converter=as_float, default=1.0)
    #: n >= 1, dimensionless
    exponent: Float[Array, "*batch"] = eqx.field(converter=as_float, default=1.0)

    def torque(self, z: Scalar) -> Scalar:
        """The torque in a state z."""
        return self.limit * z

    def energy(self, z: Scalar) -> Scalar:
        """The stored energy in a state z, J."""
        return self.limit * self.deflection * z**2 / 2

    def rate(self, z: Scalar, deflection_rate: Scalar) -> Scalar:
        """Time derivative of the state, 1/s."""
        # |z|^(n-1) with finite derivatives with respect to z and n at zero
        magnitude = jnp.where(z == 0, 1, jnp.abs(z))
        at_zero = jnp.where(self.exponent == 1, 1, 0)
        power = jnp.where(z == 0, at_zero, jnp.exp((self.exponent - 1) * jnp.log(magnitude)))
        slip = self.shape * jnp.abs(deflection_rate) * z - (self.shape - 1) * deflection_rate * jnp.abs(z)
        return (deflection_rate - slip * power) / self.deflection
