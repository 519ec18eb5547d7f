"""The status of a fit."""

import enum


class FitStatus(enum.IntEnum):
    """How a fit ended."""

    #: a minimum was found within the tolerances
    CONVERGED = 0
    #: the limit `max_steps` was reached first
    MAX_STEPS = 1
    #: no step reduces the cost although its gradient is not small
    STALLED = 2
    #: a residual or its derivative is not finite
    NOT_FINITE = 3
