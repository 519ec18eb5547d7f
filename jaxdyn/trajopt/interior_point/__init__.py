"""`solve` and `ipopt`: the nonlinear program of a transcription, and an interior-point method for it."""

from jaxdyn.trajopt.interior_point._algorithm import Progress as Progress
from jaxdyn.trajopt.interior_point._ipopt import ipopt as ipopt
from jaxdyn.trajopt.interior_point._solve import TranscriptionDetails as TranscriptionDetails
from jaxdyn.trajopt.interior_point._solve import solve as solve
