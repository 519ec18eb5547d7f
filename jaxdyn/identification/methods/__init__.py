"""Fit methods: linear, physically consistent and nonlinear least squares, output error, calibration; their prior."""

from jaxdyn.identification.methods._calibration import FramePoses as FramePoses
from jaxdyn.identification.methods._contract import AbstractMethod as AbstractMethod
from jaxdyn.identification.methods._contract import Estimate as Estimate
from jaxdyn.identification.methods._contract import Weights as Weights
from jaxdyn.identification.methods._first_order import FirstOrder as FirstOrder
from jaxdyn.identification.methods._levenberg_marquardt import LevenbergMarquardt as LevenbergMarquardt
from jaxdyn.identification.methods._linear import Linear as Linear
from jaxdyn.identification.methods._low_passed import LowPassed as LowPassed
from jaxdyn.identification.methods._output_error import OutputError as OutputError
from jaxdyn.identification.methods._output_error import simulation_error as simulation_error
from jaxdyn.identification.methods._physical import Physical as Physical
from jaxdyn.identification.methods._prior import GeometricPrior as GeometricPrior
from jaxdyn.identification.methods._status import FitStatus as FitStatus
from jaxdyn.identification.methods.windows import AbstractStart as AbstractStart
from jaxdyn.identification.methods.windows import FreeStart as FreeStart
from jaxdyn.identification.methods.windows import MeasuredStart as MeasuredStart
from jaxdyn.identification.methods.windows import Windows as Windows
