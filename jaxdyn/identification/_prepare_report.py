"""What was done to logs before a fit, and what was seen on the way."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Interval:
    """A stretch of time of a log that was left out, and why."""

    start: float
    stop: float
    why: str


@dataclass(frozen=True)
class VelocityCheck:
    """The logged velocity of a joint against the slope of its position."""

    joint: str
    #: least-squares slope of the logged over the differentiated velocity; 1 if units, gear and sign are right
    slope: float
    correlation: float
    #: by how much the logged velocity trails, s
    delay: float


@dataclass(frozen=True)
class RunReport:
    """How one run was prepared."""

    name: str
    rows: int
    #: rows that repeated the one before, and were dropped
    repeated: int
    #: samples a second after resampling
    rate: float
    #: least, median and greatest time step of the source, s
    steps: tuple[float, float, float]
    #: cut-off of the low-pass, Hz, or None without one
    cutoff: float | None
    #: how the cut-off was chosen
    cutoff_from: str
    order: int
    #: by how much efforts trailed the motion, s, by joint; removed
    effort_delay: dict[str, float]
    velocities: tuple[VelocityCheck, ...]
    left_out: tuple[Interval, ...]
    #: names of the logs made of this run, and their numbers of rows
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
        lines += [f"  effort of {joint} trailed by {1e3 * d:.4g} ms" for joint, d in self.effort_delay.items() if d]
        lines += [
            f"  logged velocity of {c.joint}: slope {c.slope:.4f}, correlation {c.correlation:.4f}, trails by "
            f"{1e3 * c.delay:.3g} ms"
            for c in self.velocities
        ]
        lines += [f"  left out {x.start:.6g} to {x.stop:.6g} s: {x.why}" for x in self.left_out]
        lines += [f"  note: {note}" for note in self.notes]
        lines += [f"  log {name}: {count} rows" for name, count in self.logs.items()]
        return "\n".join(lines)


@dataclass(frozen=True)
class PreparationReport:
    """How logs were prepared, run by run; `str` gives it as text and `to_dict` for JSON."""

    runs: tuple[RunReport, ...] = field(default=())

    def __str__(self) -> str:
        return "\n".join(map(str, self.runs))

    def to_dict(self) -> dict[str, Any]:
        """The report as plain dictionaries, lists and numbers."""
        return asdict(self)
