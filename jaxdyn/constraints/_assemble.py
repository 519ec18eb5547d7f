"""The state on the constraints that is nearest to a rough one."""

import enum
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ConvergenceError, check_shape
from jaxdyn._types import Array, Float, Int
from jaxdyn.constraints._dynamics import ConstraintStatus, factorised, solve_status
from jaxdyn.constraints._evaluate import as_constraints, evaluated, holonomic_rows, linearised, residuals, row_slices
from jaxdyn.constraints._kkt import KKT
from jaxdyn.kinematics import configuration_velocity, difference, integrate
from jaxdyn.model import Model


class AssemblyStatus(enum.IntEnum):
    """How an assembly ended."""

    CLOSED = 0
    #: no step brings the constraints closer together: they cannot be met near here
    CANNOT_CLOSE = 1
    #: it was still improving after the last allowed step
    MAX_STEPS = 2
    #: the start or the model has a number that is not finite
    NOT_FINITE = 3
    #: the pose is closed, but no velocity in it meets all rates that the constraints ask for
    CANNOT_MOVE = 4


class Assembly(eqx.Module):
    """Result of `assemble`."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    #: largest entry of each constraint's residual and of what it misses in rate, in the order of `names`
    errors: Float[Array, " constraints"]
    steps: Int[Array, ""]
    #: an `AssemblyStatus`
    status: Int[Array, ""]
    #: whether q is the nearest closed pose, and not only one near by
    nearest: Any
    names: tuple[str, ...] = eqx.field(static=True)

    def checked(self) -> "Assembly":
        """This result, or `ConvergenceError` naming the closure at fault; for concrete values."""
        status, errors = np.atleast_1d(self.status), np.atleast_2d(self.errors)
        failed = np.flatnonzero(status != AssemblyStatus.CLOSED)
        if failed.size:
            first = failed[0]
            worst = int(np.argmax(errors[first]))
            raise ConvergenceError(
                f"{self.names[worst]!r} does not close: it is off by {errors[first, worst]:.3g} after "
                f"{int(np.atleast_1d(self.steps)[first])} steps ({AssemblyStatus(int(status[first])).name}"
                f"{f', {failed.size} of {status.size} starts' if status.size > 1 else ''}). "
                "Start nearer to a closed pose, or check the lengths and frames of that closure."
            )
        return self


class _State(NamedTuple):
    q: Any
    g: Any
    damping: Any
    step: Any
    stuck: Any
    near: Any


def assemble(
    model: Model,
    constraints: Any,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"] | None = None,
    *,
    t: Any = 0.0,
    tolerance: float | None = None,
    max_steps: int = 100,
) -> Assembly:
    """The nearest state on the constraints: the least `|difference(q, start)|^2` with `g(q, t) = 0`, and v in it.

    Levenberg and Marquardt's steps `dq = -A^T (A A^T + mu 1)^-1 g` close the loops, until the largest entry of g is
    below `tolerance` (by default 1e3 eps), with mu growing while steps do not help. From there

        dq = s (1 - A^+ A) difference(q, start) - A^+ g

    goes along the constraint to the nearest pose, s being halved when it overshoots; nearest in the neighbourhood,
    rad and m counting alike. Where `max_steps` of these do not get there, as from starts that are about equally far
    from several poses, the pose that was closed first is returned and `nearest` is False. Velocities are those nearest
    in the metric of M.

    The result is differentiable in q, v, the model and the constraints: implicitly, by the conditions of that minimum.
    """
    constraints = as_constraints(constraints)
    q = check_shape("q", q, (model.nq,))
    v = jnp.zeros(model.nv, q.dtype) if v is None else check_shape("v", v, (model.nv,))
    tolerance = 1e3 * float(jnp.finfo(q.dtype).eps) if tolerance is None else tolerance
    rows = holonomic_rows(model, constraints)
    frozen = jax.lax.stop_gradient((model, constraints, q, t))
    end = _closed(*frozen, rows, tolerance, max_steps)
    end = _approached(*frozen, end, rows, tolerance, max_steps)
    closed = _settled(model, constraints, q, t, jax.lax.stop_gradient(end.q))
    kkt, drift = factorised(model, constraints, closed, t=t)
    velocity, _ = kkt.project(v, drift)
    rate = kkt.jacobian @ velocity - drift
    slices = row_slices(model, constraints)
    worst = [jnp.max(jnp.abs(jnp.append(end.g[s], rate[s])), initial=0) for s in slices.values()]
    errors = jnp.stack(worst) if worst else jnp.zeros(0, q.dtype)
    status = _status(end, tolerance, solve_status(kkt, velocity, drift))
    return Assembly(closed, velocity, errors, end.step, status, end.near, tuple(slices))


def _status(end: _State, tolerance, moves):
    code = AssemblyStatus
    fine = jnp.max(jnp.abs(end.g), initial=0) <= tolerance
    status = jnp.where(end.stuck, code.CANNOT_CLOSE, code.MAX_STEPS)
    status = jnp.where(fine, jnp.where(moves == ConstraintStatus.CONTRADICTORY, code.CANNOT_MOVE, code.CLOSED), status)
    sound = jnp.isfinite(end.g).all() & jnp.isfinite(end.q).all() & (moves != ConstraintStatus.NOT_FINITE)
    return jnp.where(sound, status, code.NOT_FINITE).astype(jnp.int32)


def _closed(model: Model, constraints, q, t, rows, tolerance, max_steps: int) -> _State:
    """Levenberg and Marquardt on the configuration manifold."""
    error = lambda g: jnp.max(jnp.abs(g), initial=0)
    one = lambda x: jnp.asarray(x, q.dtype)

    def going(s: _State):
        return (error(s.g) > tolerance) & (s.step < max_steps) & ~s.stuck & jnp.isfinite(s.g).all()

    def at(q):
        return evaluated(model, t, q, jnp.zeros(model.nv, q.dtype))

    def step(s: _State):
        a = linearised(model, constraints, at(s.q))[0] * jnp.asarray(rows[:, None], q.dtype)
        gram = a @ a.T
        lift = s.damping * (jnp.trace(gram) / max(len(rows), 1)) + jnp.finfo(q.dtype).eps
        dq = -a.T @ jnp.linalg.solve(gram + lift * jnp.eye(len(rows), dtype=q.dtype), s.g)
        dq = dq / jnp.maximum(1, jnp.max(jnp.abs(dq)))
        trial = integrate(model, s.q, dq)
        g = residuals(model, constraints, at(trial))
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
    start = _State(q, residuals(model, constraints, at(q)), one(1e-6), jnp.zeros((), jnp.int32), no, no)
    return jax.lax.while_loop(going, step, start) if len(rows) else start


def _approached(model: Model, constraints, q, t, end: _State, rows, tolerance, max_steps: int) -> _State:
    """From a closed pose along the constraint to the one nearest to q; `damping` holds `1 / s`."""
    if not len(rows):
        return end._replace(near=jnp.asarray(True))
    error = lambda g: jnp.max(jnp.abs(g), initial=0)
    most = end.step + max_steps

    def step(carry):
        s, size = carry
        x = evaluated(model, t, s.q, jnp.zeros(model.nv, q.dtype))
        kkt = KKT.of(jnp.eye(model.nv, dtype=q.dtype), _holonomic(model, constraints, x, rows))
        g, away = residuals(model, constraints, x), difference(model, s.q, q)
        along = away - kkt.least(kkt.jacobian @ away)
        there = (error(g) <= tolerance) & (error(along) <= tolerance**0.75)
        inverse = jnp.where(error(along) > size, 2 * s.damping, s.damping)
        dq = along / inverse - kkt.least(g)
        dq = dq / jnp.maximum(1, error(dq))
        moved = jnp.where(there, s.q, integrate(model, s.q, dq))
        return _State(moved, g, inverse, s.step + ~there, s.stuck, there), error(along)

    going = lambda c: (error(end.g) <= tolerance) & ~c[0].near & (c[0].step < most) & jnp.isfinite(c[0].g).all()
    first = end._replace(damping=jnp.ones_like(end.damping)), jnp.asarray(jnp.inf, q.dtype)
    final, _ = jax.lax.while_loop(going, step, first)
    keep = lambda new, old: jnp.where(final.near, new, old)
    return final._replace(q=keep(final.q, end.q), g=keep(final.g, end.g))


def _holonomic(model: Model, constraints, x, rows):
    return linearised(model, constraints, x)[0] * jnp.asarray(rows[:, None], x.v.dtype)


@eqx.filter_custom_jvp
def _settled(model: Model, constraints, q, t, closed):
    """`closed`, as the pose nearest to q."""
    return closed


@_settled.def_jvp
def _settled_jvp(primals, tangents):
    """From `F = A^T lambda - difference(closed, q) = 0` and `g = 0`, with H = dF: `H u + A^T mu = -dF`, `A u = -dg`."""
    model, constraints, q, t, _ = primals
    closed = _settled(*primals)
    rows = holonomic_rows(model, constraints)
    parameters = model, constraints, q, t
    zeros = jax.tree.map(jnp.zeros_like, eqx.filter(parameters, eqx.is_inexact_array))
    moved = eqx.combine(tangents[:4], zeros)

    def conditions(e, model, constraints, q, t):
        here = integrate(model, closed, e)
        x = evaluated(model, t, here, jnp.zeros_like(e))
        a = _holonomic(model, constraints, x, rows)
        return a, residuals(model, constraints, x), difference(model, here, q)

    still = jnp.zeros(model.nv, q.dtype)
    a, _, away = conditions(still, *parameters)
    kkt = KKT.of(jnp.eye(model.nv, dtype=q.dtype), a)
    multipliers = kkt.inverse @ away

    def pull(*at):
        a, g, away = conditions(*at)
        return a.T @ multipliers - away, g

    hessian = jax.jacfwd(lambda e: pull(e, *parameters)[0])(still)
    _, (force, gap) = eqx.filter_jvp(lambda *p: pull(still, *p), parameters, moved)
    along = jnp.eye(model.nv, dtype=q.dtype) - kkt.least(a)
    back = -kkt.least(gap)
    reduced = along @ hessian @ along + jnp.eye(model.nv, dtype=q.dtype) - along
    u = back - along @ jnp.linalg.solve(reduced, along @ (force + hessian @ back))
    return closed, configuration_velocity(model, closed, u)
