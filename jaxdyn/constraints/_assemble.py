"""The state on the constraints that is nearest to a rough one."""

import enum
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ConvergenceError, check_shape
from jaxdyn._types import Array, Float, Int
from jaxdyn.constraints._dynamics import factorised
from jaxdyn.constraints._evaluate import as_constraints, evaluated, holonomic_rows, linearised, residuals, row_slices
from jaxdyn.constraints._kkt import KKT
from jaxdyn.kinematics import difference, integrate
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


class Assembly(eqx.Module):
    """Result of `assemble`."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    #: largest entry of each constraint's residual, in the order of `names`
    errors: Float[Array, " constraints"]
    steps: Int[Array, ""]
    #: an `AssemblyStatus`
    status: Int[Array, ""]
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
    """The nearest state on the constraints: Levenberg and Marquardt's steps for q, one projection for v.

    `dq = -A^T (A A^T + mu 1)^-1 g` until the largest entry of g is below `tolerance` (by default 1e3 eps), with mu
    growing while steps do not help. Velocities are those nearest in the metric of M. The result is
    differentiable in q, v, the model and the constraints, by the tangent of its last step: exact where the start is
    on the constraint or the closed pose is isolated, elsewhere up to a motion that the constraint allows.
    """
    constraints = as_constraints(constraints)
    q = check_shape("q", q, (model.nq,))
    v = jnp.zeros(model.nv, q.dtype) if v is None else check_shape("v", v, (model.nv,))
    tolerance = 1e3 * float(jnp.finfo(q.dtype).eps) if tolerance is None else tolerance
    rows = holonomic_rows(model, constraints)
    frozen = jax.lax.stop_gradient((model, constraints, q, t))
    end = _closed(*frozen, rows, tolerance, max_steps)
    closed = _with_tangent(model, constraints, q, t, end.q, rows)
    kkt, drift = factorised(model, constraints, closed, t=t)
    velocity, _ = kkt.project(v, drift)
    slices = row_slices(model, constraints)
    worst = [jnp.max(jnp.abs(end.g[s]), initial=0) for s in slices.values()]
    fine = jnp.max(jnp.abs(end.g), initial=0) <= tolerance
    status = jnp.where(end.stuck, AssemblyStatus.CANNOT_CLOSE, AssemblyStatus.MAX_STEPS)
    status = jnp.where(fine, AssemblyStatus.CLOSED, status)
    status = jnp.where(jnp.isfinite(end.g).all(), status, AssemblyStatus.NOT_FINITE).astype(jnp.int32)
    errors = jnp.stack(worst) if worst else jnp.zeros(0, q.dtype)
    return Assembly(closed, velocity, errors, end.step, status, tuple(slices))


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
        )

    start = _State(q, residuals(model, constraints, at(q)), one(1e-6), jnp.zeros((), jnp.int32), jnp.asarray(False))
    return jax.lax.while_loop(going, step, start) if len(rows) else start


def _with_tangent(model: Model, constraints, q, t, closed, rows):
    """`closed` with the derivative of the constraint's solution: least in what moves it, along it in q."""
    closed = jax.lax.stop_gradient(closed)
    x = evaluated(model, t, closed, jnp.zeros(model.nv, q.dtype))
    a, _ = linearised(model, constraints, x)
    a = jax.lax.stop_gradient(a) * jnp.asarray(rows[:, None], q.dtype)
    kkt = KKT.of(jnp.eye(model.nv, dtype=q.dtype), a)
    g = residuals(model, constraints, x)
    shift = difference(model, jax.lax.stop_gradient(q), q)  # zero, with the derivative of q
    along = shift - kkt.least(a @ shift)
    return integrate(model, closed, along - kkt.least(g - jax.lax.stop_gradient(g)))
