"""A set of constraints at a state: residual, rate, Jacobian, bias, and the wrenches of multipliers.

    gdot = A(q, t) v - b(q, t),   gddot = A a + gamma

One sweep over the tree gives poses, twists and accelerations (for a = 0) of all links; what follows is the
residuals' own derivatives along these, by forward mode with no term left out:

    g(pose + e posedot + e^2/2 poseddot, q + ..., t + e)   to second order in e.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError, ShapeError
from jaxdyn.constraints._contract import AbstractConstraint, AbstractHolonomic, AbstractNonholonomic, Moving, Placed
from jaxdyn.kinematics import configuration_velocity
from jaxdyn.kinematics._forward import placed_links
from jaxdyn.kinematics._state import body_states
from jaxdyn.model import Model
from jaxdyn.model._mimic import own_columns

Constraints = tuple[AbstractConstraint, ...]


def as_constraints(constraints) -> Constraints:
    """One constraint or several as a tuple, with names that differ."""
    out = (constraints,) if isinstance(constraints, AbstractConstraint) else tuple(constraints)
    for c in out:
        if not isinstance(c, AbstractHolonomic | AbstractNonholonomic):
            raise ModelError(
                f"{type(c).__name__} is not a constraint; wrap a function in jaxdyn.constraints.Holonomic or Pfaffian"
            )
    names = [c.name for c in out]
    twice = {n for n in names if names.count(n) > 1}
    if twice:
        raise ModelError(f"constraints share the names {sorted(twice)}; names of constraints must differ")
    return out


class _Second(NamedTuple):
    """What moves a set of constraints: value, rate, and second rate for a = 0, of `(t, q, R, p)`."""

    value: Any
    rate: Any
    curve: Any


def _link_frames(model: Model, rotation, translation):
    """Poses of all links out of those of the moving bodies."""
    t = model.topology
    fixed = np.array([g < 0 for g in t.groups], bool)
    home_r, home_p = placed_links(model)
    home_r = jnp.where(fixed[:, None, None], home_r, jnp.eye(3, dtype=home_r.dtype))
    home_p = jnp.where(fixed[:, None], home_p, 0)
    rows = _body_rows(model)
    r = jnp.concatenate([rotation, jnp.eye(3, dtype=rotation.dtype)[None]])[rows]
    p = jnp.concatenate([translation, jnp.zeros((1, 3), translation.dtype)])[rows]
    return r @ home_r, p + jnp.einsum("lij,lj->li", r, home_p)


def _body_rows(model: Model) -> np.ndarray:
    """Row of each link's body; the last one is the world."""
    t = model.topology
    return np.array(t.body_of_link, int) % (len(t.bodies) + 1)


def _of_links(model: Model, x):
    """Six-vectors of bodies as pairs of vectors of links."""
    x = jnp.concatenate([x, jnp.zeros((1, 6), x.dtype)])[_body_rows(model)]
    return x[:, :3], x[:, 3:]


def _turned(w, r):
    """`[w] R` for each link."""
    return jnp.cross(w[:, :, None], r, axis=1)


class Evaluated(NamedTuple):
    """A state with all that constraints need of it."""

    second: _Second
    v: Any
    #: `(full_nv, 6)`, about the world's origin
    subspace: Any


def evaluated(model: Model, t, q, v) -> Evaluated:
    """One sweep over the tree at (q, v)."""
    t = jnp.asarray(t, q.dtype)
    s = body_states(model, q, v)
    r, p = _link_frames(model, s.rotation, s.translation)
    (w, v0), (dw, a0) = _of_links(model, s.velocity), _of_links(model, s.acceleration)
    dp = v0 + jnp.cross(w, p)
    ddp = a0 + jnp.cross(dw, p) + jnp.cross(w, dp)
    dr = _turned(w, r)
    ddr = _turned(dw, r) + _turned(w, dr)
    dq, ddq = jax.jvp(lambda x: configuration_velocity(model, x, v), (q,), (configuration_velocity(model, q, v),))
    one = jnp.ones_like(t)
    second = _Second((t, q, r, p), (one, dq, dr, dp), (jnp.zeros_like(t), ddq, ddr, ddp))
    return Evaluated(second, v, s.subspace)


def _spin(r, dr):
    spin = dr @ r.swapaxes(-1, -2)
    return jnp.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=-1)


def _rows(c, what: str, x, dtype):
    """What a constraint returned, in the precision of the state; its own numbers may have another."""
    if jnp.ndim(x) != 1:
        raise ShapeError(
            f"{what} of constraint {c.name!r} has shape {jnp.shape(x)}, expected (rows,); return an array of one axis, "
            "such as x[None] for one row"
        )
    return jnp.asarray(x, dtype)


def _residual(c, model: Model, at):
    return _rows(c, "the residual", c.residual(Placed(model, *at)), at[1].dtype)


def _rate(c, model: Model, at, moved, v):
    """`gdot` of one constraint when `(t, q, R, p)` moves as `moved`."""
    if isinstance(c, AbstractHolonomic):
        return jax.jvp(lambda *y: _residual(c, model, y), at, moved)[1]
    assert isinstance(c, AbstractNonholonomic)
    moving = Moving(Placed(model, *at), v, _spin(at[2], moved[2]), moved[3])
    return _rows(c, "the rate", c.rate(moving), at[1].dtype)


def _joined(parts, dtype):
    return jnp.concatenate(parts) if parts else jnp.zeros(0, dtype)


def _row_counts(model: Model, constraints: Constraints) -> list[int]:
    dtype = model.dtype
    n = model.num_links
    zero = lambda *shape: jax.ShapeDtypeStruct(shape, dtype)
    at = (zero(), zero(model.nq), zero(n, 3, 3), zero(n, 3))

    def rows(c):
        return jax.eval_shape(lambda at, v: _rate(c, model, at, at, v), at, zero(model.nv)).shape[0]

    return [rows(c) for c in constraints]


def row_slices(model: Model, constraints: Constraints) -> dict[str, slice]:
    """Which rows belong to which constraint."""
    ends = np.cumsum([0, *_row_counts(model, constraints)])
    return {c.name: slice(int(a), int(b)) for c, a, b in zip(constraints, ends[:-1], ends[1:], strict=True)}


def holonomic_rows(model: Model, constraints: Constraints) -> np.ndarray:
    """Which rows are derivatives of a residual."""
    counts = zip(constraints, _row_counts(model, constraints), strict=True)
    parts = [np.full(n, isinstance(c, AbstractHolonomic)) for c, n in counts]
    return np.concatenate(parts) if parts else np.zeros(0, bool)


def residuals(model: Model, constraints: Constraints, x: Evaluated):
    """`g(q, t)`, with zeros in the rows of nonholonomic constraints."""
    dtype = x.v.dtype
    rows = [
        _residual(c, model, x.second.value) if isinstance(c, AbstractHolonomic) else jnp.zeros(n, dtype)
        for c, n in zip(constraints, _row_counts(model, constraints), strict=True)
    ]
    return _joined(rows, dtype)


def rates(model: Model, constraints: Constraints, x: Evaluated):
    """`A(q, t) v - b(q, t)`."""
    return _joined([_rate(c, model, x.second.value, x.second.rate, x.v) for c in constraints], x.v.dtype)


def bias(model: Model, constraints: Constraints, x: Evaluated):
    """`gamma`, what of the second derivative no acceleration makes: `Adot v - bdot`."""
    at, moved, curve = x.second
    rows = [
        jax.jvp(lambda at, moved, c=c: _rate(c, model, at, moved, x.v), (at, moved), (moved, curve))[1]
        for c in constraints
    ]
    return _joined(rows, x.v.dtype)


def _driven(model: Model, constraints: Constraints, x: Evaluated, angular, linear, v, ticks):
    """`gdot` for any twists of the links (world axes, at their origins), any v and any rate of time."""
    at = x.second.value
    moved = (ticks, configuration_velocity(model, at[1], v), _turned(angular, at[2]), linear)
    return _joined([_rate(c, model, at, moved, v) for c in constraints], v.dtype)


def linearised(model: Model, constraints: Constraints, x: Evaluated):
    """`A` and `b` of `A v = b`."""
    at = x.second.value
    none = jnp.zeros_like(at[0])

    def rows(c):
        driven = lambda w, linear, v: _driven(model, (c,), x, w, linear, v, none)
        return jax.jacrev(driven, (0, 1, 2))(still, still, zero)  # each row through its own constraint alone

    still, zero = jnp.zeros_like(at[3]), jnp.zeros(model.nv, at[3].dtype)
    drift = -_driven(model, constraints, x, still, still, zero, jnp.ones_like(none))
    if not constraints:
        return jnp.zeros((0, model.nv), zero.dtype), drift
    moment, force, on_v = (jnp.concatenate(part) for part in zip(*map(rows, constraints), strict=True))
    return own_columns(model, _onto_joints(model, at[3], moment, force, x.subspace)) + on_v, drift


def _onto_joints(model: Model, p, moment, force, subspace):
    """Rows of wrenches on links, world axes at their origins, as rows over the degrees of freedom of all joints."""
    t = model.topology
    member = np.equal.outer(np.array(t.body_of_link, int), np.arange(len(t.bodies)))  # links by bodies
    carries = member @ t.body_ancestors[t.dof_body].T  # links by degrees of freedom
    wrench = jnp.concatenate([moment + jnp.cross(p, force), force], axis=-1)
    return jnp.einsum("lk,rli,ki->rk", jnp.asarray(carries, p.dtype), wrench, subspace)


def constraint_wrenches(model: Model, constraints: Any, x: Evaluated, multipliers):
    """What multipliers do: a wrench on every link, and efforts on coordinates that are constrained directly.

    `(wrenches, efforts)`, wrenches `(links, 6)` as (moment, force) in link axes about the link's origin, so that
    `A^T lambda = J^T wrenches + efforts`.
    """
    r = x.second.value[2]

    def power(twists, v):
        w = jnp.einsum("lij,lj->li", r, twists[:, :3])
        linear = jnp.einsum("lij,lj->li", r, twists[:, 3:])
        return _driven(model, constraints, x, w, linear, v, jnp.zeros_like(x.second.value[0])) @ multipliers

    zero = jnp.zeros((model.num_links, 6), r.dtype), jnp.zeros(model.nv, r.dtype)
    return jax.grad(power, (0, 1))(*zero)
