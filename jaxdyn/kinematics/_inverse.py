"""Inverse kinematics by damped least squares on the configuration manifold, with implicit derivatives.

The residual of a frame at `(R, p)` with target `(R_t, p_t)` is `r = (a log(R_t^T R), b (p - p_t))` with the
weights a and b. Levenberg and Marquardt's step `dq = -J^T (J J^T + l s 1)^-1 r`, `s = tr(J J^T) / 6`, is the
least one in redundant robots and stays bounded at singular poses; l falls when a step helps and grows
when it does not (Nocedal and Wright 2006, section 10.3; Sugihara 2011). Limits are kept by projection.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool

from jaxdyn._errors import ConvergenceError, check_count, check_instance, check_positive
from jaxdyn._numerics import safe_norm
from jaxdyn._status import Status
from jaxdyn._types import Array, Config, Float, Int, Scalar, Vec6
from jaxdyn.joints import has_vector_rate
from jaxdyn.kinematics._configuration import difference, integrate, neutral
from jaxdyn.kinematics._frames import frame_evaluator, frame_pose
from jaxdyn.kinematics._reference import LOCAL
from jaxdyn.model import Model
from jaxdyn.recursion import check_state
from jaxdyn.spatial import (
    Pose,
    matrix_to_quaternion,
    quaternion_exp,
    quaternion_log,
    quaternion_multiply,
)

_dot = lambda a, b: jnp.matmul(a, b, precision="highest")


class IKStatus(Status):
    """Termination status of `inverse_kinematics`."""

    CONVERGED = 0, "the error is below the tolerance"
    STATIONARY = 1, "no step within the limits reduces the error: the target is out of reach, or q is a local minimum"
    MAX_ITERATIONS = 2, "the iterations ran out while the error still decreased"
    NOT_FINITE = (
        3,
        "the target, the model or q0 has a number that is not finite; q is q0, or neutral if q0 is not finite",
    )


class InverseKinematics(eqx.Module):
    """Result of `inverse_kinematics`; q is always finite and within the limits."""

    q: Config
    #: True if the error is below the tolerance
    converged: Bool[Array, ""]
    #: norm of the weighted residual, rad and m
    error: Scalar
    iterations: Int[Array, ""]
    #: an `IKStatus`
    status: Int[Array, ""]

    def checked(self) -> "InverseKinematics":
        """Returns this result, or raises `ConvergenceError` if any of its solves failed; for concrete values."""
        failed = np.asarray(self.status) != IKStatus.CONVERGED
        if failed.any():
            kinds = sorted({IKStatus(int(s)).name for s in np.asarray(self.status)[failed].ravel()})
            raise ConvergenceError(
                f"inverse kinematics failed in {failed.sum()} of {failed.size} solves ({', '.join(kinds)}), "
                f"largest error {np.max(np.asarray(self.error)):.3g}. Try another q0 (or many, with "
                "jax.vmap), a target within reach, or a weight of zero for position or orientation."
            )
        return self


class _Problem(NamedTuple):
    model: Model
    target: Pose
    position_weight: Scalar
    orientation_weight: Scalar


class _State(NamedTuple):
    """State of the iteration: the best point, and the trial point that the next step evaluates."""

    q: Config
    residual: Vec6
    jacobian: Float[Array, "6 nv"]
    damping: Scalar
    trial: Config
    iteration: Int[Array, ""]
    stationary: Bool[Array, ""]


def _orientation_error(problem: _Problem, pose: Pose):
    """Quaternion of the frame in the target's axes."""
    return matrix_to_quaternion(_dot(problem.target.rotation.T, pose.rotation))


def _residual_at(problem: _Problem, pose: Pose):
    angle = quaternion_log(_orientation_error(problem, pose))
    offset = pose.translation - problem.target.translation
    return jnp.concatenate([problem.orientation_weight * angle, problem.position_weight * offset])


def _residual(problem: _Problem, name: str, q):
    return _residual_at(problem, frame_pose(problem.model, q, name))


def _residual_and_jacobian(problem: _Problem, evaluate, q):
    """The residual and its Jacobian over the velocity space, `(6, nv)`."""
    pose, local = evaluate(q)
    turn = _orientation_error(problem, pose)
    log_rate = jax.jacfwd(lambda w: quaternion_log(quaternion_multiply(turn, quaternion_exp(w))))
    angular = _dot(log_rate(jnp.zeros(3, turn.dtype)), local[:3])
    linear = _dot(pose.rotation, local[3:])
    rows = [problem.orientation_weight * angular, problem.position_weight * linear]
    return _residual_at(problem, pose), jnp.concatenate(rows)


def _limited_coordinates(model: Model):
    """For each velocity, the coordinate whose limits bound it, and whether there is one.

    Its rate is the velocity itself, or a combination of velocities by `_coordinate_tangents`.
    """
    t = model.topology
    starts = np.zeros(model.nv, int)
    limited = np.zeros(model.nv, bool)
    for body in t.independent:
        n = t.body_nv[body]
        if t.body_nq[body] == n:
            v = t.v_source[t.v_start[body]] + np.arange(n)
            starts[v] = t.q_source[t.q_start[body]] + np.arange(n)
            limited[v] = True
    return starts, limited


def _coordinate_tangents(model: Model, q):
    """Velocities for unit rates of the coordinates, `(nv, nv)`, in joints with `nq = nv`; None for the identity.

    The velocity of a planar joint is in its own rotating axes, but its limits bound its coordinates.
    """
    t = model.topology
    curved = [
        t.q_source[t.q_start[k]] + i
        for k in t.independent
        if t.body_nq[k] == t.body_nv[k] and not has_vector_rate(model.joints[t.groups[t.bodies[k]]])
        for i in range(t.body_nq[k])
    ]
    if not curved:
        return None
    rows, limited = _limited_coordinates(model)
    places = [int(np.flatnonzero(limited & (rows == x))[0]) for x in curved]
    along = lambda e: jax.jvp(lambda x: difference(model, q, x), (q,), (e,))[1]
    columns = jax.vmap(along)(jnp.eye(model.nq, dtype=q.dtype)[np.array(curved)])
    return jnp.eye(model.nv, dtype=q.dtype).at[:, np.array(places)].set(columns.T)


def _active_limits(model: Model, q, downhill=None):
    """Velocities whose coordinate is at its lower and at its upper limit (and which `downhill` pushes beyond it)."""
    rows, limited = _limited_coordinates(model)
    lower = limited & (q <= model.limits.lower)[rows]
    upper = limited & (q >= model.limits.upper)[rows]
    if downhill is None:
        return lower, upper
    return lower & (downhill < 0), upper & (downhill > 0)


def _clip_to_limits(model: Model, q):
    return jnp.clip(q, model.limits.lower, model.limits.upper)


def _follow_limits(model: Model, q):
    """q with coordinates at a limit replaced by the limit, so that the error has its derivative.

    To first order the least error depends on the active limits alone.
    """
    lower, upper = model.limits.lower, model.limits.upper
    return jnp.where(q <= lower, lower, jnp.where(q >= upper, upper, q))


def _step(problem: _Problem, evaluate, state: _State, eps: float) -> _State:
    """Accepts or rejects the trial point, and takes a step from the accepted one."""
    model = problem.model
    trial = _residual_and_jacobian(problem, evaluate, state.trial)
    improves = safe_norm(trial[0]) < safe_norm(state.residual)
    select = lambda new, old: jnp.where(improves, new, old)
    q, residual, jacobian = map(select, (state.trial, *trial), (state.q, state.residual, state.jacobian))
    damping = jnp.where(improves, jnp.maximum(state.damping * 0.1, 100 * eps), state.damping * 8)
    rates = _coordinate_tangents(model, q)
    j = jacobian if rates is None else _dot(jacobian, rates)
    lower, upper = _active_limits(model, q, -_dot(residual, j))
    j = jnp.where(lower | upper, 0, j)
    gram = _dot(j, j.T)
    scale = jnp.trace(gram) / 6
    scale = jnp.where(scale > 0, scale, 1)
    factor = jnp.linalg.cholesky(gram + damping * scale * jnp.eye(6, dtype=gram.dtype))
    dq = -_dot(j.T, jax.scipy.linalg.cho_solve((factor, True), residual))
    dq = dq if rates is None else _dot(rates, dq)
    is_flat = safe_norm(_dot(residual, j)) <= eps**0.5 * safe_norm(residual) * jnp.sqrt(scale)
    is_stuck = ~improves & (state.damping > 1e6)
    trial = _clip_to_limits(model, integrate(model, q, dq))
    return _State(q, residual, jacobian, damping, trial, state.iteration + 1, is_flat | is_stuck)


@eqx.filter_jit  # a loop outside of a compiled function is compiled at every call
def _solve(problem: _Problem, name: str, q0, tolerance, max_iterations) -> _State:
    model, dtype = problem.model, q0.dtype
    evaluate, eps = frame_evaluator(model, name, LOCAL), float(jnp.finfo(dtype).eps)
    q = _clip_to_limits(model, q0)
    worst = jnp.full(6, 1e3 / eps, dtype)  # a residual larger than at any point
    count, stationary = jnp.zeros((), jnp.int32), jnp.zeros((), bool)
    start = _State(q, worst, jnp.zeros((6, model.nv), dtype), jnp.asarray(1e-2, dtype), q, count, stationary)

    def unfinished(s: _State):
        return (safe_norm(s.residual) > tolerance) & (s.iteration <= max_iterations) & ~s.stationary

    return jax.lax.while_loop(unfinished, lambda s: _step(problem, evaluate, s, eps), start)


@eqx.filter_custom_jvp
def _solution(problem: _Problem, q, *, name: str):
    """q, with the derivative of the solution with respect to the problem."""
    return q


@_solution.def_jvp
def _solution_jvp(primals, tangents, *, name: str):
    problem, q = primals
    problem_tangent, _ = tangents
    q = _solution(problem, q, name=name)
    _, rate = eqx.filter_jvp(lambda p: _residual(p, name, q), (problem,), (problem_tangent,))
    rate = jnp.zeros(6, q.dtype) if rate is None else rate
    _, j = _residual_and_jacobian(problem, frame_evaluator(problem.model, name, LOCAL), q)
    model = problem.model
    rates = _coordinate_tangents(model, q)
    j = j if rates is None else _dot(j, rates)
    lower, upper = _active_limits(model, q)
    limits = problem_tangent.model.limits
    rows, _ = _limited_coordinates(model)
    tangent = lambda x: jnp.zeros_like(q) if x is None else x
    limit_motion = jnp.where(lower, tangent(limits.lower)[rows], jnp.where(upper, tangent(limits.upper)[rows], 0))
    free = jnp.where(lower | upper, 0, j)
    inverse = jnp.linalg.pinv(free, rtol=10 * float(jnp.finfo(q.dtype).eps) ** 0.75)
    dv = limit_motion - _dot(inverse, rate + _dot(j, limit_motion))
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

    Minimises `|orientation_weight log(R_t^T R)|^2 + |position_weight (p - p_t)|^2` by damped least squares, subject to
    the position limits of the model.

    Arguments:

    * `model`: the robot
    * `name`: a link or a frame
    * `target`: its desired `Pose` in the world
    * `q0`: initial guess, `(nq,)`; one guess can end in a local minimum, so try several with `jax.vmap`
    * `position_weight`, `orientation_weight`: weights of the residuals in m and rad; zero leaves that part free
    * `tolerance`: bound on the norm of the weighted residual, by default `eps^(2/3)` of the precision
    * `max_iterations`: bound on the number of steps

    Returns an `InverseKinematics` with `q`, `converged`, `error`, `iterations` and `status` (an `IKStatus`); its method
    `checked()` raises `ConvergenceError` if the solve failed.

    q is differentiable with respect to the target, the weights and every leaf of the model by the implicit function
    theorem, `dq = -J^+ dr`, with least norm in redundant robots; coordinates at a limit follow the limit. The
    derivative with respect to q0 is zero. Where the solve has not converged, it is the derivative of one Gauss-Newton
    step.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd

    model = jd.robots.double_pendulum()
    tip = model.link_names[-1]
    target = jd.frame_pose(model, jnp.array([0.4, 0.9]), tip)
    solution = jd.inverse_kinematics(model, tip, target, jnp.array([0.3, 0.8])).checked()
    ```
    """
    (q0,) = check_state(model, q0=q0)
    check_instance("target", target, Pose, "pass a jaxdyn.spatial.Pose, as jaxdyn.frame_pose returns")
    check_count("max_iterations", max_iterations)
    if tolerance is not None:
        check_positive("tolerance", tolerance, "rad and m")
    dtype = jnp.result_type(q0, model.dtype)
    weights = tuple(jnp.asarray(w, dtype) for w in (position_weight, orientation_weight))
    problem = _Problem(model, target, *weights)
    limit = float(jnp.finfo(dtype).eps) ** (2 / 3) if tolerance is None else tolerance
    fixed, start = jax.lax.stop_gradient((problem, q0.astype(dtype)))
    is_finite = jnp.all(jnp.isfinite(start))
    start = jnp.where(is_finite, start, neutral(model))
    if model.nv == 0:
        residual = _residual(problem, name, start)
        q, count = start, jnp.zeros((), jnp.int32)
        stationary = jnp.ones((), bool)
    else:
        end = _solve(fixed, name, start, jnp.asarray(limit, dtype), jnp.asarray(max_iterations))
        q, count, stationary = end.q, end.iteration - 1, end.stationary
        q = _solution(problem, q, name=name)
        residual = _residual(problem, name, _follow_limits(model, jax.lax.stop_gradient(q)))
    error = safe_norm(residual)
    finite = is_finite & jnp.isfinite(error)
    converged = is_finite & (error <= limit)
    status = jnp.where(stationary, IKStatus.STATIONARY, IKStatus.MAX_ITERATIONS)
    status = jnp.where(converged, IKStatus.CONVERGED, jnp.where(finite, status, IKStatus.NOT_FINITE))
    error = jnp.where(finite, error, jnp.inf)
    return InverseKinematics(q, converged, error, count, status.astype(jnp.int32))
