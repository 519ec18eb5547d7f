"""Robot and actuators as one state equation: the complete models 20.71 to 20.82."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn._errors import ModelError, check_shape
from jaxdyn._types import Array, Float, PyTree
from jaxdyn.actuators.contract import AbstractJointActuator, CanonicalForm, velocity_index
from jaxdyn.dynamics import mass_matrix, passive_forces, rnea
from jaxdyn.model import Model


class DrivenMatrices(NamedTuple):
    """`H_star a + h_star = D u`."""

    #: `(nv, nv)`
    H_star: Array
    #: `(nv,)`
    h_star: Array
    #: `(nv, motors)`
    D: Array


class CompleteModel(NamedTuple):
    """`xdot = C + D u`."""

    #: rates at zero input, `(N,)`
    C: Array
    #: rates per input, `(N, inputs)`
    D: Array


def driven_matrices(
    model: Model,
    motors: Sequence[AbstractJointActuator],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    *,
    passive: bool = True,
) -> DrivenMatrices:
    """Matrices of the equation of motion under the inputs of actuators without states (20.71 to 20.73).

    For direct-current motors without inductance,

        H* = H + diag(n^2 J),    h* = h + n^2 (C_M C_E / R + B) v,    D = diag(n C_M / R)

    Arguments:

    * `model`: the robot without the inertia of the motors
    * `motors`: actuators without states, on different coordinates; coordinates without a motor are free
    * `q`, `v`: configuration `(nq,)` and velocity `(nv,)`
    * `passive`: whether h* contains the passive forces of the joints, as a `System` does

    Returns `(H*, h*, D)`, D with a column for each motor. Raises `ModelError` for actuators with states or gear losses
    and for two actuators on one coordinate. Saturation is not part of the equation.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import DcMotor, driven_matrices

    arm = jd.robots.double_pendulum()
    motors = [DcMotor(name, constant=0.05, resistance=1.2, gear=50.0, rotor_inertia=1e-4) for name in arm.joint_names]
    H, h, D = driven_matrices(arm, motors, jnp.array([0.3, -0.7]), jnp.zeros(2))
    ```
    """
    columns = _columns(model, motors)
    forms = _forms(model, motors, columns, q, v, [None] * len(motors))
    for motor, form in zip(motors, forms, strict=True):
        if form.rate.shape[0]:
            raise ModelError(
                f"the {type(motor).__name__} on joint {motor.joint!r} has {form.rate.shape[0]} states, such as a "
                "current; driven_matrices takes actuators without states: leave the inductance out, or take "
                "complete_model"
            )
    inertia, effort, gain = _joint_terms(model, columns, forms)
    H = mass_matrix(model, q) + jnp.diag(inertia)
    return DrivenMatrices(H, _bias(model, q, v, passive) - effort, gain)


def complete_model(
    model: Model, actuators: Sequence[AbstractJointActuator], x: Float[Array, " N"], *, passive: bool = True
) -> CompleteModel:
    """The state equation `xdot = C(x) + D(x) u` of a robot with an actuator on each coordinate (20.80 to 20.82).

    x stacks the states `x_j = (q_j, v_j, z_j)` of the actuators (`stack_states`), in joint coordinates. With
    `xdot = C x + F tau + D u` of all actuators, `a = T xdot` and `tau = H a + h`,

        tau = (1 - H T F)^-1 (H T (C x + D u) + h)
        C^ = C x + F (1 - H T F)^-1 (H T C x + h),    D^ = D + F (1 - H T F)^-1 H T D

    The last F is missing in equation 20.82 of the source. The function solves the equivalent symmetric equation
    `(H + I) a = ...` with the inertias I of the actuators, which may be zero.

    Arguments: the `model` without the inertia of the actuators, the `actuators`, x `(N,)`, and `passive` as in
    `driven_matrices`. Returns `(C^, D^)` with shapes `(N,)` and `(N, inputs)`. Raises `ModelError` unless each
    coordinate of the robot has one actuator with a canonical form, without gear losses. Saturation is not part of it.
    """
    columns = _columns(model, actuators)
    if sorted(columns) != list(range(model.nv)) or model.nq != model.nv:
        raise ModelError(
            f"actuators drive the velocity coordinates {sorted(columns)}; complete_model expects one actuator for each "
            f"of the {model.nv} coordinates of a robot with as many configuration coordinates; otherwise take "
            "System.rate"
        )
    q, v, states = _unstack(model, actuators, columns, x)
    forms = _forms(model, actuators, columns, q, v, states)
    inertia, effort, gain = _joint_terms(model, columns, forms)
    factor = cho_factor(mass_matrix(model, q) + jnp.diag(inertia))
    a = cho_solve(factor, effort - _bias(model, q, v, passive))
    a_u = cho_solve(factor, gain)
    tau, tau_u = effort - inertia * a, gain - inertia[:, None] * a_u
    rates, gains = [], []
    for k, (j, form) in enumerate(zip(columns, forms, strict=True)):
        own = jnp.zeros((form.rate.shape[0], len(actuators))).at[:, k].set(form.rate_gain)
        rates.append(jnp.concatenate([jnp.stack([v[j], a[j]]), form.rate + form.rate_effort * tau[j]]))
        rows = [jnp.zeros_like(a_u[:1]), a_u[j][None], own + form.rate_effort[:, None] * tau_u[j]]
        gains.append(jnp.concatenate(rows))
    return CompleteModel(jnp.concatenate(rates), jnp.concatenate(gains))


def stack_states(
    model: Model,
    actuators: Sequence[AbstractJointActuator],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    states: Sequence[PyTree] | None = None,
) -> Float[Array, " N"]:
    """The state x of `complete_model`: `(q_j, v_j, z_j)` of each actuator; `states` are those of the parts, by default
    the initial ones.
    """
    columns = _columns(model, actuators)
    given = [None] * len(actuators) if states is None else states
    rows = []
    for j, actuator, state in zip(columns, actuators, given, strict=True):
        z = actuator.initial(model, q, v) if state is None else state
        rows.append(jnp.concatenate([jnp.stack([q[j], v[j]]), ravel_pytree(z)[0].astype(v.dtype)]))
    return jnp.concatenate(rows)


def _unstack(model, actuators, columns, x):
    """Configuration, velocity, and the states of the actuators."""
    zeros = jnp.zeros(model.nq, x.dtype), jnp.zeros(model.nv, x.dtype)
    flat = [ravel_pytree(actuator.initial(model, *zeros)) for actuator in actuators]
    check_shape("state x of the complete model", x, (sum(2 + z.size for z, _ in flat),))
    (q, v), states, start = zeros, [], 0
    for j, (z, unravel) in zip(columns, flat, strict=True):
        q, v = q.at[j].set(x[start]), v.at[j].set(x[start + 1])
        states.append(unravel(x[start + 2 : start + 2 + z.size].astype(z.dtype)) if z.size else None)
        start += 2 + z.size
    return q, v, states


def _columns(model: Model, actuators: Sequence[AbstractJointActuator]) -> list[int]:
    """The velocity coordinate of each actuator."""
    columns = [velocity_index(model, type(actuator).__name__, actuator.joint) for actuator in actuators]
    if len(set(columns)) < len(columns):
        names = [actuator.joint for actuator in actuators]
        raise ModelError(f"actuators drive the joints {names}; expected at most one actuator for each joint")
    return columns


def _forms(model, actuators, columns, q, v, states) -> list[CanonicalForm]:
    forms = []
    for j, actuator, state in zip(columns, actuators, states, strict=True):
        z = actuator.initial(model, q, v) if state is None else state
        forms.append(actuator.canonical_form(q[model.joint(actuator.joint).q.start], v[j], z))
    return forms


def _joint_terms(model: Model, columns, forms) -> tuple[Array, Array, Array]:
    """Inertias `(nv,)`, efforts `(nv,)` and efforts per input `(nv, actuators)` of all actuators."""
    inertia, effort = jnp.zeros(model.nv, model.dtype), jnp.zeros(model.nv, model.dtype)
    gain = jnp.zeros((model.nv, len(columns)), model.dtype)
    for k, (j, form) in enumerate(zip(columns, forms, strict=True)):
        inertia, effort = inertia.at[j].set(form.inertia), effort.at[j].set(form.effort)
        gain = gain.at[j, k].set(form.effort_gain)
    return inertia, effort, gain


def _bias(model: Model, q, v, passive: bool):
    bias = rnea(model, q, v, jnp.zeros_like(v))
    return bias - passive_forces(model, q, v) if passive else bias
