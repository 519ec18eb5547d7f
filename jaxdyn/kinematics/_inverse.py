"""Inverse kinematics: damped least squares on the manifold, differentiable through its solution.

The residual of a frame at `(R, p)` with target `(R_t, p_t)` is `r = (a log(R_t^T R), b (p - p_t))` with the
weights a and b. Levenberg and Marquardt's step `dq = -J^T (J J^T + l s 1)^-1 r`, `s = tr(J J^T) / 6`, is the
least one in redundant robots and stays bounded at singular poses; l falls when a step helps and grows
when it does not (Nocedal and Wright 2006, section 10.3; Sugihara 2011). Limits are kept by projection.
"""

import enum
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ConvergenceError, check_shape
from jaxdyn._numerics import safe_norm
from jaxdyn._types import Array, Config, Float, Int, Scalar
from jaxdyn.joints import has_vector_rate
from jaxdyn.kinematics._configuration import difference, integrate, neutral
from jaxdyn.kinematics._frames import frame_evaluator, frame_pose
from jaxdyn.kinematics._reference import LOCAL
from jaxdyn.model import Model
from jaxdyn.spatial import (
    Pose,
    matrix_to_quaternion,
    quaternion_exp,
    quaternion_log,
    quaternion_multiply,
)

_dot = lambda a, b: jnp.matmul(a, b, precision="highest")


class IKStatus(enum.IntEnum):
    """How a solve ended."""

    CONVERGED = 0
    #: no step within the limits brings the frame closer: the target is out of reach, or a local minimum
    STATIONARY = 1
    #: it was still improving after the last allowed iteration
    MAX_ITERATIONS = 2
    #: the target, the model or the start has a number that is not finite; q is the start, or neutral
    NOT_FINITE = 3


class InverseKinematics(eqx.Module):
    """Result of `inverse_kinematics`: always a finite q within the limits, and how good it is."""

    q: Config
    #: whether the error is below the tolerance
    converged: Any
    #: length of the weighted residual, rad and m
    error: Scalar
    iterations: Int[Array, ""]
    #: an `IKStatus`
    status: Int[Array, ""]

    def checked(self) -> "InverseKinematics":
        """This result, or `ConvergenceError` if any solve in it failed; for concrete values."""
        failed = np.asarray(self.status) != IKStatus.CONVERGED
        if failed.any():
            kinds = sorted({IKStatus(int(s)).name for s in np.asarray(self.status)[failed].ravel()})
            raise ConvergenceError(
                f"inverse kinematics failed in {failed.sum()} of {failed.size} solves ({', '.join(kinds)}), "
                f"largest error {np.max(np.asarray(self.error)):.3g}. Try another q0 (or many, with "
                "jax.vmap), a target within reach, or a weight of zero for what need not be met."
            )
        return self


class _Problem(NamedTuple):
    model: Model
    target: Pose
    position_weight: Any
    orientation_weight: Any


class _State(NamedTuple):
    q: Any
    residual: Any
    jacobian: Any
    damping: Any
    trial: Any
    iteration: Any
    stationary: Any


def _turn(problem: _Problem, pose: Pose):
    """Quaternion of the frame in the target's axes."""
    return matrix_to_quaternion(_dot(problem.target.rotation.T, pose.rotation))


def _residual_at(problem: _Problem, pose: Pose):
    angle = quaternion_log(_turn(problem, pose))
    offset = pose.translation - problem.target.translation
    return jnp.concatenate([problem.orientation_weight * angle, problem.position_weight * offset])


def _residual(problem: _Problem, name: str, q):
    return _residual_at(problem, frame_pose(problem.model, q, name))


def _linearised(problem: _Problem, evaluate, q):
    """The residual and its Jacobian over the velocity space, `(6, nv)`."""
    pose, local = evaluate(q)
    turn = _turn(problem, pose)
    log_rate = jax.jacfwd(lambda w: quaternion_log(quaternion_multiply(turn, quaternion_exp(w))))
    angular = _dot(log_rate(jnp.zeros(3, turn.dtype)), local[:3])
    linear = _dot(pose.rotation, local[3:])
    rows = [problem.orientation_weight * angular, problem.position_weight * linear]
    return _residual_at(problem, pose), jnp.concatenate(rows)


def _bounds(model: Model):
    """For each velocity, the coordinate whose rate it is (or becomes by `_rates`), and whether there is one."""
    t = model.topology
    starts = np.zeros(model.nv, int)
    alone = np.zeros(model.nv, bool)
    for body in t.independent:
        n = t.body_nv[body]
        if t.body_nq[body] == n:
            v = t.v_source[t.v_start[body]] + np.arange(n)
            starts[v] = t.q_source[t.q_start[body]] + np.arange(n)
            alone[v] = True
    return starts, alone


def _rates(model: Model, q):
    """Velocities of the rates of coordinates, `(nv, nv)`, in joints with as many of both; None for the identity.

    A planar joint slides along its own turning axes, and a limit is one on its coordinates.
    """
    t = model.topology
    bent = [
        t.q_source[t.q_start[k]] + i
        for k in t.independent
        if t.body_nq[k] == t.body_nv[k] and not has_vector_rate(model.joints[t.groups[t.bodies[k]]])
        for i in range(t.body_nq[k])
    ]
    if not bent:
        return None
    rows, alone = _bounds(model)
    places = [int(np.flatnonzero(alone & (rows == x))[0]) for x in bent]
    along = lambda e: jax.jvp(lambda x: difference(model, q, x), (q,), (e,))[1]
    columns = jax.vmap(along)(jnp.eye(model.nq, dtype=q.dtype)[np.array(bent)])
    return jnp.eye(model.nv, dtype=q.dtype).at[:, np.array(places)].set(columns.T)


def _held(model: Model, q, downhill=None):
    """Velocities whose coordinate is at a limit (and which `downhill` pushes further): lower, upper."""
    rows, alone = _bounds(model)
    lower = alone & (q <= model.limits.lower)[rows]
    upper = alone & (q >= model.limits.upper)[rows]
    if downhill is None:
        return lower, upper
    return lower & (downhill < 0), upper & (downhill > 0)


def _within(model: Model, q):
    return jnp.clip(q, model.limits.lower, model.limits.upper)


def _at_limits(model: Model, q):
    """q, moving with the limits that it touches: all that a least error depends on, to first order."""
    lower, upper = model.limits.lower, model.limits.upper
    return jnp.where(q <= lower, lower, jnp.where(q >= upper, upper, q))


def _step(problem: _Problem, evaluate, state: _State, eps: float) -> _State:
    """Judges the trial point, and steps from the better one."""
    model = problem.model
    trial = _linearised(problem, evaluate, state.trial)
    better = safe_norm(trial[0]) < safe_norm(state.residual)
    keep = lambda new, old: jnp.where(better, new, old)
    q, residual, jacobian = map(keep, (state.trial, *trial), (state.q, state.residual, state.jacobian))
    damping = jnp.where(better, jnp.maximum(state.damping * 0.1, 100 * eps), state.damping * 8)
    rates = _rates(model, q)
    j = jacobian if rates is None else _dot(jacobian, rates)
    lower, upper = _held(model, q, -_dot(residual, j))
    j = jnp.where(lower | upper, 0, j)
    gram = _dot(j, j.T)
    scale = jnp.trace(gram) / 6
    scale = jnp.where(scale > 0, scale, 1)
    factor = jnp.linalg.cholesky(gram + damping * scale * jnp.eye(6, dtype=gram.dtype))
    dq = -_dot(j.T, jax.scipy.linalg.cho_solve((factor, True), residual))
    dq = dq if rates is None else _dot(rates, dq)
    flat = safe_norm(_dot(residual, j)) <= eps**0.5 * safe_norm(residual) * jnp.sqrt(scale)
    stuck = ~better & (state.damping > 1e6)
    trial = _within(model, integrate(model, q, dq))
    return _State(q, residual, jacobian, damping, trial, state.iteration + 1, flat | stuck)


def _solve(problem: _Problem, name: str, q0, tolerance, max_iterations: int) -> _State:
    model, dtype = problem.model, q0.dtype
    evaluate, eps = frame_evaluator(model, name, LOCAL), float(jnp.finfo(dtype).eps)
    q = _within(model, q0)
    far = jnp.full(6, 1e3 / eps, dtype)  # worse than any point
    count, no = jnp.zeros((), jnp.int32), jnp.zeros((), bool)
    start = _State(q, far, jnp.zeros((6, model.nv), dtype), jnp.asarray(1e-2, dtype), q, count, no)

    def unfinished(s: _State):
        return (safe_norm(s.residual) > tolerance) & (s.iteration <= max_iterations) & ~s.stationary

    return jax.lax.while_loop(unfinished, lambda s: _step(problem, evaluate, s, eps), start)


@eqx.filter_custom_jvp
def _solution(problem: _Problem, q, *, name: str):
    """q, whose derivative in the problem is that of the solution."""
    return q


@_solution.def_jvp
def _solution_jvp(primals, tangents, *, name: str):
    problem, q = primals
    moved, _ = tangents
    q = _solution(problem, q, name=name)
    _, rate = eqx.filter_jvp(lambda p: _residual(p, name, q), (problem,), (moved,))
    rate = jnp.zeros(6, q.dtype) if rate is None else rate
    _, j = _linearised(problem, frame_evaluator(problem.model, name, LOCAL), q)
    model = problem.model
    rates = _rates(model, q)
    j = j if rates is None else _dot(j, rates)
    lower, upper = _held(model, q)
    limits = moved.model.limits
    rows, _ = _bounds(model)
    tangent = lambda x: jnp.zeros_like(q) if x is None else x
    forced = jnp.where(lower, tangent(limits.lower)[rows], jnp.where(upper, tangent(limits.upper)[rows], 0))
    free = jnp.where(lower | upper, 0, j)
    back = jnp.linalg.pinv(free, rtol=10 * float(jnp.finfo(q.dtype).eps) ** 0.75)
    dv = forced - _dot(back, rate + _dot(j, forced))
    dv = dv if rates is None else _dot(rates, dv)
    return q, jax.jvp(lambda d: integrate(model, q, d), (jnp.zeros_like(dv),), (dv,))[1]


def inverse_kinematics(
    model: Model,
    name: str,
    target: Pose,
    q0: Config,
    *,
    position_weight: Float[Array, ""] | float = 1.0,
    orientation_weight: Float[Array, ""] | float = 1.0,
    tolerance: float | None = None,
    max_iterations: int = 100,
) -> InverseKinematics:
    """A configuration that brings the link or frame called `name` to the pose `target` in the world.

    Minimises `|orientation_weight log(R_t^T R)|^2 + |position_weight (p - p_t)|^2` from q0 by damped least
    squares within the position limits, until its root is below `tolerance` (default `eps^(2/3)` of the
    precision). A weight of zero leaves position or orientation free. Position limits are kept exactly.

    q is differentiable in the target, the weights and every leaf of the model by the implicit function
    theorem, `dq = -J^+ dr`, of least norm in redundant robots, with coordinates at a limit following the
    limit; q0 has no derivative. Where the solve has not converged the derivative is that of Gauss and
    Newton. The status says how it ended: `.converged`, `.status` (an `IKStatus`), or `.checked()`, which
    raises. One start can end in a local minimum: try several with `jax.vmap`.
    """
    q0 = check_shape("q0", q0, (model.nq,))
    dtype = jnp.result_type(q0, model.dtype)
    weights = tuple(jnp.asarray(w, dtype) for w in (position_weight, orientation_weight))
    problem = _Problem(model, target, *weights)
    limit = float(jnp.finfo(dtype).eps) ** (2 / 3) if tolerance is None else tolerance
    fixed, start = jax.lax.stop_gradient((problem, q0.astype(dtype)))
    sound = jnp.all(jnp.isfinite(start))
    start = jnp.where(sound, start, neutral(model))
    if model.nv == 0:
        residual = _residual(problem, name, start)
        q, count = start, jnp.zeros((), jnp.int32)
        stationary = jnp.ones((), bool)
    else:
        end = _solve(fixed, name, start, limit, max_iterations)
        q, count, stationary = end.q, end.iteration - 1, end.stationary
        q = _solution(problem, q, name=name)
        residual = _residual(problem, name, _at_limits(model, jax.lax.stop_gradient(q)))
    error = safe_norm(residual)
    finite = sound & jnp.isfinite(error)
    converged = sound & (error <= limit)
    status = jnp.where(stationary, IKStatus.STATIONARY, IKStatus.MAX_ITERATIONS)
    status = jnp.where(converged, IKStatus.CONVERGED, jnp.where(finite, status, IKStatus.NOT_FINITE))
    error = jnp.where(finite, error, jnp.inf)
    return InverseKinematics(q, converged, error, count, status.astype(jnp.int32))
