"""Choices in the preparation of logs."""

from collections.abc import Mapping
from dataclasses import dataclass

from jaxdyn._errors import ModelError


@dataclass(frozen=True)
class Preparation:
    """What `prepare` does to logs; None stands for a choice made from the log, which the report states."""

    #: samples a second; by default that of the median step, and a lower one is reached after the filter
    rate: float | int | None = None
    #: the longest step that is interpolated, s; by default ten median steps
    longest_gap: float | int | None = None
    #: whether anything is filtered
    low_pass: bool = True
    #: of the low-pass, Hz; by default ten times the frequency below which 99.9 % of the positions' power lies
    cutoff: float | int | None = None
    #: of the Butterworth filter, which runs forward and backward
    order: int = 4
    #: whether velocities are derivatives of positions even if they were logged
    differentiate: bool = True
    #: by how much efforts trail the motion, s, for all joints or by joint; None estimates it
    effort_delay: float | int | Mapping[str, float | int] | None = 0.0
    #: bound of estimated delays, s
    longest_delay: float | int = 0.25
    #: left out at both ends of each stretch, where the filter sees no signal, s; by default three over the cut-off
    edge: float | int | None = None
    #: all speeds below this for `rest_time` are rest, rad/s or m/s; by default 1 % of each joint's greatest; 0 keeps it
    rest_speed: float | int | None = None
    rest_time: float | int = 0.5
    #: share of a joint's effort limit that counts as saturated; infinite limits never do
    saturation: float | int = 0.99
    #: an effort that stays at its own greatest value for so long counts as saturated, s
    saturation_time: float | int = 0.1
    #: shorter stretches are left out, s; by default twice `edge`
    shortest: float | int | None = None
    #: the time to use, s, from and to; by default all
    window: tuple[float | int, float | int] | None = None

    def __post_init__(self):
        positive = ("rate", "longest_gap", "cutoff", "order", "rest_time", "saturation", "saturation_time")
        for name in positive:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ModelError(f"preparation: {name} is {value!r}, expected a positive number")
        for name in ("edge", "rest_speed", "shortest", "longest_delay"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise ModelError(f"preparation: {name} is {value!r}, expected zero or more")
        if self.window is not None and not self.window[0] < self.window[1]:
            raise ModelError(f"preparation: window {self.window} ends before it begins; give (from, to) in s")
