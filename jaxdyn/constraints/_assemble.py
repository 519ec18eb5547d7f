"""Loop assembly: the state on the constraints that is nearest to an initial guess."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdyn._errors import ConvergenceError, check_count
from jaxdyn._status import Status
from jaxdyn._types import Array, Float, Int
from jaxdyn.constraints._dynamics import ConstraintStatus, factorise_constraints, solve_status
from jaxdyn.constraints.contract import ConstraintSet
from jaxdyn.constraints.evaluation import (
    KKT,
    as_constraints,
    constraint_kinematics,
    constraint_residuals,
    holonomic_rows,
    linearise_constraints,
    row_slices,
)
from jaxdyn.kinematics import configuration_velocity, difference, integrate
from jaxdyn.model import Model
from jaxdyn.recursion import check_state


class AssemblyStatus(Status):
    """Outcome of an assembly."""

    CLOSED = 0, "the configuration satisfies the constraints"
    CANNOT_CLOSE = 1, "no step reduces the residuals: the constraints cannot be satisfied near the initial guess"
    MAX_STEPS = 2, "the residuals were still decreasing at the last allowed step"
    NOT_FINITE = 3, "the initial guess or the model has entries that are not finite"
    CANNOT_MOVE = 4, "the configuration satisfies the constraints, but no velocity satisfies `A v = b`"


class Assembly(eqx.Module):
    """Result of `assemble`."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    #: largest entry of the residual and of the rate error of each constraint, in the order of `names`
    errors: Float[Array, " constraints"]
    steps: Int[Array, ""]
    #: an `AssemblyStatus`
    status: Int[Array, ""]
    #: True if q is a local minimum of the distance; False if it is only one solution near the initial guess
    nearest: Array
    names: tuple[str, ...] = eqx.field(static=True)

    def checked(self) -> "Assembly":
        """Returns this result, or raises `ConvergenceError` naming the constraint with the largest error.

        For concrete values only.
        """
        status, errors = np.atleast_1d(self.status), np.atleast_2d(self.errors)
        failed = np.flatnonzero(status != AssemblyStatus.CLOSED)
        if failed.size:
            first = failed[0]
            worst = int(np.argmax(errors[first]))
            raise ConvergenceError(
                f"{self.names[worst]!r} does not close: its error is {errors[first, worst]:.3g} after "
                f"{int(np.atleast_1d(self.steps)[first])} steps ({AssemblyStatus(int(status[first])).name}"
                f"{f', {failed.size} of {status.size} samples' if status.size > 1 else ''}). "
                "Start nearer to a closed configuration, or check the lengths and frames of this closure."
            )
        return self


class _State(NamedTuple):
    q: Float[Array, " nq"]
    #: residuals
    g: Float[Array, " rows"]
    damping: Float[Array, ""]
    step: Int[Array, ""]
    stuck: Array
    near: Array


def assemble(
    model: Model,
    constraints: ConstraintSet,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"] | None = None,
    *,
    t: ArrayLike = 0.0,
    tolerance: float | None = None,
    max_steps: int = 100,
) -> Assembly:
    """Finds the state on the constraints that is nearest to an initial guess.

        minimise |difference(q, guess)|^2  subject to  g(q, t) = 0;    then v nearest in the metric of M with A v = b

    Arguments:

    * `constraints`: one constraint or a sequence of them.
    * `q`, `v`: initial guess, `(nq,)` and `(nv,)`; v is zero by default. Distances in rad and m are added as numbers.
    * `t`: time, s, for constraints that depend on it.
    * `tolerance`: largest residual, rad or m, by default `1e3 eps`.
    * `max_steps`: iterations of each of the two phases.

    Returns an `Assembly`; `checked()` raises `ConvergenceError` if a constraint cannot be satisfied. First
    Levenberg-Marquardt steps `dq = -A^T (A A^T + mu 1)^-1 g` close the loops, with mu increased after steps that do
    not reduce g. Then the steps

        dq = s (1 - A^+ A) difference(q, guess) - A^+ g

    move along the constraint to the local minimum of the distance, with s halved after an overshoot. If this phase does
    not converge, as from guesses that are about equally far from several configurations, the result is the closed
    configuration of the first phase and `nearest` is False.

    The result is differentiable with respect to q, v, the model and the constraint parameters, by the implicit function
    theorem at the minimum.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    import jaxdyn.constraints as jc

    b = jd.ModelBuilder()
    b.add_link("x", "world", jd.joints.Prismatic((1, 0, 0)))
    model = b.add_link("point", "x", jd.joints.Prismatic((0, 0, 1)), jd.spatial.point_mass(1.0)).build()
    rod = jc.Distance("rod", "world", "point", 1.0)
    state = jc.assemble(model, rod, jnp.array([3.0, 4.0])).checked()
    assert jnp.abs(state.q - jnp.array([0.6, 0.8])).max() < 1e-5
    ```
    """
    constraints = as_constraints(constraints)
    (q,) = check_state(model, q=q)
    (v,) = check_state(model, v=jnp.zeros(model.nv, q.dtype) if v is None else v)
    check_count("max_steps", max_steps)
    tolerance = 1e3 * float(jnp.finfo(q.dtype).eps) if tolerance is None else tolerance
    rows = holonomic_rows(model, constraints)
    frozen = jax.lax.stop_gradient((model, constraints, q, t))
    end = _find_nearest(*frozen, rows, jnp.asarray(tolerance, q.dtype), jnp.asarray(max_steps))
    closed = _nearest_pose(model, constraints, q, t, jax.lax.stop_gradient(end.q))
    kkt, drift = factorise_constraints(model, constraints, closed, t=t)
    velocity, _ = kkt.project(v, drift)
    rate = kkt.jacobian @ velocity - drift
    slices = row_slices(model, constraints)
    worst = [jnp.max(jnp.abs(jnp.append(end.g[s], rate[s])), initial=0) for s in slices.values()]
    errors = jnp.stack(worst) if worst else jnp.zeros(0, q.dtype)
    status = _assembly_status(end, tolerance, solve_status(kkt, velocity, drift))
    return Assembly(closed, velocity, errors, end.step, status, end.near, tuple(slices))


def _assembly_status(end: _State, tolerance, velocity_status):
    code = AssemblyStatus
    closed = jnp.max(jnp.abs(end.g), initial=0) <= tolerance
    status = jnp.where(end.stuck, code.CANNOT_CLOSE, code.MAX_STEPS)
    end_closed = jnp.where(velocity_status == ConstraintStatus.CONTRADICTORY, code.CANNOT_MOVE, code.CLOSED)
    status = jnp.where(closed, end_closed, status)
    finite = jnp.isfinite(end.g).all() & jnp.isfinite(end.q).all() & (velocity_status != ConstraintStatus.NOT_FINITE)
    return jnp.where(finite, status, code.NOT_FINITE).astype(jnp.int32)


@eqx.filter_jit  # loops outside of a compiled function are compiled at every call
def _find_nearest(model: Model, constraints, q, t, rows, tolerance, max_steps) -> _State:
    end = _close_loops(model, constraints, q, t, rows, tolerance, max_steps)
    return _approach_start(model, constraints, q, t, end, rows, tolerance, max_steps)


def _close_loops(model: Model, constraints, q, t, rows, tolerance, max_steps) -> _State:
    """Levenberg-Marquardt iterations on the configuration manifold until `g = 0`."""
    error = lambda g: jnp.max(jnp.abs(g), initial=0)
    one = lambda x: jnp.asarray(x, q.dtype)

    def is_running(s: _State):
        return (error(s.g) > tolerance) & (s.step < max_steps) & ~s.stuck & jnp.isfinite(s.g).all()

    def kinematics(q):
        return constraint_kinematics(model, t, q, jnp.zeros(model.nv, q.dtype))

    def step(s: _State):
        a = linearise_constraints(model, constraints, kinematics(s.q))[0] * jnp.asarray(rows[:, None], q.dtype)
        gram = a @ a.T
        lift = s.damping * (jnp.trace(gram) / max(len(rows), 1)) + jnp.finfo(q.dtype).eps
        dq = -a.T @ jnp.linalg.solve(gram + lift * jnp.eye(len(rows), dtype=q.dtype), s.g)
        dq = dq / jnp.maximum(1, jnp.max(jnp.abs(dq)))
        trial = integrate(model, s.q, dq)
        g = constraint_residuals(model, constraints, kinematics(trial))
        better = g @ g < s.g @ s.g
        return _State(
            jnp.where(better, trial, s.q),
            jnp.where(better, g, s.g),
            jnp.where(better, s.damping / 10, jnp.maximum(s.damping * 10, one(1e-6))),
            s.step + 1,
            ~better & (s.damping > 1e6),
            s.near,
        )

    no = jnp.asarray(False)
    start = _State(
        q, constraint_residuals(model, constraints, kinematics(q)), one(1e-6), jnp.zeros((), jnp.int32), no, no
    )
    return jax.lax.while_loop(is_running, step, start) if len(rows) else start


def _approach_start(model: Model, constraints, q, t, end: _State, rows, tolerance, max_steps) -> _State:
    """Moves along the constraint from a closed configuration to the one nearest to q; `damping` holds `1 / s`."""
    if not len(rows):
        return end._replace(near=jnp.asarray(True))
    error = lambda g: jnp.max(jnp.abs(g), initial=0)
    last_step = end.step + max_steps

    def step(carry):
        s, size = carry
        x = constraint_kinematics(model, t, s.q, jnp.zeros(model.nv, q.dtype))
        kkt = KKT.factorise(jnp.eye(model.nv, dtype=q.dtype), _holonomic_jacobian(model, constraints, x, rows))
        g, away = constraint_residuals(model, constraints, x), difference(model, s.q, q)
        along = away - kkt.minimum_norm(kkt.jacobian @ away)
        converged = (error(g) <= tolerance) & (error(along) <= tolerance**0.75)
        inverse = jnp.where(error(along) > size, 2 * s.damping, s.damping)
        dq = along / inverse - kkt.minimum_norm(g)
        dq = dq / jnp.maximum(1, error(dq))
        q_next = jnp.where(converged, s.q, integrate(model, s.q, dq))
        return _State(q_next, g, inverse, s.step + ~converged, s.stuck, converged), error(along)

    is_running = lambda c: (
        (error(end.g) <= tolerance) & ~c[0].near & (c[0].step < last_step) & jnp.isfinite(c[0].g).all()
    )
    first = end._replace(damping=jnp.ones_like(end.damping)), jnp.asarray(jnp.inf, q.dtype)
    final, _ = jax.lax.while_loop(is_running, step, first)
    keep = lambda new, old: jnp.where(final.near, new, old)
    return final._replace(q=keep(final.q, end.q), g=keep(final.g, end.g))


def _holonomic_jacobian(model: Model, constraints, x, rows):
    return linearise_constraints(model, constraints, x)[0] * jnp.asarray(rows[:, None], x.v.dtype)


@eqx.filter_custom_jvp
def _nearest_pose(model: Model, constraints, q, t, closed):
    """Returns `closed` with the derivatives of the configuration nearest to q."""
    return closed


@_nearest_pose.def_jvp
def _nearest_pose_jvp(primals, tangents):
    """From `F = A^T lambda - difference(closed, q) = 0` and `g = 0`, with H = dF: `H u + A^T mu = -dF`, `A u = -dg`."""
    model, constraints, q, t, _ = primals
    closed = _nearest_pose(*primals)
    rows = holonomic_rows(model, constraints)
    parameters = model, constraints, q, t
    zeros = jax.tree.map(jnp.zeros_like, eqx.filter(parameters, eqx.is_inexact_array))
    directions = eqx.combine(tangents[:4], zeros)

    def conditions(e, model, constraints, q, t):
        here = integrate(model, closed, e)
        x = constraint_kinematics(model, t, here, jnp.zeros_like(e))
        a = _holonomic_jacobian(model, constraints, x, rows)
        return a, constraint_residuals(model, constraints, x), difference(model, here, q)

    still = jnp.zeros(model.nv, q.dtype)
    a, _, away = conditions(still, *parameters)
    kkt = KKT.factorise(jnp.eye(model.nv, dtype=q.dtype), a)
    multipliers = kkt.inverse @ away

    def optimality(*point):
        a, g, away = conditions(*point)
        return a.T @ multipliers - away, g

    hessian = jax.jacfwd(lambda e: optimality(e, *parameters)[0])(still)
    _, (force, gap) = eqx.filter_jvp(lambda *p: optimality(still, *p), parameters, directions)
    along = jnp.eye(model.nv, dtype=q.dtype) - kkt.minimum_norm(a)
    back = -kkt.minimum_norm(gap)
    reduced = along @ hessian @ along + jnp.eye(model.nv, dtype=q.dtype) - along
    u = back - along @ jnp.linalg.solve(reduced, along @ (force + hessian @ back))
    return closed, configuration_velocity(model, closed, u)
