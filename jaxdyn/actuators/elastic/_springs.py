"""Spring laws of transmissions and couplings: torque, stored energy and deflection."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_float, is_concrete
from jaxdyn._types import Array, Float, PyTree, Scalar


class AbstractSpring(eqx.Module):
    """Contract of a spring: the torque T as a function of the deflection x, with `T = dV/dx`. Parameters are leaves.

    ```python
    import jax.numpy as jnp
    from jaxdyn.actuators import AbstractSpring, Stage

    class SineSpring(AbstractSpring):
        peak: float

        def torque(self, deflection):
            return self.peak * jnp.sin(deflection)

        def energy(self, deflection):
            return self.peak * (1 - jnp.cos(deflection))

        def deflection(self, torque):
            return jnp.arcsin(torque / self.peak)

    stage = Stage(50.0, SineSpring(200.0))
    ```
    """

    @abc.abstractmethod
    def torque(self, deflection: Scalar) -> Scalar:
        """The torque at a deflection (rad or m), N m or N."""

    @abc.abstractmethod
    def energy(self, deflection: Scalar) -> Scalar:
        """The stored energy, J, zero without deflection."""

    @abc.abstractmethod
    def deflection(self, torque: Scalar) -> Scalar:
        """The deflection under a torque: inverse of `torque`, differentiable four times for inverse dynamics."""


class LinearSpring(AbstractSpring):
    """A linear spring, `T = c x`."""

    #: c, N m/rad or N/m
    stiffness: Float[Array, "*batch"] = eqx.field(converter=as_float)

    def torque(self, deflection):
        return self.stiffness * deflection

    def energy(self, deflection):
        return self.stiffness * deflection**2 / 2

    def deflection(self, torque):
        return torque / self.stiffness


class CubicSpring(AbstractSpring):
    """A hardening spring, `T = c x + c_3 x^3` with `c > 0` and `c_3 >= 0`, a model of harmonic drives.

    Tuttle and Seering 1996, "A nonlinear model of a harmonic drive gear transmission".
    """

    #: c, N m/rad or N/m
    stiffness: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: c_3, N m/rad^3 or N/m^3
    cubic: Float[Array, "*batch"] = eqx.field(converter=as_float)

    def torque(self, deflection):
        return (self.stiffness + self.cubic * deflection**2) * deflection

    def energy(self, deflection):
        return (self.stiffness + self.cubic * deflection**2 / 2) * deflection**2 / 2

    def deflection(self, torque):
        def step(_, x, c, c3, target):
            return x - ((c + c3 * x**2) * x - target) / (c + 3 * c3 * x**2)

        numbers = (self.stiffness, self.cubic, torque)
        constant = jax.lax.stop_gradient(numbers)
        # from x = T / c, beyond the root, Newton's iteration falls monotonically, at first by a third each step
        x = jax.lax.fori_loop(0, 60, lambda k, x: step(k, x, *constant), constant[2] / constant[0])
        # each step from the converged value doubles the number of correct Taylor coefficients: seven derivatives
        for k in range(3):
            x = step(k, x, *numbers)
        return x


class PiecewiseLinearSpring(AbstractSpring):
    """An odd spring through the knots `(0, 0), (x_1, T_1), ..., (x_n, T_n)`; the last slope continues beyond them.

    Catalogues of harmonic drives give stiffnesses `K_1, K_2, K_3` with the torques `T_1, T_2` at which they change:
    the knots are `x_1 = T_1 / K_1`, `x_2 = x_1 + (T_2 - T_1) / K_2` and any point on the last line.

    Arguments: deflections (rad or m) and torques (N m or N), `(n,)`, positive and increasing; others raise
    `ModelError`.
    """

    deflections: Float[Array, "*batch n"] = eqx.field(converter=as_float)
    torques: Float[Array, "*batch n"] = eqx.field(converter=as_float)

    def __check_init__(self):
        for name, knots in (("deflections", self.deflections), ("torques", self.torques)):
            if not is_concrete(knots) or knots.ndim != 1:
                continue
            if knots.size == 0 or not np.all(np.diff(np.asarray(knots), prepend=0.0) > 0):
                raise ModelError(
                    f"{name} of a PiecewiseLinearSpring are {np.asarray(knots)}; expected one or more positive numbers "
                    "that increase (the knot at zero and the negative side are added)"
                )

    def torque(self, deflection):
        return _interpolate(_odd(self.deflections), _odd(self.torques), deflection)

    def deflection(self, torque):
        return _interpolate(_odd(self.torques), _odd(self.deflections), torque)

    def energy(self, deflection):
        x, torque = _odd(self.deflections), _odd(self.torques)
        areas = jnp.diff(x) * (torque[:-1] + torque[1:]) / 2
        total = jnp.concatenate([jnp.zeros(1, areas.dtype), jnp.cumsum(areas)])
        k = _segment(x, deflection)
        beyond = deflection - x[k]
        slope = (torque[k + 1] - torque[k]) / (x[k + 1] - x[k])
        return total[k] - total[self.deflections.shape[0]] + (torque[k] + slope * beyond / 2) * beyond


def _odd(knots):
    """The knots of an odd function, the one at zero in the middle."""
    return jnp.concatenate([-knots[::-1], jnp.zeros(1, knots.dtype), knots])


def _segment(knots, x):
    return jnp.clip(jnp.searchsorted(knots, x, side="right") - 1, 0, knots.shape[0] - 2)


def _interpolate(x, y, at):
    """Linear interpolation that continues beyond the ends."""
    k = _segment(x, at)
    return y[k] + (y[k + 1] - y[k]) / (x[k + 1] - x[k]) * (at - x[k])


class Backlash(eqx.Module):
    """Backlash of a gear: a gap of `2 half_width` in series with the spring of a stage.

    The teeth deflect by `g(x) = f(x - b) - f(-x - b)`, where `f(u)` is `max(u, 0)` with the parabola
    `(u + w)^2 / 4 w` where `|u| < w`. The spring stores `V(g(x))`. Torque and damping grow continuously from zero
    at the engagement of the teeth, and are never tensile.

    Arguments: `half_width` b and `blend` w, `0 < w <= b`, at the output of the stage, rad or m. Other concrete numbers
    raise `ModelError`.
    """

    half_width: Float[Array, "*batch"] = eqx.field(converter=as_float)
    blend: Float[Array, "*batch"] = eqx.field(converter=as_float)

    def __check_init__(self):
        if is_concrete((self.half_width, self.blend)):
            b, w = np.asarray(self.half_width), np.asarray(self.blend)
            if not (np.all(w > 0) and np.all(w <= b)):
                raise ModelError(
                    f"Backlash has half_width {b} and blend {w}; expected 0 < blend <= half_width: leave the backlash "
                    "out for a gear without one"
                )

    def engage(self, x: Scalar) -> tuple[Scalar, Scalar]:
        """Deflection g of the teeth and its derivative dg/dx."""
        right, left = x - self.half_width, -x - self.half_width
        slope = self._slope(right) + self._slope(left)
        return self._ramp(right) - self._ramp(left), slope

    def _ramp(self, u):
        w = self.blend
        inside = jnp.clip(u, -w, w)
        return (inside + w) ** 2 / (4 * w) + jnp.maximum(u - w, 0)

    def _slope(self, u):
        return (jnp.clip(u, -self.blend, self.blend) + self.blend) / (2 * self.blend)


def as_spring(x: ArrayLike | PyTree) -> AbstractSpring:
    """A spring, or the linear spring of a stiffness."""
    return x if isinstance(x, AbstractSpring) else LinearSpring(x)


def number_or_spring(x: PyTree) -> PyTree:
    """Converts the argument `stiffness`, a number or a spring."""
    return x if isinstance(x, AbstractSpring) else as_float(x)
