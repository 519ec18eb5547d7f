"""Outcomes of the search for a periodic orbit."""

import enum


class OrbitStatus(enum.IntEnum):
    """Outcome of `periodic_orbit`."""

    CONVERGED = 0
    #: Newton's method was still converging at the last allowed iteration
    MAX_ITERATIONS = 1
    #: the motion from the initial guess does not return
    NO_RETURN = 2
    #: no step reduces the deviation: there is no orbit near the guess, or a multiplier is 1, so that the orbit is not
    #: isolated
    STUCK = 3
