"""Gradient-safe primitives and the mechanism that makes batches fast."""

from jaxdyn._numerics._decompositions import default_tolerance as default_tolerance
from jaxdyn._numerics._decompositions import pseudo_inverse as pseudo_inverse
from jaxdyn._numerics._decompositions import symmetric_eigen as symmetric_eigen
from jaxdyn._numerics._lanes import kernel as kernel
from jaxdyn._numerics._safe import safe_norm as safe_norm
from jaxdyn._numerics._safe import sinc as sinc
from jaxdyn._numerics._safe import smooth_sign as smooth_sign
from jaxdyn._numerics._trig import sincos as sincos
