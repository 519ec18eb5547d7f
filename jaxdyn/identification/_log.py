"""What identification starts from: the measured motion of a robot and the efforts that went with it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ShapeError
from jaxdyn._types import Array, Float
from jaxdyn.model import Model


class Channel(NamedTuple):
    """Where a column of a log came from, and what was done to it."""

    #: what it became: `q.<joint>`, `v.<joint>`, `a.<joint>` or `effort.<joint>`
    name: str
    #: unit in the source, or "" if it was derived
    unit: str
    #: file and column, or how it was derived
    source: str


def _as_float(x) -> Any:
    if x is None:
        return None
    x = np.asarray(x) if not isinstance(x, Array) else x
    return jnp.asarray(x if np.issubdtype(x.dtype, np.floating) else x.astype(float))


class Log(eqx.Module):
    """One stretch of measured motion, a row a sample, in SI units at the joints.

    `prepare` makes logs out of files, with even time steps and without gaps; one made by hand may have uneven steps
    where a method allows it.
    """

    #: time, s
    t: Float[Array, " n"] = eqx.field(converter=_as_float)
    #: configurations
    q: Float[Array, "n nq"] = eqx.field(converter=_as_float)
    #: velocities, rad/s or m/s
    v: Float[Array, "n nv"] = eqx.field(converter=_as_float)
    #: accelerations, rad/s^2 or m/s^2, or None where they are not known
    a: Float[Array, "n nv"] | None = eqx.field(converter=_as_float)
    #: measured efforts at the joints, N m or N
    effort: Float[Array, "n nv"] = eqx.field(converter=_as_float)
    name: str = eqx.field(static=True, default="log")
    #: where the columns came from
    channels: tuple[Channel, ...] = eqx.field(static=True, default=())
    #: measured poses of named frames or links in world axes, `(rotation (n, 3, 3), translation (n, 3))` each, or None
    frames: Mapping[str, Any] | None = None

    @property
    def num_samples(self) -> int:
        """Number of rows."""
        return self.t.shape[0]

    @property
    def dt(self) -> Float[Array, ""]:
        """The mean time step, s."""
        return (self.t[-1] - self.t[0]) / (self.num_samples - 1)

    def rows(self, keep: Any, name: str | None = None) -> "Log":
        """The log of the rows in `keep`: a slice, indices or a mask."""
        frames = self.frames and {
            key: tuple(None if x is None else x[keep] for x in pose) for key, pose in self.frames.items()
        }
        a = None if self.a is None else self.a[keep]
        name = self.name if name is None else name
        return Log(self.t[keep], self.q[keep], self.v[keep], a, self.effort[keep], name, self.channels, frames)


def check_log(model: Model, log: Log) -> Log:
    """The log, or `ShapeError` if it does not fit the model."""
    n = log.num_samples
    shapes = {"q": (n, model.nq), "v": (n, model.nv), "a": (n, model.nv), "effort": (n, model.nv)}
    for field, shape in shapes.items():
        x = getattr(log, field)
        if x is not None and x.shape != shape:
            raise ShapeError(
                f"log {log.name!r}: {field} has shape {x.shape}, expected {shape} for {n} rows and a model with nq "
                f"{model.nq} and nv {model.nv}; lock the joints that were not logged by jaxdyn.lock_joints"
            )
    return log
