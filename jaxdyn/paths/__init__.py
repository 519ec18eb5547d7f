"""Motion along given paths: point-to-point profiles, splines, time-optimal path timing, resolved rates."""

from jaxdyn.paths._path_timing import TimedPath as TimedPath
from jaxdyn.paths._path_timing import TimingStatus as TimingStatus
from jaxdyn.paths._path_timing import time_path as time_path
from jaxdyn.paths._profiles import Quintic as Quintic
from jaxdyn.paths._profiles import TrapezoidProfile as TrapezoidProfile
from jaxdyn.paths._profiles import quintic as quintic
from jaxdyn.paths._profiles import quintic_duration as quintic_duration
from jaxdyn.paths._profiles import synchronised_trapezoidal as synchronised_trapezoidal
from jaxdyn.paths._profiles import trapezoidal_profile as trapezoidal_profile
from jaxdyn.paths._resolved_rates import FrameTrajectory as FrameTrajectory
from jaxdyn.paths._resolved_rates import RateStatus as RateStatus
from jaxdyn.paths._resolved_rates import ResolvedRates as ResolvedRates
from jaxdyn.paths._resolved_rates import follow_frame as follow_frame
from jaxdyn.paths._resolved_rates import left_inverse as left_inverse
from jaxdyn.paths._resolved_rates import resolved_rates as resolved_rates
from jaxdyn.paths._resolved_rates import right_inverse as right_inverse
from jaxdyn.paths._resolved_rates import square_inverse as square_inverse
from jaxdyn.paths._splines import Spline as Spline
from jaxdyn.paths._splines import waypoint_spline as waypoint_spline
