"""Outcomes of the search for a periodic orbit."""

from jaxdyn._status import Status


class OrbitStatus(Status):
    """Outcome of `periodic_orbit`."""

    CONVERGED = 0, "a periodic orbit was found"
    MAX_ITERATIONS = 1, "Newton's method was still converging at the last allowed iteration"
    NO_RETURN = 2, "the motion from the initial guess does not return"
    STUCK = (
        3,
        "no step reduces the deviation: there is no orbit near the guess, or a multiplier is 1, so that the orbit "
        "is not isolated",
    )
