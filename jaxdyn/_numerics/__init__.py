"""Batched kernels (lanes), functions with finite derivatives at singular points, decompositions, conversions."""

from jaxdyn._numerics._concrete import is_concrete as is_concrete
from jaxdyn._numerics._concrete import namespace as namespace
from jaxdyn._numerics._conversion import Function as Function
from jaxdyn._numerics._conversion import as_float as as_float
from jaxdyn._numerics._conversion import as_function as as_function
from jaxdyn._numerics._conversion import floats_as_arrays as floats_as_arrays
from jaxdyn._numerics._conversion import numbers_as_arrays as numbers_as_arrays
from jaxdyn._numerics._conversion import optional_float as optional_float
from jaxdyn._numerics._decompositions import default_tolerance as default_tolerance
from jaxdyn._numerics._decompositions import generalised_eigen as generalised_eigen
from jaxdyn._numerics._decompositions import invert as invert
from jaxdyn._numerics._decompositions import pseudo_inverse as pseudo_inverse
from jaxdyn._numerics._decompositions import symmetric_eigen as symmetric_eigen
from jaxdyn._numerics._dense_derivatives import dense_derivatives as dense_derivatives
from jaxdyn._numerics._dense_derivatives import moving_arrays as moving_arrays
from jaxdyn._numerics._lanes import kernel as kernel
from jaxdyn._numerics._safe import safe_norm as safe_norm
from jaxdyn._numerics._safe import sinc as sinc
from jaxdyn._numerics._safe import smooth_sign as smooth_sign
from jaxdyn._numerics._safe import tangent_basis as tangent_basis
from jaxdyn._numerics._safe import tanhc as tanhc
from jaxdyn._numerics._trig import sincos as sincos
