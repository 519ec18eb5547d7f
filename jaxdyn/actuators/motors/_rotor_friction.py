"""Friction and cogging of a rotor."""

import abc

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import as_float, smooth_sign
from jaxdyn._types import Array, Float, PyTree


class AbstractRotorFriction(eqx.Module):
    """Contract of the friction of a rotor, with or without a state z; torque and velocity refer to the rotor."""

    @abc.abstractmethod
    def initial(self, dtype) -> PyTree:
        """Initial state, or None."""

    @abc.abstractmethod
    def torque(self, velocity, state) -> tuple[Float[Array, ""], PyTree]:
        """The torque against the rotation, N m, and the rate of the state, at the rotor velocity, rad/s."""

    @abc.abstractmethod
    def steady_torque(self, velocity) -> Float[Array, ""]:
        """The torque against the rotation, N m, that the friction approaches at a constant velocity."""

    @abc.abstractmethod
    def energy(self, state) -> Float[Array, ""]:
        """Energy that the friction stores, J."""


class StribeckFriction(AbstractRotorFriction):
    """Coulomb friction with the Stribeck effect: `(F_c + (F_s - F_c) exp(-(w / w_s)^2)) tanh(w / width)`."""

    #: F_c, N m
    coulomb: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: F_s, N m
    static: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: w_s, rad/s
    stribeck_velocity: Float[Array, "*batch"] = eqx.field(converter=as_float, default=1.0)
    #: velocity over which the friction changes its sign, rad/s
    width: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.1)

    def initial(self, dtype):
        return None

    def torque(self, velocity, state):
        level = _stribeck_level(velocity, self.coulomb, self.static, self.stribeck_velocity)
        return level * smooth_sign(velocity, self.width), None

    def steady_torque(self, velocity):
        return self.torque(velocity, None)[0]

    def energy(self, state):
        return jnp.zeros(())


class LuGreFriction(AbstractRotorFriction):
    """The LuGre model: friction of elastic bristles whose mean deflection z is a state.

        dz/dt = w - sigma_0 |w| z / g(w),    g(w) = F_c + (F_s - F_c) exp(-(w / w_s)^2)
        torque = sigma_0 z + sigma_1 dz/dt

    It models stiction without drift, with break-away torque F_s and kinetic friction F_c (Canudas de Wit, Olsson,
    Astrom and Lischinsky 1995, "A new model for control of systems with friction"). The viscous term of the paper is
    `viscous` of the motor. The state is stiff: its time constant is `sigma_1 / sigma_0` at rest and `g / (sigma_0 |w|)`
    at the velocity w.
    """

    #: F_c, N m
    coulomb: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: F_s, N m
    static: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: sigma_0, stiffness of the bristles, N m/rad
    stiffness: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: sigma_1, damping of the bristles, N m s/rad
    damping: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0)
    #: w_s, rad/s
    stribeck_velocity: Float[Array, "*batch"] = eqx.field(converter=as_float, default=1.0)

    def initial(self, dtype):
        return jnp.zeros((), dtype)

    def torque(self, velocity, state):
        level = _stribeck_level(velocity, self.coulomb, self.static, self.stribeck_velocity)
        rate = velocity - self.stiffness * jnp.abs(velocity) * state / level
        return self.stiffness * state + self.damping * rate, rate

    def steady_torque(self, velocity):
        return _stribeck_level(velocity, self.coulomb, self.static, self.stribeck_velocity) * jnp.sign(velocity)

    def energy(self, state):
        return self.stiffness * state**2 / 2


def _stribeck_level(velocity, coulomb, static, stribeck_velocity):
    return coulomb + (static - coulomb) * jnp.exp(-((velocity / stribeck_velocity) ** 2))


class Cogging(eqx.Module):
    """Cogging torque of the magnets at the rotor angle theta: `amplitude sin(periods theta + phase)`, N m.

    It is conservative: its energy is `amplitude cos(periods theta + phase) / periods`.
    """

    #: N m
    amplitude: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: periods of the torque per turn of the rotor
    periods: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: rad
    phase: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0)

    def torque(self, angle):
        """The torque on the rotor, N m."""
        return self.amplitude * jnp.sin(self.periods * angle + self.phase)

    def energy(self, angle):
        """Potential energy, J."""
        return self.amplitude * jnp.cos(self.periods * angle + self.phase) / self.periods
