"""Parametrised motion curves that start and end at rest."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float


class AbstractMotionCurve(eqx.Module):
    """A motion curve over `duration` seconds, at rest at both ends for all values of its leaves."""

    #: s
    duration: eqx.AbstractVar[float | Array]

    @abc.abstractmethod
    def at(self, t) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration, `(nv,)` each, at one time t (s)."""

    @abc.abstractmethod
    def scaled(self, factor) -> "AbstractMotionCurve":
        """The curve with its displacement from the middle multiplied by `factor`."""

    @abc.abstractmethod
    def scales(self, size) -> "AbstractMotionCurve":
        """The typical magnitude of each leaf, as a curve of this type, for displacements of `size` `(nv,)`."""


class FourierMotion(AbstractMotionCurve):
    """A finite Fourier series, `q = middle + sum_k s_k sin(k w t) + c_k cos(k w t)`, `w = 2 pi / duration`.

    The motion is periodic and band-limited, so that averaging over periods and differentiation are exact (Swevers,
    Ganseman, Tukel, De Schutter and Van Brussel 1997). The components of the coefficients that cause a velocity or an
    acceleration at t = 0, `sum k s_k` and `sum k^2 c_k`, are projected out: the motion starts and ends at rest.

    Arguments:

    * `duration`: period, s.
    * `middle`: mean position `(nv,)`, rad or m.
    * `sine`, `cosine`: coefficients s_k and c_k `(harmonics, nv)`, rad or m.

    ```python
    import jax.numpy as jnp
    from jaxdyn.identification import FourierMotion

    sine = jnp.array([[0.5], [0.2], [0.1]])
    motion = FourierMotion(10.0, jnp.zeros(1), sine, jnp.zeros((3, 1)))
    q, v, a = motion.at(0.0)
    assert jnp.allclose(v, 0.0, atol=1e-6)
    ```
    """

    #: s
    duration: float | Array
    #: `(nv,)`
    middle: Float[Array, "*batch nv"]
    #: `(harmonics, nv)`, s_k and c_k
    sine: Float[Array, "*batch harmonics nv"]
    cosine: Float[Array, "*batch harmonics nv"]

    def at(self, t):
        k = jnp.arange(1, self.sine.shape[-2] + 1)[:, None]
        s = self.sine - k * jnp.sum(k * self.sine, axis=0) / jnp.sum(k**2)
        c = self.cosine - k**2 * jnp.sum(k**2 * self.cosine, axis=0) / jnp.sum(k**4)
        w = 2 * jnp.pi / self.duration * k
        sin, cos = jnp.sin(w * t), jnp.cos(w * t)
        q = self.middle + jnp.sum(s * sin + c * cos, axis=0)
        v = jnp.sum(w * (s * cos - c * sin), axis=0)
        return q, v, -jnp.sum(w**2 * (s * sin + c * cos), axis=0)

    def scaled(self, factor):
        return FourierMotion(self.duration, self.middle, factor * self.sine, factor * self.cosine)

    def scales(self, size):
        k = jnp.arange(1, self.sine.shape[-2] + 1)[:, None]
        return FourierMotion(jnp.ones_like(jnp.asarray(self.duration)), size, size / k, size / k)


_DEGREE = 5


def _quintic_basis() -> np.ndarray:
    """Row m: coefficients of s^m; column j: the j-th of the six quintic B-splines whose support contains [0, 1]."""
    pieces = [[np.polynomial.Polynomial([1.0])]]  # pieces[d][j]: the spline of degree d on interval j
    for d in range(1, _DEGREE + 1):
        s = np.polynomial.Polynomial([0.0, 1.0])
        last = pieces[-1]
        part = lambda j, last=last: last[j] if 0 <= j < len(last) else np.polynomial.Polynomial([0.0])
        pieces.append([((s + j) * part(j) + (d + 1 - j - s) * part(j - 1)) / d for j in range(d + 1)])
    columns = [pieces[-1][_DEGREE - j] for j in range(_DEGREE + 1)]
    return np.stack([np.pad(p.coef, (0, _DEGREE + 1 - len(p.coef))) for p in columns], axis=1)


_QUINTIC = _quintic_basis()


class SplineMotion(AbstractMotionCurve):
    """A uniform quintic B-spline with control points `points` `(n, nv)`, from rest to rest.

    The first and the last control point have multiplicity five, so that velocity and acceleration vanish at both ends.
    The jerk is continuous. The curve lies in the convex hull of its control points (de Boor, A Practical Guide to
    Splines, chapter IX).
    """

    duration: float | Array
    points: Float[Array, "*batch points nv"]

    def at(self, t):
        p = self.points
        ends = lambda x: jnp.broadcast_to(x, (_DEGREE - 1, x.shape[-1]))
        p = jnp.concatenate([ends(p[:1]), p, ends(p[-1:])])
        intervals = p.shape[0] - _DEGREE
        step = self.duration / intervals
        k = jnp.clip(jnp.floor(t / step).astype(int), 0, intervals - 1)
        s = t / step - k
        near = jax.lax.dynamic_slice_in_dim(p, k, _DEGREE + 1)
        powers = np.arange(_DEGREE + 1)
        m = jnp.asarray(_QUINTIC, p.dtype) @ near
        value = lambda rows, order: sum((rows[i] * s ** int(i - order) for i in powers[order:]), jnp.zeros_like(p[0]))
        q = value(m, 0)
        v = value(m * powers[:, None], 1) / step
        return q, v, value(m * (powers * (powers - 1))[:, None], 2) / step**2

    def scaled(self, factor):
        middle = jnp.mean(self.points, axis=-2, keepdims=True)
        return SplineMotion(self.duration, middle + factor * (self.points - middle))

    def scales(self, size):
        return SplineMotion(jnp.ones_like(jnp.asarray(self.duration)), jnp.broadcast_to(size, self.points.shape))


def random_fourier(key, middle, size, duration: float | int, harmonics: int = 5) -> FourierMotion:
    """A random Fourier series, with coefficients of harmonic k uniform in `[-size / (2 k), size / (2 k)]`.

    Arguments:

    * `key`: a JAX random key.
    * `middle`: mean position `(nv,)`, rad or m.
    * `size`: amplitude `(nv,)`, rad or m.
    * `duration`: period, s.
    * `harmonics`: number of harmonics, at least 2.

    Returns a `FourierMotion`. Raises `ModelError` for an invalid duration or number of harmonics.

    ```python
    import jax
    import jax.numpy as jnp
    from jaxdyn.identification import random_fourier

    motion = random_fourier(jax.random.key(0), jnp.zeros(2), jnp.ones(2), duration=10.0)
    q, v, a = jax.vmap(motion.at)(jnp.linspace(0.0, 10.0, 101))
    assert q.shape == (101, 2)
    ```
    """
    _check_arguments(duration, harmonics, "harmonics", 2)
    k = jnp.arange(1, harmonics + 1)[:, None]
    s, c = jax.random.uniform(key, (2, harmonics, middle.shape[0]), middle.dtype, -1.0, 1.0)
    return FourierMotion(jnp.asarray(duration, middle.dtype), middle, size * s / k / 2, size * c / k / 2)


def random_spline(key, middle, size, duration: float | int, points: int = 12) -> SplineMotion:
    """A random `SplineMotion` with control points uniform in `middle` plus or minus `size`, both `(nv,)`.

    `duration` is in s; `points` is the number of control points, at least 4.
    """
    _check_arguments(duration, points, "points", 4)
    rows = jax.random.uniform(key, (points, middle.shape[0]), middle.dtype, -1.0, 1.0)
    return SplineMotion(jnp.asarray(duration, middle.dtype), middle + size * rows)


def _check_arguments(duration: float | int, count: int, what: str, least: int):
    if not duration > 0 or count < least:
        raise ModelError(
            f"duration {duration} s and {count} {what}; expected a positive duration and at least {least} {what}"
        )
