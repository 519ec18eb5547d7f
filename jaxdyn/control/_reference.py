"""References of control laws: constants, functions of time, paths of configurations, and tables."""

from collections.abc import Callable
from typing import NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._errors import ShapeError, check_shape
from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Config, Float, PyTree, Scalar, Velocity
from jaxdyn.dynamics import passive_forces, rnea
from jaxdyn.joints import has_vector_rate
from jaxdyn.kinematics import difference, integrate
from jaxdyn.model import Model


def as_reference(x: PyTree) -> PyTree:
    """Converts a reference to a pytree: a function becomes a static field, numbers become an array."""
    if isinstance(x, diffrax.AbstractPath):
        return PathReference(x.evaluate)
    if isinstance(x, eqx.Module | jax.tree_util.Partial):
        return x
    return jax.tree_util.Partial(x) if callable(x) else as_float(x)


class DesiredMotion(NamedTuple):
    """The desired motion at one instant."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    a: Float[Array, " nv"]


class PathReference(eqx.Module):
    """A reference that follows a path of configurations `position(t) -> (nq,)`, differentiated in forward mode.

    `v = d/ds (q(t + s) (-) q(t))` at `s = 0`, `a = dv/dt`. A `diffrax.AbstractPath` is converted to this class where a
    law expects a reference.
    """

    position: Callable[[Array], Array] = eqx.field(converter=as_reference)

    def motion(self, model: Model, t) -> DesiredMotion:
        """Configuration, velocity and acceleration at time t (s)."""
        t = as_float(t)
        one = jnp.ones_like(t)

        def velocity(t):
            q = self.position(t)
            if has_vector_coordinates(model):
                return jax.jvp(self.position, (t,), (one,))[1]
            return jax.jvp(lambda s: difference(model, q, self.position(s)), (t,), (one,))[1]

        v, a = jax.jvp(velocity, (t,), (one,))
        return DesiredMotion(self.position(t), v, a)


class Plan(eqx.Module):
    """A trajectory with its nominal efforts as a table over time, constant before and after it.

    Between rows, configurations are cubic Hermite polynomials in the chart at the earlier row, with the velocities of
    the table. Efforts are interpolated linearly, or held constant if `hold`. Where `qdot = v`, v and a are the exact
    derivatives of q; otherwise v is interpolated linearly.
    """

    #: increasing times, s
    times: Float[Array, " rows"] = eqx.field(converter=as_float)
    q: Float[Array, "rows nq"] = eqx.field(converter=as_float)
    v: Float[Array, "rows nv"] = eqx.field(converter=as_float)
    #: N m or N
    effort: Float[Array, "rows nv"] = eqx.field(converter=as_float)
    #: whether the efforts of row k are constant until row k + 1
    hold: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        rows = {name: getattr(self, name).shape for name in ("times", "q", "v", "effort")}
        if len({shape[:1] for shape in rows.values()}) > 1 or self.times.shape[0] < 2:
            raise ShapeError(
                f"the tables of a Plan have shapes {rows}; expected the same number in each table, two rows or more"
            )

    def place(self, t) -> tuple[Array, Array, Array]:
        """Index of the interval that contains t, its length (s), and the fraction of it before t, from 0 to 1."""
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

    def motion(self, model: Model, t) -> DesiredMotion:
        """Configuration, velocity and acceleration at time t (s)."""
        k, h, s = self.place(t)
        q0, v0, v1 = self.q[k], self.v[k], self.v[k + 1]
        d = difference(model, q0, self.q[k + 1])
        inside = (t >= self.times[0]) & (t <= self.times[-1])
        quadratic, cubic = 3 * d - h * (2 * v0 + v1), h * (v0 + v1) - 2 * d
        q = integrate(model, q0, s * (h * v0 + s * (quadratic + s * cubic)))
        if has_vector_coordinates(model):
            v, a = v0 + s * (2 * quadratic + 3 * s * cubic) / h, (2 * quadratic + 6 * s * cubic) / h**2
        else:
            v, a = (1 - s) * v0 + s * v1, (v1 - v0) / h
        return DesiredMotion(q, jnp.where(inside, v, 0), jnp.where(inside, a, 0))


#: a converted reference of joint motion: `(nq,)`, or `t -> (q, v, a)`, or a table or path with `motion`
Reference = Array | Callable[[Scalar], tuple[Config, Velocity, Velocity]] | PathReference | Plan


def desired_motion(model: Model, reference: Reference, t) -> DesiredMotion:
    """The desired motion of a reference at time t (s).

    A reference is a constant configuration `(nq,)`; a function `t -> (q, v, a)`; a `PathReference` or
    `diffrax.AbstractPath` of configurations; or a `Plan`.
    """
    if isinstance(reference, PathReference | Plan):
        return reference.motion(model, t)
    if callable(reference):
        q, v, a = reference(t)
    else:
        q, v, a = reference, jnp.zeros(model.nv, reference.dtype), jnp.zeros(model.nv, reference.dtype)
    names = zip(("q", "v", "a"), (q, v, a), (model.nq, model.nv, model.nv), strict=True)
    return DesiredMotion(*(check_shape(f"{name} of the reference", x, (size,)) for name, x, size in names))


def nominal_plan(model: Model, reference: PyTree, times: Float[Array, " rows"], *, passive: bool = True) -> Plan:
    """Tabulates a reference and its inverse dynamics at the given times (s).

    `u* = M(q) a + h(q, v) - passive_forces(q, v)`, with the last term if `passive`: the nominal control of scheme (a)
    of figure 20.10 in Vukobratovic and Potkonjak 2005, "Dynamics of robots".
    """
    reference = as_reference(reference)

    def row(t):
        q, v, a = desired_motion(model, reference, t)
        return q, v, inverse_dynamics(model, q, v, a, passive)

    return Plan(times, *jax.vmap(row)(as_float(times)))


def inverse_dynamics(model: Model, q, v, a, passive: bool):
    """Efforts for an acceleration; `passive` compensates the passive forces of the joints."""
    tau = rnea(model, q, v, a)
    return tau - passive_forces(model, q, v) if passive else tau


def has_vector_coordinates(model: Model) -> bool:
    """True if `qdot = v`."""
    return all(has_vector_rate(joint) for joint in model.joints)


def apply_gain(gain, error):
    """The product of a gain, which is a scalar, a vector (elementwise) or a matrix, and an error."""
    return gain @ error if jnp.ndim(gain) == 2 else gain * error
