"""Windows of a log, their initial states and their simulation."""

from jaxdyn.identification.methods.windows._simulation import check_delays as check_delays
from jaxdyn.identification.methods.windows._starts import AbstractStart as AbstractStart
from jaxdyn.identification.methods.windows._starts import FreeStart as FreeStart
from jaxdyn.identification.methods.windows._starts import MeasuredStart as MeasuredStart
from jaxdyn.identification.methods.windows._windows import Windows as Windows
from jaxdyn.identification.methods.windows._windows import WindowSample as WindowSample
