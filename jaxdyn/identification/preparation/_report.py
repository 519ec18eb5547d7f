"""The report of the preparation of logs."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Interval:
    """A time interval of a log that was removed, s, and the reason."""

    start: float
    stop: float
    why: str


@dataclass(frozen=True)
class VelocityCheck:
    """The measured velocity of a joint compared with the derivative of its position."""

    joint: str
    #: least-squares slope of the measured over the differentiated velocity; 1 if unit, gear and sign are correct
    slope: float
    correlation: float
    #: delay of the measured velocity, s
    delay: float


@dataclass(frozen=True)
class RunReport:
    """The preparation of one run."""

    name: str
    rows: int
    #: number of repeated rows, which were removed
    repeated: int
    #: sampling rate of the logs, Hz
    rate: float
    #: minimum, median and maximum time step of the file, s
    steps: tuple[float, float, float]
    #: cut-off frequency, Hz; None without a filter
    cutoff: float | None
    #: how the cut-off was chosen
    cutoff_from: str
    order: int
    #: delay of the efforts by joint, s, which was removed
    effort_delay: dict[str, float]
    velocities: tuple[VelocityCheck, ...]
    left_out: tuple[Interval, ...]
    #: names of the logs of this run, and their numbers of rows
    logs: dict[str, int]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        low, middle, high = (1e3 * s for s in self.steps)
        lines = [
            f"{self.name}: {self.rows} rows, {self.repeated} repeated; steps {low:.4g} to {high:.4g} ms, median "
            f"{middle:.4g} ms, resampled at {self.rate:.6g} Hz"
        ]
        cutoff = "not filtered" if self.cutoff is None else f"low-pass at {self.cutoff:.4g} Hz of order {self.order}"
        lines.append(f"  {cutoff} ({self.cutoff_from})")
        lines += [f"  effort of {joint}: delay {1e3 * d:.4g} ms removed" for joint, d in self.effort_delay.items() if d]
        lines += [
            f"  measured velocity of {c.joint}: slope {c.slope:.4f}, correlation {c.correlation:.4f}, delay "
            f"{1e3 * c.delay:.3g} ms"
            for c in self.velocities
        ]
        lines += [f"  removed {x.start:.6g} to {x.stop:.6g} s: {x.why}" for x in self.left_out]
        lines += [f"  note: {note}" for note in self.notes]
        lines += [f"  log {name}: {count} rows" for name, count in self.logs.items()]
        return "\n".join(lines)


@dataclass(frozen=True)
class PreparationReport:
    """The preparation of all runs; `str` returns it as text, `to_dict` as plain data for JSON."""

    runs: tuple[RunReport, ...] = field(default=())

    def __str__(self) -> str:
        return "\n".join(map(str, self.runs))

    def to_dict(self) -> dict[str, Any]:
        """The report as plain dictionaries, lists and numbers."""
        return asdict(self)
