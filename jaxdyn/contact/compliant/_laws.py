"""Laws of the normal force of a compliant contact."""

import abc

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float, Scalar


class AbstractNormalLaw(eqx.Module):
    """Contract of a normal force F(d, ddot) as a function of the penetration d and its rate. Parameters are leaves.

    The force acts while `d > 0`, but it and its derivatives are finite for all d and ddot, because both branches of a
    `where` are evaluated.

    ```python
    import jax
    import jax.numpy as jnp
    from jaxdyn.contact import AbstractNormalLaw

    class Foam(AbstractNormalLaw):
        "A spring that hardens exponentially, without losses."

        stiffness: jax.Array
        length: jax.Array
        cuts_tension = False
        jumps = False

        def force(self, penetration, rate):
            return self.stiffness * self.length * jnp.expm1(penetration / self.length)

        def energy(self, penetration):
            x = penetration / self.length
            return self.stiffness * self.length**2 * (jnp.expm1(x) - x)

    assert Foam(jnp.array(1e3), jnp.array(0.01)).force(0.0, 1.0) == 0.0
    ```
    """

    #: whether negative values of `force` are replaced by zero: there is no adhesion
    cuts_tension: eqx.AbstractVar[bool]
    #: whether `force` or its derivative with respect to d is discontinuous at `d = 0`
    jumps: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def force(self, penetration: Scalar, rate: Scalar) -> Scalar:
        """The force at a penetration (m) and its rate (m/s), N, positive if it separates the bodies."""

    @abc.abstractmethod
    def energy(self, penetration: Scalar) -> Scalar:
        """The elastic energy at a penetration (m), J."""


class KelvinVoigt(AbstractNormalLaw):
    """A linear spring with a damper (Kelvin-Voigt model): `F = k d + c ddot`, `max(F, 0)` without tension.

    The force jumps to `c ddot` at touch-down. With tension it is negative at the end of a rebound, until the surfaces
    separate at d = 0; without tension the contact ends where F = 0. For a mass m between two contacts with
    `zeta = c / (2 sqrt(k m)) < 1`, the coefficient of restitution is

        exp(-pi zeta / sqrt(1 - zeta^2))                                                 with tension
        exp(-zeta / sqrt(1 - zeta^2) (pi - atan2(2 zeta sqrt(1 - zeta^2), 1 - 2 zeta^2)))    without
    """

    #: k, N/m
    stiffness: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: c, N s/m
    damping: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0)
    #: whether negative forces act, as between adhesive surfaces
    tension: bool = eqx.field(static=True, default=False)
    jumps: bool = eqx.field(static=True, default=True, init=False)

    @property
    def cuts_tension(self) -> bool:
        return not self.tension

    def force(self, penetration, rate):
        return self.stiffness * penetration + self.damping * rate

    def energy(self, penetration):
        return self.stiffness * penetration**2 / 2


class HuntCrossley(AbstractNormalLaw):
    """Hunt and Crossley's law: `F = k d^n (1 + c ddot)`, `max(F, 0)`.

    Force and losses grow from zero with the penetration. Speeds v_i before and v_o after an impact satisfy
    `c (v_i + v_o) = ln((1 + c v_i) / (1 - c v_o))` for any k, n and mass; for small speeds the coefficient of
    restitution is `1 - 2 c v_i / 3` (Hunt and Crossley 1975, with `c = 3 alpha / 2`).
    """

    #: k, N/m^n
    stiffness: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: c, s/m
    damping: Float[Array, "*batch"] = eqx.field(converter=as_float, default=0.0)
    #: n, above 1; 3/2 for spheres
    exponent: Float[Array, "*batch"] = eqx.field(converter=as_float, default=1.5)
    cuts_tension: bool = eqx.field(static=True, default=True, init=False)
    jumps: bool = eqx.field(static=True, default=False, init=False)

    def force(self, penetration, rate):
        return self.stiffness * _power(penetration, self.exponent) * (1 + self.damping * rate)

    def energy(self, penetration):
        n = self.exponent + 1
        return self.stiffness * _power(penetration, n) / n


class Hertz(AbstractNormalLaw):
    """Hertz' law of two elastic spheres: `F = 4/3 E sqrt(R) d^(3/2)`, without losses.

    `1/R = 1/R_1 + 1/R_2` (1/R_2 = 0 for a plane) and `1/E = (1 - nu_1^2)/E_1 + (1 - nu_2^2)/E_2`, see `between` (Hertz
    1882; Johnson 1985, section 4.2).
    """

    #: R, m
    radius: Float[Array, "*batch"] = eqx.field(converter=as_float)
    #: E, N/m^2
    modulus: Float[Array, "*batch"] = eqx.field(converter=as_float)
    cuts_tension: bool = eqx.field(static=True, default=False, init=False)
    jumps: bool = eqx.field(static=True, default=False, init=False)

    @classmethod
    def between(
        cls,
        first: tuple[ArrayLike, ArrayLike, ArrayLike],
        second: tuple[ArrayLike, ArrayLike, ArrayLike],
    ) -> "Hertz":
        """The law of two bodies, each given by `(radius, Young's modulus, Poisson's ratio)`; a plane has radius inf."""
        (r1, e1, nu1), (r2, e2, nu2) = (tuple(as_float(x) for x in body) for body in (first, second))
        return cls(1 / (1 / r1 + 1 / r2), 1 / ((1 - nu1**2) / e1 + (1 - nu2**2) / e2))

    @property
    def stiffness(self) -> Scalar:
        """`k = 4/3 E sqrt(R)`, N/m^(3/2)."""
        return 4 / 3 * self.modulus * jnp.sqrt(self.radius)

    def force(self, penetration, rate):
        return self.stiffness * _power(penetration, 1.5)

    def energy(self, penetration):
        return self.stiffness * _power(penetration, 2.5) / 2.5


def series_stiffness(*stiffnesses: ArrayLike, exponent: ArrayLike = 1.0) -> Float[Array, "*batch"]:
    """The stiffness of compliant surfaces in series, each with `F = k_i d_i^n`: `k^(-1/n) = sum of k_i^(-1/n)`.

    All surfaces have the same force, and their penetrations are added; for linear springs `1/k = 1/k_1 + 1/k_2`.

    ```python
    import jax.numpy as jnp
    from jaxdyn.contact import KelvinVoigt, series_stiffness

    assert jnp.allclose(KelvinVoigt(series_stiffness(3e4, 6e4)).stiffness, 2e4)
    ```
    """
    n = as_float(exponent)
    return sum((as_float(k) ** (-1 / n) for k in stiffnesses), start=jnp.zeros_like(n)) ** -n


def _power(x, n):
    """`x^n` for x >= 0 and n > 1, linear below the smallest x with a finite `x^-3`."""
    least = jnp.finfo(jnp.result_type(x, float)).tiny ** 0.25
    return x * jnp.where(x > least, x, least) ** (n - 1)
