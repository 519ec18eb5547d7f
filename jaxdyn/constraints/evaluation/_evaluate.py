"""Evaluates a set of constraints at a state: residuals, rates, Jacobian, acceleration bias and constraint wrenches.

    gdot = A(q, t) v - b(q, t),   gddot = A a + gamma

One sweep over the tree gives the poses, twists and accelerations (for a = 0) of all links. The rates and the
acceleration bias are derivatives of the residuals along this motion, by forward mode, with every term:

    g(pose + e posedot + e^2/2 poseddot, q + ..., t + e)   to second order in e.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError, ShapeError, check_instance
from jaxdyn._types import Array, Float
from jaxdyn.constraints.contract import (
    AbstractConstraint,
    AbstractHolonomic,
    AbstractNonholonomic,
    Configuration,
    KinematicState,
)
from jaxdyn.kinematics import configuration_velocity
from jaxdyn.model import Model
from jaxdyn.recursion import BodyStates, body_states, expand_to_links, link_poses, reduce_columns

Constraints = tuple[AbstractConstraint, ...]


def optional_constraints(constraints) -> Constraints | None:
    """Returns `as_constraints(constraints)`, or None for None."""
    return None if constraints is None else as_constraints(constraints)


def as_constraints(constraints) -> Constraints:
    """Converts one constraint or several to a tuple with unique names."""
    if not isinstance(constraints, AbstractConstraint | tuple | list):
        check_instance("constraints", constraints, AbstractConstraint, "pass one constraint or a sequence of them")
    out = (constraints,) if isinstance(constraints, AbstractConstraint) else tuple(constraints)
    for c in out:
        if not isinstance(c, AbstractHolonomic | AbstractNonholonomic):
            raise ModelError(
                f"{type(c).__name__} is not a constraint; wrap a function in jaxdyn.constraints.Holonomic or Pfaffian"
            )
    names = [c.name for c in out]
    duplicates = {n for n in names if names.count(n) > 1}
    if duplicates:
        raise ModelError(f"constraints share the names {sorted(duplicates)}; give each constraint a unique name")
    return out


class _Expansion(NamedTuple):
    """Taylor coefficients, along the motion with a = 0, of the arguments of a residual: `(t, q, R, p)`."""

    value: tuple[Array, Array, Array, Array]
    rate: tuple[Array, Array, Array, Array]
    second_rate: tuple[Array, Array, Array, Array]


class ConstraintKinematics(NamedTuple):
    """The kinematics of a state from which a set of constraints is evaluated."""

    expansion: _Expansion
    v: Float[Array, " nv"]
    #: states of the moving bodies for a = 0
    bodies: BodyStates
    #: (angular, linear) velocities of the links, and their rates for a = 0, about the world's origin, `(links, 6)`
    twist: Float[Array, "links 6"]
    twist_rate: Float[Array, "links 6"]


def constraint_kinematics(model: Model, t, q, v) -> ConstraintKinematics:
    """Kinematics of all links at (q, v), by one sweep over the tree."""
    t = jnp.asarray(t, q.dtype)
    s = body_states(model, q, v)
    r, p = link_poses(model, s.rotation, s.translation)
    twist, twist_rate = (expand_to_links(model.topology, x) for x in (s.velocity, s.acceleration))
    (w, v0), (dw, a0) = ((x[:, :3], x[:, 3:]) for x in (twist, twist_rate))
    dp = v0 + jnp.cross(w, p)
    ddp = a0 + jnp.cross(dw, p) + jnp.cross(w, dp)
    dr = _rotation_rates(w, r)
    ddr = _rotation_rates(dw, r) + _rotation_rates(w, dr)
    dq, ddq = jax.jvp(lambda x: configuration_velocity(model, x, v), (q,), (configuration_velocity(model, q, v),))
    one = jnp.ones_like(t)
    expansion = _Expansion((t, q, r, p), (one, dq, dr, dp), (jnp.zeros_like(t), ddq, ddr, ddp))
    return ConstraintKinematics(expansion, v, s, twist, twist_rate)


def _rotation_rates(w, r):
    """`[w] R` for each link."""
    return jnp.cross(w[:, :, None], r, axis=1)


def _angular_velocities(r, dr):
    """`w` of `dR = [w] R` for each link."""
    spin = dr @ r.swapaxes(-1, -2)
    return jnp.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=-1)


def _check_rows(c, quantity: str, x, dtype):
    """Checks the shape of a constraint's result and casts it to the precision of the state."""
    if jnp.ndim(x) != 1:
        raise ShapeError(
            f"{quantity} of constraint {c.name!r} has shape {jnp.shape(x)}, expected (rows,); return an array of one "
            "axis, such as x[None] for one row"
        )
    return jnp.asarray(x, dtype)


def _residual(c, model: Model, point):
    """`g` of one constraint at `point = (t, q, R, p)`."""
    return _check_rows(c, "the residual", c.residual(Configuration(model, *point)), point[1].dtype)


def _rate(c, model: Model, point, tangent, v):
    """`gdot` of one constraint when `point = (t, q, R, p)` moves along `tangent`."""
    if isinstance(c, AbstractHolonomic):
        return jax.jvp(lambda *y: _residual(c, model, y), point, tangent)[1]
    assert isinstance(c, AbstractNonholonomic)
    return _check_rows(c, "the rate", c.rate(_kinematic_state(model, point, tangent, v)), point[1].dtype)


def _kinematic_state(model: Model, point, tangent, v) -> KinematicState:
    """The state of the links when `point = (t, q, R, p)` moves along `tangent`."""
    return KinematicState(Configuration(model, *point), v, _angular_velocities(point[2], tangent[2]), tangent[3])


def kinematic_state(model: Model, x: ConstraintKinematics) -> KinematicState:
    """The state and the velocities of all links."""
    return _kinematic_state(model, x.expansion.value, x.expansion.rate, x.v)


def _concatenate_rows(parts, dtype):
    return jnp.concatenate(parts) if parts else jnp.zeros(0, dtype)


def _row_counts(model: Model, constraints: Constraints) -> list[int]:
    dtype = model.dtype
    n = model.num_links
    zero = lambda *shape: jax.ShapeDtypeStruct(shape, dtype)
    point = (zero(), zero(model.nq), zero(n, 3, 3), zero(n, 3))

    def count(c):
        return jax.eval_shape(lambda x, v: _rate(c, model, x, x, v), point, zero(model.nv)).shape[0]

    return [count(c) for c in constraints]


def row_slices(model: Model, constraints: Constraints) -> dict[str, slice]:
    """The rows of each constraint, by its name."""
    ends = np.cumsum([0, *_row_counts(model, constraints)])
    return {c.name: slice(int(a), int(b)) for c, a, b in zip(constraints, ends[:-1], ends[1:], strict=True)}


def holonomic_rows(model: Model, constraints: Constraints) -> np.ndarray:
    """Mask of the rows that belong to holonomic constraints."""
    counts = zip(constraints, _row_counts(model, constraints), strict=True)
    parts = [np.full(n, isinstance(c, AbstractHolonomic)) for c, n in counts]
    return np.concatenate(parts) if parts else np.zeros(0, bool)


def constraint_residuals(model: Model, constraints: Constraints, x: ConstraintKinematics):
    """`g(q, t)`, with zeros in the rows of nonholonomic constraints."""
    dtype = x.v.dtype
    rows = [
        _residual(c, model, x.expansion.value) if isinstance(c, AbstractHolonomic) else jnp.zeros(n, dtype)
        for c, n in zip(constraints, _row_counts(model, constraints), strict=True)
    ]
    return _concatenate_rows(rows, dtype)


def constraint_rates(model: Model, constraints: Constraints, x: ConstraintKinematics):
    """`A(q, t) v - b(q, t)`."""
    point, tangent, _ = x.expansion
    return _concatenate_rows([_rate(c, model, point, tangent, x.v) for c in constraints], x.v.dtype)


def acceleration_bias(model: Model, constraints: Constraints, x: ConstraintKinematics):
    """`gamma = Adot v - bdot`, the second derivative of the residuals for a = 0."""
    point, tangent, second = x.expansion
    rows = [
        jax.jvp(lambda y, dy, c=c: _rate(c, model, y, dy, x.v), (point, tangent), (tangent, second))[1]
        for c in constraints
    ]
    return _concatenate_rows(rows, x.v.dtype)


def _rates_for_twists(model: Model, constraints: Constraints, x: ConstraintKinematics, angular, linear, v, dt):
    """`gdot` for given twists of the links (world axes, at their origins), velocities v and rate of time dt."""
    point = x.expansion.value
    tangent = (dt, configuration_velocity(model, point[1], v), _rotation_rates(angular, point[2]), linear)
    return _concatenate_rows([_rate(c, model, point, tangent, v) for c in constraints], v.dtype)


def linearise_constraints(model: Model, constraints: Constraints, x: ConstraintKinematics):
    """`A` and `b` of `A v = b`."""
    t, _, _, p = x.expansion.value
    still, zero = jnp.zeros_like(p), jnp.zeros(model.nv, p.dtype)

    def gradients(c):
        rate = lambda w, linear, v: _rates_for_twists(model, (c,), x, w, linear, v, jnp.zeros_like(t))
        return jax.jacrev(rate, (0, 1, 2))(still, still, zero)  # each row through its own constraint alone

    drift = -_rates_for_twists(model, constraints, x, still, still, zero, jnp.ones_like(t))
    if not constraints:
        return jnp.zeros((0, model.nv), zero.dtype), drift
    moment, force, by_v = (jnp.concatenate(part) for part in zip(*map(gradients, constraints), strict=True))
    return reduce_columns(model, _project_onto_joints(model, p, moment, force, x.bodies.subspace)) + by_v, drift


def _project_onto_joints(model: Model, p, moment, force, subspace):
    """Generalised forces, one row each, of rows of wrenches on the links in world axes at the links' origins."""
    carries = moving_coordinates(model)
    wrench = jnp.concatenate([moment + jnp.cross(p, force), force], axis=-1)
    return jnp.einsum("lk,rli,ki->rk", jnp.asarray(carries, p.dtype), wrench, subspace)


def moving_coordinates(model: Model) -> np.ndarray:
    """Which degrees of freedom move which links, `(links, full_nv)`."""
    t = model.topology
    member = np.equal.outer(np.array(t.body_of_link, int), np.arange(len(t.bodies)))  # links by bodies
    return member @ t.body_ancestors[t.dof_body].T


def constraint_wrenches(model: Model, constraints: Constraints, x: ConstraintKinematics, multipliers):
    """The wrenches on links, and the efforts on directly constrained coordinates, that the multipliers exert.

    Returns `(wrenches, efforts)`. Wrenches `(links, 6)` are (moment, force) in link axes about the link's origin, so
    that `A^T lambda = J^T wrenches + efforts`.
    """
    t, _, r, _ = x.expansion.value

    def power(twists, v):
        w = jnp.einsum("lij,lj->li", r, twists[:, :3])
        linear = jnp.einsum("lij,lj->li", r, twists[:, 3:])
        return _rates_for_twists(model, constraints, x, w, linear, v, jnp.zeros_like(t)) @ multipliers

    zero = jnp.zeros((model.num_links, 6), r.dtype), jnp.zeros(model.nv, r.dtype)
    return jax.grad(power, (0, 1))(*zero)
