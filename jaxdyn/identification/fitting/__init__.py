"""`fit`, its result, and the choice of models, priors and methods by cross-validation."""

from jaxdyn.identification.fitting._cross_validation import Candidate as Candidate
from jaxdyn.identification.fitting._cross_validation import CrossValidation as CrossValidation
from jaxdyn.identification.fitting._cross_validation import cross_validate as cross_validate
from jaxdyn.identification.fitting._fit import fit as fit
from jaxdyn.identification.fitting._result import BaseParameter as BaseParameter
from jaxdyn.identification.fitting._result import FitResult as FitResult
from jaxdyn.identification.fitting._result import JointError as JointError
from jaxdyn.identification.fitting._result import ParameterRow as ParameterRow
