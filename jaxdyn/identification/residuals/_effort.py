"""The residual of efforts: measured minus predicted ones."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError, ShapeError
from jaxdyn._types import Array, Float
from jaxdyn.actuators import Drive
from jaxdyn.dynamics import AbstractActuator, AbstractPart, rnea
from jaxdyn.identification.logs import Log, check_log
from jaxdyn.identification.parameters import Parameters, dof_labels
from jaxdyn.identification.preparation import interpolate_cubic
from jaxdyn.identification.residuals._least_squares import LeastSquaresProblem, stack_chunks
from jaxdyn.model import Model
from jaxdyn.simulation import Inputs, State, System
from jaxdyn.simulation.system import as_system


def required_effort(
    system: System, q: Float[Array, " nq"], v: Float[Array, " nv"], a: Float[Array, " nv"], t: ArrayLike = 0.0
) -> Float[Array, " nv"]:
    """The effort required of drives for a motion: `rnea - passive_forces - efforts of all other parts`."""
    parts = tuple(part for part in system.parts if not isinstance(part, Drive))
    others = System(system.model, parts, system.motion, system.passive)
    action: Any = others.action(t, State(q, v, (None,) * len(parts) or None), acceleration=a)
    return rnea(others.mounted_model, q, v, a, action.external) - action.effort


def find_drive(system: System) -> Drive | None:
    """The drive of a system, or None."""
    for part in system.parts:
        if isinstance(part, Drive):
            return part
    return None


def predict_sample(
    system: System, q: Float[Array, " nq"], v: Float[Array, " nv"], a: Float[Array, " nv"], t: ArrayLike = 0.0
) -> Float[Array, " nv"]:
    """The effort that a log should read in one sample: the required effort, through the inverse of the drive."""
    effort = required_effort(system, q, v, a, t)
    drive = find_drive(system)
    return effort if drive is None else drive.inverse(effort)


def effort_residual(system: System, sample: Sequence[Array]) -> Float[Array, "nv 1"]:
    """`u(t - delay) - predicted`, to first order in the delay."""
    t, q, v, a, u, rate = sample
    drive = find_drive(system)
    if drive is not None:
        u = u - drive.delay * rate
    return (u - predict_sample(system, q, v, a, t))[:, None]


def check_parts(system: System):
    """Raises `ModelError` for parts whose effort a single sample does not determine, and for more than one drive."""
    if sum(isinstance(p, Drive) for p in system.parts) > 1:
        raise ModelError("the system has two Drives; expected at most one, with a gain for each joint")
    for part in system.parts:
        zero = jnp.zeros(system.model.nv, system.model.dtype)
        has_initial = isinstance(part, AbstractPart | AbstractActuator | Inputs)
        state = part.initial(system.model, system.model.properties.rest, zero) if has_initial else 0
        if state is not None:
            raise ModelError(
                f"{type(part).__name__} has a state, which no column of a log holds; fit its parameters with "
                "OutputError, which simulates the part"
            )


def effort_problem(parameters: Parameters, logs: Sequence[Log], chunk: int) -> LeastSquaresProblem:
    """The residual of efforts over all rows of the logs, with a channel for each degree of freedom."""
    model = parameters.system.model
    check_parts(parameters.system)
    rows = effort_samples(model, logs)
    samples, present = stack_chunks(rows, chunk)
    measured = jnp.sqrt(jnp.mean(jnp.asarray(rows[4]) ** 2, axis=0))
    return LeastSquaresProblem(parameters, samples, present, effort_residual, *dof_channels(model), False, measured)


def dof_channels(model: Model) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and units of efforts, one for each degree of freedom."""
    names = tuple(dof_labels(model))
    linear = {
        name
        for name in model.joint_names
        if model.joint(name).joint.translates and model.joint(name).v.stop - model.joint(name).v.start == 1
    }
    return names, tuple("N" if name in linear else "N m" for name in names)


def effort_samples(model: Model, logs: Sequence[Log]) -> tuple[np.ndarray, ...]:
    """`(t, q, v, a, effort, rate of the effort)` of all rows of the logs."""
    if not logs:
        raise ShapeError("no logs were given; expected at least one")
    columns: list[list[np.ndarray]] = []
    for log in logs:
        check_log(model, log)
        if log.a is None:
            raise ShapeError(
                f"log {log.name!r} has no accelerations; prepare the log, which differentiates it, or fit with "
                "OutputError, which needs none"
            )
        effort, t = np.asarray(log.effort), np.asarray(log.t)
        rate = np.gradient(effort, t, axis=0) if len(t) > 1 else np.zeros_like(effort)
        columns.append([t, *(np.asarray(x) for x in (log.q, log.v, log.a)), effort, rate])
    stack = tuple(np.concatenate(x).astype(model.dtype) for x in zip(*columns, strict=True))
    for x, name in zip(stack, ("t", "q", "v", "a", "effort", "rate of the effort"), strict=True):
        if not np.isfinite(x).all():
            raise ShapeError(
                f"the logs contain numbers that are not finite, in {name}; prepare the logs, or drop those rows"
            )
    return stack


def predicted_effort(system: Model | System, log: Log) -> Float[Array, "n nv"]:
    """The effort that a log should read: `rnea - passive_forces - parts`, through the inverse of the drive.

    The motion `q, v, a` of the log determines it. With a delay of the drive, `u(t) = required(t + delay)`.

    Arguments:

    * `system`: the robot, or a `System` around it.
    * `log`: with accelerations, n rows.

    Returns efforts `(n, nv)` in the unit of the log: N m or N, or that of a `Drive`'s command. Raises `ModelError` for
    parts that have a state, and `ShapeError` for logs without accelerations.

    ```python
    import numpy as np
    import jaxdyn as jd
    from jaxdyn.identification import Log, predicted_effort

    t = np.linspace(0, 2, 50)
    q, v, a = (np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t))
    log = Log(t, *(x[:, None] for x in (q, v, a)), effort=np.zeros((50, 1)))
    effort = predicted_effort(jd.robots.pendulum(length=1.0, mass=1.0), log)
    assert np.allclose(effort[:, 0], a + 9.81 * np.sin(q), atol=1e-4)
    ```
    """
    system = as_system(system)
    check_parts(system)
    t, q, v, a, _, _ = effort_samples(system.model, [log])
    effort = _predict_rows(system, *map(jnp.asarray, (q, v, a, t)))
    drive = find_drive(system)
    delays = np.zeros(system.model.nv) if drive is None else np.asarray(drive.delay)
    if len(t) < 2 or not delays.any():
        return effort
    ahead = [interpolate_cubic(t, x, t + delay) for x, delay in zip(np.asarray(effort).T, delays, strict=True)]
    return jnp.asarray(np.stack(ahead, axis=1), effort.dtype)


@jax.jit
def _predict_rows(system, q, v, a, t):
    return jax.vmap(lambda *s: predict_sample(system, *s))(q, v, a, t)
