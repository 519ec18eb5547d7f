"""Regularised friction of a compliant contact."""

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import as_float, optional_float, tanhc
from jaxdyn._types import Array, Float, Scalar


class RegularisedFriction(eqx.Module):
    """Friction as a smooth function of the slip velocity u: `f = -mu(|u|) N tanh(|u| / w) u / |u|`.

    `mu(s) = mu_k + (mu_s - mu_k) exp(-(s / v_s)^2)`, with mu_s = mu_k if `static` is omitted. The force is smooth at
    zero slip, where it is `-mu_s N u / w`: a contact under load creeps instead of sticking, and a smaller width makes
    the equations stiffer.
    """

    #: mu_k, friction per normal force while sliding
    coefficient: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: w, slip velocity over which the force builds up, m/s
    width: Float[Array, "*batch"] = eqx.field(converter=as_float, default=1e-3)
    #: mu_s, the greatest friction per normal force near zero slip, or None
    static: Float[Array, "*batch"] | None = eqx.field(converter=optional_float, default=None)
    #: v_s, slip velocity over which the static part decays, m/s
    stribeck_velocity: Float[Array, "*batch"] = eqx.field(converter=as_float, default=1e-2)

    def force(self, normal_force: Scalar, slip: Float[Array, "3"]) -> Float[Array, "3"]:
        """Force on the first body at a normal force (N) and its slip velocity relative to the second, `(3,)`, N."""
        square = slip @ slip
        mu = self.coefficient
        if self.static is not None:
            mu = mu + (self.static - mu) * jnp.exp(-square / self.stribeck_velocity**2)
        return -mu * normal_force * tanhc(square / self.width**2) * slip / self.width
