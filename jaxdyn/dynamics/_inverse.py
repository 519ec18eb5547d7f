"""Inverse dynamics and its special cases."""

import jax.numpy as jnp

from jaxdyn._errors import check_shape
from jaxdyn._types import Array, Float
from jaxdyn.dynamics._loads import body_loads
from jaxdyn.dynamics._rnea import rnea_kernel
from jaxdyn.model import Model
from jaxdyn.model._bodies import bodies
from jaxdyn.model._mimic import full_configuration, full_velocity, own_effort


def checked_state(model: Model, q, *rates):
    """q and rates as arrays of the right shapes."""
    q = check_shape("q", q, (model.nq,))
    return (q, *(check_shape(n, x, (model.nv,)) for n, x in zip(("v", "a or tau"), rates, strict=False)))


def rnea(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    external: Float[Array, "links 6"] | None = None,
) -> Float[Array, " nv"]:
    """Inverse dynamics: `tau = M(q) a + h(q, v) - sum J^T f_ext` by the recursive Newton-Euler algorithm.

    `external` holds a wrench (moment, force) on each link, in link axes at the link's origin, N m and N. The
    armatures take part; damping, friction and springs do not (`passive_forces`). Cost is linear in the number of
    joints; the reverse-mode gradient, to every leaf, costs about four evaluations (Featherstone 2008,
    table 5.1; the pullback is in `dynamics/_rnea.py`).
    """
    q, v, a = checked_state(model, q, v, a)
    t = model.topology
    load = body_loads(model, external, q.dtype)
    if not t.bodies:
        return jnp.zeros(0, q.dtype)
    full = rnea_kernel(
        t, bodies(model), full_configuration(model, q), full_velocity(model, v), full_velocity(model, a), load
    )
    own = own_effort(model, full)
    return own + model.properties.armature * a if t.mimics else own


def bias_forces(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    external: Float[Array, "links 6"] | None = None,
) -> Float[Array, " nv"]:
    """`h(q, v)`: efforts that hold the accelerations at zero, Coriolis, centrifugal and gravity terms together."""
    return rnea(model, q, v, jnp.zeros_like(v), external)


def gravity_forces(model: Model, q: Float[Array, " nq"]) -> Float[Array, " nv"]:
    """`g(q) = dU/dq`: efforts that hold the robot at rest against gravity."""
    zero = jnp.zeros(model.nv, jnp.result_type(q))
    return rnea(model, q, zero, zero)
