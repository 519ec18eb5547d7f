"""Bounds and physical consistency: points that satisfy them, and selections for which they cannot be kept."""

import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.identification.parameters._parameters import Parameters
from jaxdyn.identification.parameters._pseudo_inertia import consistent_parameters


def feasible_point(parameters: Parameters, x: np.ndarray) -> np.ndarray:
    """A vector strictly within its bounds, with physically consistent links: x itself, or near it where x is not."""
    x = np.array(x, float)
    low, high = parameters.lower, parameters.upper
    step = np.minimum(1e-3 * parameters.scale, np.where(np.isfinite(high - low), (high - low) / 4, np.inf))
    x = np.minimum(np.maximum(x, low + step), high - step)
    for rows in parameters.inertial:
        x[rows] = consistent_parameters(x[rows])
    return x


def check_bodies(parameters: Parameters, *, inertial_bounds: bool):
    """Raises `ModelError` for selections whose physical consistency or whose bounds a method cannot keep.

    These are the nine entries of `links[..].inertia`, and bounds of a link's ten inertial parameters unless
    `inertial_bounds`.
    """
    loose = [slot.names[0][:-3] for slot in parameters.slots if slot.names[0].endswith(".inertia[0]")]
    if loose:
        raise ModelError(
            f"{loose[0]} selects nine independent entries, whose inertia need not be physically consistent; select "
            "links[..].inertial, whose ten parameters stay consistent, or fit with Linear"
        )
    ten = set(parameters.inertial.reshape(-1).tolist())
    bounded = [parameters.names[k] for k, _, _ in parameters.bounds if k in ten]
    if bounded and not inertial_bounds:
        raise ModelError(
            f"bounds of {bounded[0]!r}, one of a link's ten inertial parameters, are supported by Physical only; use "
            "that method, or leave these bounds out"
        )
