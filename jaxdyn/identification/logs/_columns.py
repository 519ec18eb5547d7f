"""The description of the columns of a log: names, units, gears and signs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jaxdyn.identification.logs._patterns import compile_column_pattern, compile_table_pattern
from jaxdyn.identification.logs.tables import Table

#: one number for all joints, a sequence in the order of the coordinates, or numbers by joint (default 1)
Numbers = float | int | Sequence[float | int] | Mapping[str, float | int]


@dataclass(frozen=True)
class Source:
    """The columns of one quantity, such as positions, efforts or voltages, and their conversion.

    Positions, velocities and accelerations are `sign * gain * x / gear + offset`; efforts are
    `sign * gain * gear * x + offset`, with the column x in SI units, or in A, V or 1. For columns on the motor side,
    `gear` is the gear ratio and `gain` the torque constant. Inputs and measurements of actuators are
    `sign * gain * x + offset`.

    Arguments:

    * `pattern`: the column names: a string with the placeholder `{joint}`, `{index}` (from 0) or `{number}` (from 1); a
      regular expression for the whole name with a group `joint`, `index` or `number`; a sequence of names in the order
      of the coordinates; or a mapping from joint to name.
    * `unit`: unit of the columns; default: the unit stated in the file, otherwise SI.
    * `gear`, `sign`, `gain`, `offset`: one number, a sequence in the order of the coordinates, or numbers by joint.
    * `table`: regular expression for the names of the files or topics to search; default: all.
    * `missing`: value of coordinates without a column; default: a missing column is an error.

    ```python
    from jaxdyn.identification import Source

    encoder = Source("enc_{joint}", unit="deg")
    current = Source("current_{joint}", unit="mA", gain={"shoulder": 0.14, "elbow": 0.09}, gear=100.0)
    ```
    """

    pattern: str | Sequence[str] | Mapping[str, str]
    #: unit of the columns; None: the unit stated in the file, otherwise SI
    unit: str | None = None
    gear: Numbers = 1.0
    sign: Numbers = 1.0
    #: None is 1; required for readings in A, V or %
    gain: Numbers | None = None
    #: in SI units at the joint
    offset: Numbers = 0.0
    #: regular expression for the names of the files or topics to search; "" for all
    table: str = ""
    #: value of coordinates without a column; None: a missing column is an error
    missing: float | int | None = None


@dataclass(frozen=True)
class Columns:
    """The columns of a log: time, positions and efforts, optionally velocities, accelerations and those of actuators.

    Arguments:

    * `position`, `effort`: `Source`s of positions and efforts; without efforts, only the actuators of a `System` drive
      its joints.
    * `velocity`, `acceleration`: `Source`s of measured velocities and accelerations, if any.
    * `inputs`: a `Source` for each quantity that the actuators of a `System` take, such as `{"voltage": Source(...)}`,
      with a column for each actuator.
    * `measured`: a `Source` for each measured quantity, such as `current`, `rotor_velocity` (rad/s), `temperature` and
      `housing_temperature` (degC), with a column for each actuator that has it, or for the joints of a dictionary.
    * `time`: name of the time column; `time_unit`: its unit.
    * `valid`: name of a column that is zero in invalid rows.
    * `names`: joint names of the model by joint names in the log, where these differ.

    ```python
    import numpy as np
    import jaxdyn as jd
    from jaxdyn.identification import Columns, Source, Table, prepare

    robot = jd.robots.pendulum()
    t = np.arange(0.0, 10.0, 0.01)
    table = Table("run", {"ms": 1e3 * t, "angle": np.rad2deg(np.sin(t)), "amps": np.cos(t)})
    columns = Columns(
        position=Source(["angle"], unit="deg"),
        effort=Source(["amps"], unit="A", gain=0.5),
        time="ms",
        time_unit="ms",
    )
    logs, report = prepare([table], robot, columns)
    assert np.allclose(logs[0].effort[:, 0], 0.5 * np.cos(logs[0].t), atol=1e-3)
    ```
    """

    position: Source
    effort: Source | None = None
    velocity: Source | None = None
    acceleration: Source | None = None
    time: str = "t"
    time_unit: str = "s"
    #: a column that is zero in invalid rows
    valid: str | None = None
    #: joint names of the model by joint names in the log, where these differ
    names: Mapping[str, str] = field(default_factory=dict)
    #: sources by quantity of the inputs and of the measurements of actuators
    inputs: Mapping[str, Source] = field(default_factory=dict)
    measured: Mapping[str, Source] = field(default_factory=dict)


#: default mappings: columns of `jaxdyn.simulation.to_csv` and of joint states in bags
CONVENTIONS = (
    Columns(Source("q.{joint}"), Source("effort.{joint}"), Source("v.{joint}")),
    Columns(Source("position.{joint}"), Source("effort.{joint}"), Source("velocity.{joint}"), time="time"),
)


def all_column_names(tables: Sequence[Table]) -> list[str]:
    """All column names in the order of the tables."""
    return [column for table in tables for column in (*table.columns, *table.refused)]


def check_source(source: Source):
    """Raises `ModelError` if the pattern or the table of a source is not a valid regular expression."""
    compile_table_pattern(source.table)
    if isinstance(source.pattern, str):
        compile_column_pattern(source.pattern)
