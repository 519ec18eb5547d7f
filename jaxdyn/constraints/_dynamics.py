"""Accelerations and multipliers of a constrained robot, and the questions asked the other way round."""

import enum
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._errors import check_shape
from jaxdyn._numerics import default_tolerance, pseudo_inverse
from jaxdyn._types import Array, Float, Int
from jaxdyn.constraints._evaluate import as_constraints, bias, constraint_wrenches, evaluated, linearised, row_slices
from jaxdyn.constraints._kkt import KKT
from jaxdyn.dynamics import bias_forces, mass_matrix, rnea
from jaxdyn.model import Model


class ConstraintStatus(enum.IntEnum):
    """How a constrained solve ended."""

    SOLVED = 0
    #: no acceleration meets all rows: the constraints contradict each other
    CONTRADICTORY = 1
    #: the state, the model or the mass matrix is not finite
    NOT_FINITE = 2
    #: coordinates of the constraint do not tell its motions apart here (`reduced_dynamics`)
    SINGULAR_CHART = 3


class ConstrainedDynamics(eqx.Module):
    """Result of `constrained_dynamics`."""

    a: Float[Array, " nv"]
    #: one a row, the shortest that give this acceleration
    multipliers: Float[Array, " rows"]
    #: what the constraints do to the links, (moment, force) in link axes about the link's origin
    wrenches: Float[Array, "links 6"]
    #: what they do to coordinates that are constrained directly
    efforts: Float[Array, " nv"]
    #: number of independent rows
    rank: Int[Array, ""]
    #: a `ConstraintStatus`
    status: Int[Array, ""]
    #: rows of each constraint, by name
    rows: tuple[tuple[str, slice], ...] = eqx.field(static=True)

    def multiplier(self, name: str):
        """The rows of one constraint."""
        return self.multipliers[..., dict(self.rows)[name]]


def factorised(model: Model, constraints, q, *, t=0.0, tolerance=None) -> tuple[KKT, Any]:
    """`KKT` at q, and b of `A v = b`."""
    still = evaluated(model, t, q, jnp.zeros(model.nv, q.dtype))
    jacobian, drift = linearised(model, as_constraints(constraints), still)
    return KKT.of(mass_matrix(model, q), jacobian, tolerance), drift


def constrained_dynamics(
    model: Model,
    constraints: Any,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    external: Float[Array, "links 6"] | None = None,
    *,
    t: Any = 0.0,
    correction: Any = None,
    tolerance: Any = None,
) -> ConstrainedDynamics:
    """Accelerations and multipliers of a robot under constraints.

        M a + h = tau + J^T external + A^T lambda,    A a + gamma = correction (zero by default)

    `gamma` has every term of `Adot v - bdot`. Where rows depend on each other, the acceleration is unique all the
    same and lambda is the shortest one; `rank` counts independent rows: singular values of `L^-1 A^T`, `M = L L^T`,
    above `tolerance` of the largest, by default 4 sqrt(eps). Derivatives hold where the rank is locally constant; at
    a pose where it drops, those of the remaining rows are given, and the acceleration is that of least `|a - a_free|`
    in the metric of M among those which the remaining rows allow.

    Murray, Li and Sastry 1994, section 6.1; Featherstone 2008, section 8.3; Udwadia and Kalaba 1992 for the rest.
    """
    constraints = as_constraints(constraints)
    q, v, tau = (check_shape(n, x, (s,)) for n, x, s in zip("q v tau".split(), (q, v, tau), _sizes(model), strict=True))
    x = evaluated(model, t, q, v)
    kkt = KKT.of(mass_matrix(model, q), linearised(model, constraints, x)[0], tolerance)
    gamma = bias(model, constraints, x)
    target = -gamma if correction is None else correction - gamma
    a, multipliers = kkt.solve(tau - bias_forces(model, q, v, external), target)
    wrenches, efforts = constraint_wrenches(model, constraints, x, multipliers)
    rows = tuple(row_slices(model, constraints).items())
    status = solve_status(kkt, a, target)
    return ConstrainedDynamics(a, multipliers, wrenches, efforts, kkt.rank, status, rows)


def _sizes(model: Model):
    return model.nq, model.nv, model.nv


def solve_status(kkt: KKT, a, target):
    """A `ConstraintStatus`: whether a is finite and `A a` what it should be."""
    miss = kkt.jacobian @ a - target
    scale = 1 + jnp.max(jnp.abs(target), initial=0) + jnp.max(jnp.abs(kkt.jacobian), initial=0) * jnp.max(jnp.abs(a))
    contradicts = jnp.max(jnp.abs(miss), initial=0) > jnp.finfo(a.dtype).eps ** 0.5 * scale
    status = jnp.where(contradicts, ConstraintStatus.CONTRADICTORY, ConstraintStatus.SOLVED)
    sound = jnp.isfinite(a).all() & jnp.isfinite(kkt.jacobian).all()
    status = jnp.where(sound, status, ConstraintStatus.NOT_FINITE)
    return jax.lax.stop_gradient(status).astype(jnp.int32)


def constrained_inverse_dynamics(
    model: Model,
    constraints: Any,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    multipliers: Float[Array, " rows"] | None = None,
    external: Float[Array, "links 6"] | None = None,
    *,
    t: Any = 0.0,
    actuated: Any = None,
    tolerance: Any = None,
) -> Float[Array, " nv"]:
    """Joint efforts for a motion on the constraint *and* a wanted contact force: `tau = M a + h - A^T lambda`.

    The planning problem of McClamroch 1986, section 5: motion and force are given, the efforts follow. q, v and a
    have to meet the constraint; the multipliers may be any, by default none.

    With `actuated`, `(nv,)` of booleans that say where motors are, multipliers are no longer free: of those that leave
    nothing to do at the other coordinates the ones nearest to the given are taken,

        lambda = wanted + ((1 - S) A^T)^+ (1 - S) (M a + h - A^T wanted),    S = diag(actuated).

    What still stands at a coordinate without a motor, above rounding, says that the motors cannot make this motion.
    `tolerance` is that of the pseudo-inverse, as in `constrained_dynamics`.
    """
    jacobian, _ = linearised(model, as_constraints(constraints), evaluated(model, t, q, v))
    wanted = jnp.zeros(jacobian.shape[0], jacobian.dtype) if multipliers is None else multipliers
    wanted = check_shape("multipliers", wanted, jacobian.shape[:1])
    effort = rnea(model, q, v, a, external) - jacobian.T @ wanted
    if actuated is None:
        return effort
    bare = jnp.where(jnp.asarray(actuated), 0, jacobian).T
    tolerance = default_tolerance(effort.dtype) if tolerance is None else tolerance
    inverse, _ = pseudo_inverse(bare, jnp.asarray(tolerance, effort.dtype))
    return effort - jacobian.T @ (inverse @ jnp.where(jnp.asarray(actuated), 0, effort))


def allowed_forces(
    model: Model,
    constraints: Any,
    q: Float[Array, " nq"],
    force: Float[Array, " nv"],
    *,
    t: Any = 0.0,
    tolerance: Any = None,
) -> Float[Array, " nv"]:
    """`P f`, the part of a generalised force that moves the constrained robot: `P tau = P (M a + h)`.

    `P = 1 - A^T (A M^-1 A^T)^+ A M^-1` has rank nv - rank(A) and takes away what the constraint bears.
    """
    kkt, _ = factorised(model, constraints, q, t=t, tolerance=tolerance)
    return kkt.allowed(force)


class Impulse(eqx.Module):
    """Result of `impulse`; `v, multipliers = impulse(...)` unpacks the first two."""

    #: velocities afterwards
    v: Float[Array, " nv"]
    #: one a row, N s or N m s
    multipliers: Float[Array, " rows"]
    #: number of independent rows
    rank: Int[Array, ""]
    #: a `ConstraintStatus`
    status: Int[Array, ""]

    def __iter__(self):
        return iter((self.v, self.multipliers))


def impulse(
    model: Model,
    constraints: Any,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    *,
    t: Any = 0.0,
    tolerance: Any = None,
) -> Impulse:
    """Velocities and impulses when constraints close on a moving robot: `M (v+ - v) = A^T p`, `A v+ = b`."""
    kkt, drift = factorised(model, constraints, q, t=t, tolerance=tolerance)
    after, multipliers = kkt.project(v, drift)
    return Impulse(after, multipliers, kkt.rank, solve_status(kkt, after, drift))


def mobility(
    model: Model, constraints: Any, q: Float[Array, " nq"], *, t: Any = 0.0, tolerance: Any = None
) -> Int[Array, ""]:
    """True degrees of freedom at q: `nv - rank(A)`, dependent closures counted once; -1 where q is not finite.

    The rank is that of this instant. It can be smaller than next to q, as where squares in a row lie flat, and
    then counts motions of which only some can go on.
    """
    kkt, _ = factorised(model, constraints, q, t=t, tolerance=tolerance)
    return jnp.where(jnp.isfinite(kkt.jacobian).all(), model.nv - kkt.rank, -1).astype(jnp.int32)
