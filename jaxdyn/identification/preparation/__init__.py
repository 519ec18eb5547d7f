"""Preparation of logs: resampling, zero-phase filtering, differentiation, delays, and removal of unusable samples."""

from jaxdyn.identification.preparation._options import Preparation as Preparation
from jaxdyn.identification.preparation._prepare import prepare as prepare
from jaxdyn.identification.preparation._report import Interval as Interval
from jaxdyn.identification.preparation._report import PreparationReport as PreparationReport
from jaxdyn.identification.preparation._report import RunReport as RunReport
from jaxdyn.identification.preparation._report import VelocityCheck as VelocityCheck
from jaxdyn.identification.preparation._signals import butterworth_response as butterworth_response
from jaxdyn.identification.preparation._signals import interpolate_cubic as interpolate_cubic
