"""Logs: the measured motion and joint efforts of a robot."""

from collections.abc import Mapping
from typing import NamedTuple

import equinox as eqx
import numpy as np

from jaxdyn._errors import ShapeError
from jaxdyn._numerics import as_float, optional_float
from jaxdyn._types import Array, Float
from jaxdyn.model import Model


class Channel(NamedTuple):
    """The origin of one column of a log.

    `prepare` records one channel for each quantity and joint in `Log.channels`:

    ```python
    from jaxdyn.identification import Channel

    channel = Channel("effort.elbow", "A", "monday.csv, column 'amps_elbow'")
    assert channel.unit == "A"
    ```
    """

    #: quantity and joint: `q.<joint>`, `v.<joint>`, `a.<joint>` or `effort.<joint>`
    name: str
    #: unit in the file, or "" for a computed column
    unit: str
    #: file and column, or the value of a constant column
    source: str


def _as_floats_or_none(columns):
    return None if columns is None else {name: as_float(x) for name, x in columns.items()}


class Log(eqx.Module):
    """The measured motion and efforts of a robot: one row per sample, in SI units at the joints.

    `prepare` makes logs from files, with uniform time steps and without gaps. You can also construct a log from arrays.
    `Physical`, `Linear` and the other methods that use accelerations do not need uniform time steps.

    Arguments:

    * `t`: times `(n,)`, s, increasing.
    * `q`: configurations `(n, nq)`, rad or m.
    * `v`: velocities `(n, nv)`, rad/s or m/s.
    * `a`: accelerations `(n, nv)`, rad/s^2 or m/s^2, or None if they are unknown.
    * `effort`: measured joint efforts `(n, nv)`, N m or N.
    * `name`: name of the log in messages and reports.
    * `channels`: origin of each column.
    * `frames`: measured poses of frames by name, for `FramePoses`.
    * `inputs`: inputs of the actuators of the system `(n, inputs)`, such as voltages, in the order of the parts. The
      efforts act in addition to the actuators; they are zero at joints that only actuators drive.
    * `measured`: measurements of actuators `(n,)` by name, such as `current.elbow` in A, `rotor_velocity.elbow` in
      rad/s, `temperature.elbow` and `housing_temperature.elbow` in degrees Celsius.
    * `measured_rate`: time derivatives of measurements `(n,)` by name, for methods other than `OutputError`, which
      compare the rates of states of actuators, such as currents and temperatures.

    ```python
    import numpy as np
    from jaxdyn.identification import Log

    t = np.linspace(0.0, 1.0, 101)
    q, v, a = np.sin(t)[:, None], np.cos(t)[:, None], -np.sin(t)[:, None]
    log = Log(t, q, v, a, effort=2.0 * a, name="sine")
    assert log.num_samples == 101
    assert log.rows(slice(0, 50)).q.shape == (50, 1)
    ```
    """

    #: time, s
    t: Float[Array, " n"] = eqx.field(converter=as_float)
    #: configurations
    q: Float[Array, "n nq"] = eqx.field(converter=as_float)
    #: velocities, rad/s or m/s
    v: Float[Array, "n nv"] = eqx.field(converter=as_float)
    #: accelerations, rad/s^2 or m/s^2, or None if they are unknown
    a: Float[Array, "n nv"] | None = eqx.field(converter=optional_float)
    #: measured efforts at the joints, N m or N
    effort: Float[Array, "n nv"] = eqx.field(converter=as_float)
    name: str = eqx.field(static=True, default="log")
    #: origin of each column
    channels: tuple[Channel, ...] = eqx.field(static=True, default=())
    #: measured poses of frames or links in world axes by name: `(rotation (n, 3, 3) or None, translation (n, 3))` each
    frames: Mapping[str, tuple] | None = None
    #: inputs of the actuators, in the order of the parts of the system
    inputs: Float[Array, "n inputs"] | None = eqx.field(converter=optional_float, default=None)
    #: measurements of actuators by name
    measured: Mapping[str, Float[Array, " n"]] | None = eqx.field(converter=_as_floats_or_none, default=None)
    #: time derivatives of measurements by name, in their units over a second
    measured_rate: Mapping[str, Float[Array, " n"]] | None = eqx.field(converter=_as_floats_or_none, default=None)

    @property
    def num_samples(self) -> int:
        """Number of rows."""
        return self.t.shape[0]

    @property
    def dt(self) -> Float[Array, ""]:
        """Mean time step, s."""
        return (self.t[-1] - self.t[0]) / (self.num_samples - 1)

    def rows(self, keep: slice | np.ndarray | Array, name: str | None = None) -> "Log":
        """The log restricted to the rows `keep`: a slice, indices or a mask."""
        frames = self.frames and {
            key: tuple(None if x is None else x[keep] for x in pose) for key, pose in self.frames.items()
        }
        a = None if self.a is None else self.a[keep]
        name = self.name if name is None else name
        inputs = None if self.inputs is None else self.inputs[keep]
        measured, rate = (x and {key: y[keep] for key, y in x.items()} for x in (self.measured, self.measured_rate))
        motion = self.t[keep], self.q[keep], self.v[keep], a, self.effort[keep]
        return Log(*motion, name, self.channels, frames, inputs, measured, rate)


def check_log(model: Model, log: Log) -> Log:
    """Returns the log; raises `ShapeError` if the shape of an array does not fit the model."""
    n = log.num_samples
    shapes = {"q": (n, model.nq), "v": (n, model.nv), "a": (n, model.nv), "effort": (n, model.nv)}
    for field, shape in shapes.items():
        x = getattr(log, field)
        if x is not None and x.shape != shape:
            raise ShapeError(
                f"log {log.name!r}: {field} has shape {x.shape}, expected {shape} for {n} rows and a model with nq "
                f"{model.nq} and nv {model.nv}; lock joints without logged positions with jaxdyn.lock_joints"
            )
    columns = {"inputs": log.inputs}
    for name in ("measured", "measured_rate"):
        columns |= {f"{name}[{key!r}]": x for key, x in (getattr(log, name) or {}).items()}
    for field, x in columns.items():
        if x is not None and (x.ndim != (2 if field == "inputs" else 1) or x.shape[0] != n):
            wanted = "(n, inputs)" if field == "inputs" else "(n,)"
            raise ShapeError(f"log {log.name!r}: {field} has shape {x.shape}, expected {wanted} with the {n} rows of t")
    return log
