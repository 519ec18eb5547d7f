"""The status of a fit."""

from jaxdyn._status import Status


class FitStatus(Status):
    """How a fit ended."""

    CONVERGED = 0, "a minimum was found within the tolerances"
    MAX_STEPS = 1, "the limit `max_steps` was reached first"
    STALLED = 2, "no step reduces the cost although its gradient is not small"
    NOT_FINITE = 3, "a residual or its derivative is not finite"
