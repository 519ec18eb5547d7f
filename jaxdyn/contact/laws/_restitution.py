"""Laws of restitution: the end of the expansion of an impact.

The normal impulse p is the independent variable of an impact. The normal velocity `c_n` increases from its value before
the impact through zero, where compression ends with the impulse `p_c`; the work of the normal force is
`W(p) = integral of c_n dp`.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import core

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float


class AbstractRestitution(eqx.Module):
    """Contract of a law of restitution with one coefficient `e`, from 0 (plastic) to 1 (no loss)."""

    e: eqx.AbstractVar[Array]

    def __check_init__(self):
        if not isinstance(self.e, core.Tracer) and np.any((np.asarray(self.e) < 0) | (np.asarray(self.e) > 1)):
            raise ModelError(f"the restitution of {type(self).__name__} is {self.e}; expected 0 (plastic) to 1")

    @abc.abstractmethod
    def expansion(self, e, c_before, p_c, compression_work, break_impulse, slope, later_slope) -> Array:
        """Normal impulse of the expansion with coefficient e.

        Arguments:

        * `c_before`: normal velocity before the impact, negative.
        * `p_c`, `compression_work`: normal impulse, and energy absorbed, in compression.
        * `break_impulse`: impulse after the end of compression at which `slope = d c_n / dp` becomes `later_slope`.
        """

    @abc.abstractmethod
    def margin(self, e, c_before, p_c, compression_work, p, c, work) -> Array:
        """A quantity that becomes zero where the impact ends, at the impulse p with normal velocity c.

        `work` is the work of the normal impulse since the end of the compression.
        """

    @abc.abstractmethod
    def remainder(self, e, c_before, p_c, compression_work, p, c, work, slope) -> Array:
        """Remaining normal impulse at this point of the expansion, if `slope = d c_n / dp` is constant from here on."""


def _rise(target, break_impulse, slope, later_slope):
    """The impulse at which `c_n`, zero at first, reaches a target."""
    at_break = slope * break_impulse
    is_early = target <= at_break
    early = target / jnp.where(slope > 0, slope, 1)
    finite = jnp.where(jnp.isfinite(break_impulse), break_impulse, 0)
    late = finite + (target - slope * finite) / jnp.where(later_slope > 0, later_slope, 1)
    return jnp.where(is_early | ~jnp.isfinite(break_impulse), early, late)


def _root(x):
    """The square root, zero with zero derivative for x <= 0."""
    return jnp.sqrt(jnp.where(x > 0, x, 1)) * (x > 0)


class Newton(AbstractRestitution):
    """Newton's law: the normal velocity after the impact is -e times that before it.

    With friction, the energy can increase if the slip stops or reverses during the impact (Kane and Levinson 1985).

    ```python
    from jaxdyn.contact import Newton

    hard = Newton(0.9)
    ```
    """

    e: Float[Array, ""] = eqx.field(converter=as_float, default=0.0)

    def expansion(self, e, c_before, p_c, compression_work, break_impulse, slope, later_slope):
        return _rise(-e * c_before, break_impulse, slope, later_slope)

    def margin(self, e, c_before, p_c, compression_work, p, c, work):
        return c + e * c_before

    def remainder(self, e, c_before, p_c, compression_work, p, c, work, slope):
        return (-e * c_before - c) / slope


class Poisson(AbstractRestitution):
    """Poisson's law: the normal impulse of the expansion is e times the normal impulse of the compression.

    ```python
    from jaxdyn.contact import Poisson

    hard = Poisson(0.9)
    ```
    """

    e: Float[Array, ""] = eqx.field(converter=as_float, default=0.0)

    def expansion(self, e, c_before, p_c, compression_work, break_impulse, slope, later_slope):
        return e * p_c

    def margin(self, e, c_before, p_c, compression_work, p, c, work):
        return p - (1 + e) * p_c

    def remainder(self, e, c_before, p_c, compression_work, p, c, work, slope):
        return (1 + e) * p_c - p


class Stronge(AbstractRestitution):
    """Stronge's law: the work of the normal force in the expansion is `e^2` times the energy absorbed in compression.

    ```python
    from jaxdyn.contact import Stronge

    hard = Stronge(0.9)
    ```
    """

    e: Float[Array, ""] = eqx.field(converter=as_float, default=0.0)

    def expansion(self, e, c_before, p_c, compression_work, break_impulse, slope, later_slope):
        # with the speed c at the end, c^2 / 2 slope = e^2 work, before the break
        finite = jnp.where(jnp.isfinite(break_impulse), break_impulse, 0)
        at_break = slope * finite
        early = self.remainder(e, c_before, p_c, compression_work, p_c, jnp.zeros_like(slope), 0, slope)
        work = slope * finite**2 / 2
        late = finite + self.remainder(e, c_before, p_c, compression_work, p_c + finite, at_break, work, later_slope)
        return jnp.where(~jnp.isfinite(break_impulse) | (early <= finite), early, late)

    def margin(self, e, c_before, p_c, compression_work, p, c, work):
        return work - e**2 * compression_work

    def remainder(self, e, c_before, p_c, compression_work, p, c, work, slope):
        square = c**2 - 2 * slope * work  # in the expansion from rest with this slope, zero
        at_rest = jnp.abs(square) <= 64 * jnp.finfo(slope.dtype).eps * c**2
        free = e * _root(2 * slope * compression_work)  # smooth at e = 0
        return (jnp.where(at_rest, free, _root(square + 2 * slope * e**2 * compression_work)) - c) / slope
