"""Least-squares problems of a fit: residuals of efforts, robust losses, normal equations and autocorrelation."""

from jaxdyn.identification.residuals._autocorrelation import autocorrelation_time as autocorrelation_time
from jaxdyn.identification.residuals._autocorrelation import residuals as residuals
from jaxdyn.identification.residuals._effort import check_parts as check_parts
from jaxdyn.identification.residuals._effort import compare_efforts as compare_efforts
from jaxdyn.identification.residuals._effort import dof_channels as dof_channels
from jaxdyn.identification.residuals._effort import effort_channels as effort_channels
from jaxdyn.identification.residuals._effort import effort_problem as effort_problem
from jaxdyn.identification.residuals._effort import effort_residual as effort_residual
from jaxdyn.identification.residuals._effort import measured_values as measured_values
from jaxdyn.identification.residuals._effort import predicted_effort as predicted_effort
from jaxdyn.identification.residuals._least_squares import LeastSquaresProblem as LeastSquaresProblem
from jaxdyn.identification.residuals._least_squares import NormalEquations as NormalEquations
from jaxdyn.identification.residuals._least_squares import is_linear as is_linear
from jaxdyn.identification.residuals._least_squares import stack_chunks as stack_chunks
from jaxdyn.identification.residuals._least_squares import sum_away_from as sum_away_from
from jaxdyn.identification.residuals._least_squares import sum_normal_equations as sum_normal_equations
from jaxdyn.identification.residuals._losses import AbstractLoss as AbstractLoss
from jaxdyn.identification.residuals._losses import Cauchy as Cauchy
from jaxdyn.identification.residuals._losses import Huber as Huber
from jaxdyn.identification.residuals._measurements import check_columns as check_columns
from jaxdyn.identification.residuals._samples import EffortSample as EffortSample
from jaxdyn.identification.residuals._samples import effort_samples as effort_samples
