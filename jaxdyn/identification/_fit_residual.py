"""Measured efforts minus predicted ones."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError, ShapeError
from jaxdyn._types import Array, Float
from jaxdyn.actuators import Drive
from jaxdyn.dynamics import AbstractPart, passive_forces, rnea
from jaxdyn.identification._fit_problem import Problem, stacked
from jaxdyn.identification._log import Log, check_log
from jaxdyn.identification._parameters import Parameters
from jaxdyn.identification._prepare_signals import interpolate
from jaxdyn.identification._selection import _coordinate_labels
from jaxdyn.model import Model
from jaxdyn.simulation import System
from jaxdyn.simulation._system import as_system


def needed_effort(system: System, q, v, a, t=0.0):
    """The effort that drives must make for this motion: `rnea - passive_forces - efforts of all other parts`."""
    model = system.model
    effort = rnea(model, q, v, a, _external(system, t, q, v))
    if system.passive:
        effort = effort - passive_forces(model, q, v)
    for part in system.parts:
        if not isinstance(part, Drive):
            other = part.act(model, t, q, v, None).effort
            effort = effort if other is None else effort - other
    return effort


def _external(system: System, t, q, v):
    total = None
    for part in system.parts:
        if not isinstance(part, Drive):
            wrench = part.act(system.model, t, q, v, None).external
            total = wrench if total is None else (total if wrench is None else total + wrench)
    return total


def drive_of(system: System) -> Drive | None:
    """The drive of a system, if it has one."""
    for part in system.parts:
        if isinstance(part, Drive):
            return part
    return None


def predicted(system: System, q, v, a, t=0.0):
    """What the log's effort should read: the needed effort, through the inverse of the drive."""
    effort = needed_effort(system, q, v, a, t)
    drive = drive_of(system)
    return effort if drive is None else drive.inverse(effort)


def effort_residual(system: System, sample):
    """`u(t - delay) - predicted`, to first order in the delay."""
    t, q, v, a, u, rate = sample
    drive = drive_of(system)
    if drive is not None:
        u = u - drive.delay * rate
    return (u - predicted(system, q, v, a, t))[:, None]


def check_parts(system: System):
    """Parts whose efforts a sample determines, and at most one drive, or `ModelError`."""
    if sum(isinstance(p, Drive) for p in system.parts) > 1:
        raise ModelError("the system has two Drives; a log's efforts go through one, with a gain for each joint")
    for part in system.parts:
        zero = jnp.zeros(system.model.nv, system.model.dtype)
        state = part.initial(system.model, system.model.properties.rest, zero) if isinstance(part, AbstractPart) else 0
        if state is not None:
            raise ModelError(
                f"{type(part).__name__} has a state of its own, which a row of a log does not show; fit its numbers "
                "with OutputError, which simulates it"
            )


def effort_problem(parameters: Parameters, logs: Sequence[Log], chunk: int) -> Problem:
    """The residual of efforts over all rows of the logs; one channel a velocity coordinate."""
    model = parameters.system.model
    check_parts(parameters.system)
    rows = effort_samples(model, logs)
    samples, present = stacked(rows, chunk)
    measured = jnp.sqrt(jnp.mean(jnp.asarray(rows[4]) ** 2, axis=0))
    return Problem(parameters, samples, present, effort_residual, *coordinate_channels(model), False, measured)


def coordinate_channels(model: Model) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and units of efforts, one a velocity coordinate."""
    names = tuple(_coordinate_labels(model))
    linear = {
        name
        for name in model.joint_names
        if model.joint(name).joint.translates and model.joint(name).v.stop - model.joint(name).v.start == 1
    }
    return names, tuple("N" if name in linear else "N m" for name in names)


def effort_samples(model: Model, logs: Sequence[Log]):
    """`(t, q, v, a, effort, rate of the effort)` of all rows of the logs."""
    if not logs:
        raise ShapeError("there is no log to fit; give at least one")
    columns: list[Any] = []
    for log in logs:
        check_log(model, log)
        if log.a is None:
            raise ShapeError(
                f"log {log.name!r} has no accelerations; prepare it with differentiation, or fit with OutputError, "
                "which needs none"
            )
        effort, t = np.asarray(log.effort), np.asarray(log.t)
        rate = np.gradient(effort, t, axis=0) if len(t) > 1 else np.zeros_like(effort)
        columns.append([t, *(np.asarray(x) for x in (log.q, log.v, log.a)), effort, rate])
    stack = tuple(np.concatenate(x).astype(model.dtype) for x in zip(*columns, strict=True))
    for x, name in zip(stack, ("t", "q", "v", "a", "effort", "rate of the effort"), strict=True):
        if not np.isfinite(x).all():
            raise ShapeError(f"the logs hold a number that is not finite, in {name}; prepare them, or drop those rows")
    return stack


def predicted_effort(system: Any, log: Log) -> Float[Array, "n nv"]:
    """What a log's effort should read, row by row: `rnea - passive_forces - parts`, through the inverse of the drive.

    In the units of the log: N m or N, or those of a `Drive`'s command. Of a drive with a delay it is what acts as much
    later, `u(t) = needed(t + delay)`, interpolated.
    """
    system = as_system(system)
    check_parts(system)
    t, q, v, a, _, _ = effort_samples(system.model, [log])
    found = _predict_all(system, *map(jnp.asarray, (q, v, a, t)))
    drive = drive_of(system)
    delays = np.zeros(system.model.nv) if drive is None else np.asarray(drive.delay)
    if len(t) < 2 or not delays.any():
        return found
    ahead = [interpolate(t, x, t + delay) for x, delay in zip(np.asarray(found).T, delays, strict=True)]
    return jnp.asarray(np.stack(ahead, axis=1), found.dtype)


@jax.jit
def _predict_all(system, q, v, a, t):
    return jax.vmap(lambda *s: predicted(system, *s))(q, v, a, t)
