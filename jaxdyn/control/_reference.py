"""Motions to follow: constants, functions of time, paths of positions, and tables."""

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._errors import ShapeError, check_shape
from jaxdyn._types import Array, Float
from jaxdyn.dynamics import passive_forces, rnea
from jaxdyn.joints import has_vector_rate
from jaxdyn.kinematics import difference, integrate
from jaxdyn.model import Model


def as_float(x):
    """A floating-point array."""
    x = jnp.asarray(x)
    return x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(jnp.result_type(float))


def as_reference(x: Any) -> Any:
    """A reference as a pytree: a function becomes one without leaves, numbers become an array."""
    if isinstance(x, diffrax.AbstractPath):
        return Along(x.evaluate)
    if isinstance(x, eqx.Module | jax.tree_util.Partial):
        return x
    return jax.tree_util.Partial(x) if callable(x) else as_float(x)


class Desired(NamedTuple):
    """Where a robot should be at one instant, `(nq,)`, `(nv,)` and `(nv,)`."""

    q: Any
    v: Any
    a: Any


class Along(eqx.Module):
    """The motion along a path of configurations `position(t) -> (nq,)`, its derivatives taken by forward mode.

    `v = d/ds (q(t + s) (-) q(t))` at `s = 0`, `a = dv/dt`. A `diffrax.AbstractPath` given as a reference is read
    in this way.
    """

    position: Callable[..., Any] = eqx.field(converter=as_reference)

    def motion(self, model: Model, t) -> Desired:
        """Configuration, velocity and acceleration at time t (s)."""
        t = as_float(t)
        one = jnp.ones_like(t)

        def velocity(t):
            q = self.position(t)
            if has_vector_coordinates(model):
                return jax.jvp(self.position, (t,), (one,))[1]
            return jax.jvp(lambda s: difference(model, q, self.position(s)), (t,), (one,))[1]

        v, a = jax.jvp(velocity, (t,), (one,))
        return Desired(self.position(t), v, a)


class Plan(eqx.Module):
    """A motion and its nominal efforts as a table over time, constant before and after it.

    Configurations are cubic polynomials between rows, by Hermite's formula in the chart at the earlier row, with the
    velocities of the table; efforts are linear, or steps if `hold`. Where coordinates are vectors, v and a are the
    exact derivatives of q; otherwise v is linear between rows.
    """

    #: increasing times, s
    times: Float[Array, " rows"] = eqx.field(converter=as_float)
    q: Float[Array, "rows nq"] = eqx.field(converter=as_float)
    v: Float[Array, "rows nv"] = eqx.field(converter=as_float)
    #: N m or N
    effort: Float[Array, "rows nv"] = eqx.field(converter=as_float)
    #: whether row k of the efforts holds until the next one
    hold: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        rows = {name: getattr(self, name).shape for name in ("times", "q", "v", "effort")}
        if len({shape[:1] for shape in rows.values()}) > 1 or self.times.shape[0] < 2:
            raise ShapeError(f"a Plan has at least two rows, the same number in each table; given shapes {rows}")

    def place(self, t) -> tuple[Any, Any, Any]:
        """The interval that holds t, its length (s), and how far into it t is, from 0 to 1."""
        t = jnp.clip(jnp.asarray(t, self.times.dtype), self.times[0], self.times[-1])
        k = jnp.clip(jnp.searchsorted(self.times, t, side="right") - 1, 0, self.times.shape[0] - 2)
        h = self.times[k + 1] - self.times[k]
        return k, h, (t - self.times[k]) / h

    def effort_at(self, t) -> Float[Array, " nv"]:
        """The nominal efforts at time t (s)."""
        k, _, s = self.place(t)
        if self.hold:
            return self.effort[k]
        return (1 - s) * self.effort[k] + s * self.effort[k + 1]

    def motion(self, model: Model, t) -> Desired:
        """Configuration, velocity and acceleration at time t (s)."""
        k, h, s = self.place(t)
        q0, v0, v1 = self.q[k], self.v[k], self.v[k + 1]
        d = difference(model, q0, self.q[k + 1])
        inside = (t >= self.times[0]) & (t <= self.times[-1])
        square, cube = 3 * d - h * (2 * v0 + v1), h * (v0 + v1) - 2 * d
        q = integrate(model, q0, s * (h * v0 + s * (square + s * cube)))
        if has_vector_coordinates(model):
            v, a = v0 + s * (2 * square + 3 * s * cube) / h, (2 * square + 6 * s * cube) / h**2
        else:
            v, a = (1 - s) * v0 + s * v1, (v1 - v0) / h
        return Desired(q, jnp.where(inside, v, 0), jnp.where(inside, a, 0))


def desired(model: Model, reference: Any, t) -> Desired:
    """What a reference asks for at time t (s).

    A reference is a configuration `(nq,)` to stay at; a function `t -> (q, v, a)`; a `diffrax.AbstractPath` of
    configurations or any function of time in `Along`; or a `Plan`.
    """
    if isinstance(reference, Along | Plan):
        return reference.motion(model, t)
    if callable(reference):
        q, v, a = _called(reference, t)
    else:
        q, v, a = reference, jnp.zeros(model.nv, reference.dtype), jnp.zeros(model.nv, reference.dtype)
    names = zip(("q", "v", "a"), (q, v, a), (model.nq, model.nv, model.nv), strict=True)
    return Desired(*(check_shape(f"{name} of the reference", x, (size,)) for name, x, size in names))


def _called(reference: Any, t) -> Any:
    return reference(t)


def nominal_plan(model: Model, reference: Any, times: Float[Array, " rows"], *, passive: bool = True) -> Plan:
    """The table of a reference and of the efforts that make a perfect model follow it, computed beforehand.

    `u* = M(q) a + h(q, v) - passive_forces(q, v)` at each time (s): the nominal control of the first scheme of figure
    20.10 in Vukobratovic and Potkonjak 2005, "Dynamics of robots".
    """
    reference = as_reference(reference)

    def row(t):
        q, v, a = desired(model, reference, t)
        return q, v, inverse_dynamics(model, q, v, a, passive)

    return Plan(times, *jax.vmap(row)(as_float(times)))


def inverse_dynamics(model: Model, q, v, a, passive: bool):
    """Efforts for an acceleration, those that joints need by themselves included if `passive`."""
    tau = rnea(model, q, v, a)
    return tau - passive_forces(model, q, v) if passive else tau


def has_vector_coordinates(model: Model) -> bool:
    """Whether `qdot = v`."""
    return all(has_vector_rate(joint) for joint in model.joints)


def product(gain, error):
    """A gain applied to an error: a number, one a component, or a matrix."""
    return gain @ error if jnp.ndim(gain) == 2 else gain * error
