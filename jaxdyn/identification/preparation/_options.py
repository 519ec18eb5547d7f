"""Options of the preparation of logs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from jaxdyn._errors import ModelError


@dataclass(frozen=True)
class Preparation:
    """Options of `prepare`. For an option that is None, `prepare` chooses a value from the log and reports it.

    Arguments:

    * `rate`: sampling rate of the prepared logs, Hz; None: the rate of the median time step.
    * `longest_gap`: longest time step that is interpolated, s; None: ten median steps.
    * `low_pass`: whether signals pass the zero-phase low-pass filter.
    * `cutoff`: cut-off frequency, Hz; None: ten times the frequency below which 99.9 % of the motion's power lies.
    * `order`: order of the Butterworth filter, which runs forward and backward.
    * `differentiate`: whether velocities are derivatives of positions even if they were measured.
    * `effort_delay`: delay of the efforts relative to the motion, s, for all joints or by joint; None: estimated.
    * `longest_delay`: bound of estimated delays, s.
    * `edge`: removed at both ends of each segment, s; None: three divided by the cut-off frequency.
    * `rest_speed`: samples with all speeds below this for `rest_time` (s) are removed, rad/s or m/s; None: 1 % of the
      maximum of each joint; 0: keep rest.
    * `saturation`: share of the effort limit above which an effort counts as saturated.
    * `saturation_time`: an effort that stays at its maximum for this time counts as saturated, s.
    * `shortest`: shorter segments are removed, s; None: twice `edge`.
    * `window`: time interval to use (from, to), s; None: all.

    ```python
    from jaxdyn.identification import Preparation

    options = Preparation(cutoff=10.0, effort_delay=None, window=(1.0, 60.0))
    ```
    """

    #: sampling rate, Hz; None: of the median time step. Logs are decimated to a lower rate after the filter
    rate: float | int | None = None
    #: longest time step that is interpolated, s; None: ten median steps
    longest_gap: float | int | None = None
    #: whether signals are filtered
    low_pass: bool = True
    #: cut-off frequency, Hz; None: ten times the frequency below which 99.9 % of the positions' power lies
    cutoff: float | int | None = None
    #: order of the Butterworth filter, which runs forward and backward
    order: int = 4
    #: whether velocities are derivatives of positions even if they were measured
    differentiate: bool = True
    #: delay of the efforts relative to the motion, s, for all joints or by joint; None: estimated
    effort_delay: float | int | Mapping[str, float | int] | None = 0.0
    #: bound of estimated delays, s
    longest_delay: float | int = 0.25
    #: removed at both ends of each segment, where the filter has no data, s; None: three over the cut-off frequency
    edge: float | int | None = None
    #: all speeds below this for `rest_time` (s) are rest, rad/s or m/s; None: 1 % of each maximum; 0: keep rest
    rest_speed: float | int | None = None
    rest_time: float | int = 0.5
    #: share of a finite effort limit above which an effort counts as saturated
    saturation: float | int = 0.99
    #: an effort that stays at its maximum for this time counts as saturated, s
    saturation_time: float | int = 0.1
    #: shorter segments are removed, s; None: twice `edge`
    shortest: float | int | None = None
    #: time interval to use (from, to), s; None: all
    window: tuple[float | int, float | int] | None = None

    def __post_init__(self):
        positive = ("rate", "longest_gap", "cutoff", "order", "rest_time", "saturation", "saturation_time")
        for name in positive:
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ModelError(f"preparation: {name} is {value!r}, expected a positive number")
        for name in ("edge", "rest_speed", "shortest", "longest_delay"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise ModelError(f"preparation: {name} is {value!r}, expected zero or more")
        if self.window is not None and not self.window[0] < self.window[1]:
            raise ModelError(f"preparation: window {self.window} ends before it begins; expected (from, to) in s")
