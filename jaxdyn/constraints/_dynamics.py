"""Forward and inverse dynamics, impulses and degrees of freedom of constrained robots."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import check_shape
from jaxdyn._numerics import default_tolerance, pseudo_inverse
from jaxdyn._status import Status
from jaxdyn._types import Array, Float, Int
from jaxdyn.constraints.contract import ConstraintSet
from jaxdyn.constraints.evaluation import (
    KKT,
    as_constraints,
    constraint_kinematics,
    constraint_wrenches,
    linearise_constraints,
    row_slices,
    solve_constrained_motion,
)
from jaxdyn.dynamics import mass_matrix, rnea
from jaxdyn.model import Model
from jaxdyn.recursion import check_state


class ConstraintStatus(Status):
    """Outcome of a solve for constrained motion."""

    SOLVED = 0, "the accelerations satisfy the constraints"
    CONTRADICTORY = 1, "no acceleration satisfies all constraints: they are inconsistent"
    NOT_FINITE = 2, "the state, the model or the mass matrix has entries that are not finite"
    SINGULAR_CHART = 3, "the Jacobian of the chart is rank-deficient (`reduced_dynamics`)"


class ConstrainedDynamics(eqx.Module):
    """Result of `constrained_dynamics`."""

    #: generalised accelerations
    a: Float[Array, " nv"]
    #: Lagrange multipliers, of least norm where constraints are redundant
    multipliers: Float[Array, " rows"]
    #: constraint wrenches on the links, (moment, force) in link axes about the link's origin
    wrenches: Float[Array, "links 6"]
    #: constraint efforts on coordinates that are constrained directly
    efforts: Float[Array, " nv"]
    #: number of independent rows
    rank: Int[Array, ""]
    #: a `ConstraintStatus`
    status: Int[Array, ""]
    #: rows of each constraint, by name
    rows: tuple[tuple[str, slice], ...] = eqx.field(static=True)

    def multiplier(self, name: str):
        """The multipliers of one constraint, by its name."""
        return self.multipliers[..., dict(self.rows)[name]]


def factorise_constraints(
    model: Model, constraints, q, *, t: ArrayLike = 0.0, tolerance: ArrayLike | None = None
) -> tuple[KKT, Array]:
    """The `KKT` factorisation at q, and b of `A v = b`."""
    still = constraint_kinematics(model, t, q, jnp.zeros(model.nv, q.dtype))
    jacobian, drift = linearise_constraints(model, as_constraints(constraints), still)
    return KKT.factorise(mass_matrix(model, q), jacobian, tolerance), drift


def constrained_dynamics(
    model: Model,
    constraints: ConstraintSet,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    external: Float[Array, "links 6"] | None = None,
    *,
    t: ArrayLike = 0.0,
    correction: Float[Array, " rows"] | None = None,
    tolerance: ArrayLike | None = None,
) -> ConstrainedDynamics:
    """Forward dynamics under constraints: accelerations and Lagrange multipliers.

        M a + h = tau + J^T external + A^T lambda,    A a + gamma = correction

    `gamma = Adot v - bdot`, with every term. Arguments:

    * `constraints`: one constraint or a sequence of them, with unique names.
    * `q`, `v`: state, `(nq,)` and `(nv,)`. It should satisfy the constraints (`assemble`).
    * `tau`: generalised forces `(nv,)`, N m or N.
    * `external`: wrenches on the links `(links, 6)` in link axes.
    * `t`: time, s, for constraints that depend on it.
    * `correction`: second derivative of the residuals, `(rows,)`, for constraint stabilisation; zero by default.
    * `tolerance`: singular values of `L^-1 A^T`, `M = L L^T`, below this fraction of the largest count as zero; by
      default `4 sqrt(eps)`.

    Returns a `ConstrainedDynamics`. With redundant constraints the acceleration is still unique and lambda is the
    multiplier of least norm; `rank` counts the independent rows. Derivatives are valid where the rank is locally
    constant. At a pose where the rank drops, the result is that of the remaining rows: the acceleration nearest, in the
    metric of M, to the unconstrained one. Inconsistent constraints give the status `CONTRADICTORY`. Raises `ShapeError`
    for arrays of wrong shape and `ModelError` for duplicate names.

    Murray, Li and Sastry 1994, section 6.1; Featherstone 2008, section 8.3; Udwadia and Kalaba 1992 for redundant
    constraints.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    import jaxdyn.constraints as jc

    model = jd.robots.pendulum()
    motor = jc.PrescribedCoordinate("motor", model.joint_names[0], lambda t: 0.5 * t**2)
    d = jc.constrained_dynamics(model, motor, jnp.zeros(1), jnp.zeros(1), jnp.zeros(1))
    assert abs(d.a[0] - 1.0) < 1e-12  # rad/s^2
    torque = d.multiplier("motor")  # N m
    ```
    """
    constraints = as_constraints(constraints)
    q, v, tau = check_state(model, q=q, v=v, tau=tau)
    solution = solve_constrained_motion(
        model, constraints, t, q, v, tau, external, correction=lambda _: correction, tolerance=tolerance
    )
    a, multipliers, target, kkt, x = solution
    wrenches, efforts = constraint_wrenches(model, constraints, x, multipliers)
    rows = tuple(row_slices(model, constraints).items())
    status = solve_status(kkt, a, target)
    return ConstrainedDynamics(a, multipliers, wrenches, efforts, kkt.rank, status, rows)


def solve_status(kkt: KKT, a, target):
    """A `ConstraintStatus`: checks that a is finite and `A a = target`."""
    miss = kkt.jacobian @ a - target
    scale = 1 + jnp.max(jnp.abs(target), initial=0) + jnp.max(jnp.abs(kkt.jacobian), initial=0) * jnp.max(jnp.abs(a))
    contradicts = jnp.max(jnp.abs(miss), initial=0) > jnp.finfo(a.dtype).eps ** 0.5 * scale
    status = jnp.where(contradicts, ConstraintStatus.CONTRADICTORY, ConstraintStatus.SOLVED)
    sound = jnp.isfinite(a).all() & jnp.isfinite(kkt.jacobian).all()
    status = jnp.where(sound, status, ConstraintStatus.NOT_FINITE)
    return jax.lax.stop_gradient(status).astype(jnp.int32)


def constrained_inverse_dynamics(
    model: Model,
    constraints: ConstraintSet,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    multipliers: Float[Array, " rows"] | None = None,
    external: Float[Array, "links 6"] | None = None,
    *,
    t: ArrayLike = 0.0,
    actuated: ArrayLike | None = None,
    tolerance: ArrayLike | None = None,
) -> Float[Array, " nv"]:
    """Joint efforts for a given motion *and* given constraint forces: `tau = M a + h - A^T lambda`.

    This is the planning problem of McClamroch 1986, section 5. Arguments:

    * `q`, `v`, `a`: `(nq,)`, `(nv,)`, `(nv,)`, a motion that satisfies the constraints.
    * `multipliers`: desired lambda `(rows,)`, by default zero.
    * `external`: wrenches on the links `(links, 6)` in link axes.
    * `actuated`: booleans `(nv,)`, True for coordinates with a motor; by default all have one.
    * `t`, `tolerance`: as in `constrained_dynamics`.

    Returns `tau` `(nv,)`. With `actuated` the multipliers are those nearest to the desired ones that leave no effort at
    unactuated coordinates,

        lambda = desired + ((1 - S) A^T)^+ (1 - S) (M a + h - A^T desired),    S = diag(actuated).

    An effort above rounding that remains at an unactuated coordinate shows that the motors cannot produce the motion.
    Raises `ShapeError` if `multipliers` does not have one entry a row.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    import jaxdyn.constraints as jc

    model = jd.robots.pendulum()
    stop = jc.PrescribedCoordinate("stop", model.joint_names[0], lambda t: 0.0 * t)
    zero = jnp.zeros(1)
    tau = jc.constrained_inverse_dynamics(model, stop, zero, zero, zero, jnp.array([3.0]))
    assert abs(tau[0] + 3.0) < 1e-12  # the motor pushes against the stop with 3 N m
    ```
    """
    q, v, a = check_state(model, q=q, v=v, a=a)
    jacobian, _ = linearise_constraints(model, as_constraints(constraints), constraint_kinematics(model, t, q, v))
    desired = jnp.zeros(jacobian.shape[0], jacobian.dtype) if multipliers is None else multipliers
    desired = check_shape("multipliers", desired, jacobian.shape[:1])
    effort = rnea(model, q, v, a, external) - jacobian.T @ desired
    if actuated is None:
        return effort
    unactuated = jnp.where(jnp.asarray(actuated), 0, jacobian).T
    tolerance = default_tolerance(effort.dtype) if tolerance is None else tolerance
    inverse, _ = pseudo_inverse(unactuated, jnp.asarray(tolerance, effort.dtype))
    return effort - jacobian.T @ (inverse @ jnp.where(jnp.asarray(actuated), 0, effort))


def allowed_forces(
    model: Model,
    constraints: ConstraintSet,
    q: Float[Array, " nq"],
    force: Float[Array, " nv"],
    *,
    t: ArrayLike = 0.0,
    tolerance: ArrayLike | None = None,
) -> Float[Array, " nv"]:
    """`P f`, the part of a generalised force `(nv,)` that accelerates the constrained robot: `P tau = P (M a + h)`.

    `P = 1 - A^T (A M^-1 A^T)^+ A M^-1` projects out the part that constraint forces balance; its rank is
    `nv - rank(A)`.
    """
    q, force = check_state(model, q=q, force=force)
    kkt, _ = factorise_constraints(model, constraints, q, t=t, tolerance=tolerance)
    return kkt.project_force(force)


class Impulse(eqx.Module):
    """Result of `impulse`; `v, multipliers = impulse(...)` unpacks the first two."""

    #: velocities after the impulse
    v: Float[Array, " nv"]
    #: impulsive multipliers, N s or N m s
    multipliers: Float[Array, " rows"]
    #: number of independent rows
    rank: Int[Array, ""]
    #: a `ConstraintStatus`
    status: Int[Array, ""]

    def __iter__(self):
        return iter((self.v, self.multipliers))


def impulse(
    model: Model,
    constraints: ConstraintSet,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    *,
    t: ArrayLike = 0.0,
    tolerance: ArrayLike | None = None,
) -> Impulse:
    """Velocities and impulses when constraints are imposed on a moving robot: `M (v+ - v) = A^T p`, `A v+ = b`.

    Arguments: configuration `q` `(nq,)` on the constraints, velocities `v` `(nv,)` before the impulse, and `t`,
    `tolerance` as in `constrained_dynamics`.

    Returns an `Impulse` with the velocities v+, nearest to v in the metric of M (a plastic impact), and the impulses p.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    import jaxdyn.constraints as jc

    model = jd.robots.pendulum()
    stop = jc.PrescribedCoordinate("stop", model.joint_names[0], lambda t: 0.0 * t)
    v, p = jc.impulse(model, stop, jnp.zeros(1), jnp.array([2.0]))
    assert abs(v[0]) < 1e-12
    assert p[0] < 0  # N m s
    ```
    """
    q, v = check_state(model, q=q, v=v)
    kkt, drift = factorise_constraints(model, constraints, q, t=t, tolerance=tolerance)
    after, multipliers = kkt.project(v, drift)
    return Impulse(after, multipliers, kkt.rank, solve_status(kkt, after, drift))


def mobility(
    model: Model,
    constraints: ConstraintSet,
    q: Float[Array, " nq"],
    *,
    t: ArrayLike = 0.0,
    tolerance: ArrayLike | None = None,
) -> Int[Array, ""]:
    """Instantaneous degrees of freedom at q: `nv - rank(A)`, redundant constraints counted once.

    At singular configurations, such as a row of flat parallelograms, the rank is smaller than at neighbouring ones, and
    the result exceeds the number of finite motions. Returns -1 where q is not finite.
    """
    (q,) = check_state(model, q=q)
    kkt, _ = factorise_constraints(model, constraints, q, t=t, tolerance=tolerance)
    return jnp.where(jnp.isfinite(kkt.jacobian).all(), model.nv - kkt.rank, -1).astype(jnp.int32)
